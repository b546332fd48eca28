//! Runs traffic over a fabric.

use std::fs;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use thiserror::Error;

use super::{Destinations, Pattern, Plan, Progress, Sources, TrafficConfig, TrafficError, drive, read_table};
use crate::fabric::credit::Credit;
use crate::fabric::ideal_packets::IdealPackets;
use crate::fabric::packet::{LinkTime, PacketFabric, PacketRecord};
use crate::fabric::store_and_forward::StoreAndForward;
use crate::fabric::{self, FabricConfig, FabricError};
use crate::statistics::{Cost, Meter, RunFigures};
use crate::time::SimTime;
use crate::topology::{HostPlace, NodeId, Topology};
use crate::units::{Bytes, Rate};

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

/// An ideal network has links, but no packets of its own: those of InfiniBand, without headers.
const IDEAL_FLIT: u32 = 64;
const IDEAL_MTU: u32 = 2_048;

/// Why traffic came to no result.
#[derive(Debug, Error)]
pub enum RunError {
    /// A fabric that has no packets of its own.
    #[error(
        "fabric.kind = \"{kind}\": it carries no `[traffic]`, its hosts speak protocols of their own; \"credit\", \
         \"store-and-forward\" and \"ideal\" do"
    )]
    NoPackets {
        /// Its kind.
        kind: &'static str,
    },
    /// Traffic that cannot be made.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// The fabric cannot be built.
    #[error(transparent)]
    Fabric(#[from] FabricError),
}

/// Runs `traffic` over the fabric of `config`. `keep` keeps the record of every packet, `stop` ends the run, and `progress`
/// is called now and then.
///
/// # Errors
/// If the fabric cannot be built or carries no packets, or traffic and fabric do not fit each other.
pub fn run(
    traffic: &TrafficConfig,
    config: &FabricConfig,
    seed: u64,
    keep: bool,
    stop: &AtomicBool,
    progress: impl FnMut(Progress),
) -> Result<TrafficRun, RunError> {
    let began = (Instant::now(), thread_cpu_s());
    fabric::check_limits(config)?;
    let run = Run { traffic, seed, keep, began };
    match config {
        FabricConfig::Ideal(config) => {
            let Some(hosts) = traffic.hosts else {
                return Err(RunError::Traffic(TrafficError::Key {
                    key: "hosts".to_owned(),
                    reason: "fabric.kind = \"ideal\" has no topology: say here how many hosts there are".to_owned(),
                }));
            };
            let link = LinkTime { rate: config.rate, flit: IDEAL_FLIT, mtu: IDEAL_MTU, headers: 0, whole_flits: false };
            run.go(IdealPackets::new(config, hosts, link, Meter::unplanned()), link, stop, progress)
        }
        FabricConfig::Credit(config) => {
            let fabric = Credit::new(config, &traffic.places(), Meter::unplanned())?;
            let (rate, sizes) = (host_rate(fabric.topology())?, (config.flit, config.mtu, config.headers));
            run.go(fabric, link_time(rate, sizes, true), stop, progress)
        }
        FabricConfig::StoreAndForward(config) => {
            let fabric = StoreAndForward::new(config, &traffic.places(), Meter::unplanned())?;
            let (rate, sizes) = (host_rate(fabric.topology())?, (config.flit, config.mtu, config.headers));
            run.go(fabric, link_time(rate, sizes, false), stop, progress)
        }
        FabricConfig::Ethernet(_) | FabricConfig::Lightness(_) => Err(RunError::NoPackets { kind: config.kind() }),
    }
}

/// The rate of the hosts' links, which all must have.
fn host_rate(topology: &Topology) -> Result<Rate, TrafficError> {
    let rate = |host: u32| topology.link(topology.uplink(NodeId(host))).rate;
    let first = rate(0);
    match (0..topology.hosts()).find(|host| rate(*host) != first) {
        None => Ok(first),
        Some(other) => Err(TrafficError::Key {
            key: "load".to_owned(),
            reason: format!(
                "it is a share of what a host's link carries, and the links of {} (\"{first}\") and {} (\"{}\") differ",
                topology.name(NodeId(0)),
                topology.name(NodeId(other)),
                rate(other)
            ),
        }),
    }
}

fn link_time(rate: Rate, (flit, mtu, headers): (Bytes, Bytes, Bytes), whole_flits: bool) -> LinkTime {
    // The fabrics refuse sizes that 32 bits do not hold.
    let number = |bytes: Bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX);
    LinkTime { rate, flit: number(flit).max(1), mtu: number(mtu).max(1), headers: number(headers), whole_flits }
}

struct Run<'a> {
    traffic: &'a TrafficConfig,
    seed: u64,
    keep: bool,
    began: (Instant, f64),
}

impl Run<'_> {
    /// Runs the traffic over the fabric.
    fn go<F: PacketFabric<Meter>>(
        &self,
        mut fabric: F,
        link: LinkTime,
        stop: &AtomicBool,
        progress: impl FnMut(Progress),
    ) -> Result<TrafficRun, RunError> {
        let hosts = self.traffic.hosts.unwrap_or(fabric.hosts());
        let (plan, mut sources) = self.sources(link, hosts)?;
        *fabric.observer() = Meter::new(&plan, self.keep);
        let raw = drive(&mut fabric, &plan, &mut sources, stop, progress);
        let cost = Cost {
            wall_s: self.began.0.elapsed().as_secs_f64(),
            cpu_s: thread_cpu_s() - self.began.1,
            memory_peak_bytes: memory_peak_bytes(),
        };
        let meter = fabric.observer();
        let packets = meter.take_records();
        let figures = RunFigures::new(&plan, meter, raw, self.seed, cost);
        Ok(TrafficRun { plan, figures, packets })
    }

    fn sources(&self, link: LinkTime, hosts: u32) -> Result<(Plan, Sources), TrafficError> {
        let destinations = Destinations::new(self.traffic, hosts)?;
        if self.traffic.pattern == Pattern::Table
            && let Some(path) = &self.traffic.table
        {
            let messages = read_table(path, hosts)?;
            let last = messages.last().map(|message| message.at.0);
            let plan = self.traffic.plan(link, hosts, last)?;
            return Ok((plan, Sources::table(messages, hosts, self.traffic.flows)));
        }
        let plan = self.traffic.plan(link, hosts, None)?;
        let sources = Sources::drawn(&plan, destinations, self.seed);
        Ok((plan, sources))
    }
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
