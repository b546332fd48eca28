//! Switches whose crossbar is given by the shortest of all rules: inputs choose first, once, by round robin, have one way into it, and what is given
//! counts at once.

use super::InputQueued;
use super::requests::{COPIED_AT_ONCE, VCS_AT_ONCE};
use super::slot::Slot;
use super::state::{Crossing, PortVc, State, Switch, next};
use crate::fabric::clocked::ports::NONE;
use crate::fabric::packet::Observer;

impl<O: Observer> InputQueued<O> {
    /// What the switches in `working` do in cycle `now`: first each decides, then all that was decided happens, as no switch sees in a cycle what others
    /// do in it. Those stay there that can do something in the next cycle, as far as is known.
    pub(super) fn work_plainly(&mut self, working: &mut Vec<u32>, now: u64) {
        for number in working.iter() {
            if self.marks_of(*number).heads != 0 {
                let switch = self.switches[*number as usize];
                self.allocate_vcs(&switch, now);
            }
        }
        let mut crossing = 0;
        for number in working.iter() {
            let switch = self.switches[*number as usize];
            crossing = match self.steady[*number as usize] {
                NONE => self.match_crossbar(&switch, crossing),
                steady => self.choose_again(&switch, steady as usize, crossing),
            };
        }
        self.given_vcs_count(now);
        let plainly = self.plain_links && self.log.is_none() && self.occupancy.is_none();
        for place in 0..crossing {
            let at = self.crossing_vcs[place];
            if plainly {
                self.crosses_plainly(at, now);
            } else {
                self.cross::<true>(Crossing { at, way: 0, held: false }, now);
            }
        }
        // Which stay is left to chance, and nothing branches by it.
        let mut stay = 0usize;
        for place in 0..working.len() {
            let switch = working[place];
            let more = self.has_more(switch);
            self.listed[switch as usize] = more;
            working[stay] = switch;
            stay = stay.wrapping_add(more.into());
        }
        working.truncate(stay);
    }

    /// What inputs of `switch` choose that outputs choose, too, crosses, behind the first `crossing` of this cycle: returns how many cross so far. If no
    /// two inputs have chosen the same output, nor one among several VCs, all turns stay as they are from then on, and the same is chosen as long as the
    /// same VCs are ready.
    fn match_crossbar(&mut self, switch: &Switch, crossing: usize) -> usize {
        let chosen = &mut self.crossing_vcs[crossing..];
        let many = self.vcs > VCS_AT_ONCE;
        let (number, is_steady) = if self.is_wide {
            let words = self.marks[switch.words()].iter().rev();
            let ready = words.fold(0, |ready, marks| ready << u64::BITS | u128::from(marks.ready));
            self.wide.choose(switch, ready, many, chosen)
        } else {
            self.narrow.choose(switch, self.marks[switch.number as usize].ready, many, chosen)
        };
        if is_steady {
            self.steady[switch.number as usize] = number;
            let first = switch.inputs.0 as usize;
            self.chosen[first..first.wrapping_add(number as usize)].copy_from_slice(&chosen[..number as usize]);
        }
        crossing.wrapping_add(number as usize)
    }

    /// The same again, `number` of the switch.
    #[inline(always)]
    fn choose_again(&mut self, switch: &Switch, number: usize, crossing: usize) -> usize {
        let chosen = &self.chosen[switch.inputs.0 as usize..];
        // As many at once as there mostly are, and no call: behind them there is room for what is not wanted.
        for first in (0..number).step_by(COPIED_AT_ONCE) {
            let to = &mut self.crossing_vcs[crossing.wrapping_add(first)..][..COPIED_AT_ONCE];
            to.copy_from_slice(&chosen[first..][..COPIED_AT_ONCE]);
        }
        crossing.wrapping_add(number)
    }

    /// The first flit of `at`, whose packet has been given the VC `to`, asks for the crossbar.
    #[inline]
    pub(super) fn ask_plainly(&mut self, at: PortVc, to: PortVc, switch: u32) {
        let output = to.port().wrapping_sub(self.switches[switch as usize].outputs.0);
        if self.is_wide { self.wide.ask(at, output) } else { self.narrow.ask(at, output) }
    }

    /// It does not, or no more.
    #[inline]
    pub(super) fn ask_plainly_no_more(&mut self, at: PortVc) {
        let many = self.vcs > VCS_AT_ONCE;
        if self.is_wide { self.wide.ask_no_more(at, many) } else { self.narrow.ask_no_more(at, many) }
    }

    /// The first flit of a VC crosses the crossbar: as [`Self::cross`] by the shortest of all rules, written out for what that mostly does.
    fn crosses_plainly(&mut self, at: PortVc, now: u64) {
        let index = self.index(at);
        let buffer = self.config.buffer;
        let state = &mut self.input_vcs[index];
        let (first, to, packet, head) = (state.first, state.given, state.packet, !state.begun);
        let (second, left) = (next(first, buffer), state.left.wrapping_sub(1));
        let tail = left == 0;
        (state.first, state.left, state.begun) = (second, left, !tail);
        if tail {
            state.state = State::Idle;
        }
        let ring = self.ring(index);
        let here = &mut self.slots[ring.wrapping_add(first as usize)];
        let is_wanted = here.is_wanted();
        *here = Slot::gone(now);
        let behind = self.slots[ring.wrapping_add(second as usize)];

        let place = self.index(to);
        let vc = &mut self.output_vcs[place];
        let (ring, there, credits) = (vc.ring, vc.next, vc.credits.wrapping_sub(1));
        (vc.next, vc.credits, vc.sent) = (next(there, buffer), credits, vc.sent.wrapping_add(1));
        let arrives = now.wrapping_add(vc.arrives_in.into());
        self.moved = self.moved.wrapping_add(1);
        let there_place = ring.wrapping_add(there as usize);
        if ring >= self.rings_of_hosts {
            self.slots[there_place] = Slot::gone(arrives);
            if tail {
                self.arriving.put(arrives, packet);
            }
        } else {
            let before = if there == 0 { buffer } else { there }.wrapping_sub(1);
            let comes_first = self.slots[ring.wrapping_add(before as usize)].is_gone();
            self.slots[there_place] = Slot::coming(arrives);
            if head {
                self.heads[there_place] = packet;
            }
            if comes_first {
                let end = self.outputs[to.port() as usize].end;
                self.arrivals.put(arrives, PortVc::new(end, to.vc()));
            }
        }
        if is_wanted {
            let input = &self.inputs[at.port() as usize];
            self.credits.put(now.wrapping_add(input.credit_delay.into()), PortVc::new(input.sender, at.vc()));
        }
        if head {
            self.head_leaves(to, packet, arrives);
        }
        if tail || credits == 0 || behind.is_gone() || !behind.by(now.wrapping_add(1)) {
            self.goes_behind(at, to, tail, behind, now);
        }
    }
}
