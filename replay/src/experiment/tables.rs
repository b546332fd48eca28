//! The tables of an experiment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use netsim::fabric::FabricConfig;
use netsim::traffic::TrafficConfig;
use netsim::units::PerByte;
use serde::{Deserialize, Serialize};

use super::Seeds;
use crate::placing::JobPlacement;
use causal::{Causality, CoreSharing, CpuFactors, Jitter, NetworkWork, Options};
use mapreduce::Growth;

/// An experiment, with every key's value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// What it is called in tables and reports. Default: the file's name without `.toml`.
    #[serde(default)]
    pub name: String,
    /// What is replayed.
    #[serde(default)]
    pub workload: Workload,
    /// Synthetic traffic, in place of a workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<TrafficConfig>,
    /// Over what.
    pub fabric: FabricConfig,
    /// Processors for which tasks compete. Default: none, computing takes as long as recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Its seeds.
    #[serde(default)]
    pub run: Run,
    /// Where a client's tasks are.
    #[serde(default, skip_serializing_if = "Dispatcher::is_default")]
    pub dispatcher: Dispatcher,
}

/// Which node a task of Dimemas is on: the `[dispatcher]` table, with the LIGHTNESS deliverable's names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dispatcher {
    /// Whether tasks are mapped as the file says, and not each to the node of its number. Default: if there is a file.
    #[serde(rename = "taskMapping", alias = "task_mapping", skip_serializing_if = "Option::is_none")]
    pub task_mapping: Option<bool>,
    /// A file with `task node` in each line, relative to the experiment's file. Default: none.
    #[serde(rename = "taskFilename", alias = "task_filename", skip_serializing_if = "Option::is_none")]
    pub task_filename: Option<PathBuf>,
}

impl Dispatcher {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The file by which tasks are mapped, if they are.
    #[must_use]
    pub fn mapping_file(&self) -> Option<&Path> {
        self.task_filename.as_deref().filter(|_| self.task_mapping != Some(false))
    }
}

/// Processors for which tasks compete: the `[cpu]` table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// How many a host has.
    pub cores: u32,
    /// Whether all hosts share them, as in a lab on one machine. Default: false.
    #[serde(default)]
    pub shared: bool,
    /// What a byte that goes from host to host takes of a processor, half of it at either end. Default: nothing.
    #[serde(default, skip_serializing_if = "takes_nothing")]
    pub network_work: PerByte,
    /// The same on the recorded network. Default: `network_work`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_network_work: Option<PerByte>,
}

fn takes_nothing(work: &PerByte) -> bool {
    *work == PerByte::default()
}

/// More than any byte takes of a processor: a microsecond.
const MAX_NETWORK_WORK: PerByte = PerByte::from_ps(1_000_000);

impl Cpu {
    fn check(self) -> Result<(), String> {
        if !(1..=1_000_000).contains(&self.cores) {
            return Err(format!("cpu.cores = {}: 1 to 1000000", self.cores));
        }
        let works = [("network_work", Some(self.network_work)), ("recorded_network_work", self.recorded_network_work)];
        match works.into_iter().find(|(_, work)| work.is_some_and(|work| work > MAX_NETWORK_WORK)) {
            Some((key, Some(work))) => Err(format!("cpu.{key} = \"{work}\": {MAX_NETWORK_WORK} at most")),
            _ => Ok(()),
        }
    }

    /// Whether the network takes processors from the tasks, here or in the recording.
    pub(crate) fn has_network_work(&self) -> bool {
        let recorded = self.recorded_network_work.unwrap_or_default();
        self.network_work.max(recorded) > PerByte::default()
    }

    /// As the causal replay takes it.
    fn sharing(self) -> CoreSharing {
        let recorded = self.recorded_network_work.unwrap_or(self.network_work);
        let network = NetworkWork { recorded_fs: recorded.fs(), replayed_fs: self.network_work.fs() };
        CoreSharing { cores: self.cores, shared: self.shared, network }
    }
}

/// What is replayed: the `[workload]` table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Workload {
    /// The folder of the trace, relative to the experiment's file. It may be given on the command line instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<PathBuf>,
    /// A job file, relative to the experiment's: jobs from parameters, in place of a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate: Option<PathBuf>,
    /// Id of the job. Default: the job with the largest shuffle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Thinking takes so many times as long as recorded. Default: 1.
    pub cpu_factor: f64,
    /// Whether the fabric is a model of the network on which the trace was recorded: then what differs from the recording is
    /// the model's error, otherwise it is what the network changes. Default: false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recorded_network: bool,
    /// What decides when messages leave. Default: `trace`, their causes.
    pub causality: Causality,
    /// Whether connections opened during the job are opened in the fabric too. Default: true.
    pub handshakes: bool,
    /// Whether news waits for the beats of timers. Default: true. Without it news is there at once.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub timers: bool,
    /// Whether work that the recorded network hid takes time: making, taking and storing of bytes that waited anyway. Default: true.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub production: bool,
    /// Chance: each thinking becomes longer or shorter by up to this share, as `run.seed` draws it. Default: 0.
    #[serde(skip_serializing_if = "is_nothing")]
    pub jitter: f64,
    /// Racks of hosts, in place of what the trace says. A host whose rack neither knows stands in the first rack that
    /// the trace knows.
    pub racks: BTreeMap<String, String>,
    /// On which of the fabric's hosts those of the trace are. Default: on the first ones, rack by rack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<JobPlacement>,
    /// Factors by kind of task ("map", "reduce") or role ("DataNode"), in place of `cpu_factor`.
    pub cpu_factors: BTreeMap<String, f64>,
    /// The recorded job grown, as `replay grow` does it, in place of the recorded one. Default: as recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grow: Option<Growth>,
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            trace: None,
            generate: None,
            job: None,
            cpu_factor: 1.0,
            recorded_network: false,
            causality: Causality::Trace,
            handshakes: true,
            timers: true,
            production: true,
            jitter: 0.0,
            racks: BTreeMap::new(),
            placement: None,
            cpu_factors: BTreeMap::new(),
            grow: None,
        }
    }
}

impl Workload {
    /// Where its jobs lie: a job file, or the folder of a trace.
    #[must_use]
    pub fn source(&self) -> Option<&Path> {
        self.generate.as_deref().or(self.trace.as_deref())
    }
}

fn is_nothing(share: &f64) -> bool {
    *share == 0.0
}

/// How it is replayed: the `[run]` table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Run {
    /// For whatever is drawn; it is put into `fabric.seed` where the fabric has one. Default: 1.
    pub seed: u64,
    /// Synthetic traffic: the seeds of several runs, or how many from `seed` on. Default: one run, with `seed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<Seeds>,
}

impl Default for Run {
    fn default() -> Self {
        Self { seed: 1, seeds: None }
    }
}

impl Experiment {
    /// How its job is replayed, as the causal replay takes it.
    #[must_use]
    pub fn options(&self) -> Options {
        let workload = &self.workload;
        Options {
            causality: workload.causality,
            cpu: CpuFactors { all: workload.cpu_factor, by_kind: workload.cpu_factors.clone() },
            handshakes: workload.handshakes,
            timers: workload.timers,
            production: workload.production,
            cores: self.core_sharing(),
            jitter: Jitter { share: workload.jitter, seed: self.run.seed },
        }
    }

    /// The processors for which tasks compete; `None` = for none.
    #[must_use]
    pub fn core_sharing(&self) -> Option<CoreSharing> {
        self.cpu.map(Cpu::sharing)
    }

    /// The experiment that a table says, or what is wrong with it.
    pub(super) fn of_table(table: toml::Table) -> Result<Self, String> {
        if table.contains_key("workload") && table.contains_key("traffic") {
            return Err(
                "`[traffic]` and [workload] exclude each other: synthetic traffic, or a recorded job".to_owned()
            );
        }
        let given_seed = seeds(&table);
        let mut experiment: Self = table.try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
        experiment.check()?;
        experiment.spread_seed(given_seed)?;
        Ok(experiment)
    }

    /// Whether each value of `table` is of a type that its key takes, be it allowed or not.
    pub(super) fn has_types_of(table: toml::Table) -> bool {
        table.try_into::<Self>().is_ok()
    }

    /// The experiment with another seed, for whatever is drawn.
    ///
    /// # Errors
    /// If the seed is larger than a file could say.
    pub fn seeded(&self, seed: u64) -> Result<Self, String> {
        let mut seeded = self.clone();
        seeded.run = Run { seed, seeds: None };
        seeded.spread_seed((true, None))?;
        Ok(seeded)
    }

    /// The experiment as a file: with every key, and the trace by its full path.
    ///
    /// # Errors
    /// If a value cannot be written as TOML.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string_pretty(&self.to_table()?)
    }

    /// The experiment as a table, with every key that it uses.
    pub(super) fn to_table(&self) -> Result<toml::Table, toml::ser::Error> {
        let mut table = toml::Table::try_from(self)?;
        if self.traffic.is_some() {
            table.remove("workload");
        }
        Ok(table)
    }

    /// Whether its values make sense together.
    ///
    /// # Errors
    /// If one does not; the message begins with its key.
    pub fn check(&self) -> Result<(), String> {
        match &self.traffic {
            Some(traffic) => traffic.check().map_err(|error| error.to_string())?,
            None if self.run.seeds.is_some() => {
                return Err("run.seeds: several seeds are for `[traffic]`; of a recorded job, run.seed = [1, 2, 3] is a sweep over seeds".to_owned());
            }
            None => {}
        }
        let allowed = |factor: f64| factor.is_finite() && factor > 0.0;
        let wrong = |key: String, factor: f64| {
            Err(format!("{key} = {factor:?}: a factor must be above 0 (1.0 = as recorded, 0.5 = twice as fast)"))
        };
        if !allowed(self.workload.cpu_factor) {
            return wrong("workload.cpu_factor".to_owned(), self.workload.cpu_factor);
        }
        if !(0.0..=0.5).contains(&self.workload.jitter) {
            let jitter = self.workload.jitter;
            return Err(format!(
                "workload.jitter = {jitter:?}: a share from 0 to 0.5 (0.001 = each thinking up to 0.1% longer or shorter)"
            ));
        }
        self.cpu.map_or(Ok(()), Cpu::check)?;
        if self.cpu.is_some() && self.traffic.is_some() {
            return Err("cpu.cores: for recorded jobs; `[traffic]` computes nothing".to_owned());
        }
        if self.workload.trace.is_some() && self.workload.generate.is_some() {
            return Err(
                "workload.generate and workload.trace exclude each other: jobs from parameters, or a recorded one"
                    .to_owned(),
            );
        }
        if self.workload.placement.is_some() && !self.workload.racks.is_empty() {
            return Err(
                "workload.placement and workload.racks exclude each other: where hosts are, by a policy or one by one"
                    .to_owned(),
            );
        }
        if self.workload.grow.is_some() && (self.workload.generate.is_some() || self.workload.recorded_network) {
            return Err("workload.grow: for a recorded job, and on no recorded network; workload.generate has a job file's own numbers, and workload.recorded_network is for the job as it was recorded".to_owned());
        }
        if self.workload.grow.as_ref().is_some_and(|growth| growth.racks == Some(0)) {
            return Err("workload.grow.racks = 0: at least 1".to_owned());
        }
        let as_recorded = Options { jitter: self.options().jitter, ..Options::default() };
        let is_as_recorded = |options: &Options| *options == as_recorded && self.workload.jitter == 0.0;
        if self.workload.grow.is_some() && !is_as_recorded(&Options { cores: None, ..self.options() }) {
            return Err("workload.grow: cpu_factor, cpu_factors, causality, handshakes, timers, production and jitter are for jobs as recorded; workload.grow.cpu makes cores faster".to_owned());
        }
        if self.workload.generate.is_some() && !is_as_recorded(&self.options()) {
            return Err("workload.generate: cpu_factor, cpu_factors, causality, handshakes, timers, production, jitter and [cpu] are for recorded jobs; the job file has map_rate, reduce_rate and cores".to_owned());
        }
        if self.dispatcher.task_mapping == Some(true) && self.dispatcher.task_filename.is_none() {
            return Err(
                "dispatcher.taskMapping = true needs dispatcher.taskFilename, the file of the mapping".to_owned()
            );
        }
        for (kind, factor) in &self.workload.cpu_factors {
            if !allowed(*factor) {
                return wrong(format!("workload.cpu_factors.{kind}"), *factor);
            }
        }
        Ok(())
    }

    /// Puts the run's seed into the fabric, where it has one.
    fn spread_seed(&mut self, given: (bool, Option<i64>)) -> Result<(), String> {
        let (run_given, of_fabric) = given;
        if let Some(seed) = of_fabric {
            if run_given && u64::try_from(seed) != Ok(self.run.seed) {
                return Err(format!(
                    "fabric.seed = {seed}, but run.seed = {}: give one of them (run.seed reaches every fabric)",
                    self.run.seed
                ));
            }
            self.run.seed = u64::try_from(seed).unwrap_or(self.run.seed);
            return Ok(());
        }
        let Ok(toml::Value::Table(mut fabric)) = toml::Value::try_from(&self.fabric) else { return Ok(()) };
        let seed = i64::try_from(self.run.seed)
            .map_err(|_| format!("run.seed = {}: at most {} is possible", self.run.seed, i64::MAX))?;
        if let Some(value) = fabric.get_mut("seed") {
            *value = toml::Value::Integer(seed);
            self.fabric = fabric.try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
        }
        Ok(())
    }
}

/// Whether the run has a seed, and which the fabric has.
fn seeds(table: &toml::Table) -> (bool, Option<i64>) {
    let seed = |of: &str| table.get(of)?.get("seed")?.as_integer();
    (seed("run").is_some(), seed("fabric"))
}
