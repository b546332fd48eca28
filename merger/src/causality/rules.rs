//! What each kind of message waits for.

use trace::ids::{MessageId, ProcessId};
use trace::rows::{Evidence, MessageKind, StepKind};

use super::draft::{Cause, Draft, Graph};
use super::ends::ProcessEnds;
use super::hidden::{self, Production};
use super::index::{Index, role, sender};
use super::measured::{self, Measured, Writers};
use super::pieces::Pieces;
use super::threads::Threads;
use super::timers::Timers;
use crate::compact::Message;
use crate::joined::Joined;
use crate::maps::HashMap;

/// Longest time between the last thing that a daemon got and what it then did because of that.
const DAEMON_MEMORY_NS: u64 = 5_000_000_000;
/// A DataNode reports a block that it received within that time; it waits no longer than a heartbeat for others.
const REPORTED_AT_ONCE_NS: u64 = 1_000_000_000;
/// A thread that got something so shortly before is taken to act because of that alone, though other things came to
/// its process since.
const AT_ONCE_NS: u64 = 50_000_000;

/// Everything that rules look at, and the graph that they add to.
pub struct CauseInference<'a> {
    /// The captures.
    pub joined: &'a Joined,
    /// Where to find messages.
    pub index: &'a Index<'a>,
    /// Their events.
    pub pieces: &'a Pieces,
    /// Timers.
    pub timers: &'a Timers,
    /// Threads.
    pub threads: Threads,
    /// How fast writers make what they write.
    pub production: Production,
    /// What JVMs measured of it.
    pub measured: &'a Measured,
    /// What writers have made so far, by that.
    pub writers: Writers,
    /// What DataNodes have done with each piece of the blocks that they received, by that.
    pub received: HashMap<MessageId, Option<Vec<Draft>>>,
    /// When processes had ended.
    pub ends: ProcessEnds,
    /// The graph.
    pub graph: &'a mut Graph,
}

impl<'a> CauseInference<'a> {
    /// Lets a message wait for `cause`.
    pub fn wait(&mut self, message: &Message<'_>, cause: Cause) -> bool {
        self.graph.wait(self.pieces.first(message.message), cause)
    }

    /// Whether nothing is known yet of what a message waits for.
    pub fn is_root(&self, message: &Message<'_>) -> bool {
        self.graph.is_root(self.pieces.first(message.message))
    }

    /// Tells the causes of all messages for which no other rule has done so.
    pub fn infer(&mut self) {
        let joined = self.joined;
        for message in &self.index.block_data {
            let message = joined.message(*message);
            if let Some(next_hop) = self.downstream(&message, MessageKind::BlockData) {
                let next_hop = &joined.message(next_hop);
                self.production.look(joined, self.graph, self.pieces, &message, next_hop);
            }
        }
        for message in joined.messages.iter() {
            if self.is_root(&message) {
                self.by_kind(&message);
            }
            if self.is_root(&message) {
                self.by_order(&message);
            }
        }
    }

    fn by_kind(&mut self, message: &Message<'_>) {
        match message.kind {
            MessageKind::RpcConnect | MessageKind::Sasl => self.connect(message),
            MessageKind::RpcRequest => self.rpc_request(message),
            MessageKind::RpcResponse => self.rpc_response(message),
            MessageKind::RpcPing => self.ping(message),
            MessageKind::BlockRequest => self.block_request(message),
            MessageKind::BlockResponse => self.block_response(message),
            MessageKind::BlockData => self.block_data(message),
            MessageKind::BlockAck => self.block_acks(message),
            MessageKind::BlockStatus => self.block_status(message),
            MessageKind::ShuffleRequest | MessageKind::HttpRequest => self.request(message),
            MessageKind::ShuffleResponse | MessageKind::HttpResponse => self.response(message),
            MessageKind::Unknown => {}
        }
    }

    /// Messages that open an RPC connection go because of the call that needs it.
    fn connect(&mut self, message: &Message<'_>) {
        if let Some(answered) = self.last_before(message, true) {
            self.wait(message, Cause::delivered(self.pieces.last(answered.message), Evidence::Exchange));
            return;
        }
        if let Some(before) = self.last_on_stream(message) {
            self.wait(message, Cause::sent(self.pieces.last(before.message), Evidence::Stream));
            return;
        }
        // What a client says in a negotiation goes on beyond the server's first answer, which waits for its beginning.
        if let Some(asked) = self.last_before(message, false).filter(|_| !message.from_client) {
            self.wait(message, Cause::sent(self.pieces.first(asked.message), Evidence::Exchange));
            return;
        }
        if let Some(call) = self.index.opened_for(message.message) {
            for cause in self.causes_of_request(&self.joined.message(call), message.sent_ns) {
                self.wait(message, cause);
            }
        }
    }

    fn rpc_request(&mut self, message: &Message<'_>) {
        self.after_opening(message);
        // What a DataNode received it reports at once; what it began to receive or deleted goes with its next heartbeat.
        if message.name == "blockReceivedAndDeleted"
            && let Some(block) = self.last_block(message)
            && self.made_at(message).saturating_sub(self.graph.arrived(block.event)) <= REPORTED_AT_ONCE_NS
        {
            self.wait(message, block);
            return;
        }
        for cause in self.causes_of_request(message, message.sent_ns) {
            self.wait(message, cause);
        }
    }

    /// The last block that a DataNode had received whole before it reported one.
    fn last_block(&self, message: &Message<'_>) -> Option<Cause> {
        let received = self.threads.received_between(sender(self.joined, message)?, 0, self.made_at(message));
        let mut received = received.rev().map(|moment| moment.cause);
        let block = received.find(|cause| {
            let id = self.graph.message(cause.event);
            id.is_some_and(|id| self.joined.message(id).kind == MessageKind::BlockData)
        });
        block.map(|cause| Cause { evidence: Evidence::Protocol, ..cause })
    }

    /// The last acknowledgement of written block data that a process had got.
    fn last_ack(&self, process: ProcessId, until: u64) -> Option<Cause> {
        let acks = self.index.write_acks.get(&process)?;
        let pieces = acks.iter().flat_map(|acks| self.pieces.all(*acks));
        let got = pieces.filter(|piece| self.graph.arrived(*piece) <= until);
        got.max_by_key(|piece| self.graph.arrived(*piece)).map(|piece| Cause::delivered(piece, Evidence::Protocol))
    }

    /// The first call on a connection goes right behind its opening, and after what the server answered to that.
    fn after_opening(&mut self, message: &Message<'_>) {
        if let Some(before) = self.last_on_stream(message)
            && matches!(before.kind, MessageKind::RpcConnect | MessageKind::Sasl)
        {
            let piece = self.pieces.last(before.message);
            self.wait(message, Cause::sent(piece, Evidence::Stream));
            if let Some(answer) = self.last_before(message, false) {
                let piece = self.pieces.last(answer.message);
                self.wait(message, Cause::delivered(piece, Evidence::Exchange));
            }
        }
    }

    /// Lets a call wait for `cause`, or, where a connection was opened for it after that, the opening.
    pub fn call_because(&mut self, message: &Message<'_>, cause: Cause) {
        let opening = self.index.first_of(message.connection).unwrap_or(message.message);
        let opening = &self.joined.message(opening);
        let opens = opening.from_client
            && matches!(opening.kind, MessageKind::RpcConnect | MessageKind::Sasl)
            && !self.before(message).any(|other| other.kind == MessageKind::RpcRequest);
        if opens && self.graph.yielded(cause).is_some_and(|yielded| yielded <= opening.sent_ns) {
            self.wait(opening, cause);
            self.after_opening(message);
        } else {
            self.wait(message, cause);
        }
    }

    /// What the process that makes a request had got before, until `until` at most.
    pub fn causes_of_request(&self, message: &Message<'_>, until: u64) -> Vec<Cause> {
        let process = sender(self.joined, message);
        let mut causes = Vec::new();
        let until = self.made_at(message).min(until);
        if let Some((thread, at)) = self.made_by(message) {
            let at = at.min(until);
            if let Some(moment) = self.threads.latest(self.joined, thread, at) {
                causes.push(moment.cause);
                let beat = self.graph.is_beat(moment.cause.event);
                if !beat && at.saturating_sub(self.graph.arrived(moment.cause.event)) <= AT_ONCE_NS {
                    return causes;
                }
            }
        }
        let Some(process) = process else { return causes };
        // The thread that closes a file waits for what another one of its process writes.
        if matches!(message.name, "fsync" | "complete") {
            causes.extend(self.last_ack(process, until));
        }
        let fed_by_queues = is_fed_by_queues(role(self.joined, Some(process)));
        if causes.is_empty() || fed_by_queues {
            let heuristic = self.heuristic(process, until);
            // A loop that also does what others leave to it does that because of them, not because of its last beat.
            if fed_by_queues && heuristic.is_some() {
                causes.retain(|cause| !self.graph.is_beat(cause.event));
            }
            causes.extend(heuristic);
        }
        if causes.is_empty() {
            causes.extend(self.threads.origin(process));
        }
        causes
    }

    /// Thread that made a request, and when it handed it over.
    pub fn made_by(&self, message: &Message<'_>) -> Option<((ProcessId, u64), u64)> {
        let made = self.index.made_in(self.joined, message.message)?;
        Some(((made.process, made.thread), made.begin_ns.min(made.received_ns)))
    }

    /// When a request was made: by its thread's word, or before the opening of the connection that it needed.
    fn made_at(&self, message: &Message<'_>) -> u64 {
        let made = self.made_by(message).map_or(message.sent_ns, |(_, at)| at.min(message.sent_ns));
        let connection = &self.joined.connections[message.connection];
        let opens = self.index.first_of(message.connection) == Some(message.message);
        if opens && message.from_client && connection.syn_seen { made.min(connection.first_ns) } else { made }
    }

    /// The last thing that a process got; long ago counts only in processes that compute.
    pub fn heuristic(&self, process: ProcessId, until: u64) -> Option<Cause> {
        // Over loopback a message arrives at the instant at which it leaves: it is not its own cause.
        let moment = self.threads.received(process, until.checked_sub(1)?)?;
        let daemon = trace::role::is_daemon(role(self.joined, Some(process)));
        (!daemon || until.saturating_sub(moment.at) <= DAEMON_MEMORY_NS).then_some(moment.cause)
    }

    fn rpc_response(&mut self, message: &Message<'_>) {
        let Some(call) = self.index.call(message.message) else { return };
        self.wait(message, Cause::delivered(self.pieces.last(call.request), Evidence::CallId));
        let Some(served) = self.index.served_in(self.joined, call.request) else { return };
        let (thread, until) = ((served.process, served.thread), served.end_ns.min(message.sent_ns));
        let request = self.pieces.last(call.request);
        if let Some(moment) = self.threads.latest_serving(self.joined, thread, request, served.begin_ns, until)
            && moment.at >= served.begin_ns
            && moment.cause.event != request
        {
            self.wait(message, Cause { evidence: Evidence::Span, ..moment.cause });
        }
    }

    fn ping(&mut self, message: &Message<'_>) {
        if let Some(before) = self.last_on_stream(message) {
            let piece = self.pieces.last(before.message);
            self.wait(message, Cause::sent(piece, Evidence::Timer));
        }
    }

    /// A request of the data transfer protocol: forwarded by a pipeline, or made by a client.
    fn block_request(&mut self, message: &Message<'_>) {
        if let Some(upstream) = self.upstream(message, MessageKind::BlockRequest) {
            self.wait(message, Cause::delivered(self.pieces.last(upstream), Evidence::Pipeline));
            return;
        }
        for cause in self.causes_of_request(message, message.sent_ns) {
            self.wait(message, cause);
        }
        if message.hop == Some(1)
            && let Some(process) = sender(self.joined, message)
            && let Some(block) = self.last_answer(process, "addBlock", self.made_at(message))
        {
            self.wait(message, Cause { evidence: Evidence::Protocol, ..block });
        }
    }

    /// The last response to a call of `method` that a process had got.
    pub fn last_answer(&self, process: ProcessId, method: &'static str, until: u64) -> Option<Cause> {
        let mut answers = self.index.calls_by(process, method).rev().filter_map(|call| call.response);
        answers
            .find(|answer| self.joined.message(*answer).delivered_ns <= until)
            .map(|answer| Cause::delivered(self.pieces.last(answer), Evidence::Thread))
    }

    fn block_response(&mut self, message: &Message<'_>) {
        let Some(exchange) = self.index.exchange(message) else { return };
        let request = exchange.requests().first().copied();
        if let Some(request) = request {
            self.wait(message, Cause::delivered(self.pieces.last(request), Evidence::Exchange));
        }
        if let Some(downstream) = self.downstream(message, MessageKind::BlockResponse) {
            self.wait(message, Cause::delivered(self.pieces.last(downstream), Evidence::Pipeline));
        }
    }

    fn block_data(&mut self, message: &Message<'_>) {
        if let Some(upstream) = self.upstream(message, MessageKind::BlockData) {
            self.forward(message, upstream);
        }
        let Some(exchange) = self.index.exchange(message) else { return };
        let before = if message.from_client { exchange.responses() } else { exchange.requests() };
        if let Some(before) = before.first().copied() {
            self.wait(message, Cause::delivered(self.pieces.last(before), Evidence::Exchange));
        }
        if let Some(next_hop) = self.downstream(message, MessageKind::BlockData) {
            let next_hop = &self.joined.message(next_hop);
            let graph = (self.pieces, &mut *self.graph);
            let made = self.writers.produce(self.joined, self.index, graph, self.measured, message);
            let both = (message, next_hop);
            hidden::throttle(self.joined, self.graph, self.pieces, &self.production, made.as_ref(), both);
        }
        if !message.from_client {
            self.pieces.follow(self.graph, message.message);
            measured::serve(self.pieces, self.graph, self.measured, message, StepKind::Send);
        }
        if message.from_client && message.hop.is_none_or(|hop| hop == 1) {
            self.log(message);
        }
    }

    /// An application master writes the job's history as a log: each piece that it flushes tells of what happened since
    /// the piece before. It does not think meanwhile, it waits for the next thing to tell of.
    fn log(&mut self, message: &Message<'_>) {
        let Some(master) = sender(self.joined, message).filter(|id| role(self.joined, Some(*id)) == "MRAppMaster")
        else {
            return;
        };
        for piece in self.pieces.all(message.message).skip(1) {
            let (from, until) = (self.graph.happened(piece - 1), self.graph.happened(piece).saturating_sub(1));
            let got = self.threads.received_between(master, from, until).rev();
            let news = got.map(|moment| moment.cause).find(|cause| !self.is_of_a_block(cause.event));
            if let Some(news) = news {
                self.graph.wait(piece, news);
            }
        }
    }

    /// Whether an event is part of a block's transfer, such as the acknowledgement of what was written.
    fn is_of_a_block(&self, event: Draft) -> bool {
        let message = self.graph.message(event).map(|id| self.joined.message(id).kind);
        matches!(message, Some(MessageKind::BlockAck | MessageKind::BlockResponse | MessageKind::BlockData))
    }

    /// What a DataNode has done with each piece of a block that it received; `None` = nobody told.
    fn received(&mut self, message: MessageId) -> Option<&[Draft]> {
        if !self.received.contains_key(&message) {
            let row = &self.joined.message(message);
            let next_hop = self.downstream(row, MessageKind::BlockData);
            let next_hop = next_hop.map(|next| self.joined.message(next));
            let graph = (self.pieces, &mut *self.graph);
            let marks = measured::receive(self.index, graph, self.measured, row, next_hop.as_ref());
            self.received.insert(message, marks);
        }
        self.received.get(&message)?.as_deref()
    }

    /// Each piece of a later hop waits for the bytes of the hop before, and for what its DataNode did with those before them.
    fn forward(&mut self, message: &Message<'_>, upstream: MessageId) {
        let first = self.pieces.first(upstream);
        let received: Vec<Draft> = self.received(upstream).map(<[Draft]>::to_vec).unwrap_or_default();
        let begin = self.joined.message(upstream).offset;
        let offset = |piece: Draft, begin: u64| self.pieces.offset(piece).saturating_sub(begin);
        let sources = self.arrivals(self.pieces.all(upstream));
        let offsets: Vec<u64> = sources.iter().map(|(source, _)| offset(*source, begin)).collect();
        for piece in self.pieces.all(message.message) {
            let within = offset(piece, message.offset);
            let there = &sources[..offsets.partition_point(|offset| *offset <= within)];
            if let Some(source) = last_until(there, self.graph.happened(piece)) {
                self.graph.wait(piece, Cause::delivered(source, Evidence::Pipeline));
                let before = (source - first).checked_sub(1).and_then(|before| received.get(before));
                if let Some(before) = before {
                    self.graph.wait(piece, Cause::sent(*before, Evidence::Pipeline));
                }
            }
        }
    }

    /// Pieces, and when each had arrived.
    fn arrivals(&self, pieces: impl Iterator<Item = Draft>) -> Vec<(Draft, u64)> {
        pieces.map(|piece| (piece, self.graph.arrived(piece))).collect()
    }

    /// An acknowledgement waits for the data that had come, and for the acknowledgement from further down.
    fn block_acks(&mut self, message: &Message<'_>) {
        let Some(exchange) = self.index.exchange(message) else { return };
        let data = self.arrivals(exchange.data().iter().flat_map(|data| self.pieces.all(*data)));
        let below = self.downstream(message, MessageKind::BlockAck);
        let below = self.arrivals(below.into_iter().flat_map(|acks| self.pieces.all(acks)));
        // The last DataNode acknowledges what it has stored; the others when they have forwarded it, but for the end.
        let data_of = exchange.data().first().copied();
        let stored: Vec<Draft> =
            data_of.and_then(|data| self.received(data)).map(<[Draft]>::to_vec).unwrap_or_default();
        let (is_last, first_data) = (below.is_empty(), data_of.map_or(0, |data| self.pieces.first(data)));
        for piece in self.pieces.all(message.message) {
            let at = self.graph.happened(piece);
            for (sources, evidence) in [(&data, Evidence::Exchange), (&below, Evidence::Pipeline)] {
                let source = last_until(sources, at);
                if let Some(source) = source {
                    self.graph.wait(piece, Cause::delivered(source, evidence));
                }
                let stores = evidence == Evidence::Exchange && (is_last || piece == self.pieces.last(message.message));
                let mark = source.filter(|_| stores).and_then(|source| stored.get(source.checked_sub(first_data)?));
                // How far it was at an earlier acknowledgement is known to a megabyte only.
                if let Some(mark) = mark.filter(|mark| self.graph.happened(**mark) <= at) {
                    self.graph.wait(piece, Cause::sent(*mark, Evidence::Exchange));
                }
            }
            // What a packet waits for before it is acknowledged is the rest of it, which is on its way. Only the last
            // acknowledgement says how long the DataNode takes.
            let has_prior = piece != self.pieces.first(message.message) && piece != self.pieces.last(message.message);
            self.graph.set_paced(piece, has_prior);
        }
    }

    fn block_status(&mut self, message: &Message<'_>) {
        let Some(exchange) = self.index.exchange(message) else { return };
        let mut pieces = exchange.data().iter().rev().flat_map(|data| self.pieces.all(*data).rev());
        let last = pieces.find(|piece| self.graph.arrived(*piece) <= message.sent_ns);
        if let Some(last) = last {
            self.wait(message, Cause::delivered(last, Evidence::Exchange));
        }
    }

    /// A request over HTTP: what its thread does next, after what came on its connection.
    pub fn request(&mut self, message: &Message<'_>) {
        for cause in self.causes_of_request(message, message.sent_ns) {
            self.wait(message, cause);
        }
        if let Some(answer) = self.last_before(message, false) {
            self.wait(message, Cause::delivered(self.pieces.last(answer.message), Evidence::Exchange));
        }
    }

    /// The first part of an answer waits for the request, the others for the part before.
    fn response(&mut self, message: &Message<'_>) {
        let Some(exchange) = self.index.exchange(message) else { return };
        if let Some(request) = exchange.requests().first().copied() {
            self.wait(message, Cause::delivered(self.pieces.last(request), Evidence::Exchange));
        }
        if exchange.data().first() != Some(&message.message) {
            self.pieces.follow(self.graph, message.message);
        }
        measured::serve(self.pieces, self.graph, self.measured, message, StepKind::Serve);
    }

    /// From headers alone: an answer to what came on the connection, or what the process does after what it got.
    fn by_order(&mut self, message: &Message<'_>) {
        let answered = self.last_before(message, true);
        let said = self.last_on_stream(message);
        if let Some(answered) = answered
            && said.is_none_or(|said| said.message < answered.message)
        {
            let evidence = Evidence::Exchange;
            if self.wait(message, Cause::delivered(self.pieces.last(answered.message), evidence)) {
                return;
            }
        }
        let process = sender(self.joined, message);
        if let Some(cause) = process.and_then(|process| self.heuristic(process, message.sent_ns))
            && self.wait(message, cause)
        {
            return;
        }
        if said.is_some() && message.kind == MessageKind::Unknown && self.pieces.follow(self.graph, message.message) {
            return;
        }
        if let Some(origin) = process.and_then(|process| self.threads.origin(process)) {
            self.wait(message, origin);
        }
    }

    /// The last message on the connection before, from the other end; with `arrived`, only one that had come.
    fn last_before(&self, message: &Message<'_>, arrived: bool) -> Option<Message<'a>> {
        self.before(message).find(|other| {
            other.from_client != message.from_client && (!arrived || other.delivered_ns <= message.sent_ns)
        })
    }

    /// The last message on the connection before, in the same direction.
    fn last_on_stream(&self, message: &Message<'_>) -> Option<Message<'a>> {
        self.before(message).find(|other| other.from_client == message.from_client)
    }

    fn before(&self, message: &Message<'_>) -> impl Iterator<Item = Message<'a>> + use<'a> {
        let (joined, index) = (self.joined, self.index);
        index.before(message.message).map(|id| joined.message(id))
    }

    /// The message of the same kind and block on the hop before.
    fn upstream(&self, message: &Message<'_>, kind: MessageKind) -> Option<MessageId> {
        let hop = message.hop?.checked_sub(1).filter(|hop| *hop > 0)?;
        self.index.on_hop(self.joined, message, kind, hop)
    }

    fn downstream(&self, message: &Message<'_>, kind: MessageKind) -> Option<MessageId> {
        self.index.on_hop(self.joined, message, kind, message.hop? + 1)
    }
}

/// The last of pieces that had arrived until a time.
fn last_until(arrivals: &[(Draft, u64)], at: u64) -> Option<Draft> {
    arrivals.iter().rfind(|(_, arrived)| *arrived <= at).map(|(piece, _)| *piece)
}

/// Processes whose threads get their work from queues, so that the thread's own past says little.
fn is_fed_by_queues(role: &str) -> bool {
    matches!(
        role,
        "MRAppMaster"
            | "NodeManager"
            | "ResourceManager"
            | "JobHistoryServer"
            | "DataNode"
            | "TaskTracker"
            | "JobTracker"
    )
}
