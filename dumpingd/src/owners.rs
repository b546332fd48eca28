//! Which process has which socket open.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::time::{Duration, Instant};

use nix::fcntl::readlinkat;
use trace::socket::Owner;

use crate::numbers::{NumberMap, NumberSet};
use crate::processes::{ProcessInfo, ProcessTable, still_runs};

/// Looking through the processes that are not Hadoop's rests so many times as long as it took: their sockets only tell
/// what to leave out, and on a busy host there may be thousands of them.
const OTHERS_REST: u32 = 50;

/// All processes are looked at at least so often, so that those that have ended are forgotten.
const REFRESH_EVERY: Duration = Duration::from_secs(60);

/// How often a socket is looked for among all processes before it counts as nobody's: its owner may be in the middle
/// of handing it over.
const TRIES: u8 = 2;

/// Finds the owners of sockets; looks through /proc only when there is a socket that it does not know.
pub struct OwnerFinder {
    processes: ProcessTable,
    owners: NumberMap<Owner>,
    tried: NumberMap<u8>,
    others_due: Instant,
    refreshed: Instant,
    open_files: HashMap<Owner, OpenFiles>,
    /// Processes that did not let us look, of those that were looked at last.
    denied: HashSet<Owner>,
    hidden_owners: u64,
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
            refreshed: Instant::now(),
            open_files: HashMap::new(),
            denied: HashSet::new(),
            hidden_owners: 0,
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
        self.denied.clear();
        // Most of what is new has a process of Hadoop's that is known already; then nobody else need be looked at.
        self.processes.refresh_known(ProcessInfo::is_hadoop);
        let looked_at: HashSet<Owner> =
            self.processes.here().filter(|process| process.is_hadoop()).map(|process| process.owner).collect();
        self.walk(&mut unknown, inodes, ProcessInfo::is_hadoop, Look::Again);
        if unknown.is_empty() && !thorough && self.refreshed.elapsed() < REFRESH_EVERY {
            return Ok(());
        }
        self.processes.refresh()?;
        self.refreshed = Instant::now();
        let alive: HashSet<Owner> = self.processes.here().map(|process| process.owner).collect();
        self.open_files.retain(|owner, _| alive.contains(owner));
        let is_new = |process: &ProcessInfo| process.is_hadoop() && !looked_at.contains(&process.owner);
        self.walk(&mut unknown, inodes, is_new, Look::Again);
        let began = Instant::now();
        if !unknown.is_empty() && (began >= self.others_due || thorough) {
            self.walk(&mut unknown, inodes, |process| !process.is_hadoop(), Look::Again);
            self.walk(&mut unknown, inodes, ProcessInfo::is_hadoop, Look::Anew);
            self.walk(&mut unknown, inodes, |process| !process.is_hadoop(), Look::Anew);
            self.others_due = Instant::now() + began.elapsed() * OTHERS_REST;
            self.hidden_owners =
                if unknown.is_empty() { 0 } else { self.processes.hidden() + self.denied.len() as u64 };
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
    pub fn claim(&mut self, listed: &HashMap<u64, u32>) -> io::Result<()> {
        if listed.keys().all(|inode| self.owners.contains_key(inode)) {
            return Ok(());
        }
        self.processes.refresh()?;
        for (inode, pid) in listed {
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
    pub fn hidden_owners(&self) -> u64 {
        self.hidden_owners
    }

    fn unknown(&self, inodes: &NumberSet, thorough: bool) -> NumberSet {
        let hopeless = |inode: &u64| !thorough && self.tried.get(inode).is_some_and(|tries| *tries >= TRIES);
        inodes.iter().filter(|inode| !self.owners.contains_key(inode) && !hopeless(inode)).copied().collect()
    }

    /// Looks for unknown sockets among the open files of processes, until all are found.
    fn walk(&mut self, unknown: &mut NumberSet, alive: &NumberSet, of: impl Fn(&ProcessInfo) -> bool, look: Look) {
        for process in self.processes.here().filter(|process| of(process)) {
            if unknown.is_empty() {
                return;
            }
            let owner = process.owner;
            let files = self.open_files.entry(owner).or_default();
            let looked = if look == Look::Again && !files.sockets.is_empty() {
                files.look_again(owner.pid, alive)
            } else {
                files.look(owner.pid)
            };
            match looked {
                Ok(()) => {
                    for inode in &files.sockets {
                        if unknown.remove(inode) {
                            self.owners.insert(*inode, owner);
                        }
                    }
                }
                // The kernel also denies a look into a process that is just ending: nothing is lost with that.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && still_runs(owner) => {
                    self.denied.insert(owner);
                }
                // It has ended.
                Err(_) => {}
            }
        }
    }
}

/// How open files are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Only where something may have changed since the last time.
    Again,
    /// All of them.
    Anew,
}

/// Open files that are remembered of a process at most: those with the lowest numbers.
const REMEMBERED: usize = 65_536;
/// A file gets the lowest number that is free. Behind the last one that is known, looking ends after so many free ones.
const FREE_IN_A_ROW: usize = 32;

/// Instead of an inode.
const NO_SOCKET: u64 = 0;

/// The sockets among the open files of a process, by the file's number.
#[derive(Debug, Default)]
struct OpenFiles {
    sockets: Vec<u64>,
}

impl OpenFiles {
    /// Looks at all open files.
    fn look(&mut self, pid: u32) -> io::Result<()> {
        let path = format!("/proc/{pid}/fd");
        let folder = File::open(&path)?;
        self.sockets.clear();
        let mut beyond = Vec::new();
        for entry in fs::read_dir(&path)?.flatten() {
            let name = entry.file_name();
            let Some(inode) = socket_behind(&folder, &name).filter(|inode| *inode != NO_SOCKET) else { continue };
            match name.to_str().and_then(|number| number.parse::<usize>().ok()) {
                Some(number) if number < REMEMBERED => {
                    if self.sockets.len() <= number {
                        self.sockets.resize(number + 1, NO_SOCKET);
                    }
                    self.sockets[number] = inode;
                }
                _ => beyond.push(inode),
            }
        }
        // These are looked at again from the beginning the next time, as their numbers are not those at which they stand.
        self.sockets.extend(beyond);
        Ok(())
    }

    /// Looks at those that have no socket that is still there. One may have got another file instead while its socket lives
    /// on elsewhere: that is seen by [`OpenFiles::look`] only.
    fn look_again(&mut self, pid: u32, alive: &NumberSet) -> io::Result<()> {
        let folder = File::open(format!("/proc/{pid}/fd"))?;
        self.sockets.truncate(REMEMBERED);
        let mut free = 0;
        let mut number = 0;
        while number < REMEMBERED && (number < self.sockets.len() || free < FREE_IN_A_ROW) {
            let known = self.sockets.get(number).copied().unwrap_or(NO_SOCKET);
            if known != NO_SOCKET && alive.contains(&known) {
                free = 0;
            } else {
                let found = socket_behind(&folder, OsStr::new(&number.to_string()));
                free = if found.is_none() { free + 1 } else { 0 };
                let found = found.unwrap_or(NO_SOCKET);
                if number < self.sockets.len() {
                    self.sockets[number] = found;
                } else {
                    self.sockets.push(found);
                }
            }
            number += 1;
        }
        // The free ones at the end need not be looked at the next time.
        while self.sockets.last() == Some(&NO_SOCKET) {
            self.sockets.pop();
        }
        Ok(())
    }
}

/// The inode of the socket behind a number, [`NO_SOCKET`] for another file; `None` = the number is free.
fn socket_behind(folder: &File, number: &OsStr) -> Option<u64> {
    Some(readlinkat(folder, number).ok()?.to_str().and_then(socket_inode).unwrap_or(NO_SOCKET))
}

/// The inode in `socket:[INODE]`.
fn socket_inode(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}
