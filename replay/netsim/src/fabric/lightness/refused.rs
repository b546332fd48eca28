//! Requests for circuits that were refused, and are to be repeated.
//!
//! A ToR repeats them at fixed times, again and again. What a repetition would be told is known as long as no port of its two racks comes free or
//! may be given up: nothing happens for it until then. It counts as a request and a refusal all the same.

use super::state::ocs::{Rank, State};
use super::{Event, Lightness};
use crate::kernel::Phase;
use crate::time::SimTime;

impl Lightness {
    /// From a request at the circuit switch until its repetition is there.
    fn repetition_ps(&self) -> u64 {
        self.circuit_answer_ps() + self.config.retry_request_delay.ps() + self.cables.to_ocs
    }

    /// A request was refused.
    pub(super) fn refuse_circuit(&mut self, now: SimTime, index: u32) {
        self.counters.circuits_refused += 1;
        let circuit = &mut self.circuits[index as usize];
        circuit.refused = Some(now);
        let (from, to) = (circuit.from, circuit.to);
        self.refused.of(from, true).push(index);
        self.refused.of(to, false).push(index);
    }

    /// How many repetitions of a request that was refused have left its ToR by `until`, and how many were refused before then.
    fn repeated(&self, refused: SimTime, until: SimTime) -> (u64, u64) {
        let since = until.0.saturating_sub(refused.0);
        let each = self.repetition_ps();
        (since.saturating_add(self.cables.to_ocs) / each, since / each)
    }

    /// Requests and refusals that were not counted, as nothing happened for them.
    pub(super) fn uncounted(&self) -> (u64, u64) {
        let refused = self.circuits.iter().filter_map(|circuit| circuit.refused);
        let each = refused.map(|at| self.repeated(at, self.now));
        each.fold((0, 0), |(requests, refused), one| (requests + one.0, refused + one.1))
    }

    /// A repetition is at the circuit switch: those before it are counted, and itself.
    pub(super) fn count_repetitions(&mut self, now: SimTime, index: u32) {
        if let Some(refused) = self.circuits[index as usize].refused.take() {
            let number = self.repeated(refused, now).1;
            self.counters.circuit_requests += number;
            self.counters.circuits_refused += number - 1;
        }
    }

    /// Ports of a circuit are free, or it may be given up: who was refused for them asks again at its next time.
    pub(super) fn ports_may_be_had(&mut self, now: SimTime, index: u32) {
        let (from, to) = (self.circuits[index as usize].from, self.circuits[index as usize].to);
        self.port_may_be_had(now, from, true);
        self.port_may_be_had(now, to, false);
    }

    fn port_may_be_had(&mut self, now: SimTime, rack: u32, input: bool) {
        if self.refused.of(rack, input).is_empty() || self.port_for(now, rack, input).is_none() {
            return;
        }
        let mut waiting = std::mem::take(self.refused.of(rack, input));
        waiting.retain(|index| {
            let circuit = &self.circuits[*index as usize];
            let other = if input { circuit.to } else { circuit.from };
            if self.port_for(now, other, !input).is_none() {
                return true;
            }
            let list = self.refused.of(other, !input);
            list.retain(|one| one != index);
            self.repeat(now, *index);
            false
        });
        *self.refused.of(rack, input) = waiting;
    }

    /// The next repetition of a refused request that is not answered yet comes to the switch.
    fn repeat(&mut self, now: SimTime, index: u32) {
        let Some(refused) = self.circuits[index as usize].refused else { return };
        let (since, each) = (now.since_ps(refused), self.repetition_ps());
        let mut number = since.div_ceil(each).max(1);
        if number * each == since && self.ocs.decided == Some(now) {
            // It is there now: either its turn has not come yet, or it was refused.
            if self.ocs.turn.is_some_and(|turn| turn < self.rank(index)) {
                self.count_repetitions(now, index);
                let rank = self.rank(index);
                self.ocs.deciding.insert((rank, index));
                return;
            }
            number += 1;
        }
        let at = refused.plus_ps(number * each);
        self.queue.schedule(at, Phase::Arrive, self.circuit_place(index), Event::CircuitAsked(index));
    }

    /// In which order requests of an instant are answered: each output port's behind the rack whose request it granted last, and so the
    /// outputs, for requests of one rack share its inputs.
    pub(super) fn rank(&self, index: u32) -> Rank {
        let racks = crate::count::count(self.racks.len());
        let behind = |number: u32, last: u32| (number + racks - last - 1) % racks;
        let circuit = &self.circuits[index as usize];
        (behind(circuit.to, self.ocs.last_output), behind(circuit.from, self.ocs.last[circuit.to as usize]))
    }

    /// A circuit that is idle may be given up, if it was held for long enough.
    pub(super) fn may_be_given_up(&mut self, now: SimTime, index: u32) {
        let circuit = &self.circuits[index as usize];
        if matches!(circuit.state, State::Up(..)) && circuit.is_idle() && self.control.is_none() {
            self.ports_may_be_had(now, index);
        }
    }
}
