//! Reading packet files: whole records, in place.

use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use super::{
    Direction, MAGIC, PLAIN_BYTES, Packet, PacketFileError, PacketFileHeader, PacketFileLosses, PacketView,
    PlainPacket, SACK, Sack, Stamped, VERSION,
};
use crate::capture_note::CaptureNote;

/// Bytes that are held of the input; a record, of 64 KiB at most, fits several times. Beside what is left of one, there is room
/// for what a buffered input holds (256 KiB): so much is read past its buffer, and not copied.
const BUFFER_BYTES: usize = (1 << 18) + (1 << 16);
/// A file that ends at once does not take all of that.
const FIRST_BYTES: usize = 1 << 12;
/// Bytes of a header, at most.
const MAX_HEADER_BYTES: usize = 1 << 20;

/// What a file went on with.
pub(super) enum Part {
    /// A record.
    Record,
    /// A header: recording began again.
    Restart,
    /// Nothing more, or nothing whole.
    End,
}

/// Reads a packet file, whole records only.
#[derive(Debug)]
pub struct PacketReader<R> {
    input: Window<R>,
    header: PacketFileHeader,
    version: u32,
    notes: Vec<CaptureNote>,
    losses: PacketFileLosses,
    whole_until: u64,
    body: Range<usize>,
}

impl<R: Read> PacketReader<R> {
    /// Opens a packet file. Reads ahead by up to 320 KiB.
    ///
    /// # Errors
    /// If it is no packet file or its header is cut off.
    pub fn new(input: R) -> Result<Self, PacketFileError> {
        let mut input = Window::new(input);
        let got = input.want(MAGIC.len())?;
        let magic = input.take(got);
        if &input.bytes[magic.clone()] != MAGIC {
            return Err(PacketFileError::NotAPacketFile { found: input.bytes[magic].to_vec() });
        }
        let mut reader = Self {
            input,
            header: PacketFileHeader::default(),
            version: 0,
            notes: Vec::new(),
            losses: PacketFileLosses::default(),
            whole_until: 0,
            body: 0..0,
        };
        reader.read_header()?;
        reader.whole_until = reader.input.offset;
        Ok(reader)
    }

    /// The header of the part that is being read.
    #[must_use]
    pub fn header(&self) -> &PacketFileHeader {
        &self.header
    }

    /// Format version of the part that is being read.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The notes that stood between the packets so far, in the order of the file.
    #[must_use]
    pub fn notes(&self) -> &[CaptureNote] {
        &self.notes
    }

    /// What could not be used so far.
    #[must_use]
    pub fn losses(&self) -> PacketFileLosses {
        PacketFileLosses { broken_off: self.input.broken_off && self.input.is_at_end(), ..self.losses }
    }

    /// The next packet; `None` at the end, whether the file is whole or was cut off.
    ///
    /// # Errors
    /// If reading fails, or a header inside the file makes no sense.
    pub fn next_packet(&mut self) -> Result<Option<Packet>, PacketFileError> {
        Ok(self.next_view()?.map(|view| view.to_packet()))
    }

    /// As [`PacketReader::next_packet`], without a copy of the payload.
    ///
    /// # Errors
    /// If reading fails, or a header inside the file makes no sense.
    pub fn next_view(&mut self) -> Result<Option<PacketView<'_>>, PacketFileError> {
        loop {
            match self.next_part()? {
                Part::End => return Ok(None),
                Part::Restart => {}
                Part::Record => {
                    if is_packet(self.body()) {
                        break;
                    }
                    match CaptureNote::decode(self.body()) {
                        Some(note) => self.notes.push(note),
                        None => self.losses.malformed_records += 1,
                    }
                }
            }
        }
        Ok(parse_body(self.body()))
    }

    /// As [`PacketReader::next_view`], where the next record is a plain packet that was read ahead as a whole; `None` = it may be
    /// anything, and nothing was taken.
    #[inline]
    pub fn next_plain(&mut self) -> Option<PlainPacket<'_>> {
        let length = plain_length(&self.input.bytes[self.input.from..self.input.to])?;
        let record = self.input.take(length);
        self.body = record.start + 2..record.end;
        self.whole_until = self.input.offset;
        parse_plain(&self.input.bytes[record])
    }

    /// Reads on by one record, whose body is [`PacketReader::body`] then, or by one header.
    pub(super) fn next_part(&mut self) -> Result<Part, PacketFileError> {
        let got = self.input.want(2)?;
        let length = self.input.take(got);
        let &[low, high] = &self.input.bytes[length] else {
            self.losses.truncated_bytes += got as u64;
            return Ok(Part::End);
        };
        let length = usize::from(u16::from_le_bytes([low, high]));
        if length == 0 {
            match self.read_header() {
                Err(PacketFileError::Header { .. }) => {
                    self.losses.truncated_bytes += 2;
                    return Ok(Part::End);
                }
                other => other?,
            }
            self.whole_until = self.input.offset;
            return Ok(Part::Restart);
        }
        let got = self.input.want(length)?;
        self.body = self.input.take(got);
        if got < length {
            self.losses.truncated_bytes += 2 + got as u64;
            return Ok(Part::End);
        }
        self.whole_until = self.input.offset;
        Ok(Part::Record)
    }

    /// The record that was read last, without its length.
    pub(super) fn body(&self) -> &[u8] {
        &self.input.bytes[self.body.clone()]
    }

    /// Counts a record that could not be understood.
    pub(super) fn note_malformed(&mut self) {
        self.losses.malformed_records += 1;
    }

    /// Offset behind the last whole record (or header) so far, bytes: where a writer may go on.
    #[must_use]
    pub fn whole_until(&self) -> u64 {
        self.whole_until
    }

    fn read_header(&mut self) -> Result<(), PacketFileError> {
        let at = self.input.offset;
        let header = |reason: String| PacketFileError::Header { at, reason };
        let got = self.input.want(4)?;
        let length = self.input.take(got);
        let length: Option<[u8; 4]> = self.input.bytes[length].try_into().ok();
        let length =
            length.map(|length| u32::from_le_bytes(length) as usize).filter(|length| *length <= MAX_HEADER_BYTES);
        let length = length.ok_or_else(|| header("cut off, or longer than 1 MiB".into()))?;
        let got = self.input.want(length)?;
        let text = self.input.take(got);
        if got < length {
            return Err(header("cut off".into()));
        }
        let stamped: Stamped<PacketFileHeader> =
            serde_json::from_slice(&self.input.bytes[text]).map_err(|error| header(error.to_string()))?;
        if stamped.version > VERSION {
            return Err(PacketFileError::Version { at, found: stamped.version });
        }
        (self.header, self.version) = (stamped.header, stamped.version);
        Ok(())
    }
}

/// A part of the input, read ahead.
#[derive(Debug)]
struct Window<R> {
    input: R,
    bytes: Vec<u8>,
    /// What of `bytes` was read and not yet taken.
    from: usize,
    to: usize,
    /// Bytes of the input that were taken.
    offset: u64,
    ended: bool,
    /// Whether the end is one of packed data that was cut off or damaged.
    broken_off: bool,
    /// Why reading failed, told when all before it was taken.
    failed: Option<io::Error>,
}

impl<R: Read> Window<R> {
    fn new(input: R) -> Self {
        Self {
            input,
            bytes: vec![0; FIRST_BYTES],
            from: 0,
            to: 0,
            offset: 0,
            ended: false,
            broken_off: false,
            failed: None,
        }
    }

    /// Has `length` bytes at hand, or as many as there are until the end; says how many.
    #[inline]
    fn want(&mut self, length: usize) -> io::Result<usize> {
        if self.to - self.from >= length { Ok(length) } else { self.fill(length) }
    }

    fn fill(&mut self, length: usize) -> io::Result<usize> {
        self.bytes.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        if self.offset > 0 || length > self.bytes.len() {
            self.bytes.resize(self.bytes.len().max(BUFFER_BYTES).max(length), 0);
        }
        while self.to < length && !self.ended && self.failed.is_none() {
            match self.input.read(&mut self.bytes[self.to..]) {
                Ok(0) => self.ended = true,
                Ok(n) => self.to += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    (self.ended, self.broken_off) = (true, true);
                }
                Err(error) => self.failed = Some(error),
            }
        }
        if self.to < length
            && let Some(error) = self.failed.take()
        {
            return Err(error);
        }
        Ok(length.min(self.to))
    }

    /// Takes that many bytes that are at hand: where they lie, until more are wanted.
    #[inline]
    fn take(&mut self, length: usize) -> Range<usize> {
        let from = self.from;
        self.from += length;
        self.offset += length as u64;
        from..self.from
    }

    fn is_at_end(&self) -> bool {
        self.ended && self.from == self.to
    }
}

/// Whether [`parse_body`] understands a record.
#[inline]
fn is_packet(body: &[u8]) -> bool {
    let Some(&kind) = body.get(8) else { return false };
    let addresses = match kind & 0x0f {
        4 => 8,
        6 => 32,
        _ => return false,
    };
    let head = 12 + addresses + 20;
    match kind & SACK {
        0 => (kind >> 4) <= 3 && body.len() >= head,
        _ => {
            (kind & !SACK) >> 4 <= 3
                && body.get(head).is_some_and(|&count| count <= 4 && body.len() >= head + 1 + 8 * usize::from(count))
        }
    }
}

/// Bytes of the record at the front of `at_hand`, its length included, if it is a plain packet and all of it is there.
#[inline]
fn plain_length(at_hand: &[u8]) -> Option<usize> {
    let head = at_hand.first_chunk::<PLAIN_BYTES>()?;
    let length = 2 + usize::from(u16::from_le_bytes([head[0], head[1]]));
    let kind = head[10];
    let is_plain = kind & 0x0f == 4 && Direction::of_number(kind >> 4).is_some();
    (is_plain && (PLAIN_BYTES..=at_hand.len()).contains(&length)).then_some(length)
}

/// A plain packet of its record, as [`PacketWriter::write_plain`](super::PacketWriter::write_plain) makes it.
#[inline]
fn parse_plain(record: &[u8]) -> Option<PlainPacket<'_>> {
    let (head, payload) = record.split_first_chunk::<PLAIN_BYTES>()?;
    let mut rest = &head[2..];
    let time_ns = u64::from_le_bytes(take(&mut rest)?);
    let [kind, flags] = take(&mut rest)?;
    Some(PlainPacket {
        time_ns,
        direction: Direction::of_number(kind >> 4)?,
        flags,
        window: u16::from_le_bytes(take(&mut rest)?),
        source: Ipv4Addr::from(take::<4>(&mut rest)?),
        destination: Ipv4Addr::from(take::<4>(&mut rest)?),
        source_port: u16::from_le_bytes(take(&mut rest)?),
        destination_port: u16::from_le_bytes(take(&mut rest)?),
        raw_length: u32::from_le_bytes(take(&mut rest)?),
        payload_length: u32::from_le_bytes(take(&mut rest)?),
        sequence: u32::from_le_bytes(take(&mut rest)?),
        acknowledgement: u32::from_le_bytes(take(&mut rest)?),
        payload,
    })
}

#[inline]
pub(super) fn parse_body(body: &[u8]) -> Option<PacketView<'_>> {
    let mut rest = body;
    let time_ns = u64::from_le_bytes(take(&mut rest)?);
    let [version_direction] = take(&mut rest)?;
    let [flags] = take(&mut rest)?;
    let window = u16::from_le_bytes(take(&mut rest)?);
    let direction = Direction::of_number((version_direction & !SACK) >> 4)?;
    let (source, destination) = match version_direction & 0x0f {
        4 => (IpAddr::V4(Ipv4Addr::from(take::<4>(&mut rest)?)), IpAddr::V4(Ipv4Addr::from(take::<4>(&mut rest)?))),
        6 => (IpAddr::V6(Ipv6Addr::from(take::<16>(&mut rest)?)), IpAddr::V6(Ipv6Addr::from(take::<16>(&mut rest)?))),
        _ => return None,
    };
    let source_port = u16::from_le_bytes(take(&mut rest)?);
    let destination_port = u16::from_le_bytes(take(&mut rest)?);
    let raw_length = u32::from_le_bytes(take(&mut rest)?);
    let payload_length = u32::from_le_bytes(take(&mut rest)?);
    let sequence = u32::from_le_bytes(take(&mut rest)?);
    let acknowledgement = u32::from_le_bytes(take(&mut rest)?);
    let mut sack = Sack::default();
    if version_direction & SACK != 0 {
        let [count] = take(&mut rest)?;
        if count > 4 {
            return None;
        }
        for _ in 0..count {
            let left = u32::from_le_bytes(take(&mut rest)?);
            sack.push(left, u32::from_le_bytes(take(&mut rest)?));
        }
    }
    Some(PacketView {
        time_ns,
        direction,
        source: SocketAddr::new(source, source_port),
        destination: SocketAddr::new(destination, destination_port),
        flags,
        window,
        raw_length,
        payload_length,
        sequence,
        acknowledgement,
        sack,
        payload: rest,
    })
}

#[inline]
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}
