//! Production and consumption as JVMs measured them, by bytes.
//!
//! A writer of HDFS makes packets, which wait in a queue until the pipeline has acknowledged them. Its production is a chain of
//! marks of its own: each part of the block is made after the part before, when the queue has room, and takes the time that
//! the writer worked on it. What the network did meanwhile is not in it.

use trace::ids::{MessageId, ProcessId};
use trace::rows::{Evidence, StepKind, StepRow};

use super::draft::{Cause, Draft, Graph};
use super::index::{Index, sender};
use super::pieces::Pieces;
use super::turns::{Taken, Timeline, timelines};
use crate::capture::sense::MAX_COUNT;
use crate::compact::Message;
use crate::joined::Joined;
use crate::maps::HashMap;

/// Data that a writer has made and that is not yet acknowledged, at most: `dfs.client.write.max-packets-in-flight` (80) and the
/// one that was let in, in packets of 126 checksummed chunks of 512 bytes.
const QUEUE_BYTES: u64 = 81 * 126 * 512;

/// Work as a function of bytes: that of steps in proportion, and where none was told, as on the average.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Curve {
    /// Begin, end and work of each step, without overlap.
    steps: Vec<(u64, u64, u64)>,
    /// Of all steps.
    bytes: u64,
    work_ns: u64,
    read_wait_ns: u64,
}

impl Curve {
    /// Of steps in any order; those that overlap an earlier one in the block are left out.
    fn of<'a>(rows: impl Iterator<Item = &'a StepRow>) -> Self {
        let mut rows: Vec<&StepRow> = rows.filter(|row| row.bytes > 0).collect();
        rows.sort_by_key(|row| (row.first_byte, row.begin_ns));
        let mut curve = Self::default();
        for row in rows {
            let last = curve.steps.last().map_or(0, |last| last.1);
            if row.first_byte >= last {
                curve.steps.push((row.first_byte, row.first_byte.saturating_add(row.bytes), row.work_ns));
                curve.bytes = curve.bytes.saturating_add(row.bytes);
                curve.work_ns = curve.work_ns.saturating_add(row.work_ns);
                curve.read_wait_ns = curve.read_wait_ns.saturating_add(row.read_wait_ns);
            }
        }
        curve
    }

    /// Whether the reader waited for bytes longer than it worked. What other threads did of its work, such as sorting what it
    /// had collected, may have been done by the time at which it would have waited for them.
    pub fn starved(&self) -> bool {
        self.read_wait_ns > self.work_ns
    }

    /// The data before the end of each piece of a message of block data.
    pub fn ends_of_pieces(&self, graph: &Graph, pieces: &Pieces, message: &Message<'_>) -> Vec<u64> {
        let begin = self.steps.first().map_or(0, |first| first.0);
        let end = |piece: Draft| {
            let wire = pieces.offset(piece).saturating_sub(message.offset).saturating_add(graph.bytes(piece));
            begin.saturating_add(share(message.app_bytes, wire, message.bytes))
        };
        pieces.all(message.message).map(end).collect()
    }

    /// Nanoseconds of work on what each piece of a message of block data carries.
    pub fn of_pieces(&self, graph: &Graph, pieces: &Pieces, message: &Message<'_>) -> Vec<u64> {
        let begin = self.steps.first().map_or(0, |first| first.0);
        let data = |wire: u64| begin.saturating_add(share(message.app_bytes, wire, message.bytes));
        let of = |piece: Draft| {
            let from = pieces.offset(piece).saturating_sub(message.offset);
            self.work(data(from), data(from.saturating_add(graph.bytes(piece))))
        };
        pieces.all(message.message).map(of).collect()
    }

    /// Nanoseconds of work on the bytes from one offset to another.
    pub fn work(&self, from: u64, to: u64) -> u64 {
        let (mut work, mut covered) = (0u64, 0);
        let first = self.steps.partition_point(|(_, end, _)| *end <= from);
        for (begin, end, step) in self.steps[first..].iter().take_while(|(begin, ..)| *begin < to) {
            let part = to.min(*end).saturating_sub(from.max(*begin));
            work = work.saturating_add(share(*step, part, end - begin));
            covered += part;
        }
        let untold = to.saturating_sub(from).saturating_sub(covered);
        work.saturating_add(share(self.work_ns, untold, self.bytes)).min(MAX_COUNT)
    }
}

/// `part / whole` of a time, rounded down.
fn share(ns: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(ns) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(MAX_COUNT).min(MAX_COUNT)
}

/// What was measured of messages.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    curves: HashMap<(MessageId, u8), Curve>,
    /// Of messages that a thread reads and writes by turns.
    timelines: HashMap<MessageId, Timeline>,
    /// Thread that made a message's data.
    makers: HashMap<MessageId, (ProcessId, u64)>,
}

impl Measured {
    /// Of all steps.
    pub fn new(joined: &Joined) -> Self {
        let mut measured = Self { timelines: timelines(&joined.steps), ..Self::default() };
        for rows in joined.steps.chunk_by(|a, b| (a.message, a.kind) == (b.message, b.kind)) {
            let first = &rows[0];
            measured.curves.insert((first.message, first.kind as u8), Curve::of(rows.iter()));
            if first.kind == StepKind::Produce {
                measured.makers.insert(first.message, (first.process, first.thread));
            }
        }
        measured
    }

    /// Until when which bytes of a message were taken, or made, by a thread that reads and writes by turns; `None` = by another, or nobody told.
    pub fn timeline(&self, message: MessageId) -> Option<&Timeline> {
        self.timelines.get(&message)
    }

    /// How a message's data was made, or taken; `None` = nobody told.
    pub fn curve(&self, message: MessageId, kind: StepKind) -> Option<&Curve> {
        self.curves.get(&(message, kind as u8))
    }
}

/// When the pieces of a block but the first had been made.
#[derive(Clone, Debug, Default)]
pub struct Made {
    /// The marks, by piece.
    marks: HashMap<Draft, Draft>,
    /// Whether a thread made them that reads by turns, so that each mark is when its data was really made, and not only when it can have been.
    by_turns: bool,
}

impl Made {
    /// When a piece had been made.
    pub fn mark(&self, piece: Draft) -> Option<Draft> {
        self.marks.get(&piece).copied()
    }

    /// Whether a piece lay ready for most of the time since the one before: then what made it did not keep it.
    pub fn lay_ready(&self, graph: &Graph, piece: Draft, since_last: u64) -> bool {
        let ready = self.mark(piece).map_or(0, |mark| graph.happened(piece).saturating_sub(graph.happened(mark)));
        self.by_turns && ready.saturating_mul(2) > since_last
    }
}

/// The production of writers, block after block.
#[derive(Clone, Debug, Default)]
pub struct Writers {
    /// When each thread had made the last part of its last block.
    last: HashMap<(ProcessId, u64), Draft>,
    /// What threads that also read had taken.
    taken: Taken,
}

impl Writers {
    /// Writers, of which some have `taken` what they write.
    pub fn new(taken: Taken) -> Self {
        Self { taken, ..Self::default() }
    }

    /// Adds the marks of a block's production, one a piece but the first: when what the piece carries had been made. `None` where
    /// its JVM told nothing of it.
    pub fn produce(
        &mut self,
        joined: &Joined,
        index: &Index<'_>,
        (pieces, graph): (&Pieces, &mut Graph),
        measured: &Measured,
        message: &Message<'_>,
    ) -> Option<Made> {
        let curve = measured.curve(message.message, StepKind::Produce)?;
        let maker = measured.makers.get(&message.message).copied()?;
        let all: Vec<Draft> = pieces.all(message.message).collect();
        let data = |wire: u64| share(message.app_bytes, wire, message.bytes);
        let end = |graph: &Graph, piece: Draft| {
            data((pieces.offset(piece) - message.offset).saturating_add(graph.bytes(piece)))
        };
        let acks = Acks::new(index, pieces, graph, message);
        let before = self.last.get(&maker).copied().filter(|made| graph.happened(*made) <= message.sent_ns);
        let mut before = before.or_else(|| asked(joined, index, pieces, graph, message)).unwrap_or(all[0]);
        let timeline = measured.timeline(message.message);
        let mut made_when = Made { by_turns: timeline.is_some(), ..Made::default() };
        for pair in all.windows(2) {
            let (from, to) = (end(graph, pair[0]), end(graph, pair[1]));
            let mut causes = vec![Cause::sent(before, Evidence::Stream)];
            let room = acks.until(from.saturating_sub(QUEUE_BYTES));
            let made = timeline.map_or(u64::MAX, |timeline| timeline.at(to)).min(graph.happened(pair[1]));
            let room = room.filter(|ack| graph.arrived(*ack) <= made);
            causes.extend(room.map(|ack| Cause::delivered(ack, Evidence::Exchange)));
            let mark = if timeline.is_some() {
                let (taken, next) = self.taken.around(graph, maker, made);
                causes.extend(taken.map(|taken| Cause::sent(taken, Evidence::Stream)));
                let mark = graph.work_by("block.produced", pair[1], &causes, curve.work(from, to), made);
                next.map(|next| graph.wait(next, Cause::sent(mark, Evidence::Stream)));
                mark
            } else {
                graph.work("block.produced", pair[1], &causes, curve.work(from, to))
            };
            made_when.marks.insert(pair[1], mark);
            before = mark;
        }
        self.last.insert(maker, before);
        Some(made_when)
    }
}

/// Marks of what a DataNode has done with each piece of a block that it received: checked, stored, forwarded. `None` where its
/// JVM told nothing of it. It works on packets one after the other: what it forwards or acknowledges next waits for that.
pub fn receive(
    index: &Index<'_>,
    (pieces, graph): (&Pieces, &mut Graph),
    measured: &Measured,
    message: &Message<'_>,
    next_hop: Option<&Message<'_>>,
) -> Option<Vec<Draft>> {
    let works = measured.curve(message.message, StepKind::Receive)?.of_pieces(graph, pieces, message);
    let acks = index.exchange(message)?.acks().last()?;
    let last = pieces.last(*acks);
    let forwarded: Vec<Draft> = next_hop.into_iter().flat_map(|next| pieces.all(next.message)).collect();
    let begins = next_hop.map_or(0, |next| next.offset);
    let mut marks: Vec<Draft> = Vec::with_capacity(works.len());
    for (piece, work) in pieces.all(message.message).zip(works) {
        let end = pieces.offset(piece).saturating_sub(message.offset).saturating_add(graph.bytes(piece));
        let after = forwarded.partition_point(|next| pieces.offset(*next).saturating_sub(begins) < end);
        let mut causes = vec![Cause::delivered(piece, Evidence::Stream)];
        causes.extend(marks.last().map(|before| Cause::sent(*before, Evidence::Stream)));
        let follows = forwarded.get(after).copied().unwrap_or(last);
        marks.push(graph.work("block.received", follows, &causes, work));
    }
    Some(marks)
}

/// Lets the pieces of what a server reads and sends wait for their reading, which goes on from the first piece on whatever the
/// network does.
pub fn serve(pieces: &Pieces, graph: &mut Graph, measured: &Measured, message: &Message<'_>, kind: StepKind) {
    let Some(curve) = measured.curve(message.message, kind) else { return };
    let works = curve.of_pieces(graph, pieces, message);
    let mut before = pieces.first(message.message);
    for (piece, work) in pieces.all(message.message).zip(works).skip(1) {
        before = graph.work("served", piece, &[Cause::sent(before, Evidence::Stream)], work);
        graph.wait(piece, Cause::sent(before, Evidence::Stream));
    }
}

/// The call by which the block was asked for: its first packet was in the queue then.
fn asked(joined: &Joined, index: &Index<'_>, pieces: &Pieces, graph: &Graph, message: &Message<'_>) -> Option<Draft> {
    let calls = index.calls_by(sender(joined, message)?, "addBlock").rev();
    let mut requests = calls.map(|call| pieces.last(call.request));
    requests.find(|request| graph.happened(*request) <= message.sent_ns)
}

/// Acknowledgements of a block, by the data that they acknowledge.
struct Acks {
    /// Data acknowledged with each piece and those before, in the order of their stream.
    until: Vec<(u64, Draft)>,
}

impl Acks {
    fn new(index: &Index<'_>, pieces: &Pieces, graph: &Graph, message: &Message<'_>) -> Self {
        let messages = index.exchange(message).map(|exchange| exchange.acks()).unwrap_or_default();
        let all: Vec<Draft> = messages.iter().flat_map(|acks| pieces.all(*acks)).collect();
        let bytes = |piece: &Draft| graph.bytes(*piece);
        let whole: u64 = all.iter().map(bytes).sum();
        let mut seen = 0;
        let until = all.iter().map(|piece| {
            seen += bytes(piece);
            (share(message.app_bytes, seen, whole), *piece)
        });
        Self { until: until.collect() }
    }

    /// The piece that acknowledges the data up to an offset; `None` = none is needed, or was seen.
    fn until(&self, data: u64) -> Option<Draft> {
        let at = self.until.partition_point(|(until, _)| *until < data);
        self.until.get(at).filter(|_| data > 0).map(|(_, piece)| *piece)
    }
}
