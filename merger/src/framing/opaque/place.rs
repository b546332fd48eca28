//! Which segments are a message's: those that left after its sender said that it would write, and had arrived by when
//! its receiver said that it had read.

use std::ops::Range;

use crate::join::Direction;

/// How far a JVM's stamps may lie on the wrong side of those of packets, smallest first: the clock that Java 8 reads only
/// knows milliseconds, later ones microseconds. The smallest that leaves nothing over is taken.
pub(super) const TOLERANCES_NS: [u64; 4] = [100_000, 600_000, 1_200_000, 3_000_000];

/// Bytes that were written at once, as far as one can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Offset of the first byte.
    pub from: u64,
    /// Offset behind the last one.
    pub to: u64,
    /// When they began to leave.
    pub sent_ns: u64,
    /// When all of them, and all before, had arrived.
    pub delivered_ns: u64,
}

/// The segments of a direction.
pub(super) fn segments(direction: &Direction) -> Vec<Piece> {
    let pieces = direction.stream.segments.iter().map(|segment| Piece {
        from: segment.offset,
        to: segment.offset + u64::from(segment.bytes),
        sent_ns: segment.sent_ns,
        delivered_ns: segment.delivered_ns,
    });
    pieces.collect()
}

/// When a message can have travelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// Whose it is.
    pub call: i64,
    /// It had not left before; 0 = unknown.
    pub after_ns: u64,
    /// It had arrived by then; `u64::MAX` = unknown.
    pub by_ns: u64,
}

impl Window {
    /// Messages arrive in the order in which they are read, and are read by one thread: that order is the surest.
    pub fn order(&self) -> (u64, u64, i64) {
        (if self.by_ns == u64::MAX { self.after_ns } else { self.by_ns }, self.after_ns, self.call)
    }
}

/// Where a message is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PieceRange {
    /// Its pieces; empty = it is not there.
    pub pieces: Range<usize>,
    /// Whether the last of these holds other messages too.
    pub shared: bool,
}

/// Places messages, which must be in their order ([`Window::order`]), on pieces. Each gets the pieces from the first
/// one that it can have begun with up to where the next message can have begun, as far as they had arrived in time.
/// Pieces that nobody can have sent are left out. A message for which none is left shares the last one before it, if
/// that travelled in its time.
pub(super) fn place(pieces: &[Piece], windows: &[Window]) -> Vec<PieceRange> {
    let tries = TOLERANCES_NS.iter().map(|&tolerance_ns| {
        let places = place_within(pieces, windows, tolerance_ns);
        (left_over(pieces, &places), places)
    });
    let mut best: Option<(usize, Vec<PieceRange>)> = None;
    for (left, places) in tries {
        if best.as_ref().is_none_or(|(least, _)| left < *least) {
            best = Some((left, places));
        }
        if best.as_ref().is_some_and(|(least, _)| *least == 0) {
            break;
        }
    }
    best.map(|(_, places)| places).unwrap_or_default()
}

/// Messages that have no place of their own, and pieces behind the first message that have none in them.
fn left_over(pieces: &[Piece], places: &[PieceRange]) -> usize {
    let without = places.iter().filter(|place| place.pieces.is_empty() || place.shared).count();
    let own = || places.iter().filter(|place| !place.pieces.is_empty());
    let first = own().map(|place| place.pieces.start).min().unwrap_or(pieces.len());
    let mut at = first;
    let mut taken = 0;
    for place in own() {
        taken += place.pieces.end.saturating_sub(place.pieces.start.max(at));
        at = at.max(place.pieces.end);
    }
    without + (pieces.len() - first - taken)
}

fn place_within(pieces: &[Piece], windows: &[Window], tolerance_ns: u64) -> Vec<PieceRange> {
    let mut latest = 0;
    let sent: Vec<u64> = pieces
        .iter()
        .map(|piece| {
            latest = latest.max(piece.sent_ns);
            latest
        })
        .collect();
    let first = |window: &Window| sent.partition_point(|&sent| sent.saturating_add(tolerance_ns) < window.after_ns);
    let behind = |window: &Window| {
        let by_ns = window.by_ns.saturating_add(tolerance_ns);
        pieces.partition_point(|piece| piece.delivered_ns <= by_ns)
    };
    let mut places: Vec<PieceRange> = Vec::with_capacity(windows.len());
    let (mut at, mut last) = (0, None);
    for (number, window) in windows.iter().enumerate() {
        let next = match windows.get(number + 1) {
            Some(next) if next.after_ns > 0 => first(next),
            _ => pieces.len(),
        };
        let begin = first(window).max(at);
        let end = next.max(begin + 1).min(behind(window));
        if begin < end {
            at = end;
            last = Some(number);
            places.push(PieceRange { pieces: begin..end, shared: false });
            continue;
        }
        // Two messages that were written one right after the other can travel in one segment.
        let mut place = PieceRange::default();
        if let Some(before) = last
            && at > 0
            && (first(window)..behind(window)).contains(&(at - 1))
        {
            places[before].shared = true;
            place = PieceRange { pieces: at - 1..at, shared: true };
        }
        places.push(place);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn piece(number: u64, sent_ms: u64) -> Piece {
        Piece { from: number * 100, to: number * 100 + 100, sent_ns: sent_ms * MS, delivered_ns: (sent_ms + 1) * MS }
    }

    fn window(call: i64, after_ms: u64, by_ms: u64) -> Window {
        Window { call, after_ns: after_ms * MS, by_ns: if by_ms == 0 { u64::MAX } else { by_ms * MS } }
    }

    fn ranges(places: &[PieceRange]) -> Vec<(Range<usize>, bool)> {
        places.iter().map(|place| (place.pieces.clone(), place.shared)).collect()
    }

    #[test]
    fn a_message_has_what_left_after_its_begin_and_came_before_its_end() {
        // 10: nobody's, 20 and 21: call 1, 30: call 2.
        let pieces = [piece(0, 10), piece(1, 20), piece(2, 21), piece(3, 30)];
        let places = place(&pieces, &[window(1, 19, 25), window(2, 29, 35)]);
        assert_eq!(ranges(&places), [(1..3, false), (3..4, false)]);
    }

    #[test]
    fn stamps_of_whole_milliseconds_are_good_enough() {
        let pieces = [piece(0, 10), piece(1, 20), piece(2, 30)];
        let late = |call: i64, ms: u64| Window { call, after_ns: ms * MS + 900_000, by_ns: (ms + 1) * MS - 900_000 };
        let places = place(&pieces, &[late(1, 10), late(2, 20), late(3, 30)]);
        assert_eq!(ranges(&places), [(0..1, false), (1..2, false), (2..3, false)]);
    }

    #[test]
    fn one_stamp_of_the_two_is_enough() {
        let pieces = [piece(0, 10), piece(1, 11), piece(2, 20)];
        assert_eq!(ranges(&place(&pieces, &[window(1, 9, 0), window(2, 19, 0)])), [(0..2, false), (2..3, false)]);
        assert_eq!(ranges(&place(&pieces, &[window(1, 0, 15), window(2, 0, 25)])), [(0..2, false), (2..3, false)]);
    }

    #[test]
    fn messages_in_one_segment_share_it_and_one_that_never_came_gets_nothing() {
        let pieces = [piece(0, 10), piece(1, 20)];
        let places = place(&pieces, &[window(1, 9, 12), window(2, 9, 12), window(3, 14, 15), window(4, 19, 22)]);
        assert_eq!(ranges(&places), [(0..1, true), (0..1, true), (0..0, false), (1..2, false)]);
    }
}
