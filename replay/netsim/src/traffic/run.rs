//! Runs traffic over a fabric.

use std::fs;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use thiserror::Error;

use super::{Destinations, Flows, Pattern, Plan, Progress, Sources, TrafficConfig, TrafficError, drive, read_table};
use crate::fabric::packet::{LinkTime, PacketFabric, PacketRecord};
use crate::fabric::{FabricError, FabricKind};
use crate::network::Simulation;
use crate::statistics::{Cost, Meter, RunFigures};
use crate::time::SimTime;
use crate::topology::HostPlace;

/// What came out of one run.
#[derive(Clone, Debug)]
pub struct TrafficRun {
    /// What the traffic's keys came to.
    pub plan: Plan,
    /// What was measured.
    pub figures: RunFigures,
    /// Every packet that was delivered, if that was asked for.
    pub packets: Vec<PacketRecord>,
}

/// Why traffic came to no result.
#[derive(Debug, Error)]
pub enum RunError {
    /// Traffic that cannot be made.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// The fabric cannot be built.
    #[error(transparent)]
    Fabric(#[from] FabricError),
}

/// Runs `traffic` over the fabric of `config`, of whatever kind. `keep` keeps the record of every packet, `stop` ends the run, and `progress`
/// is called now and then.
///
/// # Errors
/// If the fabric cannot be built, or traffic and fabric do not fit each other.
pub fn run(
    traffic: &TrafficConfig,
    config: &impl FabricKind,
    seed: u64,
    keep: bool,
    stop: &AtomicBool,
    progress: impl FnMut(Progress),
) -> Result<TrafficRun, RunError> {
    let began = (Instant::now(), thread_cpu_s());
    let wrong = |key: &str, reason: &str| TrafficError::Key { key: key.to_owned(), reason: reason.to_owned() };
    if traffic.hosts.is_none() && config.network().is_none() {
        return Err(wrong("hosts", "the fabric has no topology: say here how many hosts there are").into());
    }
    let mut fabric = config.packets(&traffic.places(), Meter::unplanned())?;
    let link = fabric.link_time().map_err(|differ| TrafficError::Key {
        key: "load".to_owned(),
        reason: format!("it is a share of what a host's link carries, and {differ}"),
    })?;
    if link.whole_messages && traffic.flows == Flows::Message {
        return Err(wrong("flows", "\"message\": the fabric's hosts keep one connection a pair: \"pair\"").into());
    }
    let (plan, mut sources) = sources(traffic, link, traffic.hosts.unwrap_or(fabric.hosts()), seed)?;
    *fabric.observer() = Meter::new(&plan, keep);
    let longest = sources.longest().unwrap_or(plan.bytes);
    if link.whole_messages && u32::try_from(link.message(longest).1).is_err() {
        let reason = format!(
            "a message of {longest} bytes: the fabric's hosts take messages of less than 4 GiB, headers included"
        );
        return Err(wrong("size", &reason).into());
    }
    let raw = drive(&mut fabric, &plan, &mut sources, stop, progress);
    let cost = Cost {
        wall_s: began.0.elapsed().as_secs_f64(),
        cpu_s: thread_cpu_s() - began.1,
        memory_peak_bytes: memory_peak_bytes(),
    };
    let meter = fabric.observer();
    let packets = meter.take_records();
    let figures = RunFigures::new(&plan, meter, raw, seed, cost);
    Ok(TrafficRun { plan, figures, packets })
}

fn sources(traffic: &TrafficConfig, link: LinkTime, hosts: u32, seed: u64) -> Result<(Plan, Sources), TrafficError> {
    let destinations = Destinations::new(traffic, hosts)?;
    if traffic.pattern == Pattern::Table
        && let Some(path) = &traffic.table
    {
        let messages = read_table(path, hosts)?;
        let last = messages.last().map(|message| message.at.0);
        let plan = traffic.plan(link, hosts, last)?;
        return Ok((plan, Sources::table(messages, hosts, traffic.flows)));
    }
    let plan = traffic.plan(link, hosts, None)?;
    let sources = Sources::drawn(&plan, destinations, seed);
    Ok((plan, sources))
}

impl TrafficConfig {
    /// The hosts that the traffic asks for, in their racks; none where the topology says how many there are.
    #[must_use]
    pub fn places(&self) -> Vec<HostPlace> {
        let hosts = self.hosts.unwrap_or(0);
        let in_rack = (hosts / self.racks.unwrap_or(1).max(1)).max(1);
        (0..hosts).map(|host| HostPlace { name: format!("h{host}"), rack: format!("rack{}", host / in_rack) }).collect()
    }
}

/// How long this thread has computed, in seconds, as the kernel's scheduler counts it; 0 where it does not say.
fn thread_cpu_s() -> f64 {
    // It counts when a thread leaves the processor, or some milliseconds later.
    std::thread::sleep(std::time::Duration::from_nanos(1));
    let counted = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = counted.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    ns.map_or(0.0, |ns| ns as f64 / 1e9)
}

/// The most memory that this program has had so far, in bytes, as Linux counts it.
fn memory_peak_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1_024)
}

/// How much of its way a run has done, and simulated time, for people.
impl Progress {
    /// From 0 to 1; the drain is not foreseen.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    pub fn share(&self) -> f64 {
        if self.until == SimTime::ZERO { 1.0 } else { (self.now.0 as f64 / self.until.0 as f64).min(1.0) }
    }
}
