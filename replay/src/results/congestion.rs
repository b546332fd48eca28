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
use trace::rows::Column;
use trace_tables::write_columns;

use super::StoreError;
use super::store::{column, make_folder, read_json, write_json};
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
            busiest: busiest.map(|(link, _)| topology.link_name(link.into())).unwrap_or_default(),
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
    /// Which.
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

/// The columns that say which case a row is of.
fn keys<R>(rows: &[R], key: impl Fn(&R) -> &CaseKey + Copy) -> Vec<(String, Column)> {
    vec![
        column(rows, "routing", Column::Text, |row| key(row).routing.clone()),
        column(rows, "pattern", Column::Text, |row| key(row).pattern.clone()),
        column(rows, "against", Column::Text, |row| key(row).against.clone()),
        column(rows, "part", Column::U32, |row| key(row).part),
        column(rows, "hosts", Column::U64, |row| key(row).hosts as u64),
    ]
}

/// A figure of a case's runs.
type Of = fn(&CongestionCase) -> Option<Summary>;
type Figure = fn(&Summary) -> f64;
type ComparedFigure = fn(&Compared) -> f64;

fn write_figures(folder: &Path, cases: &[CongestionCase]) -> Result<(), StoreError> {
    const OF: [(&str, Of); 3] = [
        ("bandwidth_of_runs", |case| case.bandwidth_of_runs),
        ("sum_max_cong", |case| case.sum_max_cong),
        ("dep_max_delay", |case| case.dep_max_delay),
    ];
    const FIGURES: [(&str, Figure); 5] = [
        ("mean", |runs| runs.mean),
        ("half_width_99", |runs| runs.half_width_99),
        ("deviation", |runs| runs.deviation),
        ("min", |runs| runs.min),
        ("max", |runs| runs.max),
    ];
    const SIMULATED: [(&str, ComparedFigure); 5] = [
        ("static_slowest_s", |compared| compared.static_slowest_s),
        ("simulated_slowest_s", |compared| compared.simulated_slowest_s),
        ("static_mean_s", |compared| compared.static_mean_s),
        ("simulated_mean_s", |compared| compared.simulated_mean_s),
        ("mean_error", |compared| compared.mean_error),
    ];
    let mut columns = keys(cases, |case| &case.key);
    columns.push(column(cases, "pairs", Column::U64, |case| case.pairs));
    columns.push(column(cases, "link_visits", Column::U64, |case| case.link_visits));
    columns.push(column(cases, "bandwidth", Column::F64, |case| case.bandwidth));
    columns.push(column(cases, "dep_max_delay_median", Column::U64, |case| case.dep_max_delay_median));
    for (name, of) in OF {
        for (figure, value) in FIGURES {
            let cell = |case: &CongestionCase| of(case).as_ref().map(value);
            columns.push(column(cases, &format!("{name}_{figure}"), Column::F64, cell));
        }
    }
    if cases.iter().any(|case| case.simulated.is_some()) {
        for (name, value) in SIMULATED {
            columns.push(column(cases, name, Column::F64, |case| case.simulated.as_ref().map(value)));
        }
    }
    Ok(write_columns(&folder.join("congestion.parquet"), columns, cases.len())?)
}

fn write_histograms(folder: &Path, cases: &[CongestionCase]) -> Result<(), StoreError> {
    /// What was counted, from which value to below which, and how often it came.
    type Row<'a> = (&'a CaseKey, &'static str, f64, f64, u64);
    let mut rows: Vec<Row<'_>> = Vec::new();
    for case in cases {
        let of = [
            ("hist_max_cong", &case.congestion),
            ("sum_max_cong", &case.sum_max_cong_runs),
            ("dep_max_delay", &case.dep_max_delay_runs),
        ];
        for (metric, histogram) in of {
            #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
            let row = |(value, count): (&u64, &u64)| (&case.key, metric, *value as f64, *value as f64 + 1.0, *count);
            rows.extend(histogram.iter().map(row));
        }
        let bins = case.bandwidth_bins.iter().enumerate().filter(|(_, runs)| **runs > 0);
        let edges = |bin| (Bandwidths::edge(bin), Bandwidths::edge(bin + 1));
        rows.extend(bins.map(|(bin, runs)| (&case.key, "hist_acc_band", edges(bin).0, edges(bin).1, *runs)));
    }
    let mut columns = keys(&rows, |row| row.0);
    columns.push(column(&rows, "metric", Column::Text, |row| row.1.to_owned()));
    columns.push(column(&rows, "from", Column::F64, |row| row.2));
    columns.push(column(&rows, "below", Column::F64, |row| row.3));
    columns.push(column(&rows, "count", Column::U64, |row| row.4));
    Ok(write_columns(&folder.join("histograms.parquet"), columns, rows.len())?)
}

fn write_shuffle(folder: &Path, cases: &[ShuffleCase]) -> Result<(), StoreError> {
    let columns = vec![
        column(cases, "routing", Column::Text, |case| case.routing.clone()),
        column(cases, "links_s", Column::F64, |case| case.links_s.map(|runs| runs.mean)),
        column(cases, "links_half_width_99_s", Column::F64, |case| case.links_s.map(|runs| runs.half_width_99)),
        column(cases, "links_min_s", Column::F64, |case| case.links_s.map(|runs| runs.min)),
        column(cases, "links_max_s", Column::F64, |case| case.links_s.map(|runs| runs.max)),
        column(cases, "host_links_s", Column::F64, |case| case.host_links_s.map(|runs| runs.mean)),
        column(cases, "slowdown", Column::F64, |case| case.slowdown),
        column(cases, "busiest", Column::Text, |case| case.busiest.clone()),
        column(cases, "busiest_bytes", Column::U64, |case| case.busiest_bytes),
    ];
    Ok(write_columns(&folder.join("shuffle.parquet"), columns, cases.len())?)
}
