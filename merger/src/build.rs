//! The whole way from captures to what all hosts' captures say together.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use trace::ids::{ConnectionId, ProcessId};
use trace::jvm::JvmRecord;
use trace::rows::OwnerEvidence;

use crate::assembly::{self, Assembly, Order, Times};
use crate::capture::started::StartedThread;
use crate::capture::store::Packets;
use crate::capture::{self, HostCapture};
use crate::clock::{self, Alignment, TooEarly};
use crate::compact::MessageLog;
use crate::error::MergeError;
use crate::framing::{self, Conversation, Draft, Fetches};
use crate::history;
use crate::join::{self, AddressBook, Direction, FoundConnections, ObservedConnection, ObservedFlows};
use crate::joined::{ThreadStart, ThreadStarts};
use crate::jvm_events::{JvmEvents, Near};
use crate::kernel::{Counted, Counts, PackedCounts};
use crate::loss::{LossKind, Note as _};
use crate::maps::{HashMap, HashSet};
use crate::merged::Merged;
use crate::network::{self, FlowTraffic, Traffic};
use crate::owners::{self, Attribution, Findings, Listeners};
use crate::packed_streams::{PackedStream, StreamLog};
use crate::processes::Processes;
use crate::progress::Unit;
pub use crate::progress::{Progress, Silent};
use crate::read_connection::{Read, ReadDirection};
use crate::records;
use crate::spilled::SharedSorter;
use crate::survey::{self, Survey, Views};
use crate::volume::STREAMS_SHARE;
use crate::window::{Span, Window};

/// How captures are merged.
#[derive(Clone, Debug)]
pub struct Options {
    /// Memory that packets may take, bytes, and an eighth of that for the segments of connections that were read; what goes
    /// beyond lies in temporary files.
    pub packet_bytes: u64,
    /// The part of the captures that is wanted: connections that were open then, messages and spans that lie in it.
    pub window: Window,
}

/// Bytes of a JVM's records that are read at once for a connection: most of what lies between two of its own is of others.
const READ_AHEAD: usize = 1 << 10;

impl Default for Options {
    fn default() -> Self {
        Self { packet_bytes: 1 << 30, window: Window::default() }
    }
}

/// Reads captures and joins them.
///
/// # Errors
/// If they cannot be read, or are of different clusters.
pub fn merge(captures: &[PathBuf], progress: &impl Progress) -> Result<Merged, MergeError> {
    merge_with(captures, &Options::default(), progress)
}

/// As [`merge`], with options.
///
/// # Errors
/// As [`merge`], or if packets fit neither into memory nor on the disk.
pub fn merge_with(captures: &[PathBuf], options: &Options, progress: &impl Progress) -> Result<Merged, MergeError> {
    let (hosts, histories) =
        rayon::join(|| capture::read(captures, options.packet_bytes, progress), || history::read(captures));
    let (mut hosts, mut histories) = (hosts?, histories?);
    for host in hosts.iter_mut().filter(|host| host.rack.is_empty()) {
        host.rack = histories.racks.get(&host.name).cloned().unwrap_or_default();
    }
    let span = options.window.cut(&mut histories)?;
    let book = AddressBook::new(&hosts);
    let packets = hosts.iter().map(|host| host.packets.count).sum();
    progress.step("finding connections", packets, Unit::Packets);
    let mut survey = Survey::of(&hosts, &book, |packets| progress.done(packets)).map_err(MergeError::Spill)?;
    progress.step("aligning clocks", 1, Unit::Nothing);
    let fits = survey.fits(&hosts);
    let mut alignment =
        clock::align(hosts.len(), fits, || survey.whole_fits(&hosts, &book)).map_err(MergeError::Spill)?;
    move_to_reference(&mut hosts, &alignment);
    let order = Order::new(&hosts, &alignment);
    let processes = Processes::gather(&hosts, |number| order.id_of(number));
    let listeners = Listeners::gather(&hosts, &processes);
    let Survey { flows, found, .. } = survey;
    let links = links(&hosts, &book, &listeners, &alignment, &flows, found)?;
    let (jvm, threads) = jvm_events(&mut hosts, &processes).map_err(MergeError::Spill)?;
    let Findings { attribution, counts, contradicted, fetches, serving } =
        owners::investigate(&links, &hosts, &book, &processes, &listeners, &jvm).map_err(MergeError::Spill)?;
    let listening = assembly::listening(&hosts, &processes);
    // All is known of sockets now.
    for host in &mut hosts {
        std::mem::take(&mut host.sockets).check().map_err(MergeError::Spill)?;
    }
    note_of_jvms(&mut hosts, &processes, &order, &contradicted, LossKind::ForeignConnections);
    note_of_jvms(&mut hosts, &processes, &order, &listeners.left_out, LossKind::ListeningElsewhere);
    progress.step("reading connections", packets, Unit::Packets);
    let reader = Reader {
        book: &book,
        shifts: usual_shifts(&links, &book, hosts.len()),
        jvm: &jvm,
        fetches,
        serving,
        neighbours: neighbours(&links, &attribution, &jvm),
        uncertainty_ns: &alignment.uncertainty_ns,
        messages: MessageLog::default(),
    };
    let (links, attribution, counted) = wanted(links, attribution, counts, span);
    let by_flow = by_flow(&links);
    let traffic = Traffic::default();
    let stored: Vec<Mutex<Packets>> =
        hosts.iter_mut().map(|host| Mutex::new(std::mem::take(&mut host.packets))).collect();
    let streams_bytes = usize::try_from(options.packet_bytes / STREAMS_SHARE).unwrap_or(usize::MAX);
    let (read, streams) = (SharedSorter::default(), Mutex::new(StreamLog::within(streams_bytes)));
    let of_flows = by_flow.chunk_by(|a, b| links[*a as usize].flow() == links[*b as usize].flow());
    let mut of_flows: Vec<&[u32]> = of_flows.collect();
    // By their first packets: files of packets are given up one after the other, and room for what is read comes free meanwhile.
    of_flows.sort_unstable_by_key(|numbers| numbers[0]);
    // A flow may take as long as a thousand others.
    let early = of_flows.into_par_iter().with_max_len(1).map(|numbers| {
        let flow = flows.get(links[numbers[0] as usize].flow());
        // Nobody looks at its packets again.
        let take = |(host, place): (usize, usize)| {
            let mut packets = stored[host].lock().unwrap_or_else(PoisonError::into_inner);
            Ok((host, packets.take_flow(place)?))
        };
        let lone = flow.hosts.iter().copied().map(take);
        let mut views = survey::unload(lone.collect::<io::Result<_>>()?)?;
        let to_compare = survey::pair(&flow, &book).filter(|pair| alignment.to_compare.contains(pair));
        let both = to_compare.and_then(|_| survey::both_saw(&flow, &views, &book));
        let early = both.map(|both| alignment.too_early(&both)).unwrap_or_default();
        move_packets(&mut views, &alignment);
        traffic.add(FlowTraffic::of(&flow, &views, &book))?;
        for number in numbers.iter().map(|number| *number as usize) {
            let of_link = (&links[number], &attribution[number], &counted.get(number));
            let (connection, [client, server]) = reader.read(number, of_link, &views)?;
            let streams = {
                let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
                (streams.push(&client), streams.push(&server))
            };
            read.extend([Read { streams, ..connection }])?;
        }
        progress.done(survey::packets_of(&views));
        io::Result::Ok(early)
    });
    let early = early.try_reduce(TooEarly::default, |a, b| Ok(a.plus(b))).map_err(MergeError::Spill)?;
    flows.check().map_err(MergeError::Spill)?;
    counted.check().map_err(MergeError::Spill)?;
    drop((stored, flows, by_flow, counted));
    let (read, streams) = (read.sorted(), streams.into_inner().unwrap_or_else(PoisonError::into_inner));
    let Reader { messages, fetches, .. } = reader;
    fetches.check().map_err(MergeError::Spill)?;
    alignment.early += early.count;
    alignment.worst_ns = alignment.worst_ns.max(early.worst_ns);
    progress.step("putting messages together", 1, Unit::Nothing);
    let assembly = Assembly {
        hosts: &hosts,
        histories,
        alignment,
        order: &order,
        processes,
        listening,
        book,
        jvm,
        threads,
        packets,
        span,
    };
    // Both take about as long, by one thread mostly.
    let (links_of_network, merged) = rayon::join(
        || network::links(&hosts, traffic),
        || assembly.put_together(links, attribution, (read, streams, messages)),
    );
    let mut merged = merged.map_err(MergeError::Spill)?;
    assembly::add_network(&mut merged, links_of_network.map_err(MergeError::Spill)?, &order);
    Ok(merged)
}

fn move_to_reference(hosts: &mut [HostCapture], alignment: &Alignment) {
    hosts.par_iter_mut().enumerate().for_each(|(number, host)| {
        let moved = |t: u64| alignment.apply(number, t);
        // The end may be open.
        host.recorded_ns =
            host.recorded_ns.map(|(from, to)| (moved(from), if to == u64::MAX { to } else { moved(to) }));
        if alignment.is_still(number) {
            return;
        }
        host.sockets = host.sockets.changed(|record| {
            let t = records::socket_time(record);
            *t = moved(*t);
        });
        for jvm in &mut host.jvms {
            jvm.records = jvm.records.changed(|record| records::move_jvm(record, moved));
            jvm.clocks.iter_mut().for_each(|t| *t = moved(*t));
            jvm.threads = jvm.threads.changed(moved);
        }
    });
}

fn move_packets(views: &mut Views, alignment: &Alignment) {
    for (host, view) in views.iter_mut().filter(|(host, _)| !alignment.is_still(*host)) {
        view.packets.iter_mut().for_each(|packet| packet.time_ns = alignment.apply(*host, packet.time_ns));
    }
}

/// All connections, ordered by their first packet.
fn links(
    hosts: &[HostCapture],
    book: &AddressBook,
    listeners: &Listeners,
    alignment: &Alignment,
    flows: &ObservedFlows,
    found: FoundConnections,
) -> Result<Vec<ObservedConnection>, MergeError> {
    let listens = |host: usize, address: SocketAddr| listeners.listens(host, address);
    let moved = |host: usize, t: u64| alignment.apply(host, t);
    // There may be many: a list that grows would take three times as much for a moment.
    let mut links: Vec<ObservedConnection> = Vec::with_capacity(found.len());
    let take = |flow: usize, found| {
        links.push(ObservedConnection::new((flow, flows.get(flow).key), found, book, listens, moved));
    };
    found.for_each(take).map_err(MergeError::Spill)?;
    let of_corrected: BTreeSet<usize> = links
        .iter()
        .filter(|link| link.hosts().any(|host| alignment.is_corrected(host)))
        .map(|link| link.flow())
        .collect();
    if !of_corrected.is_empty() {
        links
            .par_iter_mut()
            .filter(|link| of_corrected.contains(&link.flow()))
            .try_for_each(|link| {
                let mut views = survey::load(hosts, &flows.get(link.flow()))?;
                move_packets(&mut views, alignment);
                link.set_times(&views, book);
                Ok(())
            })
            .map_err(MergeError::Spill)?;
    }
    join::order(&mut links);
    Ok(links)
}

/// Those connections that were open in a span.
fn wanted(
    mut links: Vec<ObservedConnection>,
    mut attribution: Vec<Attribution>,
    counts: Counts,
    span: Span,
) -> (Vec<ObservedConnection>, Vec<Attribution>, PackedCounts) {
    let met: Vec<bool> = links.iter().map(|link| span.meets(link.first_ns, link.last_ns)).collect();
    let [mut of_links, mut of_attribution] = [(); 2].map(|()| met.iter());
    links.retain(|_| of_links.next() == Some(&true));
    attribution.retain(|_| of_attribution.next() == Some(&true));
    let numbers = (0..).zip(&met).filter_map(|(number, met)| met.then_some(number));
    (links, attribution, PackedCounts::of(&counts, numbers))
}

/// The numbers of all connections, flow by flow.
fn by_flow(links: &[ObservedConnection]) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..).take(links.len()).collect();
    numbers.sort_by_key(|number| links[*number as usize].flow());
    numbers
}

/// Notes what JVMs said in vain, by their pids.
fn note_of_jvms(
    hosts: &mut [HostCapture],
    processes: &Processes,
    order: &Order,
    counts: &BTreeMap<ProcessId, u64>,
    kind: fn(u32) -> LossKind,
) {
    for (number, host) in hosts.iter_mut().enumerate() {
        for (process, count) in counts {
            let row = &processes.rows[process.index()];
            if row.host == order.id_of(number) {
                host.losses.lost(&host.name, kind(row.pid), *count);
            }
        }
    }
}

/// What all JVMs said of work, by time, with the number of the host; and the threads that were started. Their files are given up.
fn jvm_events(hosts: &mut [HostCapture], processes: &Processes) -> io::Result<(JvmEvents, ThreadStarts)> {
    let (mut files, mut threads) = (Vec::new(), ThreadStarts::default());
    for (number, host) in hosts.iter_mut().enumerate() {
        for jvm in &mut host.jvms {
            let Some(process) = processes.find(number, jvm.pid, jvm.start_ticks) else { continue };
            let started = std::mem::take(&mut jvm.threads);
            for StartedThread { at_ns, by, child } in started.iter() {
                threads.push(ThreadStart { process, at_ns, by, child });
            }
            started.check()?;
            files.push((number, process, std::mem::take(&mut jvm.records)));
        }
        host.jvms = Vec::new();
    }
    threads.check()?;
    Ok((JvmEvents::of(files.into_iter())?, threads))
}

/// The protocols of listeners. Where records differ, as no two should, the first one stands.
fn neighbours(
    links: &[ObservedConnection],
    attribution: &[Attribution],
    jvm: &JvmEvents,
) -> HashMap<(Option<usize>, SocketAddr), &'static str> {
    let mut protocols = HashMap::default();
    let recorded = attribution.par_iter().map(|attribution| {
        attribution.records.iter().find_map(|(number, _)| framing::opaque::protocol_of(&jvm.record(number)?))
    });
    for (link, protocol) in links.iter().zip(recorded.collect::<Vec<Option<&'static str>>>()) {
        if let Some(protocol) = protocol {
            protocols.entry((link.host(), link.server())).or_insert(protocol);
        }
    }
    protocols
}

/// The window scale that most connections of each host use.
fn usual_shifts(links: &[ObservedConnection], book: &AddressBook, hosts: usize) -> Vec<Option<u32>> {
    let mut counts = vec![[0u32; 15]; hosts];
    for link in links {
        for (shift, address) in link.window_shifts().into_iter().zip([link.client(), link.server()]) {
            if let (Some(shift), Some(host)) = (shift, book.host_of(address.ip(), link.host())) {
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
    book: &'a AddressBook,
    /// The window scale that most connections of each host use.
    shifts: Vec<Option<u32>>,
    jvm: &'a JvmEvents,
    fetches: Fetches,
    /// Processes that spoke of operations that they served.
    serving: HashSet<ProcessId>,
    /// The protocol of each listener, as records of connections to it tell.
    neighbours: HashMap<(Option<usize>, SocketAddr), &'static str>,
    uncertainty_ns: &'a [f64],
    messages: MessageLog,
}

impl Reader<'_> {
    /// Reads a connection, by its number, of its flow's packets on the reference clock. Its streams have no place yet.
    fn read(
        &self,
        number: usize,
        (link, attribution, counted): (&ObservedConnection, &Attribution, &[Counted; 2]),
        views: &Views,
    ) -> io::Result<(Read, [PackedStream; 2])> {
        let usual =
            |address: SocketAddr| self.book.host_of(address.ip(), link.host()).and_then(|host| self.shifts[host]);
        let direction = |from_client: bool, receiver: SocketAddr| {
            link.direction(from_client, views, self.book, usual(receiver), self.uncertainty_ns)
        };
        let (client, server) = (direction(true, link.server()), direction(false, link.client()));
        // Of each end's JVM.
        let mut near = [true, false].map(|_| Near::within(READ_AHEAD));
        let known = attribution.records.iter().filter_map(|(number, at_client)| {
            let record = self.jvm.record_near(number, &mut near[usize::from(!at_client)])?;
            Some((record, at_client))
        });
        let known: Vec<(JvmRecord, bool)> = known.collect();
        let records = known.iter().map(|(record, at_client)| (record, *at_client)).collect();
        let conversation = Conversation {
            client: &client,
            server: &server,
            records,
            fetches: &self.fetches,
            from_begin: link.syn_seen,
            agents: attribution.ends.iter().all(|end| end.evidence == Some(OwnerEvidence::Jvm))
                && attribution.ends[1].process.is_some_and(|process| self.serving.contains(&process)),
            neighbours: self.neighbours.get(&(link.host(), link.server())).copied(),
        };
        let framed = framing::read(&conversation);
        let connection = ConnectionId(u32::try_from(number).unwrap_or(u32::MAX));
        let timed = framed.drafts.into_iter().map(|draft| {
            let direction = if draft.from_client { &client } else { &server };
            let times = Times::of(&draft, &direction.stream, link.first_ns);
            (draft, times)
        });
        let timed: Vec<(Draft, Times)> = timed.collect();
        let (messages, protocol) =
            self.messages.take(framed.protocol, timed, |timed, words| assembly::message(connection, timed, words))?;
        let [at_client, at_server] = counted;
        let summed = |direction: &Direction, counted: &Counted| ReadDirection {
            end: direction.end,
            seen: direction.seen,
            retransmitted: direction.retransmitted,
            early: direction.early,
            kernel_bytes: counted.bytes(&direction.stream, link.syn_seen, link.end_seen),
            limits: direction.limits,
            kernel_limits: counted.limits(link.syn_seen),
        };
        let directions = [summed(&client, at_client), summed(&server, at_server)];
        // The payload is not needed any more, and is most of the memory.
        let streams = [&client, &server].map(|direction| PackedStream::of(&direction.stream));
        let messages = (messages.start as u64, messages.end as u64);
        Ok((Read { connection, protocol, messages, streams: Default::default(), directions }, streams))
    }
}
