//! One direction of a connection in a fifth of the memory: its segments one after the other, each told against the one before. Those of a
//! long capture lie in a temporary file.

use std::borrow::Cow;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::segments::{Segment, Stream};
use crate::temporary::TemporaryFile;
use crate::varint::{MAX_BYTES, get, put, unzigzag, zigzag};

/// Segments between two places at which reading can begin, of streams of so many, and of longer ones.
const BLOCK: usize = 64;
const MAX_SHORT: usize = 1024;
const LONG_BLOCK: usize = 256;

/// The segments of a [`Stream`], packed.
#[derive(Clone, Debug, Default)]
pub struct PackedStream {
    bytes: Bytes,
    blocks: Blocks,
    /// Segments of each but the last one.
    block: u32,
}

/// Where segments lie. There are many streams: what most of them do not have is behind a pointer.
#[derive(Clone, Debug)]
enum Bytes {
    Held(Box<[u8]>),
    Spilled(Box<Spilled>),
}

#[derive(Clone, Debug)]
struct Spilled {
    file: Arc<TemporaryFile>,
    at: u64,
    length: usize,
}

impl Default for Bytes {
    fn default() -> Self {
        Self::Held(Box::default())
    }
}

/// Where blocks begin.
#[derive(Clone, Debug)]
enum Blocks {
    /// The only one, at the first byte.
    One(Block),
    /// None, or several.
    Listed(Box<[Block]>),
}

impl Default for Blocks {
    fn default() -> Self {
        Self::Listed(Box::default())
    }
}

/// What streams may take of memory together, and the temporary file for those beyond. The file has no name, and goes with the last
/// stream in it.
#[derive(Debug)]
pub(crate) struct StreamSpill {
    limit: u64,
    held: AtomicU64,
    file: Mutex<Option<Arc<TemporaryFile>>>,
    /// Bytes of the file.
    end: AtomicU64,
}

/// A stream of so few bytes stays in memory: to name its place in a file takes as much.
const SMALL_BYTES: usize = 128;

impl StreamSpill {
    /// Of those that come, no more than `limit` bytes are held in memory. Small ones count, but never leave it.
    pub fn beyond(limit: u64) -> Self {
        Self { limit, held: AtomicU64::new(0), file: Mutex::new(None), end: AtomicU64::new(0) }
    }

    /// Takes a stream in.
    ///
    /// # Errors
    /// If the file cannot be made or written.
    pub fn keep(&self, mut stream: PackedStream) -> io::Result<PackedStream> {
        let Bytes::Held(bytes) = &stream.bytes else { return Ok(stream) };
        let length = bytes.len();
        let counted = length as u64;
        let is_within = self.held.fetch_add(counted, Ordering::Relaxed) + counted <= self.limit;
        if is_within || length <= SMALL_BYTES {
            return Ok(stream);
        }
        self.held.fetch_sub(counted, Ordering::Relaxed);
        let file = self.file()?;
        let at = self.end.fetch_add(counted, Ordering::Relaxed);
        file.write_all_at(bytes, at)?;
        stream.bytes = Bytes::Spilled(Box::new(Spilled { file, at, length }));
        Ok(stream)
    }

    fn file(&self) -> io::Result<Arc<TemporaryFile>> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        match &*file {
            Some(file) => Ok(Arc::clone(file)),
            None => Ok(Arc::clone(file.insert(Arc::new(TemporaryFile::new()?)))),
        }
    }
}

/// Where a block begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    /// Offset of its first segment's first byte.
    offset: u64,
    /// Its place in the bytes.
    at: usize,
}

impl Block {
    /// What its first segment is told against.
    fn context(self) -> Context {
        Context { end: self.offset, ..Context::default() }
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

impl PackedStream {
    /// Packs the segments of a stream.
    #[must_use]
    pub fn of(stream: &Stream) -> Self {
        let segments = stream.segments.len();
        let block = if segments > MAX_SHORT { LONG_BLOCK } else { BLOCK };
        let mut bytes = Vec::with_capacity(segments * USUAL_RECORD + MAX_RECORD);
        let mut blocks = Vec::with_capacity(segments.div_ceil(block));
        let mut context = Context::default();
        for (number, segment) in stream.segments.iter().enumerate() {
            if number % block == 0 {
                let begin = Block { offset: segment.offset, at: bytes.len() };
                blocks.push(begin);
                context = begin.context();
            }
            context.write(&mut bytes, segment);
        }
        let blocks = if let [one] = blocks[..] { Blocks::One(one) } else { Blocks::Listed(blocks.into()) };
        Self { bytes: Bytes::Held(bytes.into()), blocks, block: block as u32 }
    }

    /// All segments.
    ///
    /// # Errors
    /// If they lie in a file that cannot be read.
    pub fn unpacked(&self) -> io::Result<Stream> {
        Ok(Stream { segments: self.segments(0, self.blocks().len(), |_| true)? })
    }

    /// The segments that hold bytes of `offset..offset + bytes`, as [`Stream::range`] has them.
    ///
    /// # Errors
    /// If they lie in a file that cannot be read.
    pub fn range(&self, offset: u64, bytes: u64) -> io::Result<Vec<Segment>> {
        let end = offset.saturating_add(bytes);
        let before = self.blocks().partition_point(|block| block.offset <= offset).saturating_sub(1);
        let behind = self.blocks().partition_point(|block| block.offset < end);
        self.segments(before, behind, |segment| {
            segment.offset + u64::from(segment.bytes) > offset && segment.offset < end
        })
    }

    fn blocks(&self) -> &[Block] {
        match &self.blocks {
            Blocks::One(block) => std::slice::from_ref(block),
            Blocks::Listed(blocks) => blocks,
        }
    }

    /// Those segments of some blocks that are wanted.
    fn segments(&self, from: usize, to: usize, is_wanted: impl Fn(&Segment) -> bool) -> io::Result<Vec<Segment>> {
        let blocks = self.blocks();
        let Some(first) = blocks.get(from) else { return Ok(Vec::new()) };
        let bytes = self.bytes.read(first.at, blocks.get(to.max(from)).map(|block| block.at))?;
        let (mut context, mut rest) = (Context::default(), &bytes[..]);
        let mut wanted = Vec::with_capacity(to.saturating_sub(from) * self.block as usize);
        let mut next = blocks[from..].iter();
        let read = (0..).map_while(|number| {
            if number % self.block == 0
                && let Some(block) = next.next()
            {
                context = block.context();
            }
            context.read(&mut rest)
        });
        wanted.extend(read.filter(is_wanted));
        Ok(wanted)
    }
}

impl Bytes {
    /// Those between two places; `None` = to the end.
    fn read(&self, from: usize, to: Option<usize>) -> io::Result<Cow<'_, [u8]>> {
        match self {
            Self::Held(bytes) => Ok(bytes.get(from..to.unwrap_or(bytes.len())).unwrap_or(&[]).into()),
            Self::Spilled(spilled) => {
                let mut bytes = vec![0; to.unwrap_or(spilled.length).saturating_sub(from)];
                spilled.file.read_exact_at(&mut bytes, spilled.at + from as u64)?;
                Ok(bytes.into())
            }
        }
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
            mut segments in prop::collection::vec(segment(), 0..300), from in 0u64..4_000_000, bytes in 0u64..400_000,
            limit in prop_oneof![Just(0), Just(u64::MAX)],
        ) {
            let mut end = 0;
            for segment in &mut segments {
                // What was drawn is the gap.
                segment.offset += end;
                end = segment.offset + u64::from(segment.bytes);
            }
            let stream = Stream { segments };
            let spill = StreamSpill::beyond(limit);
            // Something lies in front of it in the file.
            spill.keep(PackedStream::of(&stream)).unwrap();
            let packed = spill.keep(PackedStream::of(&stream)).unwrap();
            let is_large = matches!(&PackedStream::of(&stream).bytes, Bytes::Held(bytes) if bytes.len() > SMALL_BYTES);
            prop_assert_eq!(matches!(packed.bytes, Bytes::Spilled(_)), limit == 0 && is_large);
            prop_assert_eq!(packed.range(from, bytes).unwrap(), stream.range(from, bytes));
            prop_assert_eq!(packed.unpacked().unwrap(), stream);
        }
    }
}
