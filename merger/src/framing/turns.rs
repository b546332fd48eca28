//! Protocols in which one side asks and the other answers: where each answer begins, told by time.

use crate::join::Direction;

/// Offsets at which answers begin.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    /// For each request; the last entry is the end of the stream.
    starts: Vec<u64>,
}

impl Turns {
    /// `request_ends` are the offsets behind each request. What the server sends from when the next request has arrived
    /// on answers that one: before, it could not know of it, and whoever asked had got all that it waited for.
    pub fn new(client: &Direction, server: &Direction, request_ends: &[u64]) -> Self {
        let mut starts = vec![0];
        for &end in request_ends.iter().skip(1) {
            let asked = client.stream.range(end.saturating_sub(1), 1).first().map(|segment| segment.delivered_ns);
            let before = starts.last().copied().unwrap_or(0);
            let start = asked.map_or(before, |asked| {
                let segments = &server.stream.segments;
                let first = segments.partition_point(|segment| segment.offset < before);
                let answer = segments[first..].iter().find(|segment| segment.sent_ns >= asked);
                answer.map_or(server.end, |segment| segment.offset)
            });
            starts.push(start.max(before));
        }
        starts.push(server.end);
        Self { starts }
    }

    /// From where to where the answer to request `number` goes.
    pub fn answer(&self, number: usize) -> (u64, u64) {
        let from = self.starts.get(number).copied().unwrap_or(0);
        (from, self.starts.get(number + 1).copied().unwrap_or(from))
    }
}
