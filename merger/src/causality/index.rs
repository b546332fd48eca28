//! Where to find messages: by call, by exchange, by the process that got or sent them.

use trace::ids::{ConnectionId, HostId, MessageId, ProcessId};
use trace::jvm::JvmRecord;
use trace::rows::MessageKind;

use crate::compact::{Message, ProcessingSpan};
use crate::joined::Joined;
use crate::maps::HashMap;

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

/// The last calls of connections, by their ids.
type OpenCalls = HashMap<(ConnectionId, i64), u32>;

/// The index.
#[derive(Clone, Debug, Default)]
pub struct Index<'a> {
    /// All RPC calls in order of their requests.
    pub calls: Vec<Call>,
    /// By message the call of which it is request or response.
    call_of: Places,
    /// Calls by method, in order.
    by_method: HashMap<&'a str, Vec<u32>>,
    /// Exchanges but calls by connection and number.
    exchanges: HashMap<(ConnectionId, i64), Exchange>,
    /// Messages of a connection, in order.
    pub of_connection: Vec<Vec<MessageId>>,
    /// By request the span in which a process made it: calls, block reads and writes, fetches.
    made_in: Places,
    /// By request the span in which a process worked on it.
    served_in: Places,
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
    of_client: HashMap<(ProcessId, &'a str), Vec<u32>>,
}

/// A place in a list by message, if it has one.
#[derive(Clone, Debug, Default)]
struct Places(Vec<u32>);

impl Places {
    fn of(messages: usize) -> Self {
        Self(vec![u32::MAX; messages])
    }

    fn set(&mut self, message: MessageId, place: u32) {
        if let Some(known) = self.0.get_mut(message.index()) {
            *known = place;
        }
    }

    fn get(&self, message: MessageId) -> Option<usize> {
        self.0.get(message.index()).filter(|place| **place != u32::MAX).map(|place| *place as usize)
    }
}

impl<'a> Index<'a> {
    /// Makes the index.
    pub fn new(joined: &'a Joined) -> Self {
        let places = || Places::of(joined.messages.len());
        let mut index = Self {
            of_connection: vec![Vec::new(); joined.connections.len()],
            call_of: places(),
            made_in: places(),
            served_in: places(),
            ..Self::default()
        };
        let mut open = OpenCalls::default();
        for message in &joined.messages {
            index.of_connection[message.connection.index()].push(message.message);
            index.take(joined, message, &mut open);
        }
        index.of_connection.iter_mut().for_each(Vec::shrink_to_fit);
        for (number, event) in joined.jvm.iter().enumerate() {
            if matches!(event.record, JvmRecord::Phase { .. }) {
                index.phases.entry(event.process).or_default().push(number);
            }
        }
        let trackers = joined.processes.iter().filter(|process| process.role == "TaskTracker");
        index.trackers = trackers.map(|process| process.process).collect();
        for (number, span) in (0..).zip(&joined.spans) {
            let Some(request) = span.request else { continue };
            match span.kind.as_str() {
                "call" | "block-read" | "block-write" | "fetch" => index.made_in.set(request, number),
                _ => index.served_in.set(request, number),
            }
        }
        index
    }

    fn take(&mut self, joined: &'a Joined, message: &'a Message, open: &mut OpenCalls) {
        let id = message.message;
        let key = (message.connection, message.call);
        if let Some(process) = sender(joined, message) {
            self.first_sent.entry(process).or_insert(message.sent_ns);
        }
        match message.kind {
            MessageKind::RpcRequest => {
                let connection = &joined.connections[message.connection.index()];
                let number = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
                self.calls.push(Call {
                    request: id,
                    response: None,
                    client: connection.client_process,
                    server: connection.server_process,
                });
                self.call_of.set(id, number);
                self.by_method.entry(message.name.as_str()).or_default().push(number);
                if let Some(client) = connection.client_process {
                    self.of_client.entry((client, message.name.as_str())).or_default().push(number);
                }
                open.insert(key, number);
            }
            MessageKind::RpcResponse => {
                if let Some(number) = open.get(&key).copied() {
                    self.calls[number as usize].response = Some(id);
                    self.call_of.set(id, number);
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
    pub fn exchange(&self, message: &Message) -> Option<&Exchange> {
        self.exchanges.get(&(message.connection, message.call))
    }

    /// Calls of a method that a process made, in order.
    pub fn calls_by(&self, client: ProcessId, method: &'a str) -> impl DoubleEndedIterator<Item = Call> {
        self.of_client.get(&(client, method)).into_iter().flatten().map(|number| self.calls[*number as usize])
    }

    /// The call of a request or a response.
    pub fn call(&self, message: MessageId) -> Option<Call> {
        self.call_of.get(message).map(|number| self.calls[number])
    }

    /// The span in which a process made a request.
    pub fn made_in<'j>(&self, joined: &'j Joined, request: MessageId) -> Option<&'j ProcessingSpan> {
        self.made_in.get(request).map(|number| &joined.spans[number])
    }

    /// The span in which a process worked on a request.
    pub fn served_in<'j>(&self, joined: &'j Joined, request: MessageId) -> Option<&'j ProcessingSpan> {
        self.served_in.get(request).map(|number| &joined.spans[number])
    }

    /// Calls of a method, in order.
    pub fn calls_of(&self, method: &str) -> impl Iterator<Item = Call> {
        self.by_method.get(method).into_iter().flatten().map(|number| self.calls[*number as usize])
    }
}

/// The process that sends a message.
pub fn sender(joined: &Joined, message: &Message) -> Option<ProcessId> {
    let connection = &joined.connections[message.connection.index()];
    if message.from_client { connection.client_process } else { connection.server_process }
}

/// The process that gets a message.
pub fn receiver(joined: &Joined, message: &Message) -> Option<ProcessId> {
    let connection = &joined.connections[message.connection.index()];
    if message.from_client { connection.server_process } else { connection.client_process }
}

/// The host that sends a message.
pub fn sender_host(joined: &Joined, message: &Message) -> HostId {
    let connection = &joined.connections[message.connection.index()];
    if message.from_client { connection.client_host } else { connection.server_host }
}

/// The host that gets a message.
pub fn receiver_host(joined: &Joined, message: &Message) -> HostId {
    let connection = &joined.connections[message.connection.index()];
    if message.from_client { connection.server_host } else { connection.client_host }
}

/// The role of a process, "" = not known.
pub fn role(joined: &Joined, process: Option<ProcessId>) -> &str {
    process.map_or("", |process| joined.processes[process.index()].role.as_str())
}
