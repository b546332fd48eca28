//! One network namespace: its sockets, who has them, and what changed.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::thread;

use nix::sched::{CloneFlags, setns};
use trace::ports::HadoopPorts;
use trace::role::role_of_main_class;
use trace::socket::{Owner, SocketRecord};

use crate::changes::Changes;
use crate::destroy_events::{RECEIVE_BUFFER_BYTES, SocketDestroyEvents};
use crate::diag::{Lister, Listing};
use crate::numbers::NumberSet;
use crate::owners::OwnerFinder;
use crate::processes::command_line;
use crate::{lsof, main_class, ports_file, proc_net};

/// Other network namespaces that are scanned at once at most.
pub const MAX_NAMESPACES: usize = 512;
/// Room for news of dying sockets of each of these, bytes: there may be many.
const BUFFER_OF_OTHERS_BYTES: usize = 2 << 20;

/// Where sockets are read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceKind {
    /// sock_diag: with the kernel's counters.
    #[default]
    Netlink,
    /// `/proc/net/tcp`.
    Proc,
    /// The program `lsof`.
    Lsof,
}

impl SourceKind {
    /// As it is written on the command line and in the manifest.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Netlink => "netlink",
            Self::Proc => "proc",
            Self::Lsof => "lsof",
        }
    }
}

enum Source {
    Netlink(Lister),
    Proc(String),
    Lsof,
}

/// A network namespace that is scanned.
pub struct NetworkNamespace {
    /// Its inode.
    pub netns: u64,
    source: Source,
    /// Who tells of its dying sockets.
    pub destroy_events: Option<SocketDestroyEvents>,
    owners: OwnerFinder,
    changes: Changes,
}

/// What a scan found.
#[derive(Debug, Default)]
pub struct Scan {
    /// What changed, as records.
    pub records: Vec<SocketRecord>,
    /// Sockets seen.
    pub sockets: u64,
    /// Messages or lines that could not be understood.
    pub malformed: u64,
    /// Processes that could not be looked into though a socket may be theirs.
    pub hidden_owners: u64,
    /// Whether the kernel is too old to count sent bytes.
    pub lacks_bytes_sent: bool,
    /// What belongs to Hadoop.
    pub hadoops: HadoopPorts,
}

impl NetworkNamespace {
    /// Files that are open for each.
    pub const OPEN_FILES: u64 = 2;

    /// The namespace in which this process runs. Second value: remarks.
    ///
    /// # Errors
    /// If its sockets cannot be listed.
    pub fn own(netns: u64, kind: SourceKind) -> io::Result<(Self, Vec<String>)> {
        let mut remarks = Vec::new();
        let source = match kind {
            SourceKind::Netlink => Source::Netlink(Lister::open()?),
            SourceKind::Proc => Source::Proc("self".to_owned()),
            SourceKind::Lsof => Source::Lsof,
        };
        // The fall-backs are for where netlink is not to be used.
        let destroy_events =
            if kind == SourceKind::Netlink { subscribe(RECEIVE_BUFFER_BYTES, &mut remarks) } else { None };
        Ok((Self::with(netns, source, destroy_events), remarks))
    }

    /// That of process `pid`. The sockets through which it is asked are opened by a thread that moves there.
    ///
    /// # Errors
    /// If it cannot be entered (CAP_SYS_ADMIN), or the process has ended.
    pub fn of_process(netns: u64, pid: u32, kind: SourceKind) -> io::Result<(Self, Vec<String>)> {
        if kind != SourceKind::Netlink {
            return Ok((Self::with(netns, Source::Proc(pid.to_string()), None), Vec::new()));
        }
        let file = File::open(format!("/proc/{pid}/ns/net"))?;
        if file.metadata()?.ino() != netns {
            return Err(io::Error::other(format!("process {pid} is in another network namespace now")));
        }
        let inside = thread::spawn(move || -> io::Result<(Lister, Option<SocketDestroyEvents>, Vec<String>)> {
            setns(file, CloneFlags::CLONE_NEWNET)?;
            let mut remarks = Vec::new();
            Ok((Lister::open()?, subscribe(BUFFER_OF_OTHERS_BYTES, &mut remarks), remarks))
        });
        let (lister, destroy_events, remarks) =
            inside.join().map_err(|_| io::Error::other("the thread that entered it ended in a panic"))??;
        Ok((Self::with(netns, Source::Netlink(lister), destroy_events), remarks))
    }

    fn with(netns: u64, source: Source, destroy_events: Option<SocketDestroyEvents>) -> Self {
        Self { netns, source, destroy_events, owners: OwnerFinder::new(netns), changes: Changes::new(netns) }
    }

    /// Lists all sockets, finds their owners, says what changed.
    ///
    /// # Errors
    /// If the sockets or processes cannot be listed.
    pub fn scan(&mut self, t: u64, thorough: bool) -> io::Result<Scan> {
        let (listing, listed) = self.list()?;
        let mut inodes = NumberSet::with_capacity_and_hasher(listing.sockets.len(), Default::default());
        inodes.extend(listing.sockets.iter().map(|s| s.inode).filter(|inode| *inode != 0));
        self.owners.claim(&listed)?;
        self.owners.update(&inodes, thorough)?;
        let mut records = self.changes.processes(t, self.owners.processes());
        records.extend(self.changes.sockets(t, &listing.sockets, |inode| self.owners.owner(inode)));
        let owner_of = |inode| self.owners.owner(inode);
        Ok(Scan {
            records,
            sockets: listing.sockets.len() as u64,
            malformed: listing.malformed,
            hidden_owners: self.owners.hidden_owners(),
            lacks_bytes_sent: listing.sockets.iter().any(|socket| socket.lacks_bytes_sent),
            hadoops: ports_file::hadoops(&listing.sockets, owner_of, self.owners.processes()),
        })
    }

    fn list(&mut self) -> io::Result<(Listing, HashMap<u64, u32>)> {
        match &mut self.source {
            Source::Netlink(lister) => Ok((lister.list()?, HashMap::new())),
            Source::Proc(pid) => Ok((proc_net::list(pid)?, HashMap::new())),
            Source::Lsof => lsof::list(),
        }
    }

    /// From the next scan on all is told again.
    pub fn tell_all_again(&mut self) {
        self.changes.tell_all_again();
    }

    /// A record of a process that has just been heard of, if it was not told of before, and its role where it is one of
    /// Hadoop's.
    pub fn introduce(&mut self, t: u64, owner: Owner) -> (Option<SocketRecord>, Option<&'static str>) {
        let Some(process) = self.owners.look_at(owner) else { return (None, None) };
        (self.changes.process(t, process), process.is_hadoop().then_some(process.role))
    }
}

fn subscribe(buffer_bytes: usize, remarks: &mut Vec<String>) -> Option<SocketDestroyEvents> {
    match SocketDestroyEvents::subscribe(buffer_bytes) {
        Ok((destroy_events, remark)) => {
            remarks.extend(remark);
            Some(destroy_events)
        }
        Err(error) => {
            remarks.push(format!(
                "the kernel does not tell of dying sockets ({error}): counters of connections that end between two \
                 scans are missing"
            ));
            None
        }
    }
}

/// Remembers which processes are Hadoop's, to find the namespaces in which they are.
#[derive(Debug)]
pub struct Finder {
    judged: HashMap<(u32, u64), bool>,
    max_namespaces: usize,
}

/// Network namespaces of Hadoop's processes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// By inode, each with one of its processes.
    pub namespaces: BTreeMap<u64, u32>,
    /// How many more there are than are scanned at once.
    pub left_out: u64,
}

impl Finder {
    /// Finds so many at most.
    #[must_use]
    pub fn new(max_namespaces: usize) -> Self {
        Self { judged: HashMap::new(), max_namespaces }
    }

    /// The network namespaces of Hadoop's processes, without `own`. Where there are too many, those that are `open` already
    /// come first, and no user has more than half: whoever may make namespaces can make them look like Hadoop's.
    ///
    /// # Errors
    /// If /proc cannot be listed.
    pub fn look(&mut self, own: u64, open: &[u64]) -> io::Result<Found> {
        let mut candidates: BTreeMap<u64, (u32, u32)> = BTreeMap::new();
        let mut judged = HashMap::new();
        for process in procfs::process::all_processes().map_err(io::Error::other)?.flatten() {
            let pid = u32::try_from(process.pid).unwrap_or(0);
            let Ok(about) = fs::metadata(format!("/proc/{pid}/ns/net")) else { continue };
            if about.ino() == own {
                continue;
            }
            let Ok(stat) = process.stat() else { continue };
            let key = (pid, stat.starttime);
            let is_hadoop = self.judged.get(&key).copied().unwrap_or_else(|| {
                let main = command_line(pid).ok().and_then(|line| main_class::of_command_line(&line));
                main.is_some_and(|main| role_of_main_class(&main).is_some())
            });
            // Before a JVM's exec it is something else: only what is Hadoop's is remembered for good.
            if is_hadoop && let Ok(uid) = process.uid() {
                judged.insert(key, true);
                candidates.insert(about.ino(), (pid, uid));
            }
        }
        self.judged = judged;
        Ok(choose(candidates, open, self.max_namespaces))
    }
}

/// Of candidates (inode; process and its user) at most `max`.
fn choose(candidates: BTreeMap<u64, (u32, u32)>, open: &[u64], max: usize) -> Found {
    let mut found = Found::default();
    let mut of_user: HashMap<u32, usize> = HashMap::new();
    let (known, new): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|(netns, _)| open.contains(netns));
    for (netns, (pid, uid)) in known.into_iter().chain(new) {
        let of_user = of_user.entry(uid).or_default();
        if found.namespaces.len() < max && *of_user < max.div_ceil(2) {
            *of_user += 1;
            found.namespaces.insert(netns, pid);
        } else {
            found.left_out += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_namespaces_of_one_user_leave_room_for_those_of_others() {
        let of = |range: std::ops::Range<u64>, uid| range.map(move |netns| (netns, (7, uid)));
        let many: BTreeMap<_, _> = of(0..560, 1000).chain(of(1000..1010, 2000)).collect();
        let found = choose(many.clone(), &[559], 100);
        assert_eq!((found.namespaces.len(), found.left_out), (60, 510));
        assert!((1000..1010).all(|netns| found.namespaces.contains_key(&netns)));
        assert!(found.namespaces.contains_key(&559), "one that is open was given up");
        assert_eq!(
            choose(many, &[], 2000),
            Found {
                namespaces: of(0..560, 0).chain(of(1000..1010, 0)).map(|(netns, (pid, _))| (netns, pid)).collect(),
                left_out: 0
            }
        );
    }
}
