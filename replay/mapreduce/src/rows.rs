//! What happened, as the tables of a trace.

use netsim::time::SimTime;
use netsim::topology::HostPlace;
use trace::ids::{ConnectionId, EventId, HostId, JobId, MessageId, ProcessId, TaskId, TimerId};
use trace::manifest::TraceManifest;
use trace::rows::{
    ConnectionRow, DependencyRow, EventKind, EventRow, HostRow, JobRow, MessageKind, MessageRow, OwnerEvidence,
    ProcessRow, TaskKind, TaskRow, TimerRow, Trace,
};

use crate::cluster::Cluster;
use crate::kernel::{Action, StepId};
use crate::model::{Model, Task};
use crate::world::{MessageNote, Protocol};

/// Time 0 of a generated trace: 1 January 2026, 00:00 UTC.
const EPOCH_NS: u64 = 1_767_225_600_000_000_000;
/// By it job ids are made, as by the time at which a ResourceManager started.
const CLUSTER_ID: u64 = EPOCH_NS / 1_000_000;
const NONE: u32 = u32::MAX;

fn recorded_ns(at: SimTime) -> u64 {
    EPOCH_NS + at.0 / 1_000
}

/// The hosts of a cluster and their racks: `m1` with the masters, then the workers.
#[must_use]
pub fn places(cluster: &Cluster) -> Vec<HostPlace> {
    let place = |name, rack: u32| HostPlace { name, rack: format!("/r{}", rack + 1) };
    let workers = (0..cluster.nodes).map(|node| place(format!("w{}", node + 1), node % cluster.racks));
    std::iter::once(place("m1".to_owned(), 0)).chain(workers).collect()
}

fn address(HostId(host): HostId) -> String {
    let number = host + 1;
    format!("10.{}.{}.{}", number >> 16 & 0xff, number >> 8 & 0xff, number & 0xff)
}

fn job_name(app: usize) -> String {
    format!("{CLUSTER_ID}_{:04}", app + 1)
}

/// What the messages of a job carried, bytes.
#[derive(Clone, Copy, Default)]
struct Volumes {
    shuffled: u64,
    read: u64,
    /// The first copy.
    written: u64,
}

/// The rows of a trace as they are made.
struct Writing {
    model: Model,
    /// By step: the event that it is.
    event_of: Vec<u32>,
    /// By draft: the message that it is.
    message_of: Vec<u32>,
    /// By task of the model: the attempt that it is, or `NONE` if it was never started.
    task_of: Vec<u32>,
    /// By job.
    volumes: Vec<Volumes>,
    trace: Trace,
}

impl Model {
    /// All that has happened, as a causal trace. Times count from 1 January 2026.
    #[must_use]
    pub fn into_trace(self) -> Trace {
        let mut writing = Writing {
            event_of: vec![NONE; self.kernel.steps.len()],
            message_of: Vec::new(),
            task_of: Vec::new(),
            volumes: vec![Volumes::default(); self.apps.len()],
            trace: Trace::default(),
            model: self,
        };
        writing.number_tasks();
        writing.hosts_and_processes();
        writing.connections();
        writing.events();
        writing.cut_messages();
        writing.dependencies();
        writing.timers();
        writing.tasks();
        writing.jobs();
        writing.manifest();
        writing.trace
    }
}

impl Writing {
    fn happened(&self, step: Option<StepId>) -> Option<u64> {
        let step = self.model.kernel.step(step?);
        step.has_happened().then(|| recorded_ns(step.happened))
    }

    fn attempt(&self, task: TaskId) -> String {
        let state = &self.model.tasks[task.index()];
        let kind = if state.kind == TaskKind::Reduce { 'r' } else { 'm' };
        format!("attempt_{}_{kind}_{:06}_{}", job_name(state.app as usize), state.number, state.attempt)
    }

    /// Attempts that got a container and were given up before anything was started in it are none.
    fn number_tasks(&mut self) {
        let mut count = 0;
        let is_row = |task: &Task| task.attempt == 0 || self.happened(task.start).is_some();
        let number = |task: &Task| {
            let number = if is_row(task) { count } else { return NONE };
            count += 1;
            number
        };
        let numbers: Vec<u32> = self.model.tasks.iter().map(number).collect();
        self.task_of = numbers;
    }

    fn row_of(&self, task: TaskId) -> Option<TaskId> {
        Some(TaskId(self.task_of[task.index()])).filter(|TaskId(row)| *row != NONE)
    }

    /// What was sent of messages that were cut off because an attempt was killed.
    fn cut_messages(&mut self) {
        let is_killed = |task: &Task| self.happened(task.killed).is_some();
        if !self.model.tasks.iter().any(is_killed) {
            return;
        }
        let mut sent = vec![0; self.trace.messages.len()];
        for event in &self.trace.events {
            if let Some(message) = event.message {
                sent[message.index()] += event.bytes;
            }
        }
        for (message, sent) in self.trace.messages.iter_mut().zip(sent) {
            if sent < message.bytes {
                let share = sent as f64 / message.bytes as f64;
                (message.bytes, message.app_bytes) = (sent, (message.app_bytes as f64 * share) as u64);
            }
        }
    }

    fn hosts_and_processes(&mut self) {
        self.trace.hosts = (0u32..)
            .map(HostId)
            .zip(places(&self.model.file.cluster))
            .map(|(host, place)| HostRow {
                host,
                name: place.name,
                addresses: address(host),
                rack: place.rack,
                captured: true,
                clock_offset_ns: 0,
                clock_drift_ppb: 0,
            })
            .collect();
        let (first, last) = (EPOCH_NS, recorded_ns(self.model.kernel.now));
        let rows = (0u32..).map(ProcessId).zip(&self.model.world.processes).map(|(id, process)| ProcessRow {
            process: id,
            host: process.host,
            pid: 1_000 + id.0,
            start_ticks: 0,
            role: process.role.to_owned(),
            main: process.main.to_owned(),
            hadoop: true,
            attempt: process.task.map(|task| self.attempt(task)),
            container: None,
            first_seen_ns: first,
            last_seen_ns: last,
        });
        self.trace.processes = rows.collect();
    }

    fn connections(&mut self) {
        let world = &self.model.world;
        let rows = (0u32..).map(ConnectionId).zip(&world.connections).map(|(id, connection)| {
            let (client, server) = world.ends(id);
            let port = match (connection.protocol, world.processes[connection.server.index()].role) {
                (Protocol::DataTransfer, _) => 9866,
                (Protocol::Shuffle, _) => 13562,
                (Protocol::Rpc, "NameNode") => 8020,
                (Protocol::Rpc, "ResourceManager") => 8031,
                (Protocol::Rpc, "NodeManager") => 8041,
                (Protocol::Rpc, _) => 40_000,
            };
            ConnectionRow {
                connection: id,
                client_host: client,
                client: format!("{}:{}", address(client), 20_000 + id.0 % 20_000),
                server_host: server,
                server: format!("{}:{port}", address(server)),
                client_process: Some(connection.client),
                client_evidence: OwnerEvidence::Manifest,
                server_process: Some(connection.server),
                server_evidence: OwnerEvidence::Manifest,
                protocol: connection.protocol.name().to_owned(),
                first_ns: 0,
                last_ns: 0,
                syn_seen: false,
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
            }
        });
        self.trace.connections = rows.collect();
    }

    /// Events in the order in which they happened, and with them messages and what crossed connections.
    fn events(&mut self) {
        let order = std::mem::take(&mut self.model.kernel.order);
        self.trace.events.reserve_exact(order.len());
        self.trace.messages.reserve_exact(self.model.world.notes.len());
        for (number, id) in (0u32..).zip(&order) {
            self.event_of[id.0 as usize] = number;
            let step = *self.model.kernel.step(*id);
            let happened = recorded_ns(step.happened);
            let delivered =
                if step.has_arrived() { recorded_ns(step.delivered) } else { recorded_ns(self.model.kernel.now) };
            let mut row = EventRow {
                event: EventId(number),
                kind: EventKind::Mark,
                name: String::new(),
                process: Some(step.process),
                message: None,
                connection: None,
                from_client: false,
                bytes: 0,
                recorded_ns: happened,
                recorded_delivered_ns: delivered.max(happened),
                delay_ns: step.delay_ns(),
                task: step.task.and_then(|task| self.row_of(task)),
                timer: step.beat.map(|(timer, _)| timer),
                beat: step.beat.map(|(_, beat)| beat),
            };
            match step.action {
                Action::Mark(name) => name.clone_into(&mut row.name),
                Action::Send { connection, from_client, bytes, message } => {
                    (row.kind, row.connection, row.from_client, row.bytes) =
                        (EventKind::Send, Some(connection), from_client, bytes);
                    row.message = Some(self.sent(&row, message.0));
                }
            }
            self.trace.events.push(row);
        }
        self.model.kernel.order = order;
    }

    /// Notes what is sent: on its message, which begins with it or goes on, and on its connection.
    fn sent(&mut self, event: &EventRow, draft: u32) -> MessageId {
        let Some(connection) = event.connection else { return MessageId(NONE) };
        let index = draft as usize;
        if self.message_of.len() <= index {
            self.message_of.resize(index + 1, NONE);
        }
        let at = &mut self.trace.connections[connection.index()];
        if at.client_bytes + at.server_bytes == 0 {
            at.first_ns = event.recorded_ns;
        }
        at.last_ns = at.last_ns.max(event.recorded_delivered_ns);
        let offset = if event.from_client { &mut at.client_bytes } else { &mut at.server_bytes };
        let start = *offset;
        *offset += event.bytes;
        if self.message_of[index] == NONE {
            self.message_of[index] = self.trace.messages.len() as u32;
            let note = self.model.world.notes.get(index).copied().flatten();
            if let Some(note) = note {
                self.count(&note);
            }
            let row = self.message(event, connection, note, start);
            self.trace.messages.push(row);
        }
        let number = self.message_of[index];
        let message = &mut self.trace.messages[number as usize];
        message.sent_end_ns = event.recorded_ns;
        message.delivered_ns = message.delivered_ns.max(event.recorded_delivered_ns);
        MessageId(number)
    }

    /// Adds a message to what its job's messages carried.
    fn count(&mut self, note: &MessageNote) {
        let Some(task) = note.task else { return };
        if self.model.tasks[task.index()].killed.is_some() {
            return;
        }
        let volumes = &mut self.volumes[self.model.tasks[task.index()].app as usize];
        match (note.kind, note.hop) {
            (MessageKind::ShuffleResponse, _) => volumes.shuffled += note.app_bytes,
            (MessageKind::BlockData, None) => volumes.read += note.app_bytes,
            (MessageKind::BlockData, Some(1)) => volumes.written += note.app_bytes,
            _ => {}
        }
    }

    fn message(
        &self,
        event: &EventRow,
        connection: ConnectionId,
        note: Option<MessageNote>,
        offset: u64,
    ) -> MessageRow {
        let beat_kind = if event.from_client { MessageKind::RpcRequest } else { MessageKind::RpcResponse };
        let beat_name = event.timer.map_or("", |timer| self.model.kernel.timers[timer.index()].plan.name);
        let note = note.unwrap_or_else(|| MessageNote::new(beat_kind, beat_name, event.bytes));
        // Beats have numbers beyond those of calls, with which they may share a connection.
        let call = event.beat.map_or(i64::from(note.call), |beat| (1 << 32) + i64::from(beat));
        MessageRow {
            message: MessageId(self.trace.messages.len() as u32),
            connection,
            from_client: event.from_client,
            kind: note.kind,
            name: note.name.to_owned(),
            call,
            offset,
            bytes: note.bytes,
            app_bytes: note.app_bytes,
            sent_ns: event.recorded_ns,
            sent_end_ns: event.recorded_ns,
            delivered_ns: event.recorded_delivered_ns,
            block: note.block,
            attempt: note.task.map(|task| self.attempt(task)),
            map: note.map.map(|map| self.attempt(map)),
            reduce: note.reduce,
            hop: note.hop,
            unread_bytes: None,
            evidence: "framing".to_owned(),
        }
    }

    fn dependencies(&mut self) {
        let event_of = |step: StepId| self.event_of[step.0 as usize];
        let mut rows: Vec<DependencyRow> = (self.model.kernel.dependencies.iter())
            .filter(|dependency| event_of(dependency.step) != NONE && event_of(dependency.cause.on) != NONE)
            .map(|dependency| DependencyRow {
                event: EventId(event_of(dependency.step)),
                on_event: EventId(event_of(dependency.cause.on)),
                on: dependency.cause.moment,
                timer: dependency.cause.by.map(|(timer, _)| timer),
                carrier: dependency.cause.by.map(|(_, half)| half),
                evidence: dependency.cause.evidence,
            })
            .collect();
        rows.sort_by_key(|row| (row.event, row.on_event));
        self.trace.dependencies = rows;
    }

    fn timers(&mut self) {
        let rows = (0u32..).map(TimerId).zip(&self.model.kernel.timers).map(|(id, timer)| TimerRow {
            timer: id,
            name: timer.plan.name.to_owned(),
            process: Some(timer.plan.process),
            connection: timer.plan.connection,
            pause_ns: timer.plan.pause_ps / 1_000,
            service_ns: timer.plan.service_ps / 1_000,
            request_bytes: timer.plan.request_bytes,
            response_bytes: timer.plan.response_bytes,
            beats: timer.beats(),
        });
        self.trace.timers = rows.collect();
    }

    fn tasks(&mut self) {
        let all = (0u32..).map(TaskId).zip(&self.model.tasks);
        let rows = all.filter_map(|(id, task)| Some((id, self.row_of(id)?, task))).map(|(id, row, task)| TaskRow {
            task: row,
            job: JobId(task.app),
            attempt: self.attempt(id),
            kind: task.kind,
            host: task.node.map(|node| node.host()),
            process: task.process,
            start_ns: self.happened(task.start).unwrap_or(EPOCH_NS),
            shuffle_end_ns: self.happened(task.shuffle_end),
            sort_end_ns: self.happened(task.sort_end),
            finish_ns: self.happened(task.killed.or(task.finish)).unwrap_or(EPOCH_NS),
            succeeded: task.killed.is_none() && self.happened(task.finish).is_some(),
        });
        self.trace.tasks = rows.collect();
    }

    fn jobs(&mut self) {
        let rows = self.model.apps.iter().enumerate().map(|(number, app)| JobRow {
            job: JobId(number as u32),
            id: format!("job_{}", job_name(number)),
            name: self.model.file.jobs[number].name.clone(),
            submit_ns: self.happened(app.submit).unwrap_or(EPOCH_NS),
            launch_ns: self.happened(app.launch).unwrap_or(EPOCH_NS),
            finish_ns: self.happened(app.finish).unwrap_or(EPOCH_NS),
            maps: app.maps,
            reduces: app.reduces,
            shuffle_bytes: Some(self.volumes[number].shuffled),
            hdfs_bytes_read: Some(self.volumes[number].read),
            hdfs_bytes_written: Some(self.volumes[number].written),
            split_hosts: app.split_hosts(self.model.file.jobs[number].locality),
            input_hosts: None,
            succeeded: self.happened(app.finish).is_some(),
        });
        self.trace.jobs = rows.collect();
    }

    fn manifest(&mut self) {
        self.trace.manifest = TraceManifest {
            version: 1,
            program: format!("replay {}", env!("CARGO_PKG_VERSION")),
            captures: Vec::new(),
            start_ns: EPOCH_NS,
            end_ns: recorded_ns(self.model.kernel.now),
            reference_host: "m1".to_owned(),
            losses: Vec::new(),
            notes: vec!["generated from parameters, not recorded".to_owned()],
            network: None,
        };
    }
}
