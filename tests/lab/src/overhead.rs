//! How much longer a job takes under the agents: pairs of clusters, one with and one without, in turns.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::cost::{self, Cost};
use crate::jobs::{JobKind, JobOptions};
use crate::progress::Progress;
use crate::recorder::{Agents, Recorder};
use crate::session::{ClusterOptions, Lab, capture_folder};
use crate::stop::Stop;

/// Quantiles 0.975 of Student's distribution for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// Two clusters, one after the other.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pair {
    /// Version of Hadoop.
    pub hadoop: String,
    /// Bytes of input.
    pub size_bytes: u64,
    /// Workers.
    pub workers: usize,
    /// Whether the cluster with agents was the first of the two.
    pub with_first: bool,
    /// How long each sort took under the agents, from submission to end by the job history, seconds.
    pub with_s: Vec<f64>,
    /// The same without.
    pub without_s: Vec<f64>,
    /// Load of the machine (runnable processes, mean of a minute) after each of the two, in the order in which they ran.
    pub load: [f64; 2],
    /// What the agents say of their cost.
    pub cost: Cost,
}

impl Pair {
    /// How much longer the sorts took under the agents, by their means.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        mean(&self.with_s) / mean(&self.without_s)
    }
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
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let middle = mean(&logs);
    let freedom = logs.len() - 1;
    let variance = logs.iter().map(|log| (log - middle).powi(2)).sum::<f64>() / freedom as f64;
    let quantile = STUDENT.get(freedom - 1).copied().unwrap_or(STUDENT[STUDENT.len() - 1]);
    let half = quantile * (variance / logs.len() as f64).sqrt();
    Some(Interval { ratio: middle.exp(), low: (middle - half).exp(), high: (middle + half).exp() })
}

/// Runs pairs and appends each to a file; pairs that the file has from runs before count too.
///
/// # Errors
/// As of a lab's run, and if the file cannot be written or holds something else.
pub fn run(
    pairs: u32,
    sorts: usize,
    cluster: &ClusterOptions,
    jobs: &JobOptions,
    agents: &Agents,
    results: &Path,
    stop: &Stop,
) -> Result<Vec<Pair>> {
    let mut all = read(results)?;
    for _ in 0..pairs {
        let with_first = all.len().is_multiple_of(2);
        let mut times = [Vec::new(), Vec::new()];
        let mut load = [0.0; 2];
        let mut cost = Cost::default();
        for (turn, load) in load.iter_mut().enumerate() {
            let with = with_first == (turn == 0);
            let progress = Progress::new();
            let lab = Lab::prepare(cluster, stop, &progress)?;
            let folder = tempfile::Builder::new().prefix("hadoptic-overhead-").tempdir()?;
            let capture = capture_folder(folder.path())?;
            let recorder = if with { Recorder::Agents(agents.clone()) } else { Recorder::Nobody };
            let outcome = lab.run(&vec![JobKind::Terasort; sorts], jobs, &recorder, Some(&capture), stop, &progress)?;
            progress.finish();
            let sorted = outcome.truth.jobs.iter().filter(|job| job.kind == "terasort");
            times[usize::from(!with)] =
                sorted.map(|job| job.finished_ns.saturating_sub(job.submitted_ns) as f64 / 1e9).collect();
            *load = load_of_machine();
            if with {
                cost = cost::of(&capture)?;
            }
        }
        let [with_s, without_s] = times;
        let pair = Pair {
            hadoop: cluster.distribution.version().to_owned(),
            size_bytes: jobs.size.0,
            workers: cluster.workers,
            with_first,
            with_s,
            without_s,
            load,
            cost,
        };
        append(results, &pair)?;
        all.push(pair);
    }
    Ok(all)
}

/// Each pair in a line, the interval, and what the agents cost.
#[must_use]
pub fn table(pairs: &[Pair]) -> String {
    let mut text = String::new();
    for (number, pair) in pairs.iter().enumerate() {
        text.push_str(&format!(
            "pair {:>2}: {:.1} s with, {:.1} s without, ratio {:.3}; load {:.1} and {:.1}\n",
            number + 1,
            mean(&pair.with_s),
            mean(&pair.without_s),
            pair.ratio(),
            pair.load[0],
            pair.load[1]
        ));
    }
    let ratios: Vec<f64> = pairs.iter().map(Pair::ratio).collect();
    let sorts: usize = pairs.iter().map(|pair| pair.with_s.len() + pair.without_s.len()).sum();
    text.push_str(&match interval(&ratios) {
        Some(i) => format!(
            "time of a sort with / without: {:.3}, 95% interval {:.3} to {:.3} ({} pairs of clusters, {sorts} sorts)\n",
            i.ratio,
            i.low,
            i.high,
            pairs.len()
        ),
        None => "one pair tells no interval: run more\n".to_owned(),
    });
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    text.push_str(&format!("machine: {cores} cores; times on the wall grow with its load\n\n"));
    text.push_str(&pairs.iter().fold(Cost::default(), |sum, pair| sum.plus(pair.cost)).table());
    text
}

fn read(results: &Path) -> Result<Vec<Pair>> {
    match fs::read_to_string(results) {
        Ok(text) => text
            .lines()
            .enumerate()
            .map(|(number, line)| {
                serde_json::from_str(line).with_context(|| {
                    format!("{}:{} is no pair of `lab overhead`: name another file", results.display(), number + 1)
                })
            })
            .collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", results.display())),
    }
}

fn append(results: &Path, pair: &Pair) -> Result<()> {
    let mut line = serde_json::to_vec(pair)?;
    line.push(b'\n');
    let file = OpenOptions::new().create(true).append(true).open(results);
    file.and_then(|mut file| file.write_all(&line)).with_context(|| format!("cannot write {}", results.display()))
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
    for pair in read(results)? {
        ensure!(
            pair.hadoop == cluster.distribution.version()
                && pair.size_bytes == jobs.size.0
                && pair.workers == cluster.workers,
            "{} has pairs of Hadoop {}, {} workers and {} bytes: name another file",
            results.display(),
            pair.hadoop,
            pair.workers,
            pair.size_bytes
        );
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(results)
        .with_context(|| format!("cannot write {}", results.display()))?;
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
        let wide = interval(&[(-1.0_f64).exp(), 1.0, 1.0_f64.exp()]).unwrap();
        assert!((wide.ratio - 1.0).abs() < 1e-12);
        assert!((wide.high.ln() - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9);
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
            with_s: vec![11.0, 11.0],
            without_s: vec![10.0],
            load: [1.0, 2.0],
            cost: Cost::default(),
        };
        append(&file, &pair).unwrap();
        append(&file, &pair).unwrap();
        let both = read(&file).unwrap();
        assert_eq!(both.len(), 2);
        let said = table(&both);
        assert!(said.contains("1.100, 95% interval 1.100 to 1.100 (2 pairs of clusters, 6 sorts)"), "{said}");
        fs::write(&file, "something\n").unwrap();
        assert!(read(&file).unwrap_err().to_string().contains(":1 is no pair"));
    }
}
