//! Allocation: which heads of a switch are matched with which links, where an input passes one packet at a time.

use super::input_arbiter::{InputArbiter, InputArbitration};
use crate::topology::LinkId;
use crate::units::DurationPs;
use serde::{Deserialize, Serialize};

/// A head that has chosen a link and VL and may start there: it is ready, its input and the link are free, and its credits are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The link by which its packet came.
    pub input: LinkId,
    /// The VL of its queue.
    pub input_vl: u32,
    /// The link by which it is to go on.
    pub output: LinkId,
    /// Its VL there.
    pub output_vl: u32,
}

/// The requests of one switch at one instant, in order of outputs, of VLs there, then of queues (input, then VL).
pub trait Requests {
    /// All of them. An index into it stands for a request.
    fn all(&self) -> &[Request];

    /// Whether neither its input nor its output has been matched yet.
    fn is_open(&self, request: usize) -> bool;

    /// Which of `among`, ascending requests of one input, `arbiter` takes; its round robin begins behind the VL that was last matched.
    fn of_input(&self, arbiter: &impl InputArbiter, among: &[usize]) -> Option<usize>;

    /// Which of `among`, ascending requests of one output, the output takes: by its tables of VLs, then by the fabric's input arbitration.
    fn of_output(&mut self, among: &[usize]) -> Option<usize>;

    /// Matches an open request: its packet starts. `moves_turns` says whether the round robins of its input and output go on.
    fn take(&mut self, request: usize, moves_turns: bool);
}

/// How the heads of a switch are matched with its links. It depends on the requests alone.
pub trait Allocator {
    /// How often a switch allocates: at whole multiples of this, or at any instant, until no request is open, if it is zero. None: links
    /// arbitrate one by one, an input passes several packets at a time, and there is nothing to [`allocate`](Self::allocate).
    fn cycle(&self) -> Option<DurationPs>;

    /// Takes some of the requests of a switch, each of which is open when it is taken; one at least where there are any.
    fn allocate(&self, requests: &mut impl Requests);
}

/// Links arbitrate one by one, over inputs that are no resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkByLink;

impl Allocator for LinkByLink {
    fn cycle(&self) -> Option<DurationPs> {
        None
    }

    fn allocate(&self, _requests: &mut impl Requests) {}
}

/// Which side of a separable allocator takes its pick first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AllocationOrder {
    /// Each input asks for the link of one of its heads, then each link takes one of those that ask.
    #[default]
    InputFirst,
    /// Each link grants to one of the heads, then each input accepts one of the grants (iSLIP).
    OutputFirst,
}

/// A separable allocation: `{ order = "input-first", iterations = 2, queue_arbitration = "round-robin", cycle = "1ns" }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SeparableConfig {
    /// Which side takes its pick first. Default: `input-first`.
    pub order: AllocationOrder,
    /// How often what is not matched is tried again in one allocation, the first time included: 1 to 64. Default: 1.
    pub iterations: u8,
    /// Which of its queues an input takes. Default: `round-robin`.
    pub queue_arbitration: InputArbitration,
    /// A switch allocates at whole multiples of this, or, if it is zero, at any instant until nothing is left. Default: `0ns`.
    pub cycle: DurationPs,
}

impl Default for SeparableConfig {
    fn default() -> Self {
        Self {
            order: AllocationOrder::default(),
            iterations: 1,
            queue_arbitration: InputArbitration::default(),
            cycle: DurationPs(0),
        }
    }
}

impl SeparableConfig {
    /// Each input's or each output's pick among `requests`.
    fn picks(&self, requests: &mut impl Requests, mut among: Vec<usize>, by_input: bool) -> Vec<usize> {
        let all = requests.all();
        let side = |request: &usize| if by_input { all[*request].input } else { all[*request].output };
        among.sort_by_key(|request| (side(request), *request));
        let groups: Vec<Vec<usize>> =
            among.chunk_by(|one, next| side(one) == side(next)).map(<[usize]>::to_vec).collect();
        let picks = groups.iter().filter_map(|group| {
            if by_input { requests.of_input(&self.queue_arbitration, group) } else { requests.of_output(group) }
        });
        picks.collect()
    }
}

impl Allocator for SeparableConfig {
    fn cycle(&self) -> Option<DurationPs> {
        Some(self.cycle)
    }

    fn allocate(&self, requests: &mut impl Requests) {
        let input_first = self.order == AllocationOrder::InputFirst;
        for iteration in 0..self.iterations {
            let open: Vec<usize> = (0..requests.all().len()).filter(|request| requests.is_open(*request)).collect();
            if open.is_empty() {
                return;
            }
            let picks = self.picks(requests, open, input_first);
            for matched in self.picks(requests, picks, !input_first) {
                requests.take(matched, iteration == 0);
            }
        }
    }
}

/// What a configuration names: `None` is [`LinkByLink`].
impl<A: Allocator> Allocator for Option<A> {
    fn cycle(&self) -> Option<DurationPs> {
        self.as_ref().and_then(Allocator::cycle)
    }

    fn allocate(&self, requests: &mut impl Requests) {
        if let Some(allocator) = self {
            allocator.allocate(requests);
        }
    }
}
