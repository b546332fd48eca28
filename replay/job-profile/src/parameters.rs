//! The parameters of a job's like: what `replay generate` makes such a job from.
//!
//! All is of one job. A rate is a median over tasks; where a network may have held a task back, only
//! what was not on the network counts: of maps their work on what they read, and of reduces what is computed on the way to their
//! end over a network that takes no time.

use std::fmt::Write as _;

use causal::{CoreSharing, JobGraph, Options};
use trace::rows::{JobRow, TaskKind, Trace};

use crate::Learn;
use crate::fetches::median_fetches;
use crate::recording::Recording;
use crate::reduce_memory::{CONTAINER_MB, container_of};

/// `mapreduce.task.io.sort.mb`, 100: the default, which the job file has as well.
const SORT_BUFFER: u64 = 100 << 20;

/// A job that writes more times what it reads makes its data itself: what its maps read is only the list of splits.
const MAX_OUTPUT_BY_INPUT: u64 = 100;

/// What was learned of a job. Times are nanoseconds, rates bytes a second; `None` = the trace does not tell.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct JobParameters {
    /// The job's id.
    pub job: String,
    /// Its name.
    pub name: String,
    /// Hosts with a DataNode, a NodeManager or a task.
    pub nodes: usize,
    /// Racks of these.
    pub racks: usize,
    /// Tasks that ran on one node at once, at most.
    pub tasks_at_once: usize,
    /// The processors for which tasks competed, if they were told: rates and starts are those of a processor of one's own.
    #[serde(skip)]
    pub sharing: Option<CoreSharing>,
    /// Heap of its reduces, bytes, if it was told.
    #[serde(skip)]
    pub reduce_heap: Option<u64>,
    /// Maps that completed.
    pub maps: u32,
    /// Reduces that completed.
    pub reduces: u32,
    /// Bytes that its maps read.
    pub input_bytes: u64,
    /// Map output by input: what reduces fetched, or, without reduces, what maps wrote to HDFS.
    pub map_output: f64,
    /// Input of a map whose records fill its sort buffer, bytes; `None` = no map was seen to stand still for it.
    pub buffer_full_bytes: Option<u64>,
    /// Output by what reduces fetched.
    pub reduce_output: f64,
    /// Copies of its output.
    pub replication: u32,
    /// Hosts that a split of its input names; `None` = the history does not tell.
    pub input_replication: Option<u32>,
    /// Whether splits name hosts, so that maps ask for nodes that have their data.
    pub locality: bool,
    /// Share of the nodes on which that input lies, where it has one copy.
    pub input_share_of_nodes: Option<f64>,
    /// Share of the maps that were done when reduces were asked for.
    pub slow_start: f64,
    /// Exponent of the reduces' shares.
    pub skew: f64,
    /// Whether maps had second attempts, of which one was killed.
    pub map_speculative: bool,
    /// The same of reduces.
    pub reduce_speculative: bool,
    /// From a map's start, when its node has the job's files, to its first call.
    pub container_start_ns: Option<u64>,
    /// From the answer to that to its first read.
    pub task_start_ns: Option<u64>,
    /// From a reduce's start, when its node has the job's files, to its first call.
    pub reduce_container_start_ns: Option<u64>,
    /// From the answer to that to its first question for map outputs.
    pub reduce_task_start_ns: Option<u64>,
    /// How long before that the first task on a node other than the master's waits for the job's files.
    pub localization_ns: Option<u64>,
    /// From a reduce's sort to its first output.
    pub output_start_ns: Option<u64>,
    /// From its last output, or that of a map where there are no reduces, to its end.
    pub output_commit_ns: Option<u64>,
    /// From the end of the last task that writes to that of the job.
    pub job_commit_ns: Option<u64>,
    /// From the start of the master's container to its registration.
    pub master_start_ns: Option<u64>,
    /// What a map reads and computes on.
    pub map_rate: Option<f64>,
    /// What it puts out, over the time from the end of its input to its own end.
    pub sort_rate: Option<f64>,
    /// What a reduce had in memory when it had fetched all, over the time of its sort; `None` as well where that was nothing.
    pub merge_rate: Option<f64>,
    /// The same over what it and whom it waits for compute from its first to its last output, over a network that takes no time.
    pub reduce_rate: Option<f64>,
    /// What a NodeManager takes for its first fetch of the job, its second, and so on: medians over them, the last for all later ones.
    pub fetches_ns: Vec<u64>,
    /// What the trace could not tell, in words.
    pub notes: Vec<String>,
}

/// Learns them; `None` if the trace has no job that can be replayed, or none whose maps read what they work on from HDFS. Where the sharing of processors is told, rates and starts
/// are those of a processor of one's own.
#[must_use]
pub fn parameters(trace: &Trace, learn: Learn<'_>) -> Option<JobParameters> {
    let graph = JobGraph::new(trace, learn.job, Options::default()).ok()?;
    parameters_of(&Recording::new(trace, &graph, learn.sharing), graph.job, learn)
}

pub(super) fn parameters_of(of: &Recording<'_>, job: &JobRow, learn: Learn<'_>) -> Option<JobParameters> {
    let input_bytes = job.hdfs_bytes_read.filter(|bytes| *bytes > 0)?;
    let without_reduces = job.reduces == 0;
    let fetched = job.shuffle_bytes.or(without_reduces.then_some(0))?;
    let written = job.hdfs_bytes_written.unwrap_or(0);
    if job.maps == 0 || written / input_bytes > MAX_OUTPUT_BY_INPUT {
        return None;
    }
    let map_output = if without_reduces { written } else { fetched };
    let writers = [if without_reduces { TaskKind::Map } else { TaskKind::Reduce }];
    let mut notes = Vec::new();
    let map_rate = of.map_rate(&mut notes);
    let container_start = |kinds: &[TaskKind]| of.median_ns(kinds, |task| of.container_start(task));
    let task_start = |kinds: &[TaskKind]| of.median_ns(kinds, |task| of.task_start(task));
    let reduce_container_start_ns = container_start(&[TaskKind::Reduce]);
    let reduce_task_start_ns = task_start(&[TaskKind::Reduce]);
    Some(JobParameters {
        job: job.id.clone(),
        name: job.name.clone(),
        nodes: of.nodes().len(),
        racks: of.racks().max(1),
        tasks_at_once: of.tasks_at_once(),
        sharing: learn.sharing,
        reduce_heap: learn.reduce_heap,
        maps: job.maps,
        reduces: job.reduces,
        input_bytes,
        map_output: map_output as f64 / input_bytes as f64,
        buffer_full_bytes: of.consumption.buffer_full,
        reduce_output: if fetched > 0 { written as f64 / fetched as f64 } else { 0.0 },
        replication: of.replication(),
        input_replication: job.split_hosts.filter(|hosts| *hosts > 0),
        locality: job.split_hosts != Some(0),
        input_share_of_nodes: input_share_of_nodes(job, of.nodes().len()),
        slow_start: of.slow_start(job),
        skew: of.skew(),
        map_speculative: of.had_second_attempts(TaskKind::Map),
        reduce_speculative: of.had_second_attempts(TaskKind::Reduce),
        container_start_ns: container_start(&[TaskKind::Map]).or(reduce_container_start_ns),
        localization_ns: of.localization(),
        output_start_ns: of.median_ns(&[TaskKind::Reduce], |task| Some(of.computing_of(task)?.before_output_ns)),
        output_commit_ns: of.median_ns(&writers, |task| Some(of.computing_of(task)?.after_output_ns)),
        job_commit_ns: of.job_commit(job, writers[0]),
        task_start_ns: task_start(&[TaskKind::Map]).or(reduce_task_start_ns),
        reduce_container_start_ns,
        reduce_task_start_ns,
        master_start_ns: of.master_start(job),
        map_rate,
        sort_rate: of.median_rate(&[TaskKind::Map], |task| Some((fetched / u64::from(job.maps), of.sorting_ns(task)?))),
        merge_rate: of.median_rate(&[TaskKind::Reduce], |task| {
            let merged = of.in_memory(task, learn.reduce_heap);
            Some((merged, of.alone_ns(task, task.shuffle_end_ns?, task.sort_end_ns?)))
        }),
        reduce_rate: of
            .median_rate(&[TaskKind::Reduce], |task| Some((of.fetched(task), of.computing_of(task)?.output_ns))),
        fetches_ns: median_fetches(of),
        notes,
    })
}

/// With further copies of blocks, the hosts that splits name say little of who wrote them.
fn input_share_of_nodes(job: &JobRow, nodes: usize) -> Option<f64> {
    let hosts = job.input_hosts.filter(|_| job.split_hosts == Some(1))?;
    let possible = nodes.min(job.maps as usize).max(1);
    Some((f64::from(hosts) / possible as f64).min(1.0))
}

impl JobParameters {
    /// As a job file for `replay generate`.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = format!("# The like of {} ({}).\n", plain(&self.job), plain(&self.name));
        for note in &self.notes {
            let _ = writeln!(text, "# {}", plain(note));
        }
        self.write_cluster(&mut text);
        self.write_hadoop(&mut text);
        self.write_job(&mut text);
        text
    }

    const fn has_reduces(&self) -> bool {
        self.reduces > 0
    }

    fn write_cluster(&self, text: &mut String) {
        let _ = write!(text, "\n[cluster]\nnodes = {}\nracks = {}\n", self.nodes, self.racks);
        let _ = match self.sharing {
            Some(CoreSharing { cores, shared, .. }) => write!(
                text,
                "# Cores as they were told; a trace does not tell disks: what they took is in the rates below.\n\
                 cores = {cores}\ncore_sharing = \"{}\"\n",
                if shared { "cluster" } else { "node" }
            ),
            None => write!(
                text,
                "# A trace does not tell cores and disks; what they took is in the rates below.\ncores = {}\n",
                self.tasks_at_once
            ),
        };
        let _ = write!(
            text,
            "disk_read = \"unlimited\"\ndisk_write = \"unlimited\"\ncontainer_start = {}\ntask_start = {}\n",
            time(self.container_start_ns),
            time(self.task_start_ns),
        );
        let of_reduces =
            [("container_start", self.reduce_container_start_ns), ("task_start", self.reduce_task_start_ns)];
        for (name, ns) in of_reduces.into_iter().filter(|(_, ns)| ns.is_some()) {
            let _ = writeln!(text, "reduce_{name} = {}", time(ns));
        }
        let _ = write!(
            text,
            "master_start = {}\nlocalization = {}\n",
            time(self.master_start_ns),
            time(self.localization_ns)
        );
        // Without reduces, what opens the output lies before a map's first read.
        if self.has_reduces() {
            let _ = writeln!(text, "output_start = {}", time(self.output_start_ns));
        }
        let _ = write!(
            text,
            "output_commit = {}\njob_commit = {}\n",
            time(self.output_commit_ns),
            time(self.job_commit_ns)
        );
    }

    fn write_hadoop(&self, text: &mut String) {
        let heap = self.reduce_heap.filter(|_| self.has_reduces()).map(container_of);
        let container_mb = heap.map_or(CONTAINER_MB, |(mb, _)| mb);
        let _ = write!(
            text,
            "\n[hadoop]\n# The input by the maps.\ndfs.blocksize = {}\ndfs.replication = {}\n\
             # As many tasks at once as one node had at most; a master takes the place of none, and YARN still looks at full nodes.\n\
             yarn.nodemanager.resource.memory-mb = {}\nyarn.scheduler.minimum-allocation-mb = 1\n\
             yarn.app.mapreduce.am.resource.mb = 1\n",
            self.input_bytes.div_ceil(u64::from(self.maps.max(1))),
            self.replication,
            container_mb.saturating_mul(self.tasks_at_once as u64).saturating_add(2),
        );
        if self.has_reduces() {
            let slow_start = share(self.slow_start);
            let _ = writeln!(text, "mapreduce.job.reduce.slowstart.completedmaps = {slow_start}");
        }
        if let Some((_, ratio)) = heap {
            let _ = write!(
                text,
                "# The reduces' heap as it was told.\nmapreduce.map.memory.mb = {container_mb}\n\
                 mapreduce.reduce.memory.mb = {container_mb}\nmapreduce.job.heap.memory-mb.ratio = {:?}\n",
                share(ratio)
            );
        }
        let _ = writeln!(
            text,
            "# Whether tasks had second attempts.\nmapreduce.map.speculative = {}",
            self.map_speculative
        );
        if self.has_reduces() {
            let _ = writeln!(text, "mapreduce.reduce.speculative = {}", self.reduce_speculative);
        }
    }

    fn write_job(&self, text: &mut String) {
        let _ = write!(
            text,
            "\n[[job]]\nname = \"job\"\ninput = \"{}B\"\nreduces = {}\nmap_output = {:?}\n",
            self.input_bytes,
            self.reduces,
            share(self.map_output),
        );
        if self.has_reduces() {
            let _ = write!(
                text,
                "reduce_output = {:?}\nmap_rate = {}\nsort_rate = {}\nmerge_rate = {}\nreduce_rate = {}\nskew = {:?}\n",
                share(self.reduce_output),
                rate(self.map_rate),
                rate(self.sort_rate),
                rate(self.merge_rate),
                rate(self.reduce_rate),
                self.skew,
            );
        } else {
            let _ = writeln!(text, "map_rate = {}", rate(self.map_rate));
        }
        if let Some(copies) = self.input_replication {
            let _ = writeln!(
                text,
                "# The hosts that a split of the input names, and the share of the nodes that has it.\ninput_replication = {copies}"
            );
        }
        if !self.locality {
            let _ = writeln!(text, "# Splits of the input name no host: maps ask for any node.\nlocality = false");
        }
        if let Some(full) = self.buffer_full_bytes.filter(|full| *full > 0 && self.has_reduces()) {
            let taken = share(SORT_BUFFER as f64 / full as f64);
            let _ = writeln!(
                text,
                "# Maps stood still when they had read so much that their records filled the sort buffer.\nbuffer_use = {taken:?}"
            );
        }
        if !self.fetches_ns.is_empty() {
            let services: Vec<String> = self.fetches_ns.iter().map(|ns| format!("[\"{}us\"]", ns / 1_000)).collect();
            let _ = writeln!(
                text,
                "# What a NodeManager took for its first fetch, its second, ..., its later ones.\nfetch = [{}]",
                services.join(", ")
            );
        }
        if let Some(of_nodes) = self.input_share_of_nodes {
            let _ = writeln!(text, "input_share_of_nodes = {:?}", share(of_nodes));
        }
    }
}

fn rate(rate: Option<f64>) -> String {
    match rate {
        Some(bytes) => format!("\"{}bps\"", (bytes * 8.0).round().max(8.0)),
        None => "\"unlimited\"                # not in the trace".to_owned(),
    }
}

fn time(ns: Option<u64>) -> String {
    match ns {
        Some(ns) => format!("\"{}ms\"", ns / 1_000_000),
        None => "\"0ps\"                      # not in the trace".to_owned(),
    }
}

fn plain(text: &str) -> String {
    text.replace(|letter: char| letter.is_control(), " ")
}

fn share(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
