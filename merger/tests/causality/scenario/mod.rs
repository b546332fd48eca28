//! Joined captures made by hand: hosts, processes, connections and messages, a line each.
#![allow(dead_code, clippy::too_many_arguments, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::SocketAddr;

use merger::causality::{Causal, build};
use merger::compact::{Connection, Ends, Figures};
use merger::joined::{Joined, JvmEvent, Segment, Stream, ThreadStart};
use trace::ids::{ConnectionId, EventId, HostId, MessageId, ProcessId};
use trace::jvm::JvmRecord;
use trace::rows::{
    DependencyRow, EventRow, HostRow, MessageKind, MessageRow, OwnerEvidence, ProcessRow, SpanRow, StepKind, StepRow,
    Trace,
};

/// Nanoseconds in a millisecond.
pub const MS: u64 = 1_000_000;
/// What a message takes from host to host in these scenarios.
pub const WAY: u64 = MS / 5;

/// A scenario under construction. Times are nanoseconds from its start.
#[derive(Default)]
pub struct Scenario {
    pub joined: Joined,
    pub captures: Vec<std::path::PathBuf>,
    spans: Vec<(SpanRow, Option<usize>, Option<usize>)>,
    messages: Vec<MessageRow>,
    /// By connection: from the client, from the server.
    streams: Vec<[Stream; 2]>,
    pub steps: Vec<(StepRow, usize)>,
}

impl Scenario {
    pub fn host(&mut self, name: &str) -> HostId {
        let host = HostId(self.joined.hosts.len() as u32);
        self.joined.hosts.push(HostRow {
            host,
            name: name.into(),
            addresses: format!("10.0.0.{}", host.0 + 1),
            rack: String::new(),
            captured: true,
            clock_offset_ns: 0,
            clock_drift_ppb: 0,
        });
        host
    }

    pub fn process(&mut self, host: HostId, role: &str, seen: (u64, u64)) -> ProcessId {
        let process = ProcessId(self.joined.processes.len() as u32);
        self.joined.processes.push(ProcessRow {
            process,
            host,
            pid: 100 + process.0,
            start_ticks: 1,
            role: role.into(),
            main: role.into(),
            hadoop: true,
            attempt: None,
            container: None,
            first_seen_ns: seen.0,
            last_seen_ns: seen.1,
        });
        process
    }

    pub fn connect(&mut self, client: ProcessId, server: ProcessId, protocol: &str) -> ConnectionId {
        let connection = ConnectionId(self.joined.connections.len() as u32);
        let hosts = [client, server].map(|process| self.joined.processes[process.index()].host);
        let ends = Ends {
            client_host: hosts[0],
            server_host: hosts[1],
            client_process: Some(client),
            client_evidence: OwnerEvidence::Jvm,
            server_process: Some(server),
            server_evidence: OwnerEvidence::Jvm,
            first_ns: 0,
            syn_seen: false,
            loopback: hosts[0] == hosts[1],
        };
        let address = |host: HostId, port: u32| SocketAddr::from(([10, 0, 0, host.0 as u8 + 1], port as u16));
        self.joined.connections.push(Connection {
            ends,
            client: address(hosts[0], 40_000 + connection.0),
            server: address(hosts[1], 9000),
            protocol,
            figures: Figures::default(),
        });
        self.streams.push(<[Stream; 2]>::default());
        connection
    }

    /// A message in one segment. Returns its number in order of adding.
    pub fn message(
        &mut self,
        connection: ConnectionId,
        from_client: bool,
        kind: MessageKind,
        name: &str,
        call: i64,
        bytes: u64,
        sent: u64,
    ) -> usize {
        let way = if self.joined.connections[connection].loopback { 0 } else { WAY };
        let segment = Segment { bytes: bytes as u32, sent_ns: sent, delivered_ns: sent + way, ..Segment::default() };
        self.stream(connection, from_client, kind, name, call, &[segment])
    }

    /// A message in several segments, whose offsets follow on what was sent before.
    pub fn stream(
        &mut self,
        connection: ConnectionId,
        from_client: bool,
        kind: MessageKind,
        name: &str,
        call: i64,
        segments: &[Segment],
    ) -> usize {
        let stream = &mut self.streams[connection.index()][usize::from(!from_client)];
        let offset = stream.segments.last().map_or(0, |last| last.offset + u64::from(last.bytes));
        let mut end = offset;
        for segment in segments {
            stream.segments.push(Segment { offset: end, ..*segment });
            end += u64::from(segment.bytes);
        }
        self.messages.push(MessageRow {
            message: MessageId(0),
            connection,
            from_client,
            kind,
            name: name.into(),
            call,
            offset,
            bytes: end - offset,
            app_bytes: end - offset,
            sent_ns: segments.first().unwrap().sent_ns,
            sent_end_ns: segments.last().unwrap().sent_ns,
            delivered_ns: segments.iter().map(|segment| segment.delivered_ns).max().unwrap(),
            block: None,
            attempt: None,
            map: None,
            reduce: None,
            hop: None,
            unread_bytes: None,
            evidence: "framing".into(),
        });
        self.messages.len() - 1
    }

    pub fn edit(&mut self, message: usize) -> &mut MessageRow {
        &mut self.messages[message]
    }

    /// An RPC: request at `sent`, response after `service`. With a thread, both sides say so. Returns request,
    /// response, and when the response had arrived.
    pub fn rpc(
        &mut self,
        connection: ConnectionId,
        method: &str,
        call: i64,
        sent: u64,
        service: u64,
        thread: Option<u64>,
    ) -> (usize, usize, u64) {
        let request = self.message(connection, true, MessageKind::RpcRequest, method, call, 200, sent);
        let got = self.messages[request].delivered_ns;
        let response = self.message(connection, false, MessageKind::RpcResponse, method, call, 100, got + service);
        let back = self.messages[response].delivered_ns;
        if let Some(thread) = thread {
            let [client, server] = self.joined.connections.processes(connection).map(Option::unwrap);
            self.span(client, thread, "call", method, (sent, back), Some(request), Some(response));
            self.span(server, 900, "rpc", method, (got, got + service), Some(request), Some(response));
        }
        (request, response, back)
    }

    pub fn span(
        &mut self,
        process: ProcessId,
        thread: u64,
        kind: &str,
        name: &str,
        at: (u64, u64),
        request: Option<usize>,
        response: Option<usize>,
    ) {
        let row = SpanRow {
            process,
            thread,
            kind: kind.into(),
            name: name.into(),
            connection: None,
            request: None,
            response: None,
            received_ns: at.0,
            begin_ns: at.0,
            end_ns: at.1,
        };
        self.spans.push((row, request, response));
    }

    /// Tells of a message's data that each part of `bytes` took `work_ns` of a process.
    pub fn steps(&mut self, message: usize, process: ProcessId, kind: StepKind, bytes: u64, work_ns: u64) {
        let app_bytes = self.messages[message].app_bytes;
        for offset in (0..app_bytes).step_by(bytes as usize) {
            let row = StepRow {
                message: MessageId(0),
                process,
                thread: 1,
                kind,
                first_byte: offset,
                bytes: bytes.min(app_bytes - offset),
                begin_ns: self.messages[message].sent_ns + offset,
                end_ns: self.messages[message].sent_ns + offset + work_ns,
                work_ns,
                read_wait_ns: 0,
                write_wait_ns: 0,
                disk_ns: 0,
                sync_ns: 0,
                checksum_ns: 0,
                cpu_ns: None,
                ready_ns: None,
            };
            self.steps.push((row, message));
        }
    }

    /// Tells of a message's steps that each waited so long for bytes.
    pub fn waits(&mut self, message: usize, read_wait_ns: u64) {
        for (step, _) in self.steps.iter_mut().filter(|(_, of)| *of == message) {
            step.read_wait_ns = read_wait_ns;
        }
    }

    pub fn jvm(&mut self, process: ProcessId, record: JvmRecord) {
        match record {
            JvmRecord::Thread { t, th, child, .. } => {
                self.joined.threads.push(ThreadStart { process, at_ns: t, by: th, child });
            }
            record => self.joined.jvm.push(&JvmEvent { process, record }),
        }
    }

    /// Numbers messages in order of time and tells the causes.
    pub fn build(mut self) -> Inferred {
        let mut order: Vec<usize> = (0..self.messages.len()).collect();
        order.sort_by_key(|number| (self.messages[*number].sent_ns, *number));
        let mut ids = vec![MessageId(0); order.len()];
        for (id, number) in order.iter().enumerate() {
            ids[*number] = MessageId(id as u32);
            let row = MessageRow { message: MessageId(id as u32), ..self.messages[*number].clone() };
            self.joined.messages.push(&row);
        }
        let id = |number: Option<usize>| number.map(|number| ids[number]);
        for (row, request, response) in &self.spans {
            self.joined.spans.push(&SpanRow { request: id(*request), response: id(*response), ..row.clone() });
        }
        let steps = self.steps.iter().map(|(row, message)| StepRow { message: ids[*message], ..row.clone() });
        self.joined.steps = steps.collect();
        self.joined.steps.sort_by_key(|row| (row.message, row.kind as u8, row.begin_ns));
        self.joined.window_ns = (0, self.messages.iter().map(|message| message.delivered_ns).max().unwrap_or(0));
        self.joined.histories = merger::history::read(&self.captures).unwrap();
        self.joined.streams = self.streams.iter().collect();
        let causal = build(&self.joined).unwrap();
        Inferred { joined: self.joined, causal, ids }
    }
}

/// A scenario and its causes.
pub struct Inferred {
    pub joined: Joined,
    pub causal: Causal,
    ids: Vec<MessageId>,
}

impl Inferred {
    /// All of it as a trace.
    pub fn trace(&self) -> Trace {
        let (joined, causal) = (self.joined.clone(), self.causal.clone());
        Trace {
            hosts: joined.hosts,
            processes: joined.processes,
            connections: joined.connections.rows().collect(),
            messages: joined.messages.iter().map(MessageRow::from).collect(),
            spans: joined.spans.iter().map(SpanRow::from).collect(),
            steps: joined.steps,
            events: causal.events,
            dependencies: causal.dependencies,
            timers: causal.timers,
            tasks: causal.tasks,
            jobs: causal.jobs,
            ..Trace::default()
        }
    }

    /// The events of a message.
    pub fn pieces(&self, message: usize) -> Vec<&EventRow> {
        self.causal.events.iter().filter(|event| event.message == Some(self.ids[message])).collect()
    }

    pub fn first(&self, message: usize) -> &EventRow {
        self.pieces(message)[0]
    }

    pub fn mark(&self, name: &str) -> &EventRow {
        self.causal.events.iter().find(|event| event.name == name).unwrap_or_else(|| panic!("no mark {name}"))
    }

    pub fn causes(&self, event: EventId) -> Vec<&DependencyRow> {
        self.causal.dependencies.iter().filter(|row| row.event == event).collect()
    }

    /// Whether a message waits for a piece of another, and how.
    pub fn edge(&self, message: usize, on: usize) -> Option<&DependencyRow> {
        let pieces: Vec<EventId> = self.pieces(on).iter().map(|event| event.event).collect();
        self.causes(self.first(message).event).into_iter().find(|row| pieces.contains(&row.on_event))
    }
}
