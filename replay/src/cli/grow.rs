//! `grow`.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Error;
use clap::Args;
use job_profile::{CoreSharing, Learn, parse_heap};
use mapreduce::{Amount, Growth, Speed};
use netsim::units::Bytes;
use replay::experiment::Override;
use replay::generate::grown_job;
use replay::run::read_trace;
use serde::Serialize;
use trace::ids::{ConnectionId, ProcessId};
use trace::rows::{MessageKind, Trace};

use super::common::say;
use super::generate::{Generated, figures, table_of, write_jobs};
use super::progress::Bars;
use super::run::refuse_existing;
use super::table::{new_table, right};

/// A master that answers calls for more than this share of the job is likely to hold it back.
const BUSY: f64 = 0.5;

#[derive(Debug, Args)]
pub(super) struct GrowArgs {
    /// Folder of the recorded job's trace.
    trace: PathBuf,
    /// Folder of the grown trace, which must not exist, or be empty.
    #[arg(long, value_name = "TRACE")]
    out: PathBuf,
    /// Workers: a number, or a multiple of those recorded (`64x`).
    #[arg(long, value_name = "N|Nx", default_value = "1x")]
    nodes: Amount<u32>,
    /// Racks over which they are dealt [default: as many as recorded].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    racks: Option<u32>,
    /// Input: a size (`8GiB`), or a multiple of that recorded (`64x`). Blocks keep their size: there are more maps.
    #[arg(long, value_name = "SIZE|Nx", default_value = "1x")]
    data: Amount<Bytes>,
    /// Reduces: a number, or a multiple of those recorded [default: as many times as --nodes].
    #[arg(long, value_name = "N|Nx")]
    reduces: Option<Amount<u32>>,
    /// Speed of the cores, by those recorded: of computing, sorting, merging and starts.
    #[arg(long, value_name = "Nx", default_value = "1x")]
    cpu: Speed,
    /// Speed of the disks. A trace tells none: give rates by --set cluster.disk_read and cluster.disk_write.
    #[arg(long, value_name = "Nx", default_value = "1x")]
    disk: Speed,
    /// The job to grow, by its id [default: that with the largest shuffle].
    #[arg(long, value_name = "ID")]
    job: Option<String>,
    /// Cores of each recorded worker: what tasks cost each other there is taken out of what is learned, and the grown job's tasks
    /// compete for so many [default: it stays in the rates].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    cores: Option<u32>,
    /// All workers share --cores, as in a lab on one machine.
    #[arg(long, requires = "cores")]
    shared: bool,
    /// Heap of the recorded job's reduces (-Xmx in mapreduce.reduce.java.opts): it decides what a sort merges [default: 819MiB, Hadoop's].
    #[arg(long, value_name = "SIZE", value_parser = parse_heap)]
    reduce_heap: Option<u64>,
    /// The network on which the grown job runs: the fabric of this experiment [default: an infinitely fast one].
    #[arg(long, value_name = "EXPERIMENT")]
    fabric: Option<PathBuf>,
    /// Replaces a value of the recorded job's file, before it grows, by its path; may be given more than once.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    overrides: Vec<Override>,
    /// Prints one JSON object in place of tables.
    #[arg(long)]
    json: bool,
}

/// What a master had to answer.
#[derive(Debug, Serialize)]
struct Master {
    role: String,
    /// Processes of this role, of which the busiest is shown.
    processes: usize,
    calls: u64,
    calls_a_second: f64,
    /// Time that it took for them, by the time from the first submission to the last end of a job, as if one thread did it all.
    busy: f64,
}

#[derive(Debug, Serialize)]
struct Grown {
    #[serde(flatten)]
    generated: Generated,
    masters: Vec<Master>,
    notes: Vec<String>,
}

/// Learns a recorded job, and writes the trace of one that is larger.
pub(super) fn run(args: &GrowArgs) -> Result<ExitCode, Error> {
    let bars = Bars::new();
    refuse_existing("--out", &args.out)?;
    let spinner = bars.spinner(&format!("reading {}", args.trace.display()));
    let recorded = read_trace(&args.trace)?;
    spinner.finish_and_clear();
    let growth = Growth {
        nodes: args.nodes,
        racks: args.racks,
        data: args.data,
        reduces: args.reduces,
        cpu: args.cpu,
        disk: args.disk,
    };
    let sharing = args.cores.map(|cores| CoreSharing::new(cores, args.shared));
    let learn = Learn { job: args.job.as_deref(), sharing, reduce_heap: args.reduce_heap };
    let (grown, mut notes) = grown_job(&args.trace.display().to_string(), &recorded, learn, &args.overrides, &growth)?;
    let trace = write_jobs(&grown, args.fabric.as_deref(), &args.out, &bars, "grow")?;
    let masters = masters(&trace);
    notes.extend(masters.iter().filter(|master| master.busy > BUSY).map(|master| {
        format!(
            "the {} answers calls for {:.0}% of the time: a real one would be a bottleneck, which is not modelled",
            master.role,
            100.0 * master.busy
        )
    }));
    let grown = Grown { generated: figures(args.out.clone(), &trace), masters, notes };
    say(&if args.json { serde_json::to_string_pretty(&grown)? } else { text_of(&grown) })?;
    Ok(ExitCode::SUCCESS)
}

/// By role of a master, the process that was busiest.
fn masters(trace: &Trace) -> Vec<Master> {
    let first = trace.jobs.iter().map(|job| job.submit_ns).min().unwrap_or(0);
    let last = trace.jobs.iter().map(|job| job.finish_ns).max().unwrap_or(0);
    let seconds = last.saturating_sub(first).max(1) as f64 / 1e9;
    let mut asked: HashMap<(ConnectionId, i64), u64> = HashMap::new();
    let mut answered: BTreeMap<ProcessId, (u64, u64)> = BTreeMap::new();
    for message in &trace.messages {
        let key = (message.connection, message.call);
        let server = trace.connections.get(message.connection.index()).and_then(|row| row.server_process);
        match (message.kind, server) {
            (MessageKind::RpcRequest, _) => {
                asked.insert(key, message.delivered_ns);
            }
            (MessageKind::RpcResponse, Some(server)) => {
                if let Some(asked) = asked.remove(&key) {
                    let (calls, busy_ns) = answered.entry(server).or_default();
                    *calls += 1;
                    *busy_ns = busy_ns.saturating_add(message.sent_ns.saturating_sub(asked));
                }
            }
            _ => {}
        }
    }
    let of_role = |role: &str| {
        let processes: Vec<(u64, u64)> = answered
            .iter()
            .filter(|(process, _)| trace.processes.get(process.index()).is_some_and(|row| row.role == role))
            .map(|(_, load)| *load)
            .collect();
        let (calls, busy_ns) = processes.iter().max_by_key(|(_, busy_ns)| *busy_ns).copied()?;
        Some(Master {
            role: role.to_owned(),
            processes: processes.len(),
            calls,
            calls_a_second: calls as f64 / seconds,
            busy: busy_ns as f64 / 1e9 / seconds,
        })
    };
    ["NameNode", "ResourceManager", "MRAppMaster"].into_iter().filter_map(of_role).collect()
}

fn text_of(grown: &Grown) -> String {
    let mut table = new_table(&["master", "calls", "calls/s", "busy"]);
    for master in &grown.masters {
        table.add_row(vec![
            comfy_table::Cell::new(&master.role),
            right(master.calls.to_string()),
            right(format!("{:.1}", master.calls_a_second)),
            right(format!("{:.1}%", 100.0 * master.busy)),
        ]);
    }
    let notes: Vec<String> = grown.notes.iter().map(|note| format!("note       {note}")).collect();
    [vec![format!("{table}\n"), table_of(&grown.generated)], notes].concat().join("\n")
}
