//! What counting the congestion of static routing leaves behind.
//!
//! | file | what |
//! |---|---|
//! | `congestion.json` | [`CongestionDetail`], from which the report is drawn |
//! | `congestion.parquet` | figures, a row a case: a pattern on a number of hosts under a routing |
//! | `shuffle.parquet` | the same of a recorded shuffle, a row a routing |
//! | `histograms.parquet` | how often each congestion, sum, delay and bandwidth came in each case |

use std::path::Path;

use congestion::{Bandwidths, Histogram, Results, Sharing, Summary, bandwidth, median};
use netsim::topology::Topology;
use serde::{Deserialize, Serialize};
use trace_tables::write_rows;

use super::StoreError;
use super::store::{make_folder, read_json, write_json};
use super::tables::{CongestionResult, HistogramResult, ShuffleResult};
use crate::long_messages::Compared;

/// The file from which the report is drawn.
const DETAIL: &str = "congestion.json";

/// Patterns under routings, each with its congestion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CongestionDetail {
    /// The topology's shape.
    pub topology: String,
    /// How many hosts it has.
    pub topology_hosts: u32,
    /// Runs of each case.
    pub runs: u64,
    /// What decided all that is random.
    pub seed: u64,
    /// What was counted; nothing where a shuffle was looked at.
    pub cases: Vec<CongestionCase>,
    /// A recorded shuffle in place of patterns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shuffle: Option<ShuffleDetail>,
}

/// A recorded shuffle under routings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShuffleDetail {
    /// The folder of the trace.
    pub trace: String,
    /// The job.
    pub job: String,
    /// Hosts of the trace.
    pub hosts: usize,
    /// Whether they are the topology's in order; else mapped to them at random, for each run anew.
    pub in_order: bool,
    /// Pairs of hosts that exchange map outputs.
    pub pairs: usize,
    /// Bytes between hosts.
    pub bytes: u64,
    /// Bytes that stayed on their host.
    pub local_bytes: u64,
    /// What came out, routing by routing.
    pub routings: Vec<ShuffleCase>,
}

/// A recorded shuffle under a routing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShuffleCase {
    /// The routing.
    pub routing: String,
    /// The time of the link that needs the longest for the bytes that cross it, seconds; over runs.
    pub links_s: Option<Summary>,
    /// The same of the links of hosts alone.
    pub host_links_s: Option<Summary>,
    /// How many times as long the first is as the second, of the means.
    pub slowdown: Option<f64>,
    /// The link with most bytes in all runs.
    pub busiest: String,
    /// Its bytes a run, in the mean.
    pub busiest_bytes: u64,
}

impl ShuffleCase {
    /// What came out of `runs` runs on `topology`.
    #[must_use]
    pub fn new(routing: String, topology: &Topology, sharing: &Sharing, runs: u64) -> Self {
        let (links, hosts) = (sharing.links.seconds(), sharing.host_links.seconds());
        let both = links.zip(hosts).filter(|(_, hosts)| hosts.mean > 0.0);
        // The first one of several.
        let busiest = sharing.bytes.iter().enumerate().rev().max_by_key(|(_, bytes)| **bytes);
        Self {
            routing,
            links_s: links,
            host_links_s: hosts,
            slowdown: both.map(|(links, hosts)| links.mean / hosts.mean),
            busiest: busiest.map(|(link, _)| topology.link_name(link.into()).into_string()).unwrap_or_default(),
            busiest_bytes: busiest.map_or(0, |(_, bytes)| bytes / runs.max(1)),
        }
    }
}

/// What tells a case from the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseKey {
    /// The routing.
    pub routing: String,
    /// The pattern.
    pub pattern: String,
    /// What the ranks do that the pattern leaves over.
    pub against: Option<String>,
    /// Ranks of the pattern, where others do something else.
    pub part: Option<u32>,
    /// How many hosts take part.
    pub hosts: usize,
}

/// A pattern on a number of hosts under a routing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CongestionCase {
    /// What tells it from the other cases.
    #[serde(flatten)]
    pub key: CaseKey,
    /// Messages of all runs that go from one host to another.
    pub pairs: u64,
    /// Links on all paths.
    pub link_visits: u64,
    /// Messages of all runs by their congestion.
    pub congestion: Histogram,
    /// Their mean bandwidth; null without messages.
    pub bandwidth: Option<f64>,
    /// Bandwidths of runs.
    pub bandwidth_of_runs: Option<Summary>,
    /// Runs in each of 20 bins over 0 to 1.01.
    pub bandwidth_bins: [u64; Bandwidths::BINS],
    /// Sums over levels of the greatest congestion.
    pub sum_max_cong: Option<Summary>,
    /// Runs by that sum.
    pub sum_max_cong_runs: Histogram,
    /// Longest chains of messages.
    pub dep_max_delay: Option<Summary>,
    /// The chain that half of the runs do not exceed.
    pub dep_max_delay_median: Option<u64>,
    /// Runs by their longest chain.
    pub dep_max_delay_runs: Histogram,
    /// The same messages simulated, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Compared>,
}

impl CongestionCase {
    /// What came out of a case.
    #[must_use]
    pub fn new(key: CaseKey, results: &Results) -> Self {
        Self {
            key,
            pairs: results.congestion.values().sum(),
            link_visits: results.visits,
            congestion: results.congestion.clone(),
            bandwidth: bandwidth(&results.congestion),
            bandwidth_of_runs: results.bandwidth.summary(),
            bandwidth_bins: results.bandwidth.bins,
            sum_max_cong: Summary::of(&results.sum_max),
            sum_max_cong_runs: results.sum_max.clone(),
            dep_max_delay: Summary::of(&results.delay),
            dep_max_delay_median: median(&results.delay),
            dep_max_delay_runs: results.delay.clone(),
            simulated: None,
        }
    }
}

impl CaseKey {
    /// In what it differs from some of `others`; the pattern if in nothing.
    #[must_use]
    pub fn label<'a>(&self, others: impl IntoIterator<Item = &'a Self> + Clone) -> String {
        let differs = |of: &dyn Fn(&Self) -> bool| others.clone().into_iter().any(of);
        let mut parts = Vec::new();
        if differs(&|other| other.routing != self.routing) {
            parts.push(self.routing.clone());
        }
        let pattern = differs(&|other| other.pattern != self.pattern);
        if pattern {
            parts.push(self.pattern.clone());
        }
        if differs(&|other| other.against != self.against) {
            parts.push(format!("against {}", self.against.as_deref().unwrap_or("nothing")));
        }
        if differs(&|other| other.hosts != self.hosts) {
            parts.push(format!("{} hosts", self.hosts));
        }
        if parts.is_empty() { self.pattern.clone() } else { parts.join(", ") }
    }
}

impl CongestionDetail {
    /// Each case with what tells it from the others.
    pub fn labelled(&self) -> impl Iterator<Item = (String, &CongestionCase)> {
        self.cases.iter().map(|case| (case.key.label(self.cases.iter().map(|other| &other.key)), case))
    }
}

/// Writes all but the report into a folder, which is made where it is missing.
///
/// # Errors
/// If something cannot be written.
pub fn write_congestion(folder: &Path, detail: &CongestionDetail) -> Result<(), StoreError> {
    make_folder(folder)?;
    write_json(&folder.join(DETAIL), detail)?;
    if let Some(shuffle) = &detail.shuffle {
        return write_shuffle(folder, &shuffle.routings);
    }
    write_figures(folder, &detail.cases)?;
    write_histograms(folder, &detail.cases)
}

/// Reads what the report is drawn from; `None` if the folder holds none.
///
/// # Errors
/// If it cannot be understood.
pub fn read_congestion(folder: &Path) -> Result<Option<CongestionDetail>, StoreError> {
    let path = folder.join(DETAIL);
    if path.exists() { read_json(&path).map(Some) } else { Ok(None) }
}

fn write_figures(folder: &Path, cases: &[CongestionCase]) -> Result<(), StoreError> {
    let of = |runs: Option<Summary>, figure: fn(Summary) -> f64| runs.map(figure);
    let row = |case: &CongestionCase| {
        let simulated = |figure: fn(&Compared) -> f64| case.simulated.as_ref().map(figure);
        CongestionResult {
            routing: case.key.routing.clone(),
            pattern: case.key.pattern.clone(),
            against: case.key.against.clone(),
            part: case.key.part,
            hosts: case.key.hosts as u64,
            pairs: case.pairs,
            link_visits: case.link_visits,
            bandwidth: case.bandwidth,
            dep_max_delay_median: case.dep_max_delay_median,
            bandwidth_of_runs_mean: of(case.bandwidth_of_runs, |runs| runs.mean),
            bandwidth_of_runs_half_width_99: of(case.bandwidth_of_runs, |runs| runs.half_width_99),
            bandwidth_of_runs_deviation: of(case.bandwidth_of_runs, |runs| runs.deviation),
            bandwidth_of_runs_min: of(case.bandwidth_of_runs, |runs| runs.min),
            bandwidth_of_runs_max: of(case.bandwidth_of_runs, |runs| runs.max),
            sum_max_cong_mean: of(case.sum_max_cong, |runs| runs.mean),
            sum_max_cong_half_width_99: of(case.sum_max_cong, |runs| runs.half_width_99),
            sum_max_cong_deviation: of(case.sum_max_cong, |runs| runs.deviation),
            sum_max_cong_min: of(case.sum_max_cong, |runs| runs.min),
            sum_max_cong_max: of(case.sum_max_cong, |runs| runs.max),
            dep_max_delay_mean: of(case.dep_max_delay, |runs| runs.mean),
            dep_max_delay_half_width_99: of(case.dep_max_delay, |runs| runs.half_width_99),
            dep_max_delay_deviation: of(case.dep_max_delay, |runs| runs.deviation),
            dep_max_delay_min: of(case.dep_max_delay, |runs| runs.min),
            dep_max_delay_max: of(case.dep_max_delay, |runs| runs.max),
            static_slowest_s: simulated(|compared| compared.static_slowest_s),
            simulated_slowest_s: simulated(|compared| compared.simulated_slowest_s),
            static_mean_s: simulated(|compared| compared.static_mean_s),
            simulated_mean_s: simulated(|compared| compared.simulated_mean_s),
            mean_error: simulated(|compared| compared.mean_error),
        }
    };
    Ok(write_rows(folder, &cases.iter().map(row).collect::<Vec<_>>())?)
}

fn write_histograms(folder: &Path, cases: &[CongestionCase]) -> Result<(), StoreError> {
    let mut rows: Vec<HistogramResult> = Vec::new();
    for case in cases {
        let mut push = |metric: &str, from: f64, below: f64, count: u64| {
            rows.push(HistogramResult {
                routing: case.key.routing.clone(),
                pattern: case.key.pattern.clone(),
                against: case.key.against.clone(),
                part: case.key.part,
                hosts: case.key.hosts as u64,
                metric: metric.to_owned(),
                from,
                below,
                count,
            });
        };
        for (metric, histogram) in [
            ("hist_max_cong", &case.congestion),
            ("sum_max_cong", &case.sum_max_cong_runs),
            ("dep_max_delay", &case.dep_max_delay_runs),
        ] {
            for (value, count) in histogram {
                #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
                let value = *value as f64;
                push(metric, value, value + 1.0, *count);
            }
        }
        for (bin, runs) in case.bandwidth_bins.iter().enumerate().filter(|(_, runs)| **runs > 0) {
            push("hist_acc_band", Bandwidths::edge(bin), Bandwidths::edge(bin + 1), *runs);
        }
    }
    Ok(write_rows(folder, &rows)?)
}

fn write_shuffle(folder: &Path, cases: &[ShuffleCase]) -> Result<(), StoreError> {
    let row = |case: &ShuffleCase| ShuffleResult {
        routing: case.routing.clone(),
        links_s: case.links_s.map(|runs| runs.mean),
        links_half_width_99_s: case.links_s.map(|runs| runs.half_width_99),
        links_min_s: case.links_s.map(|runs| runs.min),
        links_max_s: case.links_s.map(|runs| runs.max),
        host_links_s: case.host_links_s.map(|runs| runs.mean),
        slowdown: case.slowdown,
        busiest: case.busiest.clone(),
        busiest_bytes: case.busiest_bytes,
    };
    Ok(write_rows(folder, &cases.iter().map(row).collect::<Vec<_>>())?)
}
