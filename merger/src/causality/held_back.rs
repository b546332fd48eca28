//! Readers that hold their own bytes back. Where a receiver's window was full, a piece left when there was room for it: then the
//! reader had taken what lies a window before. So the stream itself tells when what was read, and how long the reader worked on it.

use trace::ids::{MessageId, ProcessId};
use trace::rows::Evidence;

use super::consumed::Consumed;
use super::draft::{Cause, Graph};
use super::pieces::Pieces;

/// When the reader of a message had taken its pieces, as far as its window tells.
#[derive(Clone, Debug)]
pub struct Taken {
    /// Pieces by their numbers within the message, and when each had been taken; both grow.
    known: Vec<(usize, u64)>,
}

impl Taken {
    /// Of a message of which the reader held back at least a half; else `None`.
    pub fn of(graph: &Graph, pieces: &Pieces, message: MessageId) -> Option<Self> {
        let all = pieces.all(message);
        let mut known: Vec<(usize, u64)> = Vec::new();
        for piece in all.clone() {
            let Some(taken) = pieces.makes_room(piece).filter(|taken| all.contains(taken)) else { continue };
            let number = taken - all.start;
            if known.last().is_none_or(|(last, _)| *last < number) {
                known.push((number, graph.happened(piece)));
            }
        }
        let covered = known.last()?.0 - known.first()?.0;
        (2 * covered >= all.len()).then_some(Self { known })
    }

    /// Nanoseconds of work on each piece: the time between what is known, by bytes. Up to the end, if the reader `closed` its stream
    /// then, or else at the pace so far.
    pub fn works(&self, graph: &Graph, pieces: &Pieces, message: MessageId, closed: Option<u64>) -> Vec<u64> {
        let all = pieces.all(message);
        let bytes = |from: usize, to: usize| -> u64 {
            all.clone().skip(from).take(to - from).map(|piece| graph.bytes(piece)).sum()
        };
        let begin = graph.arrived(all.start);
        let mut works: Vec<u64> = Vec::with_capacity(all.len());
        let mut at = begin;
        let add = |works: &mut Vec<u64>, until: usize, took: u64| {
            let (from, whole) = (works.len(), bytes(works.len(), until).max(1));
            for piece in all.clone().skip(from).take(until - from) {
                let part = u128::from(took) * u128::from(graph.bytes(piece)) / u128::from(whole);
                works.push(u64::try_from(part).unwrap_or(u64::MAX));
            }
        };
        for (number, taken) in &self.known {
            add(&mut works, number + 1, taken.saturating_sub(at));
            at = at.max(*taken);
        }
        let (done, left) = (bytes(0, works.len()).max(1), bytes(works.len(), all.len()));
        let at_pace = u128::from(at - begin) * u128::from(left) / u128::from(done);
        let took =
            closed.map_or_else(|| u64::try_from(at_pace).unwrap_or(u64::MAX), |closed| closed.saturating_sub(at));
        add(&mut works, all.len(), took);
        works
    }

    /// When each piece had been taken at the latest.
    pub fn latest(&self, count: usize) -> Vec<u64> {
        let mut latest = vec![u64::MAX; count];
        for (number, taken) in &self.known {
            latest[*number] = *taken;
        }
        for number in (1..count).rev() {
            latest[number - 1] = latest[number - 1].min(latest[number]);
        }
        latest
    }
}

/// Lets the pieces of a message wait for room: for `consumed`, by piece, of what lies a window before.
pub fn wait_for_room(graph: &mut Graph, pieces: &Pieces, message: MessageId, consumed: &Consumed) {
    for piece in pieces.all(message) {
        if let Some(mark) = pieces.makes_room(piece).and_then(|taken| consumed.get(taken)) {
            graph.wait(piece, Cause::sent(mark, Evidence::Stream));
        }
    }
}

/// Lets a message that crossed no network go at its reader's pace: each piece waits for the reader's work on the one before, which
/// took the time between them. Work on the last piece goes on at the pace so far, until the reader `closed` its stream. The marks of
/// what it had taken are added to `consumed`, by piece.
pub fn go_at_readers_pace(
    graph: &mut Graph,
    pieces: &Pieces,
    (message, reader): (MessageId, Option<ProcessId>),
    closed: Option<u64>,
    consumed: &mut Consumed,
) {
    let all = pieces.all(message);
    let (first, mut bytes, mut before) = (graph.arrived(all.start), 0u64, None);
    for piece in all.clone() {
        let mut causes = vec![Cause::delivered(piece, Evidence::Stream)];
        causes.extend(before.map(|before| Cause::sent(before, Evidence::Stream)));
        let begin = graph.arrived(piece).max(before.map_or(0, |before| graph.happened(before)));
        let next = (piece + 1 < all.end).then_some(piece + 1);
        let end = if let Some(next) = next {
            graph.happened(next)
        } else {
            let so_far = u128::from(begin.saturating_sub(first)) * u128::from(graph.bytes(piece));
            let work = u64::try_from(so_far / u128::from(bytes.max(1))).unwrap_or(u64::MAX);
            begin.saturating_add(work).min(closed.unwrap_or(u64::MAX))
        };
        let at = end.max(begin);
        let mark = graph.work_until("block.consumed", reader, &causes, at - begin, at);
        if let Some(next) = next.filter(|_| at == end) {
            graph.wait(next, Cause::sent(mark, Evidence::Stream));
        }
        consumed.insert(piece, mark);
        bytes += graph.bytes(piece);
        before = Some(mark);
    }
}
