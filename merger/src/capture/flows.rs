//! Packets of one host, gathered by the two addresses between which they went.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use trace::packet::{Direction, Packet};

/// Payload bytes that are kept of a packet at most: what tells messages apart stands at their beginning.
pub(crate) const KEPT_BYTES: usize = 2048;

/// Two addresses between which packets went, the lower one first.
///
/// Addresses like 127.0.0.1 mean another host on each host: `host` tells these apart, and is `None` for all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// The lower address.
    pub low: SocketAddr,
    /// The higher address.
    pub high: SocketAddr,
    /// The host, by its number, if the addresses mean something on it only.
    pub host: Option<usize>,
}

impl FlowKey {
    /// The flow of a packet that host `host` saw, and whether it went from the lower to the higher address.
    #[must_use]
    pub fn of(source: SocketAddr, destination: SocketAddr, host: usize) -> (Self, bool) {
        let forward = source <= destination;
        let (low, high) = if forward { (source, destination) } else { (destination, source) };
        let local = low.ip().is_loopback() || high.ip().is_loopback();
        (Self { low, high, host: local.then_some(host) }, forward)
    }
}

/// A packet as one host saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// When, nanoseconds since the epoch, on the host's clock until clocks are aligned.
    pub time_ns: u64,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Payload of the segment, bytes.
    pub payload_length: u32,
    /// Receive window, unscaled.
    pub window: u16,
    /// TCP flags (`trace::packet::flag`).
    pub flags: u8,
    /// Whether it went from the flow's lower to its higher address.
    pub forward: bool,
    /// Where its kept payload begins in [`Packets::kept`].
    pub kept_start: u64,
    /// Kept payload bytes.
    pub kept_length: u16,
    /// Which file it came from, to tell copies of a packet seen on two interfaces from a packet sent twice.
    pub file: u16,
}

impl Observed {
    /// Whether all bits of `flags` are set.
    #[must_use]
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}

/// The packets of one host.
#[derive(Clone, Debug, Default)]
pub struct Packets {
    /// By flow, in the order of time.
    pub flows: HashMap<FlowKey, Vec<Observed>>,
    /// Kept payload of all packets, one after the other.
    pub kept: Vec<u8>,
    /// Packets read.
    pub count: u64,
    /// Copies of packets that were seen on another interface too, left out.
    pub copies: u64,
}

impl Packets {
    /// Takes in a packet that host number `host` saw, read from its file number `file`.
    pub fn push(&mut self, packet: &Packet, host: usize, file: u16) {
        let (source, destination) = (canonical(packet.source), canonical(packet.destination));
        let (key, forward) = FlowKey::of(source, destination, host);
        let kept = &packet.payload[..packet.payload.len().min(KEPT_BYTES).min(packet.payload_length as usize)];
        let observed = Observed {
            time_ns: packet.time_ns,
            sequence: packet.sequence,
            acknowledgement: packet.acknowledgement,
            payload_length: packet.payload_length,
            window: packet.window,
            flags: packet.flags,
            forward,
            kept_start: self.kept.len() as u64,
            kept_length: u16::try_from(kept.len()).unwrap_or(u16::MAX),
            file,
        };
        self.kept.extend_from_slice(kept);
        self.flows.entry(key).or_default().push(observed);
        self.count += 1;
    }

    /// Adds what another file of the same host held.
    pub fn append(&mut self, other: Self) {
        let shift = self.kept.len() as u64;
        self.kept.extend_from_slice(&other.kept);
        self.count += other.count;
        self.copies += other.copies;
        for (key, packets) in other.flows {
            let moved = packets.into_iter().map(|packet| Observed { kept_start: packet.kept_start + shift, ..packet });
            self.flows.entry(key).or_default().extend(moved);
        }
    }

    /// Orders each flow by time, and leaves out copies: the same packet seen on two interfaces (a bridge and its port)
    /// within a millisecond. A packet that was sent twice is seen twice on one interface.
    pub fn settle(&mut self) {
        for packets in self.flows.values_mut() {
            packets.sort_by_key(|packet| packet.time_ns);
            let several_files = packets.iter().any(|packet| packet.file != packets[0].file);
            if several_files {
                self.copies += drop_copies(packets);
            }
        }
    }

    /// The kept payload of a packet.
    #[must_use]
    pub fn payload(&self, packet: &Observed) -> &[u8] {
        let start = usize::try_from(packet.kept_start).unwrap_or(usize::MAX);
        self.kept.get(start..start.saturating_add(usize::from(packet.kept_length))).unwrap_or(&[])
    }
}

fn drop_copies(packets: &mut Vec<Observed>) -> u64 {
    const APART_NS: u64 = 1_000_000;
    /// More packets of one connection do not come within that time.
    const MAX_CANDIDATES: usize = 4096;
    let before = packets.len();
    let mut kept: Vec<Observed> = Vec::with_capacity(before);
    for packet in packets.iter() {
        let copy = kept
            .iter()
            .rev()
            .take(MAX_CANDIDATES)
            .take_while(|earlier| packet.time_ns - earlier.time_ns <= APART_NS)
            .any(|earlier| earlier.file != packet.file && same_header(earlier, packet));
        if !copy {
            kept.push(*packet);
        }
    }
    *packets = kept;
    (before - packets.len()) as u64
}

fn same_header(a: &Observed, b: &Observed) -> bool {
    (a.forward, a.sequence, a.acknowledgement, a.payload_length, a.window, a.flags)
        == (b.forward, b.sequence, b.acknowledgement, b.payload_length, b.window, b.flags)
}

/// An IPv4 address that was written as an IPv6 one is the IPv4 address.
#[must_use]
pub fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Which way a packet goes for a host with these addresses.
#[must_use]
pub fn direction_of(source: IpAddr, destination: IpAddr, own: impl Fn(IpAddr) -> bool) -> Direction {
    match (own(source), own(destination)) {
        (true, true) => Direction::Loopback,
        (true, false) => Direction::Out,
        (false, true) => Direction::In,
        (false, false) => Direction::Foreign,
    }
}
