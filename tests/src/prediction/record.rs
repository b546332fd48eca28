//! Real runs: the lab runs the jobs of a plan on each network, and their traces are kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use trace::files;
use trace::truth::Truth;

use super::plan::{Cluster, Network, Plan};
use crate::{copy_without_jvms, program, run};

/// A busy machine makes jobs slow; its runs are recorded and said to be so.
const QUIET_LOAD: f64 = 1.0;
/// Written last: what is in its folder is whole.
const RUN_FILE: &str = "run.json";

/// A real run: its folder has `trace`, `trace-without-agent`, `truth.json`.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its folder.
    pub folder: PathBuf,
    /// How the machine was.
    pub conditions: Conditions,
    /// What the lab knows of it.
    pub truth: Truth,
}

/// How the machine was when a run began.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Conditions {
    /// Mean number of runnable processes in the minute before.
    pub load: f64,
    /// What the lab found wrong; such a run still counts.
    pub problems: Vec<String>,
}

impl Run {
    /// Its trace.
    #[must_use]
    pub fn trace(&self) -> PathBuf {
        self.folder.join("trace")
    }

    /// Its trace as it would be without the Java agent.
    #[must_use]
    pub fn trace_without_agent(&self) -> PathBuf {
        self.folder.join("trace-without-agent")
    }

    /// How long a job took, by the job history; `None` if it did not run.
    #[must_use]
    pub fn job_s(&self, kind: &str) -> Option<f64> {
        let job = self.truth.jobs.iter().find(|job| job.kind == kind && job.finished_ns > job.submitted_ns)?;
        Some((job.finished_ns - job.submitted_ns) as f64 / 1e9)
    }
}

/// Where the runs of a cluster on a network lie.
#[must_use]
pub fn folder_of(out: &Path, cluster: &Cluster, network: &Network) -> PathBuf {
    out.join(&cluster.hadoop).join(&network.name)
}

/// The runs that are whole, by their numbers.
///
/// # Errors
/// If one cannot be read.
pub fn runs_of(out: &Path, cluster: &Cluster, network: &Network, most: usize) -> Result<Vec<Run>> {
    let folder = folder_of(out, cluster, network);
    let read = |number: usize| {
        let folder = folder.join(format!("run-{number}"));
        if !folder.join(RUN_FILE).exists() {
            return Ok(None);
        }
        let (conditions, truth) = (read_json(&folder.join(RUN_FILE))?, read_json(&folder.join("truth.json"))?);
        Ok(Some(Run { folder, conditions, truth }))
    };
    (1..=most).filter_map(|number| read(number).transpose()).collect()
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let place = || path.display().to_string();
    serde_json::from_reader(files::open(path).with_context(place)?).with_context(place)
}

/// Makes the runs that are missing: one on each network, then the next on each, so that a machine that changes with the hours
/// changes for all networks alike.
///
/// # Errors
/// If the lab or the merger cannot do one; those before it are kept.
pub fn record(plan: &Plan, out: &Path, tell: &dyn Fn(&str)) -> Result<()> {
    for number in 1..=plan.runs {
        for cluster in &plan.clusters {
            for network in &plan.networks {
                let folder = folder_of(out, cluster, network).join(format!("run-{number}"));
                if !folder.join(RUN_FILE).exists() {
                    tell(&format!("Hadoop {} on {}, run {number} of {}", cluster.hadoop, network.name, plan.runs));
                    record_one(plan, cluster, network, &folder)?;
                }
            }
        }
    }
    Ok(())
}

fn record_one(plan: &Plan, cluster: &Cluster, network: &Network, folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let load = fs::read_to_string("/proc/loadavg")?;
    let load = load.split(' ').next().and_then(|load| load.parse().ok()).context("/proc/loadavg has no load")?;
    let capture = folder.join("capture");
    let mut lab = Command::new(program("lab")?);
    lab.args(["run", "--quiet", "--prefix", "predict", "--hadoop", &cluster.hadoop, "--size", &plan.size])
        .args(["--reduces", &plan.reduces.to_string(), "--links", &network.links, "--uplink", &network.uplink])
        .arg("--capture")
        .arg(&capture);
    for job in &cluster.jobs {
        lab.args(["--job", job.name()]);
    }
    let done = lab.output().context("starting lab")?;
    // 1: the jobs ran, and something is not as it should be; the truth says what.
    ensure!(
        matches!(done.status.code(), Some(0 | 1)),
        "lab run ended with {}: {}",
        done.status,
        String::from_utf8_lossy(&done.stderr)
    );
    let stripped = folder.join("capture-without-agent");
    copy_without_jvms(&capture, &stripped)?;
    merge(&capture, &folder.join("trace"))?;
    merge(&stripped, &folder.join("trace-without-agent"))?;
    fs::copy(capture.join("truth.json"), folder.join("truth.json"))?;
    fs::remove_dir_all(&stripped)?;
    fs::remove_dir_all(&capture)?;
    let truth: Truth = read_json(&folder.join("truth.json"))?;
    let mut problems = truth.problems;
    if load > QUIET_LOAD {
        problems.push(format!("the machine had a load of {load} when it began"));
    }
    fs::write(folder.join(RUN_FILE), serde_json::to_vec_pretty(&Conditions { load, problems })?)?;
    Ok(())
}

fn merge(capture: &Path, trace: &Path) -> Result<()> {
    let (capture, trace) = (text(capture)?, text(trace)?);
    let built = run("merger", &["build", capture, "--out", trace])?;
    ensure!(built.status.success(), "merging {capture}: {}", String::from_utf8_lossy(&built.stderr));
    Ok(())
}

/// A path as an argument.
///
/// # Errors
/// If it is no text.
pub fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is no text", path.display()))
}
