//! Threads that read and write by turns, as a copy does: what they write waits for what they have read, and what they read next for room in
//! what they write. So the marks of what a thread had taken and of what it had made are one chain.

use std::ops::Range;

use trace::ids::{MessageId, ProcessId};
use trace::rows::{Evidence, StepKind, StepRow};

use super::consumed::Consumed;
use super::draft::{Cause, Draft, Graph};
use super::pieces::Pieces;
use crate::maps::HashMap;

/// A thread of a process.
pub type Thread = (ProcessId, u64);

/// Until when a thread had dealt with which bytes of a message.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    thread: Option<Thread>,
    /// Bytes and time of each step, in the order of bytes, without overlap.
    steps: Vec<(Range<u64>, Range<u64>)>,
}

impl Timeline {
    fn of(rows: &[StepRow]) -> Self {
        let mut rows: Vec<&StepRow> = rows.iter().filter(|row| row.bytes > 0).collect();
        rows.sort_by_key(|row| (row.first_byte, row.begin_ns));
        let mut timeline = Self { thread: rows.first().and_then(|row| thread_of(row)), steps: Vec::new() };
        for row in rows {
            let (bytes, time) = timeline.steps.last().map_or((0, 0), |(bytes, time)| (bytes.end, time.end));
            if row.first_byte >= bytes && row.begin_ns >= time {
                let bytes = row.first_byte..row.first_byte.saturating_add(row.bytes);
                timeline.steps.push((bytes, row.begin_ns..row.end_ns));
            }
        }
        timeline
    }

    /// A reader's last step lasts until it closes its stream. Of one that had written all by `written`, and waited for that to be stored, it was over then.
    fn end_with(&mut self, written: u64) {
        if let Some((_, time)) = self.steps.last_mut() {
            time.end = time.end.min(written.max(time.start));
        }
    }

    /// Whose it is.
    pub fn thread(&self) -> Option<Thread> {
        self.thread
    }

    /// When the thread had dealt with the bytes before `byte`, each step at an even pace.
    pub fn at(&self, byte: u64) -> u64 {
        let step = self.steps.partition_point(|(bytes, _)| bytes.end < byte);
        let Some((bytes, time)) = self.steps.get(step).or(self.steps.last()) else { return 0 };
        let part = byte.clamp(bytes.start, bytes.end) - bytes.start;
        let took = u128::from(time.end.saturating_sub(time.start)) * u128::from(part);
        let took = took / u128::from((bytes.end - bytes.start).max(1));
        time.start.saturating_add(u64::try_from(took).unwrap_or(u64::MAX))
    }
}

fn thread_of(row: &StepRow) -> Option<Thread> {
    (row.thread != 0).then_some((row.process, row.thread))
}

/// The timelines of what threads read and write by turns, by message; `steps` in the order of messages and kinds.
pub fn timelines(steps: &[StepRow]) -> HashMap<MessageId, Timeline> {
    // From when until when each thread read, and wrote.
    let mut spans: HashMap<Thread, [Option<Range<u64>>; 2]> = HashMap::default();
    for row in steps {
        let kind = match row.kind {
            StepKind::Consume => 0,
            StepKind::Produce => 1,
            _ => continue,
        };
        if let Some(thread) = thread_of(row) {
            let span = &mut spans.entry(thread).or_default()[kind];
            let (from, until) = span.as_ref().map_or((u64::MAX, 0), |span| (span.start, span.end));
            *span = Some(from.min(row.begin_ns)..until.max(row.end_ns));
        }
    }
    let by_turns = |thread: Thread| match spans.get(&thread) {
        Some([Some(reads), Some(writes)]) => reads.start < writes.end && writes.start < reads.end,
        _ => false,
    };
    let of_messages = steps.chunk_by(|a, b| (a.message, a.kind) == (b.message, b.kind));
    let timelines = of_messages.filter(|rows| matches!(rows[0].kind, StepKind::Consume | StepKind::Produce));
    let timelines = timelines.map(|rows| (&rows[0], Timeline::of(rows)));
    let timelines = timelines.filter(|(_, timeline)| timeline.thread.is_some_and(by_turns));
    let ended = |(first, mut timeline): (&StepRow, Timeline)| {
        let writes = timeline.thread.and_then(|thread| spans.get(&thread)?[1].as_ref());
        if let (StepKind::Consume, Some(writes)) = (first.kind, writes) {
            timeline.end_with(writes.end);
        }
        (first.message, timeline)
    };
    timelines.map(ended).collect()
}

/// Marks of what threads had taken of what they read by turns with writing, in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Taken(HashMap<Thread, Vec<Draft>>);

impl Taken {
    /// Adds the marks of a message's pieces, which ended with the bytes `ends`, took `works`, and had been taken at the `latest`; also to `consumed`, by piece.
    pub fn take(
        &mut self,
        graph: &mut Graph,
        pieces: &Pieces,
        (message, timeline): (MessageId, &Timeline),
        (ends, works, latest): (&[u64], &[u64], &[u64]),
        consumed: &mut Consumed,
    ) {
        let Some(thread) = timeline.thread() else { return };
        let mut before: Option<Draft> = None;
        for (((piece, end), work), latest) in pieces.all(message).zip(ends).zip(works).zip(latest) {
            let mut causes = vec![Cause::delivered(piece, Evidence::Stream)];
            causes.extend(before.map(|before| Cause::sent(before, Evidence::Stream)));
            let begin = graph.arrived(piece).max(before.map_or(0, |before| graph.happened(before)));
            let at = timeline.at(*end).min(*latest).max(begin);
            let mark = graph.work_until("block.consumed", Some(thread.0), &causes, (*work).min(at - begin), at);
            consumed.insert(piece, mark);
            before = Some(mark);
            self.0.entry(thread).or_default().push(mark);
        }
    }

    /// Lets the pieces of a message wait for what its reader had taken: of one that crosses a network for what lies a window before, where the reader held
    /// them back; of another one, whose buffers are as large as they happen to be, for the last that was taken when they left. So it is, too, where steps
    /// are so long that what lies a window before seems to be taken later. Who sends them does not think meanwhile.
    pub fn wait_for_reader(
        graph: &mut Graph,
        pieces: &Pieces,
        message: MessageId,
        loopback: bool,
        consumed: &Consumed,
    ) {
        let all = pieces.all(message);
        let mut marks = all.clone().filter_map(|piece| consumed.get(piece)).peekable();
        let mut last = None;
        for piece in all {
            while let Some(mark) = marks.next_if(|mark| graph.happened(*mark) <= graph.happened(piece)) {
                last = Some(mark);
            }
            let room = pieces.makes_room(piece).and_then(|taken| consumed.get(taken));
            let room =
                room.and_then(|mark| if graph.happened(mark) <= graph.happened(piece) { Some(mark) } else { last });
            if let Some(mark) = if loopback { last } else { room } {
                let waits = graph.wait(piece, Cause::sent(mark, Evidence::Stream));
                graph.set_paced(piece, waits);
            }
        }
    }

    /// Puts all in the order of time.
    pub fn sort(&mut self, graph: &Graph) {
        for marks in self.0.values_mut() {
            marks.sort_by_key(|mark| (graph.happened(*mark), *mark));
        }
    }

    /// The last that a thread had taken by a time, and what it took next.
    pub fn around(&self, graph: &Graph, thread: Thread, at: u64) -> (Option<Draft>, Option<Draft>) {
        let marks = self.0.get(&thread).map(Vec::as_slice).unwrap_or_default();
        let next = marks.partition_point(|mark| graph.happened(*mark) <= at);
        (next.checked_sub(1).map(|last| marks[last]), marks.get(next).copied())
    }
}
