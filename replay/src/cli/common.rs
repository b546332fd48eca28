//! What commands have in common: exit codes, arguments, lines for people.

use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::{Error, bail};
use clap::{Args, ValueEnum, value_parser};
use netsim::fabric::optimistic::OptimisticOptions;
use netsim::fabric::{FabricConfig, FabricKind};
use netsim::topology::TopologyConfig;
use netsim::traffic::EngineKind;
use netsim::units::DurationPs;
use replay::experiment::{Experiment, Override};
use replay::ranks::Ranks;
use replay::run::RunError;

/// The program ran and found something wrong.
pub(super) const FOUND_WRONG: u8 = 1;
/// The program could not run.
pub(super) const COULD_NOT_RUN: u8 = 2;

/// What `run` and `compare` have in common.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// Folder of the trace, in place of the experiment's workload.trace.
    #[arg(long, value_name = "FOLDER")]
    pub(super) trace: Option<PathBuf>,
    /// A job file, in place of a trace: its jobs are scheduled in the simulated world (`replay generate` has more).
    #[arg(long, value_name = "JOB.toml", conflicts_with = "trace")]
    pub(super) generate: Option<PathBuf>,
    /// Replaces a value of the experiment by its path; may be given more than once.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(super) overrides: Vec<Override>,
    /// Folder for the results; made where it is missing.
    #[arg(long, value_name = "RESULTS")]
    pub(super) out: PathBuf,
    /// Replaces results that are in that folder.
    #[arg(long)]
    pub(super) force: bool,
    /// Prints one JSON object in place of a table.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The experiment: a TOML file, or a name that `replay experiments` lists.
    #[arg(required_unless_present = "fabric")]
    experiment: Option<PathBuf>,
    /// The experiment, by the option that `predict`, `generate`, `coflow` and `program` have for it.
    #[arg(long, value_name = "EXPERIMENT", conflicts_with = "experiment")]
    fabric: Option<PathBuf>,
    #[command(flatten)]
    pub(super) common: Common,
    /// Recorded jobs: also writes the replay as a trace, with the times of the simulated network, for `merger export`; the
    /// folder must not exist, or be empty.
    #[arg(long, value_name = "FOLDER")]
    pub(super) simulated_trace: Option<PathBuf>,
    /// Synthetic traffic: writes every packet into packets.parquet.
    #[arg(long)]
    pub(super) packets: bool,
    /// Synthetic traffic: counts what each host sends each other one, into pairs.parquet; as many rows as pairs that talk.
    #[arg(long)]
    pub(super) pairs: bool,
    /// How many threads: runs of a sweep at a time, and parts of a large network where there are fewer runs. It does not show in
    /// the results [default: as many as there are cores].
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(super) threads: Option<usize>,
    /// A sweep: runs each Nth combination from number K (of 0 to N-1) on, as one of N tasks of GNU parallel, Slurm or
    /// YARN. Each leaves a file in RESULTS/parts; those that are there already are passed over.
    #[arg(long, value_name = "K/N", conflicts_with = "gather")]
    pub(super) part: Option<Part>,
    /// A sweep: runs nothing, and makes table and report of what tasks with --part have left in RESULTS.
    #[arg(long)]
    pub(super) gather: bool,
    /// A sweep of a job: the same job over another network too, as a line in the pictures, and from which value of each key on the sweep's
    /// network is sooner done than that one. `--set fabric...` does not change it.
    #[arg(long, value_name = "EXPERIMENT", conflicts_with = "part")]
    pub(super) against: Option<PathBuf>,
    /// A sweep: pictures in which bars are grouped by the values of this key, with a bar for each combination of the others [default: a size of
    /// packets or messages (traffic.size, traffic.flits, fabric.mtu, fabric.photonic_packet_max), where one is swept].
    #[arg(long, value_name = "PATH", conflicts_with = "part")]
    pub(super) group_by: Option<String>,
    /// Synthetic traffic: how networks are run; it does not show in the results.
    #[arg(long, value_enum, default_value_t)]
    pub(super) engine: Engine,
    #[command(flatten)]
    pub(super) optimistic: OptimisticArgs,
    /// Synthetic traffic: the parts of a network in windows run in so many processes, over MPI; for fabrics of the kind store-and-forward. It needs the
    /// program netsim-rank (docs/parallel.md).
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..), conflicts_with = "packets")]
    ranks: Option<u16>,
    /// With --ranks: the command that starts them, with its options, such as those that name other machines.
    #[arg(long, value_name = "COMMAND", default_value = "mpirun", requires = "ranks")]
    mpirun: String,
    /// With --ranks: seconds after which ranks that have not all started are given up.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = value_parser!(u64).range(1..=86_400), requires = "ranks")]
    ranks_within: u64,
    /// What `--memory` says, which is for all commands.
    #[arg(skip)]
    pub(super) memory: Option<u64>,
}

impl RunArgs {
    /// How ranks are started, if there are any.
    pub(super) fn ranks(&self) -> Result<Option<Ranks>, Error> {
        let Some(count) = self.ranks else { return Ok(None) };
        if matches!(self.engine, Engine::Events | Engine::Optimistic) {
            bail!("--ranks: they run in windows; leave --engine out, or --ranks");
        }
        let starter = self.mpirun.split_whitespace().map(str::to_owned).collect();
        let within = Duration::from_secs(self.ranks_within);
        Ok(Some(Ranks { count: count.into(), starter, pairs: self.pairs, within, memory_bytes: self.memory }))
    }

    /// The experiment's file or name.
    pub(super) fn experiment(&self) -> &Path {
        self.experiment.as_deref().or(self.fabric.as_deref()).unwrap_or_else(|| Path::new(""))
    }
}

/// How parts of a network are run optimistically.
#[derive(Debug, Args)]
pub(super) struct OptimisticArgs {
    /// With --engine optimistic: batches of each part between two computations of GVT [default: 32, as in FatTreeSim's runs].
    #[arg(long, value_name = "BATCHES", value_parser = value_parser!(u32).range(1..))]
    gvt_interval: Option<u32>,
    /// With --engine optimistic: events of a batch at most [default: 8, as in FatTreeSim's runs].
    #[arg(long, value_name = "EVENTS", value_parser = value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// With --engine optimistic: how far ahead of GVT a part may run, which bounds its memory [default: 16 times the least time from one part to
    /// another].
    #[arg(long, value_name = "TIME")]
    most_ahead: Option<DurationPs>,
}

impl OptimisticArgs {
    /// The options; refused with an engine that does not know them.
    pub(super) fn options(&self, engine: Engine) -> Result<OptimisticOptions, Error> {
        let given = [
            ("--gvt-interval", self.gvt_interval.is_some()),
            ("--batch", self.batch.is_some()),
            ("--most-ahead", self.most_ahead.is_some()),
        ];
        if let Some((option, _)) = given.into_iter().find(|(_, given)| *given && engine != Engine::Optimistic) {
            bail!("{option}: only the engine \"optimistic\" knows it; leave it out, or add --engine optimistic");
        }
        if self.most_ahead.is_some_and(|ahead| ahead.ps() == 0) {
            bail!("--most-ahead 0: nothing would ever be run; at least 1ps");
        }
        let default = OptimisticOptions::default();
        Ok(OptimisticOptions {
            gvt_interval: self.gvt_interval.unwrap_or(default.gvt_interval),
            batch: self.batch.unwrap_or(default.batch),
            ahead_ps: self.most_ahead.map(DurationPs::ps),
        })
    }
}

/// One of several tasks that share the combinations of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// From 0.
    number: usize,
    of: usize,
}

impl Part {
    /// Whether a combination is this task's.
    pub(super) const fn has(self, point: usize) -> bool {
        point % self.of == self.number
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if number < of => Ok(Self { number, of }),
            _ => Err("K/N, with K from 0 to N-1, such as 0/16".to_owned()),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// How networks are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Engine {
    /// In windows of time where that is quicker, else by events; a large network that cannot use its threads says why.
    #[default]
    Auto,
    /// One event after the other.
    Events,
    /// In windows of time, on several threads where that is wanted: fabrics of the kinds store-and-forward, credit
    /// and ethernet.
    Windows,
    /// By Time Warp, on several threads where that is wanted: parts run ahead and take back what came too early. Fabrics of the kind
    /// store-and-forward.
    Optimistic,
}

impl From<Engine> for EngineKind {
    fn from(engine: Engine) -> Self {
        match engine {
            Engine::Auto => Self::Auto,
            Engine::Events => Self::Events,
            Engine::Windows => Self::Windows,
            Engine::Optimistic => Self::Optimistic,
        }
    }
}

/// A number of threads.
pub(super) fn threads(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|threads| (1..=4_096).contains(threads)).ok_or_else(|| "1 to 4096".to_owned())
}

/// Says what is left out of the file of a fabric's topology, if it has one.
pub(super) fn tell_of_left_out(fabric: &FabricConfig) {
    if let Some((config @ TopologyConfig::Graph(_), ..)) = fabric.network()
        && let Ok(topology) = config.build(&[])
    {
        topology.warnings().iter().for_each(|warning| trace::stderr::print(format!("replay: {warning}")));
    }
}

/// Set by SIGINT and SIGTERM: runs end, and what there is until then is written. A second signal ends the program.
pub(super) fn stopped_by_signals() -> Result<Arc<AtomicBool>, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Prints a line, doubts in their colour; that nobody reads on is no error.
pub(super) fn say(text: &str) -> io::Result<()> {
    let style = Style::new().bold().fg_color(Some(AnsiColor::Yellow.into()));
    let doubt = format!("\n{style}DOUBT{style:#}");
    match writeln!(anstream::stdout(), "{}", text.replace("\nDOUBT", &doubt)) {
        Err(error) if trace::stderr::is_broken_pipe(&error) => Ok(()),
        other => other,
    }
}

/// What is found wrong with a key is shown where it stands in the file.
pub(super) fn wrong_key(path: &Path, common: &Common, error: RunError) -> Error {
    match error {
        RunError::Fabric(_)
        | RunError::UnknownHost { .. }
        | RunError::Placing(_)
        | RunError::Traffic(_)
        | RunError::Endless { .. } => Experiment::wrong(path, &common.overrides, &error.to_string()).into(),
        other => other.into(),
    }
}
