//! The loop of [`drive`](super::drive()) for a fabric that runs in windows or optimistically, perhaps on several threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::Plan;
use super::drive::{Progress, Raw, TELL};
use super::sources::{Admission, HostSources, Injection, Sending, Sources};
use super::steps::Settling;
use crate::fabric::FabricError;
use crate::fabric::optimistic::OptimisticOptions;
use crate::fabric::packet::{LinkTime, PacketRecord};
use crate::fabric::windowed::Windowed;
use crate::fabric::windows::{LastStops, WindowProgress, WindowedRun, WindowsCost, WindowsWanted};
use crate::network::HostIndex;
use crate::statistics::{Meter, ParallelCost, SeriesRow};
use crate::time::SimTime;

/// What a run leaves.
pub(super) struct Outcome {
    pub raw: Raw,
    pub meter: Meter,
    /// Every packet that was delivered, if it was kept; in any order.
    pub records: Vec<PacketRecord>,
    /// What other threads have computed, in seconds.
    pub cpu_s: f64,
    pub parallel: ParallelCost,
}

/// Runs until every packet that counts has arrived, but no longer than the plan says, as `drive` does.
pub(super) fn drive_windows(
    network: Windowed,
    (plan, link, sending): (&Plan, &LinkTime, &Sending),
    (meter, wanted, optimistic): (Meter, WindowsWanted, Option<OptimisticOptions>),
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, FabricError> {
    let messages = |hosts: &[HostIndex]| HostSources::new(sending, hosts);
    Ok(match network {
        Windowed::StoreAndForward(network) => {
            let (hosts, bytes) = (network.hosts() as usize, sending.packet_bytes(link));
            let network = network.on_threads(wanted.threads);
            match optimistic {
                Some(options) => {
                    let run = network.into_optimistic(wanted.parts(hosts), &bytes, meter, messages, options);
                    drive(run, plan, stop, progress)
                }
                None => {
                    let run = network.into_parts(wanted.parts_to_share(hosts), &bytes, meter, messages);
                    drive(run, plan, stop, progress)
                }
            }
        }
        Windowed::Credit(network) => drive(network.into_parts(meter, messages)?, plan, stop, progress),
        Windowed::Ethernet(network) => {
            drive(network.into_parts(meter, messages, ends_in_order(sending, plan.hosts)), plan, stop, progress)
        }
    })
}

/// The source and the destination of one message after the other that is handed over before a time, as one queue of events has them.
fn ends_in_order(sending: &Sending, hosts: u32) -> impl FnMut(SimTime) -> Option<(HostIndex, HostIndex)> {
    let mut sources = Sources::new(sending, hosts);
    move |until| loop {
        let at = sources.next_time().filter(|at| *at < until)?;
        if let Some(Injection::HandedOver(message)) = sources.next_at(at, |_| Admission::Free) {
            return Some((message.source, message.destination));
        }
    }
}

pub(super) fn drive(
    mut run: impl WindowedRun<Meter>,
    plan: &Plan,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Outcome {
    let mut reported_at = Instant::now();
    let mut stopped_at = SimTime::ZERO;
    let parts = run.parts() as u64;
    let mut look = |window: WindowProgress| {
        stopped_at = window.now;
        if reported_at.elapsed() >= TELL {
            reported_at = Instant::now();
            progress(Progress { now: window.now, until: plan.foreseen(), events: window.events * parts });
        }
        stop.load(Ordering::Relaxed)
    };
    let (mut from, mut until, mut last) = (SimTime(plan.from_ps), SimTime(plan.until_ps), SimTime(plan.end_ps));
    let (mut settling, mut settled, mut stopped) = (Settling::new(&plan.steps), None, false);
    while let Some(waiting) = settling.as_mut().filter(|_| !stopped) {
        from = waiting.next();
        stopped = run.run_before(from, &mut look);
        settled = waiting.look(|index| row(&run, index)).filter(|_| !stopped);
        if settled.is_some() {
            settling = None;
            run.observers_mut().for_each(|meter| until = plan.begin_measurement(meter, from));
            last = SimTime(until.0.saturating_add(plan.steps.drain_ps));
        }
    }
    let mut now = from;
    stopped = stopped || run.run_before(now, &mut look);
    let before = run.lane_bytes(now);
    if !stopped {
        now = until;
        stopped = run.run_before(now, &mut look);
    }
    let after = (!stopped).then(|| run.lane_bytes(now));
    if !stopped {
        let stops = Drain { from, until, last, look_ps: plan.look_ps(), window_ps: run.window_ps() };
        (now, stopped) = run.run_stops(now, &mut look, &stops);
    }
    let end = if stopped { stopped_at } else { now };
    let mut lane_bytes = after.unwrap_or_else(|| run.lane_bytes(end));
    run.forget_packets();
    lane_bytes.iter_mut().zip(before).for_each(|(bytes, before)| *bytes = bytes.saturating_sub(before));
    // Stopped before the network had settled: nothing was measured.
    let (from, until) = if settling.is_some() { (end, end) } else { (from, until) };
    let raw = Raw {
        end,
        stopped,
        figures: run.take_figures(),
        lanes: run.lanes(),
        lane_bytes,
        occupancy: Vec::new(),
        measured_ps: (from.0, until.0),
        settled,
        bursts: Vec::new(),
    };
    let records = run.observers_mut().flat_map(Meter::take_records).collect();
    let WindowsCost { threads, windows, remote_events, barrier_wait_s, others_cpu_s } = run.cost();
    let parallel = ParallelCost {
        parts: run.parts(),
        threads,
        lookahead_ps: run.window_ps(),
        windows,
        remote_events,
        barrier_wait_s,
        optimistic: run.optimistic_cost(),
    };
    let mut meter = run.into_observer();
    if settled.is_some() {
        meter.measure(from, until);
    }
    Outcome { raw, meter, records, cpu_s: others_cpu_s, parallel }
}

/// What is under way when the measurement ends: from then on it is looked now and then whether all of it has arrived.
struct Drain {
    /// From when until when what is handed over counts.
    from: SimTime,
    until: SimTime,
    /// When the run ends at the latest.
    last: SimTime,
    look_ps: u64,
    window_ps: u64,
}

impl LastStops<Meter> for Drain {
    fn awaited(&self, meter: &Meter) -> i64 {
        let (counted, ended) = meter.counted();
        counted.cast_signed() - ended.cast_signed()
    }

    fn counts(&self, handed_over: SimTime) -> bool {
        (self.from..self.until).contains(&handed_over)
    }

    /// A look within a window runs a part of it. It is left out where it would find a packet under way.
    fn next(&self, now: SimTime, outlasts: bool) -> Option<SimTime> {
        let border = if outlasts { end_of_window(now, self.window_ps) } else { SimTime::ZERO };
        (now < self.last).then(|| next_look(now, self.until, self.look_ps).max(border).min(self.last))
    }
}

/// The first look later than `now`; they are counted from the end of the measurement, `until`.
const fn next_look(now: SimTime, until: SimTime, look_ps: u64) -> SimTime {
    until.plus_ps((now.since_ps(until) / look_ps + 1).saturating_mul(look_ps))
}

/// When the window is over in which `now` lies.
const fn end_of_window(now: SimTime, width_ps: u64) -> SimTime {
    SimTime((now.0 / width_ps + 1).saturating_mul(width_ps))
}

/// Interval `index` of what all parts have seen.
fn row(run: &impl WindowedRun<Meter>, index: usize) -> SeriesRow {
    let rows = run.observers().filter_map(Meter::steps).map(|steps| steps.get(index));
    rows.fold(SeriesRow::default(), |mut sum, row| {
        sum.add(&row);
        sum
    })
}
