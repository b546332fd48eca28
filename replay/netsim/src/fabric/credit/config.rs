//! The keys of a `credit` fabric.

use super::allocator::SeparableConfig;
use super::input_arbiter::InputArbitration;
use crate::fabric::figures::DEFAULT_INTERVAL;
use crate::fabric::pipe::PipeConfig;
use crate::routing::RoutingConfig;
use crate::topology::TopologyConfig;
use crate::units::{Bytes, DurationPs, Rate};
use serde::{Deserialize, Serialize};

/// When a switch may start to send a packet on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// When its first flit has arrived, unless it would run dry on a faster link.
    #[default]
    CutThrough,
    /// When it has arrived as a whole.
    WholePacket,
}

/// How many packets a switch hands to one of its hosts at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consumption {
    /// One after the other, as on any link.
    #[default]
    Single,
    /// One of each queue of the switch, each as fast as the host's link, and without credits.
    Multiple,
}

impl Consumption {
    /// Whether it is the one that is used where none is named.
    const fn is_default(&self) -> bool {
        matches!(self, Self::Single)
    }
}

/// By what a message takes one of several queues of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InjectionChoice {
    /// The queue with the fewest flits.
    Shortest,
    /// That of the first direction of its way, axis by axis.
    Dor,
    /// The same; if it is full, as `shortest`.
    DorShortest,
    /// Of those of the directions that lead nearer, the one with the fewest flits.
    ShortestProfitable,
    /// That of the direction with most steps ahead.
    LongestPath,
}

impl InjectionChoice {
    /// Whether each queue stands for a direction of a lattice.
    pub(super) const fn by_direction(self) -> bool {
        !matches!(self, Self::Shortest)
    }
}

/// Which direction of a way axis by axis says the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InjectionDirection {
    /// The one in which the packet leaves.
    #[default]
    First,
    /// The last one (INSEE's program).
    Last,
}

/// Which of several queues that are as short is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InjectionEquals {
    /// A drawn one.
    #[default]
    Draw,
    /// That of the lowest direction (INSEE's program).
    First,
}

/// By which shortest way a queue is chosen, where there are several as short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InjectionRecord {
    /// By the packet's own; `shortest-profitable`: by all of them.
    #[default]
    Packet,
    /// By one that is drawn for the queue alone (INSEE's program).
    Anew,
}

/// What counts where queues are compared by their flits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InjectionLength {
    /// What has not begun to leave the host.
    #[default]
    Host,
    /// What has not left the switch's buffer behind the queue either, flit by flit (INSEE's program).
    Switch,
}

/// Whether a choice is the one that is made where none is named.
fn is_usual<T: Default + PartialEq>(choice: &T) -> bool {
    *choice == T::default()
}

/// Several queues of each host, which its link takes side by side: `{ queues = 4, choice = "shortest" }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InjectionConfig {
    /// How many.
    pub queues: u8,
    /// Which of them a message takes.
    pub choice: InjectionChoice,
    /// `dor-shortest`: a queue is full in which more packets wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full: Option<u64>,
    /// `dor`, `dor-shortest`: which direction. Default: `first`.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub direction: InjectionDirection,
    /// `shortest-profitable`: of queues that are as short. Default: `draw`.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub equals: InjectionEquals,
    /// All but `shortest`: by which shortest way. Default: `packet`.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub record: InjectionRecord,
    /// `shortest`, `shortest-profitable`, `dor-shortest`: what counts. Default: `host`.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub length: InjectionLength,
}

impl InjectionConfig {
    /// Whether flits in the switch's buffers count.
    pub(super) fn counts_switch(&self) -> bool {
        self.length == InjectionLength::Switch
    }
}

/// How many packets may have committed themselves to one lane, of routings that commit packets to room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaneAllocation {
    /// As many as there is room for.
    #[default]
    Shared,
    /// One, until its last flit has left: virtual channels as routers with a VC allocator give them away.
    Exclusive,
}

impl LaneAllocation {
    /// Whether it is the one that is used where none is named.
    const fn is_default(&self) -> bool {
        matches!(self, Self::Shared)
    }
}

/// An entry of a VL arbitration table: a virtual lane, and how many credits of 64 bytes it may send in its turn (1 to 255).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VlWeight(pub u8, pub u8);

/// InfiniBand's VL arbitration: `{ high = [[1, 4]], low = [[0, 1], [1, 1]], limit = 255 }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VlArbitration {
    /// The table of high priority. Default: empty.
    pub high: Vec<VlWeight>,
    /// The table of low priority. Default, written as an empty list: every VL once, with weight 1, which is one packet
    /// after the other (ours).
    pub low: Vec<VlWeight>,
    /// How much may be sent from the high table while the low one waits, in units of 4,096 bytes; 0: one packet; 255: no
    /// limit. Default: 255 (ours; the limits are InfiniBand's).
    pub limit: u8,
}

impl Default for VlArbitration {
    fn default() -> Self {
        Self { high: Vec::new(), low: Vec::new(), limit: 255 }
    }
}

/// InfiniBand's signalling speeds, by the name of the generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Speed {
    /// 2.5 Gbaud, 8b/10b.
    Sdr,
    /// 5 Gbaud, 8b/10b.
    Ddr,
    /// 10 Gbaud, 8b/10b.
    Qdr,
    /// 10.3125 Gbaud, 64b/66b.
    Fdr10,
    /// 14.0625 Gbaud, 64b/66b.
    Fdr,
    /// 25.78125 Gbaud, 64b/66b.
    Edr,
    /// 50 Gbit/s a lane.
    Hdr,
    /// 100 Gbit/s a lane.
    Ndr,
    /// 200 Gbit/s a lane.
    Xdr,
}

impl Speed {
    /// Data in bit/s of a link of `width` lanes: what its line code leaves of the signalling rate, rounded down.
    #[must_use]
    pub fn data_rate(self, width: u8) -> Rate {
        // Of the line code: data bits, coded bits.
        let (signalled, data, coded) = match self {
            Self::Sdr => (2_500_000_000, 8, 10),
            Self::Ddr => (5_000_000_000, 8, 10),
            Self::Qdr => (10_000_000_000, 8, 10),
            Self::Fdr10 => (10_312_500_000, 64, 66),
            Self::Fdr => (14_062_500_000, 64, 66),
            Self::Edr => (25_781_250_000, 64, 66),
            Self::Hdr => (50_000_000_000, 1, 1),
            Self::Ndr => (100_000_000_000, 1, 1),
            Self::Xdr => (200_000_000_000, 1, 1),
        };
        Rate::from_bps(u64::from(width) * signalled * data / coded)
    }
}

/// One buffer for all VLs at the end of a link, in credits of 64 bytes: `{ size = 512, exclusive = 34, max = 256 }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedBuffersConfig {
    /// What all VLs together have.
    pub size: u32,
    /// What each VL has for itself.
    pub exclusive: u32,
    /// What a VL may hold at most, its exclusive part included.
    pub max: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references over")]
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references over")]
const fn is_none(packets: &u32) -> bool {
    *packets == 0
}

/// The keys of a `credit` fabric; what they mean exactly is in `docs/fabric.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CreditConfig {
    /// Hosts, switches and links. Default: racks, with links of 10 Gbit/s.
    pub topology: TopologyConfig,
    /// How packets choose among several links. Default: `ecmp`.
    pub routing: RoutingConfig,
    /// Decides what is drawn. Default: 1.
    pub seed: u64,
    /// Payload of a packet at most. Default: `2KiB`, an MTU of InfiniBand.
    pub mtu: Bytes,
    /// Headers of a packet. Default: `26B` (InfiniBand: LRH 8, BTH 12, ICRC 4, VCRC 2).
    pub headers: Bytes,
    /// A flit. Default: `64B`, a credit of InfiniBand (`flitSize`).
    #[serde(alias = "flitSize")]
    pub flit: Bytes,
    /// Lanes of all links: 1, 2, 4, 8 or 12. Default: 4, where `speed` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u8>,
    /// The speed of the lanes of all links: it gives them their rate in place of the topology's `rate`s. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<Speed>,
    /// Virtual lanes for data, 1 to 15. Default: 1.
    pub vls: u8,
    /// The highest VL (0: only VL 0): the same key as `vls` in other words, so only one of both may be given.
    #[serde(rename = "maxVL", alias = "max_vl", skip_serializing_if = "Option::is_none")]
    pub max_vl: Option<u8>,
    /// Credits of 64 bytes of each VL's buffer at the end of a link (`maxStatic`). Default: 128, 8 KiB (ours).
    #[serde(alias = "maxStatic")]
    pub credits: u32,
    /// The VLs of a link share a buffer, in place of `credits` for each. Default: they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_buffers: Option<SharedBuffersConfig>,
    /// Least time between two credit updates of a VL (`credMinTime`). Default: none.
    #[serde(alias = "credMinTime")]
    pub credit_min_time: DurationPs,
    /// Pause between two flits of a packet (`flit2FlitGap`). Default: none.
    #[serde(alias = "flit2FlitGap")]
    pub flit_gap: DurationPs,
    /// Pause behind a packet (`pkt2PktGap`). Default: none.
    #[serde(alias = "pkt2PktGap")]
    pub packet_gap: DurationPs,
    /// From a flit's arrival at a switch until it may leave. Default: `200ns`, a switch of InfiniBand in the LIGHTNESS
    /// deliverable (2.5.4).
    pub switch_delay: DurationPs,
    /// When a switch may start to send a packet on. Default: `cut-through`.
    pub start: Start,
    /// The VL of each service level, from 0 on; those that are not named go by level mod (VLs / classes). Default: empty.
    pub sl_to_vl: Vec<u8>,
    /// Who is next among VLs.
    pub arbitration: VlArbitration,
    /// Who is next among the inputs that ask for one VL. Default: `round-robin`.
    #[serde(skip_serializing_if = "InputArbitration::is_default")]
    pub input_arbitration: InputArbitration,
    /// The share of arbitrations in which heads that came from other switches go before those of a host (INSEE's IPR). Default: none.
    #[serde(skip_serializing_if = "is_zero")]
    pub transit_priority: f64,
    /// Of the largest packets, the room that a packet from a host leaves in a lane that is not the escape's (INSEE's LBR). Default: 0.
    #[serde(skip_serializing_if = "is_none")]
    pub injection_reserve: u32,
    /// Several queues of each host, whose packets its link takes side by side (INSEE's injectors). Default: one, one packet after the
    /// other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub injection: Option<InjectionConfig>,
    /// How many packets a switch hands to one of its hosts at a time. Default: `single`.
    #[serde(skip_serializing_if = "Consumption::is_default")]
    pub consumption: Consumption,
    /// How many packets may have one lane in mind. Default: `shared`.
    #[serde(skip_serializing_if = "LaneAllocation::is_default")]
    pub lane_allocation: LaneAllocation,
    /// The heads of a switch are matched with its links at once, and an input passes one packet at a time. Default: each link arbitrates
    /// by itself, and the VLs of an input pass side by side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation: Option<SeparableConfig>,
    /// Traffic of a host to itself.
    pub loopback: PipeConfig,
    /// Width of the intervals of the traffic over time. Default: `100ms` (ours).
    pub interval: DurationPs,
}

impl Default for CreditConfig {
    fn default() -> Self {
        Self {
            topology: TopologyConfig::default(),
            routing: RoutingConfig::default(),
            seed: 1,
            mtu: Bytes(2_048),
            headers: Bytes(26),
            flit: Bytes(64),
            width: None,
            speed: None,
            vls: 1,
            max_vl: None,
            credits: 128,
            shared_buffers: None,
            credit_min_time: DurationPs(0),
            flit_gap: DurationPs(0),
            packet_gap: DurationPs(0),
            switch_delay: DurationPs::from_ns(200),
            start: Start::default(),
            sl_to_vl: Vec::new(),
            arbitration: VlArbitration::default(),
            input_arbitration: InputArbitration::default(),
            transit_priority: 0.0,
            injection_reserve: 0,
            injection: None,
            consumption: Consumption::default(),
            lane_allocation: LaneAllocation::default(),
            allocation: None,
            loopback: PipeConfig::default(),
            interval: DEFAULT_INTERVAL,
        }
    }
}
