//! Sunflow (Huang, Sun, Ng: *Sunflow: Efficient Optical Circuit Scheduling for Coflows*, CoNEXT 2016): circuits are set up one
//! by one, without stopping the others, and each stays until its flow is at its end. Coflows reserve ports in an order; one
//! that is behind takes what those before it leave.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use netsim::time::SimTime;
use netsim::units::{DurationPs, Rate};

use super::{Circuit, Demand, demands};
use crate::bounds::packet_bound;
use crate::demand::{CoflowError, PortId, Workload};
use crate::packet::Completion;

/// Which coflow reserves its ports first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// The one with the smallest bottleneck of all that it has to send.
    Shortest,
    /// The one that arrived first.
    Arrival,
}

/// When each coflow of the workload is complete, in its order. `on_circuit` gets each circuit that was set up.
///
/// All is planned anew when a coflow arrives: one of higher priority takes circuits from those behind it, whose rest pays a new
/// set-up. A circuit that is up, or being set up, and is wanted at once again goes on.
///
/// # Errors
/// If a port would be busy for longer than a simulation may take, or the delay is longer than 100 s.
pub fn sunflow(
    workload: &Workload,
    rate: Rate,
    delay: DurationPs,
    priority: Priority,
    mut on_circuit: impl FnMut(Circuit),
) -> Result<Vec<Completion>, CoflowError> {
    workload.check(rate, &[("a reconfiguration delay", delay)])?;
    let coflows = workload.coflows();
    let mut demands = demands(workload, rate);
    let bounds: Vec<DurationPs> = coflows.iter().map(|coflow| packet_bound(coflow, rate)).collect();
    let mut completions: Vec<Completion> =
        coflows.iter().map(|coflow| Completion { start: coflow.arrival, end: coflow.arrival }).collect();
    let mut order: Vec<usize> = Vec::new();
    let mut up = UpCircuits::new(workload.ports());
    let mut arrived = 0;
    while arrived < coflows.len() {
        let now = coflows[arrived].arrival;
        while arrived < coflows.len() && coflows[arrived].arrival == now {
            order.push(arrived);
            arrived += 1;
        }
        if priority == Priority::Shortest {
            order.sort_by_key(|&coflow| bounds[coflow]);
        }
        let until = coflows.get(arrived).map_or(SimTime::MAX, |next| next.arrival);
        let mut table = ReservationTable::new(workload.ports());
        let mut next_up = UpCircuits::new(workload.ports());
        for (place, &coflow) in order.iter().enumerate() {
            // A circuit is not set up where a reservation of a coflow before begins within a delay. So each coflow has to know
            // what those before it reserve until a delay after its own horizon; what they reserve later changes nothing.
            let behind = (order.len() - 1 - place) as u64;
            let horizon = until.plus_ps(delay.ps().saturating_mul(behind));
            let plan = Plan { demands: &demands[coflow], now, horizon, delay, up: &up };
            let reservations = plan.reserve(&mut table);
            if reservations.iter().any(|one| one.circuit.end > SimTime::LATEST) {
                return Err(CoflowError::Endless { id: coflows[coflow].id.clone() });
            }
            for Reservation { demand, circuit } in reservations {
                let Some(done) = circuit.until(until) else { continue };
                let left = &mut demands[coflow][demand].left;
                *left = DurationPs(left.ps() - done.busy.ps());
                if done.busy > DurationPs::ZERO {
                    completions[coflow].end = completions[coflow].end.max(done.end);
                }
                // One that ends just then is still there.
                if circuit.end >= until {
                    next_up.set(&circuit);
                }
                on_circuit(done);
            }
        }
        order.retain(|&coflow| demands[coflow].iter().any(|demand| demand.left > DurationPs::ZERO));
        up = next_up;
    }
    Ok(completions)
}

/// Circuits that are there when all is planned anew.
struct UpCircuits {
    /// By sending port: to which port, and from when it can carry bytes.
    to: Vec<Option<(PortId, SimTime)>>,
}

impl UpCircuits {
    fn new(ports: usize) -> Self {
        Self { to: vec![None; ports] }
    }

    fn set(&mut self, circuit: &Circuit) {
        self.to[circuit.from.index()] = Some((circuit.to, circuit.up));
    }

    /// How long a circuit that is wanted now has to be set up, if it is there.
    fn rest(&self, demand: &Demand, now: SimTime) -> Option<DurationPs> {
        let (to, up) = self.to[demand.from.index()]?;
        (to == demand.to).then(|| DurationPs(up.since_ps(now)))
    }
}

impl Circuit {
    /// What there is of it before a time; `None` if it begins later.
    fn until(self, time: SimTime) -> Option<Self> {
        if self.start >= time {
            return None;
        }
        let end = self.end.min(time);
        Some(Self { end, up: self.up.min(end), busy: DurationPs(end.since_ps(self.up)), ..self })
    }
}

struct Reservation {
    /// The demand's place in its coflow.
    demand: usize,
    circuit: Circuit,
}

/// When ports are taken, each in order of time.
struct ReservationTable {
    sends: Vec<Vec<(SimTime, SimTime)>>,
    receives: Vec<Vec<(SimTime, SimTime)>>,
}

impl ReservationTable {
    fn new(ports: usize) -> Self {
        Self { sends: vec![Vec::new(); ports], receives: vec![Vec::new(); ports] }
    }

    /// Until when both ports are free from `time` on; `None` if one is not.
    fn free_until(&self, demand: &Demand, time: SimTime) -> Option<SimTime> {
        let sender = free_until(&self.sends[demand.from.index()], time)?;
        Some(sender.min(free_until(&self.receives[demand.to.index()], time)?))
    }

    fn take(&mut self, circuit: &Circuit) {
        for taken in [&mut self.sends[circuit.from.index()], &mut self.receives[circuit.to.index()]] {
            let place = taken.partition_point(|(start, _)| *start < circuit.start);
            taken.insert(place, (circuit.start, circuit.end));
        }
    }
}

fn free_until(taken: &[(SimTime, SimTime)], time: SimTime) -> Option<SimTime> {
    let place = taken.partition_point(|(start, _)| *start <= time);
    if place > 0 && taken[place - 1].1 > time {
        return None;
    }
    Some(taken.get(place).map_or(SimTime::MAX, |(start, _)| *start))
}

/// What one coflow reserves.
struct Plan<'a> {
    demands: &'a [Demand],
    now: SimTime,
    /// What is reserved later is never asked for.
    horizon: SimTime,
    delay: DurationPs,
    up: &'a UpCircuits,
}

impl Plan<'_> {
    fn reserve(&self, table: &mut ReservationTable) -> Vec<Reservation> {
        let ports = table.sends.len();
        let mut left: Vec<DurationPs> = self.demands.iter().map(|demand| demand.left).collect();
        // Demands that are not at their end, by their ports.
        let mut of_sender: Vec<Vec<usize>> = vec![Vec::new(); ports];
        let mut of_receiver: Vec<Vec<usize>> = vec![Vec::new(); ports];
        let mut releases = BinaryHeap::new();
        for (place, demand) in self.demands.iter().enumerate().filter(|(place, _)| left[*place] > DurationPs::ZERO) {
            of_sender[demand.from.index()].push(place);
            of_receiver[demand.to.index()].push(place);
        }
        for port in 0..ports {
            for (side, demands, taken) in [
                (Side::Sends, &of_sender[port], &table.sends[port]),
                (Side::Receives, &of_receiver[port], &table.receives[port]),
            ] {
                if !demands.is_empty() {
                    releases.push(Reverse((self.now, side, port)));
                    releases.extend(taken.iter().map(|(_, end)| Reverse((*end, side, port))));
                }
            }
        }
        let mut reservations = Vec::new();
        let mut ready = Vec::new();
        while let Some(&Reverse((time, ..))) = releases.peek() {
            // The caller sees that a circuit ends that late.
            if time > self.horizon || time > SimTime::LATEST {
                break;
            }
            ready.clear();
            while let Some(&Reverse((at, side, port))) = releases.peek()
                && at == time
            {
                releases.pop();
                let demands = match side {
                    Side::Sends => &mut of_sender[port],
                    Side::Receives => &mut of_receiver[port],
                };
                demands.retain(|&place| left[place] > DurationPs::ZERO);
                ready.extend_from_slice(demands);
            }
            ready.sort_unstable();
            ready.dedup();
            // A coflow does not take a circuit from itself.
            ready.sort_by_key(|&place| time > self.now || self.up.rest(&self.demands[place], self.now).is_none());
            for &place in &ready {
                let demand = &self.demands[place];
                let Some(free) = table.free_until(demand, time) else { continue };
                let set_up = match self.up.rest(demand, self.now) {
                    Some(rest) if time == self.now => rest,
                    _ => self.delay,
                };
                let up = time + set_up;
                // A circuit that would carry nothing is not set up.
                if up >= free {
                    continue;
                }
                let busy = left[place].min(free - up);
                left[place] = DurationPs(left[place].ps() - busy.ps());
                let circuit = Circuit { from: demand.from, to: demand.to, start: time, up, end: up + busy, busy };
                table.take(&circuit);
                releases.push(Reverse((circuit.end, Side::Sends, demand.from.index())));
                releases.push(Reverse((circuit.end, Side::Receives, demand.to.index())));
                reservations.push(Reservation { demand: place, circuit });
            }
        }
        reservations
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Sends,
    Receives,
}
