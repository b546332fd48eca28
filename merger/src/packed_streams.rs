//! The payload of connections in time, in a fifth of the memory: the segments of each direction one after the other, each told against
//! the one before. Those of a long capture lie in temporary files.

use std::io;
use std::ops::Range;

use trace::ids::ConnectionId;

use crate::segments::{Segment, Stream};
use crate::spilled::{ByteLog, Reader, Record, SharedList, Writer};
use crate::varint::{MAX_BYTES, get, put, unzigzag, zigzag};

/// Segments between two places at which reading can begin, of streams of so many, and of longer ones.
const BLOCK: usize = 64;
const MAX_SHORT: usize = 1024;
const LONG_BLOCK: usize = 256;

/// Memory that the places of streams take at most, and those of their blocks, bytes.
pub(crate) const MAX_PLACES_BYTES: usize = 512 << 10;

/// The segments of a [`Stream`], packed.
#[derive(Clone, Debug)]
pub(crate) struct PackedStream {
    bytes: Vec<u8>,
    blocks: Vec<Block>,
    segments: usize,
}

/// Packed streams, in the order in which they were taken in.
#[derive(Clone, Debug)]
pub(crate) struct StreamLog {
    bytes: ByteLog,
    blocks: SharedList<Block>,
}

/// Where the segments of a stream lie in a [`StreamLog`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamPlace {
    pub(crate) at: u64,
    pub(crate) bytes: u64,
    pub(crate) first_block: u64,
    pub(crate) segments: u64,
}

/// The payload of connections.
#[derive(Clone, Debug)]
pub struct PackedStreams {
    log: StreamLog,
    /// By connection: from the client, from the server.
    places: SharedList<(StreamPlace, StreamPlace)>,
}

/// The block of a stream that was read last, for those who ask for its segments one after the other.
#[derive(Clone, Debug, Default)]
pub struct Near {
    stream: Option<(ConnectionId, bool)>,
    /// The bytes that lie in this block alone.
    offsets: Range<u64>,
    segments: Vec<Segment>,
}

/// Where a block begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    /// Offset of its first segment's first byte.
    offset: u64,
    /// Its place in the bytes of its stream.
    at: u64,
}

impl Block {
    /// What its first segment is told against.
    fn context(self) -> Context {
        Context { end: self.offset, ..Context::default() }
    }
}

impl Record for Block {
    const BLANK: Self = Self { offset: 0, at: 0 };
    const BYTES: usize = 2 * 8;

    fn write(&self, out: &mut Writer<'_>) {
        (self.offset, self.at).write(out);
    }

    fn read(input: &mut Reader<'_>) -> Self {
        Self { offset: input.u64(), at: input.u64() }
    }
}

impl Record for StreamPlace {
    const BLANK: Self = Self { at: 0, bytes: 0, first_block: 0, segments: 0 };
    const BYTES: usize = 4 * 8;

    fn write(&self, out: &mut Writer<'_>) {
        [self.at, self.bytes, self.first_block, self.segments].into_iter().for_each(|number| number.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Self {
        Self { at: input.u64(), bytes: input.u64(), first_block: input.u64(), segments: input.u64() }
    }
}

/// What a segment is told against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Context {
    end: u64,
    sent_ns: u64,
    window_bytes: u64,
}

/// Bytes of most segments, at most.
const USUAL_RECORD: usize = 16;
/// Bytes of a segment at most: what it has, and six numbers.
const MAX_RECORD: usize = 1 + 6 * MAX_BYTES;

const GAP: u8 = 1;
const WINDOW: u8 = 2;
const RETRANSMITTED: u8 = 4;
const IN_FLIGHT: u8 = 8;

/// Segments between two places at which reading can begin, of a stream of so many.
fn block_of(segments: usize) -> usize {
    if segments > MAX_SHORT { LONG_BLOCK } else { BLOCK }
}

impl PackedStream {
    /// Packs the segments of a stream.
    pub fn of(stream: &Stream) -> Self {
        let segments = stream.segments.len();
        let block = block_of(segments);
        let mut bytes = Vec::with_capacity(segments * USUAL_RECORD + MAX_RECORD);
        let mut blocks = Vec::with_capacity(segments.div_ceil(block));
        let mut context = Context::default();
        for (number, segment) in stream.segments.iter().enumerate() {
            if number % block == 0 {
                let begin = Block { offset: segment.offset, at: bytes.len() as u64 };
                blocks.push(begin);
                context = begin.context();
            }
            context.write(&mut bytes, segment);
        }
        Self { bytes, blocks, segments }
    }
}

impl StreamLog {
    /// Without streams. Of those that come about so many bytes are held in memory.
    pub fn within(bytes: usize) -> Self {
        Self { bytes: ByteLog::within(bytes), blocks: SharedList::within(MAX_PLACES_BYTES) }
    }

    /// Takes a stream in.
    pub fn push(&mut self, stream: &PackedStream) -> StreamPlace {
        let place = StreamPlace {
            at: self.bytes.len() as u64,
            bytes: stream.bytes.len() as u64,
            first_block: self.blocks.len() as u64,
            segments: stream.segments as u64,
        };
        self.bytes.tail().extend_from_slice(&stream.bytes);
        self.bytes.end_record();
        stream.blocks.iter().for_each(|block| self.blocks.push(*block));
        place
    }

    /// The streams of connections, of which these are the places.
    pub fn placed(mut self, places: SharedList<(StreamPlace, StreamPlace)>) -> PackedStreams {
        self.bytes.settle();
        PackedStreams { log: self, places }
    }

    /// Appends those segments of some blocks of a stream that are wanted.
    fn segments(
        &self,
        place: StreamPlace,
        Range { start: from, end: to }: Range<usize>,
        is_wanted: impl Fn(&Segment) -> bool,
        out: &mut Vec<Segment>,
    ) -> io::Result<()> {
        if from >= to {
            return Ok(());
        }
        let first = self.blocks.get(from);
        let is_last = to as u64 == place.first_block + block_count(place) as u64;
        let end = if is_last { place.bytes } else { self.blocks.get(to).at };
        let length = usize::try_from(end.saturating_sub(first.at)).map_err(io::Error::other)?;
        let at = usize::try_from(place.at + first.at).map_err(io::Error::other)?;
        let bytes = self.bytes.window(at, length);
        self.bytes.check().and(self.blocks.check())?;
        let bytes = bytes.ok_or(io::ErrorKind::UnexpectedEof)?;
        let (mut context, mut rest) = (Context::default(), bytes.get(..length).ok_or(io::ErrorKind::UnexpectedEof)?);
        let block = block_of(place.segments as usize);
        let read = (0..).map_while(|number: usize| {
            if number.is_multiple_of(block) {
                context = self.blocks.get(from + number / block).context();
            }
            context.read(&mut rest)
        });
        out.extend(read.filter(is_wanted));
        Ok(())
    }
}

fn block_count(place: StreamPlace) -> usize {
    let segments = place.segments as usize;
    segments.div_ceil(block_of(segments))
}

impl Default for PackedStreams {
    fn default() -> Self {
        StreamLog::within(0).placed(SharedList::within(MAX_PLACES_BYTES))
    }
}

impl<'s> FromIterator<&'s [Stream; 2]> for PackedStreams {
    fn from_iter<I: IntoIterator<Item = &'s [Stream; 2]>>(connections: I) -> Self {
        let (mut log, mut places) = (StreamLog::within(0), SharedList::within(MAX_PLACES_BYTES));
        for ways in connections {
            let [client, server] = ways.each_ref().map(|stream| log.push(&PackedStream::of(stream)));
            places.push((client, server));
        }
        log.placed(places)
    }
}

impl PackedStreams {
    /// All segments of a direction of a connection; none of one that is not there.
    ///
    /// # Errors
    /// If they lie in a file that cannot be read.
    pub fn stream(&self, connection: ConnectionId, from_client: bool) -> io::Result<Stream> {
        let Some(place) = self.place(connection, from_client) else { return Ok(Stream::default()) };
        let first = place.first_block as usize;
        let mut segments = Vec::new();
        self.log.segments(place, first..first + block_count(place), |_| true, &mut segments)?;
        Ok(Stream { segments })
    }

    /// Appends the segments of a direction of a connection that hold bytes of `offset..offset + bytes`, as [`Stream::range`] has them.
    /// Those near to them stay in `near`.
    ///
    /// # Errors
    /// If they lie in a file that cannot be read.
    pub fn range(
        &self,
        (connection, from_client): (ConnectionId, bool),
        (offset, bytes): (u64, u64),
        near: &mut Near,
        out: &mut Vec<Segment>,
    ) -> io::Result<()> {
        let end = offset.saturating_add(bytes);
        let is_wanted = |segment: &Segment| segment.offset + u64::from(segment.bytes) > offset && segment.offset < end;
        if near.stream == Some((connection, from_client)) && near.offsets.start <= offset && end <= near.offsets.end {
            out.extend(near.segments.iter().filter(|segment| is_wanted(segment)).cloned());
            return Ok(());
        }
        let Some(place) = self.place(connection, from_client) else { return Ok(()) };
        let blocks = self.blocks(place, offset, end);
        if blocks.len() != 1 {
            return self.log.segments(place, blocks, is_wanted, out);
        }
        near.stream = None;
        near.segments.clear();
        self.log.segments(place, blocks.clone(), |_| true, &mut near.segments)?;
        let begin = self.log.blocks.get(blocks.start).offset;
        let is_last = blocks.end == place.first_block as usize + block_count(place);
        near.offsets = begin..if is_last { u64::MAX } else { self.log.blocks.get(blocks.end).offset };
        near.stream = Some((connection, from_client));
        out.extend(near.segments.iter().filter(|segment| is_wanted(segment)).cloned());
        Ok(())
    }

    /// Segments that hold `offset..offset + bytes` of a direction of a connection, at most: those of whole blocks are counted.
    pub fn count_at_most(&self, (connection, from_client): (ConnectionId, bool), (offset, bytes): (u64, u64)) -> u64 {
        let Some(place) = self.place(connection, from_client) else { return 0 };
        let blocks = self.blocks(place, offset, offset.saturating_add(bytes));
        (blocks.len() * block_of(place.segments as usize)) as u64
    }

    /// The blocks of a stream in which segments of `offset..end` may lie.
    fn blocks(&self, place: StreamPlace, offset: u64, end: u64) -> Range<usize> {
        let first = place.first_block as usize;
        let all = first..first + block_count(place);
        let before = self.log.blocks.partition_point_in(all.clone(), |block| block.offset <= offset);
        let behind = self.log.blocks.partition_point_in(all, |block| block.offset < end);
        before.saturating_sub(1).max(first)..behind
    }

    fn place(&self, connection: ConnectionId, from_client: bool) -> Option<StreamPlace> {
        let number = connection.index();
        let (client, server) = (number < self.places.len()).then(|| self.places.get(number))?;
        Some(if from_client { client } else { server })
    }

    /// Whether all places could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn check(&self) -> io::Result<()> {
        self.places.check().and(self.log.blocks.check()).and(self.log.bytes.check())
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
        // All of it, cut back: a length that is known copies in place.
        let end = out.len() + at;
        out.extend_from_slice(&record);
        out.truncate(end);
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
            mut segments in prop::collection::vec(segment(), 0..300),
            parts in prop::collection::vec((0u64..4_000_000, prop_oneof![0u64..4000, 0u64..400_000]), 1..20),
            limit in prop_oneof![Just(0), Just(usize::MAX)],
        ) {
            let mut end = 0;
            for segment in &mut segments {
                // What was drawn is the gap.
                segment.offset += end;
                end = segment.offset + u64::from(segment.bytes);
            }
            let stream = Stream { segments };
            let mut log = StreamLog::within(limit);
            // Something lies in front of it.
            let places = [Stream::default(), stream.clone(), stream.clone()].map(|it| log.push(&PackedStream::of(&it)));
            let mut of_connections = SharedList::within(0);
            of_connections.push((places[0], places[1]));
            of_connections.push((places[2], places[0]));
            let packed = log.placed(of_connections);
            for (connection, from_client) in [(ConnectionId(0), false), (ConnectionId(1), true)] {
                let mut near = Near::default();
                // Each again a little behind: in the same block mostly.
                for (from, bytes) in parts.iter().flat_map(|&(from, bytes)| [(from, bytes), (from + 5000, bytes)]) {
                    let mut range = Vec::new();
                    packed.range((connection, from_client), (from, bytes), &mut near, &mut range).unwrap();
                    prop_assert_eq!(&range[..], stream.range(from, bytes));
                    let count = packed.count_at_most((connection, from_client), (from, bytes));
                    prop_assert!(range.len() as u64 <= count && count <= range.len() as u64 + 2 * BLOCK as u64);
                    // Those of another stream are not taken for it.
                    let mut none = Vec::new();
                    packed.range((ConnectionId(1), false), (from, bytes), &mut near, &mut none).unwrap();
                    prop_assert!(none.is_empty());
                }
                prop_assert_eq!(&packed.stream(connection, from_client).unwrap(), &stream);
            }
            prop_assert_eq!(packed.stream(ConnectionId(0), true).unwrap(), Stream::default());
            prop_assert_eq!(packed.stream(ConnectionId(2), true).unwrap(), Stream::default());
            prop_assert!(packed.check().is_ok());
        }
    }

    #[test]
    fn places_and_blocks_beyond_what_lies_in_memory_are_found() {
        let segment = |number: u64| Segment { offset: 7 * number, bytes: 7, sent_ns: number, ..Segment::default() };
        let long = Stream { segments: (0..3_000_000).map(segment).collect() };
        let short = Stream { segments: vec![segment(3)] };
        let mut connections = vec![[short.clone(), Stream::default()]; 20_000];
        connections.push([long.clone(), short.clone()]);
        let packed: PackedStreams = connections.iter().collect();
        let (first, last) = (ConnectionId(0), ConnectionId(20_000));
        assert_eq!((packed.stream(first, true).unwrap(), packed.stream(last, false).unwrap()), (short.clone(), short));
        for begin in [0, 1, 7 * 1_000_000, 7 * 2_999_999] {
            let mut range = Vec::new();
            packed.range((last, true), (begin, 20), &mut Near::default(), &mut range).unwrap();
            assert_eq!(&range[..], long.range(begin, 20));
        }
        assert!(packed.stream(last, true).unwrap() == long && packed.check().is_ok());
    }
}
