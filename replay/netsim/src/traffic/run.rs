//! Runs traffic over a fabric.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::drawing::Drawing;
use super::losing::BlockedHead;
use super::options::{EngineKind, RunOptions};
use super::sources::{Sending, Sources};
use super::windows::{Outcome, drive_windows};
use super::{Destinations, Flows, Pattern, Plan, Progress, TrafficConfig, TrafficError, drive, read_table};
use crate::cost::{memory_peak_bytes, thread_cpu_s};
use crate::fabric::hop_records::HopRecords;
use crate::fabric::packet::{HostLinksDiffer, LinkTime, PacketFabric, PacketRecord};
use crate::fabric::windowed::{Windowed, Windowing};
use crate::fabric::windows::{HOSTS_OF_A_THREAD, WindowsWanted};
use crate::fabric::{FabricConfig, FabricError, FabricKind};
use crate::network::{HostIndex, Simulation};
use crate::statistics::{Cost, Meter, ParallelCost, RunFigures};
use crate::time::SimTime;
use crate::topology::{HostDistances, HostPlace};

/// What came out of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrafficRun {
    /// What the traffic's keys came to.
    pub plan: Plan,
    /// What was measured.
    pub figures: RunFigures,
    /// Every packet that was delivered, if that was asked for: in the order of arrival, then of source and number. Not serialized.
    #[serde(skip)]
    pub packets: Vec<PacketRecord>,
    /// The ways of packets, if they were logged.
    #[serde(default)]
    pub hops: HopRecords,
    /// Why it ran one event after the other, where threads could have been of use in windows.
    pub by_events: Option<String>,
}

/// Why traffic came to no result.
#[derive(Debug, Error)]
pub enum TrafficRunError {
    /// Traffic that cannot be made.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// The fabric cannot be built.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// A fabric that only events can run.
    #[error(
        "the engine \"windows\" runs fabrics of the kinds \"credit\", \"ethernet\" and \"store-and-forward\" only: leave the \
         engine out, or \"events\""
    )]
    NoWindows,
    /// A network that only events can run.
    #[error("the engine \"windows\" does not run this network: {0}. Leave the engine out, or \"events\"")]
    NoWindowsHere(String),
    /// A fabric that is not run by Time Warp.
    #[error(
        "the engine \"optimistic\" runs fabrics of the kind \"store-and-forward\" only: leave the engine out, or \"windows\" or \
         \"events\""
    )]
    NoTimeWarp,
    /// A fabric that is not run by ranks.
    #[error("ranks run fabrics of the kind \"store-and-forward\" only: leave them out")]
    NoRanks,
    /// One of the ranks cannot run it, though others may.
    #[error("rank {rank}: {reason}")]
    Rank {
        /// Which.
        rank: usize,
        /// Why.
        reason: String,
    },
    /// A rank is about to run something else than rank 0.
    #[error(
        "rank {0} has another network or other messages than rank 0: the files that the experiment names differ on its machine"
    )]
    UnequalRanks(usize),
    /// More ranks than parts.
    #[error("{0} ranks: this network has fewer hosts or switches; take fewer ranks")]
    TooManyRanks(usize),
}

/// Runs `traffic` over the fabric of `config`. `stop` ends the run, and `progress` is called now and then.
///
/// # Errors
/// If the fabric cannot be built, or traffic and fabric do not fit each other.
pub fn run(
    traffic: &TrafficConfig,
    config: &FabricConfig,
    seed: u64,
    options: RunOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<TrafficRun, TrafficRunError> {
    run_on(traffic, config, seed, options, stop, progress)
}

/// The same for any kind of fabric, one of another project's, too.
///
/// # Errors
/// As [`run`].
pub fn run_on(
    traffic: &TrafficConfig,
    config: &impl FabricKind,
    seed: u64,
    options: RunOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<TrafficRun, TrafficRunError> {
    let began = (Instant::now(), thread_cpu_s());
    if traffic.hosts.is_none() && config.network().is_none() {
        return Err(TrafficError::key(
            "hosts",
            "the fabric has no topology: say here how many hosts there are".to_owned(),
        )
        .into());
    }
    let places = traffic.places();
    let asks_back = traffic.asks_back();
    let wanted = WindowsWanted { threads: options.threads, always: options.engine.has_parts(), asks_back };
    let windowing = match (options.engine, asks_back) {
        (EngineKind::Events, _) => Windowing::Events(None),
        (engine, Some(key)) if engine.has_parts() => {
            let reason =
                format!("the engine \"{}\" does not know it: leave the engine out, or \"events\"", engine.name());
            return Err(TrafficError::key(key, reason).into());
        }
        _ => config.windowed(&places, wanted)?,
    };
    let optimistic = (options.engine == EngineKind::Optimistic).then_some(options.optimistic);
    if optimistic.is_some() && !matches!(windowing, Windowing::Windows(Windowed::StoreAndForward(_))) {
        return Err(TrafficRunError::NoTimeWarp);
    }
    let cost = |others_cpu_s: f64, parallel: Option<ParallelCost>| Cost {
        wall_s: began.0.elapsed().as_secs_f64(),
        cpu_s: thread_cpu_s() - began.1 + others_cpu_s,
        memory_peak_bytes: memory_peak_bytes(),
        parallel,
    };
    let reason = match windowing {
        Windowing::Windows(network) => {
            let (link, hosts) = (network.link_time(), network.hosts());
            let Planned { mut plan, link, sending, others_cpu_s } =
                planned(traffic, link, hosts, seed, options.threads)?;
            let Outcome { raw, meter, records, cpu_s, parallel } = drive_windows(
                network,
                (&plan, &link, &sending),
                (traffic.meter(&plan, config, seed, options)?, wanted, optimistic),
                stop,
                progress,
            )?;
            (plan.from_ps, plan.until_ps) = raw.measured_ps;
            let figures = RunFigures::new(&plan, &meter, raw, seed, cost(cpu_s + others_cpu_s, Some(parallel)));
            let packets = in_order(records);
            return Ok(TrafficRun { plan, figures, packets, hops: HopRecords::default(), by_events: None });
        }
        Windowing::Events(Some(reason)) if wanted.always => return Err(TrafficRunError::NoWindowsHere(reason)),
        Windowing::Events(None) if wanted.always => return Err(TrafficRunError::NoWindows),
        Windowing::Events(reason) => reason,
    };
    let mut fabric = config.packets(&places, Meter::unplanned())?;
    traffic.needs_to_know(fabric.waits_more_than(HostIndex(0), 0).is_some(), fabric.occupancy().is_some())?;
    if traffic.blocked_head == Some(BlockedHead::Extract) && !fabric.lose_blocked_heads() {
        let reason = "\"extract\": the hosts of this kind of fabric do not; leave this out, or take credit (with one queue a VL \
                      at hosts), omni-path, input-queued or input-output-queued";
        return Err(TrafficError::key("blocked_head", reason.to_owned()).into());
    }
    if traffic.occupancy && !fabric.count_occupancy() {
        let reason = "this kind of fabric does not tell what lies in its queues; leave this out, or take credit, omni-path, \
                      input-queued, input-output-queued or spinnaker";
        return Err(TrafficError::key("occupancy", reason.to_owned()).into());
    }
    let Planned { mut plan, link, sending, others_cpu_s } =
        planned(traffic, fabric.link_time(), fabric.hosts(), seed, options.threads)?;
    if let Some(wanted) = traffic.log_wanted(&link, plan.hosts)?
        && !fabric.log_hops(&wanted)
    {
        let reason = "this kind of fabric does not tell how packets go; leave this out, or take credit, omni-path, input-queued, \
                      input-output-queued or spinnaker";
        return Err(TrafficError::key("log", reason.to_owned()).into());
    }
    if options.engine != EngineKind::Events && traffic.asks_for_room_alone() && sending.is_in_cycles() {
        fabric.expect_whole_cycles();
    }
    *fabric.observer() = traffic.meter(&plan, config, seed, options)?;
    let mut sources = Sources::new(&sending, plan.hosts);
    let background = traffic.background(link, &plan, seed)?;
    check_length("background.size", &link, background.as_ref().map_or(0, |background| background.plan.bytes))?;
    let background = background.map(Sending::Drawn);
    let mut background = background.as_ref().map(|background| Sources::new(background, plan.hosts));
    let mut raw = drive(&mut fabric, &plan, &mut sources, background.as_mut(), stop, progress);
    raw.figures.circuits.truncate(options.circuits);
    (plan.from_ps, plan.until_ps) = raw.measured_ps;
    let hops = fabric.take_hop_log(raw.end).unwrap_or_default();
    let meter = fabric.observer();
    let packets = in_order(meter.take_records());
    let figures = RunFigures::new(&plan, meter, raw, seed, cost(others_cpu_s, None));
    let large = plan.hosts as usize >= 2 * HOSTS_OF_A_THREAD && options.threads > 1;
    Ok(TrafficRun { plan, figures, packets, hops, by_events: reason.filter(|_| large) })
}

/// `records` in the order of arrival, whichever engine saw them: those of one instant by source and number.
pub(super) fn in_order(mut records: Vec<PacketRecord>) -> Vec<PacketRecord> {
    records.sort_unstable_by_key(|record| (record.arrived, record.source, record.number));
    records
}

/// What the keys of a traffic come to.
pub(super) struct Planned {
    pub plan: Plan,
    pub link: LinkTime,
    pub sending: Sending,
    /// What other threads have computed for it, in seconds.
    pub others_cpu_s: f64,
}

/// What the keys of `traffic` come to for a fabric with such links and hosts, reckoned on `threads` threads.
pub(super) fn planned(
    traffic: &TrafficConfig,
    link: Result<LinkTime, HostLinksDiffer>,
    hosts: u32,
    seed: u64,
    threads: usize,
) -> Result<Planned, TrafficError> {
    let link = link.map_err(|differ| {
        TrafficError::key("load", format!("it is a share of what a host's link carries, and {differ}"))
    })?;
    if link.whole_messages && traffic.flows == Flows::Message {
        let reason = "\"message\": the fabric's hosts keep one connection a pair: \"pair\"";
        return Err(TrafficError::key("flows", reason.to_owned()));
    }
    let (plan, sending, others_cpu_s) = sending(traffic, link, traffic.hosts.unwrap_or(hosts), seed, threads)?;
    check_length("size", &link, sending.longest().unwrap_or(plan.bytes))?;
    check_length("reply", &link, plan.ping_pong.map_or(0, |plan| plan.reply_bytes))?;
    Ok(Planned { plan, link, sending, others_cpu_s })
}

/// Refuses messages of `bytes`, as `key` says, that are too long for what is below.
fn check_length(key: &str, link: &LinkTime, bytes: u64) -> Result<(), TrafficError> {
    if link.whole_messages && u32::try_from(link.message(bytes).1).is_err() {
        let reason = format!(
            "a message of {bytes} bytes: the fabric's hosts take messages of less than 4 GiB, headers included"
        );
        return Err(TrafficError::key(key, reason));
    }
    Ok(())
}

fn sending(
    traffic: &TrafficConfig,
    link: LinkTime,
    hosts: u32,
    seed: u64,
    threads: usize,
) -> Result<(Plan, Sending, f64), TrafficError> {
    let destinations = Destinations::new(traffic, hosts)?;
    if traffic.pattern == Pattern::Table
        && let Some(path) = &traffic.table
    {
        let messages = read_table(path, hosts)?;
        let last = messages.last().map(|message| message.at.0);
        let plan = traffic.plan(link, hosts, last)?;
        return Ok((plan, Sending::Table { messages, flows: traffic.flows }, 0.0));
    }
    let mut plan = traffic.plan(link, hosts, None)?;
    let mut drawing = Drawing::new(&plan, destinations, seed);
    if plan.ping_pong.is_some() {
        return Ok((plan, Sending::Drawn(Box::new(drawing)), 0.0));
    }
    let (last, others_cpu_s) = drawing.last(hosts, threads);
    if let Some(last) = last {
        plan = traffic.plan(link, hosts, Some(last.0))?;
        drawing.set_plan(&plan);
    }
    Ok((plan, Sending::Drawn(Box::new(drawing)), others_cpu_s))
}

impl TrafficConfig {
    /// The meter of a run of `plan` on a fabric of `config`, whose messages were drawn with `seed`.
    pub(super) fn meter(
        &self,
        plan: &Plan,
        config: &impl FabricKind,
        seed: u64,
        options: RunOptions,
    ) -> Result<Meter, TrafficRunError> {
        let mut meter = plan.meter(options);
        if plan.levels.len() > 1 && self.pattern != Pattern::Table {
            meter.count_levels(seed);
        }
        if self.offered_hops {
            let Some((topology, ..)) = config.network() else {
                let reason = "the fabric has no topology; leave this out";
                return Err(TrafficError::key("offered_hops", reason.to_owned()).into());
            };
            let topology = topology.build(&self.places()).map_err(FabricError::from)?;
            let distances = HostDistances::new(&topology).map_err(|switches| {
                let reason = format!("{switches} switches have hosts; ways are looked at between 4096 at most");
                TrafficError::key("offered_hops", reason)
            })?;
            meter.count_offered_hops(Arc::new(distances));
        }
        Ok(meter)
    }

    /// The key that a run in windows knows nothing of, if there is one: most of them ask what has happened elsewhere.
    pub(super) fn asks_back(&self) -> Option<&'static str> {
        let keys = [
            ("react", self.react.is_some()),
            ("bursts", self.bursts.is_some()),
            ("injection_queue", self.injection_queue.is_some()),
            ("network_limit", self.network_limit.is_some()),
            ("blocked_head", self.blocked_head == Some(BlockedHead::Extract)),
            ("pattern", self.is_ping_pong()),
            ("background", self.background.is_some()),
            ("occupancy", self.occupancy),
            ("log", self.log.is_some()),
        ];
        keys.into_iter().find(|(_, given)| *given).map(|(key, _)| key)
    }

    /// Whether nothing is asked of the fabric but what waits at its hosts and how full it is, and nobody hands over because of what happens
    /// there.
    fn asks_for_room_alone(&self) -> bool {
        let reacts = self.react.is_some() || self.bursts.is_some() || self.is_ping_pong();
        let more = self.blocked_head == Some(BlockedHead::Extract) || self.occupancy || self.log.is_some();
        !reacts && !more && self.background.is_none()
    }

    /// Refuses what only a fabric makes possible that tells what waits at its hosts, and how full it is.
    fn needs_to_know(&self, tells_waiting: bool, tells_occupancy: bool) -> Result<(), TrafficError> {
        if self.injection_queue.is_some() && !tells_waiting {
            let reason = "this kind of fabric does not tell what waits at its hosts; leave this out, or take credit, omni-path, \
                          input-queued, input-output-queued or spinnaker";
            return Err(TrafficError::key("injection_queue", reason.to_owned()));
        }
        if self.network_limit.is_some() && !tells_occupancy {
            let reason = "only a credit fabric tells how full it is; leave this out";
            return Err(TrafficError::key("network_limit", reason.to_owned()));
        }
        Ok(())
    }

    /// The hosts that the traffic asks for, in their racks; none where the topology says how many there are.
    #[must_use]
    pub fn places(&self) -> Vec<HostPlace> {
        let hosts = self.hosts.unwrap_or(0);
        let in_rack = (hosts / self.racks.unwrap_or(1).max(1)).max(1);
        (0..hosts).map(|host| HostPlace { name: format!("h{host}"), rack: format!("rack{}", host / in_rack) }).collect()
    }
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
