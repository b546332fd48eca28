//! What changed from one scan to the next, as records.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

use trace::socket::{Owner, SocketRecord, TcpCounters};

use crate::diag::{TcpSocket, TcpState};
use crate::numbers::NumberMap;
use crate::processes::ProcessInfo;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Last {
    state: TcpState,
    inode: u64,
    owner: Option<Owner>,
    tcp: Option<TcpCounters>,
}

/// Remembers what was recorded last of each socket and process.
pub struct Changes {
    netns: u64,
    /// By the kernel's number of the socket, and in which scan it was there.
    sockets: NumberMap<(Last, u64)>,
    scan: u64,
    hasher: RandomState,
    listeners: HashMap<(SocketAddr, u64), Option<Owner>>,
    processes: HashMap<Owner, (String, &'static str)>,
    /// Whether sockets are told again though nothing about them changed.
    tells_again: bool,
}

impl Changes {
    /// Of this network namespace.
    #[must_use]
    pub fn new(netns: u64) -> Self {
        Self {
            netns,
            sockets: NumberMap::default(),
            scan: 0,
            hasher: RandomState::new(),
            listeners: HashMap::new(),
            processes: HashMap::new(),
            tells_again: false,
        }
    }

    /// From the next scan on all is told again, as if it were new: another file begins.
    pub fn tell_all_again(&mut self) {
        self.processes.clear();
        self.listeners.clear();
        self.tells_again = true;
    }

    /// Records of processes that were not told of before (or have become another program since).
    pub fn processes<'a>(&mut self, t: u64, now: impl Iterator<Item = &'a ProcessInfo>) -> Vec<SocketRecord> {
        let mut alive = HashSet::new();
        let mut records = Vec::new();
        for process in now {
            alive.insert(process.owner);
            records.extend(self.process(t, process));
        }
        self.processes.retain(|owner, _| alive.contains(owner));
        records
    }

    /// The record of one process, unless it was told of already.
    pub fn process(&mut self, t: u64, process: &ProcessInfo) -> Option<SocketRecord> {
        let known = self.processes.get(&process.owner);
        if known.is_some_and(|(main, role)| *main == process.main && *role == process.role) {
            return None;
        }
        self.processes.insert(process.owner, (process.main.clone(), process.role));
        Some(SocketRecord::Process {
            t,
            owner: process.owner,
            netns: self.netns,
            main: process.main.clone(),
            role: process.role.to_owned(),
            uid: process.uid,
            ns_pid: process.ns_pid,
        })
    }

    /// Records of sockets that are new, or of which something changed: state, owner, counters.
    pub fn sockets(&mut self, t: u64, now: &[TcpSocket], owner_of: impl Fn(u64) -> Option<Owner>) -> Vec<SocketRecord> {
        let mut records = Vec::new();
        self.scan += 1;
        let mut there = 0;
        let mut listeners = HashMap::new();
        let tells_again = std::mem::take(&mut self.tells_again);
        for socket in now {
            let owner = owner_of(socket.inode);
            if socket.state == TcpState::LISTEN {
                let key = (socket.local, socket.inode);
                if self.listeners.get(&key) != Some(&owner) {
                    let (local, inode) = key;
                    records.push(SocketRecord::Listen { t, netns: self.netns, local, inode, owner });
                }
                listeners.insert(key, owner);
            } else if socket.remote.port() != 0 {
                there += 1;
                let key = self.key(socket);
                let before = self.sockets.get_mut(&key);
                let now = last(socket, owner, before.as_ref().map(|(before, _)| before));
                match before {
                    // A closed one is told of for good: there may be thousands, and nothing about them changes.
                    Some((before, scan)) if *before == now && !(tells_again && now.inode != 0) => *scan = self.scan,
                    _ => {
                        self.sockets.insert(key, (now, self.scan));
                        records.push(self.record(t, socket, &now));
                    }
                }
            }
        }
        if there != self.sockets.len() {
            let scan = self.scan;
            self.sockets.retain(|_, (_, seen)| *seen == scan);
        }
        self.listeners = listeners;
        records
    }

    /// The kernel numbers sockets; without its number (from text) the addresses have to do.
    fn key(&self, socket: &TcpSocket) -> u64 {
        if socket.cookie == 0 { self.hasher.hash_one((socket.local, socket.remote)) } else { socket.cookie }
    }

    fn record(&self, t: u64, socket: &TcpSocket, now: &Last) -> SocketRecord {
        SocketRecord::Socket {
            t,
            netns: self.netns,
            local: socket.local,
            remote: socket.remote,
            state: now.state.name().to_owned(),
            inode: now.inode,
            owner: now.owner,
            tcp: now.tcp,
        }
    }
}

/// A closed connection has no inode any more, but it is still that of the process that had it.
fn last(socket: &TcpSocket, owner: Option<Owner>, before: Option<&Last>) -> Last {
    let owner = owner.or_else(|| before.filter(|_| socket.inode == 0).and_then(|before| before.owner));
    Last { state: socket.state, inode: socket.inode, owner, tcp: socket.tcp }
}
