//! Reading pcap and pcapng files that other tools wrote, packed or not, whole or cut off.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::net::{IpAddr, SocketAddr};

use etherparse::{EtherType, IpNumber, LaxNetSlice, LaxSlicedPacket, TcpSlice, TransportSlice};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, LegacyPcapReader, Linktype, PcapBlockOwned, PcapError as ParseError, PcapNGReader};
use trace::files;
use trace::packet::{Direction, PacketView, Sack};

use super::again::RecentPackets;
use super::flows::{canonical, direction_of};
use super::sense;

/// The largest frame or block that is read, bytes: a jumbo segment of 64 KiB with a comment fits several times.
const BUFFER_BYTES: usize = 1 << 20;

/// What could not be used of a pcap file.
#[derive(Clone, Debug, Default)]
pub(crate) struct PcapLosses {
    /// Frames of IP whose headers could not be read.
    pub unparsed: u64,
    /// Frames that the recording cut before the end of their headers.
    pub cut: u64,
    /// The longest of what is left of these, bytes.
    pub cut_at_bytes: usize,
    /// Frames with less of their payload than tells messages apart.
    pub short: u64,
    /// The longest of these, bytes.
    pub short_at_bytes: usize,
    /// Frames of VXLAN: what they carry is not looked into.
    pub vxlan: u64,
    /// Frames of anything else than TCP.
    pub other: u64,
    /// Packets that came a second time, as on a bond and on its slave.
    pub duplicates: u64,
    /// Whether the file ends inside a frame.
    pub truncated: bool,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// Why nothing of a file could be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PcapError {
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    #[error("neither pcap nor pcapng: it begins with {0:02x?}")]
    NotPcap(Vec<u8>),
    #[error("the header cannot be read: {0}")]
    Header(String),
    /// Whoever takes the packets cannot.
    #[error("{0}")]
    Taker(io::Error),
}

/// What a pcapng file begins with, in either byte order.
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Less of a segment's payload does not tell names of calls, clients and map outputs (docs/foreign-captures.md, "Shapes and
/// frictions"): what a snap length of 256 leaves of Ethernet frames with two VLANs, IPv6 and time stamps is more.
const ENOUGH_PAYLOAD: usize = 160;
const ETHERNET: Linktype = Linktype(1);
/// Linux' cooked headers, of both versions.
const COOKED: [i32; 2] = [113, 276];
/// Port of UDP on which hosts tunnel networks of virtual machines and containers.
const VXLAN_PORT: u16 = 4789;
/// A block at which reading ends.
const NO_SENSE: &str = "a block that makes no sense";

/// An interface of a file: link type and time stamps.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: Linktype,
    units_per_second: u64,
    offset_seconds: i64,
}

impl Interface {
    /// A time stamp, nanoseconds since the epoch.
    fn time_ns(&self, units: u64) -> u64 {
        let ns = match self.units_per_second {
            1_000_000_000 => Some(units),
            1_000_000 => units.checked_mul(1_000),
            _ => None,
        };
        if let Some(ns) = ns
            && self.offset_seconds == 0
        {
            return ns;
        }
        let ns = u128::from(units) * 1_000_000_000 / u128::from(self.units_per_second);
        let ns = i128::try_from(ns).unwrap_or(0) + i128::from(self.offset_seconds) * 1_000_000_000;
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }
}

/// Reads a file of a host that has these addresses, and hands each TCP packet to `take`.
pub(crate) fn read(
    input: File,
    own: &BTreeSet<IpAddr>,
    mut take: impl FnMut(&PacketView<'_>) -> io::Result<()>,
) -> Result<PcapLosses, PcapError> {
    let mut input = files::unpacked(input)?;
    let head = input.fill_buf()?.get(..4).map(<[u8]>::to_vec).unwrap_or_default();
    let input = EndsWhereDamaged(input);
    let header_error = |error: ParseError<&[u8]>| PcapError::Header(format!("{error:?}"));
    let mut reader: Box<dyn PcapReaderIterator> = match head.as_slice() {
        head if head == SECTION_HEADER => Box::new(PcapNGReader::new(BUFFER_BYTES, input).map_err(header_error)?),
        [0xd4, 0xc3, 0xb2, 0xa1] | [0xa1, 0xb2, 0xc3, 0xd4] | [0x4d, 0x3c, 0xb2, 0xa1] | [0xa1, 0xb2, 0x3c, 0x4d] => {
            Box::new(LegacyPcapReader::new(BUFFER_BYTES, input).map_err(header_error)?)
        }
        _ => return Err(PcapError::NotPcap(head)),
    };
    let mut collector = Collector {
        out: PcapLosses::default(),
        interfaces: Vec::new(),
        own,
        take: &mut take,
        seen: RecentPackets::default(),
        most_payload: 0,
        mislabelled: [0; COOKED.len()],
    };
    let mut stalled = None;
    loop {
        if head == SECTION_HEADER && is_too_short(reader.data()) {
            collector.out.truncated = true;
            collector.out.notes.push(format!("reading ended early: {NO_SENSE}"));
            break;
        }
        match reader.next() {
            Ok((consumed, block)) => {
                collector.take(&block).map_err(PcapError::Taker)?;
                reader.consume(consumed);
                stalled = None;
            }
            Err(ParseError::Eof) => break,
            Err(ParseError::Incomplete(_)) => {
                // Nothing new came since the last try: the file ends here, or the block is larger than any can be.
                let available = reader.data().len();
                if stalled == Some(available) || reader.refill().is_err() {
                    collector.out.truncated = true;
                    break;
                }
                stalled = Some(available);
            }
            Err(error) => {
                collector.out.truncated = true;
                collector.out.notes.push(format!("reading ended early: {}", short(&error)));
                break;
            }
        }
    }
    Ok(collector.end())
}

fn short(error: &ParseError<&[u8]>) -> String {
    match error {
        ParseError::UnexpectedEof => "cut off inside a block".into(),
        ParseError::BufferTooSmall => "a block of more than 1 MiB".into(),
        _ => NO_SENSE.into(),
    }
}

/// Whether the pcapng block at the front is shorter than its own type and lengths (12 bytes), in either byte order: the
/// parser takes from its length without looking. One that is too short in the other order only is above any limit.
fn is_too_short(data: &[u8]) -> bool {
    let length = data.get(4..8).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
    length.is_some_and(|bytes| u32::from_le_bytes(bytes).min(u32::from_be_bytes(bytes)) < 12)
}

/// Packed data that is damaged ends there.
struct EndsWhereDamaged(Box<dyn BufRead + Send>);

impl Read for EndsWhereDamaged {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            other => other,
        }
    }
}

struct Collector<'a> {
    out: PcapLosses,
    interfaces: Vec<Interface>,
    own: &'a BTreeSet<IpAddr>,
    take: &'a mut dyn FnMut(&PacketView<'_>) -> io::Result<()>,
    seen: RecentPackets,
    /// The most payload of a segment that was cut, bytes.
    most_payload: usize,
    /// Frames of Ethernet whose link type is one of [`COOKED`].
    mislabelled: [u64; COOKED.len()],
}

impl Collector<'_> {
    fn end(self) -> PcapLosses {
        let mut out = self.out;
        if self.most_payload >= ENOUGH_PAYLOAD {
            out.short = 0;
        }
        for (link, count) in COOKED.into_iter().zip(self.mislabelled).filter(|(_, count)| *count > 0) {
            out.notes.push(format!("{count} frames have the link type {link} and are Ethernet's: read as such"));
        }
        out
    }

    fn take(&mut self, block: &PcapBlockOwned<'_>) -> io::Result<()> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let units = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
                self.interface(header.network, units, 0);
            }
            PcapBlockOwned::Legacy(frame) => {
                let stamp = u64::from(frame.ts_sec);
                let unit = self.interfaces.first().map_or(1_000_000, |interface| interface.units_per_second);
                let units = stamp.saturating_mul(unit).saturating_add(u64::from(frame.ts_usec));
                self.frame(0, units, frame.origlen, frame.data)?;
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => self.interfaces.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
                let units = description.ts_resolution().unwrap_or(1_000_000);
                self.interface(description.linktype, units, description.ts_offset());
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(frame)) => {
                let units = u64::from(frame.ts_high) << 32 | u64::from(frame.ts_low);
                let data = frame.data.get(..frame.caplen as usize).unwrap_or(frame.data);
                self.frame(frame.if_id as usize, units, frame.origlen, data)?;
            }
            PcapBlockOwned::NG(_) => {}
        }
        Ok(())
    }

    fn interface(&mut self, link: Linktype, units_per_second: u64, offset_seconds: i64) {
        if !matches!(link.0, 0 | 1 | 12 | 101 | 108 | 113 | 228 | 229 | 276) {
            self.out.notes.push(format!("frames of link type {} are not understood", link.0));
        }
        self.interfaces.push(Interface { link, units_per_second: units_per_second.max(1), offset_seconds });
    }

    fn frame(&mut self, interface: usize, units: u64, wire_length: u32, data: &[u8]) -> io::Result<()> {
        let Some(interface) = self.interfaces.get(interface) else {
            self.out.unparsed += 1;
            return Ok(());
        };
        let time_ns = interface.time_ns(units);
        let mut parsed = parse(interface.link, data, wire_length, &self.seen);
        if !matches!(parsed, Parsed::Tcp(..))
            && let Some(place) = COOKED.iter().position(|link| *link == interface.link.0)
            && let tcp @ Parsed::Tcp(..) = parse(ETHERNET, data, wire_length, &self.seen)
        {
            self.mislabelled[place] += 1;
            parsed = tcp;
        }
        match parsed {
            Parsed::Tcp(mut packet, fingerprint) => {
                packet.time_ns = time_ns;
                if data.len() < wire_length as usize && packet.payload.len() < packet.payload_length as usize {
                    self.out.short += 1;
                    self.out.short_at_bytes = self.out.short_at_bytes.max(data.len());
                    self.most_payload = self.most_payload.max(packet.payload.len());
                }
                let own = |address: IpAddr| address.is_loopback() || self.own.contains(&address);
                packet.direction = direction_of(packet.source.ip(), packet.destination.ip(), own);
                if self.seen.is_again(time_ns, fingerprint) {
                    self.out.duplicates += 1;
                } else if sense::packet(packet.time_ns, packet.payload_length) {
                    return (self.take)(&packet);
                } else {
                    self.out.unparsed += 1;
                }
            }
            Parsed::Vxlan => self.out.vxlan += 1,
            Parsed::Other => self.out.other += 1,
            Parsed::Unparsed if data.len() < wire_length as usize => {
                self.out.cut += 1;
                self.out.cut_at_bytes = self.out.cut_at_bytes.max(data.len());
            }
            Parsed::Unparsed => self.out.unparsed += 1,
        }
        Ok(())
    }
}

enum Parsed<'a> {
    /// A packet, and what tells it from all others of its time.
    Tcp(PacketView<'a>, u64),
    Vxlan,
    Other,
    Unparsed,
}

/// What is read of a TCP header, in which the recording may have cut the options.
struct Header<'a> {
    ports: [u16; 2],
    sequence: u32,
    acknowledgement: u32,
    flags: u8,
    window: u16,
    checksum: u16,
    /// Length with its options, bytes.
    length: usize,
    payload: &'a [u8],
}

impl<'a> Header<'a> {
    fn of(tcp: &TcpSlice<'a>) -> Self {
        Self {
            ports: [tcp.source_port(), tcp.destination_port()],
            sequence: tcp.sequence_number(),
            acknowledgement: tcp.acknowledgment_number(),
            flags: tcp.slice().get(13).copied().unwrap_or(0),
            window: tcp.window_size(),
            checksum: tcp.checksum(),
            length: tcp.header_slice().len(),
            payload: tcp.payload(),
        }
    }

    /// Of a header of which the recording kept the fixed 20 bytes, and not all of its options.
    fn cut(bytes: &'a [u8]) -> Option<Self> {
        let fixed: &[u8; 20] = bytes.first_chunk()?;
        let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
        let length = usize::from(fixed[12] >> 4) * 4;
        (length > bytes.len()).then(|| Self {
            ports: [half(0), half(2)],
            sequence: word(4),
            acknowledgement: word(8),
            flags: fixed[13],
            window: half(14),
            checksum: half(16),
            length,
            payload: &[],
        })
    }
}

fn slice(link: Linktype, data: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    match link.0 {
        1 => LaxSlicedPacket::from_ethernet(data).ok(),
        // BSD loopback: the address family, four bytes in the order of the machine that recorded.
        0 | 108 => LaxSlicedPacket::from_ip(data.get(4..)?).ok(),
        12 | 101 | 228 | 229 => LaxSlicedPacket::from_ip(data).ok(),
        113 => cooked(data, 14, 16),
        276 => cooked(data, 0, 20),
        _ => None,
    }
}

/// Linux' cooked headers: the protocol stands at `protocol_at`, the packet begins at `payload_at`.
fn cooked(data: &[u8], protocol_at: usize, payload_at: usize) -> Option<LaxSlicedPacket<'_>> {
    let protocol: [u8; 2] = data.get(protocol_at..protocol_at + 2)?.try_into().ok()?;
    Some(LaxSlicedPacket::from_ether_type(EtherType(u16::from_be_bytes(protocol)), data.get(payload_at..)?))
}

fn parse<'a>(link: Linktype, data: &'a [u8], wire_length: u32, seen: &RecentPackets) -> Parsed<'a> {
    let Some(sliced) = slice(link, data) else { return Parsed::Unparsed };
    // The payload's length comes from the IP header: the frame may be cut, or padded.
    let (source, destination, inside, behind_ip, identification) = match &sliced.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            let extra = ip.extensions().auth.as_ref().map_or(0, |auth| auth.slice().len());
            let length = match usize::from(header.total_len()) {
                // Segments above 64 KiB say 0: the rest of the frame then.
                0 => rest_of(data, header.slice(), wire_length),
                total => total,
            };
            (
                IpAddr::V4(header.source_addr()),
                IpAddr::V4(header.destination_addr()),
                ip.payload(),
                length.checked_sub(header.slice().len() + extra),
                header.identification(),
            )
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            let length = match usize::from(header.payload_length()) {
                0 => rest_of(data, header.slice(), wire_length).saturating_sub(header.slice().len()),
                length => length,
            };
            (
                IpAddr::V6(header.source_addr()),
                IpAddr::V6(header.destination_addr()),
                ip.payload(),
                length.checked_sub(ip.extensions().slice().len()),
                0,
            )
        }
        Some(LaxNetSlice::Arp(_)) => return Parsed::Other,
        None if sliced.stop_err.is_some() => return Parsed::Unparsed,
        None => return Parsed::Other,
    };
    let header = match &sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => Some(Header::of(tcp)),
        Some(TransportSlice::Udp(udp)) if udp.destination_port() == VXLAN_PORT => return Parsed::Vxlan,
        _ if inside.ip_number != IpNumber::TCP => return Parsed::Other,
        _ => Header::cut(inside.payload).filter(|_| data.len() < wire_length as usize && !inside.fragmented),
    };
    let Some(tcp) = header else { return Parsed::Unparsed };
    let Some(payload_length) = behind_ip.and_then(|length| length.checked_sub(tcp.length)) else {
        return Parsed::Unparsed;
    };
    let captured = tcp.payload;
    let packet = PacketView {
        time_ns: 0,
        direction: Direction::Foreign,
        source: canonical(SocketAddr::new(source, tcp.ports[0])),
        destination: canonical(SocketAddr::new(destination, tcp.ports[1])),
        raw_length: wire_length,
        payload_length: u32::try_from(payload_length).unwrap_or(u32::MAX),
        sequence: tcp.sequence,
        acknowledgement: tcp.acknowledgement,
        flags: tcp.flags,
        window: tcp.window,
        sack: Sack::default(),
        payload: &captured[..captured.len().min(payload_length)],
    };
    let fingerprint = seen.fingerprint(&packet, tcp.checksum, identification);
    Parsed::Tcp(packet, fingerprint)
}

/// Bytes of the frame on the wire from the IP header on.
fn rest_of(frame: &[u8], ip_header: &[u8], wire_length: u32) -> usize {
    let before = (ip_header.as_ptr() as usize).saturating_sub(frame.as_ptr() as usize);
    (wire_length as usize).saturating_sub(before)
}
