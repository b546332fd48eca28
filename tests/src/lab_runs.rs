//! Real runs: the lab runs jobs under capture, their traces are kept, and the captures are not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use trace::files;
use trace::truth::Truth;

use crate::interruption::Interruption;
use crate::{copy_without_jvms, program, run};

/// A busy machine makes jobs slow; its runs are recorded and said to be so. Processors that are busy.
const QUIET_LOAD: f64 = 0.25;
/// For so long it is looked whether the machine is quiet. The load average of a minute would be that of the run before.
const WATCHED: Duration = Duration::from_secs(2);
/// Written last: what is in its folder is whole.
const RUN_FILE: &str = "run.json";

/// A job of the lab.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Job {
    /// TeraSort; its own teragen and teravalidate run beside it.
    Terasort,
    /// WordCount.
    Wordcount,
    /// A sort of few keys, most of them for one reduce.
    SkewedSort,
    /// A copy within HDFS, of maps only.
    Distcp,
}

impl Job {
    /// What the lab calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Terasort => "terasort",
            Self::Wordcount => "wordcount",
            Self::SkewedSort => "skewed-sort",
            Self::Distcp => "distcp",
        }
    }

    /// The name with which it is submitted.
    #[must_use]
    pub const fn submitted_as(self) -> &'static str {
        match self {
            Self::Terasort => "TeraSort",
            Self::Wordcount => "word count",
            Self::SkewedSort => "sorter",
            Self::Distcp => "distcp",
        }
    }
}

/// A real run: its folder has `truth.json`, and the traces that were asked for.
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
    /// Processors that were busy just before.
    pub load: f64,
    /// What the lab found wrong; such a run still counts.
    pub problems: Vec<String>,
}

/// Which traces are made of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traces {
    /// One of all, and one of the capture as it would be without the Java agent.
    WithAndWithoutAgent,
    /// One of each job, cut out.
    OfEachJob,
}

impl Run {
    /// The run of a folder; `None` where there is none, or not the whole of it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(folder: PathBuf) -> Result<Option<Self>> {
        if !folder.join(RUN_FILE).exists() {
            return Ok(None);
        }
        let (conditions, truth) = (read_json(&folder.join(RUN_FILE))?, read_json(&folder.join("truth.json"))?);
        Ok(Some(Self { folder, conditions, truth }))
    }

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

    /// The trace of one of its jobs.
    #[must_use]
    pub fn trace_of(&self, job: Job) -> PathBuf {
        trace_of(&self.folder, job.name())
    }

    /// How long a job took, by the job history; `None` if it did not run.
    #[must_use]
    pub fn job_s(&self, kind: &str) -> Option<f64> {
        let job = self.truth.jobs.iter().find(|job| job.kind == kind && job.finished_ns > job.submitted_ns)?;
        Some((job.finished_ns - job.submitted_ns) as f64 / 1e9)
    }
}

fn trace_of(folder: &Path, kind: &str) -> PathBuf {
    folder.join(format!("trace-{kind}"))
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let place = || path.display().to_string();
    serde_json::from_reader(files::open(path).with_context(place)?).with_context(place)
}

/// Whether a run is whole.
#[must_use]
pub fn is_whole(folder: &Path) -> bool {
    folder.join(RUN_FILE).exists()
}

/// Runs jobs on a cluster of its own, `arguments` being those of `lab run`, and keeps the traces.
///
/// # Errors
/// If the lab or the merger cannot do it, or is interrupted.
pub fn record(
    arguments: &[String],
    jobs: &[Job],
    traces: Traces,
    folder: &Path,
    interruption: &Interruption,
) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let load = busy_processors(WATCHED)?;
    let capture = folder.join("capture");
    let mut lab = Command::new(program("lab")?);
    lab.args(["run", "--quiet"]).args(arguments).arg("--capture").arg(&capture);
    for job in jobs {
        lab.args(["--job", job.name()]);
    }
    let (status, told) = interruption.run(&mut lab).context("lab run")?;
    // 1: the jobs ran, and something is not as it should be; the truth says what.
    ensure!(matches!(status.code(), Some(0 | 1)), "lab run ended with {status}: {told}");
    let truth: Truth = read_json(&capture.join("truth.json"))?;
    match traces {
        Traces::WithAndWithoutAgent => {
            let stripped = folder.join("capture-without-agent");
            copy_without_jvms(&capture, &stripped)?;
            merge(&capture, &folder.join("trace"), None)?;
            merge(&stripped, &folder.join("trace-without-agent"), None)?;
            fs::remove_dir_all(&stripped)?;
        }
        Traces::OfEachJob => {
            for job in jobs {
                let done = truth.jobs.iter().find(|done| done.kind == job.name());
                let id = &done.with_context(|| format!("{}: no {}", capture.display(), job.name()))?.id;
                merge(&capture, &trace_of(folder, job.name()), Some(id))?;
            }
        }
    }
    fs::copy(capture.join("truth.json"), folder.join("truth.json"))?;
    fs::remove_dir_all(&capture)?;
    let mut problems = truth.problems;
    if load > QUIET_LOAD {
        problems.push(format!("{load:.2} processors were busy when it began"));
    }
    fs::write(folder.join(RUN_FILE), serde_json::to_vec_pretty(&Conditions { load, problems })?)?;
    Ok(())
}

/// How many processors are busy, in the mean over a time.
fn busy_processors(watched: Duration) -> Result<f64> {
    let times = || -> Result<(u64, u64)> {
        let text = fs::read_to_string("/proc/stat")?;
        let line = text.lines().next().and_then(|line| line.strip_prefix("cpu ")).context("/proc/stat has no cpu")?;
        let times: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        ensure!(times.len() >= 8, "/proc/stat: cpu{line}");
        // user nice system idle iowait irq softirq steal; guests are in user.
        Ok((times[..8].iter().sum(), times[3] + times[4]))
    };
    let (all, idle) = times()?;
    std::thread::sleep(watched);
    let (all_after, idle_after) = times()?;
    let (passed, idled) = (all_after.saturating_sub(all).max(1) as f64, idle_after.saturating_sub(idle) as f64);
    Ok((1.0 - idled / passed).max(0.0) * std::thread::available_parallelism()?.get() as f64)
}

fn merge(capture: &Path, trace: &Path, job: Option<&str>) -> Result<()> {
    let (capture, trace) = (text(capture)?, text(trace)?);
    let mut arguments = vec!["build", capture, "--out", trace];
    arguments.extend(job.into_iter().flat_map(|job| ["--job", job]));
    let built = run("merger", &arguments)?;
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_thread_that_computes_is_a_busy_processor() {
        let stop = std::sync::atomic::AtomicBool::new(false);
        let busy = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let busy = busy_processors(Duration::from_millis(300)).unwrap();
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            busy
        });
        let all = std::thread::available_parallelism().unwrap().get() as f64;
        assert!((0.5..=all).contains(&busy), "{busy}");
    }
}
