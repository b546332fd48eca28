//! Rows of what was read: hosts, connections, messages.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use rayon::prelude::*;
use trace::ids::{ConnectionId, HostId, ProcessId};
use trace::jvm::JvmRecord;
use trace::manifest::NetworkEstimate;
use trace::rows::{HostRow, OwnerEvidence};
use trace::socket::SocketRecord;

use crate::capture::HostCapture;
use crate::clock::Alignment;
use crate::compact::{
    Connection, Connections, Ends, Figures, MessageLog, MessageRecord, Messages, ReadMessages, Spans,
};
use crate::framing::Draft;
use crate::history::Histories;
use crate::inference;
use crate::join::{AddressBook, Early, ObservedConnection};
use crate::joined::{Joined, JvmEvent, LimitRows, Stream, TaskEvents, ThreadStarts};
use crate::jvm_events::JvmEvents;
use crate::loss::{Loss, LossKind, Note as _};
use crate::maps::HashMap;
use crate::merged::{Clocks, HostClock, Merged};
use crate::network::{self, FullTimes, Links};
use crate::owners::{Attribution, End};
use crate::packed_streams::{MAX_PLACES_BYTES, StreamLog};
use crate::pipelines::{self, Hops};
use crate::processes::Processes;
use crate::read_connection::{Read, ReadDirection};
use crate::roles;
use crate::spans::{self, Finder};
use crate::spilled::{Record as _, SharedList, Sorted};
use crate::steps;
use crate::turns;
use crate::window::Span;
use crate::words::Words;

/// The rows of hosts: the reference first, then by name; behind them peers of which nothing was captured.
pub(crate) struct Order {
    ids: Vec<HostId>,
}

impl Order {
    pub fn new(hosts: &[HostCapture], alignment: &Alignment) -> Self {
        let mut ids = vec![HostId(0); hosts.len()];
        let others = (0..hosts.len()).filter(|&number| number != alignment.reference);
        for (row, number) in std::iter::once(alignment.reference).chain(others).enumerate() {
            ids[number] = HostId(row as u32);
        }
        Self { ids }
    }

    pub fn id_of(&self, number: usize) -> HostId {
        self.ids[number]
    }
}

/// When a message went, nanoseconds since the epoch.
pub(crate) struct Times {
    sent: u64,
    sent_end: u64,
    delivered: u64,
}

impl Times {
    /// Of a message of a stream; `begin` is when its connection began.
    pub fn of(draft: &Draft, stream: &Stream, begin: u64) -> Self {
        let segments = stream.range(draft.offset, draft.bytes);
        // Bytes that the capture lost have the times of what was seen next to them.
        let at = stream.segments.partition_point(|segment| segment.offset < draft.offset);
        let beside = stream.segments.get(at).or(stream.segments.last());
        let (first, last) = (segments.first().or(beside), segments.last().or(beside));
        let sent = first.map_or(begin, |segment| segment.sent_ns);
        let sent_end = segments.iter().map(|segment| segment.sent_ns).max().unwrap_or(sent);
        let delivered = last.map_or(sent_end, |segment| segment.delivered_ns).max(sent_end);
        Self { sent: sent.min(sent_end), sent_end, delivered }
    }
}

/// A message of a connection. It has no number yet.
pub(crate) fn message(connection: ConnectionId, (draft, times): (Draft, Times), words: &mut Words) -> MessageRecord {
    MessageRecord {
        connection,
        from_client: draft.from_client,
        kind: draft.kind,
        name: words.number_of(&draft.name),
        call: draft.call,
        offset: draft.offset,
        bytes: draft.bytes,
        app_bytes: draft.app_bytes,
        sent_ns: times.sent,
        sent_end_ns: times.sent_end,
        delivered_ns: times.delivered,
        block: draft.block,
        attempt: draft.attempt.and_then(|attempt| words.number_if_kept(&attempt)),
        map: draft.map.and_then(|map| words.number_if_kept(&map)),
        reduce: draft.reduce,
        hop: draft.hop,
        unread_bytes: draft.unread_bytes,
        evidence: words.number_of(draft.evidence),
    }
}

/// All that connections are put together with.
pub(crate) struct Assembly<'a> {
    pub hosts: &'a [HostCapture],
    pub histories: Histories,
    pub alignment: Alignment,
    pub order: &'a Order,
    pub processes: Processes,
    /// Those that listen.
    pub listening: BTreeSet<ProcessId>,
    pub book: AddressBook,
    pub jvm: JvmEvents,
    pub threads: ThreadStarts,
    pub packets: u64,
    /// What is wanted.
    pub span: Span,
}

/// Adds what packets tell of the network to what else they say.
pub(crate) fn add_network(merged: &mut Merged, links: Links, order: &Order) {
    let joined = &mut merged.joined;
    let Links { estimates, full_uplinks } = links;
    merged.network = network::estimate(estimates, &joined.hosts, &joined.connections);
    joined.full_uplinks = vec![FullTimes::default(); joined.hosts.len()];
    for (number, times) in full_uplinks.into_iter().enumerate() {
        joined.full_uplinks[order.id_of(number).index()] = times;
    }
}

impl Assembly<'_> {
    /// Makes rows of everything but of the network ([`add_network`]); the messages of what was read lie in `log`.
    ///
    /// # Errors
    /// If a temporary file fails.
    pub fn put_together(
        self,
        links: Vec<ObservedConnection>,
        attribution: Vec<Attribution>,
        (read, streams, log): (Sorted<Read>, StreamLog, MessageLog),
    ) -> io::Result<Merged> {
        let Self { hosts, histories, alignment, order, mut processes, listening, book, .. } = self;
        let Self { jvm, threads, packets, span, .. } = self;
        let window_ns = (
            links.iter().map(|link| link.first_ns).min().unwrap_or(0),
            links.iter().map(|link| link.last_ns).max().unwrap_or(0),
        );
        let window_ns = span.part_of(window_ns);
        let mut rows = host_rows(hosts, &alignment, order, window_ns.0);
        let mut connections = Connections::with_capacity(links.len());
        let mut missing = 0u64;
        let mut limits = LimitRows::default();
        let mut parts = Vec::with_capacity(links.len());
        let mut of_streams = SharedList::within(MAX_PLACES_BYTES);
        let mut losses: Vec<Loss> = hosts.iter().flat_map(|host| host.losses.clone()).collect();
        let mut notes: Vec<String> = hosts.iter().flat_map(|host| host.notes.clone()).collect();
        let mut early = Early::default();
        let mut peers: HashMap<IpAddr, HostId> = HashMap::default();
        let mut all_read = read.iter().peekable();
        for (id, (link, attribution)) in (0..).map(ConnectionId).zip(links.iter().zip(&attribution)) {
            let read = all_read.next_if(|read| read.connection == id).unwrap_or(Read::BLANK);
            let [client, server] = read.directions;
            early.add(&client.early);
            early.add(&server.early);
            let end_hosts =
                [link.client(), link.server()].map(|address| match book.host_of(address.ip(), link.host()) {
                    Some(host) => order.id_of(host),
                    None => *peers.entry(address.ip()).or_insert_with(|| peer(&mut rows, address.ip())),
                });
            let protocol = log.word(read.protocol);
            let connection = connection(link, attribution, [&client, &server], &protocol, end_hosts);
            missing = connection.figures.missing_bytes.into_iter().fold(missing, u64::saturating_add);
            connections.push(connection);
            limits.extend(client.limit_row(id, true));
            limits.extend(server.limit_row(id, false));
            let (first, behind) = read.messages;
            parts.push(first as usize..behind as usize);
            of_streams.push(read.streams);
        }
        drop(all_read);
        let streams = streams.placed(of_streams);
        streams.check()?;
        read.check()?;
        drop((links, read));
        let messages = log.read(parts);
        let connection_of = connections_of(&attribution, jvm.len());
        drop(attribution);
        losses.lost("", LossKind::NeverCaptured, missing);
        let by_inference = roles::infer(&messages, &connections, &listening, &mut processes.rows);
        if !by_inference.is_empty() {
            let names = by_inference.iter().map(|process| {
                let row = &processes.rows[process.index()];
                format!("{} {} of {}", row.role, row.pid, rows[row.host.index()].name)
            });
            let names = names.collect::<Vec<_>>().join(", ");
            notes.push(format!("roles that nobody told, inferred from what the processes asked and answered: {names}"));
        }
        inference::attempts_of_processes(&messages, &connections, &mut processes.rows);
        let (hops, upstream) = pipelines::number_hops(&messages, &connections, &processes.rows);
        inference::clients(&messages, (&hops, &upstream), &mut connections, &processes.rows);
        drop(upstream);
        let messages = in_order(messages, &hops, span, &connections, &processes)?;
        drop(hops);
        let finder = Finder::new(&messages)?;
        let (mut spans, mut steps, mut of_tasks) = (Spans::default(), Vec::new(), TaskEvents::default());
        let rows_of = |number: usize, _, event: JvmEvent| {
            let connection = connection_of.get(number).checked_sub(1).map(ConnectionId);
            let of_span = spans::of(&event, connection, &finder);
            let of_step = steps::of(&event, connection, &finder);
            // What others say stands in spans and steps.
            let is_of_task = matches!(event.record, JvmRecord::Phase { .. } | JvmRecord::Work { .. });
            (
                of_span.filter(|row| span.meets(row.begin_ns, row.end_ns)),
                of_step.filter(|row| span.meets(row.begin_ns, row.end_ns)),
                is_of_task.then_some(event),
            )
        };
        jvm.look(rows_of, |(of_span, of_step, of_task)| {
            spans.extend(of_span);
            steps.extend(of_step);
            of_task.iter().for_each(|event| of_tasks.push(event));
        });
        turns::leave_out_other_waits(&mut steps);
        steps::order(&mut steps);
        of_tasks.settle();
        finder.check()?;
        drop(finder);
        jvm.check().and(connection_of.check())?;
        drop(jvm);
        messages.check().and(spans.check()).and(connections.check())?;
        losses.lost("", LossKind::NamesLeftOut, messages.names_left_out() + spans.names_left_out());
        let clocks = Clocks {
            hosts: host_clocks(&rows, &alignment, order),
            reference: hosts[alignment.reference].name.clone(),
            apart: apart(hosts, &alignment),
            jumps: alignment.jumps.iter().map(|jump| (hosts[jump.host].name.clone(), jump.clone())).collect(),
            contradicting: alignment.contradicting,
            compared: alignment.compared,
            early: alignment.early,
            worst_ns: alignment.worst_ns,
            early_segments: early,
        };
        let joined = Joined {
            hosts: rows,
            processes: processes.rows,
            connections,
            limits,
            messages,
            spans,
            steps,
            streams,
            jvm: of_tasks,
            threads,
            histories,
            losses,
            full_uplinks: Vec::new(),
            window_ns,
        };
        Ok(Merged { joined, notes, packets, clocks, network: NetworkEstimate::default() })
    }
}

/// Processes that listen for others, as scans say.
pub(crate) fn listening(hosts: &[HostCapture], processes: &Processes) -> BTreeSet<ProcessId> {
    let of_host = |(number, host): (usize, &HostCapture)| {
        let owners = host.sockets.iter().filter_map(|record| match record {
            SocketRecord::Listen { owner, .. } => processes.owner(number, owner),
            _ => None,
        });
        owners.collect::<BTreeSet<ProcessId>>()
    };
    hosts.par_iter().enumerate().map(of_host).reduce(BTreeSet::new, |mut all, mut of_host| {
        all.append(&mut of_host);
        all
    })
}

fn host_rows(hosts: &[HostCapture], alignment: &Alignment, order: &Order, start_ns: u64) -> Vec<HostRow> {
    let mut rows: Vec<HostRow> = hosts
        .iter()
        .enumerate()
        .map(|(number, host)| {
            let map = alignment.maps[number];
            let start = i64::try_from(start_ns).unwrap_or(i64::MAX);
            HostRow {
                host: order.id_of(number),
                name: host.name.clone(),
                addresses: host.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
                rack: host.rack.clone(),
                captured: true,
                clock_offset_ns: map.delta_ns(start).round() as i64,
                // The map leads from the host's clock to the reference: what the reference gains.
                clock_drift_ppb: (-map.rate * 1e9).round() as i64,
            }
        })
        .collect();
    rows.sort_by_key(|row| row.host);
    rows
}

fn host_clocks(rows: &[HostRow], alignment: &Alignment, order: &Order) -> Vec<HostClock> {
    let mut clocks: Vec<HostClock> = rows
        .iter()
        .map(|row| HostClock {
            host: row.name.clone(),
            offset_ns: row.clock_offset_ns,
            drift_ppm: row.clock_drift_ppb as f64 / 1e3,
            uncertainty_ns: 0,
        })
        .collect();
    for (number, uncertainty) in alignment.uncertainty_ns.iter().enumerate() {
        clocks[order.id_of(number).index()].uncertainty_ns = uncertainty.ceil() as u64;
    }
    clocks
}

/// Adds the row of a host that is only known as a peer.
fn peer(rows: &mut Vec<HostRow>, address: IpAddr) -> HostId {
    let host = HostId(rows.len() as u32);
    rows.push(HostRow {
        host,
        name: address.to_string(),
        addresses: address.to_string(),
        rack: String::new(),
        captured: false,
        clock_offset_ns: 0,
        clock_drift_ppb: 0,
    });
    host
}

/// A connection with whose it is, and what was read of it.
fn connection<'w>(
    link: &ObservedConnection,
    attribution: &Attribution,
    directions: [&ReadDirection; 2],
    protocol: &'w str,
    [client_host, server_host]: [HostId; 2],
) -> Connection<'w> {
    let [client, server] = attribution.ends;
    let evidence = |end: End| end.evidence.unwrap_or(OwnerEvidence::Unknown);
    let ends = Ends {
        client_host,
        server_host,
        client_process: client.process,
        client_evidence: evidence(client),
        server_process: server.process,
        server_evidence: evidence(server),
        first_ns: link.first_ns,
        syn_seen: link.syn_seen,
        loopback: client_host == server_host,
    };
    let figures = Figures {
        last_ns: link.last_ns,
        end_seen: link.end_seen,
        bytes: directions.map(|direction| direction.seen),
        missing_bytes: directions.map(|direction| direction.end - direction.seen),
        retransmitted_bytes: directions.map(|direction| direction.retransmitted),
        kernel_bytes: directions.map(|direction| direction.kernel_bytes),
        handshake_ns: link.handshake_ns,
    };
    Connection { ends, client: link.client(), server: link.server(), protocol, figures }
}

/// Memory that the connections of events of JVMs take at most, bytes.
const CONNECTIONS_BYTES: usize = 512 << 10;

/// By event of JVMs one more than the number of its connection; 0 = it is not known.
fn connections_of(attribution: &[Attribution], events: usize) -> SharedList<u32> {
    let mut connection_of = SharedList::blank(events, CONNECTIONS_BYTES);
    for (connection, attribution) in (1..).zip(attribution) {
        for (number, _) in attribution.records.iter() {
            connection_of.change(number, |known| *known = connection);
        }
    }
    connection_of
}

/// The messages that are wanted, in order, with their hops and the attempts of those who sent them.
fn in_order(
    messages: ReadMessages,
    hops: &Hops,
    span: Span,
    connections: &Connections,
    processes: &Processes,
) -> io::Result<Messages> {
    let wanted = |message: &MessageRecord| span.meets(message.sent_ns, message.delivered_ns);
    messages.in_order(wanted, |words| {
        let write = words.number_of(pipelines::WRITE);
        let attempts = processes.rows.iter().map(|row| row.attempt.as_deref().map(|it| words.number_of(it)));
        let attempts: Vec<Option<u32>> = attempts.collect();
        move |message: &mut MessageRecord| {
            if message.name == write {
                message.hop = hops.get(&(message.connection, message.call)).copied();
            }
            let client = connections[message.connection].client_process;
            message.attempt = message.attempt.or_else(|| client.and_then(|process| attempts[process.index()]));
        }
    })
}

/// Hosts that share no packets with the reference.
fn apart(hosts: &[HostCapture], alignment: &Alignment) -> Vec<String> {
    let apart = alignment.apart.iter().filter(|&&host| host != alignment.reference);
    apart.map(|&host| hosts[host].name.clone()).collect()
}
