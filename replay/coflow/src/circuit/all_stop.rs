//! A switch that stops as a whole while it is set up anew.

use std::collections::VecDeque;

use netsim::circuits::{DemandMatrix, MatrixScheduler};
use netsim::time::SimTime;
use netsim::units::{DurationPs, Rate};

use super::{Circuit, demands};
use crate::demand::{CoflowError, PortId, Workload};
use crate::packet::Completion;

/// Slots after which a simulation is given up.
const MAX_SLOTS: u64 = 10_000_000;

/// When each coflow of the workload is complete, in its order. `on_circuit` gets each circuit that was set up for something.
///
/// The scheduler sees all that is waiting, whichever coflow's it is, and is asked again when its slots are over; what arrives
/// meanwhile waits for that, but may use circuits that are there. Of one pair, coflows go first that arrived first. A slot
/// ends early when nothing is left to be sent in it, and does not take place without demand, but for oblivious schedulers.
///
/// # Errors
/// If a port would be busy for longer than a simulation may take, the delay is longer than 100 s, or there are more than ten million slots.
pub fn all_stop(
    workload: &Workload,
    rate: Rate,
    delay: DurationPs,
    scheduler: &mut dyn MatrixScheduler,
    mut on_circuit: impl FnMut(Circuit),
) -> Result<Vec<Completion>, CoflowError> {
    workload.check(rate, &[("a reconfiguration delay", delay)])?;
    let coflows = workload.coflows();
    let mut waiting = Waiting::new(workload, rate);
    let mut now = SimTime::ZERO;
    let mut slots = 0;
    loop {
        waiting.admit(workload, now);
        if waiting.matrix.is_zero() {
            let Some(next) = coflows.get(waiting.arrived) else { return Ok(waiting.completions) };
            now = now.max(next.arrival);
            continue;
        }
        for slot in scheduler.slots(&waiting.matrix) {
            let up = now + delay;
            waiting.admit(workload, up);
            let longest = slot.to.iter().enumerate().map(|(from, &to)| waiting.matrix.get(from, to)).max().unwrap_or(0);
            if longest == 0 && !scheduler.is_oblivious() {
                continue;
            }
            slots += 1;
            if slots > MAX_SLOTS {
                return Err(CoflowError::TooManySlots { most: MAX_SLOTS });
            }
            let end =
                up + if scheduler.is_oblivious() { slot.duration } else { slot.duration.min(DurationPs(longest)) };
            if end > SimTime::LATEST {
                let id = coflows[waiting.arrived.saturating_sub(1)].id.clone();
                return Err(CoflowError::Endless { id });
            }
            for (from, &to) in slot.to.iter().enumerate() {
                let busy = waiting.send(from, to, up, end - up);
                if busy > DurationPs::ZERO {
                    let port = |port: usize| PortId(u16::try_from(port).unwrap_or(u16::MAX));
                    on_circuit(Circuit { from: port(from), to: port(to), start: now, up, end, busy });
                }
            }
            now = end;
        }
    }
}

/// What has arrived and is not sent.
struct Waiting {
    /// Demands of coflows, taken when they arrive.
    demands: Vec<Vec<super::Demand>>,
    /// How many coflows have arrived.
    arrived: usize,
    matrix: DemandMatrix,
    /// By sender and receiver: coflows and what they have left.
    queues: Vec<VecDeque<(usize, u64)>>,
    completions: Vec<Completion>,
}

impl Waiting {
    fn new(workload: &Workload, rate: Rate) -> Self {
        let ports = workload.ports();
        let unsent = |coflow: &crate::Coflow| Completion { start: coflow.arrival, end: coflow.arrival };
        Self {
            demands: demands(workload, rate),
            arrived: 0,
            matrix: DemandMatrix::new(ports),
            queues: vec![VecDeque::new(); ports * ports],
            completions: workload.coflows().iter().map(unsent).collect(),
        }
    }

    /// Takes what has arrived until `time`.
    fn admit(&mut self, workload: &Workload, time: SimTime) {
        while workload.coflows().get(self.arrived).is_some_and(|coflow| coflow.arrival <= time) {
            for demand in std::mem::take(&mut self.demands[self.arrived]) {
                let (from, to) = (demand.from.index(), demand.to.index());
                *self.matrix.cell(from, to) += demand.left.ps();
                self.queues[from * self.matrix.size() + to].push_back((self.arrived, demand.left.ps()));
            }
            self.arrived += 1;
        }
    }

    /// Sends what a pair has for at most so long. Returns for how long it had something.
    fn send(&mut self, from: usize, to: usize, start: SimTime, most: DurationPs) -> DurationPs {
        let mut sent = 0;
        let queue = &mut self.queues[from * self.matrix.size() + to];
        while sent < most.ps()
            && let Some((coflow, left)) = queue.front_mut()
        {
            let now = (*left).min(most.ps() - sent);
            *left -= now;
            sent += now;
            if *left == 0 {
                let end = &mut self.completions[*coflow].end;
                *end = (*end).max(start + DurationPs(sent));
                queue.pop_front();
            }
        }
        *self.matrix.cell(from, to) -= sent;
        DurationPs(sent)
    }
}
