//! The keys of a `rotor` fabric, and what they may be.

use crate::circuits::{ByDemand, CircuitScheduler, ControlTimes};
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

/// Who decides which circuits there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RotorScheduler {
    /// The switches go through their matchings, whatever waits.
    #[default]
    Rotor,
    /// The matching with the most that waits, slice by slice.
    MaxWeight,
    /// Matchings of Birkhoff and von Neumann, until all that waits is sent.
    Birkhoff,
    /// Solstice's slices by halves, until all that waits is sent.
    Solstice,
    /// Circuits one by one without stopping the others, whoever has waited longest first, each for all that waits (Sunflow).
    Sunflow,
}

impl RotorScheduler {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
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
    /// The least, and the most; of an exponential part its mean.
    fn least_and_most(&self) -> (DurationPs, DurationPs) {
        match *self {
            Self::Constant(time) => (time, time),
            Self::Uniform { uniform: [least, most] } => (least, most),
            Self::Exponential { exponential: [least, mean] } => {
                (least, DurationPs(least.ps().saturating_add(mean.ps())))
            }
        }
    }

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
    (-libm::log(unit) * mean_ps as f64) as u64
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn no_time(time: &DurationPs) -> bool {
    *time == DurationPs::ZERO
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
    /// Who decides which circuits there are. Default: `rotor`.
    #[serde(skip_serializing_if = "RotorScheduler::is_default")]
    pub scheduler: RotorScheduler,
    /// Circuits by demand: how old what waits is when circuits are planned from it. Default: none.
    #[serde(skip_serializing_if = "no_time")]
    pub demand_age: DurationPs,
    /// Circuits by demand: for how long at most two racks are to be connected in one plan. Default: `1ms` (ours).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demand_limit: Option<DurationPs>,
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
            scheduler: RotorScheduler::default(),
            demand_age: DurationPs::ZERO,
            demand_limit: None,
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
/// Matchings of so many racks are found in milliseconds.
const MAX_PLANNED_RACKS: usize = 128;
const MAX_UPLINKS: u32 = 64;
/// For how long two racks are connected in one plan.
const MAX_DEMAND_AGE: DurationPs = DurationPs::from_ms(100_000);
const DEMAND_LIMIT: DurationPs = DurationPs::from_ms(1);
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

    /// For how long at most two racks are to be connected in one plan.
    #[must_use]
    pub fn demand_limit(&self) -> DurationPs {
        self.demand_limit.unwrap_or(DEMAND_LIMIT)
    }

    /// The time of the largest packet over an uplink.
    pub(super) fn largest_packet_ps(&self) -> u64 {
        self.uplink_rate.time_ps(self.mtu.get() + self.headers.get())
    }

    /// How much of a circuit's time nothing is sent in: the guard band, and the margins.
    pub(super) fn kept_clear_ps(&self) -> u64 {
        self.guard.ps().saturating_add(self.margin.ps().saturating_mul(2))
    }

    /// For how long an uplink may send before the switch passes anything, as its clock is ahead or the switch slow.
    fn early_ps(&self) -> u64 {
        let (_, most) = self.reconfiguration_delay.least_and_most();
        let ready = self.guard.ps().max(most.ps()).saturating_add(self.clock_skew.ps());
        ready.saturating_sub(self.guard.ps().saturating_add(self.margin.ps()))
    }

    /// For how long an uplink may be open before a packet that leaves its host at the circuit's beginning is there.
    fn missed_ps(&self) -> u64 {
        let largest = self.mtu.get() + self.headers.get();
        let there =
            self.host_rate.time_ps(largest).saturating_add(self.host_delay.ps()).saturating_add(self.cable_delay.ps());
        let closed = self.guard.ps().saturating_add(self.margin.ps()).saturating_sub(self.clock_skew.ps());
        there.saturating_sub(closed)
    }

    /// How much longer than what it is planned for a circuit is: what is kept clear, until a packet can be there, and where something may
    /// be lost, as much, a packet, and until a loss is known and the packet at the switch again. A circuit without room for these might never carry
    /// the last packet.
    pub(super) fn beside_planned_ps(&self) -> u64 {
        let again = match self.early_ps() {
            0 => 0,
            early => {
                let known = self.cable_delay.ps().saturating_mul(2);
                early.saturating_add(self.largest_packet_ps()).saturating_add(known)
            }
        };
        self.kept_clear_ps().saturating_add(self.missed_ps()).saturating_add(again)
    }

    /// The scheduler by demand; none where the switches go through their matchings whatever waits.
    pub(super) fn by_demand(&self) -> Option<Box<dyn CircuitScheduler + Send>> {
        let by_demand = match self.scheduler {
            RotorScheduler::Rotor => return None,
            RotorScheduler::MaxWeight => ByDemand::MaxWeight,
            RotorScheduler::Birkhoff => ByDemand::Birkhoff,
            RotorScheduler::Solstice => ByDemand::Solstice,
            RotorScheduler::Sunflow => ByDemand::Sunflow,
        };
        let slot = self.slice.ps().saturating_sub(self.kept_clear_ps()).max(self.largest_packet_ps()).max(1);
        Some(by_demand.scheduler(DurationPs(slot)))
    }

    /// What the controller of circuits by demand goes by.
    pub(super) fn control_times(&self) -> ControlTimes {
        ControlTimes {
            age: self.demand_age.ps(),
            limit: self.demand_limit().ps(),
            set_up: self.beside_planned_ps(),
            packet: self.largest_packet_ps(),
            retry: self.slice.ps(),
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
        let open_ps = self.slice.ps().saturating_mul(self.hold()).saturating_sub(self.kept_clear_ps());
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
        self.check_scheduler(racks)?;
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

    fn check_scheduler(&self, racks: usize) -> Result<(), FabricError> {
        if self.scheduler == RotorScheduler::Rotor {
            let belongs = "leave it out: it belongs to a scheduler by demand";
            if self.demand_age > DurationPs::ZERO {
                return Err(wrong("demand_age", self.demand_age, belongs));
            }
            return self.demand_limit.map_or(Ok(()), |limit| Err(wrong("demand_limit", limit, belongs)));
        }
        if racks > MAX_PLANNED_RACKS {
            return Err(wrong("scheduler", format!("by demand with {racks} racks"), "at most 128 racks"));
        }
        if self.uplinks != 1 {
            return Err(wrong("uplinks", self.uplinks, "1 with a scheduler by demand: it has one switch"));
        }
        if self.change != Change::Together {
            return Err(wrong("change", "in-turn", "together, with a scheduler by demand"));
        }
        if self.routing != RotorRouting::Direct {
            let routing = if self.routing == RotorRouting::TwoHop { "two-hop" } else { "expander" };
            return Err(wrong(
                "routing",
                routing,
                "direct, with a scheduler by demand: circuits lead where something is to go",
            ));
        }
        if self.demand_age > MAX_DEMAND_AGE {
            return Err(wrong("demand_age", self.demand_age, "at most 100s"));
        }
        match self.demand_limit {
            Some(limit) if limit == DurationPs::ZERO || limit > MAX_DEMAND_AGE => {
                Err(wrong("demand_limit", limit, "from 1ps to 100s"))
            }
            _ => Ok(()),
        }
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
        let (least, most) = self.reconfiguration_delay.least_and_most();
        if least > most {
            let value = format!("uniform from {least} to {most}");
            return Err(wrong("reconfiguration_delay", value, "the least first, the most second"));
        }
        // What an uplink sends before the switch passes anything is lost, and counts: of the budget something has to be left then.
        let early = self.early_ps();
        let left = |budget: &Bytes| self.uplink_rate.time_ps(budget.get().saturating_sub(2 * largest));
        if let Some(budget) = self.budget.filter(|budget| early > 0 && left(budget) < early) {
            let allowed = "more, or none: what falls into a guard band is lost and counts, which could be all that it allows; two packets, and what an \
                           uplink sends in the time by which reconfiguration_delay is longer than guard, and clock_skew than margin";
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
