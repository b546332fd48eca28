//! Small traces made by hand, and a network that takes exactly as long as was recorded.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;

use netsim::network::{Delivery, FlowId, HostIndex, Network, NetworkFigures, Simulation, Token};
use netsim::time::SimTime;
use trace::ids::{ConnectionId, EventId, HostId, JobId, MessageId, ProcessId, TaskId, TimerId};
use trace::rows::{
    Carrier, ConnectionRow, DependencyRow, EventKind, EventRow, Evidence, HostRow, JobRow, MessageKind, MessageRow, On,
    OwnerEvidence, ProcessRow, TaskKind, TaskRow, TimerRow, Trace,
};

/// When the job of a trace made by hand is submitted, nanoseconds since the epoch. All other times are relative to it.
pub const SUBMIT_NS: i64 = 1_700_000_000_000_000_000;
/// A millisecond in nanoseconds.
pub const MS: i64 = 1_000_000;

fn absolute(at: i64) -> u64 {
    u64::try_from(SUBMIT_NS + at).unwrap()
}

/// Makes a trace with one job. Thinking times follow from the recorded times and the dependencies.
pub struct TraceBuilder {
    pub trace: Trace,
}

impl TraceBuilder {
    /// A trace with these hosts, a process "Worker" on each, and a job that is submitted at 0.
    pub fn new(hosts: &[&str]) -> Self {
        let mut trace = Trace::default();
        trace.manifest.version = 1;
        for (row, name) in (0u32..).zip(hosts) {
            trace.hosts.push(HostRow {
                host: HostId(row),
                name: (*name).to_owned(),
                addresses: format!("10.0.0.{}", row + 1),
                rack: format!("/r{}", row % 2 + 1),
                captured: true,
                clock_offset_ns: 0,
                clock_drift_ppb: 0,
            });
            trace.processes.push(ProcessRow {
                process: ProcessId(row),
                host: HostId(row),
                pid: 100 + row,
                start_ticks: 1,
                role: "Worker".to_owned(),
                main: "org.example.Worker".to_owned(),
                hadoop: true,
                attempt: None,
                container: None,
                first_seen_ns: absolute(0),
                last_seen_ns: absolute(0),
            });
        }
        let mut builder = Self { trace };
        builder.job("job_1_0001", 0, 0, Some(0));
        builder.mark("job.submit", 0, 0);
        builder
    }

    /// Another job.
    pub fn job(&mut self, id: &str, submit: i64, finish: i64, shuffle_bytes: Option<u64>) -> JobId {
        let job = JobId(u32::try_from(self.trace.jobs.len()).unwrap());
        self.trace.jobs.push(JobRow {
            job,
            id: id.to_owned(),
            name: "test".to_owned(),
            submit_ns: absolute(submit),
            launch_ns: absolute(submit),
            finish_ns: absolute(finish),
            maps: 0,
            reduces: 0,
            shuffle_bytes,
            hdfs_bytes_read: None,
            hdfs_bytes_written: None,
            split_hosts: None,
            input_hosts: None,
            succeeded: true,
        });
        job
    }

    fn event(&mut self, row: EventRow) -> EventId {
        let event = EventId(u32::try_from(self.trace.events.len()).unwrap());
        self.trace.events.push(EventRow { event, ..row });
        event
    }

    /// A mark in the process of a host.
    pub fn mark(&mut self, name: &str, host: u32, at: i64) -> EventId {
        if name == "job.finish" {
            self.trace.jobs.last_mut().unwrap().finish_ns = absolute(at);
        }
        self.event(EventRow {
            event: EventId(0),
            kind: EventKind::Mark,
            name: name.to_owned(),
            process: Some(ProcessId(host)),
            message: None,
            connection: None,
            from_client: false,
            bytes: 0,
            recorded_ns: absolute(at),
            recorded_delivered_ns: absolute(at),
            delay_ns: 0,
            task: None,
            timer: None,
            beat: None,
        })
    }

    /// A mark of a task.
    pub fn task_mark(&mut self, name: &str, task: TaskId, at: i64) -> EventId {
        let host = self.trace.tasks[task.index()].host.unwrap().0;
        let event = self.mark(name, host, at);
        self.trace.events[event.index()].task = Some(task);
        event
    }

    /// A successful attempt on a host.
    pub fn task(&mut self, kind: TaskKind, host: u32, start: i64, finish: i64) -> TaskId {
        let task = TaskId(u32::try_from(self.trace.tasks.len()).unwrap());
        self.trace.tasks.push(TaskRow {
            task,
            job: JobId(0),
            attempt: format!("attempt_1_0001_{}_{task}_0", if kind == TaskKind::Map { "m" } else { "r" }),
            kind,
            host: Some(HostId(host)),
            process: Some(ProcessId(host)),
            start_ns: absolute(start),
            shuffle_end_ns: None,
            sort_end_ns: None,
            finish_ns: absolute(finish),
            succeeded: true,
        });
        task
    }

    /// A connection from the process of one host to that of another, opened long before the job.
    pub fn connection(&mut self, client: u32, server: u32) -> ConnectionId {
        let connection = ConnectionId(u32::try_from(self.trace.connections.len()).unwrap());
        self.trace.connections.push(ConnectionRow {
            connection,
            client_host: HostId(client),
            client: format!("10.0.0.{}:{}", client + 1, 40_000 + connection.0),
            server_host: HostId(server),
            server: format!("10.0.0.{}:8020", server + 1),
            client_process: Some(ProcessId(client)),
            client_evidence: OwnerEvidence::Jvm,
            server_process: Some(ProcessId(server)),
            server_evidence: OwnerEvidence::Jvm,
            protocol: "rpc".to_owned(),
            first_ns: absolute(-1_000_000 * MS),
            last_ns: absolute(1_000_000 * MS),
            syn_seen: true,
            end_seen: false,
            loopback: client == server,
            client_bytes: 0,
            server_bytes: 0,
            client_missing_bytes: 0,
            server_missing_bytes: 0,
            client_retransmitted_bytes: 0,
            server_retransmitted_bytes: 0,
            client_kernel_bytes: None,
            server_kernel_bytes: None,
            handshake_ns: None,
        });
        connection
    }

    /// A send that is a message of its own.
    pub fn send(
        &mut self,
        connection: ConnectionId,
        from_client: bool,
        bytes: u64,
        sent: i64,
        delivered: i64,
    ) -> EventId {
        let message = MessageId(u32::try_from(self.trace.messages.len()).unwrap());
        let kind = if from_client { MessageKind::RpcRequest } else { MessageKind::RpcResponse };
        self.trace.messages.push(MessageRow {
            message,
            connection,
            from_client,
            kind,
            name: "call".to_owned(),
            call: 0,
            offset: 0,
            bytes,
            app_bytes: 0,
            sent_ns: absolute(sent),
            sent_end_ns: absolute(sent),
            delivered_ns: absolute(delivered),
            block: None,
            attempt: None,
            map: None,
            reduce: None,
            hop: None,
            unread_bytes: None,
            evidence: "framing".to_owned(),
        });
        let row = &self.trace.connections[connection.index()];
        let process = if from_client { row.client_process } else { row.server_process };
        self.event(EventRow {
            event: EventId(0),
            kind: EventKind::Send,
            name: String::new(),
            process,
            message: Some(message),
            connection: Some(connection),
            from_client,
            bytes,
            recorded_ns: absolute(sent),
            recorded_delivered_ns: absolute(delivered),
            delay_ns: 0,
            task: None,
            timer: None,
            beat: None,
        })
    }

    /// `event` waits for this moment of `on_event`.
    pub fn after(&mut self, event: EventId, on_event: EventId, on: On) {
        self.depend(event, on_event, on, None, Evidence::CallId);
    }

    /// As [`Self::after`], with evidence.
    pub fn after_by(&mut self, event: EventId, on_event: EventId, on: On, evidence: Evidence) {
        self.depend(event, on_event, on, None, evidence);
    }

    /// `event` waits for news of this moment of `on_event`, which travels by a timer.
    pub fn piggybacked(&mut self, event: EventId, on_event: EventId, on: On, timer: TimerId, carrier: Carrier) {
        self.depend(event, on_event, on, Some((timer, carrier)), Evidence::Protocol);
    }

    fn depend(
        &mut self,
        event: EventId,
        on_event: EventId,
        on: On,
        timer: Option<(TimerId, Carrier)>,
        evidence: Evidence,
    ) {
        let (timer, carrier) = timer.unzip();
        self.trace.dependencies.push(DependencyRow { event, on_event, on, timer, carrier, evidence });
    }

    /// A timer whose process and connection are those of `connection`'s client. Requests have 200 bytes, responses 100.
    pub fn timer(&mut self, name: &str, connection: ConnectionId, pause: i64, service: i64) -> TimerId {
        let timer = TimerId(u32::try_from(self.trace.timers.len()).unwrap());
        self.trace.timers.push(TimerRow {
            timer,
            name: name.to_owned(),
            process: self.trace.connections[connection.index()].client_process,
            connection,
            pause_ns: u64::try_from(pause).unwrap(),
            service_ns: u64::try_from(service).unwrap(),
            request_bytes: 200,
            response_bytes: 100,
            beats: 0,
        });
        timer
    }

    /// Recorded beats: requests at `start`, `start + period`, ...; each half takes `transfer`.
    pub fn heartbeats(
        &mut self,
        timer: TimerId,
        start: i64,
        period: i64,
        count: u32,
        transfer: i64,
    ) -> Vec<[EventId; 2]> {
        let connection = self.trace.timers[timer.index()].connection;
        let service = i64::try_from(self.trace.timers[timer.index()].service_ns).unwrap();
        let mut heartbeats: Vec<[EventId; 2]> = Vec::new();
        for number in 0..count {
            let sent = start + period * i64::from(number);
            let answered = sent + transfer + service;
            let request = self.send(connection, true, 200, sent, sent + transfer);
            let response = self.send(connection, false, 100, answered, answered + transfer);
            for event in [request, response] {
                self.trace.events[event.index()].timer = Some(timer);
                self.trace.events[event.index()].beat = Some(number);
            }
            self.after(response, request, On::Delivered);
            if let Some([_, before]) = heartbeats.last() {
                self.after_by(request, *before, On::Delivered, Evidence::Timer);
            }
            heartbeats.push([request, response]);
        }
        heartbeats
    }

    /// Works out the thinking times by the definition of the tables, and hands out the trace.
    pub fn build(mut self) -> Trace {
        for row in 0..self.trace.events.len() {
            let event = EventId(u32::try_from(row).unwrap());
            let causes = self.trace.dependencies.iter().filter(|dependency| dependency.event == event);
            let latest = causes.map(|dependency| self.recorded_yield(dependency)).max();
            let recorded_ns = self.trace.events[row].recorded_ns;
            self.trace.events[row].delay_ns =
                latest.map_or(0, |latest| recorded_ns.checked_sub(latest).expect("an event before its cause"));
        }
        self.trace
    }

    fn recorded_yield(&self, dependency: &DependencyRow) -> u64 {
        let on = &self.trace.events[dependency.on_event.index()];
        let piggybacked = if dependency.on == On::Sent { on.recorded_ns } else { on.recorded_delivered_ns };
        let Some(timer) = dependency.timer else { return piggybacked };
        let half = dependency.carrier.unwrap();
        self.trace
            .events
            .iter()
            .filter(|event| event.timer == Some(timer) && event.from_client == (half == Carrier::Request))
            .filter(|event| event.recorded_ns >= piggybacked)
            .min_by_key(|event| event.recorded_ns)
            .expect("no recorded beat carries this news")
            .recorded_delivered_ns
    }
}

/// A network in which every recorded send takes exactly as long as it was recorded, and any other `otherwise_ps`.
pub struct RecordedNetwork {
    hosts: u32,
    delays_ps: HashMap<u64, u64>,
    otherwise_ps: u64,
    flows: u32,
    under_way: std::collections::BTreeSet<(SimTime, Token)>,
}

impl RecordedNetwork {
    pub fn of(trace: &Trace, otherwise_ps: u64) -> Self {
        let delay = |event: &EventRow| (event.recorded_delivered_ns - event.recorded_ns) * 1_000;
        Self {
            hosts: u32::try_from(trace.hosts.len()).unwrap(),
            delays_ps: trace.events.iter().map(|event| (u64::from(event.event.0), delay(event))).collect(),
            otherwise_ps,
            flows: 0,
            under_way: std::collections::BTreeSet::new(),
        }
    }
}

impl Simulation for RecordedNetwork {
    fn hosts(&self) -> u32 {
        self.hosts
    }

    fn next_event(&self) -> Option<SimTime> {
        self.under_way.first().map(|(at, _)| *at)
    }

    fn advance(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> SimTime {
        let Some(instant) = self.next_event().filter(|at| *at <= until) else { return until };
        while let Some((at, token)) = self.under_way.first().copied().filter(|(at, _)| *at == instant) {
            self.under_way.pop_first();
            deliveries.push(Delivery { token, at });
        }
        instant
    }

    fn figures(&self) -> NetworkFigures {
        NetworkFigures::default()
    }
}

impl Network for RecordedNetwork {
    fn open_flow(&mut self, _source: HostIndex, _destination: HostIndex) -> FlowId {
        self.flows += 1;
        FlowId(self.flows - 1)
    }

    fn send(&mut self, now: SimTime, _flow: FlowId, _bytes: u64, token: Token) {
        let delay_ps = self.delays_ps.get(&token.0).copied().unwrap_or(self.otherwise_ps);
        self.under_way.insert((now.plus_ps(delay_ps), token));
    }
}

/// A small MapReduce job over two racks: reads, a map each, a shuffle from each map to each reduce, a write, and an
/// application master that learns of it by heartbeats. Times follow a fixed rule at about 100 Mbit/s.
pub fn map_reduce(hosts: &[&str], maps: u32, reduces: u32) -> Trace {
    let count = u32::try_from(hosts.len()).unwrap();
    let mut builder = TraceBuilder::new(hosts);
    let transfer = |bytes: i64| bytes * 80 + MS;
    let block: i64 = 8_000_000;
    let beat = builder.connection(1 % count, 0);
    let timer = builder.timer("nodeHeartbeat", beat, 496 * MS, 2 * MS);
    builder.heartbeats(timer, -400 * MS, 500 * MS, 40, MS);
    let news_after = |at: i64| {
        let beat = (at + 400 * MS + 500 * MS - 1) / (500 * MS);
        -400 * MS + beat * 500 * MS + MS
    };
    let mut outputs = Vec::new();
    for map in 0..maps {
        let host = map % count;
        let source = (host + 1) % count;
        let start = 2_000 * MS + i64::from(map) * 30 * MS;
        let read_end = start + 200 * MS + transfer(block);
        let finish = read_end + 900 * MS;
        let task = builder.task(TaskKind::Map, host, start, finish);
        let started = builder.task_mark("task.start", task, start);
        builder.after(started, EventId(0), On::Sent);
        let connection = builder.connection(host, source);
        let request = builder.send(connection, true, 120, start + 150 * MS, start + 151 * MS);
        builder.after(request, started, On::Sent);
        let data = builder.send(connection, false, u64::try_from(block).unwrap(), start + 200 * MS, read_end);
        builder.after(data, request, On::Delivered);
        let finished = builder.task_mark("task.finish", task, finish);
        builder.after(finished, data, On::Delivered);
        outputs.push((host, finished, finish));
    }
    let part = block / i64::from(reduces.max(1));
    let mut ends = Vec::new();
    for reduce in 0..reduces {
        let host = reduce % count;
        let start = 2_500 * MS;
        let mut fetched = Vec::new();
        let task = builder.task(TaskKind::Reduce, host, start, start);
        let started = builder.task_mark("task.start", task, start);
        builder.after(started, EventId(0), On::Sent);
        let mut free_at = start;
        for (map_host, finished, finish) in &outputs {
            let sent = news_after(*finish).max(free_at) + 5 * MS;
            let connection = builder.connection(host, *map_host);
            let request = builder.send(connection, true, 300, sent, sent + MS);
            builder.piggybacked(request, *finished, On::Sent, timer, Carrier::Request);
            if let Some(last) = fetched.last() {
                builder.after(request, *last, On::Delivered);
            }
            let arrived = sent + 3 * MS + if *map_host == host { 9 * MS } else { transfer(part) };
            let data = builder.send(connection, false, u64::try_from(part).unwrap(), sent + 3 * MS, arrived);
            builder.after(data, request, On::Delivered);
            free_at = arrived;
            fetched.push(data);
        }
        let moments = [free_at + 20 * MS, free_at + 320 * MS, free_at + 1_200 * MS];
        let row = &mut builder.trace.tasks[task.index()];
        row.shuffle_end_ns = Some(absolute(moments[0]));
        row.sort_end_ns = Some(absolute(moments[1]));
        row.finish_ns = absolute(moments[2]);
        let mut before = None;
        for (name, at) in ["task.shuffle_end", "task.sort_end", "task.finish"].into_iter().zip(moments) {
            let mark = builder.task_mark(name, task, at);
            builder.after(mark, before.unwrap_or(started), On::Sent);
            if before.is_none() {
                for data in &fetched {
                    builder.after(mark, *data, On::Delivered);
                }
            }
            before = Some(mark);
        }
        ends.push((before.unwrap(), moments[2]));
    }
    let last = ends.iter().map(|(_, at)| *at).max().unwrap_or(0);
    let finish = builder.mark("job.finish", 0, news_after(last) + 40 * MS);
    for (end, _) in ends {
        builder.piggybacked(finish, end, On::Sent, timer, Carrier::Request);
    }
    builder.build()
}
