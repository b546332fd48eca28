//! What is allowed in a `credit` fabric, and what follows from its keys.

use super::arbiter::Tables;
use super::config::{
    Consumption, CreditConfig, InjectionChoice, InjectionDirection, InjectionEquals, InjectionLength, InjectionRecord,
    LaneAllocation, SharedBuffersConfig, VlWeight,
};
use super::link_timing::{FASTEST, LinkTiming, LinkTimings};
use crate::fabric::FabricError;
use crate::routing::Routes;
use crate::topology::{LinkConfig, Topology};
use crate::units::DurationPs;

/// A gibibyte.
const MAX_CREDITS: u32 = 1 << 24;
/// Queues of a host at most.
const MAX_INJECTORS: u8 = 15;
/// Iterations of an allocation at most.
const MAX_ITERATIONS: u8 = 64;
/// The largest packet, headers included.
const MAX_BYTES: u64 = 1 << 20;
/// Longer gaps and delays than a second are mistakes of a unit.
const MAX_DELAY: DurationPs = DurationPs::from_ms(1_000);

fn wrong(key: &'static str, value: impl ToString, allowed: &'static str) -> FabricError {
    FabricError::Value { key, value: value.to_string(), allowed }
}

impl CreditConfig {
    /// The keys as they are meant, `maxVL` as `vls`, without what makes no sense whatever the topology.
    pub(super) fn checked(&self) -> Result<Self, FabricError> {
        let mut config = self.clone();
        if let Some(max_vl) = config.max_vl.take() {
            if config.vls != Self::default().vls {
                let value = format!("{max_vl} beside vls = {}", config.vls);
                return Err(wrong("maxVL", value, "only one of both: vls = maxVL + 1"));
            }
            if max_vl > 14 {
                return Err(wrong("maxVL", max_vl, "from 0 to 14, the highest virtual lane for data"));
            }
            config.vls = max_vl + 1;
        }
        config.check()?;
        config.routing = config.routing.with_vls(config.vls);
        Ok(config)
    }

    fn check(&self) -> Result<(), FabricError> {
        if self.vls == 0 || self.vls > 15 {
            return Err(wrong("vls", self.vls, "from 1 to 15 virtual lanes for data"));
        }
        if self.mtu.get() == 0 || self.mtu.get() > MAX_BYTES {
            return Err(wrong("mtu", self.mtu, "from 1B to 1MiB"));
        }
        if self.headers.get() > MAX_BYTES {
            return Err(wrong("headers", self.headers, "at most 1MiB"));
        }
        if self.flit.get() == 0 || self.flit.get() > MAX_BYTES {
            return Err(wrong("flit", self.flit, "from 1B to 1MiB"));
        }
        let flits = self.largest_flits();
        if flits > u16::MAX.into() {
            return Err(wrong("flit", self.flit, "so large that mtu and headers fit into 65535 flits"));
        }
        self.check_buffers()?;
        let delays = [
            ("credit_min_time", self.credit_min_time),
            ("flit_gap", self.flit_gap),
            ("packet_gap", self.packet_gap),
            ("switch_delay", self.switch_delay),
        ];
        for (key, delay) in delays {
            if delay > MAX_DELAY {
                return Err(wrong(key, delay, "at most 1s"));
            }
        }
        self.check_allocation()?;
        self.check_arbitration()
    }

    fn check_allocation(&self) -> Result<(), FabricError> {
        let Some(allocation) = self.allocation else { return Ok(()) };
        if allocation.iterations == 0 || allocation.iterations > MAX_ITERATIONS {
            return Err(wrong("allocation.iterations", allocation.iterations, "from 1 to 64 iterations"));
        }
        if allocation.cycle > MAX_DELAY {
            return Err(wrong("allocation.cycle", allocation.cycle, "at most 1s"));
        }
        Ok(())
    }

    fn check_buffers(&self) -> Result<(), FabricError> {
        let largest = self.largest_credits();
        let too_many = "at most 16777216, which is 1GiB";
        let Some(SharedBuffersConfig { size, exclusive, max }) = self.shared_buffers else {
            if u64::from(self.credits) < largest {
                return Err(wrong(
                    "credits",
                    self.credits,
                    "credits of 64B for one packet of mtu and headers at least",
                ));
            }
            if self.credits > MAX_CREDITS {
                return Err(wrong("credits", self.credits, too_many));
            }
            return Ok(());
        };
        if self.credits != Self::default().credits {
            let value = format!("{} beside shared_buffers", self.credits);
            return Err(wrong("credits", value, "either credits or shared_buffers, whose keys say what a VL has"));
        }
        if u64::from(exclusive) < largest {
            let allowed = "credits of 64B for one packet of mtu and headers at least, or a VL could starve";
            return Err(wrong("shared_buffers.exclusive", exclusive, allowed));
        }
        if size > MAX_CREDITS {
            return Err(wrong("shared_buffers.size", size, too_many));
        }
        if u64::from(exclusive) * u64::from(self.vls) > u64::from(size) {
            let value = format!("{size} with exclusive = {exclusive} for each of {} VLs", self.vls);
            return Err(wrong("shared_buffers.size", value, "exclusive x vls at least"));
        }
        if max < exclusive {
            return Err(wrong("shared_buffers.max", max, "exclusive at least"));
        }
        Ok(())
    }

    fn check_arbitration(&self) -> Result<(), FabricError> {
        let tables = [("arbitration.high", &self.arbitration.high), ("arbitration.low", &self.arbitration.low)];
        for (key, entries) in tables {
            if entries.len() > 64 {
                return Err(wrong(key, format!("{} entries", entries.len()), "at most 64 entries, as InfiniBand's"));
            }
            for entry @ VlWeight(vl, weight) in entries {
                let value = format!("[{}, {}]", entry.0, entry.1);
                if *vl >= self.vls {
                    return Err(wrong(key, value, "VLs below fabric.vls"));
                }
                if *weight == 0 {
                    return Err(wrong(key, value, "weights from 1 to 255 credits"));
                }
            }
        }
        let served = Tables::new(&self.arbitration, self.vls).vls();
        if let Some(vl) = (0..self.vls).find(|vl| served & (1 << vl) == 0) {
            return Err(wrong("arbitration", format!("no entry of VL {vl}"), "each VL in a table, or it would starve"));
        }
        Ok(())
    }

    /// Refuses what does not go with `routes` on `topology`, where VLs have `credits` credits at least, and routes that can deadlock.
    pub(super) fn check_routes(&self, routes: &Routes, credits: u32, topology: &Topology) -> Result<(), FabricError> {
        self.check_room(credits, routes.packets_of_room())?;
        routes.deadlock_freedom(topology)?;
        self.bases(routes.classes())?;
        if routes.compares_flits() && self.shared_buffers.is_some() {
            return Err(wrong(
                "routing.room",
                "\"flits\" beside shared_buffers",
                "credits, or buffers of each lane's own",
            ));
        }
        if routes.compares_flits() && self.credit_min_time > DurationPs::ZERO {
            return Err(wrong("routing.room", "\"flits\" beside credit_min_time", "credits, or no credit_min_time"));
        }
        self.check_lane_allocation(routes.commits_to_room())
    }

    /// Refuses buffers whose VLs have `credits` credits at least, without room for `packets` of the largest packets, which the
    /// routing needs.
    fn check_room(&self, credits: u32, packets: u32) -> Result<(), FabricError> {
        if u64::from(credits) < self.largest_credits() * u64::from(packets) {
            let key = if self.shared_buffers.is_none() { "credits" } else { "shared_buffers.exclusive" };
            let allowed = match packets {
                ..=1 => "credits of 64B for one packet of mtu and headers at least",
                _ => "credits of 64B for two packets of mtu and headers at least: rings keep a bubble",
            };
            return Err(wrong(key, credits, allowed));
        }
        Ok(())
    }

    /// Refuses exclusive lanes where packets do not choose lanes by room; `chooses` says whether they do.
    fn check_lane_allocation(&self, chooses: bool) -> Result<(), FabricError> {
        if self.lane_allocation == LaneAllocation::Exclusive && !chooses {
            let allowed = "a routing whose packets choose among lanes with room: minimal-adaptive, { bubble = \"random\" }, \
                           { bubble = \"shortest\" }, { bubble = \"smart\" }, { dally = \"improved\" }, { dally = \"adaptive\" } or \
                           { adaptive = \"link-and-vl\" }";
            return Err(wrong("lane_allocation", format!("\"exclusive\" with routing = {}", self.routing), allowed));
        }
        // Nobody has compared these together with the plain model.
        if self.allocation.is_some() && self.lane_allocation == LaneAllocation::Exclusive {
            return Err(wrong("lane_allocation", "\"exclusive\" with an allocation".to_owned(), "shared"));
        }
        if self.allocation.is_some() && self.consumption == Consumption::Multiple {
            return Err(wrong("consumption", "\"multiple\" with an allocation".to_owned(), "single"));
        }
        Ok(())
    }

    /// Checks how packets of hosts come between others, where buffers have room for `room` credits of a VL, and `escapes` says whether
    /// the routing has an escape beside lanes that are taken by room.
    pub(super) fn check_injection(&self, escapes: bool, room: u32) -> Result<(), FabricError> {
        if !(0.0..=1.0).contains(&self.transit_priority) {
            return Err(wrong("transit_priority", format!("{:?}", self.transit_priority), "a share, from 0.0 to 1.0"));
        }
        if self.transit_priority > 0.0 && self.allocation.is_some() {
            return Err(wrong("transit_priority", "a share beside an allocation".to_owned(), "0.0, or no allocation"));
        }
        self.check_injectors()?;
        if self.injection_reserve > 0 && !escapes {
            let allowed = "0, or routings with an escape beside lanes that are taken by room: \
                           { bubble = \"random\", \"shortest\" or \"smart\" }, { dally = \"adaptive\" }, or, but on trees, minimal-adaptive";
            return Err(wrong(
                "injection_reserve",
                format!("{} with {}", self.injection_reserve, self.routing),
                allowed,
            ));
        }
        let needed = (u64::from(self.injection_reserve) + 1).saturating_mul(self.largest_credits());
        if self.injection_reserve > 0 && u64::from(room) < needed {
            let value = format!("{} packets, and one more are {needed} credits of {room}", self.injection_reserve);
            return Err(wrong("injection_reserve", value, "so few that a packet fits beside them into a VL's buffer"));
        }
        Ok(())
    }

    /// Lanes of a link: its VLs, or as many as hosts have queues.
    pub(super) fn lanes_of_a_link(&self) -> u32 {
        let queues = self.injection.map_or(0, |injection| injection.queues);
        u32::from(self.vls.max(queues))
    }

    /// Checks what several queues of hosts go together with.
    fn check_injectors(&self) -> Result<(), FabricError> {
        let Some(injection) = self.injection else { return Ok(()) };
        if injection.queues == 0 || injection.queues > MAX_INJECTORS {
            return Err(wrong("injection.queues", injection.queues, "from 1 to 15 queues"));
        }
        let needs_full = injection.choice == InjectionChoice::DorShortest;
        if needs_full != injection.full.is_some() {
            let value = injection.full.map_or_else(|| "not given".to_owned(), |full| full.to_string());
            return Err(wrong(
                "injection.full",
                value,
                "packets, with choice = \"dor-shortest\" alone, which needs it",
            ));
        }
        let choice = injection.choice;
        let by_axes = matches!(choice, InjectionChoice::Dor | InjectionChoice::DorShortest);
        if injection.direction != InjectionDirection::First && !by_axes {
            return Err(wrong("injection.direction", "last", "first, or choice = \"dor\" or \"dor-shortest\""));
        }
        if injection.equals != InjectionEquals::Draw && choice != InjectionChoice::ShortestProfitable {
            return Err(wrong("injection.equals", "first", "draw, or choice = \"shortest-profitable\""));
        }
        if injection.record != InjectionRecord::Packet && !choice.by_direction() {
            return Err(wrong("injection.record", "anew", "packet, or a choice by directions: any but \"shortest\""));
        }
        if injection.length != InjectionLength::Host
            && matches!(choice, InjectionChoice::Dor | InjectionChoice::LongestPath)
        {
            let allowed =
                "host, or a choice that compares queues: \"shortest\", \"shortest-profitable\" or \"dor-shortest\"";
            return Err(wrong("injection.length", "switch", allowed));
        }
        if injection.length != InjectionLength::Host && self.credit_min_time > DurationPs::ZERO {
            return Err(wrong("injection.length", "switch beside credit_min_time", "host, or no credit_min_time"));
        }
        if self.allocation.is_some() {
            return Err(wrong("injection", "queues beside an allocation".to_owned(), "none, or no allocation"));
        }
        if self.shared_buffers.is_some() {
            return Err(wrong(
                "injection",
                "queues beside shared_buffers".to_owned(),
                "none, or credits for each lane",
            ));
        }
        Ok(())
    }

    /// Checks the queues of hosts on a lattice, or none, with `directions`, whose routing takes `classes` classes, at hosts
    /// `at_hosts`.
    pub(super) fn check_directions(
        &self,
        directions: Option<usize>,
        classes: u8,
        at_hosts: u8,
    ) -> Result<(), FabricError> {
        let Some(injection) = self.injection else { return Ok(()) };
        if self.vls != classes || at_hosts != 1 {
            let value = format!("queues with vls = {} and {}", self.vls, self.routing);
            return Err(wrong(
                "injection",
                value,
                "as many vls as the routing has classes, which hosts do not choose among",
            ));
        }
        match directions {
            _ if !injection.choice.by_direction() => Ok(()),
            Some(directions) if directions == usize::from(injection.queues) => Ok(()),
            Some(directions) => {
                let value = format!("{}, where each router has {directions} directions", injection.queues);
                Err(wrong("injection.queues", value, "a queue for each direction, or choice = \"shortest\""))
            }
            None => {
                let allowed = "\"shortest\", or routings { dally = MODE }, { bubble = MODE }, { dor = TIES }";
                Err(wrong("injection.choice", format!("{:?} with {}", injection.choice, self.routing), allowed))
            }
        }
    }

    pub(super) fn largest_flits(&self) -> u64 {
        (self.mtu.get() + self.headers.get()).div_ceil(self.flit.get())
    }

    fn largest_credits(&self) -> u64 {
        (self.largest_flits() * self.flit.get()).div_ceil(super::lanes::CREDIT)
    }

    /// The VL of class 0 of each service level, where the routing needs `classes` classes.
    pub(super) fn bases(&self, classes: u8) -> Result<[u8; 16], FabricError> {
        let groups = self.vls / classes.max(1);
        if groups == 0 {
            return Err(wrong(
                "vls",
                self.vls,
                "a VL at least for each class that the routing needs to be free of deadlock",
            ));
        }
        if self.sl_to_vl.len() > 16 {
            return Err(wrong("sl_to_vl", format!("{} levels", self.sl_to_vl.len()), "at most 16 service levels"));
        }
        if let Some(vl) = self.sl_to_vl.iter().find(|vl| **vl >= groups) {
            return Err(wrong("sl_to_vl", format!("VL {vl}"), "VLs below fabric.vls / classes of the routing"));
        }
        let mut bases = [0; 16];
        for (level, base) in (0u8..).zip(&mut bases) {
            *base = self.sl_to_vl.get(usize::from(level)).copied().unwrap_or(level % groups) * classes;
        }
        Ok(bases)
    }

    /// Gives the links of `topology` the rate of `width` and `speed`, if these are given.
    pub(super) fn set_rates(&self, topology: &mut Topology) -> Result<(), FabricError> {
        let Some(speed) = self.speed else {
            return match self.width {
                Some(width) => Err(wrong("width", width, "a speed beside it, like speed = \"QDR\"")),
                None => Ok(()),
            };
        };
        let width = self.width.unwrap_or(4);
        if ![1, 2, 4, 8, 12].contains(&width) {
            return Err(wrong("width", width, "1, 2, 4, 8 or 12 lanes"));
        }
        let rate = speed.data_rate(width);
        let unset = LinkConfig::default().rate;
        if let Some(link) = topology.links().iter().find(|link| link.rate != unset && link.rate != rate) {
            let value = format!("{} beside width and speed of {rate}", link.rate);
            return Err(wrong("topology", value, "a rate of the links, or width and speed, not both"));
        }
        topology.set_rates(rate);
        Ok(())
    }

    /// The times of each link of `topology`.
    pub(super) fn timings(&self, topology: &Topology) -> Result<LinkTimings, FabricError> {
        let links = topology.links();
        let mut timings = LinkTimings::default();
        let flits = u32::try_from(self.largest_flits()).unwrap_or(u32::MAX);
        for (id, link) in links.iter().enumerate() {
            if link.rate > FASTEST {
                return Err(wrong("topology", format!("a rate of {}", link.rate), "rates of at most 8000Gbps"));
            }
            if link.burst_bytes > 0 {
                let value = format!("a burst of {}B", link.burst_bytes);
                return Err(wrong("topology", value, "wires: a link with credits has no token bucket (burst)"));
            }
            if link.delay_ps > MAX_DELAY.ps() {
                return Err(wrong("topology", format!("a delay of {}ps", link.delay_ps), "delays of at most 1s"));
            }
            let back = links.get(id ^ 1).map_or(link.delay_ps, |other| other.delay_ps);
            let timing = LinkTiming::new(link, DurationPs(back), self.flit.get(), self.flit_gap, flits);
            let timing = timing.ok_or_else(|| {
                wrong("flit", self.flit, "flits, gaps and rates with which the time of a packet can be counted")
            })?;
            let kinds = "at most 65536 different pairs of rate and delay";
            timings.push(timing).ok_or_else(|| wrong("topology", "links of too many kinds", kinds))?;
        }
        for host in 0..topology.hosts() {
            let host = crate::topology::NodeId(host);
            if topology.out(host).is_empty() {
                let value = format!("host {} without a link", topology.name(host));
                return Err(wrong("topology", value, "hosts that are joined to a switch"));
            }
        }
        Ok(timings)
    }

    /// How far ahead most events lie: a packet on the slowest link.
    pub(super) fn horizon(&self, timings: &LinkTimings) -> DurationPs {
        let flits = u32::try_from(self.largest_flits()).unwrap_or(u32::MAX);
        let slowest = timings.timings.iter().map(|timing| timing.time(flits, 0) + timing.delay).max();
        slowest.unwrap_or_default() + self.switch_delay + self.packet_gap
    }
}
