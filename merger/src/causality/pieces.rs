//! Messages to events: where a long message is cut, and what each piece waits for within its stream.
//!
//! For each piece after the first the question is what kept it from leaving earlier:
//!
//! - the **network**: bytes of the stream were still on their way (they arrived later than this piece left, or more
//!   than two full segments were not acknowledged), or the link of the sender's own host was full. The simulated network has to pace it: it is handed over with the
//!   piece before it, without delay.
//! - the **receiver**: its window was small because it had not read what it had; what it did meanwhile is thinking.
//!   The piece waits for the piece before it to be handed over, and for what lies one full window back to have
//!   arrived, plus the recorded time.
//! - the **sender**: it had nothing to send. The piece waits for the piece before it, plus the recorded pause. If that
//!   one spent longer on its way than the sender then paused, the pause is counted from its arrival, so that the
//!   network's time does not become thinking; while bytes that the network paced are still on their way, it paces this piece too.
//!
//! Pauses within a stream are counted from when the piece before it left: what waited for that one to leave is the network's, too.
//!
//! On loopback nothing is the network's: what happens there is the pace of the two processes.

use std::io;
use std::iter::Peekable;
use std::ops::Range;

use rayon::prelude::*;
use trace::ids::{ConnectionId, MessageId, ProcessId};
use trace::rows::{Evidence, MessageKind};

use super::draft::{ByTime, Cause, Draft, Graph, number};
use super::event::{NONE, some};
use super::index::sender_host;
use crate::compact::{Connection, Connections, Ends, Message};
use crate::joined::{Joined, Segment};
use crate::maps::HashMap;
use crate::network::FullTimes;
use crate::packed_streams::{Near, PackedStreams};
use crate::spilled::{Reader, Record, RecordList, RecordLog, Writer};

/// Bytes of a piece at most, but for the rest of its last segment. HDFS forwards and acknowledges packets of 64 KiB.
pub const PIECE_BYTES: u64 = 64 * 1024;
/// A pause that ends a piece early.
const PAUSE_NS: u64 = 1_000_000;
/// More unacknowledged bytes than a delayed acknowledgement leaves (two full Ethernet segments): ACKs are on their way.
const ACK_BYTES: u64 = 2 * 1_460;
/// Shortest pause that counts as thinking where the round trip is not known.
const UNKNOWN_ROUND_TRIP_NS: u64 = 250_000;
/// Window that is assumed where none was heard.
const UNKNOWN_WINDOW_BYTES: u64 = 256 * 1024;

/// Messages whose segments are unpacked in parallel while those before them are cut, one after the other; and, where there is more than
/// one, how many bytes those may have that are no longer than a piece, and how many segments the others.
const READ_AT_ONCE: usize = 1024;
const MAX_SHORT_BYTES: u64 = 4 << 20;
const MAX_LONG_SEGMENTS: u64 = 1 << 16;
/// Of these, those that one thread unpacks one behind the other, and segments for which it keeps memory: those of 32 MiB mostly.
const READ_BY_ONE: usize = 128;
const MAX_KEPT_SEGMENTS: usize = 1 << 15;

/// What kept a piece from leaving earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitedBy {
    Network,
    Receiver,
    Sender,
}

/// The events of all messages.
#[derive(Debug)]
pub struct Pieces {
    /// By message: where its events begin, which follow on each other; and behind the last one where all end.
    begins: RecordList<u32>,
    /// By draft: offset of the piece's first byte in its stream, and of one that left when its receiver's window had room for it the piece
    /// whose reading made room.
    places: RecordList<(u64, u32)>,
    /// By message: how its first piece follows on what was sent before it on the same stream.
    orders: RecordList<PieceOrder>,
    /// By message: when its last event had arrived, and this event.
    pub deliveries: RecordLog<(u64, u32)>,
    /// Draft of the first piece of the message that is being cut, and how that one follows.
    current: (Draft, PieceOrder),
    /// How many pieces each of them kept from leaving earlier: network, receiver, sender.
    pub by_limit: [u64; 3],
}

/// Memory that each list takes at most, bytes.
const MAX_BYTES: usize = 1 << 20;

/// How a piece follows on the one before.
#[derive(Clone, Copy, Debug)]
struct PieceOrder {
    /// Draft; [`NONE`] = it follows on none.
    previous: u32,
    /// Draft of what lies a window before; [`NONE`] = nothing does.
    lag: u32,
    idle: u64,
    limited_by: LimitedBy,
}

impl Record for PieceOrder {
    const BLANK: Self = Self { previous: NONE, lag: NONE, idle: 0, limited_by: LimitedBy::Sender };
    const BYTES: usize = 2 * 4 + 8 + 1;

    fn write(&self, out: &mut Writer<'_>) {
        self.previous.write(out);
        self.lag.write(out);
        self.idle.write(out);
        out.bytes([self.limited_by as u8]);
    }

    fn read(input: &mut Reader<'_>) -> Self {
        let (previous, lag, idle) = (input.u32(), input.u32(), input.u64());
        let limited_by = match input.u8() {
            0 => LimitedBy::Network,
            1 => LimitedBy::Receiver,
            _ => LimitedBy::Sender,
        };
        Self { previous, lag, idle, limited_by }
    }
}

/// Messages that follow on each other, with their segments.
#[derive(Default)]
struct Chunk<'m> {
    messages: Vec<Message<'m>>,
    /// Their places, stream by stream.
    by_stream: Vec<usize>,
    /// Of each message: where its segments were read, and where they lie there.
    places: Vec<(usize, Range<usize>)>,
    /// By each who reads some.
    segments: Vec<SegmentsOf>,
}

/// The segments of some messages.
#[derive(Default)]
struct SegmentsOf {
    all: Vec<Segment>,
    /// Where those of each message end.
    ends: Vec<usize>,
    near: Near,
}

impl<'m> Chunk<'m> {
    /// Takes the next messages, in place of those that it had.
    fn fill(&mut self, all: &mut Peekable<impl Iterator<Item = Message<'m>>>, streams: &PackedStreams) {
        self.messages.clear();
        let (mut bytes, mut segments) = (MAX_SHORT_BYTES, MAX_LONG_SEGMENTS);
        let mut fits = |message: &Message<'_>| {
            if message.bytes <= PIECE_BYTES {
                return charge(&mut bytes, message.bytes);
            }
            let (stream, part) = ((message.connection, message.from_client), (message.offset, message.bytes));
            charge(&mut segments, streams.count_at_most(stream, part))
        };
        while self.messages.len() < READ_AT_ONCE
            && let Some(message) = all.next_if(|next| fits(next) || self.messages.is_empty())
        {
            self.messages.push(message);
        }
    }

    /// Reads their segments by all threads that have nothing else to do.
    fn read(&mut self, streams: &PackedStreams) -> io::Result<()> {
        let messages = &self.messages;
        self.by_stream.clear();
        self.by_stream.extend(0..messages.len());
        self.by_stream.sort_unstable_by_key(|place| {
            let message = &messages[*place];
            (message.connection, message.from_client, message.offset, *place)
        });
        let parts = messages.len().div_ceil(READ_BY_ONE).max(self.segments.len());
        self.segments.resize_with(parts, SegmentsOf::default);
        let parts = self.by_stream.par_chunks(READ_BY_ONE).zip(&mut self.segments);
        parts.try_for_each(|(places, out)| out.read(streams, places.iter().map(|place| &messages[*place])))?;
        self.places.clear();
        self.places.resize(messages.len(), (0, 0..0));
        for (part, (places, read)) in self.by_stream.chunks(READ_BY_ONE).zip(&self.segments).enumerate() {
            let mut begin = 0;
            for (place, end) in places.iter().zip(&read.ends) {
                self.places[*place] = (part, begin..*end);
                begin = *end;
            }
        }
        Ok(())
    }

    fn iter(&self) -> impl Iterator<Item = (&Message<'m>, &[Segment])> {
        let segments = self.places.iter().map(|(part, lie)| &self.segments[*part].all[lie.clone()]);
        self.messages.iter().zip(segments)
    }
}

/// Takes what is left for one more, and says whether it was enough.
fn charge(left: &mut u64, one: u64) -> bool {
    let is_enough = one <= *left;
    *left = left.saturating_sub(one);
    is_enough
}

impl SegmentsOf {
    fn read<'a>(&mut self, streams: &PackedStreams, messages: impl Iterator<Item = &'a Message<'a>>) -> io::Result<()> {
        self.all.clear();
        self.all.shrink_to(MAX_KEPT_SEGMENTS);
        self.ends.clear();
        for message in messages {
            let (stream, part) = ((message.connection, message.from_client), (message.offset, message.bytes));
            streams.range(stream, part, &mut self.near, &mut self.all)?;
            self.ends.push(self.all.len());
        }
        Ok(())
    }
}

impl Pieces {
    /// Cuts all messages by the `segments` of each connection, and ties the pieces of each to one another.
    ///
    /// # Errors
    /// If segments lie in a file that cannot be read.
    pub fn cut(joined: &Joined, segments: &PackedStreams, graph: &mut Graph) -> io::Result<Self> {
        let mut pieces = Self {
            begins: RecordList::within(MAX_BYTES),
            places: RecordList::within(MAX_BYTES),
            orders: RecordList::within(MAX_BYTES),
            deliveries: RecordLog::within(MAX_BYTES),
            current: (0, PieceOrder::BLANK),
            by_limit: [0; 3],
        };
        let mut streams = Streams::of(joined);
        let mut all = joined.messages.iter().peekable();
        let [mut chunk, mut next] = [(); 2].map(|()| Chunk::default());
        let (mut happened, mut to_sort, by_time) = (Vec::new(), Vec::new(), ByTime::default().sorter);
        chunk.fill(&mut all, segments);
        chunk.read(segments)?;
        while !chunk.messages.is_empty() {
            next.fill(&mut all, segments);
            let cut = || -> io::Result<()> {
                for (message, segments) in chunk.iter() {
                    let full_uplink = joined.full_uplinks.get(sender_host(joined, message).index());
                    pieces.begin(graph);
                    let state = streams.state(message, &joined.connections);
                    let first = graph.count();
                    pieces.cut_message(joined, graph, (message, full_uplink), segments, state);
                    happened.extend((first..graph.count()).map(|draft| (graph.happened(draft), number(draft))));
                    streams.cut(message);
                    let last = graph.count() - 1;
                    pieces.deliveries.push((graph.arrived(last), number(last)))?;
                }
                Ok(())
            };
            let read = || next.read(segments).and_then(|()| by_time.extend(to_sort.drain(..)));
            let (cut, read) = rayon::join(cut, read);
            cut.and(read)?;
            std::mem::swap(&mut chunk, &mut next);
            std::mem::swap(&mut happened, &mut to_sort);
        }
        by_time.extend(to_sort)?;
        graph.set_by_time(by_time);
        pieces.begin(graph);
        pieces.check()?;
        Ok(pieces)
    }

    /// How many there are: pieces are the first events.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// Whether all could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn check(&self) -> io::Result<()> {
        self.begins.check().and(self.places.check()).and(self.orders.check()).and(self.deliveries.check())
    }

    /// Notes that a message begins, or that none does any more.
    fn begin(&mut self, graph: &Graph) {
        self.begins.push(number(graph.count()));
        self.current = (graph.count(), PieceOrder::BLANK);
    }

    /// The first event of a message.
    pub fn first(&self, message: MessageId) -> Draft {
        self.begins.get(message.index()) as usize
    }

    /// The last event of a message.
    pub fn last(&self, message: MessageId) -> Draft {
        (self.begins.get(message.index() + 1) as usize).saturating_sub(1)
    }

    /// All events of a message.
    pub fn all(&self, message: MessageId) -> Range<Draft> {
        self.begins.get(message.index()) as usize..self.begins.get(message.index() + 1) as usize
    }

    /// Offset of the piece's first byte within its stream.
    pub fn offset(&self, piece: Draft) -> u64 {
        self.places.get(piece).0
    }

    /// The piece a window before, if this one waited for the receiver to read that.
    pub fn makes_room(&self, piece: Draft) -> Option<Draft> {
        (piece < self.count()).then(|| self.places.get(piece).1).and_then(some).map(|room| room as usize)
    }

    /// Lets a message follow on what was sent before it on the same stream, as the pieces of one message do.
    pub fn follow(&self, graph: &mut Graph, message: MessageId) -> bool {
        let order = self.orders.get(message.index());
        if order.previous != NONE {
            tie(graph, self.first(message), order);
        }
        order.previous != NONE
    }

    fn cut_message(
        &mut self,
        joined: &Joined,
        graph: &mut Graph,
        (message, full_uplink): (&Message<'_>, Option<&FullTimes>),
        segments: &[Segment],
        state: &mut StreamState,
    ) {
        let in_one = message.bytes <= PIECE_BYTES && !is_stream(message.kind);
        let mut current: Option<Open> = None;
        for (index, segment) in segments.iter().enumerate() {
            let idle = state.idle(segment);
            let begin = segment.offset.max(message.offset);
            let end = (segment.offset + u64::from(segment.bytes)).min(message.offset + message.bytes);
            let ends_acks = message.kind == MessageKind::BlockAck && index + 1 == segments.len();
            let pauses = idle > state.round_trip_ns.max(PAUSE_NS) || ends_acks;
            let full = current.as_ref().is_some_and(|open| !in_one && (pauses || open.bytes >= PIECE_BYTES));
            if full && let Some(open) = current.take() {
                self.close(joined, graph, message, state, open);
            }
            let open = current.get_or_insert_with(|| Open {
                offset: begin,
                bytes: 0,
                sent_ns: segment.sent_ns,
                arrived_ns: 0,
                idle_ns: 0,
                order: state.order(segment, idle, begin, full_uplink),
            });
            if open.bytes > 0 {
                open.idle_ns += idle;
            }
            open.bytes += end.saturating_sub(begin);
            open.arrived_ns = open.arrived_ns.max(segment.delivered_ns);
            state.saw(segment);
        }
        if let Some(open) = current {
            self.close(joined, graph, message, state, open);
        }
        self.complete(joined, graph, message);
    }

    fn close(
        &mut self,
        joined: &Joined,
        graph: &mut Graph,
        message: &Message<'_>,
        state: &mut StreamState,
        open: Open,
    ) {
        let is_first = graph.count() == self.current.0;
        let process = sender(&joined.connections[message.connection], message.from_client);
        let piece = graph.send(message, process, open.bytes, open.sent_ns, open.arrived_ns);
        let mut room = NONE;
        if let Some(order) = open.order {
            if is_first {
                if follows(message.kind) {
                    self.current.1 = order;
                }
            } else {
                self.by_limit[order.limited_by as usize] += 1;
                if order.limited_by == LimitedBy::Receiver && message.kind == MessageKind::BlockData {
                    room = order.lag;
                }
                tie(graph, piece, order);
            }
        }
        self.places.push((open.offset, room));
        state.pieces.push((open.offset + open.bytes, piece));
        state.piece_sent_ns = open.sent_ns;
        state.piece_idle_ns = open.idle_ns;
    }

    /// A message whose bytes the capture lost is one piece; one that was seen in part carries all its bytes.
    fn complete(&mut self, joined: &Joined, graph: &mut Graph, message: &Message<'_>) {
        let (first, order) = self.current;
        self.orders.push(order);
        if graph.count() == first {
            let process = sender(&joined.connections[message.connection], message.from_client);
            graph.send(message, process, message.bytes, message.sent_ns, message.delivered_ns);
            self.places.push((message.offset, NONE));
            return;
        }
        let seen: u64 = (first..graph.count()).map(|piece| graph.bytes(piece)).sum();
        graph.add_bytes(graph.count() - 1, message.bytes.saturating_sub(seen));
    }
}

fn tie(graph: &mut Graph, piece: Draft, order: PieceOrder) {
    let previous = order.previous as usize;
    if order.limited_by == LimitedBy::Network {
        let waits = graph.wait(piece, Cause::sent(previous, Evidence::Stream));
        graph.set_paced(piece, waits);
        return;
    }
    if let Some(lag) = some(order.lag).filter(|_| order.limited_by == LimitedBy::Receiver) {
        graph.wait(piece, Cause::delivered(lag as usize, Evidence::Stream));
    }
    let on_its_way = graph.arrived(previous).saturating_sub(graph.happened(previous));
    let arrived = graph.arrived(previous) <= graph.happened(piece);
    let paced = graph.is_paced(previous);
    if arrived && (paced || on_its_way > order.idle) {
        graph.wait(piece, Cause::delivered(previous, Evidence::Stream));
    } else {
        let waits = graph.wait(piece, Cause::sent(previous, Evidence::Stream));
        // What the network paced was handed over long before it left: a pause that is counted from then would be the network's time.
        // So the network paces this one as well.
        graph.set_paced(piece, waits && paced);
        graph.count_since_left(piece);
    }
}

/// A piece that is being gathered.
struct Open {
    offset: u64,
    bytes: u64,
    sent_ns: u64,
    arrived_ns: u64,
    /// Pauses between its segments.
    idle_ns: u64,
    order: Option<PieceOrder>,
}

/// The directions of connections on which messages are still to be cut.
struct Streams {
    states: HashMap<(ConnectionId, bool), StreamState>,
    /// By connection: how many messages are left from the server, and from the client.
    left: Vec<[u32; 2]>,
}

impl Streams {
    fn of(joined: &Joined) -> Self {
        let mut left = vec![[0; 2]; joined.connections.len()];
        for message in joined.messages.iter() {
            left[message.connection.index()][usize::from(message.from_client)] += 1;
        }
        Self { states: HashMap::default(), left }
    }

    fn state(&mut self, message: &Message<'_>, connections: &Connections) -> &mut StreamState {
        let key = (message.connection, message.from_client);
        self.states.entry(key).or_insert_with(|| StreamState::new(connections.get(message.connection)))
    }

    /// A message was cut. What is known of a direction that has no more is given up.
    fn cut(&mut self, message: &Message<'_>) {
        let left = &mut self.left[message.connection.index()][usize::from(message.from_client)];
        *left -= 1;
        if *left == 0 {
            self.states.remove(&(message.connection, message.from_client));
        }
    }
}

/// What is known of one direction of a connection so far.
struct StreamState {
    loopback: bool,
    round_trip_ns: u64,
    window_bytes: u64,
    arrived_ns: u64,
    /// When the last piece began to leave, and the pauses within it.
    piece_sent_ns: u64,
    piece_idle_ns: u64,
    /// End offset and draft of each piece.
    pieces: Vec<(u64, Draft)>,
}

impl StreamState {
    fn new(connection: Connection<'_>) -> Self {
        let round_trip = connection.figures.handshake_ns.unwrap_or(UNKNOWN_ROUND_TRIP_NS);
        Self {
            loopback: connection.ends.loopback,
            round_trip_ns: round_trip.clamp(UNKNOWN_ROUND_TRIP_NS, 5_000_000) * 2,
            window_bytes: 0,
            arrived_ns: 0,
            piece_sent_ns: 0,
            piece_idle_ns: 0,
            pieces: Vec::new(),
        }
    }

    /// How long nothing of this stream had been on its way when the segment left.
    fn idle(&self, segment: &Segment) -> u64 {
        if self.pieces.is_empty() && self.arrived_ns == 0 {
            return 0;
        }
        let waits_for_acks = !self.loopback && segment.in_flight_bytes > ACK_BYTES && !self.tight(segment);
        if waits_for_acks { 0 } else { segment.sent_ns.saturating_sub(self.arrived_ns) }
    }

    /// Whether the receiver leaves room for less than half of what it once did.
    fn tight(&self, segment: &Segment) -> bool {
        segment.window_bytes > 0
            && segment.window_bytes.saturating_sub(segment.in_flight_bytes) < self.window_bytes.max(PIECE_BYTES) / 2
    }

    fn order(&self, segment: &Segment, idle: u64, offset: u64, full_uplink: Option<&FullTimes>) -> Option<PieceOrder> {
        let previous = self.pieces.last()?.1;
        let idle_sum = self.piece_idle_ns + idle;
        let span = segment.sent_ns.saturating_sub(self.piece_sent_ns);
        // What waits for its sender's own link has not left it yet: pauses while that is full are the network's.
        let held_up = full_uplink.is_some_and(|full| full.holds(segment.sent_ns));
        let pauses = idle > self.round_trip_ns || idle_sum > (span / 10 * 3).max(100_000);
        let thinks = self.loopback || (pauses && !held_up);
        let window = if self.window_bytes == 0 { UNKNOWN_WINDOW_BYTES } else { self.window_bytes };
        let lag = offset
            .checked_sub(window)
            .map(|until| self.pieces.partition_point(|(end, _)| *end <= until))
            .and_then(|after| Some(self.pieces[after.checked_sub(1)?].1));
        let limited_by = match (thinks, self.tight(segment) && lag.is_some()) {
            (false, _) => LimitedBy::Network,
            (true, true) => LimitedBy::Receiver,
            (true, false) => LimitedBy::Sender,
        };
        Some(PieceOrder { previous: number(previous), lag: lag.map_or(NONE, number), idle: idle_sum, limited_by })
    }

    fn saw(&mut self, segment: &Segment) {
        self.window_bytes = self.window_bytes.max(segment.window_bytes);
        self.arrived_ns = self.arrived_ns.max(segment.delivered_ns);
    }
}

fn sender(ends: &Ends, from_client: bool) -> Option<ProcessId> {
    if from_client { ends.client_process } else { ends.server_process }
}

/// Messages that may be asked for what they follow on ([`Pieces::follow`]).
fn follows(kind: MessageKind) -> bool {
    matches!(
        kind,
        MessageKind::BlockData | MessageKind::ShuffleResponse | MessageKind::HttpResponse | MessageKind::Unknown
    )
}

/// Messages that are produced or taken bit by bit.
fn is_stream(kind: MessageKind) -> bool {
    matches!(
        kind,
        MessageKind::BlockData
            | MessageKind::BlockAck
            | MessageKind::ShuffleResponse
            | MessageKind::HttpResponse
            | MessageKind::Unknown
    )
}
