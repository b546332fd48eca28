//! Packets of block data (data transfer protocol). Of 2.x and 3.x: int32 length (itself, checksums and data), int16
//! header length, PacketHeaderProto, checksums, data; an empty one ends a block. Of 1.x: int32 length (of data, its length
//! and checksums), int64 offset, int64 number, last, int32 length of data, checksums, data; an int32 0 ends a block. Most of their headers lie beyond the kept bytes of segments, so that they
//! are counted on: what is seen of them are anchors, and between two anchors their offsets in the block tell the data.

use std::ops::RangeInclusive;

use crate::join::content::Content;

/// A packet header that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    /// Offset in the stream.
    pub at: u64,
    /// Bytes of lengths and header.
    pub header: u64,
    /// Bytes of checksums.
    pub checksums: u64,
    /// Bytes of data.
    pub data: u64,
    /// Offset of the data in the block.
    pub block_offset: u64,
    /// Number; -1 = a heartbeat.
    pub sequence: i64,
    /// Whether it is the last of the block (or of what was asked for).
    pub last: bool,
}

impl Anchor {
    /// Offset behind it in the stream.
    pub fn end(&self) -> u64 {
        self.at + self.header + self.checksums + self.data
    }
}

/// Bytes of the header with its two lengths: four fields of fixed size, a fifth one optional.
const MIN_LENGTH: usize = 31;
/// Bytes of a header without the optional field `syncBlock`, which is what DataNodes and clients send.
const HEADER: u64 = 31;

/// Bytes of a header of 1.x.
const HEADER_1: u64 = 25;

/// Reads a packet header of 1.x, with the checksums that Hadoop's defaults give it or with none: its fields are mostly
/// zeros, and could be anything in data otherwise.
fn header_1(bytes: &[u8], at: u64) -> Option<Anchor> {
    let head: &[u8; HEADER_1 as usize] = bytes.first_chunk()?;
    let int = |at: usize| u64::from(u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
    let long = |at: usize| i64::from_be_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|n| head[at + n]));
    let (data, block_offset, sequence) = (int(21), long(4), long(12));
    let checksums = int(0).checked_sub(4)?.checked_sub(data)?;
    let fits = data <= 1 << 20
        && (data > 0 || sequence == -1)
        && (checksums == data.div_ceil(Shape::READ_1.chunk) * Shape::READ_1.checksum)
        && (0..1 << 40).contains(&block_offset)
        && (-1..1 << 32).contains(&sequence)
        && head[20] <= 1;
    fits.then_some(Anchor {
        at,
        header: HEADER_1,
        checksums,
        data,
        block_offset: block_offset as u64,
        sequence,
        last: head[20] == 1,
    })
}

/// Reads a packet header of 2.x and 3.x.
pub(super) fn header(bytes: &[u8], at: u64) -> Option<Anchor> {
    let head: &[u8; MIN_LENGTH] = bytes.first_chunk()?;
    let length = u64::from(u32::from_be_bytes([head[0], head[1], head[2], head[3]]));
    let header = u64::from(u16::from_be_bytes([head[4], head[5]]));
    // 1 sfixed64 offset, 2 sfixed64 sequence number, 3 bool last, 4 sfixed32 data length, 5 bool sync.
    let tags = head[6] == 0x09 && head[15] == 0x11 && head[24] == 0x18 && head[26] == 0x25;
    if !tags || !matches!(header, 25 | 27) || head[25] > 1 {
        return None;
    }
    let data = u64::from(u32::from_le_bytes([head[27], head[28], head[29], head[30]]));
    let checksums = length.checked_sub(4)?.checked_sub(data)?;
    let block_offset = i64::from_le_bytes(*head[7..].first_chunk()?);
    let sequence = i64::from_le_bytes(*head[16..].first_chunk()?);
    let fits = data <= 16 << 20 && checksums <= 8 + data && (0..1 << 50).contains(&block_offset) && sequence >= -1;
    fits.then_some(Anchor {
        at,
        header: 6 + header,
        checksums,
        data,
        block_offset: block_offset as u64,
        sequence,
        last: head[25] == 1,
    })
}

/// All headers that can be seen in a part of a stream, not inside each other's packet.
pub(super) fn anchors(content: &Content, from: u64, to: u64) -> Vec<Anchor> {
    let mut found: Vec<Anchor> = Vec::new();
    for (offset, run) in content.runs(from, to) {
        let mut skip = 0;
        while let Some(place) = run.get(skip + 6..).and_then(|rest| rest.iter().position(|&byte| byte == 0x09)) {
            let start = skip + place;
            match header(&run[start..], offset + start as u64) {
                Some(anchor) if found.last().is_none_or(|last| last.end() <= anchor.at) => {
                    skip = start + MIN_LENGTH;
                    found.push(anchor);
                }
                _ => skip = start + 1,
            }
        }
    }
    found
}

/// All headers of 1.x that can be seen in a part of a stream.
fn anchors_1(content: &Content, from: u64, to: u64) -> Vec<Anchor> {
    let mut found: Vec<Anchor> = Vec::new();
    for (offset, run) in content.runs(from, to) {
        for start in 0..run.len() {
            let at = offset + start as u64;
            if found.last().is_none_or(|last| last.end() <= at) {
                found.extend(header_1(&run[start..], at));
            }
        }
    }
    found
}

/// How block data is laid out when nothing tells: what Hadoop's defaults make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Data bytes of each checksum.
    pub chunk: u64,
    /// Bytes of a checksum.
    pub checksum: u64,
    /// Data bytes of a packet that is full.
    pub full: u64,
    /// Bytes of a packet's header.
    pub header: u64,
    /// Bytes that end a block.
    pub end: u64,
}

impl Shape {
    /// A DataNode that sends: 64 KiB packets (TRANSFERTO_BUFFER_SIZE), CRC32C of each 512 bytes.
    pub const READ: Self = Self { chunk: 512, checksum: 4, full: 65_536, header: HEADER, end: HEADER };
    /// A client that writes: `dfs.client-write-packet-size` of 65,536 bytes holds, behind a header of at most 33, 126
    /// chunks of 512 bytes with their checksums.
    pub const WRITE: Self = Self { full: 64_512, ..Self::READ };
    /// A DataNode of 1.x that sends: as one of 2.x.
    pub const READ_1: Self = Self { header: HEADER_1, end: 4, ..Self::READ };
    /// A client of 1.x that writes: 127 chunks fit into 65,536 bytes behind the header, when the last one may go beyond.
    pub const WRITE_1: Self = Self { full: 65_024, ..Self::READ_1 };

    fn checksums(&self, data: u64) -> u64 {
        data.div_ceil(self.chunk) * self.checksum
    }

    fn packet(&self, data: u64) -> u64 {
        self.header + self.checksums(data) + data
    }

    /// Bytes that so much data takes on the wire with the end of its block, in packets that are full but for the last.
    pub fn wire(&self, data: u64) -> u64 {
        let (full, rest) = (data / self.full, data % self.full);
        full * self.packet(self.full) + if rest > 0 { self.packet(rest) } else { 0 } + self.end
    }

    /// Data of a packet that takes `bytes` behind its header, if any takes exactly so many.
    fn solve(&self, bytes: u64) -> Option<u64> {
        let guess = bytes * self.chunk / (self.chunk + self.checksum);
        let near = guess.saturating_sub(self.checksum)..=guess + self.checksum;
        near.into_iter().find(|&data| data + self.checksums(data) == bytes)
    }

    /// What the headers that were seen tell of it.
    fn learn(mut self, anchors: &[Anchor]) -> Self {
        if let Some(largest) = anchors.iter().max_by_key(|anchor| anchor.data) {
            // A stream of several packets shows its full size in any but the last ones.
            let followed = anchors.len() > 2 || anchors.last().is_some_and(|last| last.at > largest.at);
            if largest.data > self.full || (followed && largest.data > 0 && !largest.last) {
                self.full = largest.data;
            }
            if largest.data >= self.chunk {
                let chunks = largest.data.div_ceil(self.chunk);
                if largest.checksums % chunks == 0 {
                    self.checksum = largest.checksums / chunks;
                }
            }
        }
        self
    }
}

/// What a part of a stream holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// Data bytes, without headers and checksums.
    pub data: u64,
    /// Whether it all came out even: each packet was seen or follows from those beside it.
    pub exact: bool,
    /// Whether every packet's header was seen.
    pub seen: bool,
}

/// Measures the data in a part of a stream that begins with a packet and ends with the stream or with the operation.
/// `whole` is how much data there can be if all came: what ends elsewhere was cut off, and not short by design.
pub(super) fn measure(
    content: &Content,
    from: u64,
    to: u64,
    shape: Shape,
    whole: Option<RangeInclusive<u64>>,
) -> Layout {
    let anchors = if shape.header == HEADER_1 { anchors_1(content, from, to) } else { anchors(content, from, to) };
    let shape = shape.learn(&anchors);
    let mut layout = Layout { data: 0, exact: true, seen: true };
    let (mut at, mut block_end) = (from, None);
    for anchor in anchors.iter().filter(|anchor| anchor.at >= from) {
        if anchor.at < at {
            continue;
        }
        if anchor.at > at {
            layout.seen = false;
            match block_end {
                // A heartbeat does not say where the block stands.
                Some(end) if anchor.sequence >= 0 && anchor.block_offset >= end => {
                    layout.data += anchor.block_offset - end;
                }
                _ => {
                    let (data, exact) = count(anchor.at - at, shape, Ends::AtPacket);
                    layout.data += data;
                    layout.exact &= exact;
                }
            }
        }
        let there = to.saturating_sub(anchor.at + anchor.header + anchor.checksums).min(anchor.data);
        layout.data += there;
        at = anchor.end();
        if anchor.sequence >= 0 {
            block_end = Some(anchor.block_offset + anchor.data);
        }
    }
    if at < to {
        layout.seen = false;
        let (mut data, mut exact) = count(to - at, shape, Ends::WithBlock);
        if whole.is_some_and(|whole| !whole.contains(&(layout.data + data))) {
            (data, exact) = count(to - at, shape, Ends::Cut);
        }
        layout.data += data;
        layout.exact &= exact;
    }
    layout
}

/// How a part of a stream that is counted over ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// Where a packet begins that was seen.
    AtPacket,
    /// With the empty packet that ends a block, if that comes out even.
    WithBlock,
    /// Anywhere.
    Cut,
}

/// Counts packets over a part of a stream without any header: full ones, then a shorter one, as far as there is room.
/// Says also whether that came out even.
fn count(bytes: u64, shape: Shape, ends: Ends) -> (u64, bool) {
    let packet = shape.packet(shape.full);
    let (full, rest) = (bytes / packet, bytes % packet);
    if ends == Ends::Cut {
        return (full * shape.full + rest.saturating_sub(shape.header + shape.checksums(shape.full)), false);
    }
    if ends == Ends::WithBlock {
        // A last packet that is nearly full is, with the empty one behind it, longer than a full one.
        for full in [Some(full), full.checked_sub(1)].into_iter().flatten() {
            let Some(rest) = (bytes - full * packet).checked_sub(shape.end) else { continue };
            let last =
                if rest == 0 { Some(0) } else { rest.checked_sub(shape.header).and_then(|rest| shape.solve(rest)) };
            if let Some(data) = last.filter(|data| *data <= shape.full) {
                return (full * shape.full + data, true);
            }
        }
    }
    if rest == 0 {
        return (full * shape.full, true);
    }
    match rest.checked_sub(shape.header).and_then(|rest| shape.solve(rest)) {
        Some(data) => (full * shape.full + data, true),
        None => count(bytes, shape, Ends::Cut),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn any_whole_block_is_counted_exactly() {
        for shape in [Shape::READ, Shape::WRITE, Shape::READ_1, Shape::WRITE_1] {
            for data in (1..400_000u64).step_by(977).chain(shape.full * 3 - 40..shape.full * 3 + 40) {
                assert_eq!(count(shape.wire(data), shape, Ends::WithBlock), (data, true), "{data}");
            }
        }
    }

    #[test]
    fn a_read_that_was_broken_off_counts_what_came() {
        let shape = Shape::READ;
        let bytes = shape.packet(shape.full) + HEADER + 512 + 10_000;
        assert_eq!(count(bytes, shape, Ends::Cut).0, shape.full + 10_000);
    }
}
