//! Where to find messages: by call, by exchange, by the process that got or sent them.

use std::collections::HashMap;

use trace::ids::{ConnectionId, HostId, MessageId, ProcessId};
use trace::jvm::JvmRecord;
use trace::rows::{MessageKind, MessageRow, SpanRow};

use crate::joined::Joined;

/// An RPC call and its response.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Request.
    pub request: MessageId,
    /// Response; `None` = none was seen.
    pub response: Option<MessageId>,
    /// Who called.
    pub client: Option<ProcessId>,
    /// Who served.
    pub server: Option<ProcessId>,
}

/// What one exchange of the data transfer protocol or of HTTP consists of.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// Requests (one).
    pub requests: Vec<MessageId>,
    /// First answers.
    pub responses: Vec<MessageId>,
    /// Block data, map outputs, HTTP bodies.
    pub data: Vec<MessageId>,
    /// Acknowledgements.
    pub acks: Vec<MessageId>,
}

/// The index.
#[derive(Clone, Debug, Default)]
pub struct Index<'a> {
    /// All RPC calls in order of their requests.
    pub calls: Vec<Call>,
    /// Call of each request and response.
    pub call_of: HashMap<MessageId, usize>,
    /// Calls by method, in order.
    pub by_method: HashMap<&'a str, Vec<usize>>,
    /// Exchanges by connection and number.
    pub exchanges: HashMap<(ConnectionId, i64), Exchange>,
    /// Messages of a connection, in order.
    pub of_connection: Vec<Vec<MessageId>>,
    /// Span in which a process made the request: calls, block reads and writes, fetches.
    pub made_in: HashMap<MessageId, usize>,
    /// Span in which a process worked on the request.
    pub served_in: HashMap<MessageId, usize>,
    /// Block data and their hops by block id.
    pub pipelines: HashMap<u64, Vec<MessageId>>,
    /// Map outputs by the process that got them.
    pub map_outputs: HashMap<ProcessId, Vec<MessageId>>,
    /// Acknowledgements of written blocks by the process that got them.
    pub write_acks: HashMap<ProcessId, Vec<MessageId>>,
    /// When each process sent its first message.
    pub first_sent: HashMap<ProcessId, u64>,
    /// Numbers of the JVM's records of phases, by process.
    pub phases: HashMap<ProcessId, Vec<usize>>,
    /// TaskTrackers of Hadoop 1.x.
    pub trackers: Vec<ProcessId>,
    /// Calls by who made them and by method, in order.
    of_client: HashMap<(ProcessId, &'a str), Vec<usize>>,
}

impl<'a> Index<'a> {
    /// Makes the index.
    pub fn new(joined: &'a Joined) -> Self {
        let mut index = Self { of_connection: vec![Vec::new(); joined.connections.len()], ..Self::default() };
        for message in &joined.messages {
            index.of_connection[message.connection.index()].push(message.message);
            index.take(joined, message);
        }
        for (number, event) in joined.jvm.iter().enumerate() {
            if matches!(event.record, JvmRecord::Phase { .. }) {
                index.phases.entry(event.process).or_default().push(number);
            }
        }
        let trackers = joined.processes.iter().filter(|process| process.role == "TaskTracker");
        index.trackers = trackers.map(|process| process.process).collect();
        for (number, span) in joined.spans.iter().enumerate() {
            let Some(request) = span.request else { continue };
            match span.kind.as_str() {
                "call" | "block-read" | "block-write" | "fetch" => index.made_in.insert(request, number),
                _ => index.served_in.insert(request, number),
            };
        }
        index
    }

    fn take(&mut self, joined: &'a Joined, message: &'a MessageRow) {
        let id = message.message;
        let key = (message.connection, message.call);
        if let Some(process) = sender(joined, message) {
            self.first_sent.entry(process).or_insert(message.sent_ns);
        }
        match message.kind {
            MessageKind::RpcRequest => {
                let connection = &joined.connections[message.connection.index()];
                let number = self.calls.len();
                self.calls.push(Call {
                    request: id,
                    response: None,
                    client: connection.client_process,
                    server: connection.server_process,
                });
                self.call_of.insert(id, number);
                self.by_method.entry(message.name.as_str()).or_default().push(number);
                if let Some(client) = connection.client_process {
                    self.of_client.entry((client, message.name.as_str())).or_default().push(number);
                }
                self.exchanges.entry(key).or_default().requests.push(id);
            }
            MessageKind::RpcResponse => {
                let request = self.exchanges.get(&key).and_then(|exchange| exchange.requests.last());
                if let Some(number) = request.and_then(|request| self.call_of.get(request)).copied() {
                    self.calls[number].response = Some(id);
                    self.call_of.insert(id, number);
                }
            }
            MessageKind::BlockRequest | MessageKind::ShuffleRequest | MessageKind::HttpRequest => {
                self.exchanges.entry(key).or_default().requests.push(id);
            }
            MessageKind::BlockResponse => self.exchanges.entry(key).or_default().responses.push(id),
            MessageKind::BlockData | MessageKind::ShuffleResponse | MessageKind::HttpResponse => {
                self.exchanges.entry(key).or_default().data.push(id);
                if message.kind == MessageKind::ShuffleResponse
                    && let Some(process) = receiver(joined, message)
                {
                    self.map_outputs.entry(process).or_default().push(id);
                }
            }
            MessageKind::BlockAck => {
                self.exchanges.entry(key).or_default().acks.push(id);
                if let Some(process) = receiver(joined, message) {
                    self.write_acks.entry(process).or_default().push(id);
                }
            }
            _ => {}
        }
        if let (Some(block), Some(_)) = (message.block, message.hop) {
            self.pipelines.entry(block).or_default().push(id);
        }
    }

    /// The exchange of a message.
    pub fn exchange(&self, message: &MessageRow) -> Option<&Exchange> {
        self.exchanges.get(&(message.connection, message.call))
    }

    /// Calls of a method that a process made, in order.
    pub fn calls_by(&self, client: ProcessId, method: &'a str) -> impl DoubleEndedIterator<Item = Call> {
        self.of_client.get(&(client, method)).into_iter().flatten().map(|number| self.calls[*number])
    }

    /// Calls of a method, in order.
    pub fn calls_of(&self, method: &str) -> impl Iterator<Item = Call> {
        self.by_method.get(method).into_iter().flatten().map(|number| self.calls[*number])
    }
}

/// The process that sends a message.
pub fn sender(joined: &Joined, message: &MessageRow) -> Option<ProcessId> {
    let connection = &joined.connections[message.connection.index()];
    if message.from_client { connection.client_process } else { connection.server_process }
}

/// The process that gets a message.
pub fn receiver(joined: &Joined, message: &MessageRow) -> Option<ProcessId> {
    let connection = &joined.connections[message.connection.index()];
    if message.from_client { connection.server_process } else { connection.client_process }
}

/// The host that sends a message.
pub fn sender_host(joined: &Joined, message: &MessageRow) -> HostId {
    let connection = &joined.connections[message.connection.index()];
    if message.from_client { connection.client_host } else { connection.server_host }
}

/// The host that gets a message.
pub fn receiver_host(joined: &Joined, message: &MessageRow) -> HostId {
    let connection = &joined.connections[message.connection.index()];
    if message.from_client { connection.server_host } else { connection.client_host }
}

/// The role of a process, "" = not known.
pub fn role(joined: &Joined, process: Option<ProcessId>) -> &str {
    process.map_or("", |process| joined.processes[process.index()].role.as_str())
}

/// A span by its number.
pub fn span(joined: &Joined, number: usize) -> &SpanRow {
    &joined.spans[number]
}
