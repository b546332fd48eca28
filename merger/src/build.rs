//! The whole way from captures to what all hosts' captures say together.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::path::PathBuf;

use rayon::prelude::*;
use trace::ids::ProcessId;
use trace::jvm::JvmRecord;
use trace::rows::OwnerEvidence;

use crate::assembly::{Assembly, Order, Read};
use crate::capture::{self, HostCapture};
use crate::clock::{self, Alignment};
use crate::error::MergeError;
use crate::framing::{self, Conversation, Fetches};
use crate::history;
use crate::join::{self, AddressBook, Direction, Link};
use crate::joined::JvmEvent;
use crate::loss::{LossKind, Note as _};
use crate::merged::Merged;
use crate::network;
use crate::owners::{self, Attribution, Findings, Listeners};
use crate::processes::Processes;
use crate::records;

/// What is told while merging.
pub trait Progress: Sync {
    /// A step begins that has so many parts.
    fn step(&self, what: &str, parts: u64);
    /// A part of it is done.
    fn part(&self);
}

/// Tells nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn step(&self, _: &str, _: u64) {}
    fn part(&self) {}
}

/// Reads captures and joins them.
///
/// # Errors
/// If they cannot be read, or are of different clusters.
pub fn merge(captures: &[PathBuf], progress: &impl Progress) -> Result<Merged, MergeError> {
    progress.step("reading hosts", 0);
    let mut hosts = capture::read(captures, |_| progress.part())?;
    let histories = history::read(captures)?;
    for host in hosts.iter_mut().filter(|host| host.rack.is_empty()) {
        host.rack = histories.racks.get(&host.name).cloned().unwrap_or_default();
    }
    progress.step("aligning clocks", 0);
    let alignment = clock::align(&hosts);
    move_to_reference(&mut hosts, &alignment);
    let packets = hosts.iter().map(|host| host.packets.count).sum();
    let order = Order::new(&hosts, &alignment);
    let processes = Processes::gather(&hosts, |number| order.id_of(number));
    let listeners = Listeners::gather(&hosts, &processes);
    let book = AddressBook::new(&hosts);
    let links_of_network = network::links(&hosts, &book);
    progress.step("joining connections", 0);
    let links = join::connections(&mut hosts, &book, |host, address| listeners.listens(host, address));
    let jvm = jvm_events(&mut hosts, &processes);
    let Findings { attribution, contradicted } =
        owners::investigate(&links, &hosts, &book, &processes, &listeners, &jvm);
    note_contradicted(&mut hosts, &processes, &order, &contradicted);
    progress.step("reading connections", links.len() as u64);
    let reader = Reader {
        hosts: &hosts,
        book: &book,
        shifts: usual_shifts(&links, &book, hosts.len()),
        jvm: &jvm,
        fetches: fetches(&jvm),
        serving: serving(&jvm),
        neighbours: neighbours(&links, &attribution, &jvm),
        uncertainty_ns: &alignment.uncertainty_ns,
    };
    let read: Vec<Read> = links
        .par_iter()
        .zip(&attribution)
        .map(|(link, attribution)| {
            let read = reader.read(link, attribution);
            progress.part();
            read
        })
        .collect();
    let assembly = Assembly { hosts, histories, alignment, order, processes, book, jvm, packets, links_of_network };
    Ok(assembly.put_together(&links, &attribution, read))
}

fn move_to_reference(hosts: &mut [HostCapture], alignment: &Alignment) {
    hosts.par_iter_mut().enumerate().for_each(|(number, host)| {
        let moved = |t: u64| alignment.apply(number, t);
        for packet in host.packets.flows.values_mut().flatten() {
            packet.time_ns = moved(packet.time_ns);
        }
        // The end may be open.
        host.recorded_ns =
            host.recorded_ns.map(|(from, to)| (moved(from), if to == u64::MAX { to } else { moved(to) }));
        for record in &mut host.sockets {
            let t = records::socket_time(record);
            *t = moved(*t);
        }
        for record in host.jvms.iter_mut().flat_map(|jvm| &mut jvm.records) {
            records::move_jvm(record, moved);
        }
    });
}

fn note_contradicted(
    hosts: &mut [HostCapture],
    processes: &Processes,
    order: &Order,
    contradicted: &BTreeMap<ProcessId, u64>,
) {
    for (number, host) in hosts.iter_mut().enumerate() {
        for (process, count) in contradicted {
            let row = &processes.rows[process.index()];
            if row.host == order.id_of(number) {
                host.losses.lost(&host.name, LossKind::ForeignConnections(row.pid), *count);
            }
        }
    }
}

/// What all JVMs said, by time, with the number of the host.
fn jvm_events(hosts: &mut [HostCapture], processes: &Processes) -> Vec<(usize, JvmEvent)> {
    let mut events: Vec<(usize, JvmEvent)> = Vec::new();
    for (number, host) in hosts.iter_mut().enumerate() {
        for jvm in &mut host.jvms {
            if let Some(process) = processes.find(number, jvm.pid, jvm.start_ticks) {
                let records = std::mem::take(&mut jvm.records);
                events.extend(records.into_iter().map(|record| (number, JvmEvent { process, record })));
            }
        }
    }
    events.sort_by_key(|(_, event)| (records::begin_of(&event.record), event.process));
    events
}

/// Sizes of map outputs as reduces fetched them.
fn fetches(jvm: &[(usize, JvmEvent)]) -> Fetches {
    jvm.iter()
        .filter_map(|(_, event)| match &event.record {
            JvmRecord::Fetch { map, reduce, bytes, raw, .. } => Some(((map.clone(), *reduce), (*bytes, *raw))),
            _ => None,
        })
        .collect()
}

/// Processes whose JVMs spoke of operations that they served.
fn serving(jvm: &[(usize, JvmEvent)]) -> HashSet<ProcessId> {
    use JvmRecord as R;
    let serves = |record: &R| matches!(record, R::Rpc { .. } | R::Block { .. } | R::ShuffleServed { .. });
    jvm.iter().filter(|(_, event)| serves(&event.record)).map(|(_, event)| event.process).collect()
}

/// The protocols of listeners. Where records differ, as no two should, the first one stands.
fn neighbours(
    links: &[Link],
    attribution: &[Attribution],
    jvm: &[(usize, JvmEvent)],
) -> HashMap<(Option<usize>, SocketAddr), &'static str> {
    let mut protocols = HashMap::new();
    for (link, attribution) in links.iter().zip(attribution) {
        let told =
            attribution.records.iter().find_map(|&(number, _)| framing::opaque::protocol_of(&jvm[number].1.record));
        if let Some(protocol) = told {
            protocols.entry((link.host, link.server)).or_insert(protocol);
        }
    }
    protocols
}

/// The window scale that most connections of each host use.
fn usual_shifts(links: &[Link], book: &AddressBook, hosts: usize) -> Vec<Option<u32>> {
    let mut counts = vec![[0u32; 15]; hosts];
    for link in links {
        for (shift, address) in link.window_shifts().into_iter().zip([link.client, link.server]) {
            if let (Some(shift), Some(host)) = (shift, book.host_of(address.ip(), link.host)) {
                counts[host][shift as usize] += 1;
            }
        }
    }
    counts
        .iter()
        .map(|counts| (0..15u32).filter(|&s| counts[s as usize] > 0).max_by_key(|&s| counts[s as usize]))
        .collect()
}

/// What reading a connection needs beside the connection.
struct Reader<'a> {
    hosts: &'a [HostCapture],
    book: &'a AddressBook,
    /// The window scale that most connections of each host use.
    shifts: Vec<Option<u32>>,
    jvm: &'a [(usize, JvmEvent)],
    fetches: Fetches,
    /// Processes that spoke of operations that they served.
    serving: HashSet<ProcessId>,
    /// The protocol of each listener, as records of connections to it tell.
    neighbours: HashMap<(Option<usize>, SocketAddr), &'static str>,
    uncertainty_ns: &'a [f64],
}

impl Reader<'_> {
    fn read(&self, link: &Link, attribution: &Attribution) -> Read {
        let usual = |address: SocketAddr| self.book.host_of(address.ip(), link.host).and_then(|host| self.shifts[host]);
        let direction = |from_client: bool, receiver: SocketAddr| {
            link.direction(from_client, self.hosts, self.book, usual(receiver), self.uncertainty_ns)
        };
        let (client, server) = (direction(true, link.server), direction(false, link.client));
        let records =
            attribution.records.iter().map(|&(number, at_client)| (&self.jvm[number].1.record, at_client)).collect();
        let conversation = Conversation {
            client: &client,
            server: &server,
            records,
            fetches: &self.fetches,
            from_begin: link.syn_seen,
            agents: attribution.ends.iter().all(|end| end.evidence == Some(OwnerEvidence::Jvm))
                && attribution.ends[1].process.is_some_and(|process| self.serving.contains(&process)),
            neighbours: self.neighbours.get(&(link.host, link.server)).copied(),
        };
        let framed = framing::read(&conversation);
        // The payload is not needed any more, and is most of the memory.
        let light = |direction: Direction| Direction { content: join::content::Content::default(), ..direction };
        Read { framed, directions: [light(client), light(server)] }
    }
}
