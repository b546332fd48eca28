//! One direction of a connection in a fifth of the memory: its segments one after the other, each told against the one before.

use crate::segments::{Segment, Stream};
use crate::varint::{MAX_BYTES, get, put, unzigzag, zigzag};

/// Segments between two places at which reading can begin.
const BLOCK: usize = 16;

/// The segments of a [`Stream`], packed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackedStream {
    bytes: Vec<u8>,
    blocks: Vec<Block>,
}

/// Where a block begins: what its first segment is told against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    /// Offset of its first segment's first byte.
    offset: u64,
    /// Its place in the bytes.
    at: usize,
    context: Context,
}

/// What a segment is told against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Context {
    end: u64,
    sent_ns: u64,
    window_bytes: u64,
}

/// Bytes of a segment at most: what it has, and six numbers.
const MAX_RECORD: usize = 1 + 6 * MAX_BYTES;

const GAP: u8 = 1;
const WINDOW: u8 = 2;
const RETRANSMITTED: u8 = 4;
const IN_FLIGHT: u8 = 8;

impl PackedStream {
    /// Packs the segments of a stream.
    #[must_use]
    pub fn of(stream: &Stream) -> Self {
        let mut packed = Self::default();
        let mut context = Context::default();
        for (number, segment) in stream.segments.iter().enumerate() {
            if number % BLOCK == 0 {
                packed.blocks.push(Block { offset: segment.offset, at: packed.bytes.len(), context });
            }
            context.write(&mut packed.bytes, segment);
        }
        packed.bytes.shrink_to_fit();
        packed.blocks.shrink_to_fit();
        packed
    }

    /// All segments.
    #[must_use]
    pub fn unpacked(&self) -> Stream {
        Stream { segments: self.segments_from(0).collect() }
    }

    /// The segments that hold bytes of `offset..offset + bytes`, as [`Stream::range`] has them.
    #[must_use]
    pub fn range(&self, offset: u64, bytes: u64) -> Vec<Segment> {
        let end = offset.saturating_add(bytes);
        let before = self.blocks.partition_point(|block| block.offset <= offset).saturating_sub(1);
        let segments = self.segments_from(before);
        let begun = segments.skip_while(|segment| segment.offset + u64::from(segment.bytes) <= offset);
        begun.take_while(|segment| segment.offset < end).collect()
    }

    fn segments_from(&self, number: usize) -> impl Iterator<Item = Segment> + '_ {
        let block = self.blocks.get(number);
        let mut context = block.map(|block| block.context).unwrap_or_default();
        let mut rest = block.and_then(|block| self.bytes.get(block.at..)).unwrap_or(&[]);
        std::iter::from_fn(move || context.read(&mut rest))
    }
}

impl Context {
    fn write(&mut self, out: &mut Vec<u8>, segment: &Segment) {
        let gap = segment.offset.wrapping_sub(self.end);
        let what = [
            (gap != 0, GAP),
            (segment.window_bytes != self.window_bytes, WINDOW),
            (segment.retransmitted, RETRANSMITTED),
            (segment.in_flight_bytes != 0, IN_FLIGHT),
        ];
        let mut record = [0; MAX_RECORD];
        record[0] = what.iter().filter(|(is, _)| *is).fold(0, |all, (_, bit)| all | bit);
        let mut at = 1;
        at += put(&mut record[at..], u64::from(segment.bytes));
        at += put(&mut record[at..], zigzag(segment.sent_ns.wrapping_sub(self.sent_ns) as i64));
        at += put(&mut record[at..], segment.delivered_ns.wrapping_sub(segment.sent_ns));
        if gap != 0 {
            at += put(&mut record[at..], gap);
        }
        if segment.window_bytes != self.window_bytes {
            at += put(&mut record[at..], segment.window_bytes);
        }
        if segment.in_flight_bytes != 0 {
            at += put(&mut record[at..], segment.in_flight_bytes);
        }
        out.extend_from_slice(&record[..at]);
        *self = Self {
            end: segment.offset.wrapping_add(u64::from(segment.bytes)),
            sent_ns: segment.sent_ns,
            window_bytes: segment.window_bytes,
        };
    }

    fn read(&mut self, rest: &mut &[u8]) -> Option<Segment> {
        let (&what, behind) = rest.split_first()?;
        *rest = behind;
        let bytes = u32::try_from(get(rest)?).ok()?;
        let sent_ns = self.sent_ns.wrapping_add(unzigzag(get(rest)?) as u64);
        let delivered_ns = sent_ns.wrapping_add(get(rest)?);
        let offset = if what & GAP != 0 { self.end.wrapping_add(get(rest)?) } else { self.end };
        let window_bytes = if what & WINDOW != 0 { get(rest)? } else { self.window_bytes };
        let in_flight_bytes = if what & IN_FLIGHT != 0 { get(rest)? } else { 0 };
        *self = Self { end: offset.wrapping_add(u64::from(bytes)), sent_ns, window_bytes };
        let retransmitted = what & RETRANSMITTED != 0;
        Some(Segment { offset, bytes, sent_ns, delivered_ns, in_flight_bytes, window_bytes, retransmitted })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    prop_compose! {
        fn segment()(
            (offset, bytes) in (prop_oneof![Just(0u64), 0u64..5000], 1u32..70_000),
            (sent_ns, late_ns) in (any::<u32>(), any::<u32>()),
            (in_flight_bytes, window_bytes) in (prop_oneof![Just(0), any::<u64>()], prop_oneof![Just(65_535), any::<u64>()]),
            retransmitted in any::<bool>(),
        ) -> Segment {
            let sent_ns = u64::from(sent_ns);
            let delivered_ns = sent_ns + u64::from(late_ns);
            Segment { offset, bytes, sent_ns, delivered_ns, in_flight_bytes, window_bytes, retransmitted }
        }
    }

    proptest! {
        #[test]
        fn any_part_is_as_it_was(
            mut segments in prop::collection::vec(segment(), 0..70), from in 0u64..800_000, bytes in 0u64..400_000,
        ) {
            let mut end = 0;
            for segment in &mut segments {
                // What was drawn is the gap.
                segment.offset += end;
                end = segment.offset + u64::from(segment.bytes);
            }
            let stream = Stream { segments };
            let packed = PackedStream::of(&stream);
            prop_assert_eq!(packed.range(from, bytes), stream.range(from, bytes));
            prop_assert_eq!(packed.unpacked(), stream);
        }
    }
}
