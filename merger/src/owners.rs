//! Whose the two ends of each connection are, and what else is known of each: the JVMs' records and the kernel's counters.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use rayon::prelude::*;
use trace::ids::ProcessId;
use trace::jvm::JvmRecord;
use trace::rows::OwnerEvidence;
use trace::socket::SocketRecord;

use crate::capture::HostCapture;
use crate::join::{AddressBook, ObservedConnection};
use crate::joined::JvmEvent;
use crate::jvm_events::JvmEvents;
use crate::kernel::Counted;
use crate::maps::HashMap;
use crate::processes::Processes;
use crate::records::{begin_of, end_of, ends_of};
use crate::varint::{MAX_BYTES, get, put};

/// A record may be this much earlier or later than all packets of the connection that it is about: scans come once a
/// second, and records are stamped on other threads than packets.
const SLACK_NS: u64 = 5_000_000_000;

/// What is known of one end of a connection, apart from its packets.
#[derive(Clone, Debug, Default)]
pub struct End {
    /// Its process.
    pub process: Option<ProcessId>,
    /// How that is known.
    pub evidence: Option<OwnerEvidence>,
    /// What the kernel counted.
    pub counted: Counted,
}

/// What is known of a connection, apart from its packets.
#[derive(Clone, Debug, Default)]
pub struct Attribution {
    /// The client's end, the server's end.
    pub ends: [End; 2],
    /// Records of JVMs at either end.
    pub records: NamedBy,
}

/// Records that name a connection, while they are gathered.
type Naming = Vec<(u32, bool)>;

/// Records of JVMs that name a connection: number in the list of JVM events, and whether it is the client's JVM. In order, packed.
#[derive(Clone, Debug, Default)]
pub struct NamedBy(Box<[u8]>);

impl NamedBy {
    fn of(mut records: Naming) -> Self {
        records.sort_unstable();
        let (mut packed, mut last) = (Vec::with_capacity(2 * records.len()), 0);
        for (number, at_client) in records {
            let mut bytes = [0; MAX_BYTES];
            let length = put(&mut bytes, u64::from(number - last) << 1 | u64::from(at_client));
            packed.extend_from_slice(&bytes[..length]);
            last = number;
        }
        Self(packed.into())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (usize, bool)> {
        let (mut rest, mut last) = (&self.0[..], 0);
        std::iter::from_fn(move || {
            let next = get(&mut rest)?;
            last += (next >> 1) as usize;
            Some((last, next & 1 != 0))
        })
    }
}

/// Connections by one end: host, address there, address of the other end.
struct Index<'a> {
    links: &'a [ObservedConnection],
    by_end: HashMap<(usize, SocketAddr, SocketAddr), Vec<(usize, bool)>>,
}

impl<'a> Index<'a> {
    fn new(links: &'a [ObservedConnection], book: &AddressBook) -> Self {
        let mut by_end: HashMap<_, Vec<_>> = HashMap::default();
        for (number, link) in links.iter().enumerate() {
            for (at_client, local, remote) in [(true, link.client, link.server), (false, link.server, link.client)] {
                if let Some(host) = book.host_of(local.ip(), link.host) {
                    by_end.entry((host, local, remote)).or_default().push((number, at_client));
                }
            }
        }
        Self { links, by_end }
    }

    /// The connection whose packets are nearest to a span of time.
    fn find(&self, host: usize, local: SocketAddr, remote: SocketAddr, from: u64, to: u64) -> Option<(usize, bool)> {
        let candidates = self.by_end.get(&(host, local, remote))?;
        candidates
            .iter()
            .map(|&(link, at_client)| (self.distance(link, from, to), link, at_client))
            .filter(|(distance, ..)| *distance <= SLACK_NS)
            .min()
            .map(|(_, link, at_client)| (link, at_client))
    }

    fn distance(&self, link: usize, from: u64, to: u64) -> u64 {
        let link = &self.links[link];
        if to < link.first_ns { link.first_ns - to } else { from.saturating_sub(link.last_ns) }
    }
}

/// A listening socket: since when, on which address, whose.
type Listener = (u64, SocketAddr, ProcessId);

/// Listening sockets by host and port.
#[derive(Clone, Debug, Default)]
pub struct Listeners {
    by_port: HashMap<(usize, u16), Vec<Listener>>,
}

impl Listeners {
    /// Gathers what scans and JVMs say.
    #[must_use]
    pub fn gather(hosts: &[HostCapture], processes: &Processes) -> Self {
        let mut listeners = Self::default();
        let mut add = |host: usize, t: u64, local: SocketAddr, process: Option<ProcessId>| {
            if let Some(process) = process {
                listeners.by_port.entry((host, local.port())).or_default().push((t, local, process));
            }
        };
        for (number, host) in hosts.iter().enumerate() {
            for record in host.sockets.iter() {
                if let SocketRecord::Listen { t, netns, local, owner, .. } = record
                    && is_here(host, netns)
                {
                    add(number, t, crate::capture::flows::canonical(local), processes.owner(number, owner));
                }
            }
        }
        let jvms = hosts.iter().enumerate().flat_map(|(number, host)| host.jvms.iter().map(move |jvm| (number, jvm)));
        let of_jvms = jvms.collect::<Vec<_>>().into_par_iter().map(|(number, jvm)| {
            let process = processes.find(number, jvm.pid, jvm.start_ticks);
            let of_records = jvm.records.iter().filter_map(|record| {
                let (t, local) = listens_at(&record)?;
                Some((number, t, local, process))
            });
            of_records.collect::<Vec<_>>()
        });
        for (number, t, local, process) in of_jvms.collect::<Vec<_>>().concat() {
            add(number, t, local, process);
        }
        for entries in listeners.by_port.values_mut() {
            entries.sort();
            entries.dedup_by_key(|entry| (entry.1, entry.2));
            entries.shrink_to_fit();
        }
        listeners
    }

    /// Whether somebody listens there at some time.
    #[must_use]
    pub fn listens(&self, host: usize, address: SocketAddr) -> bool {
        self.owner(host, address, u64::MAX).is_some()
    }

    /// Who listened there at a time: the last one known by then, or else the first one after.
    #[must_use]
    pub fn owner(&self, host: usize, address: SocketAddr, t: u64) -> Option<ProcessId> {
        let entries = self.by_port.get(&(host, address.port()))?;
        let mut fitting = entries.iter().filter(|(_, on, _)| on.ip().is_unspecified() || on.ip() == address.ip());
        let first = fitting.clone().next()?;
        Some(fitting.rfind(|(since, ..)| *since <= t).unwrap_or(first).2)
    }
}

/// When a JVM listened, and where, if a record says so.
fn listens_at(record: &JvmRecord) -> Option<(u64, SocketAddr)> {
    match record {
        JvmRecord::Listen { t, local, .. } => Some((*t, crate::records::address(local)?)),
        JvmRecord::Accept { t, .. } => Some((*t, ends_of(record)?.0?)),
        _ => None,
    }
}

/// Whether a record of a socket is about the network namespace whose packets were recorded.
fn is_here(host: &HostCapture, netns: u64) -> bool {
    netns == 0 || host.netns == 0 || netns == host.netns
}

/// Strength of evidence, the surest first.
fn rank(evidence: OwnerEvidence) -> u8 {
    match evidence {
        OwnerEvidence::Jvm => 0,
        OwnerEvidence::Scan => 1,
        OwnerEvidence::Listener => 2,
        OwnerEvidence::Manifest => 3,
        OwnerEvidence::Inferred => 4,
        OwnerEvidence::Unknown => 5,
    }
}

/// What a record of a JVM, by its number, says of connections.
enum Mention {
    /// It names this one.
    Connection {
        number: usize,
        link: usize,
        at_client: bool,
        evidence: OwnerEvidence,
        distance: u64,
        process: ProcessId,
    },
    /// It names its other end only.
    Call(usize),
    /// It names none.
    Fetch(usize),
}

/// What is known of connections, and who claimed what is not his.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Of each connection.
    pub attribution: Vec<Attribution>,
    /// Ends of connections that a JVM takes for its own, while the kernel says that they are another process's.
    pub contradicted: BTreeMap<ProcessId, u64>,
}

/// Finds out about each connection. `jvm` are the records of all JVMs on the reference clock; `host_of` gives the host
/// (by number) of a process.
#[must_use]
pub fn investigate(
    links: &[ObservedConnection],
    hosts: &[HostCapture],
    book: &AddressBook,
    processes: &Processes,
    listeners: &Listeners,
    jvm: &JvmEvents,
) -> Findings {
    let index = Index::new(links, book);
    let mut attribution: Vec<Attribution> = vec![Attribution::default(); links.len()];
    let mut records: Vec<Naming> = vec![Naming::new(); links.len()];
    // Of each end: claims by strength, then by how near they are in time.
    let mut claims: BTreeMap<(usize, bool), (u8, u64, ProcessId, OwnerEvidence)> = BTreeMap::new();
    let mut claim = |link: usize, at_client: bool, evidence: OwnerEvidence, distance: u64, process: ProcessId| {
        let new = (rank(evidence), distance, process, evidence);
        let entry = claims.entry((link, at_client)).or_insert(new);
        if (new.0, new.1, new.2) < (entry.0, entry.1, entry.2) {
            *entry = new;
        }
    };
    // Records that do not name the connection.
    let (mut calls, mut fetches) = (Vec::new(), Vec::new());
    let mention_of = |number: usize, host: usize, event: JvmEvent| match ends_of(&event.record) {
        Some((Some(local), remote)) => {
            let (from, to) = (begin_of(&event.record), end_of(&event.record));
            let (link, at_client) = index.find(host, local, remote, from, to)?;
            let itself = matches!(event.record, JvmRecord::Open { .. } | JvmRecord::Accept { .. });
            let evidence = if itself { OwnerEvidence::Jvm } else { OwnerEvidence::Inferred };
            let distance = index.distance(link, from, to);
            Some(Mention::Connection { number, link, at_client, evidence, distance, process: event.process })
        }
        Some((None, _)) => Some(Mention::Call(number)),
        None => matches!(event.record, JvmRecord::Fetch { .. }).then_some(Mention::Fetch(number)),
    };
    jvm.look(mention_of, |mention| match mention {
        Some(Mention::Connection { number, link, at_client, evidence, distance, process }) => {
            claim(link, at_client, evidence, distance, process);
            records[link].push((in_32_bits(number), at_client));
        }
        Some(Mention::Call(number)) => calls.push(number),
        Some(Mention::Fetch(number)) => fetches.push(number),
        None => {}
    });
    // Whose each end was while it lived, as the kernel said.
    let mut seen: BTreeMap<(usize, bool), Vec<ProcessId>> = BTreeMap::new();
    for (number, host) in hosts.iter().enumerate() {
        for record in host.sockets.iter() {
            let (t, netns, local, remote, owner, tcp, died) = match record {
                SocketRecord::Socket { t, netns, local, remote, owner, tcp, .. } => {
                    (t, netns, local, remote, owner, tcp, false)
                }
                SocketRecord::Died { t, netns, local, remote, tcp } => (t, netns, local, remote, None, tcp, true),
                _ => continue,
            };
            if !is_here(host, netns) {
                continue;
            }
            let (local, remote) = (crate::capture::flows::canonical(local), crate::capture::flows::canonical(remote));
            let Some((link, at_client)) = index.find(number, local, remote, t, t) else { continue };
            if let Some(process) = processes.owner(number, owner) {
                let distance = index.distance(link, t, t);
                claim(link, at_client, OwnerEvidence::Scan, distance, process);
                if distance == 0 {
                    let owners = seen.entry((link, at_client)).or_default();
                    if !owners.contains(&process) {
                        owners.push(process);
                    }
                }
            }
            if let Some(tcp) = tcp.filter(|_| says_what_was_recorded(&links[link], hosts, book, t, died)) {
                attribution[link].ends[usize::from(!at_client)].counted.add(t, died, &tcp);
            }
        }
    }
    for (number, link) in links.iter().enumerate() {
        if let Some(host) = book.host_of(link.server.ip(), link.host)
            && let Some(process) = listeners.owner(host, link.server, link.last_ns)
        {
            claim(number, false, OwnerEvidence::Listener, 0, process);
        }
    }
    let mut contradicted: BTreeMap<ProcessId, u64> = BTreeMap::new();
    for ((link, at_client), (_, _, process, evidence)) in claims {
        let (process, evidence) = match seen.get(&(link, at_client)) {
            // Anybody can write a JVM's file; what the kernel said of a socket while it lived stands above that.
            Some(owners) if evidence == OwnerEvidence::Jvm && !owners.contains(&process) => {
                *contradicted.entry(process).or_default() += 1;
                records[link].retain(|&(number, of_client)| {
                    of_client != at_client
                        || jvm.process(number as usize).is_some_and(|process| owners.contains(&process))
                });
                (owners[0], OwnerEvidence::Scan)
            }
            _ => (process, evidence),
        };
        let end = &mut attribution[link].ends[usize::from(!at_client)];
        end.process = Some(process);
        end.evidence = Some(if named_by_hand(hosts, processes, process) { OwnerEvidence::Manifest } else { evidence });
    }
    attach_calls((&attribution, &mut records), links, book, (jvm, &calls));
    attach_fetches((&attribution, &mut records), links, hosts, book, (jvm, &fetches));
    for (attribution, records) in attribution.iter_mut().zip(records) {
        attribution.records = NamedBy::of(records);
    }
    Findings { attribution, contradicted }
}

/// The number of a record: a capture of four billion of them fits on no disk of a host.
fn in_32_bits(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Whether the kernel's count of this time can be compared: while nobody recorded packets, it grew all the same. A socket
/// that was seen to close had sent all before.
fn says_what_was_recorded(
    link: &ObservedConnection,
    hosts: &[HostCapture],
    book: &AddressBook,
    t: u64,
    died: bool,
) -> bool {
    let ends = [link.client, link.server].map(|address| book.host_of(address.ip(), link.host));
    let recorded: Vec<(u64, u64)> = ends.iter().flatten().filter_map(|host| hosts[*host].recorded_ns).collect();
    let from = recorded.iter().map(|(from, _)| *from).min().unwrap_or(0);
    let to = recorded.iter().map(|(_, to)| *to).max().unwrap_or(u64::MAX);
    (from..=to).contains(&t) || (died && link.end_seen)
}

/// Whether the role of a process is known from a person's manifest only.
fn named_by_hand(hosts: &[HostCapture], processes: &Processes, process: ProcessId) -> bool {
    let row = &processes.rows[process.index()];
    row.start_ticks == 0 && hosts.iter().any(|host| host.named.iter().any(|named| named.pid == row.pid))
}

/// A call whose JVM did not know its own side belongs to the connection of that process to the server that was open
/// then; of several, to the one that was opened last.
fn attach_calls(
    (attribution, records): (&[Attribution], &mut [Naming]),
    links: &[ObservedConnection],
    book: &AddressBook,
    (jvm, calls): (&JvmEvents, &[usize]),
) {
    let mut by_client: HashMap<(ProcessId, SocketAddr), Vec<usize>> = HashMap::default();
    for (number, link) in links.iter().enumerate() {
        if let Some(process) = attribution[number].ends[0].process {
            by_client.entry((process, link.server)).or_default().push(number);
        }
    }
    for &number in calls {
        let Some((host, event)) = jvm.get(number) else { continue };
        let Some((None, remote)) = ends_of(&event.record) else { continue };
        let (from, to) = (begin_of(&event.record), end_of(&event.record));
        let open = by_client.get(&(event.process, remote)).into_iter().flatten().rev().find(|&&link| {
            let at = &links[link];
            at.first_ns <= to && at.last_ns + SLACK_NS >= from && book.host_of(at.client.ip(), at.host) == Some(host)
        });
        if let Some(&link) = open {
            records[link].push((in_32_bits(number), true));
        }
    }
}

/// A fetch of a map's output belongs to the connection of that process to that host and port over which it went: a
/// reduce has one of each host at a time.
fn attach_fetches(
    (attribution, records): (&[Attribution], &mut [Naming]),
    links: &[ObservedConnection],
    hosts: &[HostCapture],
    book: &AddressBook,
    (jvm, fetches): (&JvmEvents, &[usize]),
) {
    let mut by_client: HashMap<(ProcessId, u16), Vec<usize>> = HashMap::default();
    for (number, link) in links.iter().enumerate() {
        if let Some(process) = attribution[number].ends[0].process {
            by_client.entry((process, link.server.port())).or_default().push(number);
        }
    }
    for &number in fetches {
        let Some(JvmEvent { process, record: JvmRecord::Fetch { t0, host, .. } }) =
            jvm.get(number).map(|(_, event)| event)
        else {
            continue;
        };
        let Some((name, port)) = host.rsplit_once(':') else { continue };
        let Ok(port) = port.parse::<u16>() else { continue };
        let short = name.split('.').next().unwrap_or(name);
        let is_there = |link: &ObservedConnection| {
            let server = book.host_of(link.server.ip(), link.host).map(|host| hosts[host].name.as_str());
            server.is_some_and(|server| server == name || server == short) || link.server.ip().to_string() == name
        };
        let open = by_client.get(&(process, port)).into_iter().flatten().rev().find(|&&link| {
            let link = &links[link];
            link.first_ns <= t0 && t0 <= link.last_ns && is_there(link)
        });
        if let Some(&link) = open {
            records[link].push((in_32_bits(number), true));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_that_name_a_connection_come_in_order(records in prop::collection::vec(any::<(u32, bool)>(), 0..30)) {
            let mut sorted: Vec<(usize, bool)> = records.iter().map(|(number, at)| (*number as usize, *at)).collect();
            sorted.sort_unstable();
            prop_assert_eq!(NamedBy::of(records).iter().collect::<Vec<_>>(), sorted);
        }
    }
}
