//! Where to find messages: by call, by exchange, by the process that got or sent them.

use std::io;

use trace::ids::{ConnectionId, HostId, MessageId, ProcessId};
use trace::jvm::JvmRecord;
use trace::rows::MessageKind;

use super::event::{NONE, Place, number, some};
use crate::compact::{Message, ProcessingSpan};
use crate::joined::Joined;
use crate::maps::HashMap;
use crate::spilled::{Reader, Record, RecordList, Writer};

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

impl Record for Call {
    const BLANK: Self = Self { request: MessageId(0), response: None, client: None, server: None };
    const BYTES: usize = 4 * 4;

    fn write(&self, out: &mut Writer<'_>) {
        let (client, server) = (self.client.map(|it| it.0), self.server.map(|it| it.0));
        let ids = [Some(self.request.0), self.response.map(|it| it.0), client, server];
        ids.into_iter().for_each(|id| id.unwrap_or(NONE).write(out));
    }

    fn read(input: &mut Reader<'_>) -> Self {
        let [request, response, client, server] = std::array::from_fn(|_| input.u32());
        Self {
            request: MessageId(request),
            response: some(response).map(MessageId),
            client: some(client).map(ProcessId),
            server: some(server).map(ProcessId),
        }
    }
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

/// The last calls of connections of which messages are still to come, by their ids.
type OpenCalls = HashMap<ConnectionId, HashMap<i64, u32>>;

/// The index.
#[derive(Debug, Default)]
pub struct Index<'a> {
    /// All RPC calls in order of their requests.
    calls: RecordList<Call>,
    /// By message the call of which it is request or response.
    call_of: Places,
    /// Calls by method, in order.
    by_method: HashMap<&'a str, Vec<u32>>,
    /// Exchanges but calls by connection and number.
    exchanges: HashMap<(ConnectionId, i64), Exchange>,
    /// By connection its first message; [`NONE`] = it has none.
    first: Vec<u32>,
    /// By message the one before it on its connection.
    before: Places,
    /// By message with which a client opens an RPC connection the first call behind it.
    opened_for: Places,
    /// By request the span in which a process made it: calls, block reads and writes, fetches.
    made_in: Places,
    /// By request the span in which a process worked on it.
    served_in: Places,
    /// Messages of blocks by block id, kind and hop of a pipeline, in order.
    pipelines: HashMap<(u64, MessageKind, u32), Vec<MessageId>>,
    /// Map outputs by the process that got them.
    pub map_outputs: HashMap<ProcessId, Vec<MessageId>>,
    /// Data of blocks, in order.
    pub block_data: Vec<MessageId>,
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
#[derive(Debug, Default)]
struct Places(RecordList<Place>);

/// Memory that one of them takes at most, bytes.
const PLACES_BYTES: usize = 1 << 20;

impl Places {
    fn of(messages: usize) -> Self {
        Self(RecordList::blank(messages, PLACES_BYTES))
    }

    fn set(&mut self, message: MessageId, place: u32) {
        if message.index() < self.0.len() {
            self.0.change(message.index(), |known| *known = Place::of(place));
        }
    }

    fn get(&self, message: MessageId) -> Option<usize> {
        let known = message.index() < self.0.len();
        if known { self.0.get(message.index()).get() } else { None }
    }
}

impl<'a> Index<'a> {
    /// Makes the index.
    pub fn new(joined: &'a Joined) -> Self {
        let places = || Places::of(joined.messages.len());
        let mut index = Self {
            calls: RecordList::within(PLACES_BYTES),
            call_of: places(),
            made_in: places(),
            served_in: places(),
            first: vec![NONE; joined.connections.len()],
            before: places(),
            opened_for: places(),
            ..Self::default()
        };
        let mut left = vec![0u32; joined.connections.len()];
        joined.messages.iter().for_each(|message| left[message.connection.index()] += 1);
        let mut last = index.first.clone();
        let (mut open, mut openings) = (OpenCalls::default(), HashMap::default());
        for message in joined.messages.iter() {
            let connection = message.connection.index();
            match some(std::mem::replace(&mut last[connection], message.message.0)) {
                Some(before) => index.before.set(message.message, before),
                None => index.first[connection] = message.message.0,
            }
            index.open(&message, &mut openings);
            index.take(joined, &message, &mut open);
            let left = &mut left[message.connection.index()];
            *left -= 1;
            if *left == 0 {
                open.remove(&message.connection);
                openings.remove(&message.connection);
            }
        }
        index.shrink_to_fit();
        for (number, event) in joined.jvm.iter().enumerate() {
            if matches!(event.record, JvmRecord::Phase { .. }) {
                index.phases.entry(event.process).or_default().push(number);
            }
        }
        let trackers = joined.processes.iter().filter(|process| process.role == "TaskTracker");
        index.trackers = trackers.map(|process| process.process).collect();
        for (number, span) in (0..).zip(joined.spans.iter()) {
            let Some(request) = span.request else { continue };
            match span.kind {
                "call" | "block-read" | "block-write" | "fetch" => index.made_in.set(request, number),
                _ => index.served_in.set(request, number),
            }
        }
        index
    }

    /// Notes what a message opens its connection for; `openings` are those of connections on which no call has come since.
    fn open(&mut self, message: &Message<'_>, openings: &mut HashMap<ConnectionId, Vec<MessageId>>) {
        match message.kind {
            MessageKind::RpcConnect | MessageKind::Sasl if message.from_client => {
                openings.entry(message.connection).or_default().push(message.message);
            }
            MessageKind::RpcRequest if message.from_client => {
                for opening in openings.remove(&message.connection).into_iter().flatten() {
                    self.opened_for.set(opening, message.message.0);
                }
            }
            _ => {}
        }
    }

    /// Gives back what only helps to append.
    fn shrink_to_fit(&mut self) {
        let exchanges = self.exchanges.values_mut();
        let of_exchanges = exchanges.flat_map(|it| [&mut it.requests, &mut it.responses, &mut it.data, &mut it.acks]);
        let of_processes = self.map_outputs.values_mut().chain(self.write_acks.values_mut());
        of_exchanges.chain(of_processes).chain(self.pipelines.values_mut()).for_each(Vec::shrink_to_fit);
        self.by_method.values_mut().chain(self.of_client.values_mut()).for_each(Vec::shrink_to_fit);
        self.exchanges.shrink_to_fit();
        self.pipelines.shrink_to_fit();
        self.block_data.shrink_to_fit();
    }

    fn take(&mut self, joined: &'a Joined, message: &Message<'a>, open: &mut OpenCalls) {
        let id = message.message;
        let key = (message.connection, message.call);
        if let Some(process) = sender(joined, message) {
            self.first_sent.entry(process).or_insert(message.sent_ns);
        }
        match message.kind {
            MessageKind::RpcRequest => {
                let connection = &joined.connections[message.connection.index()];
                let number = number(self.calls.len());
                self.calls.push(Call {
                    request: id,
                    response: None,
                    client: connection.client_process,
                    server: connection.server_process,
                });
                self.call_of.set(id, number);
                self.by_method.entry(message.name).or_default().push(number);
                if let Some(client) = connection.client_process {
                    self.of_client.entry((client, message.name)).or_default().push(number);
                }
                open.entry(message.connection).or_default().insert(message.call, number);
            }
            MessageKind::RpcResponse => {
                if let Some(number) = open.get(&message.connection).and_then(|calls| calls.get(&message.call)).copied()
                {
                    self.calls.change(number as usize, |call| call.response = Some(id));
                    self.call_of.set(id, number);
                }
            }
            MessageKind::BlockRequest | MessageKind::ShuffleRequest | MessageKind::HttpRequest => {
                self.exchanges.entry(key).or_default().requests.push(id);
            }
            MessageKind::BlockResponse => self.exchanges.entry(key).or_default().responses.push(id),
            MessageKind::BlockData | MessageKind::ShuffleResponse | MessageKind::HttpResponse => {
                self.exchanges.entry(key).or_default().data.push(id);
                if message.kind == MessageKind::BlockData {
                    self.block_data.push(id);
                }
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
        if let (Some(block), Some(hop)) = (message.block, message.hop) {
            self.pipelines.entry((block, message.kind, hop)).or_default().push(id);
        }
    }

    /// The message of a kind and of a hop of a message's block that began nearest to it, the first one of several: a block may be written again.
    pub fn on_hop(&self, joined: &Joined, message: &Message<'_>, kind: MessageKind, hop: u32) -> Option<MessageId> {
        let all = self.pipelines.get(&(message.block?, kind, hop))?;
        // They are in the order of time.
        let behind = all.partition_point(|other| *other < message.message);
        let sent_ns = |place: usize| joined.message(all[place]).sent_ns;
        let apart = |place: usize| sent_ns(place).abs_diff(message.sent_ns);
        let after = (behind < all.len()).then(|| (apart(behind), behind));
        let Some(mut before) = behind.checked_sub(1) else { return after.map(|(_, place)| all[place]) };
        if after.is_some_and(|(after, _)| after < apart(before)) {
            return Some(all[behind]);
        }
        while let Some(earlier) = before.checked_sub(1).filter(|earlier| sent_ns(*earlier) == sent_ns(before)) {
            before = earlier;
        }
        Some(all[before])
    }

    /// The first message of a connection.
    pub fn first_of(&self, connection: ConnectionId) -> Option<MessageId> {
        some(self.first[connection.index()]).map(MessageId)
    }

    /// The messages of a message's connection before it, the last one first.
    pub fn before(&self, message: MessageId) -> impl Iterator<Item = MessageId> {
        let before = |message: &MessageId| self.before.get(*message).map(|before| MessageId(number(before)));
        std::iter::successors(before(&message), before)
    }

    /// The first call behind a message with which a client opens its connection.
    pub fn opened_for(&self, opening: MessageId) -> Option<MessageId> {
        self.opened_for.get(opening).map(|call| MessageId(number(call)))
    }

    /// The exchange of a message.
    pub fn exchange(&self, message: &Message<'_>) -> Option<&Exchange> {
        self.exchanges.get(&(message.connection, message.call))
    }

    /// Calls of a method that a process made, in order.
    pub fn calls_by(&self, client: ProcessId, method: &'a str) -> impl DoubleEndedIterator<Item = Call> {
        self.of_client.get(&(client, method)).into_iter().flatten().map(|number| self.calls.get(*number as usize))
    }

    /// A call by its number in [`Index::calls`].
    pub fn call_at(&self, number: u32) -> Call {
        self.calls.get(number as usize)
    }

    /// All calls, in order of their requests.
    pub fn calls(&self) -> impl Iterator<Item = Call> {
        (0..self.calls.len()).map(|number| self.calls.get(number))
    }

    /// The call of a request or a response.
    pub fn call(&self, message: MessageId) -> Option<Call> {
        self.call_of.get(message).map(|number| self.calls.get(number))
    }

    /// The span in which a process made a request.
    pub fn made_in<'j>(&self, joined: &'j Joined, request: MessageId) -> Option<ProcessingSpan<'j>> {
        self.made_in.get(request).map(|number| joined.spans.get(number))
    }

    /// The span in which a process worked on a request.
    pub fn served_in<'j>(&self, joined: &'j Joined, request: MessageId) -> Option<ProcessingSpan<'j>> {
        self.served_in.get(request).map(|number| joined.spans.get(number))
    }

    /// Whether all could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn check(&self) -> io::Result<()> {
        self.calls.check()?;
        let places = [&self.call_of, &self.before, &self.opened_for, &self.made_in, &self.served_in];
        places.into_iter().try_for_each(|places| places.0.check())
    }

    /// Calls of a method, in order.
    pub fn calls_of(&self, method: &str) -> impl Iterator<Item = Call> {
        self.by_method.get(method).into_iter().flatten().map(|number| self.calls.get(*number as usize))
    }
}

/// The process that sends a message.
pub fn sender(joined: &Joined, message: &Message<'_>) -> Option<ProcessId> {
    let connection = &joined.connections[message.connection.index()];
    if message.from_client { connection.client_process } else { connection.server_process }
}

/// The process that gets a message.
pub fn receiver(joined: &Joined, message: &Message<'_>) -> Option<ProcessId> {
    let connection = &joined.connections[message.connection.index()];
    if message.from_client { connection.server_process } else { connection.client_process }
}

/// The host that sends a message.
pub fn sender_host(joined: &Joined, message: &Message<'_>) -> HostId {
    let connection = &joined.connections[message.connection.index()];
    if message.from_client { connection.client_host } else { connection.server_host }
}

/// The host that gets a message.
pub fn receiver_host(joined: &Joined, message: &Message<'_>) -> HostId {
    let connection = &joined.connections[message.connection.index()];
    if message.from_client { connection.server_host } else { connection.client_host }
}

/// The role of a process, "" = not known.
pub fn role(joined: &Joined, process: Option<ProcessId>) -> &str {
    process.map_or("", |process| joined.processes[process.index()].role.as_str())
}
