//! The sniffer's packet file: `packets-INTERFACE.hpk`.
//!
//! ```text
//! file   = magic "HADPKT1\n", u32 header length, header (JSON, `PacketFileHeader`), record*
//! record = u16 length of what follows, body
//! body   = u64 time (ns since the epoch), u8 version (4 or 6) | direction << 4 | 0x40 if SACK blocks follow,
//!          u8 TCP flags, u16 window (unscaled),
//!          source address (4 or 16 bytes), destination address, u16 source port, u16 destination port,
//!          u32 raw length (frame on the wire), u32 payload length (TCP, from the IP total length),
//!          u32 sequence number, u32 acknowledgement number,
//!          [u8 number of SACK blocks, (u32 left edge, u32 right edge)*], kept payload bytes (the rest)
//!        | a note between packets (`note`)
//! ```
//!
//! All numbers are little endian. A file that was cut at any byte is read up to its last whole record. A record of
//! length 0 marks a restart: another header follows, so that an agent can append to what an earlier run left.
//! Format version 1 had neither SACK blocks nor notes; whatever was written in it is read as ever.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::capture_note::CaptureNote;

mod reader;
mod strip;

pub use reader::PacketReader;
pub use strip::{StrippedFile, strip};

/// Format version that is written; it stands in each header.
pub const VERSION: u32 = 2;

/// The first bytes of a packet file.
pub const MAGIC: &[u8; 8] = b"HADPKT1\n";

/// In a record's first byte behind the time: SACK blocks follow.
const SACK: u8 = 0x40;

/// TCP flag bits as in the header (RFC 9293, 3.1).
pub mod flag {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronise sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement number is valid.
    pub const ACK: u8 = 0x10;
}

/// What a packet file says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketFileHeader {
    /// Host name.
    pub host: String,
    /// Interface.
    pub interface: String,
    /// Whether it is the loopback interface.
    pub loopback: bool,
    /// Captured bytes of a frame at most.
    pub snap_length: u32,
    /// When recording began, nanoseconds since the epoch.
    pub started_ns: u64,
}

/// A header as it stands in the file.
#[derive(Serialize, Deserialize)]
struct Stamped<H> {
    #[serde(default = "first_version")]
    version: u32,
    #[serde(flatten)]
    header: H,
}

fn first_version() -> u32 {
    1
}

/// Which way a packet went, seen from the host that recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// It arrived.
    In,
    /// It left.
    Out,
    /// It went from the host to itself.
    Loopback,
    /// Neither address is the host's (a bridge, a mirror port).
    Foreign,
}

impl Direction {
    fn number(self) -> u8 {
        match self {
            Self::In => 0,
            Self::Out => 1,
            Self::Loopback => 2,
            Self::Foreign => 3,
        }
    }

    #[inline]
    fn of_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::In,
            1 => Self::Out,
            2 => Self::Loopback,
            3 => Self::Foreign,
            _ => return None,
        })
    }
}

/// SACK blocks of a segment (RFC 2018): what its sender has received beyond the acknowledgement number. There is room
/// for four in a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sack {
    blocks: [(u32, u32); 4],
    count: u8,
}

impl Sack {
    /// Adds a block, by its first sequence number and the one behind its last; a fifth is left out.
    pub fn push(&mut self, left: u32, right: u32) {
        if let Some(block) = self.blocks.get_mut(usize::from(self.count)) {
            *block = (left, right);
            self.count += 1;
        }
    }

    /// The blocks, in the order of the header.
    #[must_use]
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }
}

/// A TCP segment as it was seen, with the nine fields of the LIGHTNESS deliverable (3.2): local and remote address and
/// port, raw packet length, application payload length, sequence and acknowledgement number, flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Nanoseconds since the epoch.
    pub time_ns: u64,
    /// Which way it went.
    pub direction: Direction,
    /// Sender.
    pub source: SocketAddr,
    /// Receiver.
    pub destination: SocketAddr,
    /// Length of the frame on the wire, bytes.
    pub raw_length: u32,
    /// Payload of the segment, bytes, by the IP total length.
    pub payload_length: u32,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// TCP flags ([`flag`]).
    pub flags: u8,
    /// Receive window as it stands in the header, unscaled.
    pub window: u16,
    /// What the sender has received out of order.
    pub sack: Sack,
    /// The first bytes of the payload, as many as were kept.
    pub payload: Vec<u8>,
}

impl Packet {
    /// The host's own end; the source where that cannot be told.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        if self.direction == Direction::In { self.destination } else { self.source }
    }

    /// The far end.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        if self.direction == Direction::In { self.source } else { self.destination }
    }

    /// Whether all bits of `flags` are set.
    #[must_use]
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}

/// A [`Packet`] whose payload still lies where it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketView<'a> {
    /// Nanoseconds since the epoch.
    pub time_ns: u64,
    /// Which way it went.
    pub direction: Direction,
    /// Sender.
    pub source: SocketAddr,
    /// Receiver.
    pub destination: SocketAddr,
    /// Length of the frame on the wire, bytes.
    pub raw_length: u32,
    /// Payload of the segment, bytes, by the IP total length.
    pub payload_length: u32,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// TCP flags ([`flag`]).
    pub flags: u8,
    /// Receive window, unscaled.
    pub window: u16,
    /// What the sender has received out of order.
    pub sack: Sack,
    /// The first bytes of the payload, as many as were kept.
    pub payload: &'a [u8],
}

impl PacketView<'_> {
    /// The host's own end; the source where that cannot be told.
    #[must_use]
    #[inline]
    pub fn local(&self) -> SocketAddr {
        if self.direction == Direction::In { self.destination } else { self.source }
    }

    /// Whether all bits of `flags` are set.
    #[must_use]
    #[inline]
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// The same packet with a payload of its own.
    #[must_use]
    pub fn to_packet(&self) -> Packet {
        Packet {
            time_ns: self.time_ns,
            direction: self.direction,
            source: self.source,
            destination: self.destination,
            raw_length: self.raw_length,
            payload_length: self.payload_length,
            sequence: self.sequence,
            acknowledgement: self.acknowledgement,
            flags: self.flags,
            window: self.window,
            sack: self.sack,
            payload: self.payload.to_vec(),
        }
    }
}

/// What nearly every packet of a cluster is, in the plainest form: between IPv4 addresses, without SACK blocks. A recorder
/// sees 300,000 of them a second, and making a [`Packet`] of each took longer than writing it; a reader sees some millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainPacket<'a> {
    /// Nanoseconds since the epoch.
    pub time_ns: u64,
    /// Which way it went.
    pub direction: Direction,
    /// Sender.
    pub source: Ipv4Addr,
    /// Its port.
    pub source_port: u16,
    /// Receiver.
    pub destination: Ipv4Addr,
    /// Its port.
    pub destination_port: u16,
    /// Length of the frame on the wire, bytes.
    pub raw_length: u32,
    /// Payload of the segment, bytes, by the IP total length.
    pub payload_length: u32,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// TCP flags ([`flag`]).
    pub flags: u8,
    /// Receive window, unscaled.
    pub window: u16,
    /// The first bytes of the payload, as many as are kept.
    pub payload: &'a [u8],
}

impl<'a> PlainPacket<'a> {
    /// The address of the host's own end; the source's where that cannot be told.
    #[must_use]
    #[inline]
    pub fn local(&self) -> Ipv4Addr {
        if self.direction == Direction::In { self.destination } else { self.source }
    }

    /// The same packet as one of any kind.
    #[must_use]
    #[inline]
    pub fn view(&self) -> PacketView<'a> {
        PacketView {
            time_ns: self.time_ns,
            direction: self.direction,
            source: SocketAddr::from((self.source, self.source_port)),
            destination: SocketAddr::from((self.destination, self.destination_port)),
            raw_length: self.raw_length,
            payload_length: self.payload_length,
            sequence: self.sequence,
            acknowledgement: self.acknowledgement,
            flags: self.flags,
            window: self.window,
            sack: Sack::default(),
            payload: self.payload,
        }
    }
}

/// Bytes of its record in front of the payload, the length included.
const PLAIN_BYTES: usize = 42;

/// Why a packet file could not be read on.
#[derive(Debug, thiserror::Error)]
pub enum PacketFileError {
    /// Reading failed.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("not a packet file of the sniffer: it begins with {found:02x?}, expected \"HADPKT1\"")]
    NotAPacketFile {
        /// The first bytes.
        found: Vec<u8>,
    },
    /// It was written by a newer version.
    #[error("the part that begins at byte {at} has format version {found}; this program reads up to {VERSION}")]
    Version {
        /// Where its header begins.
        at: u64,
        /// The version.
        found: u32,
    },
    /// The header cannot be understood.
    #[error("the header at byte {at} cannot be read: {reason}")]
    Header {
        /// Where it begins.
        at: u64,
        /// What is wrong with it, as a clause.
        reason: String,
    },
}

/// Bytes of a record in front of its payload at most: length, time, kind and flags, window, IPv6 addresses, ports, four
/// numbers, four SACK blocks.
const HEAD_BYTES: usize = 2 + 8 + 2 + 2 + 32 + 4 + 16 + 33;

/// That part of a record, being made: on the stack, because a recorder makes some 300,000 a second.
struct Head {
    bytes: [u8; HEAD_BYTES],
    length: usize,
}

impl Head {
    #[inline]
    fn put<const N: usize>(&mut self, field: [u8; N]) {
        self.bytes[self.length..self.length + N].copy_from_slice(&field);
        self.length += N;
    }
}

/// Appends records to a packet file.
#[derive(Debug)]
pub struct PacketWriter<W> {
    out: W,
}

impl<W: Write> PacketWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn create(mut out: W, header: &PacketFileHeader) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        write_header(&mut out, header)?;
        Ok(Self { out })
    }

    /// Goes on with a file that an earlier run left; `out` must stand at its end, behind a whole record.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn resume(mut out: W, header: &PacketFileHeader) -> io::Result<Self> {
        out.write_all(&0u16.to_le_bytes())?;
        write_header(&mut out, header)?;
        Ok(Self { out })
    }

    /// Writes records that go behind a header which stands elsewhere.
    #[must_use]
    pub fn append_to(out: W) -> Self {
        Self { out }
    }

    /// Appends a record.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(&mut self, packet: &Packet) -> io::Result<()> {
        let mut head = Head { bytes: [0; HEAD_BYTES], length: 2 };
        head.put(packet.time_ns.to_le_bytes());
        let direction = packet.direction.number();
        let sack = packet.sack.blocks();
        let with_sack = if sack.is_empty() { 0 } else { SACK };
        match (packet.source.ip(), packet.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                head.put([4 | direction << 4 | with_sack, packet.flags]);
                head.put(packet.window.to_le_bytes());
                head.put(source.octets());
                head.put(destination.octets());
            }
            (source, destination) => {
                head.put([6 | direction << 4 | with_sack, packet.flags]);
                head.put(packet.window.to_le_bytes());
                for address in [source, destination] {
                    head.put(match address {
                        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                        IpAddr::V6(address) => address.octets(),
                    });
                }
            }
        }
        head.put(packet.source.port().to_le_bytes());
        head.put(packet.destination.port().to_le_bytes());
        for number in [packet.raw_length, packet.payload_length, packet.sequence, packet.acknowledgement] {
            head.put(number.to_le_bytes());
        }
        if !sack.is_empty() {
            head.put([packet.sack.count]);
            for (left, right) in sack {
                head.put(left.to_le_bytes());
                head.put(right.to_le_bytes());
            }
        }
        let room = usize::from(u16::MAX) - (head.length - 2);
        let payload = &packet.payload[..packet.payload.len().min(room)];
        let length = u16::try_from(head.length - 2 + payload.len()).unwrap_or(u16::MAX);
        head.bytes[..2].copy_from_slice(&length.to_le_bytes());
        self.out.write_all(&head.bytes[..head.length])?;
        self.out.write_all(payload)
    }

    /// Appends a note.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn note(&mut self, note: &CaptureNote) -> io::Result<()> {
        let mut body = Vec::with_capacity(64);
        note.encode(&mut body);
        let length = u16::try_from(body.len()).unwrap_or(u16::MAX);
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&body)
    }

    /// Hands what is buffered to the operating system.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The writer below.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }
}

impl PacketWriter<Vec<u8>> {
    /// Appends the record of such a packet: the same bytes as [`PacketWriter::write`] makes of it. They are put where they
    /// are to be, without a copy between: reading back what was just written in smaller pieces stalls a processor.
    #[inline]
    pub fn write_plain(&mut self, packet: &PlainPacket<'_>) {
        let payload = &packet.payload[..packet.payload.len().min(usize::from(u16::MAX) - (PLAIN_BYTES - 2))];
        let length = u16::try_from(PLAIN_BYTES - 2 + payload.len()).unwrap_or(u16::MAX);
        let at = self.out.len();
        self.out.extend_from_slice(&[0; PLAIN_BYTES]);
        if let Some(head) = self.out[at..].first_chunk_mut::<PLAIN_BYTES>() {
            head[0..2].copy_from_slice(&length.to_le_bytes());
            head[2..10].copy_from_slice(&packet.time_ns.to_le_bytes());
            head[10] = 4 | packet.direction.number() << 4;
            head[11] = packet.flags;
            head[12..14].copy_from_slice(&packet.window.to_le_bytes());
            head[14..18].copy_from_slice(&packet.source.octets());
            head[18..22].copy_from_slice(&packet.destination.octets());
            head[22..24].copy_from_slice(&packet.source_port.to_le_bytes());
            head[24..26].copy_from_slice(&packet.destination_port.to_le_bytes());
            head[26..30].copy_from_slice(&packet.raw_length.to_le_bytes());
            head[30..34].copy_from_slice(&packet.payload_length.to_le_bytes());
            head[34..38].copy_from_slice(&packet.sequence.to_le_bytes());
            head[38..42].copy_from_slice(&packet.acknowledgement.to_le_bytes());
        }
        self.out.extend_from_slice(payload);
    }
}

fn write_header<W: Write>(out: &mut W, header: &PacketFileHeader) -> io::Result<()> {
    let text = serde_json::to_vec(&Stamped { version: VERSION, header })?;
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&text)
}

/// What a reader had to leave out at the end of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketFileLosses {
    /// Bytes of a last record that was cut off.
    pub truncated_bytes: u64,
    /// Records whose fields make no sense.
    pub malformed_records: u64,
    /// Whether it was packed, and could not be unpacked to its end.
    pub broken_off: bool,
}
