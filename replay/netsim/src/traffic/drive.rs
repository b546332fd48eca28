//! Lets sources and a fabric take turns until what counts has arrived.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{Plan, Sources};
use crate::fabric::packet::PacketFabric;
use crate::network::NetworkFigures;
use crate::statistics::Meter;
use crate::time::SimTime;

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: SimTime,
    /// The end of the measurement.
    pub until: SimTime,
    /// Events of the kernel so far.
    pub events: u64,
}

/// What a run leaves beside what the meter has counted.
#[derive(Clone, Debug, Default)]
pub struct Raw {
    /// When it ended.
    pub end: SimTime,
    /// Whether it was stopped before its end.
    pub stopped: bool,
    /// The network's figures at its end.
    pub figures: NetworkFigures,
    /// Virtual lanes of each link.
    pub lanes: u32,
    /// Bytes that crossed each lane of each link in the measurement, flits filled up; empty without a measurement.
    pub lane_bytes: Vec<u64>,
}

/// Progress is told no more often.
const TELL: Duration = Duration::from_millis(100);

/// A run looks up this often in its measurement, whatever happens.
const LOOKS: u64 = 256;

/// Runs until every packet that counts has arrived, but no longer than the plan says. `stop` ends it sooner; `progress` is
/// called now and then.
pub fn drive<F: PacketFabric<Meter>>(
    fabric: &mut F,
    plan: &Plan,
    sources: &mut Sources,
    stop: &AtomicBool,
    mut progress: impl FnMut(Progress),
) -> Raw {
    let slice = ((plan.until_ps - plan.from_ps) / LOOKS).max(1);
    let (from, until, end) = (SimTime(plan.from_ps), SimTime(plan.until_ps), SimTime(plan.end_ps));
    let mut before: Option<Vec<u64>> = None;
    let mut at_end: Option<Vec<u64>> = None;
    let mut now = SimTime::ZERO;
    let mut looked = SimTime::ZERO;
    let mut stopped = false;
    let mut told = Instant::now();
    loop {
        if now >= from && before.is_none() {
            before = Some(fabric.lane_bytes(now));
        }
        if now >= until && at_end.is_none() {
            at_end = Some(fabric.lane_bytes(now));
        }
        if now >= end || (now >= until && fabric.observer().outstanding == 0) {
            break;
        }
        while let Some(message) = sources.next_at(now) {
            fabric.observer().handed_over(now, &message);
            fabric.send(now, &message);
        }
        let (next_source, next_event) = (sources.next_time(), fabric.next_event());
        if now >= until && next_source.is_none() && next_event.is_none() {
            break;
        }
        if now.since_ps(looked) >= slice {
            looked = now;
            if told.elapsed() >= TELL {
                progress(Progress { now, until, events: fabric.events() });
                told = Instant::now();
            }
            if stop.load(Ordering::Relaxed) {
                stopped = true;
                break;
            }
        }
        // Not beyond a look, unless nothing happens until then anyway.
        let mut next = now.plus_ps(slice).max(next_event.unwrap_or(SimTime::MAX)).min(end);
        for edge in [from, until] {
            if edge > now {
                next = next.min(edge);
            }
        }
        next = next_source.map_or(next, |source| next.min(source));
        fabric.run_before(next);
        now = next;
    }
    let last = at_end.unwrap_or_else(|| fabric.lane_bytes(now));
    let before = before.unwrap_or_default();
    let lane_bytes = last.iter().zip(&before).map(|(last, before)| last.saturating_sub(*before)).collect();
    Raw { end: now, stopped, figures: fabric.figures(), lanes: fabric.lanes(), lane_bytes }
}
