//! The keys of a `rotor` fabric, and what they may be.

use crate::fabric::FabricError;
use crate::fabric::figures::DEFAULT_INTERVAL;
use crate::fabric::pipe::PipeConfig;
use crate::units::{Bytes, DurationPs, Rate};
use serde::{Deserialize, Serialize};

/// When the circuit switches change their matchings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// All at the begin of each slice (`RotorNet`).
    #[default]
    Together,
    /// One at the begin of each slice, in turn, so that the others go on (Opera): a matching lasts as many slices as there
    /// are uplinks.
    InTurn,
}

/// Which way packets to other racks take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RotorRouting {
    /// They wait for the circuit to their rack.
    #[default]
    Direct,
    /// Over any circuit to a rack in between, where they wait for the circuit to their own (Valiant). A circuit takes those
    /// first for whom it is the last one.
    TwoHop,
    /// Messages below `bulk_threshold` at once, over as many circuits as it takes, by shortest paths through those of the
    /// slice; others wait for the circuit to their rack (Opera).
    Expander,
}

/// How much of a circuit each host of a rack may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostShare {
    /// What the others leave: the host whose link is free first sends next.
    #[default]
    Any,
    /// An equal part of it, of which nothing passes to others (Opera's `RlbModule`).
    Equal,
}

impl HostShare {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How long a circuit switch needs for a change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Reconfiguration {
    /// Always as long.
    Constant(DurationPs),
    /// Anything from the first to the second, evenly.
    Uniform {
        /// The least and the most.
        uniform: [DurationPs; 2],
    },
    /// At least the first, and an exponential time with the mean of the second more.
    Exponential {
        /// The least, and the mean of what is added.
        exponential: [DurationPs; 2],
    },
}

impl Reconfiguration {
    /// The time for 64 random `bits`, in picoseconds; an exponential part ends at 45 times its mean.
    #[must_use]
    pub fn draw_ps(&self, bits: u64) -> u64 {
        match *self {
            Self::Constant(time) => time.ps(),
            Self::Uniform { uniform: [least, most] } => {
                least.ps() + crate::kernel::random::below(bits, most.ps() - least.ps() + 1)
            }
            Self::Exponential { exponential: [least, mean] } => least.ps() + exponential(bits, mean.ps()),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a draw has 53 bits")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 45 hours, and never below 0")]
fn exponential(bits: u64, mean_ps: u64) -> u64 {
    let unit = ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    (-unit.ln() * mean_ps as f64) as u64
}

/// The keys of a `rotor` fabric; what they mean exactly is in `docs/rotor.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RotorConfig {
    /// Rate of the links between hosts and their `ToR`. Default: `10Gbps` (Opera's evaluation).
    pub host_rate: Rate,
    /// Propagation delay of these links. Default: none (Opera's simulator).
    pub host_delay: DurationPs,
    /// Uplinks of a `ToR`, each to a circuit switch of its own. Default: 1.
    pub uplinks: u32,
    /// Rate of an uplink. Default: `10Gbps`.
    pub uplink_rate: Rate,
    /// Propagation delay between a `ToR` and a circuit switch. Default: `250ns` (Opera has 500 ns between `ToR`s).
    pub cable_delay: DurationPs,
    /// Length of a slice. Default: `100us` (ours; Opera's 10.7 ms for 108 racks are 99 us).
    pub slice: DurationPs,
    /// When the switches change. Default: `together`.
    pub change: Change,
    /// The band behind each change in which a switch passes nothing. Default: `10us` (Opera's).
    pub guard: DurationPs,
    /// How long a switch needs for a change; where that is longer than the band, it passes nothing until then. Default:
    /// `10us` (Opera's).
    pub reconfiguration_delay: Reconfiguration,
    /// How far a `ToR` keeps clear of the band at either side, by its own clock. Default: none.
    pub margin: DurationPs,
    /// How far the clock of a `ToR` may be ahead or behind; drawn for each evenly. Default: none.
    pub clock_skew: DurationPs,
    /// Bytes that a `ToR` may send over a circuit from one change to the next. Default: what the time allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Bytes>,
    /// How much of a circuit each host of a rack may use. Default: `any`.
    #[serde(skip_serializing_if = "HostShare::is_default")]
    pub host_share: HostShare,
    /// Which way packets take. Default: `direct`.
    pub routing: RotorRouting,
    /// `expander`: messages of this size and more wait for their circuit. Default: `15MB` (Opera's).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bulk_threshold: Option<Bytes>,
    /// Packets that wait at a `ToR` for one other rack at most, of those that come from other racks. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transit_queue: Option<u32>,
    /// `expander`: packets that wait for one uplink at most. Default: no limit (Opera's: 8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_queue: Option<u32>,
    /// Payload of a packet at most. Default: `1436B` (Opera's simulator: 1,500 B with headers).
    pub mtu: Bytes,
    /// Headers of a packet. Default: `64B`.
    pub headers: Bytes,
    /// What statistics count as a flit. Default: `64B`.
    pub flit: Bytes,
    /// Decides what is drawn: matchings, clocks, reconfigurations. Default: 1.
    pub seed: u64,
    /// Traffic of a host to itself.
    pub loopback: PipeConfig,
    /// Width of the intervals of the traffic over time. Default: `100ms` (ours).
    pub interval: DurationPs,
}

impl Default for RotorConfig {
    fn default() -> Self {
        Self {
            host_rate: Rate::from_bps(10_000_000_000),
            host_delay: DurationPs(0),
            uplinks: 1,
            uplink_rate: Rate::from_bps(10_000_000_000),
            cable_delay: DurationPs::from_ns(250),
            slice: DurationPs::from_us(100),
            change: Change::default(),
            guard: DurationPs::from_us(10),
            reconfiguration_delay: Reconfiguration::Constant(DurationPs::from_us(10)),
            margin: DurationPs(0),
            clock_skew: DurationPs(0),
            budget: None,
            host_share: HostShare::default(),
            routing: RotorRouting::default(),
            bulk_threshold: None,
            transit_queue: None,
            uplink_queue: None,
            mtu: Bytes(1_436),
            headers: Bytes(64),
            flit: Bytes(64),
            seed: 1,
            loopback: PipeConfig::default(),
            interval: DEFAULT_INTERVAL,
        }
    }
}

/// Opera's: smaller messages are sent at once.
const BULK_THRESHOLD: Bytes = Bytes(15_000_000);
/// The largest packet without headers, and the largest headers.
const MAX_BYTES: u64 = 1 << 20;
/// A host has a queue for each other one.
const MAX_HOSTS: usize = 4_096;
/// Distances between racks are kept for each slice of a cycle.
const MAX_EXPANDER_RACKS: usize = 256;
const MAX_UPLINKS: u32 = 64;
/// The longest time from one change to the next.
const MAX_PERIOD: DurationPs = DurationPs::from_ms(3_600_000);
/// What waits is looked at in each slice.
const MIN_SLICE: DurationPs = DurationPs::from_ns(100);
/// The rate above which a byte would take no time.
const FASTEST: Rate = Rate::from_bps(8_000_000_000_000);

fn wrong(key: &'static str, value: impl ToString, allowed: &'static str) -> FabricError {
    FabricError::Value { key, value: value.to_string(), allowed }
}

impl RotorConfig {
    /// From which size on a message waits for its circuit.
    #[must_use]
    pub fn bulk_from(&self) -> u64 {
        match self.routing {
            RotorRouting::Direct | RotorRouting::TwoHop => 0,
            RotorRouting::Expander => self.bulk_threshold.unwrap_or(BULK_THRESHOLD).get(),
        }
    }

    /// How many slices a matching lasts.
    #[must_use]
    pub const fn hold(&self) -> u64 {
        match self.change {
            Change::Together => 1,
            Change::InTurn => self.uplinks as u64,
        }
    }

    /// Bytes of a circuit that is open for so long, for each of the hosts of a rack.
    pub(super) fn share(&self, open_ps: u64, hosts: usize) -> u64 {
        const BIT_PS: u128 = 8_000_000_000_000;
        let bits_ps = self.uplink_rate.bps().map_or(u128::MAX, |bps| u128::from(bps) * u128::from(open_ps));
        u64::try_from(bits_ps / BIT_PS / hosts.max(1) as u128).unwrap_or(u64::MAX)
    }

    /// Whether each of so many hosts of a rack can send a packet in its share of a circuit.
    pub(super) fn check_share(&self, hosts: usize) -> Result<(), FabricError> {
        let dark = self.guard.ps().saturating_add(self.margin.ps().saturating_mul(2));
        let open_ps = self.slice.ps().saturating_mul(self.hold()).saturating_sub(dark);
        let largest = self.mtu.get() + self.headers.get();
        if self.host_share == HostShare::Equal && self.share(open_ps, hosts) < largest {
            return Err(wrong("host_share", "equal", "any, or a slice in which each host of a rack can send a packet"));
        }
        Ok(())
    }

    /// Checks each key, and whether a packet fits between two bands, for `hosts` hosts in `racks` racks.
    pub(super) fn check(&self, hosts: usize, racks: usize) -> Result<(), FabricError> {
        self.check_sizes(hosts, racks)?;
        self.check_belonging()?;
        self.check_times()
    }

    fn check_sizes(&self, hosts: usize, racks: usize) -> Result<(), FabricError> {
        if hosts == 0 {
            return Err(FabricError::NoHosts);
        }
        if hosts > MAX_HOSTS {
            return Err(wrong("kind", format!("\"rotor\" with {hosts} hosts"), "at most 4096 hosts"));
        }
        if racks < 2 {
            let allowed = "hosts in two racks at least, each with a ToR: the circuits join racks";
            return Err(wrong("kind", "\"rotor\" with one rack", allowed));
        }
        if self.uplinks == 0 || self.uplinks > MAX_UPLINKS {
            return Err(wrong("uplinks", self.uplinks, "1 to 64"));
        }
        if self.routing == RotorRouting::Expander && racks > MAX_EXPANDER_RACKS {
            return Err(wrong("routing", format!("\"expander\" with {racks} racks"), "at most 256 racks"));
        }
        if self.mtu.get() == 0 || self.mtu.get() > MAX_BYTES {
            return Err(wrong("mtu", self.mtu, "from 1B to 1MiB"));
        }
        if self.headers.get() > MAX_BYTES {
            return Err(wrong("headers", self.headers, "at most 1MiB"));
        }
        if self.flit.get() == 0 {
            return Err(wrong("flit", self.flit, "at least 1B; what statistics count as a flit"));
        }
        for (key, rate) in [("host_rate", self.host_rate), ("uplink_rate", self.uplink_rate)] {
            if rate > FASTEST {
                return Err(wrong(key, rate, "at most 8000Gbps"));
            }
        }
        Ok(())
    }

    fn check_belonging(&self) -> Result<(), FabricError> {
        let expander = self.routing == RotorRouting::Expander;
        if let Some(threshold) = self.bulk_threshold.filter(|_| !expander) {
            return Err(wrong("bulk_threshold", threshold, "leave it out: it belongs to routing = \"expander\""));
        }
        if let Some(limit) = self.uplink_queue.filter(|limit| !expander || *limit == 0) {
            return Err(wrong("uplink_queue", limit, "at least 1 packet, with routing = \"expander\""));
        }
        if let Some(limit) = self.transit_queue.filter(|limit| self.routing == RotorRouting::Direct || *limit == 0) {
            return Err(wrong("transit_queue", limit, "at least 1 packet, with another routing than \"direct\""));
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), FabricError> {
        if self.slice < MIN_SLICE {
            return Err(wrong("slice", self.slice, "at least 100ns"));
        }
        let largest = self.mtu.get() + self.headers.get();
        if let Some(budget) = self.budget.filter(|budget| budget.get() < largest) {
            return Err(wrong("budget", budget, "at least a packet: fabric.mtu and fabric.headers"));
        }
        let lasts = self.slice.ps().saturating_mul(self.hold());
        if lasts > MAX_PERIOD.ps() {
            return Err(wrong("slice", self.slice, "at most 60min from one change of a switch to its next one"));
        }
        let delay = self.reconfiguration_delay;
        let (least, most) = match delay {
            Reconfiguration::Constant(time) => (time, time),
            Reconfiguration::Uniform { uniform: [least, most] } => (least, most),
            Reconfiguration::Exponential { exponential: [least, mean] } => {
                (least, DurationPs(least.ps().saturating_add(mean.ps())))
            }
        };
        if least > most {
            let value = format!("uniform from {least} to {most}");
            return Err(wrong("reconfiguration_delay", value, "the least first, the most second"));
        }
        let unlimited = matches!(delay, Reconfiguration::Exponential { .. });
        if let Some(budget) = self.budget.filter(|_| unlimited || most > self.guard || self.clock_skew > self.margin) {
            let allowed = "leave it out where packets may be lost, which could be all that it allows: it needs a guard as long as any \
                           reconfiguration_delay, and a margin of clock_skew";
            return Err(wrong("budget", budget, allowed));
        }
        let packet = self.host_rate.time_ps(largest).saturating_add(self.uplink_rate.time_ps(largest));
        let packet = packet.saturating_add(self.host_delay.ps());
        let apart = self.margin.ps().saturating_add(self.clock_skew.ps()).saturating_mul(2);
        let needed = self.guard.ps().max(most.ps()).saturating_add(apart).saturating_add(packet);
        if lasts < needed {
            let allowed = "longer: from one change to the next there must be room for the guard band, the reconfiguration, \
                           twice margin and clock skew, and a packet over a host's link and an uplink";
            return Err(wrong("slice", self.slice, allowed));
        }
        Ok(())
    }
}
