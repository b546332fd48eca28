//! From a captured frame, possibly cut short, to a TCP segment.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use etherparse::{
    EtherType, IpAuthHeaderSlice, IpNumber, Ipv4HeaderSlice, Ipv6ExtensionsSlice, Ipv6HeaderSlice, TcpSlice,
};
use trace::packet::Sack;

/// What a captured frame begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLayer {
    /// An Ethernet II header.
    Ethernet,
    /// The IP header.
    Ip,
    /// Linux' cooked header, version 1.
    LinuxCooked,
    /// Linux' cooked header, version 2.
    LinuxCooked2,
}

impl LinkLayer {
    /// By the number of libpcap (DLT_*, LINKTYPE_*); `None` for a link layer that carries no IP we know how to find.
    #[must_use]
    pub fn of_linktype(linktype: i32) -> Option<Self> {
        match linktype {
            1 => Some(Self::Ethernet),
            12 | 101 | 228 | 229 => Some(Self::Ip),
            113 => Some(Self::LinuxCooked),
            276 => Some(Self::LinuxCooked2),
            _ => None,
        }
    }

    /// The number under which others know it (LINKTYPE_*).
    #[must_use]
    pub fn linktype(self) -> u16 {
        match self {
            Self::Ethernet => 1,
            Self::Ip => 101,
            Self::LinuxCooked => 113,
            Self::LinuxCooked2 => 276,
        }
    }
}

/// A TCP segment inside a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Sender.
    pub source: SocketAddr,
    /// Receiver.
    pub destination: SocketAddr,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Flags, the header's byte.
    pub flags: u8,
    /// Receive window, unscaled.
    pub window: u16,
    /// SACK blocks.
    pub sack: Sack,
    /// Payload on the wire, bytes, by the IP header.
    pub payload_length: u32,
    /// What was captured of the payload.
    pub payload: &'a [u8],
    /// Where it begins in the frame.
    pub payload_at: usize,
}

/// What a frame turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A TCP segment.
    Tcp(Segment<'a>),
    /// Something that is no TCP over IP.
    Other,
    /// IP, and TCP or broken, whose headers cannot be read: cut off, fragmented, or malformed.
    Unparsed,
}

/// What nearly every frame of a cluster is: Ethernet, IPv4 without options or fragments, TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain<'a> {
    /// Sender.
    pub source: Ipv4Addr,
    /// Its port.
    pub source_port: u16,
    /// Receiver.
    pub destination: Ipv4Addr,
    /// Its port.
    pub destination_port: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Flags, the header's byte.
    pub flags: u8,
    /// Receive window, unscaled.
    pub window: u16,
    /// The TCP header's options.
    pub options: &'a [u8],
    /// Payload on the wire, bytes, by the IP header.
    pub payload_length: u32,
    /// What was captured of the payload.
    pub payload: &'a [u8],
}

impl Plain<'_> {
    /// Whether there may be SACK blocks among its options: not if there are none, or time stamps only.
    #[must_use]
    pub fn may_have_sack(&self) -> bool {
        let are_usual = self.options.is_empty() || self.options.len() == 12 && self.options.starts_with(&TIME_STAMPS);
        !are_usual
    }
}

/// Cuts a frame into its headers. `wire_length` is the frame's length before it was cut.
///
/// The headers are sliced one by one: etherparse's strict slicing of whole packets refuses what was cut at the snap
/// length, and its lax slicing moves a structure of several hundred bytes around for each packet (a quarter of the time
/// that a packet took).
#[must_use]
pub fn parse(link: LinkLayer, frame: &[u8], wire_length: u32) -> Frame<'_> {
    let Some(plain) = plain(link, frame) else { return parse_any(link, frame, wire_length) };
    Frame::Tcp(Segment {
        source: SocketAddr::new(plain.source.into(), plain.source_port),
        destination: SocketAddr::new(plain.destination.into(), plain.destination_port),
        sequence: plain.sequence,
        acknowledgement: plain.acknowledgement,
        flags: plain.flags,
        window: plain.window,
        sack: sack(plain.options),
        payload_length: plain.payload_length,
        payload: plain.payload,
        payload_at: PLAIN_HEADERS + plain.options.len(),
    })
}

/// Bytes of the headers of such a frame, without TCP options.
const PLAIN_HEADERS: usize = 54;

/// Such a frame; `None` = look closer.
#[must_use]
#[inline]
pub fn plain(link: LinkLayer, frame: &[u8]) -> Option<Plain<'_>> {
    let (head, behind) = frame.split_first_chunk::<PLAIN_HEADERS>()?;
    let half = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let is_plain = link == LinkLayer::Ethernet && half(12) == 0x0800 && head[14] == 0x45 && head[23] == 6;
    let fragment = half(20) & 0x3fff;
    let options = usize::from(head[46] >> 4) * 4;
    let length = usize::from(half(16)).checked_sub(20 + options)?;
    if !is_plain || fragment != 0 {
        return None;
    }
    let (options, payload) = behind.split_at_checked(options.checked_sub(20)?)?;
    Some(Plain {
        source: Ipv4Addr::from_bits(word(26)),
        source_port: half(34),
        destination: Ipv4Addr::from_bits(word(30)),
        destination_port: half(36),
        sequence: word(38),
        acknowledgement: word(42),
        flags: head[47],
        window: half(48),
        options,
        payload_length: u32::try_from(length).ok()?,
        // A short frame is padded on the wire: what lies behind the IP packet is no payload.
        payload: &payload[..payload.len().min(length)],
    })
}

/// The same for every frame there may be.
#[must_use]
pub fn parse_any(link: LinkLayer, frame: &[u8], wire_length: u32) -> Frame<'_> {
    match network_layer(link, frame) {
        Some((EtherType::IPV4, at)) => ipv4(frame, at, wire_length),
        Some((EtherType::IPV6, at)) => ipv6(frame, at, wire_length),
        Some(_) => Frame::Other,
        None => Frame::Unparsed,
    }
}

fn ipv4(frame: &[u8], at: usize, wire_length: u32) -> Frame<'_> {
    let Ok(header) = Ipv4HeaderSlice::from_slice(&frame[at..]) else { return Frame::Unparsed };
    let mut headers = header.slice().len();
    let mut protocol = header.protocol();
    if protocol == IpNumber::AUTHENTICATION_HEADER {
        let Ok(auth) = IpAuthHeaderSlice::from_slice(&frame[at + headers..]) else { return Frame::Unparsed };
        headers += auth.slice().len();
        protocol = auth.next_header();
    }
    let declared = match usize::from(header.total_len()) {
        0 => (wire_length as usize).saturating_sub(at),
        total => total,
    };
    let addresses = (IpAddr::V4(header.source_addr()), IpAddr::V4(header.destination_addr()));
    let fragment = header.is_fragmenting_payload();
    transport(frame, at + headers, protocol, fragment, addresses, declared.checked_sub(headers))
}

fn ipv6(frame: &[u8], at: usize, wire_length: u32) -> Frame<'_> {
    let Ok(header) = Ipv6HeaderSlice::from_slice(&frame[at..]) else { return Frame::Unparsed };
    let behind = at + header.slice().len();
    let (extensions, protocol, rest, error) =
        Ipv6ExtensionsSlice::from_slice_lax(header.next_header(), &frame[behind..]);
    if error.is_some() {
        return Frame::Unparsed;
    }
    let declared = match usize::from(header.payload_length()) {
        0 => (wire_length as usize).saturating_sub(behind),
        length => length,
    };
    let addresses = (IpAddr::V6(header.source_addr()), IpAddr::V6(header.destination_addr()));
    let declared = declared.checked_sub(extensions.slice().len());
    transport(frame, frame.len() - rest.len(), protocol, extensions.is_fragmenting_payload(), addresses, declared)
}

/// `declared` is the length of the transport header and payload by the IP header. That is 0 where segmentation offload
/// makes packets beyond 64 KiB ("BIG TCP"); the frame's length tells it then.
fn transport(
    frame: &[u8],
    at: usize,
    protocol: IpNumber,
    fragment: bool,
    addresses: (IpAddr, IpAddr),
    declared: Option<usize>,
) -> Frame<'_> {
    if protocol != IpNumber::TCP {
        return Frame::Other;
    }
    if fragment {
        return Frame::Unparsed;
    }
    let Ok(tcp) = TcpSlice::from_slice(&frame[at..]) else { return Frame::Unparsed };
    let payload_length = declared
        .and_then(|declared| declared.checked_sub(tcp.header_slice().len()))
        .and_then(|length| u32::try_from(length).ok());
    payload_length.map_or(Frame::Unparsed, |length| Frame::Tcp(segment(addresses, &tcp, at, length)))
}

fn segment<'a>(
    (source, destination): (IpAddr, IpAddr),
    tcp: &TcpSlice<'a>,
    at: usize,
    payload_length: u32,
) -> Segment<'a> {
    let header = tcp.slice();
    let payload = &header[tcp.header_slice().len()..];
    Segment {
        source: SocketAddr::new(source, tcp.source_port()),
        destination: SocketAddr::new(destination, tcp.destination_port()),
        sequence: tcp.sequence_number(),
        acknowledgement: tcp.acknowledgment_number(),
        flags: header.get(13).copied().unwrap_or(0),
        window: tcp.window_size(),
        sack: sack(tcp.header_slice().get(20..).unwrap_or_default()),
        payload_length,
        // A short frame is padded on the wire: what lies behind the IP packet is no payload.
        payload: &payload[..payload.len().min(payload_length as usize)],
        payload_at: at + tcp.header_slice().len(),
    }
}

/// How options begin that are time stamps: two of no operation, kind, length. They are on nearly every segment.
const TIME_STAMPS: [u8; 4] = [1, 1, 8, 10];

/// The SACK blocks among a header's options (RFC 2018, 3).
fn sack(options: &[u8]) -> Sack {
    let mut found = Sack::default();
    let mut rest = options;
    if rest.starts_with(&TIME_STAMPS) {
        rest = rest.get(12..).unwrap_or_default();
    }
    loop {
        match rest {
            [0, ..] | [] | [_] => return found,
            [1, more @ ..] => rest = more,
            [kind, length, more @ ..] => {
                let Some(body) = usize::from(*length).checked_sub(2).and_then(|length| more.get(..length)) else {
                    return found;
                };
                if *kind == 5 {
                    let (blocks, _) = body.as_chunks::<8>();
                    for [a, b, c, d, e, f, g, h] in blocks {
                        found.push(u32::from_be_bytes([*a, *b, *c, *d]), u32::from_be_bytes([*e, *f, *g, *h]));
                    }
                }
                rest = &more[body.len()..];
            }
        }
    }
}

/// VLAN tags that are looked through at most.
const TAGS: usize = 4;

/// What follows the link layer, and where; `None` if the frame is cut before that.
fn network_layer(link: LinkLayer, frame: &[u8]) -> Option<(EtherType, usize)> {
    let ether_type = |at: usize| {
        let bytes = frame.get(at..at + 2)?;
        Some(EtherType(u16::from_be_bytes([bytes[0], bytes[1]])))
    };
    let (mut kind, mut at) = match link {
        LinkLayer::Ethernet => (ether_type(12)?, 14),
        LinkLayer::LinuxCooked => (ether_type(14)?, 16),
        LinkLayer::LinuxCooked2 => (ether_type(0)?, 20),
        LinkLayer::Ip => match frame.first()? >> 4 {
            4 => (EtherType::IPV4, 0),
            6 => (EtherType::IPV6, 0),
            _ => return None,
        },
    };
    for _ in 0..TAGS {
        if !matches!(
            kind,
            EtherType::VLAN_TAGGED_FRAME | EtherType::PROVIDER_BRIDGING | EtherType::VLAN_DOUBLE_TAGGED_FRAME
        ) {
            break;
        }
        (kind, at) = (ether_type(at + 2)?, at + 4);
    }
    (at <= frame.len()).then_some((kind, at))
}
