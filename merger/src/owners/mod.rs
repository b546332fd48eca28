//! Whose the two ends of each connection are, and what else is known of each: the JVMs' records and the kernel's counters.

mod ends;
mod listeners;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use trace::ids::ProcessId;
use trace::jvm::JvmRecord;
use trace::rows::OwnerEvidence;
use trace::socket::{SocketRecord, TcpCounters};

use crate::capture::HostCapture;
use crate::chains::Chains;
use crate::framing::{FetchSorter, FetchedSize, Fetches};
use crate::join::{AddressBook, ObservedConnection};
use crate::joined::JvmEvent;
use crate::jvm_events::JvmEvents;
use crate::kernel::Counts;
use crate::maps::HashSet;
use crate::processes::Processes;
use crate::records::{begin_of, end_of, ends_of};
use crate::spilled::{RecordLog, Sorter};
use crate::varint::{MAX_BYTES, get, put};
use ends::{Claim, Index, SLACK_NS, ScannedOwners};
pub use listeners::Listeners;
use listeners::is_here;

/// Memory that the numbers of records take that do not name their connection, by kind, bytes.
const MAX_UNNAMED_BYTES: usize = 256 << 10;

/// Scans of a host that are taken one behind the other.
const TAKEN_AT_ONCE: usize = 1 << 10;

/// What is known of one end of a connection, apart from its packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct End {
    /// Its process.
    pub process: Option<ProcessId>,
    /// How that is known.
    pub evidence: Option<OwnerEvidence>,
}

/// What is known of a connection, apart from its packets.
#[derive(Clone, Debug, Default)]
pub struct Attribution {
    /// The client's end, the server's end.
    pub ends: [End; 2],
    /// Records of JVMs at either end.
    pub records: NamedBy,
}

/// A record that names a connection: the connection's number, the record's, and whether it is the client's JVM (1).
type Naming = (u32, (u32, u32));

/// Records of JVMs that name a connection: number in the list of JVM events, and whether it is the client's JVM. In order, packed.
#[derive(Clone, Debug, Default)]
pub struct NamedBy(Box<[u8]>);

impl NamedBy {
    /// Of records in their order.
    fn of(records: impl Iterator<Item = (u32, bool)>) -> Self {
        let (mut packed, mut last) = (Vec::new(), 0);
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

/// What a scan of sockets, or the death of one, says of an end of a connection.
struct Scanned {
    link: usize,
    at_client: bool,
    t: u64,
    died: bool,
    /// Whose it is, and nanoseconds between the scan and the packets.
    owner: Option<(ProcessId, u64)>,
    tcp: Option<TcpCounters>,
}

/// What else a record tells.
enum JvmFact {
    /// The size of a map output.
    Fetched(String, u32, FetchedSize),
    /// That a process serves.
    Served(ProcessId),
    Nothing,
}

/// What is known of connections, and who claimed what is not his.
#[derive(Debug, Default)]
pub struct Findings {
    /// Of each connection.
    pub attribution: Vec<Attribution>,
    /// What the kernel counted of each end.
    pub counts: Counts,
    /// Ends of connections that a JVM takes for its own, while the kernel says that they are another process's.
    pub contradicted: BTreeMap<ProcessId, u64>,
    /// Sizes of map outputs as reduces fetched them.
    pub fetches: Fetches,
    /// Processes whose JVMs spoke of operations that they served.
    pub serving: HashSet<ProcessId>,
}

/// Finds out about each connection. `jvm` are the records of all JVMs on the reference clock; `host_of` gives the host
/// (by number) of a process.
///
/// # Errors
/// If a temporary file fails.
pub fn investigate(
    links: &[ObservedConnection],
    hosts: &[HostCapture],
    book: &AddressBook,
    processes: &Processes,
    listeners: &Listeners,
    jvm: &JvmEvents,
) -> io::Result<Findings> {
    let index = Index::new(links, book);
    let mut attribution: Vec<Attribution> = vec![Attribution::default(); links.len()];
    let mut counts = Counts::of(2 * links.len());
    let mut records: Sorter<Naming> = Sorter::default();
    // Of each end: claims by strength, then by how near they are in time.
    let mut claims = vec![Claim::NONE; 2 * links.len()];
    let mut claim = |link: usize, at_client: bool, evidence: OwnerEvidence, distance: u64, process: ProcessId| {
        let known = &mut claims[ends::end_of(link, at_client)];
        *known = known.or(evidence, distance, process);
    };
    // Records that do not name the connection.
    let (mut calls, mut fetches) = (RecordLog::within(MAX_UNNAMED_BYTES), RecordLog::within(MAX_UNNAMED_BYTES));
    let mut written = Ok(());
    let (mut fetched, mut serving) = (FetchSorter::default(), HashSet::default());
    let mention_of = |number: usize, host: usize, event: &JvmEvent| match ends_of(&event.record) {
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
    let look_at = |number: usize, host: usize, event: JvmEvent| {
        let mention = mention_of(number, host, &event);
        let fact = match event.record {
            JvmRecord::Fetch { map, reduce, bytes, raw, .. } => {
                JvmFact::Fetched(map, reduce, FetchedSize { bytes, raw })
            }
            JvmRecord::Rpc { .. } | JvmRecord::Block { .. } | JvmRecord::ShuffleServed { .. } => {
                JvmFact::Served(event.process)
            }
            _ => JvmFact::Nothing,
        };
        (mention, fact)
    };
    let mut take_mention = |mention: Option<Mention>| match mention {
        Some(Mention::Connection { number, link, at_client, evidence, distance, process }) => {
            claim(link, at_client, evidence, distance, process);
            keep(&mut written, records.push(naming(link, number, at_client)));
        }
        Some(Mention::Call(number)) => keep(&mut written, calls.push(in_32_bits(number))),
        Some(Mention::Fetch(number)) => keep(&mut written, fetches.push(in_32_bits(number))),
        None => {}
    };
    let mut stored = Ok(());
    jvm.look(look_at, |(mention, fact)| {
        take_mention(mention);
        match fact {
            JvmFact::Fetched(map, reduce, size) => keep(&mut stored, fetched.push(&map, reduce, size)),
            JvmFact::Served(process) => _ = serving.insert(process),
            JvmFact::Nothing => {}
        }
    });
    written.and(stored)?;
    let mut seen = ScannedOwners::of(2 * links.len());
    // An end is of one host, whose scans are taken in their order.
    let take_scan = Mutex::new(|scan: &Scanned| {
        let Scanned { link, at_client, t, died, owner, tcp } = *scan;
        if let Some((process, distance)) = owner {
            claim(link, at_client, OwnerEvidence::Scan, distance, process);
            if distance == 0 {
                seen.add(ends::end_of(link, at_client), process);
            }
        }
        if let Some(tcp) = tcp {
            counts.add(ends::end_of(link, at_client), t, died, &tcp);
        }
    });
    hosts.par_iter().enumerate().for_each(|(number, host)| {
        let mut scans = host.sockets.iter().filter_map(|record| {
            let (t, netns, local, remote, owner, tcp, died) = match record {
                SocketRecord::Socket { t, netns, local, remote, owner, tcp, .. } => {
                    (t, netns, local, remote, owner, tcp, false)
                }
                SocketRecord::Died { t, netns, local, remote, tcp } => (t, netns, local, remote, None, tcp, true),
                _ => return None,
            };
            if !is_here(host, netns) {
                return None;
            }
            let (local, remote) = (crate::capture::flows::canonical(local), crate::capture::flows::canonical(remote));
            let (link, at_client) = index.find(number, local, remote, t, t)?;
            let owner = processes.owner(number, owner).map(|process| (process, index.distance(link, t, t)));
            let tcp = tcp.filter(|_| says_what_was_recorded(&links[link], hosts, book, t, died));
            Some(Scanned { link, at_client, t, died, owner, tcp })
        });
        loop {
            let some: Vec<Scanned> = scans.by_ref().take(TAKEN_AT_ONCE).collect();
            if some.is_empty() {
                return;
            }
            some.iter().for_each(&mut *take_scan.lock().unwrap_or_else(PoisonError::into_inner));
        }
    });
    for (number, link) in links.iter().enumerate() {
        if let Some(host) = book.host_of(link.server().ip(), link.host())
            && let Some(process) = listeners.owner(host, link.server(), link.last_ns)
        {
            claim(number, false, OwnerEvidence::Listener, 0, process);
        }
    }
    let mut contradicted: BTreeMap<ProcessId, u64> = BTreeMap::new();
    let mut of_others: HashSet<usize> = HashSet::default();
    for (end, claim) in claims.into_iter().enumerate().filter(|(_, claim)| claim.is_any()) {
        let Claim { evidence, process, .. } = claim;
        let (process, evidence) = match seen.owner(end) {
            // Anybody can write a JVM's file; what the kernel said of a socket while it lived stands above that.
            Some(owner) if evidence == OwnerEvidence::Jvm && !seen.has(end, process) => {
                *contradicted.entry(process).or_default() += 1;
                of_others.insert(end);
                (owner, OwnerEvidence::Scan)
            }
            _ => (process, evidence),
        };
        let end = &mut attribution[end / 2].ends[end % 2];
        end.process = Some(process);
        end.evidence = Some(if named_by_hand(hosts, processes, process) { OwnerEvidence::Manifest } else { evidence });
    }
    attach_calls((&attribution, &mut records), links, book, (jvm, &calls))?;
    attach_fetches((&attribution, &mut records), links, hosts, book, (jvm, &fetches))?;
    // What others than the owners of an end said of its connection is left out.
    let is_of_owner = |link: u32, number: u32, at_client: u32| {
        let end = ends::end_of(link as usize, at_client == 1);
        !of_others.contains(&end) || jvm.process(number as usize).is_some_and(|process| seen.has(end, process))
    };
    let records = records.sorted()?;
    let mut named = records.iter().peekable();
    for (link, attribution) in (0..).zip(&mut attribution) {
        let of_link = std::iter::from_fn(|| named.next_if(|(named, _)| *named == link));
        let of_owners = of_link.filter(|&(link, (number, at_client))| is_of_owner(link, number, at_client));
        attribution.records = NamedBy::of(of_owners.map(|(_, (number, at_client))| (number, at_client == 1)));
    }
    records.check()?;
    calls.check().and(fetches.check())?;
    Ok(Findings { attribution, counts, contradicted, fetches: fetched.sorted()?, serving })
}

/// Keeps the first error.
fn keep(first: &mut io::Result<()>, next: io::Result<()>) {
    if first.is_ok() {
        *first = next;
    }
}

fn naming(link: usize, number: usize, at_client: bool) -> Naming {
    (in_32_bits(link), (in_32_bits(number), u32::from(at_client)))
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
    let ends = [link.client(), link.server()].map(|address| book.host_of(address.ip(), link.host()));
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
    (attribution, records): (&[Attribution], &mut Sorter<Naming>),
    links: &[ObservedConnection],
    book: &AddressBook,
    (jvm, calls): (&JvmEvents, &RecordLog<u32>),
) -> io::Result<()> {
    let key_of = |number: usize| Some((attribution[number].ends[0].process?, links[number].server()));
    let by_client = Chains::new(links.len(), key_of);
    for number in calls.iter().map(|number| number as usize) {
        let Some((host, event)) = jvm.get(number) else { continue };
        let Some((None, remote)) = ends_of(&event.record) else { continue };
        let (from, to) = (begin_of(&event.record), end_of(&event.record));
        let key = (event.process, remote);
        let open = by_client.of(&key).find(|&link| {
            let at = &links[link];
            key_of(link) == Some(key)
                && at.first_ns <= to
                && at.last_ns + SLACK_NS >= from
                && book.host_of(at.client().ip(), at.host()) == Some(host)
        });
        if let Some(link) = open {
            records.push(naming(link, number, true))?;
        }
    }
    Ok(())
}

/// A fetch of a map's output belongs to the connection of that process to that host and port over which it went: a
/// reduce has one of each host at a time.
fn attach_fetches(
    (attribution, records): (&[Attribution], &mut Sorter<Naming>),
    links: &[ObservedConnection],
    hosts: &[HostCapture],
    book: &AddressBook,
    (jvm, fetches): (&JvmEvents, &RecordLog<u32>),
) -> io::Result<()> {
    let key_of = |number: usize| Some((attribution[number].ends[0].process?, links[number].server().port()));
    let by_client = Chains::new(links.len(), key_of);
    for number in fetches.iter().map(|number| number as usize) {
        let Some(JvmEvent { process, record: JvmRecord::Fetch { t0, host, .. } }) =
            jvm.get(number).map(|(_, event)| event)
        else {
            continue;
        };
        let Some((name, port)) = host.rsplit_once(':') else { continue };
        let Ok(port) = port.parse::<u16>() else { continue };
        let short = name.split('.').next().unwrap_or(name);
        let is_there = |link: &ObservedConnection| {
            let server = book.host_of(link.server().ip(), link.host()).map(|host| hosts[host].name.as_str());
            server.is_some_and(|server| server == name || server == short) || link.server().ip().to_string() == name
        };
        let key = (process, port);
        let open = by_client.of(&key).find(|&number| {
            let link = &links[number];
            key_of(number) == Some(key) && link.first_ns <= t0 && t0 <= link.last_ns && is_there(link)
        });
        if let Some(link) = open {
            records.push(naming(link, number, true))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_that_name_a_connection_are_as_they_were(
            mut records in prop::collection::vec(any::<(u32, bool)>(), 0..30),
        ) {
            records.sort_unstable();
            let known: Vec<(usize, bool)> = records.iter().map(|(number, at)| (*number as usize, *at)).collect();
            prop_assert_eq!(NamedBy::of(records.into_iter()).iter().collect::<Vec<_>>(), known);
        }
    }
}
