//! How many payload bytes of a segment are worth keeping.
//!
//! Messages are found by what stands at their beginning: the head of an RPC call, of an HTTP response, of a block
//! transfer. Short segments are kept up to a limit. Full-sized ones are mostly the middle of a data stream, which packs
//! badly and says nothing: of these, a prefix is kept only where a burst may begin. A burst begins with a direction's
//! first data, after a segment that ended a write, or after a pause. A write was ended by a short segment, or by one
//! with PSH that is shorter than others of its direction: PSH alone also stands on segments in the middle of a stream
//! (Linux sets it each half window). A wider rule (any PSH, any pause of 1 ms) kept 24% of the full-sized segments of a
//! terasort at 100 Mbit/s; 2,065 of these began with the header of an HDFS packet, and 2,057 of those are kept by this
//! rule as well, which keeps 1%.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use trace::packet::flag;

/// A pause of this length in one direction of a connection begins a new burst, nanoseconds: a stream that waits for a
/// window at 100 Mbit/s pauses for up to 13 ms.
const PAUSE_NS: u64 = 20_000_000;

/// Slots of the table of connections; a power of two. A connection that meets another in its slot looks new: a prefix
/// too much is kept, nothing is lost.
const SLOTS: usize = 4096;

/// Knuth's golden ratio: makes a connection's two ends one number.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Of which full-sized segments a prefix is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullPayloadOf {
    /// Those with which a burst begins.
    Bursts,
    /// All.
    All,
    /// None.
    None,
}

impl FullPayloadOf {
    /// As it is written on the command line and in the manifest.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bursts => "bursts",
            Self::All => "all",
            Self::None => "none",
        }
    }
}

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepRule {
    /// Kept bytes of a segment that is not full-sized, and of a full-sized one that answers the other side.
    pub payload_bytes: u32,
    /// A segment with at least so much payload is full-sized, bytes.
    pub full_segment_bytes: u32,
    /// Kept bytes of other full-sized segments, as far as `full_of` has them.
    pub full_payload_bytes: u32,
    /// Of which full-sized segments a prefix is kept.
    pub full_of: FullPayloadOf,
}

impl Default for KeepRule {
    /// 256 bytes hold the head of an RPC call or HTTP response with all that tells its kind; 64 the header of an HDFS
    /// packet (31 bytes); 1,400 is below the segment of an Ethernet with time stamps (1,448).
    fn default() -> Self {
        Self { payload_bytes: 256, full_segment_bytes: 1400, full_payload_bytes: 64, full_of: FullPayloadOf::Bursts }
    }
}

#[derive(Clone, Copy, Default)]
struct Slot {
    connection: u64,
    last_data_ns: [u64; 2],
    longest: [u32; 2],
    ended_a_write: [bool; 2],
    last_sender: usize,
}

/// Applies a [`KeepRule`], remembering of each connection how its last data ended.
pub struct Keeper {
    rule: KeepRule,
    slots: Box<[Slot]>,
}

impl Keeper {
    /// Begins without any connection.
    #[must_use]
    pub fn new(rule: KeepRule) -> Self {
        Self { rule, slots: vec![Slot::default(); SLOTS].into_boxed_slice() }
    }

    /// Kept payload bytes of a segment at most; to be asked once for each segment, in the order of capture.
    pub fn keep(
        &mut self,
        time_ns: u64,
        source: SocketAddr,
        destination: SocketAddr,
        flags: u8,
        payload_length: u32,
    ) -> usize {
        self.keep_between(time_ns, Endpoint::of(source), Endpoint::of(destination), flags, payload_length)
    }

    /// The same between two ends.
    #[inline]
    pub fn keep_between(
        &mut self,
        time_ns: u64,
        source: Endpoint,
        destination: Endpoint,
        flags: u8,
        payload_length: u32,
    ) -> usize {
        if payload_length == 0 {
            return 0;
        }
        let full = payload_length >= self.rule.full_segment_bytes;
        let kept = if self.rule.full_of == FullPayloadOf::Bursts {
            let beginning = self.follow(time_ns, source, destination, flags, payload_length);
            match (full, beginning) {
                (false, _) | (true, Beginning::Answer) => self.rule.payload_bytes,
                (true, Beginning::Burst) => self.rule.full_payload_bytes,
                (true, Beginning::None) => 0,
            }
        } else if !full {
            self.rule.payload_bytes
        } else if self.rule.full_of == FullPayloadOf::All {
            self.rule.full_payload_bytes
        } else {
            0
        };
        kept as usize
    }

    fn follow(
        &mut self,
        time_ns: u64,
        source: Endpoint,
        destination: Endpoint,
        flags: u8,
        payload_length: u32,
    ) -> Beginning {
        let FlowDirection { connection, sender } = FlowDirection::between(source, destination);
        let index = usize::try_from(connection % SLOTS as u64).unwrap_or(0);
        let slot = &mut self.slots[index];
        if slot.connection != connection {
            *slot = Slot { connection, ended_a_write: [true, true], last_sender: 1 - sender, ..Slot::default() };
        }
        let begins = slot.ended_a_write[sender] || time_ns.saturating_sub(slot.last_data_ns[sender]) > PAUSE_NS;
        let beginning = match (begins, slot.last_sender == sender) {
            (true, false) => Beginning::Answer,
            (true, true) => Beginning::Burst,
            (false, _) => Beginning::None,
        };
        slot.last_data_ns[sender] = time_ns;
        let is_short = payload_length < self.rule.full_segment_bytes;
        slot.ended_a_write[sender] = is_short || flags & flag::PSH != 0 && payload_length < slot.longest[sender];
        slot.longest[sender] = slot.longest[sender].max(payload_length);
        slot.last_sender = sender;
        beginning
    }
}

enum Beginning {
    /// A burst after data of the other side.
    Answer,
    /// A burst after data of the same side.
    Burst,
    None,
}

/// One end of a connection, as a number; two IPv6 ends may have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint(u64);

impl Endpoint {
    /// Of any address.
    #[must_use]
    pub fn of(address: SocketAddr) -> Self {
        match address.ip() {
            IpAddr::V4(ip) => Self::of_v4(ip, address.port()),
            IpAddr::V6(ip) => {
                let [high, low] = [ip.to_bits() >> 64, ip.to_bits() & u128::from(u64::MAX)];
                let host = mix(u64::try_from(high).unwrap_or(0)) ^ u64::try_from(low).unwrap_or(0);
                Self(host.rotate_left(16) ^ u64::from(address.port()))
            }
        }
    }

    /// Of an IPv4 address.
    #[must_use]
    pub fn of_v4(ip: Ipv4Addr, port: u16) -> Self {
        Self(u64::from(ip.to_bits()) << 16 | u64::from(port))
    }
}

/// A direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowDirection {
    /// The connection, as a number that is never 0; two may have the same, which is unlikely.
    pub connection: u64,
    /// Which of its ends sends, 0 or 1.
    pub sender: usize,
}

impl FlowDirection {
    /// From one end to the other.
    #[must_use]
    #[inline]
    pub fn between(source: Endpoint, destination: Endpoint) -> Self {
        let (Endpoint(from), Endpoint(to)) = (source, destination);
        let connection = mix(from.min(to).wrapping_mul(SPREAD) ^ from.max(to)).max(1);
        Self { connection, sender: usize::from(from > to) }
    }
}

/// The finaliser of MurmurHash3: spreads addresses over the slots. Not keyed: a collision costs kept bytes only.
fn mix(mut value: u64) -> u64 {
    value ^= value >> 33;
    value = value.wrapping_mul(0xff51_afd7_ed55_8ccd);
    value ^= value >> 33;
    value = value.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ (value >> 33)
}
