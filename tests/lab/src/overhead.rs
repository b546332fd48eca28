//! How much longer a job takes under the agents: two clusters, one with and one without them, sort in turns.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Context, LabError, Result};
use serde::{Deserialize, Serialize};

use crate::agents::Agents;
use crate::cluster::Cluster;
use crate::cost::{self, Cost};
use crate::jobs::{Done, JobOptions, Runner};
use crate::progress::Progress;
use crate::recorder::Recorder;
use crate::session::{ClusterOptions, Lab, capture_folder};
use crate::stop::Stop;

/// Quantiles 0.975 of Student's distribution for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// What is sorted, again and again.
const INPUT: &str = "/in";
/// So many sorted outputs may take room before they are removed.
const OUTPUTS: usize = 8;
/// Between the moment when a cluster goes on and its sort.
const SETTLE: Duration = Duration::from_secs(2);

/// One sort with and one without the agents, one right after the other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pair {
    /// Version of Hadoop.
    pub hadoop: String,
    /// Bytes of input.
    pub size_bytes: u64,
    /// Workers.
    pub workers: usize,
    /// Whether the sort under the agents was the first of the two.
    pub with_first: bool,
    /// How long the sort took under the agents, from the start of its client to its end, seconds.
    pub with_s: f64,
    /// The same without.
    pub without_s: f64,
    /// Load of the machine (runnable processes, mean of a minute) after both.
    pub load: f64,
}

impl Pair {
    /// How much longer the sort took under the agents.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.with_s / self.without_s
    }
}

/// A line of the results.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Pair(Pair),
    /// What the agents say of their cost, at the end of the pairs that one cluster ran.
    Cost(Cost),
}

/// Everything that a file of results holds.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The pairs, in order.
    pub pairs: Vec<Pair>,
    /// What the agents say of their cost in all of them, and in what stood around them.
    pub cost: Cost,
}

/// A mean ratio and where it lies with 95% confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Geometric mean of the pairs' ratios, with / without.
    pub ratio: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The interval of some ratios by Student's distribution over their logarithms; `None` for fewer than two.
#[must_use]
pub fn interval(ratios: &[f64]) -> Option<Interval> {
    if ratios.len() < 2 {
        return None;
    }
    let logs: Vec<f64> = ratios.iter().map(|ratio| libm::log(*ratio)).collect();
    let middle = mean(&logs);
    let freedom = logs.len() - 1;
    let variance = logs.iter().map(|log| (log - middle).powi(2)).sum::<f64>() / freedom as f64;
    let quantile = STUDENT.get(freedom - 1).copied().unwrap_or(STUDENT[STUDENT.len() - 1]);
    let half = quantile * (variance / logs.len() as f64).sqrt();
    Some(Interval { ratio: libm::exp(middle), low: libm::exp(middle - half), high: libm::exp(middle + half) })
}

/// Sorts in turns on two clusters, one with and one without the agents, and appends each pair to a file; pairs that it has
/// from runs before count too. Both clusters are there all the time, and one of them is stopped while the other one works.
///
/// # Errors
/// As of a lab's run, and if the file cannot be written or holds something else.
pub fn run(
    pairs: u32,
    cluster: &ClusterOptions,
    jobs: &JobOptions,
    agents: &Agents,
    results: &Path,
    stop: &Stop,
) -> Result<Results> {
    let before = read(results)?.pairs.len();
    let progress = Progress::new();
    let folder =
        tempfile::Builder::new().prefix("hadoptic-overhead-").tempdir().context("cannot make a work folder")?;
    let captures = [capture_folder(&folder.path().join("with"))?, capture_folder(&folder.path().join("without"))?];
    let named =
        |end: &str, subnet| ClusterOptions { prefix: format!("{}{end}", cluster.prefix), subnet, ..cluster.clone() };
    let with = Lab::prepare(&named("w", cluster.subnet), stop, &progress)?;
    let without = Lab::prepare(&named("o", cluster.subnet.map(|subnet| subnet.wrapping_add(1))), stop, &progress)?;
    let recorder = Recorder::Agents(agents.clone());
    with.with_cluster(&recorder, &captures[0], stop, &progress, |with| {
        without.with_cluster(&Recorder::Nobody, &captures[1], stop, &progress, |without| {
            let mut with = Runner { cluster: with, options: jobs, progress: &progress, done: Done::default() };
            let mut without = Runner { cluster: without, options: jobs, progress: &progress, done: Done::default() };
            warm_up(&mut with)?;
            warm_up(&mut without)?;
            let mut outputs = Vec::new();
            for number in before..before + pairs as usize {
                let output = format!("/out-{number}");
                let with_first = number.is_multiple_of(2);
                let early =
                    if with_first { Some(sort_alone(&mut with, without.cluster, &output, stop)?) } else { None };
                let without_s = sort_alone(&mut without, with.cluster, &output, stop)?;
                let with_s = early.map_or_else(|| sort_alone(&mut with, without.cluster, &output, stop), Ok)?;
                let pair = Pair {
                    hadoop: cluster.distribution.version().to_owned(),
                    size_bytes: jobs.size.0,
                    workers: cluster.workers,
                    with_first,
                    with_s,
                    without_s,
                    load: load_of_machine(),
                };
                append(results, &Line::Pair(pair))?;
                outputs.push(output);
                if outputs.len() == OUTPUTS {
                    with.remove(&outputs)?;
                    without.remove(&outputs)?;
                    outputs.clear();
                }
            }
            Ok(())
        })
    })?;
    progress.finish();
    append(results, &Line::Cost(cost::of(&captures[0])?))?;
    read(results)
}

/// The first sort of a cluster finds everything cold.
fn warm_up(side: &mut Runner<'_, '_>) -> Result<()> {
    side.generate_rows(INPUT)?;
    side.sort_rows(INPUT, "/out-warm")?;
    side.cluster.wait_for_containers()
}

/// Sorts on a cluster while the other one is stopped. Returns how long it took, seconds.
fn sort_alone(side: &mut Runner<'_, '_>, other: &Cluster<'_>, output: &str, stop: &Stop) -> Result<f64> {
    let _other = other.freeze()?;
    // What waited while this one was stopped comes first.
    stop.sleep(SETTLE)?;
    let run = side.sort_rows(INPUT, output)?;
    side.cluster.wait_for_containers()?;
    Ok(run.end_ns.saturating_sub(run.start_ns) as f64 / 1e9)
}

/// Each pair in a line, the interval, and what the agents cost.
#[must_use]
pub fn table(results: &Results) -> String {
    let pairs = &results.pairs;
    let mut text = String::new();
    for (number, pair) in pairs.iter().enumerate() {
        text.push_str(&format!(
            "pair {:>2}: {:.1} s with, {:.1} s without, ratio {:.3}; load {:.1}\n",
            number + 1,
            pair.with_s,
            pair.without_s,
            pair.ratio(),
            pair.load
        ));
    }
    let ratios: Vec<f64> = pairs.iter().map(Pair::ratio).collect();
    text.push_str(&match interval(&ratios) {
        Some(i) => format!(
            "time of a sort with / without: {:.3}, 95% interval {:.3} to {:.3} ({} pairs)\n",
            i.ratio,
            i.low,
            i.high,
            pairs.len()
        ),
        None => "one pair tells no interval: run more\n".to_owned(),
    });
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    text.push_str(&format!("machine: {cores} cores; times on the wall grow with its load\n\n"));
    text.push_str(&results.cost.table());
    text
}

fn read(results: &Path) -> Result<Results> {
    let text = match fs::read_to_string(results) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Results::default()),
        text => text.at("cannot read", results)?,
    };
    let mut all = Results::default();
    for (number, line) in text.lines().enumerate() {
        let line = serde_json::from_str(line).with_context(|| {
            format!("{}:{} is no result of this `lab overhead`: name another file", results.display(), number + 1)
        })?;
        match line {
            Line::Pair(pair) => all.pairs.push(pair),
            Line::Cost(cost) => all.cost = all.cost.plus(cost),
        }
    }
    Ok(all)
}

fn append(results: &Path, line: &Line) -> Result<()> {
    let mut text = serde_json::to_vec(line).at("cannot write", results)?;
    text.push(b'\n');
    let file = OpenOptions::new().create(true).append(true).open(results);
    file.and_then(|mut file| file.write_all(&text)).at("cannot write", results)
}

fn load_of_machine() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(f64::NAN)
}

/// Checks that results can be appended before an hour is spent on them.
///
/// # Errors
/// If not, or if pairs of another kind are in the file.
pub fn check(results: &Path, cluster: &ClusterOptions, jobs: &JobOptions) -> Result<PathBuf> {
    for pair in read(results)?.pairs {
        if !(pair.hadoop == cluster.distribution.version()
            && pair.size_bytes == jobs.size.0
            && pair.workers == cluster.workers)
        {
            return Err(LabError::Config(format!(
                "{} has pairs of Hadoop {}, {} workers and {} bytes: name another file",
                results.display(),
                pair.hadoop,
                pair.workers,
                pair.size_bytes
            )));
        }
    }
    OpenOptions::new().create(true).append(true).open(results).at("cannot write", results)?;
    Ok(results.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn the_interval_is_students_over_the_logarithms() {
        assert_eq!(interval(&[1.1]), None);
        let same = interval(&[1.1, 1.1, 1.1]).unwrap();
        assert!((same.ratio - 1.1).abs() < 1e-12 && (same.high - same.low).abs() < 1e-12);
        // Logarithms -1, 0, 1: mean 0, deviation 1, half width 4.303 / sqrt(3).
        let wide = interval(&[libm::exp(-1.0), 1.0, libm::exp(1.0)]).unwrap();
        assert!((wide.ratio - 1.0).abs() < 1e-12);
        assert!((libm::log(wide.high) - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9);
        assert!((wide.low * wide.high - 1.0).abs() < 1e-12);
    }

    #[test]
    fn pairs_of_earlier_runs_count_and_other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pairs.jsonl");
        let pair = Pair {
            hadoop: "3.4.2".into(),
            size_bytes: 1,
            workers: 2,
            with_first: true,
            with_s: 11.0,
            without_s: 10.0,
            load: 1.0,
        };
        for line in [Line::Pair(pair.clone()), Line::Pair(pair), Line::Cost(Cost { jvms: 3, ..Cost::default() })] {
            append(&file, &line).unwrap();
        }
        let all = read(&file).unwrap();
        assert_eq!((all.pairs.len(), all.cost.jvms), (2, 3));
        let said = table(&all);
        assert!(said.contains("1.100, 95% interval 1.100 to 1.100 (2 pairs)"), "{said}");
        fs::write(&file, "something\n").unwrap();
        assert!(read(&file).unwrap_err().to_string().contains(":1 is no result"));
    }
}
