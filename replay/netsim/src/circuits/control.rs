//! What the controller of a demand-driven circuit switch knows, and when it looks and plans.

use super::{
    AllStop, Birkhoff, CircuitScheduler, DemandMatrix, MaxWeight, OneByOne, PlannedCircuit, PlanningInput, Solstice,
};
use crate::time::SimTime;
use crate::units::DurationPs;
use std::collections::{BTreeSet, VecDeque};

/// Schedulers by demand, as configurations name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByDemand {
    MaxWeight,
    Birkhoff,
    Solstice,
    Sunflow,
}

impl ByDemand {
    /// The scheduler; `slot` is the slot of max-weight, and the shortest slice of Solstice.
    pub fn scheduler(self, slot: DurationPs) -> Box<dyn CircuitScheduler + Send> {
        match self {
            Self::MaxWeight => Box::new(AllStop(MaxWeight { slot })),
            Self::Birkhoff => Box::new(AllStop(Birkhoff)),
            Self::Solstice => Box::new(AllStop(Solstice { shortest: slot })),
            Self::Sunflow => Box::new(OneByOne),
        }
    }
}

/// What a controller goes by, in picoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControlTimes {
    /// How old the demand is from which it plans.
    pub age: u64,
    /// For how long two ports are joined at most in a plan.
    pub limit: u64,
    /// What a circuit takes beside the time that was planned for it.
    pub set_up: u64,
    /// Of the largest packet.
    pub packet: u64,
    /// When it looks again where a scheduler has nothing for what waits.
    pub retry: u64,
}

/// The controller: it learns what waits, and plans circuits from that some time later.
pub(crate) struct Control {
    scheduler: Box<dyn CircuitScheduler + Send>,
    ports: usize,
    times: ControlTimes,
    /// By port x ports + other port what waits, and since when some waits or the last circuit for it is over.
    waiting: Vec<u128>,
    since: Vec<SimTime>,
    all: u128,
    /// Until when input and output ports are taken.
    inputs: Vec<SimTime>,
    outputs: Vec<SimTime>,
    /// When it looks next, and what it has seen and not planned for.
    looks: BTreeSet<SimTime>,
    seen: VecDeque<DemandMatrix>,
    circuits: u64,
}

impl Control {
    /// For `ports` ports.
    pub fn new(times: ControlTimes, ports: usize, scheduler: Box<dyn CircuitScheduler + Send>) -> Self {
        Self {
            scheduler,
            ports,
            times,
            waiting: vec![0; ports * ports],
            since: vec![SimTime::ZERO; ports * ports],
            all: 0,
            inputs: vec![SimTime::ZERO; ports],
            outputs: vec![SimTime::ZERO; ports],
            looks: BTreeSet::new(),
            seen: VecDeque::new(),
            circuits: 0,
        }
    }

    /// More waits, in bytes or whatever the fabric counts. Returns when to look because of that.
    pub fn more(&mut self, now: SimTime, from: u32, to: u32, amount: u128) -> Option<SimTime> {
        let pair = from as usize * self.ports + to as usize;
        let first_of_all = self.all == 0 && self.looks.is_empty() && self.seen.is_empty();
        let first_of_pair = self.waiting[pair] == 0;
        if first_of_pair {
            self.since[pair] = self.since[pair].max(now);
        }
        self.waiting[pair] += amount;
        self.all += amount;
        let looks = if self.scheduler.is_one_by_one() { first_of_pair } else { first_of_all };
        (looks && self.looks.insert(now)).then_some(now)
    }

    /// Some of it is on its way.
    pub fn less(&mut self, from: u32, to: u32, amount: u128) {
        self.waiting[from as usize * self.ports + to as usize] -= amount;
        self.all -= amount;
    }

    /// It learns what waits at `now`; `time_of` is the time that an amount takes. Returns when it plans from that.
    pub fn look(&mut self, now: SimTime, time_of: impl Fn(u128) -> u64) -> SimTime {
        self.looks.remove(&now);
        let mut demand = DemandMatrix::new(self.ports);
        for (pair, amount) in self.waiting.iter().enumerate().filter(|(_, amount)| **amount > 0) {
            // In whole packets, as no circuit carries a part of one.
            let time = time_of(*amount).min(self.times.limit).div_ceil(self.times.packet.max(1)) * self.times.packet;
            *demand.cell(pair / self.ports, pair % self.ports) = time.max(1);
        }
        self.seen.push_back(demand);
        now.plus_ps(self.times.age)
    }

    /// Plans from what it has seen first. Returns the circuits, each with its number, and when to look again.
    pub fn plan(&mut self, now: SimTime) -> (Vec<(u64, PlannedCircuit)>, Vec<SimTime>) {
        let Some(demand) = self.seen.pop_front() else { return (Vec::new(), Vec::new()) };
        let circuits = if demand.is_zero() {
            Vec::new()
        } else {
            self.scheduler.plan(&PlanningInput {
                now,
                demand: &demand,
                since: &self.since,
                inputs: &self.inputs,
                outputs: &self.outputs,
                set_up: DurationPs(self.times.set_up),
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
            self.since[circuit.from * self.ports + circuit.to] = circuit.end;
            ends.insert(circuit.end);
        }
        if !self.scheduler.is_one_by_one() {
            ends = ends.into_iter().next_back().into_iter().collect();
        }
        let before = |end: SimTime| SimTime(end.0.saturating_sub(self.times.age)).max(now);
        let mut looks: Vec<SimTime> = ends.into_iter().map(before).collect();
        let is_over = numbered.is_empty() && !self.scheduler.is_one_by_one();
        if is_over && self.all > 0 && self.looks.is_empty() && self.seen.is_empty() {
            // What has come since it looked; or the scheduler has nothing for what waits.
            looks.push(if demand.is_zero() { now } else { now.plus_ps(self.times.retry) });
        }
        looks.retain(|at| self.looks.insert(*at));
        (numbered, looks)
    }
}
