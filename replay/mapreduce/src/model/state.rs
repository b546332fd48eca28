//! The jobs under way, as they stand.

use std::collections::{BTreeMap, BTreeSet};

use netsim::kernel::random;
use netsim::network::FlowId;
use netsim::time::SimTime;
use trace::ids::{ConnectionId, ProcessId, TaskId, TimerId};
use trace::rows::{Carrier, TaskKind};

use super::attempts::{Speculation, Watched};
use super::capacity::{ContainerId, Node, Queues};
use super::pending_outputs::PendingOutputs;
use super::requests::Pending;
use crate::cluster::CoreScope;
use crate::config::JobFile;
use crate::error::JobError;
use crate::kernel::{Kernel, ResourceId, StepId};
use crate::sizes::CallSizes;
use crate::world::{NodeId, World};

/// How long a task has a core that others wait for, picoseconds: some time slices of Linux.
const TURN_PS: u64 = 20_000_000_000;

/// What follows when a step has happened, or has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Continuation {
    /// Half a beat of a timer was sent, or has arrived.
    Beat(TimerId, Carrier),
    /// The ResourceManager has the application.
    Submitted(u32),
    /// The application master is registered.
    Registered(u32),
    /// The ResourceManager has the master's request for the maps.
    MapsAsked(u32),
    /// The same for so many more reduces.
    ReducesAsked(u32, u32),
    /// The speculator of a job looks at its tasks.
    Scan(u32),
    /// The ResourceManager has the request for the second attempt of a task.
    SecondAsked(TaskId),
    /// The NodeManager has killed an attempt.
    Killed(TaskId),
    /// The ResourceManager knows that a container is not used.
    Released(ContainerId),
    /// A task's JVM knows its task.
    TaskUp(TaskId),
    /// The master knows that a task is done.
    TaskDone(TaskId),
    /// A container has ended.
    Exited(ContainerId),
    /// A fetch is complete.
    Fetched(TaskId, u32),
    /// A reduce has all its input.
    ShuffleEnd(TaskId),
    /// A job is done.
    JobFinished(u32),
    /// The client knows that it is.
    ClientKnows(u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Container {
    pub(super) app: u32,
    pub(super) node: NodeId,
    pub(super) memory_mb: u64,
    /// `None`: the application master's.
    pub(super) task: Option<TaskId>,
    /// It exited, or was given back.
    pub(super) has_ended: bool,
}

/// Whose beats a timer's are.
#[derive(Clone, Copy, Debug)]
pub(super) enum TimerOwner {
    Node(NodeId),
    App(u32),
    Reduce(TaskId),
    /// An attempt that reports how far it is.
    Report(TaskId),
    Nobody,
}

/// A block of a file.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) id: u64,
    pub(super) bytes: u64,
    pub(super) replicas: Vec<NodeId>,
}

impl Block {
    /// The hosts that the split of a map which reads it names.
    pub(super) fn split_hosts(&self, locality: bool) -> &[NodeId] {
        if locality { &self.replicas } else { &[] }
    }
}

/// An attempt of a task; none fails, but of two one is killed.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) app: u32,
    pub(crate) kind: TaskKind,
    /// Number among the maps, or the reduces, of its job.
    pub(crate) number: u32,
    /// Number among the attempts of its task.
    pub(crate) attempt: u32,
    /// The first of these attempts.
    pub(super) first: TaskId,
    /// Of a first attempt: whether its task is done.
    pub(super) is_done: bool,
    pub(crate) node: Option<NodeId>,
    pub(crate) process: Option<ProcessId>,
    pub(crate) start: Option<StepId>,
    pub(crate) shuffle_end: Option<StepId>,
    pub(crate) sort_end: Option<StepId>,
    pub(crate) finish: Option<StepId>,
    pub(super) container: Option<ContainerId>,
    /// The master's request to start it.
    pub(super) launched: Option<StepId>,
    /// By which the master gave it up.
    pub(crate) killed: Option<StepId>,
}

impl Task {
    /// An attempt that has no container yet; `first` and its number among the attempts of its task.
    pub(super) const fn new(app: u32, kind: TaskKind, number: u32, (first, attempt): (TaskId, u32)) -> Self {
        Self {
            app,
            kind,
            number,
            attempt,
            first,
            is_done: false,
            node: None,
            process: None,
            start: None,
            shuffle_end: None,
            sort_end: None,
            finish: None,
            container: None,
            launched: None,
            killed: None,
        }
    }
}

/// A job under way.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) submit: Option<StepId>,
    /// Its master is registered.
    pub(crate) launch: Option<StepId>,
    pub(crate) finish: Option<StepId>,
    /// First of its tasks; maps, then reduces.
    pub(crate) first_task: u32,
    pub(crate) maps: u32,
    pub(crate) reduces: u32,
    pub(super) input: Vec<Block>,
    /// By map, and by reduce, the sample that it is like; empty without samples.
    pub(super) map_samples: Vec<u32>,
    pub(super) reduce_samples: Vec<u32>,
    /// Fetches that each node has answered.
    pub(super) fetches: BTreeMap<NodeId, usize>,
    /// By reduce, the sum of the shares of all up to it, of the map output.
    pub(super) share_ends: Vec<f64>,
    /// What its reduces, or its maps if it has none, wrote, by attempt.
    pub(super) output: Vec<(TaskId, Block)>,
    pub(super) master: Option<ProcessId>,
    pub(super) timer: Option<TimerId>,
    pub(super) client_timer: Option<TimerId>,
    /// The ResourceManager knows of it by this step.
    pub(super) asked_master: Option<StepId>,
    pub(super) has_master: bool,
    /// Nodes that have its files.
    pub(super) localized: BTreeSet<NodeId>,
    pub(super) pending: Pending,
    /// Maps that are done, with the step by which the master knows, in their order.
    pub(super) completed: Vec<(TaskId, StepId)>,
    /// How many of them the response that is under way to the master came after.
    pub(super) completed_seen: usize,
    /// By which the master knows of each reduce that is done.
    pub(super) reduces_done: Vec<StepId>,
    pub(super) speculation: Speculation,
    pub(super) reduces_asked: u32,
    pub(super) client_knows: bool,
}

impl App {
    /// Whether the tasks that write its output are done: its reduces, or its maps if it has none.
    pub(super) fn all_written(&self) -> bool {
        match self.reduces {
            0 => self.completed.len() == self.maps as usize,
            reduces => self.reduces_done.len() == reduces as usize,
        }
    }

    /// Hosts that each of its splits names.
    pub(crate) fn split_hosts(&self, locality: bool) -> Option<u32> {
        u32::try_from(self.input.first()?.split_hosts(locality).len()).ok()
    }

    /// Whether it has asked for a container that it has not got.
    pub(super) fn wants(&self) -> bool {
        let wants_task = self.pending.maps > 0 || !self.pending.reduces.is_empty();
        if self.has_master { wants_task } else { self.asked_master.is_some() }
    }
}

/// A fetcher: one of the `mapreduce.reduce.shuffle.parallelcopies` threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Fetcher {
    /// The node that it fetches from, and its maps.
    pub(super) at: Option<(NodeId, Vec<TaskId>)>,
    /// The last of what it fetched before.
    pub(super) last: Option<StepId>,
}

/// A reduce that shuffles.
#[derive(Debug)]
pub(super) struct Reduce {
    pub(super) assignment: StepId,
    pub(super) timer: TimerId,
    /// Completed maps that the answer under way reports, and those that it has seen.
    pub(super) reported: usize,
    pub(super) seen: usize,
    pub(super) pending: PendingOutputs,
    pub(super) fetchers: Vec<Fetcher>,
    pub(super) connections: BTreeMap<NodeId, ConnectionId>,
    pub(super) fetched: usize,
    pub(super) in_memory: u64,
    /// Segments on the disk, bytes.
    pub(super) on_disk: Vec<u64>,
    /// The last that was written to it.
    pub(super) written: Option<StepId>,
    pub(super) input: u64,
}

/// Jobs under way on a cluster, as the workload of a network.
#[derive(Debug)]
pub struct Model {
    pub(crate) file: JobFile,
    pub(crate) kernel: Kernel<Continuation>,
    pub(crate) world: World,
    pub(crate) apps: Vec<App>,
    pub(crate) tasks: Vec<Task>,
    pub(super) containers: Vec<Container>,
    pub(super) nodes: Vec<Node>,
    pub(super) queues: Queues,
    pub(super) owners: Vec<TimerOwner>,
    pub(super) reduces: Vec<Option<Box<Reduce>>>,
    /// Running attempts that may be too slow.
    pub(super) watched: BTreeMap<TaskId, Watched>,
    pub(super) flows: Vec<(FlowId, FlowId)>,
    pub(super) drawn: u64,
    pub(super) blocks: u64,
    pub(super) calls: u32,
    pub(super) call_sizes: CallSizes,
}

impl Model {
    /// The jobs of a file, before anything has happened.
    #[must_use]
    pub fn new(file: JobFile) -> Self {
        let mut kernel = Kernel::new();
        let sharing = file.cluster.core_sharing;
        let turn_ps = (sharing != CoreScope::None).then_some(TURN_PS);
        let of_all = (sharing == CoreScope::Cluster).then(|| kernel.add_resource(file.cluster.cores, turn_ps));
        let nodes = (0..file.cluster.nodes).map(|_| {
            let cpu = of_all.unwrap_or_else(|| kernel.add_resource(file.cluster.cores, turn_ps));
            let disk = kernel.add_resource(file.cluster.disks, None);
            Node::new(cpu, disk, file.hadoop.node_memory_mb)
        });
        let mut nodes: Vec<Node> = nodes.collect();
        for (name, times) in &file.cluster.slow {
            if let Some(node) = file.cluster.worker(name) {
                nodes[node].slowness = *times;
            }
        }
        let mut model = Self {
            world: World::new(&file.cluster),
            kernel,
            apps: Vec::new(),
            tasks: Vec::new(),
            containers: Vec::new(),
            nodes,
            queues: Queues::new(&file),
            owners: Vec::new(),
            reduces: Vec::new(),
            watched: BTreeMap::new(),
            flows: Vec::new(),
            drawn: 0,
            blocks: 0,
            calls: 0,
            call_sizes: CallSizes::new(&file.calls),
            file,
        };
        model.start_heartbeats();
        model.plan_apps();
        model
    }

    /// Hosts that the network must have.
    #[must_use]
    pub fn hosts(&self) -> u32 {
        self.file.cluster.hosts()
    }

    /// Tasks that are done, and all of them.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let done: u64 = self.apps.iter().map(|app| app.completed.len() as u64 + app.reduces_done.len() as u64).sum();
        (done, self.apps.iter().map(|app| u64::from(app.maps) + u64::from(app.reduces)).sum())
    }

    /// Simulated time.
    #[must_use]
    pub const fn now(&self) -> SimTime {
        self.kernel.now
    }

    /// Whether all jobs are done, and their clients know.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.apps.iter().all(|app| app.client_knows)
    }

    /// Whether there is no room for more of it.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.kernel.steps.len() + self.kernel.alarms_set() > self.file.max_steps as usize
    }

    /// Why it came to no end.
    #[must_use]
    pub fn halted(&self) -> JobError {
        let at = format!("{:.3}", self.kernel.now.0 as f64 / 1e12);
        if self.is_full() {
            let (done, tasks) = self.progress();
            let last = self.last_done();
            let progress = match last {
                Some(last) => {
                    format!("{done} of {tasks} tasks are done, the last of them after {:.3} s", last.0 as f64 / 1e12)
                }
                None => format!("none of {tasks} tasks is done"),
            };
            let goes_on = last.is_some_and(|last| last.0 >= self.kernel.now.0 / 2);
            return JobError::TooLong { most: self.file.max_steps, at, progress, goes_on };
        }
        JobError::Halt { jobs: self.apps.iter().filter(|app| !app.client_knows).count(), at }
    }

    /// When the last task was done.
    fn last_done(&self) -> Option<SimTime> {
        let of = |app: &App| {
            let steps = app.completed.last().map(|(_, step)| *step).into_iter().chain(app.reduces_done.last().copied());
            steps.map(|step| self.kernel.step(step).happened).max()
        };
        self.apps.iter().filter_map(of).max()
    }

    /// A number below `bound`, which is not 0.
    pub(super) fn draw_below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        random::below(random::draw(self.file.seed, 0x6a6f_6273, self.drawn), bound)
    }

    /// The number of a new call, operation or fetch.
    pub(super) fn next_call(&mut self) -> u32 {
        self.calls += 1;
        self.calls
    }

    pub(super) fn app_of(&self, task: TaskId) -> u32 {
        self.tasks[task.index()].app
    }

    pub(super) fn cpu(&self, node: NodeId) -> ResourceId {
        self.nodes[node.index()].cpu
    }

    pub(super) fn disk(&self, node: NodeId) -> ResourceId {
        self.nodes[node.index()].disk
    }
}
