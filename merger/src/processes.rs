//! Processes of all hosts, each once.

use std::collections::BTreeMap;

use rayon::prelude::*;
use trace::ids::{HostId, ProcessId};
use trace::jvm::JvmRecord;
use trace::role::role_of_main_class;
use trace::rows::ProcessRow;
use trace::socket::{Owner, SocketRecord};

use crate::capture::{HostCapture, JvmFile};
use crate::records::{begin_of, end_of};

/// The name of a role that is not known, of a process that may be Hadoop's.
pub const UNKNOWN_ROLE: &str = "unknown";
/// The name of the role of all processes that are not Hadoop's.
pub const OTHER_ROLE: &str = "other";

/// Number of the host, pid, start in clock ticks.
type Key = (usize, u32, u64);

/// All processes, and how to find them.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    /// Rows, ordered by host, pid and start.
    pub rows: Vec<ProcessRow>,
    by_key: BTreeMap<Key, ProcessId>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    role: String,
    main: String,
    hadoop: Option<bool>,
    attempt: Option<String>,
    container: Option<String>,
    seen: Option<(u64, u64)>,
}

impl Known {
    fn seen_at(&mut self, t: u64) {
        if t > 0 {
            let (first, last) = self.seen.unwrap_or((t, t));
            self.seen = Some((first.min(t), last.max(t)));
        }
    }
}

impl Processes {
    /// Gathers the processes of hosts; `id_of` gives the row of each host.
    #[must_use]
    pub fn gather(hosts: &[HostCapture], id_of: impl Fn(usize) -> HostId) -> Self {
        let of_hosts = hosts.par_iter().enumerate().map(|(number, host)| of_host(number, host));
        let of_hosts: Vec<BTreeMap<Key, Known>> = of_hosts.collect();
        let mut processes = Self::default();
        for (key, known) in of_hosts.into_iter().flatten() {
            let process = ProcessId(u32::try_from(processes.rows.len()).unwrap_or(u32::MAX));
            processes.by_key.insert(key, process);
            processes.rows.push(row(process, id_of(key.0), key, known));
        }
        processes
    }

    /// A process of host number `host`.
    #[must_use]
    pub fn find(&self, host: usize, pid: u32, start_ticks: u64) -> Option<ProcessId> {
        self.by_key.get(&(host, pid, start_ticks)).copied()
    }

    /// The owner that a socket scan names.
    #[must_use]
    pub fn owner(&self, host: usize, owner: Option<Owner>) -> Option<ProcessId> {
        owner.and_then(|owner| self.find(host, owner.pid, owner.start_ticks))
    }
}

fn of_host(number: usize, host: &HostCapture) -> BTreeMap<Key, Known> {
    let mut known: BTreeMap<Key, Known> = BTreeMap::new();
    for jvm in &host.jvms {
        from_jvm(known.entry((number, jvm.pid, jvm.start_ticks)).or_default(), jvm);
    }
    for record in host.sockets.iter() {
        from_socket(&mut known, number, &record);
    }
    for named in &host.named {
        let mut keys: Vec<Key> =
            known.range((number, named.pid, 0)..=(number, named.pid, u64::MAX)).map(|(key, _)| *key).collect();
        if keys.is_empty() {
            keys.push((number, named.pid, 0));
        }
        for key in keys {
            let entry = known.entry(key).or_default();
            entry.role.clone_from(&named.role);
            entry.hadoop = Some(named.hadoop);
        }
    }
    known
}

fn from_jvm(known: &mut Known, jvm: &JvmFile) {
    // The agent is put into Hadoop's JVMs only.
    known.hadoop = Some(true);
    let set_apart = jvm.clocks.iter().copied().chain(jvm.threads.iter().map(|thread| thread.at_ns));
    set_apart.for_each(|t| known.seen_at(t));
    for record in jvm.records.iter() {
        known.seen_at(begin_of(&record));
        known.seen_at(end_of(&record));
        match &record {
            JvmRecord::Header { main, role, container, .. } => {
                known.main.clone_from(main);
                known.role.clone_from(role);
                known.container.clone_from(container);
            }
            JvmRecord::Attempt { attempt, container, .. } => {
                known.attempt.get_or_insert_with(|| attempt.clone());
                if known.container.is_none() {
                    known.container.clone_from(container);
                }
            }
            _ => {}
        }
    }
}

fn from_socket(known: &mut BTreeMap<(usize, u32, u64), Known>, host: usize, record: &SocketRecord) {
    match record {
        SocketRecord::Process { t, owner, main, role, .. } => {
            let entry = known.entry((host, owner.pid, owner.start_ticks)).or_default();
            entry.seen_at(*t);
            if entry.main.is_empty() {
                entry.main.clone_from(main);
            }
            if entry.role.is_empty() {
                entry.role.clone_from(role);
            }
            if !role.is_empty() && role != OTHER_ROLE {
                entry.hadoop.get_or_insert(true);
            }
        }
        SocketRecord::Listen { t, owner: Some(owner), .. } | SocketRecord::Socket { t, owner: Some(owner), .. } => {
            known.entry((host, owner.pid, owner.start_ticks)).or_default().seen_at(*t);
        }
        _ => {}
    }
}

fn row(process: ProcessId, host: HostId, (_, pid, start_ticks): (usize, u32, u64), known: Known) -> ProcessRow {
    let Known { mut role, main, hadoop, attempt, container, seen } = known;
    if role.is_empty()
        && let Some(of_class) = role_of_main_class(&main)
    {
        of_class.clone_into(&mut role);
    }
    // What is listed with a command's name only: a java can be Hadoop's, anything else cannot.
    let hadoop = hadoop.unwrap_or(main == "java" || (!role.is_empty() && role != OTHER_ROLE));
    if role.is_empty() {
        role = if hadoop { UNKNOWN_ROLE.to_owned() } else { OTHER_ROLE.to_owned() };
    }
    let (first_seen_ns, last_seen_ns) = seen.unwrap_or((0, 0));
    ProcessRow { process, host, pid, start_ticks, role, main, hadoop, attempt, container, first_seen_ns, last_seen_ns }
}
