//! What came out of a run, as numbers.

use compact_str::CompactString;
use serde::{Deserialize, Serialize};

use super::link_use::LinkUses;
use super::virtual_lanes::{VlUse, virtual_lanes};
use super::{Histogram, LevelCount, Losses, Meter, PairCount, Saturation, Series, SeriesSpan, float, judge, wide};
use crate::fabric::optimistic::OptimisticCost;
use crate::network::{CircuitFigures, CircuitTotals};
use crate::time::SimTime;
use crate::traffic::{Burst, Plan, Raw};

/// How times are distributed, all in one unit; null where nothing was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// How many there are.
    pub count: u64,
    /// The arithmetic mean.
    pub mean: Option<f64>,
    /// Standard deviation.
    pub deviation: Option<f64>,
    /// The least.
    pub min: Option<f64>,
    /// The median, to the width of a bucket of the histogram, as the percentiles below.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
}

impl Distribution {
    /// The distribution of `histogram`, divided by `unit`; empty where there is no such unit (0).
    #[must_use]
    pub fn new(histogram: &Histogram, unit: f64) -> Self {
        if unit <= 0.0 || histogram.count() == 0 {
            return Self::default();
        }
        let of = |value: Option<f64>| value.map(|value| value / unit);
        Self {
            count: histogram.count(),
            mean: of(histogram.mean()),
            deviation: of(histogram.deviation()),
            min: of(Some(float(histogram.min()))),
            p50: of(histogram.quantile(0.5)),
            p95: of(histogram.quantile(0.95)),
            p99: of(histogram.quantile(0.99)),
            p999: of(histogram.quantile(0.999)),
            max: of(Some(float(histogram.max()))),
        }
    }
}

/// How long so many packets lay in a queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueUse {
    /// The link at whose end it is.
    pub link: String,
    /// Its virtual lane.
    pub lane: u32,
    /// The share of the measurement in which 0, 1, ... packets lay in it.
    pub shares: Vec<f64>,
}

/// What came out of one run with one seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunFigures {
    /// Its seed.
    pub seed: u64,
    /// Whether it was stopped before its end.
    pub interim: bool,
    /// Flits handed over per node and flit time.
    pub offered_load: Option<f64>,
    /// Flits arrived per node and flit time.
    pub accepted_load: Option<f64>,
    /// Whether the network carries what is offered.
    pub saturation: Saturation,
    /// From hand-over to arrival of a packet, in picoseconds.
    pub packet: Histogram,
    /// From leaving the host to arrival.
    pub network: Histogram,
    /// From hand-over to arrival of a message.
    pub message: Histogram,
    /// Switches on the way.
    pub hops: Histogram,
    /// Packets that waited at a host, as a mean over time and hosts.
    pub source_queue: Option<f64>,
    /// Packets in the network, as a mean over time.
    pub in_network: Option<f64>,
    /// Packets that count and had not arrived at the end.
    pub undelivered: u64,
    /// Packets that count and were lost.
    pub lost: u64,
    /// All messages handed over in the run.
    pub messages: u64,
    /// All packets delivered in the run.
    pub packets: u64,
    /// All packets lost in the run.
    pub drops: u64,
    /// The same by reason.
    pub losses: Losses,
    /// Switches on the shortest ways, as packets were handed over; `None` where that was not counted.
    pub offered_hops: Option<Histogram>,
    /// From the hand-over of a question to the arrival of its answer; empty without questions.
    pub round_trip: Histogram,
    /// How long so many packets lay in queues; empty where that was not counted.
    pub occupancy: Vec<QueueUse>,
    /// What messages of each service level did; empty where they have one.
    #[serde(default)]
    pub levels: Vec<LevelCount>,
    /// Packets of the background that have arrived.
    pub background: u64,
    /// Switches that all packets delivered have passed.
    pub packet_hops: u64,
    /// Flits x switches of all packets delivered.
    pub flit_hops: u64,
    /// Events of the kernel.
    pub events: u64,
    /// Simulated time in picoseconds.
    pub simulated_ps: u64,
    /// What each link carried.
    pub links: LinkUses,
    /// What each virtual lane carried, all links together; empty where there is but one.
    #[serde(default)]
    pub vls: Vec<VlUse>,
    /// From when until when packets counted, in picoseconds.
    pub measured_ps: (u64, u64),
    /// Whether the network had settled when the measurement began; `None` where it was not looked at.
    pub settled: Option<bool>,
    /// Batches of the measurement that were whole at the end.
    pub batches: Vec<SeriesSpan>,
    /// Intervals of the whole run, the last one perhaps cut off.
    pub evolution: Vec<SeriesSpan>,
    /// Bursts that were over at the end.
    pub bursts: Vec<Burst>,
    /// What hosts have sent each other, by source and destination.
    pub pairs: Vec<(u32, u32, PairCount)>,
    /// Counters of the fabric's own.
    pub counters: Vec<(String, u64)>,
    /// Optical circuits in the order of their grants, the first [`RunOptions::circuits`](crate::traffic::RunOptions::circuits); empty where the
    /// fabric has none.
    #[serde(default)]
    pub circuits: Vec<CircuitFigures>,
    /// All circuits together; `None` where none was ever asked for.
    #[serde(default)]
    pub circuit_totals: Option<CircuitTotals>,
    /// What it took on this machine.
    pub cost: Cost,
}

/// What a run took on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// How long it took, in seconds.
    pub wall_s: f64,
    /// How long its thread computed, in seconds.
    pub cpu_s: f64,
    /// The most memory that the program has had so far, in bytes, with all runs side by side; `None` where the system does
    /// not say.
    pub memory_peak_bytes: Option<u64>,
    /// How it was run in parts; `None` by events.
    #[serde(default)]
    pub parallel: Option<ParallelCost>,
}

/// What it took to run a network in parts, in windows or optimistically.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ParallelCost {
    /// Parts of the network.
    pub parts: usize,
    /// Threads that ran them.
    pub threads: usize,
    /// The width of a window, in picoseconds: nothing that one part does shows sooner in another.
    pub lookahead_ps: u64,
    /// Windows in which something happened; 0 if it was run optimistically.
    pub windows: u64,
    /// Packets and credits that one part sent another.
    pub remote_events: u64,
    /// How long threads waited for each other, added up, in seconds.
    pub barrier_wait_s: f64,
    /// How it was run optimistically; `None` in windows.
    #[serde(default)]
    pub optimistic: Option<OptimisticCost>,
}

impl RunFigures {
    /// The figures of a run of `plan` that `meter` has seen.
    #[must_use]
    pub fn new(plan: &Plan, meter: &Meter, mut raw: Raw, seed: u64, cost: Cost) -> Self {
        let measured_ps = raw.end.0.min(plan.until_ps).saturating_sub(plan.from_ps);
        let (offered, accepted) = meter.loads();
        // Loads are shares of what the hosts' links carry; where they carry anything, there is no share.
        let load = |bytes: u64| {
            let capacity =
                plan.link.rate.bps().map(|bps| float(bps) / 8e12 * float(measured_ps) * f64::from(plan.hosts));
            capacity.filter(|capacity| *capacity > 0.0).map(|capacity| float(bytes) / capacity)
        };
        let measured = (measured_ps > 0).then(|| float(measured_ps));
        Self {
            seed,
            interim: raw.stopped,
            offered_load: load(offered),
            accepted_load: load(accepted),
            // So many messages and no more are no steady load.
            saturation: if plan.count.is_some() || plan.bursts.is_some() || plan.ping_pong.is_some() {
                Saturation::No
            } else {
                judge(meter.batches(raw.end.0), raw.end.0)
            },
            packet: meter.packet(),
            network: meter.network(),
            message: meter.message(),
            hops: meter.hops(),
            source_queue: measured.map(|ps| wide(meter.waiting) / ps / f64::from(plan.hosts)),
            in_network: measured.map(|ps| wide(meter.travelling) / ps),
            undelivered: meter.outstanding(),
            lost: meter.lost,
            messages: meter.all_messages,
            packets: meter.all_packets,
            drops: meter.losses.all(),
            losses: meter.losses,
            offered_hops: meter.offered_hops().cloned(),
            round_trip: meter.round_trip.clone(),
            occupancy: queues(&raw),
            levels: meter.levels().to_vec(),
            background: meter.background,
            packet_hops: meter.packet_hops,
            flit_hops: meter.flit_hops,
            events: raw.figures.events,
            simulated_ps: raw.end.0,
            measured_ps: raw.measured_ps,
            settled: raw.settled,
            batches: batches(plan, meter, raw.end),
            evolution: meter.evolution().map(|series| evolution(series, raw.end)).unwrap_or_default(),
            bursts: std::mem::take(&mut raw.bursts),
            pairs: meter.pairs().into_iter().flatten().map(|((from, to), count)| (*from, *to, *count)).collect(),
            counters: std::mem::take(&mut raw.figures.counters),
            vls: virtual_lanes(&raw, measured_ps, plan.link.flit),
            circuits: std::mem::take(&mut raw.figures.circuits),
            circuit_totals: raw.figures.circuit_totals.take(),
            links: LinkUses::new(raw, measured_ps),
            cost,
        }
    }
}

/// The batches of the measurement that were whole at `end`.
fn batches(plan: &Plan, meter: &Meter, end: SimTime) -> Vec<SeriesSpan> {
    let (Some((count, _)), Some(steps)) = (plan.steps.batches, meter.steps()) else { return Vec::new() };
    if plan.until_ps <= plan.from_ps {
        return Vec::new();
    }
    steps.spans(steps.whole(end).min(usize::try_from(count).unwrap_or(usize::MAX)))
}

/// All intervals until `end`, the last one cut off there.
fn evolution(series: &Series, end: SimTime) -> Vec<SeriesSpan> {
    let whole = series.whole(end);
    let mut spans = series.spans(whole.saturating_add(1));
    spans.retain(|span| span.from_ps < end.0);
    if let Some(last) = spans.last_mut() {
        last.until_ps = last.until_ps.min(end.0);
    }
    spans
}

/// How long so many packets lay in those queues in which there ever were some.
fn queues(raw: &Raw) -> Vec<QueueUse> {
    let names = raw.figures.links.iter().flat_map(|link| (0..raw.lanes).map(|lane| (&link.name, lane)));
    let used = names.zip(&raw.occupancy).filter(|(_, times)| times.iter().skip(1).any(|time| *time > 0));
    let queue = |((link, lane), times): ((&CompactString, u32), &Vec<u64>)| {
        let all = float(times.iter().sum());
        let shares = times.iter().map(|time| float(*time) / all).collect();
        QueueUse { link: link.to_string(), lane, shares }
    };
    used.map(queue).collect()
}
