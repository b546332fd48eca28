//! What the controller of a demand-driven circuit switch knows, and when it looks and plans.

use super::config::{RotorConfig, RotorScheduler};
use super::schedule::Rack;
use crate::circuits::{
    AllStop, Birkhoff, CircuitScheduler, DemandMatrix, MaxWeight, OneByOne, Outlook, PlannedCircuit, Solstice,
};
use crate::time::SimTime;
use crate::units::DurationPs;
use std::collections::{BTreeSet, VecDeque};

/// The controller: it learns what waits, and plans circuits from that some time later.
pub(super) struct Control {
    scheduler: Box<dyn CircuitScheduler + Send>,
    racks: usize,
    age: u64,
    limit: u64,
    set_up: u64,
    /// Time of the largest packet over an uplink.
    packet: u64,
    retry: u64,
    /// Bytes by rack x racks + other rack, headers included, and since when some wait or their last circuit is over.
    waiting: Vec<u64>,
    since: Vec<SimTime>,
    all: u64,
    /// Until when input and output ports are taken.
    inputs: Vec<SimTime>,
    outputs: Vec<SimTime>,
    /// When it looks next, and what it has seen and not planned for.
    looks: BTreeSet<SimTime>,
    seen: VecDeque<DemandMatrix>,
    circuits: u64,
}

impl Control {
    /// That of `config` for `racks` racks; none where the switches go through their matchings whatever waits.
    pub fn of(config: &RotorConfig, racks: usize) -> Option<Self> {
        let packet = config.largest_packet_ps();
        let slot = DurationPs(config.slice.ps().saturating_sub(config.kept_clear_ps()).max(packet).max(1));
        let scheduler: Box<dyn CircuitScheduler + Send> = match config.scheduler {
            RotorScheduler::Rotor => return None,
            RotorScheduler::MaxWeight => Box::new(AllStop(MaxWeight { slot })),
            RotorScheduler::Birkhoff => Box::new(AllStop(Birkhoff)),
            RotorScheduler::Solstice => Box::new(AllStop(Solstice { shortest: slot })),
            RotorScheduler::Sunflow => Box::new(OneByOne),
        };
        Some(Self::with(config, racks, scheduler))
    }

    /// With a scheduler of one's own.
    pub fn with(config: &RotorConfig, racks: usize, scheduler: Box<dyn CircuitScheduler + Send>) -> Self {
        Self {
            scheduler,
            racks,
            age: config.demand_age.ps(),
            limit: config.demand_limit().ps(),
            set_up: config.beside_planned_ps(),
            packet: config.largest_packet_ps(),
            retry: config.slice.ps(),
            waiting: vec![0; racks * racks],
            since: vec![SimTime::ZERO; racks * racks],
            all: 0,
            inputs: vec![SimTime::ZERO; racks],
            outputs: vec![SimTime::ZERO; racks],
            looks: BTreeSet::new(),
            seen: VecDeque::new(),
            circuits: 0,
        }
    }

    /// More bytes wait. Returns when to look because of that.
    pub fn more(&mut self, now: SimTime, rack: Rack, to: Rack, bytes: u64) -> Option<SimTime> {
        let pair = rack as usize * self.racks + to as usize;
        let first_of_all = self.all == 0 && self.looks.is_empty() && self.seen.is_empty();
        let first_of_pair = self.waiting[pair] == 0;
        if first_of_pair {
            self.since[pair] = self.since[pair].max(now);
        }
        self.waiting[pair] += bytes;
        self.all += bytes;
        let looks = if self.scheduler.is_one_by_one() { first_of_pair } else { first_of_all };
        (looks && self.looks.insert(now)).then_some(now)
    }

    /// Bytes are on their way.
    pub fn less(&mut self, rack: Rack, to: Rack, bytes: u64) {
        self.waiting[rack as usize * self.racks + to as usize] -= bytes;
        self.all -= bytes;
    }

    /// It learns what waits at `now`. Returns when it plans from that.
    pub fn look(&mut self, now: SimTime, time_of: impl Fn(u64) -> u64) -> SimTime {
        self.looks.remove(&now);
        let mut demand = DemandMatrix::new(self.racks);
        for (pair, bytes) in self.waiting.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
            // In whole packets, as no circuit carries a part of one.
            let time = time_of(*bytes).min(self.limit).div_ceil(self.packet.max(1)) * self.packet;
            *demand.cell(pair / self.racks, pair % self.racks) = time.max(1);
        }
        self.seen.push_back(demand);
        now.plus_ps(self.age)
    }

    /// Plans from what it has seen first. Returns the circuits, each with its number, and when to look again.
    pub fn plan(&mut self, now: SimTime) -> (Vec<(u64, PlannedCircuit)>, Vec<SimTime>) {
        let Some(demand) = self.seen.pop_front() else { return (Vec::new(), Vec::new()) };
        let circuits = if demand.is_zero() {
            Vec::new()
        } else {
            self.scheduler.plan(&Outlook {
                now,
                demand: &demand,
                since: &self.since,
                inputs: &self.inputs,
                outputs: &self.outputs,
                set_up: DurationPs(self.set_up),
            })
        };
        let mut ends = BTreeSet::new();
        let mut numbered = Vec::with_capacity(circuits.len());
        let mut begin = None;
        for circuit in circuits {
            self.circuits += u64::from(begin != Some(circuit.begin) || self.scheduler.is_one_by_one());
            begin = Some(circuit.begin);
            numbered.push((self.circuits, circuit));
            self.inputs[circuit.from] = self.inputs[circuit.from].max(circuit.end);
            self.outputs[circuit.to] = self.outputs[circuit.to].max(circuit.end);
            self.since[circuit.from * self.racks + circuit.to] = circuit.end;
            ends.insert(circuit.end);
        }
        if !self.scheduler.is_one_by_one() {
            ends = ends.into_iter().next_back().into_iter().collect();
        }
        let before = |end: SimTime| SimTime(end.0.saturating_sub(self.age)).max(now);
        let mut looks: Vec<SimTime> = ends.into_iter().map(before).collect();
        let is_over = numbered.is_empty() && !self.scheduler.is_one_by_one();
        if is_over && self.all > 0 && self.looks.is_empty() && self.seen.is_empty() {
            // What has come since it looked; or the scheduler has nothing for what waits.
            looks.push(if demand.is_zero() { now } else { now.plus_ps(self.retry) });
        }
        looks.retain(|at| self.looks.insert(*at));
        (numbered, looks)
    }
}
