//! Figures of one combination over all its seeds, and of a sweep.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::circuits::{self, CircuitsDrawn};
use super::levels::{self, LevelFigure};
use super::parallel::Parallel;
use crate::experiment::{Experiment, Sweep};
use crate::results::summary::CircuitSummary;
use crate::results::sweep::{AxisValues, SweepPoint, SweepSummary, json_values};
use netsim::statistics::{
    Distribution, Histogram, LinkUse, LinkUses, Losses, RunFigures, Saturation, SeriesRow, SeriesSpan, VlUse, float,
    interval,
};
use netsim::traffic::{Plan, TrafficRun};

/// `summary.json` of synthetic traffic. Loads are flits per node and flit time of the host link (the cycle); what is null
/// was not measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficSummary {
    /// The experiment's name.
    pub name: String,
    /// Kind of fabric.
    pub fabric: String,
    /// Who sent to whom.
    pub pattern: String,
    /// Hosts that took part.
    pub hosts: u32,
    /// The first seed.
    pub seed: u64,
    /// All seeds; figures are means over them, counts and times of this machine sums.
    pub seeds: Vec<u64>,
    /// Whether the run was stopped before its end.
    pub interim: bool,
    /// Flits handed over.
    pub offered_load: Option<f64>,
    /// Flits arrived.
    pub accepted_load: Option<f64>,
    /// Whether the network does not carry what is offered (with most seeds).
    pub saturated: bool,
    /// What says so.
    pub saturated_because: Option<String>,
    /// Mean time from hand-over to arrival of a packet, in cycles.
    pub packet_latency_mean_cycles: Option<f64>,
    /// The same from leaving the source host.
    pub network_latency_mean_cycles: Option<f64>,
    /// Mean time from hand-over to arrival of a message, in cycles.
    pub message_latency_mean_cycles: Option<f64>,
    /// `packet_latency_mean_cycles` in nanoseconds.
    pub packet_latency_mean_ns: Option<f64>,
    /// `network_latency_mean_cycles` in nanoseconds.
    pub network_latency_mean_ns: Option<f64>,
    /// `message_latency_mean_cycles` in nanoseconds.
    pub message_latency_mean_ns: Option<f64>,
    /// Switches on the way of a packet, as a mean.
    pub hops_mean: Option<f64>,
    /// Half the width of the 95% confidence interval over the seeds, by key; empty with one seed.
    pub confidence: BTreeMap<String, f64>,
    /// Distributions of "packet", "network" and "message" latency in nanoseconds, over all seeds.
    pub latency_ns: BTreeMap<String, Distribution>,
    /// The same in cycles.
    pub latency_cycles: BTreeMap<String, Distribution>,
    /// Distribution of the switches on the way.
    pub hops: Distribution,
    /// Mean utilisation of the links; null where they have no rate.
    pub link_utilisation_mean: Option<f64>,
    /// Utilisation of the busiest link.
    pub link_utilisation_max: Option<f64>,
    /// The longest queue in front of a link, in bytes.
    pub queue_max_bytes: u64,
    /// Packets that waited at a host, as a mean over time and hosts.
    pub source_queue_mean: Option<f64>,
    /// Packets in the network, as a mean over time.
    pub in_network_mean: Option<f64>,
    /// Packets delivered in the whole run.
    pub packets: u64,
    /// Those that count: handed over in the measurement, and delivered.
    pub packets_measured: u64,
    /// Packets that count and had not arrived at the end.
    pub packets_undelivered: u64,
    /// Packets lost in the whole run.
    pub drops: u64,
    /// Those of them that count.
    pub drops_measured: u64,
    /// All of them by the reasons that there were: "full_queue", "blocked_head", "in_network".
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub drops_by_reason: BTreeMap<String, u64>,
    /// Switches on the shortest ways of the packets that count, as they were handed over; null without `traffic.offered_hops`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_hops: Option<Distribution>,
    /// Times from a question to its answer, in nanoseconds; null without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ns: Option<Distribution>,
    /// The same in cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_cycles: Option<Distribution>,
    /// Packets of the background that have arrived; null without `traffic.background`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_packets: Option<u64>,
    /// Messages handed over in the whole run.
    pub messages: u64,
    /// Switches that these packets have passed, added up.
    pub packet_hops: u64,
    /// Flits x switches of all packets delivered in the whole run.
    pub flit_hops: u64,
    /// Events of the kernel.
    pub events: u64,
    /// How long it took on this machine.
    pub wall_s: f64,
    /// How long it computed.
    pub cpu_s: f64,
    /// The most memory that the program has had by then; null where the system does not say.
    pub memory_peak_bytes: Option<u64>,
    /// Events a second of `wall_s`.
    pub event_rate: f64,
    /// How the runs were made in parts; null by events.
    #[serde(default)]
    pub parallel: Option<Parallel>,
    /// Simulated time of a run, as a mean.
    pub simulated_ns: f64,
    /// When the measurement began.
    pub measured_from_ns: f64,
    /// When it ended.
    pub measured_until_ns: f64,
    /// A flit's time on a host's link; 0 where that has no rate.
    pub cycle_ns: f64,
    /// Payload of a message; of a table's messages null.
    pub message_bytes: Option<u64>,
    /// What each virtual lane carried, all links together, from VL 0 on; empty where there is but one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vls: Vec<VlFigure>,
    /// What messages of each service level did, by level; empty where `traffic.levels` has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelFigure>,
    /// What was logged; null without `traffic.log`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogFigure>,
    /// Whether the network had settled when the measurement began, with each seed; null without `traffic.convergence`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<bool>,
    /// Figures of the batches of the measurement, by key; empty without `traffic.batches`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub batches: BTreeMap<String, BatchFigure>,
    /// Distribution of the times that bursts took, in cycles; null without `traffic.bursts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_cycles: Option<Distribution>,
    /// Optical circuits, all together; null where none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuits: Option<CircuitSummary>,
    /// Counters of the fabric's own.
    pub counters: BTreeMap<String, u64>,
}

/// A figure of the batches of a measurement, of all seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchFigure {
    /// Batches that have it.
    pub count: usize,
    /// Its mean.
    pub mean: f64,
    /// Its standard deviation (of a sample).
    pub deviation: f64,
}

/// A virtual lane in the measurement; flits are a sum over the seeds, the others means.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct VlFigure {
    /// Flits that crossed links on it, each link counted.
    pub flits: u64,
    /// The share that these are of those on all lanes; null without any.
    pub share: Option<f64>,
    /// Utilisation of a link by it, as a mean; null where no link has a rate.
    pub utilisation_mean: Option<f64>,
    /// The same of the link that sent most on it.
    pub utilisation_max: Option<f64>,
    /// Packets that lay in its queues; null without `traffic.occupancy`.
    pub queued_mean: Option<f64>,
}

/// What was logged, of all seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogFigure {
    /// Packets.
    pub packets: u64,
    /// Rows of the table `log`.
    pub rows: u64,
    /// Whether more would have been logged than fits.
    pub full: bool,
}

/// A combination as the report shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointDetail {
    /// Which value of each key.
    pub values: Vec<usize>,
    /// What came out.
    pub summary: TrafficSummary,
    /// The busiest links of the first seed.
    pub links: Vec<LinkUse>,
    /// Packet latency: from (ns), width (ns), packets; over all seeds.
    pub latency: Vec<(f64, f64, u64)>,
    /// Circuits of the first seed; null where its fabric has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuits: Option<CircuitsDrawn>,
}

/// What the report of synthetic traffic is drawn from: `traffic.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficDetail {
    /// The experiment's name.
    pub name: String,
    /// Whether it was stopped before its end.
    pub interim: bool,
    /// The experiment with every key.
    pub effective: String,
    /// The keys with several values; none for a single run.
    pub axes: Vec<AxisValues>,
    /// Which of them changes the offered load ([`Sweep::load_axis`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_axis: Option<usize>,
    /// The path of the key by whose values pictures are grouped, where it was chosen ([`grouping`](crate::results::grouping)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_by: Option<String>,
    /// The combinations that came to a result.
    pub points: Vec<PointDetail>,
    /// Combinations that came to none, each with the reason.
    pub failed: BTreeMap<String, String>,
}

/// All that came out of an experiment with synthetic traffic.
#[derive(Clone, Debug)]
pub struct TrafficResults {
    /// What the report shows.
    pub detail: TrafficDetail,
    /// The runs of each combination of `detail.points`.
    pub(super) runs: Vec<Vec<TrafficRun>>,
    /// So many circuits of a combination are shown.
    circuits: usize,
}

/// A report shows so many links of a combination at most.
const MAX_LINKS: usize = 24;
/// And so many circuits of a combination, and of all together.
const MAX_CIRCUITS: usize = 2_000;
const MAX_CIRCUITS_IN_ALL: usize = 20_000;

impl TrafficResults {
    /// Results without any run yet.
    ///
    /// # Errors
    /// If the experiment cannot be written as TOML.
    pub fn new(sweep: &Sweep) -> Result<Self, toml::ser::Error> {
        let detail = TrafficDetail {
            name: sweep.points.first().map(|point| point.experiment.name.clone()).unwrap_or_default(),
            interim: false,
            effective: sweep.to_toml()?,
            axes: AxisValues::of(sweep),
            load_axis: sweep.load_axis(),
            group_by: None,
            points: Vec::new(),
            failed: BTreeMap::new(),
        };
        let circuits = (MAX_CIRCUITS_IN_ALL / sweep.points.len().max(1)).min(MAX_CIRCUITS);
        Ok(Self { detail, runs: Vec::new(), circuits })
    }

    /// Adds the runs of a combination, one for each seed; nothing without any.
    pub fn add(&mut self, values: Vec<usize>, experiment: &Experiment, runs: Vec<TrafficRun>) {
        let Some(summary) = TrafficSummary::new(experiment, &runs) else { return };
        self.detail.interim |= summary.interim;
        let mut latency = Histogram::default();
        runs.iter().for_each(|run| latency.add(&run.figures.packet));
        let latency = latency.buckets().map(|(low, width, count)| (float(low) / 1e3, float(width) / 1e3, count));
        let links = runs.first().map(|run| busiest(&run.figures.links)).unwrap_or_default();
        let circuits = runs.first().and_then(|run| CircuitsDrawn::of(&run.figures, self.circuits));
        self.detail.points.push(PointDetail { values, summary, links, latency: latency.collect(), circuits });
        self.runs.push(runs);
    }

    /// All runs, each with the number of its combination.
    pub(super) fn runs(&self) -> impl Iterator<Item = (u32, &TrafficRun)> {
        (0u32..).zip(&self.runs).flat_map(|(point, runs)| runs.iter().map(move |run| (point, run)))
    }

    /// What `summary.json` holds.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn summary(&self, sweep: &Sweep) -> Result<Value, serde_json::Error> {
        if self.detail.axes.is_empty()
            && let Some(point) = self.detail.points.first()
        {
            return serde_json::to_value(&point.summary);
        }
        serde_json::to_value(self.sweep_summary(sweep))
    }

    fn sweep_summary(&self, sweep: &Sweep) -> SweepSummary<TrafficSummary> {
        let detail = &self.detail;
        let point = |point: &PointDetail| SweepPoint {
            values: json_values(sweep, &point.values),
            summary: point.summary.clone(),
        };
        SweepSummary {
            name: detail.name.clone(),
            interim: detail.interim,
            axes: detail.axes.clone(),
            points: detail.points.iter().map(point).collect(),
            failed: detail.failed.clone(),
            reference: None,
        }
    }
}

/// The [`MAX_LINKS`] links that were used most, those first.
fn busiest(links: &LinkUses) -> Vec<LinkUse> {
    let mut busiest: Vec<(usize, LinkUse)> = Vec::new();
    for link in links.iter().enumerate() {
        busiest.push(link);
        // A large network has millions.
        if busiest.len() > 2 * MAX_LINKS {
            busiest.select_nth_unstable_by(MAX_LINKS, by_use);
            busiest.truncate(MAX_LINKS);
        }
    }
    busiest.sort_unstable_by(by_use);
    busiest.truncate(MAX_LINKS);
    busiest.into_iter().map(|(_, link)| link).collect()
}

/// Links with their numbers: those that were used more come first.
fn by_use((number, link): &(usize, LinkUse), (other_number, other): &(usize, LinkUse)) -> Ordering {
    let used = |link: &LinkUse| link.utilisation.unwrap_or(0.0);
    let by_use = used(other).total_cmp(&used(link)).then(other.bytes.cmp(&link.bytes));
    by_use.then(number.cmp(other_number))
}

impl TrafficSummary {
    /// The figures of the runs of one combination; `None` without any run.
    #[must_use]
    pub fn new(experiment: &Experiment, runs: &[TrafficRun]) -> Option<Self> {
        let first = runs.first()?;
        let (plan, own) = (&first.plan, &first.figures);
        let figures: Vec<&RunFigures> = runs.iter().map(|run| &run.figures).collect();
        let mean = |of: &dyn Fn(&RunFigures) -> Option<f64>| mean(&figures, of);
        let sum = |of: fn(&RunFigures) -> u64| figures.iter().map(|run| of(run)).sum::<u64>();
        let seconds = |of: fn(&RunFigures) -> f64| figures.iter().map(|run| of(run)).sum::<f64>();
        let cycle = plan.link.flit_ps();
        let in_cycles = |ps: Option<f64>| ps.filter(|_| cycle > 0.0).map(|ps| ps / cycle);
        let in_ns = |ps: Option<f64>| ps.map(|ps| ps / 1e3);
        let saturated: Vec<&RunFigures> = figures.iter().copied().filter(|run| run.saturation.is_saturated()).collect();
        let mut counters = BTreeMap::new();
        for (name, count) in figures.iter().flat_map(|run| &run.counters) {
            *counters.entry(name.clone()).or_insert(0) += count;
        }
        let (packet, network, message, hops) = pooled(&figures);
        let round_trip = of_all(&figures, |run| Some(&run.round_trip));
        let mut losses = Losses::default();
        figures.iter().for_each(|run| losses.add(&run.losses));
        let named = |unit: f64| {
            let of = |name: &str, histogram: &Histogram| (name.to_owned(), Distribution::new(histogram, unit));
            BTreeMap::from([of("packet", &packet), of("network", &network), of("message", &message)])
        };
        let traffic = experiment.traffic.as_ref()?;
        let utilisation = |of: &dyn Fn(&[f64]) -> Option<f64>| mean(&|run: &RunFigures| of(&utilisations(run)));
        Some(Self {
            name: experiment.name.clone(),
            fabric: experiment.fabric.kind().to_owned(),
            pattern: traffic.pattern.name().to_owned(),
            hosts: plan.hosts,
            seed: own.seed,
            seeds: figures.iter().map(|run| run.seed).collect(),
            interim: figures.iter().any(|run| run.interim),
            offered_load: mean(&|run| run.offered_load),
            accepted_load: mean(&|run| run.accepted_load),
            saturated: 2 * saturated.len() > figures.len(),
            saturated_because: saturated
                .first()
                .filter(|_| 2 * saturated.len() > figures.len())
                .map(|run| saturation_reason(run.saturation)),
            packet_latency_mean_cycles: in_cycles(mean(&|run| run.packet.mean())),
            network_latency_mean_cycles: in_cycles(mean(&|run| run.network.mean())),
            message_latency_mean_cycles: in_cycles(mean(&|run| run.message.mean())),
            packet_latency_mean_ns: in_ns(mean(&|run| run.packet.mean())),
            network_latency_mean_ns: in_ns(mean(&|run| run.network.mean())),
            message_latency_mean_ns: in_ns(mean(&|run| run.message.mean())),
            hops_mean: mean(&|run| run.hops.mean()),
            confidence: confidence(&figures, cycle),
            latency_ns: named(1e3),
            latency_cycles: named(cycle),
            hops: Distribution::new(&hops, 1.0),
            link_utilisation_mean: utilisation(&|all| {
                (!all.is_empty()).then(|| all.iter().sum::<f64>() / float(all.len() as u64))
            }),
            link_utilisation_max: utilisation(&|all| all.iter().copied().reduce(f64::max)),
            queue_max_bytes: figures
                .iter()
                .flat_map(|run| run.links.iter())
                .map(|link| link.queue_max_bytes)
                .max()
                .unwrap_or(0),
            source_queue_mean: mean(&|run| run.source_queue),
            in_network_mean: mean(&|run| run.in_network),
            packets: sum(|run| run.packets),
            packets_measured: sum(|run| run.packet.count()),
            packets_undelivered: sum(|run| run.undelivered),
            drops: sum(|run| run.drops),
            drops_measured: sum(|run| run.lost),
            drops_by_reason: losses.by_name().map(|(name, packets)| (name.to_owned(), packets)).collect(),
            offered_hops: figures
                .iter()
                .any(|run| run.offered_hops.is_some())
                .then(|| Distribution::new(&of_all(&figures, |run| run.offered_hops.as_ref()), 1.0)),
            round_trip_ns: (round_trip.count() > 0).then(|| Distribution::new(&round_trip, 1e3)),
            round_trip_cycles: (round_trip.count() > 0 && cycle > 0.0).then(|| Distribution::new(&round_trip, cycle)),
            background_packets: plan.has_background.then(|| sum(|run| run.background)),
            messages: sum(|run| run.messages),
            packet_hops: sum(|run| run.packet_hops),
            flit_hops: sum(|run| run.flit_hops),
            events: sum(|run| run.events),
            wall_s: seconds(|run| run.cost.wall_s),
            cpu_s: seconds(|run| run.cost.cpu_s),
            memory_peak_bytes: figures.iter().filter_map(|run| run.cost.memory_peak_bytes).max(),
            event_rate: rate(sum(|run| run.events), seconds(|run| run.cost.wall_s)),
            parallel: Parallel::of(&figures),
            simulated_ns: mean(&|run| Some(float(run.simulated_ps) / 1e3)).unwrap_or(0.0),
            measured_from_ns: float(plan.from_ps) / 1e3,
            measured_until_ns: float(plan.until_ps) / 1e3,
            cycle_ns: cycle / 1e3,
            message_bytes: message_bytes(traffic, plan),
            vls: vls(&figures),
            levels: levels::together(&figures, cycle),
            log: traffic.log.as_ref().map(|_| LogFigure {
                packets: runs.iter().map(|run| u64::from(run.hops.packets)).sum(),
                rows: runs.iter().map(|run| run.hops.hops.len() as u64).sum(),
                full: runs.iter().any(|run| run.hops.is_full),
            }),
            settled: figures.iter().filter_map(|run| run.settled).reduce(|all, one| all && one),
            batches: batches(runs, cycle),
            burst_cycles: burst_cycles(&figures, cycle),
            circuits: circuits::together(&figures),
            counters,
        })
    }
}

impl TrafficSummary {
    /// How many packets were lost, by reason, in words; `None` without losses.
    #[must_use]
    pub fn losses(&self) -> Option<String> {
        let words = |(reason, packets): (&String, &u64)| {
            let place = match reason.as_str() {
                "full_queue" => "at full queues of hosts",
                "blocked_head" => "as blocked heads of hosts' queues",
                _ => "in the network",
            };
            format!("{packets} {place}")
        };
        let all: Vec<String> = self.drops_by_reason.iter().map(words).collect();
        (!all.is_empty()).then(|| format!("lost: {}", all.join(", ")))
    }
}

/// `count` a second, of so many in `seconds`.
fn rate(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { float(count) / seconds } else { 0.0 }
}

/// INSEE's figures of batches: loads, packets, distances and latencies in cycles.
fn batches(runs: &[TrafficRun], cycle: f64) -> BTreeMap<String, BatchFigure> {
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for run in runs {
        for SeriesSpan { from_ps, until_ps, row } in &run.figures.batches {
            let of_time = |bytes: u64| load(&run.plan, bytes, until_ps - from_ps);
            let cycles = |ps: Option<f64>| ps.filter(|_| cycle > 0.0).map(|ps| ps / cycle);
            for (key, value) in [
                ("offered_load", of_time(row.offered_bytes)),
                ("accepted_load", of_time(row.accepted_bytes)),
                ("offered_packets", Some(float(row.offered))),
                ("accepted_packets", Some(float(row.accepted))),
                ("lost_packets", Some(float(row.lost))),
                ("hops_mean", hops(row)),
                ("packet_latency_mean_cycles", cycles(row.packet.mean())),
                ("packet_latency_deviation_cycles", cycles(row.packet.deviation())),
                ("packet_latency_max_cycles", cycles(row.packet.max().map(float))),
                ("network_latency_mean_cycles", cycles(row.network.mean())),
                ("network_latency_deviation_cycles", cycles(row.network.deviation())),
                ("network_latency_max_cycles", cycles(row.network.max().map(float))),
            ] {
                values.entry(key).or_default().extend(value);
            }
        }
    }
    let figure = |(key, values): (&str, Vec<f64>)| {
        let count = values.len();
        let mean = values.iter().sum::<f64>() / float(count as u64);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if count > 1 { (squares / float(count as u64 - 1)).sqrt() } else { 0.0 };
        (count > 0).then(|| (key.to_owned(), BatchFigure { count, mean, deviation }))
    };
    values.into_iter().filter_map(figure).collect()
}

/// What each virtual lane carried.
fn vls(figures: &[&RunFigures]) -> Vec<VlFigure> {
    let lanes = figures.iter().map(|run| run.vls.len()).max().unwrap_or(0);
    let flits = |vl: usize| figures.iter().filter_map(|run| run.vls.get(vl)).map(|lane| lane.flits).sum::<u64>();
    let all: u64 = (0..lanes).map(flits).sum();
    let of_lane = |vl: usize| {
        let mean = |of: fn(&VlUse) -> Option<f64>| mean(figures, &|run| run.vls.get(vl).and_then(of));
        VlFigure {
            flits: flits(vl),
            share: (all > 0).then(|| float(flits(vl)) / float(all)),
            utilisation_mean: mean(|lane| lane.utilisation_mean),
            utilisation_max: mean(|lane| lane.utilisation_max),
            queued_mean: mean(|lane| lane.queued_mean),
        }
    };
    (0..lanes).map(of_lane).collect()
}

fn burst_cycles(figures: &[&RunFigures], cycle: f64) -> Option<Distribution> {
    let mut times = Histogram::default();
    let bursts = figures.iter().flat_map(|run| &run.bursts);
    bursts.for_each(|burst| times.record(burst.until_ps - burst.from_ps));
    (times.count() > 0).then(|| Distribution::new(&times, cycle))
}

/// The load that `bytes` on the hosts' links are in a time.
pub(super) fn load(plan: &Plan, bytes: u64, span_ps: u64) -> Option<f64> {
    let capacity = float(plan.link.rate.bps()?) / 8e12 * float(span_ps) * f64::from(plan.hosts);
    (capacity > 0.0).then(|| float(bytes) / capacity)
}

/// The mean number of switches that the packets of `row` have passed.
pub(super) fn hops(row: &SeriesRow) -> Option<f64> {
    (row.accepted > 0).then(|| float(row.switches) / float(row.accepted))
}

fn message_bytes(traffic: &netsim::traffic::TrafficConfig, plan: &Plan) -> Option<u64> {
    let one_length = traffic.pattern != netsim::traffic::Pattern::Table && traffic.lengths.is_empty();
    one_length.then_some(plan.bytes)
}

fn mean(figures: &[&RunFigures], of: &dyn Fn(&RunFigures) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = figures.iter().filter_map(|run| of(run)).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / float(values.len() as u64))
}

fn utilisations(run: &RunFigures) -> Vec<f64> {
    run.links.iter().filter_map(|link| link.utilisation).collect()
}

/// The distributions of all runs together.
fn pooled(figures: &[&RunFigures]) -> (Histogram, Histogram, Histogram, Histogram) {
    let mut pools: [Histogram; 4] = Default::default();
    for run in figures {
        for (pool, one) in pools.iter_mut().zip([&run.packet, &run.network, &run.message, &run.hops]) {
            pool.add(one);
        }
    }
    let [packet, network, message, hops] = pools;
    (packet, network, message, hops)
}

/// One distribution of all runs that have it together.
fn of_all<'a>(figures: &[&'a RunFigures], of: impl Fn(&'a RunFigures) -> Option<&'a Histogram>) -> Histogram {
    let mut pool = Histogram::default();
    figures.iter().filter_map(|run| of(run)).for_each(|one| pool.add(one));
    pool
}

/// Half the widths of the confidence intervals over the seeds.
fn confidence(figures: &[&RunFigures], cycle: f64) -> BTreeMap<String, f64> {
    let mut halves = BTreeMap::new();
    let mut add = |key: &str, of: &dyn Fn(&RunFigures) -> Option<f64>| {
        let values: Vec<f64> = figures.iter().filter_map(|run| of(run)).collect();
        if let Some(interval) = interval(&values) {
            halves.insert(key.to_owned(), interval.half);
        }
    };
    add("offered_load", &|run| run.offered_load);
    add("accepted_load", &|run| run.accepted_load);
    add("hops_mean", &|run| run.hops.mean());
    type Times = fn(&RunFigures) -> &Histogram;
    let times: [(&str, Times); 3] =
        [("packet", |run| &run.packet), ("network", |run| &run.network), ("message", |run| &run.message)];
    for (kind, histogram) in times {
        add(&format!("{kind}_latency_mean_ns"), &|run| histogram(run).mean().map(|ps| ps / 1e3));
        if cycle > 0.0 {
            add(&format!("{kind}_latency_mean_cycles"), &|run| histogram(run).mean().map(|ps| ps / cycle));
        }
    }
    halves
}

fn saturation_reason(saturation: Saturation) -> String {
    match saturation {
        Saturation::No => String::new(),
        Saturation::AcceptsLess { share } => format!("accepted is {:.1}% of offered", share * 100.0),
        Saturation::LatencyGrows { by } => {
            format!("latency grows by {:.0}% of its mean through the measurement", by * 100.0)
        }
    }
}
