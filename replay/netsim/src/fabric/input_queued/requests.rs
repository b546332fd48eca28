//! Requests of first flits for the crossbar, and who is given it, where inputs choose first, once, by round robin: by bits in place of ranks.

use super::state::{PortVc, Switch};
use std::ops::{BitAnd, BitOr};

/// A set of ports of a switch, a bit each.
pub(super) trait PortSet: Copy + PartialEq + BitOr<Output = Self> + BitAnd<Output = Self> {
    const NONE: Self;

    fn only(port: u32) -> Self;
    /// Without `port`, if it `is_wanted` so, without a branch.
    fn without_if(self, port: u32, is_wanted: bool) -> Self;
    /// The first one at `turn` or behind it, once around; there is one.
    fn first_from(self, turn: u32) -> u32;
    /// Takes out the first one.
    fn take_first(&mut self) -> Option<u32>;
    /// All but the first one.
    fn behind_first(self) -> Self;
}

macro_rules! port_set {
    ($set:ty) => {
        impl PortSet for $set {
            const NONE: Self = 0;

            #[inline(always)]
            fn only(port: u32) -> Self {
                1 << (port & (Self::BITS - 1))
            }

            #[inline(always)]
            fn without_if(self, port: u32, is_wanted: bool) -> Self {
                self & !(Self::from(is_wanted) << (port & (Self::BITS - 1)))
            }

            #[inline(always)]
            fn first_from(self, turn: u32) -> u32 {
                self.rotate_right(turn).trailing_zeros().wrapping_add(turn) & (Self::BITS - 1)
            }

            #[inline(always)]
            fn take_first(&mut self) -> Option<u32> {
                let set = *self;
                *self &= set.wrapping_sub(1);
                (set != 0).then(|| set.trailing_zeros())
            }

            #[inline(always)]
            fn behind_first(self) -> Self {
                self & self.wrapping_sub(1)
            }
        }
    };
}

port_set!(u64);
port_set!(u128);

/// A switch has as many inputs at most, and as many outputs.
pub(super) const MAX_PORTS_OF_SWITCH: usize = u128::BITS as usize;
/// VCs that cross again are copied so many at once: behind the last one there has to be as much room.
pub(super) const COPIED_AT_ONCE: usize = 4;
/// VCs of an input that are looked at at once.
pub(super) const VCS_AT_ONCE: u32 = u64::BITS / u8::BITS;

/// What first flits ask for, and whose turn it is. Ports are numbered as their switch counts them.
pub(super) struct CrossbarRequests<S> {
    inputs: Vec<InputRequests<S>>,
    /// By output: where its round robin over inputs begins. What is behind the last one is the first.
    output_turns: Vec<u8>,
    /// By output: inputs that have chosen it, none between two allocations; by input: the VC that it chose last.
    chosen_by: [S; MAX_PORTS_OF_SWITCH],
    chosen_vcs: [u8; MAX_PORTS_OF_SWITCH],
}

#[derive(Clone, Copy)]
#[repr(align(32))]
struct InputRequests<S> {
    /// By VC, a byte each, the lowest one first: the output that its first flit asks for, or [`InputRequests::NOTHING`].
    output_of_vcs: [u64; 2],
    /// These outputs.
    outputs: S,
    /// Where its round robins over outputs and over VCs begin. What is behind the last one is the first.
    turn: u8,
    vc_turn: u8,
}

impl<S: PortSet> InputRequests<S> {
    /// Outputs have lower numbers.
    const NOTHING: u8 = u8::MAX;
    const IDLE: Self = Self { output_of_vcs: [u64::MAX; 2], outputs: S::NONE, turn: 0, vc_turn: 0 };

    /// The VCs that ask for `output`, a bit each. `many`: there are more VCs than are looked at at once.
    #[inline(always)]
    fn vcs_that_ask(&self, output: u32, many: bool) -> u32 {
        let [low, high] = self.output_of_vcs;
        let vcs = equal_bytes(low, output as u8);
        if many { vcs | equal_bytes(high, output as u8) << VCS_AT_ONCE } else { vcs }
    }

    /// The first flit of a VC asks for `output`. Returns what it asked for before.
    #[inline(always)]
    fn replace(&mut self, vc: u32, output: u8) -> u8 {
        let (word, shift) = (&mut self.output_of_vcs[(vc >> 3 & 1) as usize], (vc & 7) << 3);
        let before = (*word >> shift) as u8;
        *word ^= u64::from(before ^ output) << shift;
        before
    }
}

impl<S: PortSet> CrossbarRequests<S> {
    /// Those of so many inputs and outputs of all switches: nobody asks for anything.
    pub fn new(inputs: usize, outputs: usize) -> Self {
        Self {
            inputs: vec![InputRequests::IDLE; inputs],
            output_turns: vec![0; outputs],
            chosen_by: [S::NONE; MAX_PORTS_OF_SWITCH],
            chosen_vcs: [0; MAX_PORTS_OF_SWITCH],
        }
    }

    /// The first flit of `at` asks for `output`.
    #[inline]
    pub fn ask(&mut self, at: PortVc, output: u32) {
        let input = &mut self.inputs[at.port() as usize];
        input.replace(at.vc(), output as u8);
        input.outputs = input.outputs | S::only(output);
    }

    /// It asks for nothing any more.
    #[inline]
    pub fn ask_no_more(&mut self, at: PortVc, many: bool) {
        let input = &mut self.inputs[at.port() as usize];
        let output = input.replace(at.vc(), InputRequests::<S>::NOTHING);
        let is_last = output != InputRequests::<S>::NOTHING && input.vcs_that_ask(output.into(), many) == 0;
        input.outputs = input.outputs.without_if(output.into(), is_last);
    }

    /// Each input of `switch` chooses the first output at its turn or behind it for which it has a request, and of the VCs that ask for that the first
    /// one at its turn or behind it; each output then one of these inputs in the same way. The VCs that are left are put into `chosen`: returns how
    /// many, and whether no two inputs have chosen the same output, nor one among several VCs. `ready`: inputs with requests. `many`: there are more
    /// VCs than are looked at at once.
    #[inline(never)]
    pub fn choose(&mut self, switch: &Switch, mut ready: S, many: bool, chosen: &mut [PortVc]) -> (u32, bool) {
        let inputs = &mut self.inputs[switch.places_of_inputs()];
        let output_turns = &mut self.output_turns[switch.places_of_outputs()];
        let (mut asked, mut contested, mut contested_vcs) = (S::NONE, S::NONE, 0);
        while let Some(place) = ready.take_first() {
            let input = &inputs[place as usize];
            let output = input.outputs.first_from(input.turn.into());
            let vcs = input.vcs_that_ask(output, many);
            // There are 16 VCs at most.
            let vc_turn = u32::from(input.vc_turn);
            let vc = vcs.rotate_right(vc_turn).trailing_zeros().wrapping_add(vc_turn) & 31;
            self.chosen_vcs[place as usize & (MAX_PORTS_OF_SWITCH - 1)] = vc as u8;
            let chosen_by = &mut self.chosen_by[output as usize & (MAX_PORTS_OF_SWITCH - 1)];
            *chosen_by = *chosen_by | S::only(place);
            contested = contested | input.outputs.behind_first() | asked & S::only(output);
            contested_vcs |= vcs & vcs.wrapping_sub(1);
            asked = asked | S::only(output);
        }
        let mut number = 0u32;
        while let Some(output) = asked.take_first() {
            let chosen_by = &mut self.chosen_by[output as usize & (MAX_PORTS_OF_SWITCH - 1)];
            let turn = &mut output_turns[output as usize];
            let place = chosen_by.first_from((*turn).into());
            *chosen_by = S::NONE;
            *turn = (place as u8).wrapping_add(1);
            let vc = self.chosen_vcs[place as usize & (MAX_PORTS_OF_SWITCH - 1)];
            let input = &mut inputs[place as usize];
            (input.turn, input.vc_turn) = ((output as u8).wrapping_add(1), vc.wrapping_add(1));
            chosen[number as usize] = PortVc::new(switch.inputs.0.wrapping_add(place), vc.into());
            number = number.wrapping_add(1);
        }
        (number, contested == S::NONE && contested_vcs == 0)
    }
}

/// Which of the eight bytes of `word` are `byte`, a bit each.
#[inline(always)]
const fn equal_bytes(word: u64, byte: u8) -> u32 {
    const LOW_BITS: u64 = 0x0101_0101_0101_0101;
    const HIGH_BITS: u64 = LOW_BITS << 7;
    // Moves bits 0, 8, 16, ... to 56, 57, 58, ...
    const GATHER: u64 = 0x0102_0408_1020_4080;
    // A byte that is 0 is the only one that gets its high bit neither by itself nor by adding to the rest of it.
    let others = word ^ (byte as u64).wrapping_mul(LOW_BITS);
    let equal = !((others & !HIGH_BITS).wrapping_add(!HIGH_BITS) | others) & HIGH_BITS;
    ((equal >> 7).wrapping_mul(GATHER) >> 56) as u32
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;

    /// How many steps it is from `turn` on to `number`, of `of` numbers once around.
    fn behind(number: u32, turn: u32, of: u32) -> u32 {
        (number + of - turn) % of
    }

    /// The same as [`CrossbarRequests::choose`] by ranks: by input, then VC, the output that is asked for; turns of inputs over outputs and VCs, and of
    /// outputs over inputs.
    struct ByRanks {
        asked: Vec<Vec<Option<u32>>>,
        turns: Vec<(u32, u32)>,
        output_turns: Vec<u32>,
    }

    impl ByRanks {
        fn choose(&mut self) -> Vec<(u32, u32)> {
            let (inputs, outputs) = (self.asked.len() as u32, self.output_turns.len() as u32);
            let mut chosen_by = vec![Vec::new(); outputs as usize];
            for (input, (asked, (turn, vc_turn))) in (0..).zip(self.asked.iter().zip(&self.turns)) {
                let vcs = asked.len() as u32;
                let ranked = (0..vcs).zip(asked).filter_map(|(vc, output)| Some((output.as_ref().copied()?, vc)));
                let best =
                    ranked.min_by_key(|(output, vc)| (behind(*output, *turn, outputs), behind(*vc, *vc_turn, vcs)));
                if let Some((output, vc)) = best {
                    chosen_by[output as usize].push((input, vc));
                }
            }
            let mut chosen = Vec::new();
            for (output, inputs_of) in (0u32..).zip(chosen_by) {
                let turn = &mut self.output_turns[output as usize];
                if let Some((input, vc)) = inputs_of.into_iter().min_by_key(|(input, _)| behind(*input, *turn, inputs))
                {
                    *turn = (input + 1) % inputs;
                    let vcs = self.asked[input as usize].len() as u32;
                    self.turns[input as usize] = ((output + 1) % outputs, (vc + 1) % vcs);
                    chosen.push((input, vc));
                }
            }
            chosen
        }
    }

    fn is_by_ranks<S: PortSet>(
        (inputs, outputs, vcs): (u32, u32, u32),
        steps: Vec<Vec<(u32, u32, Option<u32>)>>,
    ) -> Result<(), TestCaseError> {
        // The second of two switches.
        let switch = Switch { number: 1, inputs: (3, inputs), outputs: (5, outputs), words: (1, inputs.div_ceil(64)) };
        let mut requests = CrossbarRequests::<S>::new(3 + inputs as usize, 5 + outputs as usize);
        let mut model = ByRanks {
            asked: vec![vec![None; vcs as usize]; inputs as usize],
            turns: vec![(0, 0); inputs as usize],
            output_turns: vec![0; outputs as usize],
        };
        let many = vcs > VCS_AT_ONCE;
        for step in steps {
            for (input, vc, output) in step {
                let (input, vc, output) = (input % inputs, vc % vcs, output.map(|output| output % outputs));
                let at = PortVc::new(3 + input, vc);
                requests.ask_no_more(at, many);
                if let Some(output) = output {
                    requests.ask(at, output);
                }
                model.asked[input as usize][vc as usize] = output;
            }
            let asks = |input: &u32| model.asked[*input as usize].iter().any(Option::is_some);
            let ready = (0..inputs).filter(asks).fold(S::NONE, |ready, input| ready | S::only(input));
            let mut chosen = vec![PortVc::NONE; inputs as usize];
            let before = model.turns.clone();
            let (number, is_steady) = requests.choose(&switch, ready, many, &mut chosen);
            let chosen: Vec<(u32, u32)> = chosen[..number as usize].iter().map(|at| (at.port() - 3, at.vc())).collect();
            let all = model.asked.iter().flatten().flatten().count();
            prop_assert_eq!(is_steady, all == chosen.len(), "all that ask cross, or not");
            prop_assert_eq!(chosen, model.choose());
            prop_assert!(is_steady || all > 0 || before == model.turns);
        }
        Ok(())
    }

    fn steps() -> impl Strategy<Value = Vec<Vec<(u32, u32, Option<u32>)>>> {
        let request = (any::<u32>(), any::<u32>(), prop::option::weighted(0.7, any::<u32>()));
        prop::collection::vec(prop::collection::vec(request, 0..40), 1..12)
    }

    proptest! {
        /// What is chosen by bits is what ranks choose.
        #[test]
        fn bits_choose_as_ranks_do(
            sizes in (1u32..=64, 1u32..=64, 1u32..=16),
            wide in (1u32..=128, 1u32..=128, 1u32..=16),
            steps in steps(),
        ) {
            is_by_ranks::<u64>(sizes, steps.clone())?;
            is_by_ranks::<u128>(wide, steps)?;
        }

        #[test]
        fn equal_bytes_are_those_that_are_equal(bytes: [u8; 8], byte: u8, same in 0u8..=255) {
            let bytes: Vec<u8> = (0..8).map(|at| if same >> at & 1 == 1 { byte } else { bytes[at] }).collect();
            let expected = (0..8).filter(|at| bytes[*at] == byte).fold(0, |all, at| all | 1 << at);
            prop_assert_eq!(equal_bytes(u64::from_le_bytes(bytes.try_into().unwrap()), byte), expected);
        }
    }
}
