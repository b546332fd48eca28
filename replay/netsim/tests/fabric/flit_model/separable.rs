//! Separable allocators, to be checked against `docs/input-queued.md`: every arbiter goes through all that ask it.

use netsim::fabric::input_queued::{Arbiter, Order, SeparableAllocator};
use netsim::topology::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// A mistake of an allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocatorMistake {
    /// Round robins move by every iteration.
    TurnsAlwaysMove,
    /// Round robins move to what was granted, and not behind it.
    TurnStays,
    /// The other order.
    OtherOrder,
    /// One iteration only.
    OneIteration,
    /// What is asked for by speculation is as good as the rest.
    SpeculationEqual,
}

/// One asks for another; both by number.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub input: u32,
    pub output: u32,
    pub speculative: bool,
    /// When its packet left, and the packet's key.
    pub age: (u64, u64),
}

/// An allocator of each switch: where round robins begin, by side, switch and number.
#[derive(Clone, Debug, Default)]
pub struct Allocator {
    pub mistake: Option<AllocatorMistake>,
    pub turns: BTreeMap<(u8, NodeId, u32), u32>,
}

impl Allocator {
    fn wrong(&self, mistake: AllocatorMistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// The request that an arbiter takes of `asking`: `number` is what its round robin goes by.
    pub fn arbiter(
        &self,
        kind: Arbiter,
        asking: &[Request],
        (turn, of): (u32, u32),
        number: impl Fn(&Request) -> u32,
        drawn: impl Fn(&Request) -> u64,
    ) -> Request {
        let certain: Vec<Request> = asking.iter().copied().filter(|request| !request.speculative).collect();
        let equal = certain.is_empty() || self.wrong(AllocatorMistake::SpeculationEqual);
        let asking = if equal { asking } else { &certain };
        let in_turn = |among: &[Request]| {
            let next = (0..of).map(|step| (turn + step) % of);
            let found = next.filter_map(|next| among.iter().find(|request| number(request) == next)).next();
            *found.unwrap()
        };
        match kind {
            Arbiter::RoundRobin => in_turn(asking),
            Arbiter::Random => *asking.iter().min_by_key(|request| drawn(request)).unwrap(),
            Arbiter::Age => {
                let oldest = asking.iter().map(|request| request.age).min().unwrap();
                let oldest: Vec<Request> = asking.iter().copied().filter(|request| request.age == oldest).collect();
                in_turn(&oldest)
            }
        }
    }

    /// The (input, output) pairs that are granted at `switch`, of so many inputs and outputs; `drawn` says what is drawn for a request by side
    /// 0 (the input) or 1.
    pub fn allocate(
        &mut self,
        config: &SeparableAllocator,
        switch: NodeId,
        requests: &[Request],
        (inputs, outputs): (u32, u32),
        drawn: impl Fn(u64, &Request) -> u64,
    ) -> Vec<(u32, u32)> {
        let mut granted: Vec<(u32, u32)> = Vec::new();
        let input_first = (config.order == Order::InputFirst) != self.wrong(AllocatorMistake::OtherOrder);
        let iterations = if self.wrong(AllocatorMistake::OneIteration) { 1 } else { config.iterations };
        for iteration in 0..iterations {
            let is_left = |r: &&Request| granted.iter().all(|(input, output)| *input != r.input && *output != r.output);
            let left: Vec<Request> = requests.iter().filter(is_left).copied().collect();
            let by_side = |asking: &[Request], side: u8| -> Vec<Request> {
                let own = |r: &Request| if side == 0 { r.input } else { r.output };
                let other = |r: &Request| if side == 0 { r.output } else { r.input };
                let places: BTreeSet<u32> = asking.iter().map(own).collect();
                let of = if side == 0 { outputs } else { inputs };
                let choose = |place: u32| {
                    let mine: Vec<Request> = asking.iter().copied().filter(|r| own(r) == place).collect();
                    let turn = self.turns.get(&(side, switch, place)).copied().unwrap_or(0);
                    self.arbiter(config.arbiter, &mine, (turn, of), other, |r| drawn(side.into(), r))
                };
                places.into_iter().map(choose).collect()
            };
            let (first, second) = if input_first { (0, 1) } else { (1, 0) };
            let chosen = by_side(&by_side(&left, first), second);
            for request in chosen {
                granted.push((request.input, request.output));
                if iteration == 0 || self.wrong(AllocatorMistake::TurnsAlwaysMove) {
                    let behind = u32::from(!self.wrong(AllocatorMistake::TurnStays));
                    self.turns.insert((0, switch, request.input), (request.output + behind) % outputs);
                    self.turns.insert((1, switch, request.output), (request.input + behind) % inputs);
                }
            }
        }
        granted
    }
}
