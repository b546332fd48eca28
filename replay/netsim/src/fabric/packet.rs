//! The seam between traffic (messages handed over at hosts) and the fabrics that simulate packets.
//!
//! What these fabrics compute is defined in `docs/fabric.md`.

use super::hop_records::{HopRecords, LogWanted};
use crate::network::{HostIndex, Simulation, Token};
use crate::time::SimTime;
use crate::topology::{NodeId, Topology};
use crate::units::{Bytes, Rate};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A service level, 0 to 15: what a message asks of the network; mapped to virtual lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ServiceLevel(pub u8);

/// A message handed over at its source host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Where it starts.
    pub source: HostIndex,
    /// Where it goes; never its source.
    pub destination: HostIndex,
    /// Its payload in bytes; 0 is a message of one packet without payload.
    pub bytes: u64,
    /// Its service level.
    pub level: ServiceLevel,
    /// What hashes of flows see: messages of one flow take one way.
    pub flow: u64,
    /// What the workload calls it.
    pub token: Token,
}

/// How a fabric's links and packets are made, as far as traffic has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkTime {
    /// Rate of the link of a host.
    pub rate: Rate,
    /// A flit in bytes; its time on that link is the cycle.
    pub flit: u32,
    /// Payload of a packet at most.
    pub mtu: u32,
    /// Headers of a packet.
    pub headers: u32,
    /// Whether a packet fills its last flit up.
    pub whole_flits: bool,
    /// Whether a message counts as one packet, whatever it is cut into.
    pub whole_messages: bool,
}

/// The links of two hosts have different rates, so that there is no load that is a share of both.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the links of {} (\"{}\") and {} (\"{}\") differ", .first.0, .first.1, .other.0, .other.1)]
pub struct HostLinksDiffer {
    /// A host, and its link's rate.
    pub first: (String, Rate),
    /// Another one, and its link's rate.
    pub other: (String, Rate),
}

/// The rate of the links of all hosts of `topology`.
pub(super) fn host_rate(topology: &Topology) -> Result<Rate, HostLinksDiffer> {
    let rate = |host: u32| topology.link(topology.uplink(NodeId(host))).rate;
    let named = |host: u32| (topology.name(NodeId(host)).to_owned(), rate(host));
    match (0..topology.hosts()).find(|host| rate(*host) != rate(0)) {
        None => Ok(rate(0)),
        Some(other) => Err(HostLinksDiffer { first: named(0), other: named(other) }),
    }
}

impl LinkTime {
    /// Links of `rate` with packets of these sizes, which whoever calls has checked: they fit into 32 bits.
    #[must_use]
    pub fn new(rate: Rate, flit: Bytes, mtu: Bytes, headers: Bytes) -> Self {
        let number = |bytes: Bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX);
        let (flit, mtu, headers) = (number(flit).max(1), number(mtu).max(1), number(headers));
        Self { rate, flit, mtu, headers, whole_flits: false, whole_messages: false }
    }

    /// When cycle `number` begins, in picoseconds.
    #[must_use]
    #[inline]
    pub fn cycle_ps(&self, number: u64) -> u64 {
        let Some(bps) = self.rate.bps() else { return 0 };
        // Mostly 64 bits are enough, and dividing by them is quicker.
        let flit = u64::from(self.flit).checked_mul(8_000_000_000_000);
        if let Some(product) = flit.and_then(|flit| flit.checked_mul(number)) {
            return product / bps;
        }
        let ps = u128::from(number) * u128::from(self.flit) * 8_000_000_000_000 / u128::from(bps);
        u64::try_from(ps).unwrap_or(u64::MAX)
    }

    /// What a cycle takes in picoseconds, if that is a whole number.
    #[must_use]
    pub fn whole_cycle_ps(&self) -> Option<u64> {
        let flit = u64::from(self.flit).checked_mul(8_000_000_000_000)?;
        self.rate.bps().filter(|bps| flit.is_multiple_of(*bps)).map(|bps| flit / bps)
    }

    /// When the first cycle begins that begins later than `now`.
    #[must_use]
    pub fn cycle_after(&self, now: SimTime) -> SimTime {
        let bps = u128::from(self.rate.bps().unwrap_or(u64::MAX));
        let begun = u128::from(now.0) * bps / (u128::from(self.flit) * 8_000_000_000_000);
        let begun = u64::try_from(begun).unwrap_or(u64::MAX);
        // What was rounded down may have begun a cycle later.
        let after = (begun..).take(3).map(|cycle| self.cycle_ps(cycle)).find(|at| *at > now.0);
        SimTime(after.unwrap_or_else(|| now.0.saturating_add(1)))
    }

    /// A flit's time in picoseconds.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for statistics")]
    pub fn flit_ps(&self) -> f64 {
        self.rate.bps().map_or(0.0, |bps| f64::from(self.flit) * 8e12 / bps as f64)
    }

    /// The bytes that a packet of `bytes` bytes, headers included, takes on a link.
    #[must_use]
    #[inline]
    pub fn on_wire(&self, bytes: u64) -> u64 {
        let flit = u64::from(self.flit.max(1));
        if self.whole_flits { bytes.div_ceil(flit) * flit } else { bytes }
    }

    /// The packets of a message of `bytes` bytes, and the bytes that they take on a link together.
    #[must_use]
    pub fn message(&self, bytes: u64) -> (u64, u64) {
        let (mtu, headers) = (u64::from(self.mtu.max(1)), u64::from(self.headers));
        let full = bytes / mtu;
        let rest = bytes % mtu;
        let whole = full * self.on_wire(mtu + headers);
        let (packets, wire) =
            if rest == 0 && full > 0 { (full, whole) } else { (full + 1, whole + self.on_wire(rest + headers)) };
        (if self.whole_messages { 1 } else { packets }, wire)
    }
}

/// What happened to one packet that was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketRecord {
    /// When its message was handed over.
    pub handed_over: SimTime,
    /// When it began to leave its source host.
    pub left: SimTime,
    /// When its last bit arrived at its destination.
    pub arrived: SimTime,
    /// Source host.
    pub source: HostIndex,
    /// Destination host.
    pub destination: HostIndex,
    /// Its number among the packets of its source.
    pub number: u64,
    /// Its length, headers included.
    pub bytes: u32,
    /// Its length in flits.
    pub flits: u32,
    /// How many switches it passed.
    pub switches: u32,
    /// The message it belongs to.
    pub token: Token,
}

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Loss {
    /// The queue of its host was full when its message was handed over.
    FullQueue,
    /// It was the first in the queue of its host, and found no room.
    BlockedHead,
    /// It had left its host.
    InNetwork,
}

/// What happened to one packet that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LostPacket {
    /// When it was lost.
    pub at: SimTime,
    /// When its message was handed over.
    pub handed_over: SimTime,
    /// Source host.
    pub source: HostIndex,
    /// Its number among the packets of its source.
    pub number: u64,
    /// The message it belongs to.
    pub token: Token,
    /// Why.
    pub reason: Loss,
}

/// Sees each packet as it is delivered or lost. What it does not need costs nothing: calls are static.
pub trait Observer {
    /// A packet was delivered.
    fn delivered(&mut self, packet: &PacketRecord);

    /// A packet was lost.
    fn dropped(&mut self, packet: &LostPacket) {
        let _ = packet;
    }
}

/// Sees nothing.
impl Observer for () {
    fn delivered(&mut self, _packet: &PacketRecord) {}
}

/// Keeps every record, for tests and small runs.
impl Observer for Vec<PacketRecord> {
    fn delivered(&mut self, packet: &PacketRecord) {
        self.push(*packet);
    }
}

/// A fabric that simulates packets. Its deliveries are messages whose packets have all arrived.
pub trait PacketFabric<O: Observer>: Simulation {
    /// Hands a message over at `now`: later than all instants that were processed, or that of the last delivery.
    fn send(&mut self, now: SimTime, message: &Message);

    /// As [`PacketFabric::send`], of a message that is a part of one of the application with `of_bytes` in all.
    fn send_part(&mut self, now: SimTime, message: &Message, of_bytes: u64) {
        let _ = of_bytes;
        self.send(now, message);
    }

    /// What sees the packets.
    fn observer(&mut self) -> &mut O;

    /// How its hosts' links and its packets are made.
    ///
    /// # Errors
    /// If the links of its hosts differ.
    fn link_time(&self) -> Result<LinkTime, HostLinksDiffer>;

    /// Whether more than `most` packets wait at `host` that have not begun to leave; `None` if the fabric does not tell.
    fn waits_more_than(&self, host: HostIndex, most: u64) -> Option<bool> {
        let _ = (host, most);
        None
    }

    /// Whether `message` would have to wait at its host behind more than `most` packets that have not begun to leave; `None` if the
    /// fabric does not tell. Where hosts have several queues: in each that the message could take, or, `in_any`, in one of the host.
    fn is_full(&self, message: &Message, most: u64, in_any: bool) -> Option<bool> {
        let _ = in_any;
        self.waits_more_than(message.source, most)
    }

    /// Packets that have begun to leave their hosts and have not arrived, and how many of the largest fit into the buffers between
    /// switches; `None` if the fabric does not tell.
    fn occupancy(&self) -> Option<(u64, u64)> {
        None
    }

    /// Has hosts lose the first packet of their queue wherever it finds no room when it could leave, from now on. Returns whether the fabric
    /// can do that.
    fn lose_blocked_heads(&mut self) -> bool {
        false
    }

    /// Is promised that messages are handed over only when a cycle of the hosts' links begins, and that nothing else is asked of it that it
    /// would have to begin with: it may make use of that, and gives the same. It must be empty.
    fn expect_whole_cycles(&mut self) {}

    /// Counts from now on how long so many packets lie in each queue. Returns whether the fabric can do that; it must be empty.
    fn count_occupancy(&mut self) -> bool {
        false
    }

    /// For each virtual lane of each link, link by link, how long 0, 1, ... packets have lain in the queue at its end before `now`, in a unit
    /// of time of the fabric; empty without [`PacketFabric::count_occupancy`].
    fn occupancy_times(&self, now: SimTime) -> Vec<Vec<u64>> {
        let _ = now;
        Vec::new()
    }

    /// Logs the ways of packets from now on. Returns whether the fabric can do that; it must be empty.
    fn log_hops(&mut self, wanted: &LogWanted) -> bool {
        let _ = wanted;
        false
    }

    /// What was logged until `end`; `None` without [`PacketFabric::log_hops`].
    fn take_hop_log(&mut self, end: SimTime) -> Option<HopRecords> {
        let _ = end;
        None
    }

    /// How many virtual lanes each link has.
    fn lanes(&self) -> u32 {
        1
    }

    /// Bytes of packets that have begun to cross each virtual lane of each link before `now`, link by link, flits filled
    /// up. `now` is not earlier than what was processed.
    fn lane_bytes(&self, now: SimTime) -> Vec<u64>;
}
