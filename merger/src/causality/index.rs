//! Where to find messages: by call, by exchange, by the process that got or sent them.

use std::io;

use trace::ids::{ConnectionId, HostId, MessageId, ProcessId};
use trace::jvm::JvmRecord;
use trace::rows::MessageKind;

use super::event::{NONE, number, some};
use super::exchanges::{Exchange, Exchanges};
use super::places::{PLACES_BYTES, Places};
use crate::compact::{Message, ProcessingSpan};
use crate::joined::Joined;
use crate::maps::HashMap;
use crate::spilled::{Reader, Record, RecordList, Sorter, Writer};

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

/// A task told that it begins the "merge" or "sort" of what it fetched, or to "reduce".
#[derive(Clone, Copy, Debug)]
pub struct PhaseBegin {
    /// One of these.
    pub phase: &'static str,
    /// When, nanoseconds since the epoch.
    pub at_ns: u64,
    /// Its thread.
    pub thread: u64,
}

/// The last calls of connections of which messages are still to come, by their ids.
type OpenCalls = HashMap<ConnectionId, HashMap<i64, u32>>;

/// A method, and a call of it.
type OfMethod = (u32, u32);
/// Who made a call, its method, and it.
type OfClient = (u32, (u32, u32));
/// A block, the kind of a message of it, the hop of a pipeline, and the message.
type OfBlock = (u64, (u32, (u32, u32)));

/// Memory that each of these lists takes at most, bytes: one call, or a message of a block, asks for few of them.
const SORTED_BYTES: usize = 256 << 10;

/// What is sorted while messages are looked at, of each so many bytes at once.
struct Unsorted {
    by_method: Sorter<OfMethod>,
    by_client: Sorter<OfClient>,
    pipelines: Sorter<OfBlock>,
}

/// The index.
#[derive(Debug, Default)]
pub struct Index<'a> {
    /// All RPC calls in order of their requests.
    calls: RecordList<Call>,
    /// By message the call of which it is request or response.
    call_of: Places,
    /// Methods by their names, and the numbers of their calls, by method and by who made them.
    methods: HashMap<&'a str, u32>,
    by_method: RecordList<OfMethod>,
    by_client: RecordList<OfClient>,
    /// Exchanges but calls.
    exchanges: Exchanges,
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
    /// Messages of blocks.
    pipelines: RecordList<OfBlock>,
    /// Map outputs by the process that got them.
    pub map_outputs: HashMap<ProcessId, Vec<MessageId>>,
    /// Data of blocks, in order.
    pub block_data: Vec<MessageId>,
    /// Acknowledgements of written blocks by the process that got them.
    pub write_acks: HashMap<ProcessId, Vec<MessageId>>,
    /// When each process sent its first message.
    pub first_sent: HashMap<ProcessId, u64>,
    /// Phases of each process, as its JVM told of them.
    pub phases: HashMap<ProcessId, Vec<PhaseBegin>>,
    /// TaskTrackers of Hadoop 1.x.
    pub trackers: Vec<ProcessId>,
}

impl<'a> Index<'a> {
    /// Makes the index.
    ///
    /// # Errors
    /// If a temporary file fails.
    pub fn new(joined: &'a Joined) -> io::Result<Self> {
        let places = || Places::of(joined.messages.len());
        let mut index = Self {
            calls: RecordList::within(PLACES_BYTES),
            call_of: places(),
            exchanges: Exchanges::of(joined.messages.len()),
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
        let mut unsorted = Unsorted {
            by_method: Sorter::within(PLACES_BYTES),
            by_client: Sorter::within(PLACES_BYTES),
            pipelines: Sorter::within(PLACES_BYTES),
        };
        for message in joined.messages.iter() {
            let connection = message.connection.index();
            match some(std::mem::replace(&mut last[connection], message.message.0)) {
                Some(before) => index.before.set(message.message, before),
                None => index.first[connection] = message.message.0,
            }
            index.open(&message, &mut openings);
            index.take(joined, &message, &mut open, &mut unsorted)?;
            let left = &mut left[message.connection.index()];
            *left -= 1;
            if *left == 0 {
                open.remove(&message.connection);
                index.exchanges.close(message.connection);
                openings.remove(&message.connection);
            }
        }
        let Unsorted { by_method, by_client, pipelines } = unsorted;
        index.by_method = by_method.sorted()?.into_list(SORTED_BYTES)?;
        index.by_client = by_client.sorted()?.into_list(SORTED_BYTES)?;
        index.pipelines = pipelines.sorted()?.into_list(SORTED_BYTES)?;
        index.shrink_to_fit();
        for event in joined.jvm.iter() {
            if let JvmRecord::Phase { t, th, phase, .. } = event.record {
                let known = ["merge", "sort", "reduce"].into_iter().find(|known| *known == phase);
                let begin = known.map(|phase| PhaseBegin { phase, at_ns: t, thread: th });
                index.phases.entry(event.process).or_default().extend(begin);
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
        Ok(index)
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
        self.map_outputs.values_mut().chain(self.write_acks.values_mut()).for_each(Vec::shrink_to_fit);
        self.block_data.shrink_to_fit();
        self.exchanges.shrink_to_fit();
    }

    fn take(
        &mut self,
        joined: &'a Joined,
        message: &Message<'a>,
        open: &mut OpenCalls,
        unsorted: &mut Unsorted,
    ) -> io::Result<()> {
        let id = message.message;
        if let Some(process) = sender(joined, message) {
            self.first_sent.entry(process).or_insert(message.sent_ns);
        }
        match message.kind {
            MessageKind::RpcRequest => {
                let connection = &joined.connections[message.connection];
                let number = number(self.calls.len());
                self.calls.push(Call {
                    request: id,
                    response: None,
                    client: connection.client_process,
                    server: connection.server_process,
                });
                self.call_of.set(id, number);
                let next = self.methods.len() as u32;
                let method = *self.methods.entry(message.name).or_insert(next);
                unsorted.by_method.push((method, number))?;
                if let Some(client) = connection.client_process {
                    unsorted.by_client.push((client.0, (method, number)))?;
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
            MessageKind::BlockData | MessageKind::ShuffleResponse | MessageKind::HttpResponse => {
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
                if let Some(process) = receiver(joined, message) {
                    self.write_acks.entry(process).or_default().push(id);
                }
            }
            _ => {}
        }
        self.exchanges.add(message);
        if let (Some(block), Some(hop)) = (message.block, message.hop) {
            unsorted.pipelines.push((block, (message.kind as u32, (hop, id.0))))?;
        }
        Ok(())
    }

    /// The message of a kind and of a hop of a message's block that began nearest to it, the first one of several: a block may be written again.
    pub fn on_hop(&self, joined: &Joined, message: &Message<'_>, kind: MessageKind, hop: u32) -> Option<MessageId> {
        let block = message.block?;
        // They are in the order of time.
        let place_of = |id: u32| self.pipelines.partition_point(|other| *other < (block, (kind as u32, (hop, id))));
        let [first, behind, end] = [0, message.message.0, u32::MAX].map(place_of);
        let message_at = |place: usize| {
            let (_, (_, (_, id))) = self.pipelines.get(place);
            MessageId(id)
        };
        let sent_ns = |place: usize| joined.message(message_at(place)).sent_ns;
        let apart = |place: usize| sent_ns(place).abs_diff(message.sent_ns);
        let before_of = |place: usize| (first..place).next_back();
        let after = (behind < end).then(|| (apart(behind), behind));
        let Some(mut before) = before_of(behind) else { return after.map(|(_, place)| message_at(place)) };
        if after.is_some_and(|(after, _)| after < apart(before)) {
            return Some(message_at(behind));
        }
        while let Some(earlier) = before_of(before).filter(|earlier| sent_ns(*earlier) == sent_ns(before)) {
            before = earlier;
        }
        Some(message_at(before))
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
        self.exchanges.get(message.message)
    }

    /// Calls of a method that a process made, in order.
    pub fn calls_by(&self, client: ProcessId, method: &'a str) -> impl DoubleEndedIterator<Item = Call> {
        let calls = self.methods.get(method).map(|method| {
            let place_of = |method: u32| self.by_client.partition_point(|call| *call < (client.0, (method, 0)));
            place_of(*method)..place_of(method + 1)
        });
        calls.into_iter().flatten().map(|place| {
            let (_, (_, number)) = self.by_client.get(place);
            self.calls.get(number as usize)
        })
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
        self.exchanges.check()?;
        self.by_method.check().and(self.by_client.check()).and(self.pipelines.check())?;
        let places = [&self.call_of, &self.before, &self.opened_for, &self.made_in, &self.served_in];
        places.into_iter().try_for_each(Places::check)
    }

    /// Calls of a method, in order.
    pub fn calls_of(&self, method: &str) -> impl Iterator<Item = Call> {
        let calls = self.methods.get(method).map(|method| {
            let place_of = |method: u32| self.by_method.partition_point(|call| *call < (method, 0));
            place_of(*method)..place_of(method + 1)
        });
        calls.into_iter().flatten().map(|place| self.calls.get(self.by_method.get(place).1 as usize))
    }
}

/// The process that sends a message.
pub fn sender(joined: &Joined, message: &Message<'_>) -> Option<ProcessId> {
    let connection = &joined.connections[message.connection];
    if message.from_client { connection.client_process } else { connection.server_process }
}

/// The process that gets a message.
pub fn receiver(joined: &Joined, message: &Message<'_>) -> Option<ProcessId> {
    let connection = &joined.connections[message.connection];
    if message.from_client { connection.server_process } else { connection.client_process }
}

/// The host that sends a message.
pub fn sender_host(joined: &Joined, message: &Message<'_>) -> HostId {
    let connection = &joined.connections[message.connection];
    if message.from_client { connection.client_host } else { connection.server_host }
}

/// The host that gets a message.
pub fn receiver_host(joined: &Joined, message: &Message<'_>) -> HostId {
    let connection = &joined.connections[message.connection];
    if message.from_client { connection.server_host } else { connection.client_host }
}

/// The role of a process, "" = not known.
pub fn role(joined: &Joined, process: Option<ProcessId>) -> &str {
    process.map_or("", |process| joined.processes[process.index()].role.as_str())
}
