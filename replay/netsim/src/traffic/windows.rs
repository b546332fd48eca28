//! The loop of [`drive`](super::drive()) for a fabric that runs in windows, perhaps on several threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::Plan;
use super::drive::{Progress, Raw, TELL};
use super::options::{EngineKind, RunOptions};
use super::sources::{HostSources, Sending};
use crate::fabric::packet::{LinkTime, PacketRecord};
use crate::fabric::store_and_forward::windows::{WindowProgress, Windowed, Windows};
use crate::statistics::Meter;
use crate::time::SimTime;

/// A thread more is worth it from so many hosts on.
const HOSTS_OF_A_THREAD: usize = 2_048;

/// What a run leaves.
pub(super) struct Outcome {
    pub raw: Raw,
    pub meter: Meter,
    /// Every packet that was delivered, if it was kept.
    pub records: Vec<PacketRecord>,
    /// What other threads have computed, in seconds.
    pub cpu_s: f64,
}

/// Runs until every packet that counts has arrived, but no longer than the plan says, as `drive` does.
pub(super) fn drive_windows(
    network: Windowed,
    (plan, link, sending): (&Plan, &LinkTime, &Sending),
    options: RunOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Outcome {
    let smallest = sending.smallest_packet(link);
    let meter = Meter::new(plan, options.keep);
    let most = match options.engine {
        // A window of fewer hosts is over sooner than threads have met.
        EngineKind::Auto => options.threads.min(network.hosts() as usize / HOSTS_OF_A_THREAD),
        EngineKind::Events | EngineKind::Windows => options.threads,
    };
    let parts = u16::try_from(most.max(1)).unwrap_or(u16::MAX);
    let mut run = network.into_parts(parts, smallest, meter, |hosts| HostSources::new(sending, hosts));
    let mut reported_at = Instant::now();
    let mut stopped_at = SimTime::ZERO;
    let parts = run.parts() as u64;
    let mut look = |window: WindowProgress| {
        stopped_at = window.now;
        if reported_at.elapsed() >= TELL {
            reported_at = Instant::now();
            progress(Progress { now: window.now, until: SimTime(plan.until_ps), events: window.events * parts });
        }
        stop.load(Ordering::Relaxed)
    };
    let mut now = SimTime(plan.from_ps);
    let mut stopped = run.run_before(now, &mut look);
    let before = run.link_bytes(now);
    if !stopped {
        now = SimTime(plan.until_ps);
        stopped = run.run_before(now, &mut look);
    }
    let after = (!stopped).then(|| run.link_bytes(now));
    while !stopped && now.0 < plan.end_ps && outstanding(&run) > 0 {
        now = SimTime(now.0.saturating_add(plan.look_ps()).min(plan.end_ps));
        stopped = run.run_before(now, &mut look);
    }
    let end = if stopped { stopped_at } else { now };
    let mut lane_bytes = after.unwrap_or_else(|| run.link_bytes(end));
    run.forget_packets();
    lane_bytes.iter_mut().zip(before).for_each(|(bytes, before)| *bytes = bytes.saturating_sub(before));
    let raw = Raw { end, stopped, figures: run.take_figures(), lanes: 1, lane_bytes };
    let mut records: Vec<PacketRecord> = run.observers_mut().flat_map(Meter::take_records).collect();
    records.sort_by_cached_key(|record| run.order(record));
    let cpu_s = run.others_cpu_s();
    Outcome { raw, meter: run.into_observer(), records, cpu_s }
}

/// Packets that count and are under way.
fn outstanding(run: &Windows<Meter, HostSources<'_>>) -> u64 {
    let counted = run.observers().map(Meter::counted);
    let (sent, ended) = counted.fold((0, 0), |sum, meter| (sum.0 + meter.0, sum.1 + meter.1));
    sent - ended
}
