//! Which process has which socket open.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::time::Instant;

use nix::fcntl::readlinkat;
use procfs::process::Process;
use trace::socket::Owner;

use crate::numbers::{NumberMap, NumberSet};
use crate::processes::{ProcessInfo, ProcessTable, is_ending};

/// Looking through the processes that are not Hadoop's rests so many times as long as it took: their sockets only tell
/// what to leave out, and on a busy host there may be thousands of them.
const OTHERS_REST: u32 = 50;

/// How often a socket is looked for among all processes before it counts as nobody's: its owner may be in the middle
/// of handing it over.
const TRIES: u8 = 2;

/// Finds the owners of sockets; looks through /proc only when there is a socket that it does not know.
pub struct OwnerFinder {
    processes: ProcessTable,
    owners: NumberMap<Owner>,
    tried: NumberMap<u8>,
    others_due: Instant,
    /// Processes whose files were not shown, and in which update first.
    denied: HashMap<Owner, u64>,
    updates: u64,
    unreadable: u64,
    blind: u64,
}

impl OwnerFinder {
    /// For the processes of this network namespace.
    #[must_use]
    pub fn new(netns: u64) -> Self {
        Self {
            processes: ProcessTable::new(netns),
            owners: NumberMap::default(),
            tried: NumberMap::default(),
            others_due: Instant::now(),
            denied: HashMap::new(),
            updates: 0,
            unreadable: 0,
            blind: 0,
        }
    }

    /// Brings the owners of `inodes` (all that exist now) up to date. With `thorough` all processes are looked through,
    /// even if that was done a moment ago.
    ///
    /// # Errors
    /// If /proc cannot be listed.
    pub fn update(&mut self, inodes: &NumberSet, thorough: bool) -> io::Result<()> {
        self.owners.retain(|inode, _| inodes.contains(inode));
        self.tried.retain(|inode, _| inodes.contains(inode));
        let mut unknown: NumberSet = self.unknown(inodes, thorough);
        if unknown.is_empty() {
            return Ok(());
        }
        self.processes.refresh()?;
        self.updates += 1;
        self.denied.retain(|owner, _| still_runs(*owner));
        self.unreadable = self.processes.hidden();
        self.walk(&mut unknown, ProcessInfo::is_hadoop);
        let began = Instant::now();
        if !unknown.is_empty() && (began >= self.others_due || thorough) {
            self.walk(&mut unknown, |process| !process.is_hadoop());
            self.others_due = Instant::now() + began.elapsed() * OTHERS_REST;
            self.blind = if unknown.is_empty() { 0 } else { self.unreadable };
            for inode in unknown {
                *self.tried.entry(inode).or_default() += 1;
            }
        }
        Ok(())
    }

    /// Takes over what somebody else found out: the process of each socket, by inode.
    ///
    /// # Errors
    /// If /proc cannot be listed.
    pub fn claim(&mut self, told: &HashMap<u64, u32>) -> io::Result<()> {
        if told.keys().all(|inode| self.owners.contains_key(inode)) {
            return Ok(());
        }
        self.processes.refresh()?;
        for (inode, pid) in told {
            if let Some(process) = self.processes.here().find(|process| process.owner.pid == *pid) {
                self.owners.insert(*inode, process.owner);
            }
        }
        Ok(())
    }

    /// What is known of a process, looked up now if it is new.
    pub fn look_at(&mut self, owner: Owner) -> Option<&ProcessInfo> {
        self.processes.find(owner)
    }

    /// Who has a socket open.
    #[must_use]
    pub fn owner(&self, inode: u64) -> Option<Owner> {
        self.owners.get(&inode).copied()
    }

    /// The processes to tell of: all of Hadoop's, and others that own a socket.
    pub fn processes(&self) -> impl Iterator<Item = &ProcessInfo> {
        let owning: HashSet<Owner> = self.owners.values().copied().collect();
        self.processes.here().filter(move |process| process.is_hadoop() || owning.contains(&process.owner))
    }

    /// Processes that could not be looked into the last time that a socket was found to be nobody's: it may be theirs.
    #[must_use]
    pub fn blind(&self) -> u64 {
        self.blind
    }

    fn unknown(&self, inodes: &NumberSet, thorough: bool) -> NumberSet {
        let hopeless = |inode: &u64| !thorough && self.tried.get(inode).is_some_and(|tries| *tries >= TRIES);
        inodes.iter().filter(|inode| !self.owners.contains_key(inode) && !hopeless(inode)).copied().collect()
    }

    /// Looks for unknown sockets among the open files of processes, until all are found.
    fn walk(&mut self, unknown: &mut NumberSet, of: impl Fn(&ProcessInfo) -> bool) {
        for process in self.processes.here().filter(|process| of(process)) {
            if unknown.is_empty() {
                return;
            }
            match open_sockets(process.owner.pid) {
                Ok(inodes) => {
                    for inode in inodes {
                        if unknown.remove(&inode) {
                            self.owners.insert(inode, process.owner);
                        }
                    }
                }
                // The kernel also denies a look into a process that is just ending: nothing is lost with that, so only
                // one that denies it twice counts.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && still_runs(process.owner) => {
                    let first = *self.denied.entry(process.owner).or_insert(self.updates);
                    self.unreadable += u64::from(first < self.updates);
                }
                // It has ended.
                Err(_) => {}
            }
        }
    }
}

/// Whether the process is there still, and not about to end.
fn still_runs(owner: Owner) -> bool {
    i32::try_from(owner.pid)
        .ok()
        .and_then(|pid| Process::new(pid).ok()?.stat().ok())
        .is_some_and(|stat| stat.starttime == owner.start_ticks && !is_ending(&stat))
}

/// Inodes of the sockets that a process has open.
fn open_sockets(pid: u32) -> io::Result<Vec<u64>> {
    let path = format!("/proc/{pid}/fd");
    let folder = File::open(&path)?;
    let mut sockets = Vec::new();
    for entry in fs::read_dir(&path)?.flatten() {
        // A file may be closed while we look.
        if let Ok(target) = readlinkat(&folder, entry.file_name().as_os_str()) {
            sockets.extend(target.to_str().and_then(socket_inode));
        }
    }
    Ok(sockets)
}

/// The inode in `socket:[INODE]`.
fn socket_inode(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}
