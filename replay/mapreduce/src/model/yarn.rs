//! YARN: heartbeats of nodes, who gets which container, and its start.

use netsim::time::SimTime;
use trace::ids::{ProcessId, TaskId};
use trace::rows::{Carrier, Evidence, TaskKind};

use super::behaviour::Behaviour;
use super::capacity::ContainerId;
use super::plan::Actor;
use super::requests::{Locality, LocalityDelay};
use super::state::{Block, Container, Continuation, Model, TimerOwner};
use crate::kernel::{Cause, StepId, Work};
use crate::sizes::{DATANODE_HEARTBEAT, GET_TASK, NODE_HEARTBEAT, START_CONTAINERS};
use crate::world::{NAME_NODE, NodeId, RESOURCE_MANAGER, data_node, node_manager};

const PS_A_MS: u64 = 1_000_000_000;
const CHILD: &str = "org.apache.hadoop.mapred.YarnChild";

impl Model {
    pub(super) fn start_heartbeats(&mut self) {
        let nodes = (0..self.file.cluster.nodes).map(NodeId);
        for node in nodes {
            let pause_ps = self.file.hadoop.nodemanager_heartbeat_ms * PS_A_MS;
            let first_ps = self.draw_below(pause_ps / 1_000) * 1_000;
            let owner = TimerOwner::Node(node);
            let ends = (node_manager(node), RESOURCE_MANAGER);
            let timer = self.start_timer(ends, NODE_HEARTBEAT, pause_ps, owner, None, first_ps);
            self.nodes[node.index()].timer = timer;
            let pause_ps = self.file.hadoop.datanode_heartbeat_s * 1_000 * PS_A_MS;
            let first_ps = self.draw_below(pause_ps / 1_000) * 1_000;
            let ends = (data_node(node), NAME_NODE);
            self.start_timer(ends, DATANODE_HEARTBEAT, pause_ps, TimerOwner::Nobody, None, first_ps);
        }
    }

    /// The ResourceManager knows which maps a job wants, and where their data lies.
    pub(super) fn maps_are_asked(&mut self, app: u32, asked: StepId) {
        let locality = self.file.jobs[app as usize].locality;
        let state = &mut self.apps[app as usize];
        state.pending.asked = Some(asked);
        for (task, block) in (state.first_task..).zip(&state.input) {
            state.pending.add_map(TaskId(task), asked, block.split_hosts(locality), &self.world);
        }
    }

    pub(super) fn reduces_are_asked(&mut self, app: u32, more: u32, asked: StepId) {
        let state = &mut self.apps[app as usize];
        let first = state.first_task + state.maps + state.reduces_asked - more;
        state.pending.reduces.extend((first..first + more).map(|task| (TaskId(task), asked)));
    }

    pub(super) fn container_exits(&mut self, container: ContainerId, exit: StepId) {
        let container_state = &mut self.containers[container.0 as usize];
        // One that is killed may have been about to end.
        if !std::mem::replace(&mut container_state.has_ended, true) {
            self.nodes[container_state.node.index()].ended.push((container, exit));
        }
    }

    /// A node's heartbeat leaves: it tells of the containers that ended.
    pub(super) fn node_reports(&mut self, node: NodeId) {
        let node = &mut self.nodes[node.index()];
        node.reported = std::mem::take(&mut node.ended);
    }

    /// A node's heartbeat has arrived: what ended is free, and what is free is given away.
    pub(super) fn node_update(&mut self, node: NodeId, beat: StepId) {
        for (container, exit) in std::mem::take(&mut self.nodes[node.index()].reported) {
            self.free(container, exit);
        }
        let mut apps: Vec<u32> = (0u32..).zip(&self.apps).filter(|(_, app)| app.wants()).map(|(app, _)| app).collect();
        let mut off_switch = 0;
        loop {
            apps.sort_by(|a, b| self.queues.pressure(*a).total_cmp(&self.queues.pressure(*b)).then(a.cmp(b)));
            let given = apps.iter().any(|app| self.assign(*app, node, beat, &mut off_switch));
            let hadoop = &self.file.hadoop;
            if !given || !hadoop.multiple_assignments || off_switch >= hadoop.offswitch_assignments {
                return;
            }
        }
    }

    /// The memory of a container is free.
    pub(super) fn free(&mut self, container: ContainerId, end: StepId) {
        let Container { app, node, memory_mb, task, .. } = self.containers[container.0 as usize];
        let is_map = task.is_some_and(|task| self.tasks[task.index()].kind == TaskKind::Map);
        let state = &mut self.nodes[node.index()];
        state.freed.push_back((end, memory_mb));
        state.pinned_mb -= if is_map { 0 } else { memory_mb };
        self.queues.use_less(app, memory_mb);
        self.queues.masters_mb -= if task.is_none() { memory_mb } else { 0 };
    }

    /// Gives a job a container on a node, if it wants one that fits: its master first, then reduces, then maps.
    fn assign(&mut self, app: u32, node: NodeId, beat: StepId, off_switch: &mut u64) -> bool {
        let sent = self.kernel.step(beat).happened;
        let is_known = |model: &Self, asked: &StepId| model.kernel.step(*asked).happened <= sent;
        let hadoop = &self.file.hadoop;
        let free_mb = self.nodes[node.index()].free_mb();
        let (map_mb, reduce_mb) =
            (hadoop.container_mb(hadoop.map_memory_mb), hadoop.container_mb(hadoop.reduce_memory_mb));
        let state = &self.apps[app as usize];
        if !state.has_master {
            let master_mb = hadoop.container_mb(hadoop.am_memory_mb);
            let asked = state.asked_master.filter(|asked| is_known(self, asked));
            let Some(asked) = asked.filter(|_| free_mb >= master_mb && self.has_room_for_master(node, master_mb))
            else {
                return false;
            };
            // What asks for no place counts as off its switch.
            *off_switch += 1;
            self.apps[app as usize].has_master = true;
            self.queues.masters_mb += master_mb;
            self.give(app, node, None, master_mb, asked);
            return true;
        }
        let reduce = state.pending.reduces.front().copied().filter(|(_, asked)| is_known(self, asked));
        if let Some((reduce, asked)) = reduce
            && free_mb >= reduce_mb
            && (self.apps.iter().all(|app| app.pending.maps == 0) || self.leaves_room_for_maps(node, reduce_mb))
        {
            *off_switch += 1;
            self.apps[app as usize].pending.reduces.pop_front();
            self.give(app, node, Some(reduce), reduce_mb, asked);
            return true;
        }
        let asked = self.apps[app as usize].pending.asked.filter(|asked| is_known(self, asked));
        if asked.is_none() {
            return false;
        }
        if free_mb < map_mb {
            // `CapacityScheduler` looks at nodes with room for the smallest container.
            if free_mb >= hadoop.minimum_allocation_mb.max(1) {
                self.apps[app as usize].pending.miss();
            }
            return false;
        }
        let Some((map, asked)) = self.choose_map(app, node, sent, off_switch) else { return false };
        self.give(app, node, Some(map), map_mb, asked);
        true
    }

    /// The map of a job that a node gets by a heartbeat that was sent at `sent`, and the step by which it was asked for.
    fn choose_map(&mut self, app: u32, node: NodeId, sent: SimTime, off_switch: &mut u64) -> Option<(TaskId, StepId)> {
        let nodes = u64::from(self.file.cluster.nodes);
        let delay = LocalityDelay { nodes, node_locality_delay: self.file.hadoop.node_locality_delay };
        let is_known = |asked: StepId| self.kernel.step(asked).happened <= sent;
        let (wish, locality) = self.apps[app as usize].pending.choose_map(node, delay, &self.world, is_known)?;
        *off_switch += u64::from(locality == Locality::OffSwitch);
        Some((wish.map, wish.asked))
    }

    /// Whether a map still fits on some node when so much more of this one is pinned.
    fn leaves_room_for_maps(&self, node: NodeId, memory_mb: u64) -> bool {
        let hadoop = &self.file.hadoop;
        let map_mb = hadoop.container_mb(hadoop.map_memory_mb);
        let fits = |pinned_mb: u64| pinned_mb + map_mb <= hadoop.node_memory_mb;
        fits(self.nodes[node.index()].pinned_mb + memory_mb)
            || (0u32..).zip(&self.nodes).any(|(other, state)| other != node.0 && fits(state.pinned_mb))
    }

    /// Masters have at most a tenth of the memory (`yarn.scheduler.capacity.maximum-am-resource-percent`), but one may always
    /// be.
    fn has_room_for_master(&self, node: NodeId, memory_mb: u64) -> bool {
        let total_mb = self.nodes.len() as u64 * self.file.hadoop.node_memory_mb;
        let masters_mb = self.queues.masters_mb;
        (masters_mb == 0 || (masters_mb + memory_mb) * 10 <= total_mb) && self.leaves_room_for_maps(node, memory_mb)
    }

    /// A job gets a container, which is started.
    fn give(&mut self, app: u32, node: NodeId, task: Option<TaskId>, memory_mb: u64, asked: StepId) {
        let task = task.map(|task| self.next_attempt(task));
        let container = ContainerId(self.containers.len() as u32);
        self.containers.push(Container { app, node, memory_mb, task, has_ended: false });
        self.queues.use_more(app, memory_mb);
        let is_map = task.is_some_and(|task| self.tasks[task.index()].kind == TaskKind::Map);
        let state = &mut self.nodes[node.index()];
        state.pinned_mb += if is_map { 0 } else { memory_mb };
        let timer = state.timer;
        let mut causes = vec![Cause::sent(asked, Evidence::Protocol).by(timer, Carrier::Request)];
        let ends = state.take(memory_mb).into_iter();
        causes.extend(ends.map(|end| Cause::sent(end, Evidence::Slot).by(timer, Carrier::Request)));
        let manager = Actor::daemon(RESOURCE_MANAGER);
        let given = self.mark("container.assigned", manager, Work::Delay(0), None, &causes);
        match task {
            None => {
                let cause = Cause::sent(given, Evidence::Protocol);
                let called = self.call((manager, node_manager(node)), START_CONTAINERS, 0, None, &[cause]);
                self.start_master(app, node, called.request);
            }
            Some(task) => self.launch(task, node, container, given),
        }
    }

    /// The master hears of a container with its next answer, and has a task started in it.
    fn launch(&mut self, task: TaskId, node: NodeId, container: ContainerId, given: StepId) {
        let app = &self.apps[self.app_of(task) as usize];
        let (Some(master), Some(timer)) = (app.master, app.timer) else { return };
        let news = Cause::sent(given, Evidence::Protocol).by(timer, Carrier::Response);
        let launched = self.call((Actor::daemon(master), node_manager(node)), START_CONTAINERS, 0, None, &[news]);
        let actor = Actor { process: master, task: Some(task) };
        let cause = Cause::delivered(launched.response, Evidence::Thread);
        let start = self.mark("task.start", actor, Work::Delay(0), None, &[cause]);
        let process = self.world.start_process(node, "YarnChild", CHILD, Some(task));
        let cause = Cause::delivered(launched.request, Evidence::ThreadStart);
        let app = self.app_of(task) as usize;
        let is_first = self.apps[app].localized.insert(node);
        let Behaviour { localization_ps, container_start_ps, .. } = self.behaviour(task);
        let cause = if is_first && localization_ps > 0 {
            let manager = Actor { process: node_manager(node), task: Some(task) };
            Cause::sent(
                self.mark("container.localized", manager, Work::Delay(localization_ps), None, &[cause]),
                cause.evidence,
            )
        } else {
            cause
        };
        let work = self.starts(node, container_start_ps);
        let child = Actor { process, task: Some(task) };
        self.call_after((child, master), GET_TASK, work, Some(Continuation::TaskUp(task)), &[cause]);
        let state = &mut self.tasks[task.index()];
        (state.node, state.process, state.container) = (Some(node), Some(process), Some(container));
        (state.start, state.launched) = (Some(start), Some(launched.request));
    }

    pub(super) fn block(&mut self, bytes: u64, replicas: Vec<NodeId>) -> Block {
        self.blocks += 1;
        Block { id: 1_073_741_824 + self.blocks, bytes, replicas }
    }

    /// Where the copies of a block go (`BlockPlacementPolicyDefault`): the first on the writer's node, the second in another
    /// rack, the third in the rack of the second, further ones anywhere.
    pub(super) fn choose_replicas(&mut self, writer: NodeId, copies: u32) -> Vec<NodeId> {
        let mut chosen = vec![writer];
        while chosen.len() < copies as usize {
            let rack = match *chosen {
                [first] => Some((self.world.rack(first), false)),
                [_, second] => Some((self.world.rack(second), true)),
                _ => None,
            };
            let next = self.draw_node(&chosen, rack).or_else(|| self.draw_node(&chosen, None));
            let Some(next) = next else { break };
            chosen.push(next);
        }
        chosen
    }

    /// A node that is not among `others`, and in (or not in) a rack.
    fn draw_node(&mut self, others: &[NodeId], rack: Option<(u32, bool)>) -> Option<NodeId> {
        let nodes = self.file.cluster.nodes;
        let first = self.draw_below(nodes.into()) as u32;
        let is_good = |node: &NodeId| {
            !others.contains(node) && rack.is_none_or(|(rack, inside)| (self.world.rack(*node) == rack) == inside)
        };
        (0..nodes).map(|step| NodeId((first + step) % nodes)).find(is_good)
    }

    /// The process of a task's master.
    pub(super) fn master_of(&self, task: TaskId) -> Option<ProcessId> {
        self.apps[self.app_of(task) as usize].master
    }
}
