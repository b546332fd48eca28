//! Rows of what was read: hosts, connections, messages.

use std::collections::BTreeSet;
use std::io;

use trace::ids::{ConnectionId, HostId, ProcessId};
use trace::jvm::JvmRecord;
use trace::manifest::NetworkEstimate;
use trace::rows::{ConnectionRow, HostRow, OwnerEvidence};
use trace::socket::SocketRecord;

use crate::capture::HostCapture;
use crate::clock::Alignment;
use crate::compact::{MessageLog, MessageRecord, Messages, ReadMessages, Spans};
use crate::framing::Draft;
use crate::history::Histories;
use crate::inference;
use crate::join::{AddressBook, Early, ObservedConnection};
use crate::joined::{Joined, JvmEvent, LimitRows, Stream, ThreadStarts};
use crate::jvm_events::JvmEvents;
use crate::loss::{Loss, LossKind, Note as _};
use crate::merged::{Clocks, HostClock, Merged};
use crate::network::{self, FullTimes, Links};
use crate::owners::Attribution;
use crate::packed_stream::PackedStream;
use crate::pipelines::{self, Hops};
use crate::processes::Processes;
use crate::read_connection::{Read, ReadDirection};
use crate::roles;
use crate::spans::{self, Finder};
use crate::spilled::{Record as _, Sorter};
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
        attempt: draft.attempt.map(|attempt| words.number_of(&attempt)),
        map: draft.map.map(|map| words.number_of(&map)),
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
        (read, streams, log): (Sorter<Read>, Vec<[PackedStream; 2]>, MessageLog),
    ) -> io::Result<Merged> {
        let Self { hosts, histories, alignment, order, mut processes, book, jvm, threads, packets, span } = self;
        let window_ns = (
            links.iter().map(|link| link.first_ns).min().unwrap_or(0),
            links.iter().map(|link| link.last_ns).max().unwrap_or(0),
        );
        let window_ns = span.part_of(window_ns);
        let mut rows = host_rows(hosts, &alignment, order, window_ns.0);
        let mut connections = Vec::with_capacity(links.len());
        let mut limits = LimitRows::default();
        let mut parts = Vec::with_capacity(links.len());
        let mut losses: Vec<Loss> = hosts.iter().flat_map(|host| host.losses.clone()).collect();
        let mut notes: Vec<String> = hosts.iter().flat_map(|host| host.notes.clone()).collect();
        let mut early = Early::default();
        let read = read.sorted()?;
        let mut all_read = read.iter().peekable();
        for (id, (link, attribution)) in (0..).map(ConnectionId).zip(links.iter().zip(&attribution)) {
            let read = all_read.next_if(|read| read.connection == id).unwrap_or(Read::BLANK);
            let [client, server] = read.directions;
            early.add(&client.early);
            early.add(&server.early);
            let end_hosts = [link.client, link.server].map(|address| match book.host_of(address.ip(), link.host) {
                Some(host) => order.id_of(host),
                None => peer(&mut rows, address.ip().to_string()),
            });
            connections.push(connection_row(
                id,
                link,
                attribution,
                &client,
                &server,
                log.word(read.protocol),
                end_hosts,
            ));
            limits.extend(client.limit_row(id, true));
            limits.extend(server.limit_row(id, false));
            let (first, behind) = read.messages;
            parts.push(first as usize..behind as usize);
        }
        drop(all_read);
        read.check()?;
        drop((links, read));
        let messages = log.read(parts);
        let connection_of = connections_of(&attribution, jvm.len());
        drop(attribution);
        let missing = connections.iter().map(|row| row.client_missing_bytes.saturating_add(row.server_missing_bytes));
        losses.lost("", LossKind::NeverCaptured, missing.fold(0, u64::saturating_add));
        let by_inference = roles::infer(&messages, &connections, &listening(hosts, &processes), &mut processes.rows);
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
        let finder = Finder::new(&messages);
        let (mut spans, mut steps, mut of_tasks) = (Spans::default(), Vec::new(), Vec::new());
        let rows_of = |number: usize, _, event: JvmEvent| {
            let connection = Some(connection_of[number]).filter(|id| *id != u32::MAX).map(ConnectionId);
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
            of_tasks.extend(of_task);
        });
        turns::leave_out_other_waits(&mut steps);
        steps::order(&mut steps);
        drop(finder);
        jvm.check()?;
        drop(jvm);
        messages.check().and(spans.check())?;
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
fn listening(hosts: &[HostCapture], processes: &Processes) -> BTreeSet<ProcessId> {
    let of_host = |(number, host): (usize, &HostCapture)| {
        let listeners = host.sockets.iter().filter_map(move |record| match record {
            SocketRecord::Listen { owner, .. } => processes.owner(number, owner),
            _ => None,
        });
        listeners.collect::<Vec<_>>()
    };
    hosts.iter().enumerate().flat_map(of_host).collect()
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

/// The row of a host that is only known as a peer.
fn peer(rows: &mut Vec<HostRow>, address: String) -> HostId {
    if let Some(row) = rows.iter().find(|row| !row.captured && row.addresses == address) {
        return row.host;
    }
    let host = HostId(rows.len() as u32);
    rows.push(HostRow {
        host,
        name: address.clone(),
        addresses: address,
        rack: String::new(),
        captured: false,
        clock_offset_ns: 0,
        clock_drift_ppb: 0,
    });
    host
}

fn connection_row(
    id: ConnectionId,
    link: &ObservedConnection,
    attribution: &Attribution,
    client: &ReadDirection,
    server: &ReadDirection,
    protocol: String,
    [client_host, server_host]: [HostId; 2],
) -> ConnectionRow {
    let [at_client, at_server] = &attribution.ends;
    ConnectionRow {
        connection: id,
        client_host,
        client: link.client.to_string(),
        server_host,
        server: link.server.to_string(),
        client_process: at_client.process,
        client_evidence: at_client.evidence.unwrap_or(OwnerEvidence::Unknown),
        server_process: at_server.process,
        server_evidence: at_server.evidence.unwrap_or(OwnerEvidence::Unknown),
        protocol,
        first_ns: link.first_ns,
        last_ns: link.last_ns,
        syn_seen: link.syn_seen,
        end_seen: link.end_seen,
        loopback: client_host == server_host,
        client_bytes: client.seen,
        server_bytes: server.seen,
        client_missing_bytes: client.end - client.seen,
        server_missing_bytes: server.end - server.seen,
        client_retransmitted_bytes: client.retransmitted,
        server_retransmitted_bytes: server.retransmitted,
        client_kernel_bytes: client.kernel_bytes,
        server_kernel_bytes: server.kernel_bytes,
        handshake_ns: link.handshake_ns,
    }
}

/// The connection of each event of JVMs, where it is known.
fn connections_of(attribution: &[Attribution], events: usize) -> Vec<u32> {
    let mut connection_of = vec![u32::MAX; events];
    for (connection, attribution) in (0..).zip(attribution) {
        for (number, _) in attribution.records.iter() {
            connection_of[number] = connection;
        }
    }
    connection_of
}

/// The messages that are wanted, in order, with their hops and the attempts of those who sent them.
fn in_order(
    messages: ReadMessages,
    hops: &Hops,
    span: Span,
    connections: &[ConnectionRow],
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
            let client = connections[message.connection.index()].client_process;
            message.attempt = message.attempt.or_else(|| client.and_then(|process| attempts[process.index()]));
        }
    })
}

/// Hosts that share no packets with the reference.
fn apart(hosts: &[HostCapture], alignment: &Alignment) -> Vec<String> {
    let apart = alignment.apart.iter().filter(|&&host| host != alignment.reference);
    apart.map(|&host| hosts[host].name.clone()).collect()
}
