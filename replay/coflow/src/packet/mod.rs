//! A packet-switched network that is as good as its ports: flows as fluids whose rates a scheduler decides.

mod coflowsim;
mod equal_share;
mod madd;
mod max_min;

pub use coflowsim::coflowsim_sebf;
pub use equal_share::EqualShare;
pub use madd::{Madd, Order};
pub use max_min::MaxMin;

use netsim::time::SimTime;
use netsim::units::{DurationPs, Rate};

use crate::demand::{Coflow, CoflowError, Flow, PortId, Workload, bits_per_s};

/// A flow with less left than this, in bytes, is at its end.
const NOTHING: f64 = 1e-3;

/// When the scheduler looks at what is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Ends of flows are seen, and rates changed, at multiples of this; zero: at once.
    pub tick: DurationPs,
    /// Coflows begin at the last multiple of this before they arrive, as in `CoflowSim`, and their time counts from there; zero:
    /// when they arrive.
    pub epoch: DurationPs,
}

/// When a coflow began and when it was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// When it began to wait.
    pub start: SimTime,
    /// When its last flow ended.
    pub end: SimTime,
}

impl Completion {
    /// The coflow's completion time.
    #[must_use]
    pub fn time(&self) -> DurationPs {
        self.end - self.start
    }
}

/// A flow that is not at its end.
#[derive(Clone, Copy, Debug)]
pub struct ActiveFlow {
    /// The sender.
    pub from: PortId,
    /// The receiver.
    pub to: PortId,
    /// Bytes that are left.
    pub left: f64,
    /// What the scheduler gave it, bytes a second.
    pub rate: f64,
}

/// A coflow that is not complete.
#[derive(Clone, Debug)]
pub struct ActiveCoflow {
    /// Its place in the workload.
    pub index: usize,
    /// Bytes of its busiest port when it began.
    pub bottleneck: f64,
    /// Its flows, in their order.
    pub flows: Vec<ActiveFlow>,
}

/// Decides flows' rates.
pub trait RateAllocator {
    /// Whether rates change at the end of a flow, and not of coflows alone.
    fn is_at_ends_of_flows(&self) -> bool;

    /// Sets the rates of all flows. Each port sends and receives `port_rate` bytes a second at most.
    fn allocate(&mut self, coflows: &mut [ActiveCoflow], ports: usize, port_rate: f64);
}

/// When each coflow of the workload is complete, in its order.
///
/// # Errors
/// If a port would be busy for longer than a simulation may take.
pub fn simulate(
    workload: &Workload,
    rate: Rate,
    clock: Clock,
    allocator: &mut dyn RateAllocator,
) -> Result<Vec<Completion>, CoflowError> {
    workload.check(rate, &[("a tick", clock.tick), ("an epoch", clock.epoch)])?;
    let port_rate = bits_per_s(rate) / 8.0;
    let mut completions = vec![Completion { start: SimTime::ZERO, end: SimTime::ZERO }; workload.coflows().len()];
    let mut arrivals = workload.coflows().iter().enumerate().peekable();
    let mut active: Vec<ActiveCoflow> = Vec::new();
    let mut now = SimTime::ZERO;
    let mut is_news = false;
    loop {
        while let Some((index, coflow)) = arrivals.next_if(|(_, coflow)| clock.begin(coflow) <= now) {
            completions[index].start = if clock.epoch == DurationPs::ZERO { coflow.arrival } else { now };
            active.push(begun(index, coflow, workload.ports()));
            is_news = true;
        }
        if is_news {
            allocator.allocate(&mut active, workload.ports(), port_rate);
            is_news = false;
        }
        let next_arrival = arrivals.peek().map(|(_, coflow)| clock.begin(coflow));
        let ends_s = active.iter().map(|coflow| coflow.time_to_event(allocator.is_at_ends_of_flows()));
        let least_s = ends_s.fold(f64::INFINITY, f64::min);
        let next_end = clock.after(now, least_s);
        let Some(next) = next_end.into_iter().chain(next_arrival).min() else { return Ok(completions) };
        if next > SimTime::LATEST {
            let id = active.first().map_or_else(String::new, |one| workload.coflows()[one.index].id.clone());
            return Err(CoflowError::Endless { id });
        }
        let is_end = next_end == Some(next);
        let passed_s = SimTime((next - now).ps()).as_secs_f64();
        now = next;
        active.retain_mut(|coflow| {
            let before = coflow.flows.len();
            coflow.flows.retain_mut(|flow| {
                // What ends first ends now, whatever rounding leaves of it.
                let is_over = is_end && flow.left / flow.rate <= least_s;
                flow.left -= flow.rate * passed_s;
                !is_over && flow.left > NOTHING
            });
            is_news |= coflow.flows.len() < before && allocator.is_at_ends_of_flows();
            if coflow.flows.is_empty() {
                completions[coflow.index].end = now;
                is_news = true;
            }
            !coflow.flows.is_empty()
        });
    }
}

impl ActiveCoflow {
    /// Seconds until one of its flows ends, or all; infinite if that is never at these rates.
    fn time_to_event(&self, is_any_flow: bool) -> f64 {
        let times = self.flows.iter().map(|flow| flow.left / flow.rate);
        if is_any_flow { times.fold(f64::INFINITY, f64::min) } else { times.fold(0.0, f64::max) }
    }
}

impl Clock {
    /// When a coflow begins.
    fn begin(self, coflow: &Coflow) -> SimTime {
        let at = match self.epoch.ps() {
            0 => coflow.arrival,
            epoch => SimTime(coflow.arrival.0.div_ceil(epoch).saturating_sub(1) * epoch),
        };
        match self.tick.ps() {
            0 => at,
            tick => SimTime(at.0.div_ceil(tick) * tick),
        }
    }

    /// The first time at which it is seen that what takes `seconds` from `now` on is over; `None` if that is never.
    fn after(self, now: SimTime, seconds: f64) -> Option<SimTime> {
        if !seconds.is_finite() {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cast saturates, and so does plus_ps"
        )]
        let ps = |value: f64| value as u64;
        Some(match self.tick.ps() {
            0 => now.plus_ps(ps((seconds * 1e12).ceil()).max(1)),
            tick => {
                #[expect(clippy::cast_precision_loss, reason = "at most 100 s")]
                let ticks = seconds * 1e12 / tick as f64;
                // A flow whose last byte goes with a tick is seen at its end in spite of rounding.
                now.plus_ps(ps((ticks - 1e-9).ceil()).max(1).saturating_mul(tick))
            }
        })
    }
}

fn begun(index: usize, coflow: &Coflow, ports: usize) -> ActiveCoflow {
    let of = |flow: &Flow| ActiveFlow { from: flow.from, to: flow.to, left: flow.bytes, rate: 0.0 };
    let flows: Vec<ActiveFlow> = coflow.flows.iter().map(of).collect();
    let bottleneck = Loads::of(&flows, ports).greatest();
    ActiveCoflow { index, bottleneck, flows }
}

/// Bytes that are left for each port to send and to receive.
struct Loads {
    sends: Vec<f64>,
    receives: Vec<f64>,
}

impl Loads {
    fn of(flows: &[ActiveFlow], ports: usize) -> Self {
        let mut loads = Self { sends: vec![0.0; ports], receives: vec![0.0; ports] };
        for flow in flows {
            loads.sends[flow.from.index()] += flow.left;
            loads.receives[flow.to.index()] += flow.left;
        }
        loads
    }

    fn greatest(&self) -> f64 {
        self.sends.iter().chain(&self.receives).copied().fold(0.0, f64::max)
    }
}
