//! Allocators: which of the requests of a switch are granted, so that no input and no output is granted twice.

use super::separable::{Arbiter, Order, SeparableAllocator};
use crate::count::count;
use crate::kernel::random::draw;

/// An input asks for an output, both numbered within their switch.
#[derive(Clone, Copy)]
pub(in crate::fabric) struct Request {
    pub input: u32,
    pub output: u32,
    /// Granted only by those who have no other request.
    pub speculative: bool,
    /// When its packet left its host, and the packet's key.
    pub age: (u64, u64),
    pub granted: bool,
}

/// Which of both allocations of a switch, for draws.
#[derive(Clone, Copy)]
pub(in crate::fabric) enum Stage {
    VcAllocation = 0,
    SwitchAllocation = 1,
}

/// Where and when an allocation takes place.
#[derive(Clone, Copy)]
pub(in crate::fabric) struct Instant {
    pub seed: u64,
    pub switch: u32,
    pub cycle: u64,
    pub stage: Stage,
}

/// In what order requests are chosen: the least one wins.
pub(in crate::fabric) type Rank = (bool, u64, u64, u64);

impl Request {
    /// Its rank for an arbiter, to which it comes with `number` of `of`, and whose turn begins at `turn`; `place` is unlike that of any other
    /// arbiter and request of its instant.
    fn rank(&self, arbiter: Arbiter, number: u32, turn: u32, of: u32, instant: &Instant, place: u64) -> Rank {
        let behind = if number >= turn { number - turn } else { number + of - turn };
        match arbiter {
            Arbiter::RoundRobin => (self.speculative, behind.into(), 0, 0),
            Arbiter::Age => (self.speculative, self.age.0, self.age.1, behind.into()),
            Arbiter::Random => (self.speculative, instant.draw(place, self.input, self.output), 0, 0),
        }
    }
}

impl Instant {
    /// What is drawn for a request by side `side` (0: the input, 1: the output, 2: among the VCs of an input).
    pub fn draw(&self, side: u64, input: u32, output: u32) -> u64 {
        let here = draw(self.seed, (1 << 61) + u64::from(self.switch) * 2 + self.stage as u64, self.cycle);
        draw(here, side, (u64::from(input) << 32) + u64::from(output))
    }
}

/// Makes allocations, and keeps what it needs for that between two of them.
#[derive(Default)]
pub(in crate::fabric) struct Matcher {
    /// By input and by output: whether it is granted, and the request that has been chosen for it; all unset between two allocations.
    inputs: Vec<PortMatch>,
    outputs: Vec<PortMatch>,
    /// Those for which one has been chosen in this iteration.
    chosen: Vec<u32>,
}

/// An input or an output.
#[derive(Clone, Copy)]
struct PortMatch {
    granted: bool,
    request: u32,
    rank: Rank,
}

const FREE: PortMatch = PortMatch { granted: false, request: u32::MAX, rank: (true, u64::MAX, u64::MAX, u64::MAX) };

/// Where round robins begin: those of inputs, over outputs, and those of outputs, over inputs.
pub(in crate::fabric) struct Turns<'a> {
    pub inputs: &'a mut [u32],
    pub outputs: &'a mut [u32],
}

impl Matcher {
    /// Grants some of `requests`, which are in order of inputs.
    pub fn allocate(
        &mut self,
        config: &SeparableAllocator,
        requests: &mut [Request],
        turns: &mut Turns<'_>,
        instant: &Instant,
    ) {
        let (inputs, outputs) = (count(turns.inputs.len()), count(turns.outputs.len()));
        if self.inputs.len() < turns.inputs.len() {
            self.inputs.resize(turns.inputs.len(), FREE);
        }
        if self.outputs.len() < turns.outputs.len() {
            self.outputs.resize(turns.outputs.len(), FREE);
        }
        for iteration in 0..config.iterations {
            let arbiter = config.arbiter;
            let for_input = |request: &Request, turns: &Turns<'_>| {
                request.rank(arbiter, request.output, turns.inputs[request.input as usize], outputs, instant, 0)
            };
            let for_output = |request: &Request, turns: &Turns<'_>| {
                request.rank(arbiter, request.input, turns.outputs[request.output as usize], inputs, instant, 1)
            };
            let any = match config.order {
                Order::InputFirst => {
                    self.choose(requests, turns, true, for_input);
                    self.choose_again(requests, turns, false, for_output)
                }
                Order::OutputFirst => {
                    self.choose(requests, turns, false, for_output);
                    self.choose_again(requests, turns, true, for_input)
                }
            };
            if !any {
                break;
            }
            // `chosen` are the requests that both sides have chosen.
            for index in 0..self.chosen.len() {
                let request = &mut requests[self.chosen[index] as usize];
                request.granted = true;
                let (input, output) = (request.input as usize, request.output as usize);
                self.inputs[input].granted = true;
                self.outputs[output].granted = true;
                if iteration == 0 {
                    turns.inputs[input] = if request.output + 1 == outputs { 0 } else { request.output + 1 };
                    turns.outputs[output] = if request.input + 1 == inputs { 0 } else { request.input + 1 };
                }
            }
        }
        for request in requests.iter() {
            self.inputs[request.input as usize] = FREE;
            self.outputs[request.output as usize] = FREE;
        }
        self.chosen.clear();
    }

    /// One side chooses among all requests that are left; `chosen` is then what it has chosen.
    fn choose(
        &mut self,
        requests: &[Request],
        turns: &Turns<'_>,
        by_inputs: bool,
        rank: impl Fn(&Request, &Turns<'_>) -> Rank,
    ) {
        self.chosen.clear();
        for (index, request) in (0..).zip(requests) {
            if self.inputs[request.input as usize].granted || self.outputs[request.output as usize].granted {
                continue;
            }
            let rank = rank(request, turns);
            let sides = if by_inputs { &mut self.inputs } else { &mut self.outputs };
            let number = if by_inputs { request.input } else { request.output };
            let side = &mut sides[number as usize];
            if side.request == u32::MAX {
                self.chosen.push(number);
                (side.request, side.rank) = (index, rank);
            } else if rank < side.rank {
                (side.request, side.rank) = (index, rank);
            }
        }
        let sides = if by_inputs { &mut self.inputs } else { &mut self.outputs };
        for number in &mut self.chosen {
            let side = &mut sides[*number as usize];
            *number = side.request;
            side.request = u32::MAX;
        }
    }

    /// The other side chooses among those. Returns whether there is any.
    fn choose_again(
        &mut self,
        requests: &[Request],
        turns: &Turns<'_>,
        by_inputs: bool,
        rank: impl Fn(&Request, &Turns<'_>) -> Rank,
    ) -> bool {
        let mut numbers = 0;
        for index in 0..self.chosen.len() {
            let index_of_request = self.chosen[index];
            let request = &requests[index_of_request as usize];
            let rank = rank(request, turns);
            let sides = if by_inputs { &mut self.inputs } else { &mut self.outputs };
            let number = if by_inputs { request.input } else { request.output };
            let side = &mut sides[number as usize];
            if side.request == u32::MAX {
                self.chosen[numbers] = number;
                numbers += 1;
                (side.request, side.rank) = (index_of_request, rank);
            } else if rank < side.rank {
                (side.request, side.rank) = (index_of_request, rank);
            }
        }
        self.chosen.truncate(numbers);
        let sides = if by_inputs { &mut self.inputs } else { &mut self.outputs };
        for number in &mut self.chosen {
            let side = &mut sides[*number as usize];
            *number = side.request;
            side.request = u32::MAX;
        }
        numbers > 0
    }
}
