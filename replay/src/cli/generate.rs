//! `generate`.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Error};
use clap::Args;
use mapreduce::JobFile;
use netsim::fabric::FabricConfig;
use replay::experiment::{Experiment, Override};
use replay::generate::{generate, read_jobs};
use serde::Serialize;
use trace::ids::JobId;
use trace::rows::{MessageKind, MessageRow, TaskKind, Trace};
use trace_tables::write_trace;

use super::common::say;
use super::progress::Bars;
use super::run::refuse_existing;
use super::table::{new_table, right};

#[derive(Debug, Args)]
pub(super) struct GenerateArgs {
    /// The jobs: a TOML file, or a name that `replay experiments` lists. docs/generate.md has all keys.
    file: PathBuf,
    /// Folder of the trace, which must not exist, or be empty.
    #[arg(long, value_name = "TRACE")]
    out: PathBuf,
    /// The network on which the jobs run: the fabric of this experiment [default: an infinitely fast one].
    #[arg(long, value_name = "EXPERIMENT")]
    fabric: Option<PathBuf>,
    /// Replaces a value of the job file by its path, such as job.0.reduces=64 of the first job; may be given more than once.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    overrides: Vec<Override>,
    /// Prints one JSON object in place of a table.
    #[arg(long)]
    json: bool,
}

/// Times of the tasks of one kind, seconds.
#[derive(Debug, Serialize)]
pub(super) struct Phase {
    tasks: usize,
    mean_s: f64,
    longest_s: f64,
}

/// A job that was generated.
#[derive(Debug, Serialize)]
pub(super) struct GeneratedJob {
    id: String,
    name: String,
    maps: u32,
    reduces: u32,
    job_time_s: f64,
    map: Phase,
    reduce: Phase,
    /// Bytes of map output that reduces fetched, their own node's among them.
    shuffle_bytes: u64,
    hdfs_bytes_read: u64,
    hdfs_bytes_written: u64,
    /// Maps whose block lay on their own node.
    node_local_maps: usize,
    /// Attempts that were killed because the other one of their task finished first.
    #[serde(skip_serializing_if = "Option::is_none")]
    killed: Option<Killed>,
}

/// What killed attempts did for nothing.
#[derive(Debug, Serialize)]
pub(super) struct Killed {
    attempts: usize,
    seconds: f64,
    /// Payload of the messages that were sent for them.
    bytes: u64,
}

/// What was generated.
#[derive(Debug, Serialize)]
pub(super) struct Generated {
    trace: PathBuf,
    hosts: usize,
    messages: usize,
    events: usize,
    /// Payload that crossed between hosts.
    network_bytes: u64,
    jobs: Vec<GeneratedJob>,
}

/// Runs the jobs of a file, and writes their trace.
pub(super) fn run(args: &GenerateArgs) -> Result<ExitCode, Error> {
    let bars = Bars::new();
    refuse_existing("--out", &args.out)?;
    let file = read_jobs(&args.file, &args.overrides)?;
    let name = args.file.file_stem().unwrap_or_default().to_string_lossy();
    let trace = write_jobs(&file, args.fabric.as_deref(), &args.out, &bars, &name)?;
    let generated = figures(args.out.clone(), &trace);
    say(&if args.json { serde_json::to_string_pretty(&generated)? } else { table_of(&generated) })?;
    Ok(ExitCode::SUCCESS)
}

/// Runs jobs over the fabric of an experiment, and writes their trace and their file.
pub(super) fn write_jobs(
    file: &JobFile,
    experiment: Option<&Path>,
    out: &Path,
    bars: &Bars,
    name: &str,
) -> Result<Trace, Error> {
    let fabric = match experiment {
        None => "kind = \"ideal\"".parse::<FabricConfig>()?,
        Some(path) => Experiment::read(path, &[])?.fabric,
    };
    let bar = bars.bar(name);
    let hosts = mapreduce::places(&file.cluster);
    let (trace, _) = generate(file, &fabric, &hosts, |progress| bar.show(progress))?;
    drop(bar);
    write_trace(out, &trace)?;
    let effective = out.join("job.toml");
    std::fs::write(&effective, file.to_toml()?).with_context(|| effective.display().to_string())?;
    Ok(trace)
}

pub(super) fn figures(folder: PathBuf, trace: &Trace) -> Generated {
    let crosses = |message: &&MessageRow| !trace.connections[message.connection.index()].loopback;
    let local = node_local_maps(trace);
    let mut killed = killed_attempts(trace);
    let jobs = trace.jobs.iter().map(|job| {
        let phase = |kind| {
            let of_kind = trace.tasks.iter().filter(|task| task.job == job.job && task.kind == kind && task.succeeded);
            let times: Vec<f64> = of_kind.map(|task| seconds(task.finish_ns - task.start_ns)).collect();
            Phase {
                tasks: times.len(),
                mean_s: times.iter().fold(0.0, |sum, time| sum + time) / times.len().max(1) as f64,
                longest_s: times.iter().fold(0.0, |longest, time| time.max(longest)),
            }
        };
        GeneratedJob {
            id: job.id.clone(),
            name: job.name.clone(),
            maps: job.maps,
            reduces: job.reduces,
            job_time_s: seconds(job.finish_ns - job.submit_ns),
            map: phase(TaskKind::Map),
            reduce: phase(TaskKind::Reduce),
            shuffle_bytes: job.shuffle_bytes.unwrap_or(0),
            hdfs_bytes_read: job.hdfs_bytes_read.unwrap_or(0),
            hdfs_bytes_written: job.hdfs_bytes_written.unwrap_or(0),
            node_local_maps: local.get(&job.job).copied().unwrap_or(0),
            killed: killed.remove(&job.job),
        }
    });
    Generated {
        hosts: trace.hosts.len(),
        messages: trace.messages.len(),
        events: trace.events.len(),
        network_bytes: trace.messages.iter().filter(crosses).map(|message| message.bytes).sum(),
        jobs: jobs.collect(),
        trace: folder,
    }
}

/// By job: what attempts did that were killed.
fn killed_attempts(trace: &Trace) -> BTreeMap<JobId, Killed> {
    let mut by_job: BTreeMap<JobId, Killed> = BTreeMap::new();
    let mut job_of: HashMap<&str, JobId> = HashMap::new();
    for task in trace.tasks.iter().filter(|task| !task.succeeded) {
        let killed = by_job.entry(task.job).or_insert(Killed { attempts: 0, seconds: 0.0, bytes: 0 });
        killed.attempts += 1;
        killed.seconds += seconds(task.finish_ns - task.start_ns);
        job_of.insert(&task.attempt, task.job);
    }
    for message in &trace.messages {
        let job = message.attempt.as_deref().and_then(|attempt| job_of.get(attempt));
        if let Some(killed) = job.and_then(|job| by_job.get_mut(job)) {
            killed.bytes += message.bytes;
        }
    }
    by_job
}

/// By job: maps that read their block from their own host.
fn node_local_maps(trace: &Trace) -> BTreeMap<JobId, usize> {
    let maps = trace.tasks.iter().filter(|task| task.kind == TaskKind::Map && task.succeeded);
    let job_of: HashMap<&str, JobId> = maps.map(|map| (map.attempt.as_str(), map.job)).collect();
    let mut local = BTreeMap::new();
    let reads = |message: &&MessageRow| message.kind == MessageKind::BlockRequest && message.name == "read";
    for message in trace.messages.iter().filter(reads) {
        let job = message.attempt.as_deref().and_then(|attempt| job_of.get(attempt));
        if let Some(job) = job.filter(|_| trace.connections[message.connection.index()].loopback) {
            *local.entry(*job).or_default() += 1;
        }
    }
    local
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

pub(super) fn table_of(generated: &Generated) -> String {
    let mut table = new_table(&[
        "job",
        "maps",
        "node-local",
        "reduces",
        "job time",
        "map",
        "reduce",
        "shuffled",
        "read",
        "written",
    ]);
    for job in &generated.jobs {
        let time = |seconds: f64| right(format!("{seconds:.2} s"));
        let mean = |phase: &Phase| if phase.tasks == 0 { right("–".to_owned()) } else { time(phase.mean_s) };
        table.add_row(vec![
            comfy_table::Cell::new(&job.name),
            right(job.maps.to_string()),
            right(job.node_local_maps.to_string()),
            right(job.reduces.to_string()),
            time(job.job_time_s),
            mean(&job.map),
            mean(&job.reduce),
            right(pages::format::bytes(job.shuffle_bytes)),
            right(pages::format::bytes(job.hdfs_bytes_read)),
            right(pages::format::bytes(job.hdfs_bytes_written)),
        ]);
    }
    let killed: String = (generated.jobs.iter())
        .filter_map(|job| Some((job, job.killed.as_ref()?)))
        .map(|(job, Killed { attempts, seconds, bytes })| {
            let bytes = pages::format::bytes(*bytes);
            format!(
                "\n{}: {attempts} killed by speculative execution, after {seconds:.1} s and {bytes} in all",
                job.name
            )
        })
        .collect();
    format!(
        "{table}{killed}\n{} hosts, {} messages, {} between hosts, {} events\ntrace      {}",
        generated.hosts,
        generated.messages,
        pages::format::bytes(generated.network_bytes),
        generated.events,
        generated.trace.display()
    )
}
