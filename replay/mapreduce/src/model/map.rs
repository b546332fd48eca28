//! A map: reads its block, computes, spills, merges its spills.

use trace::ids::{ProcessId, TaskId};
use trace::rows::{Evidence, MessageKind};

use super::plan::Actor;
use super::running::Running;
use super::spills::SortBuffer;
use super::state::{Continuation, Model};
use crate::kernel::{Cause, StepId, Work};
use crate::merge::merge_passes;
use crate::sizes::{DONE, READ_REQUEST_BYTES, WINDOW, block_wire_bytes};
use crate::world::{MessageNote, NodeId, Protocol, data_node, node_manager};

impl Model {
    /// Bytes of a map's output, as they lie on its disk.
    pub(super) fn map_output_bytes(&self, app: u32, map: u32) -> u64 {
        let job = &self.file.jobs[app as usize];
        let raw = self.raw_output_bytes(app, map);
        (if self.file.hadoop.compress { raw * job.compressed } else { raw }).round() as u64
    }

    /// The same before it is compressed.
    fn raw_output_bytes(&self, app: u32, map: u32) -> f64 {
        let state = &self.apps[app as usize];
        let job = &self.file.jobs[app as usize];
        let sample = state.map_samples.get(map as usize).map(|sample| &job.map_samples[*sample as usize]);
        state.input[map as usize].bytes as f64 * sample.map_or(job.map_output, |sample| sample.output)
    }

    pub(super) fn start_map(&mut self, task: TaskId, assignment: StepId) {
        let Some(running) = self.running(task) else { return };
        self.watch(task, assignment);
        let number = self.tasks[task.index()].number;
        let block = self.apps[running.app as usize].input[number as usize].clone();
        let source = self.closest(&block.replicas, running.node);
        let assignment = Cause::delivered(assignment, Evidence::Thread);
        let mut buffer = self.sort_buffer(running, block.bytes);
        let pieces = self.read_and_compute(running, (block.id, block.bytes), source, assignment, &mut buffer);
        self.watch_steps(running, &pieces, &[], None);
        if self.apps[running.app as usize].reduces == 0 {
            let bytes = self.raw_output_bytes(running.app, number).round() as u64;
            let ends = self.write_output(running, bytes, &pieces);
            self.commit_output(running, &ends);
            return;
        }
        let last = buffer.spilled().unwrap_or(pieces[pieces.len() - 1]);
        let spilled = self.merge_spills(running, &buffer.sizes(), last);
        self.finish_task(running, &[Cause::sent(spilled, Evidence::Thread)]);
    }

    /// From a map's assignment until it reads: where there are no reduces, it opens its output before.
    fn map_start_ps(&self, running: Running) -> u64 {
        let opens = self.apps[running.app as usize].reduces == 0;
        let output_start_ps = if opens { self.file.cluster.output_start.ps() } else { 0 };
        running.behaviour.task_start_ps.saturating_add(output_start_ps)
    }

    /// The copy that is closest to a node: on it, in its rack, or any.
    fn closest(&mut self, replicas: &[NodeId], node: NodeId) -> NodeId {
        let in_rack = |copy: &&NodeId| self.world.rack(**copy) == self.world.rack(node);
        if replicas.contains(&node) {
            return node;
        }
        let near: Vec<NodeId> = replicas.iter().filter(in_rack).copied().collect();
        let from = if near.is_empty() { replicas.to_vec() } else { near };
        from[self.draw_below(from.len() as u64) as usize]
    }

    /// The block's pieces are read by the DataNode and computed on as they come and as the sort buffer has room. Returns the
    /// steps that end the computing on each piece.
    fn read_and_compute(
        &mut self,
        running: Running,
        (block, bytes): (u64, u64),
        source: NodeId,
        assignment: Cause,
        buffer: &mut SortBuffer,
    ) -> Vec<StepId> {
        let server = Actor { process: data_node(source), task: running.actor.task };
        let connection = self.world.connect(running.actor.process, server.process, Protocol::DataTransfer);
        let call = self.next_call();
        let note = |kind, bytes, app_bytes| MessageNote {
            app_bytes,
            call,
            block: Some(block),
            task: running.actor.task,
            ..MessageNote::new(kind, "read", bytes)
        };
        let request = self.message(note(MessageKind::BlockRequest, READ_REQUEST_BYTES, 0));
        let there = (connection, true);
        let ready = self.starts(running.node, self.map_start_ps(running));
        let asked = self.send(running.actor, there, request, READ_REQUEST_BYTES, ready, None, &[assignment]);
        let wire: u64 = self.pieces(bytes).map(block_wire_bytes).sum();
        let data = self.message(note(MessageKind::BlockData, wire, bytes));
        let rate = running.behaviour.rate;
        let mut before = Cause::delivered(asked, Evidence::Exchange);
        let mut computed: Vec<StepId> = Vec::new();
        let mut read = 0;
        for piece in self.pieces(bytes) {
            let mut causes = vec![before];
            let ahead = computed.len().checked_sub(WINDOW).map(|first| computed[first]);
            causes.extend(ahead.map(|step| Cause::sent(step, Evidence::Stream)));
            let work = self.reads(source, piece);
            let sent = self.send(server, (connection, false), data, block_wire_bytes(piece), work, None, &causes);
            let mut causes = vec![Cause::delivered(sent, Evidence::Exchange)];
            read += piece;
            let before_it = computed.last().copied().into_iter().chain(buffer.makes_room(read));
            causes.extend(before_it.map(|step| Cause::sent(step, Evidence::Thread)));
            let work = self.computes(running.node, piece, rate, running.factor);
            let done = self.mark("map.piece", running.actor, work, None, &causes);
            computed.push(done);
            self.fill(buffer, done, read);
            before = Cause::sent(sent, Evidence::Stream);
        }
        computed
    }

    /// All spills become one file. Returns the last step of that.
    fn merge_spills(&mut self, running: Running, spills: &[u64], mut last: StepId) -> StepId {
        if spills.len() < 2 {
            return last;
        }
        let (mut passes, rest) = merge_passes(spills, self.file.hadoop.sort_factor);
        passes.push(rest.iter().sum());
        for bytes in passes {
            last = self.merge_pass(running, "map.merge", bytes, last);
            self.watch_steps(running, &[], &[last], None);
        }
        last
    }

    /// Segments of so many bytes become one on the disk.
    pub(super) fn merge_pass(&mut self, running: Running, name: &'static str, bytes: u64, after: StepId) -> StepId {
        let compared = self.merge_work(running, bytes, &[Cause::sent(after, Evidence::Thread)]);
        let work = self.reads_and_writes(running.node, bytes, bytes);
        self.mark(name, running.actor, work, None, &[Cause::sent(compared, Evidence::Thread)])
    }

    /// A core compares so many bytes of segments.
    pub(super) fn merge_work(&mut self, running: Running, bytes: u64, causes: &[Cause]) -> StepId {
        let work = self.computes(running.node, bytes, running.behaviour.merge_rate, running.factor);
        self.mark("segments.compared", running.actor, work, None, causes)
    }

    /// A task says that it is done, and its container ends.
    pub(super) fn finish_task(&mut self, running: Running, causes: &[Cause]) {
        let Some(task) = running.actor.task else { return };
        let Some(master) = self.master_of(task) else { return };
        let done = self.call((running.actor, master), DONE, 0, None, causes);
        let actor = Actor { process: master, task: Some(task) };
        let known = Cause::delivered(done.request, Evidence::Span);
        let finish = self.mark("task.finish", actor, Work::Delay(0), Some(Continuation::TaskDone(task)), &[known]);
        let state = &mut self.tasks[task.index()];
        state.finish = Some(finish);
        if let Some(container) = state.container {
            let manager: ProcessId = node_manager(running.node);
            let cause = Cause::delivered(done.response, Evidence::Thread);
            let then = Some(Continuation::Exited(container));
            self.mark("container.exit", Actor::daemon(manager), Work::Delay(0), then, &[cause]);
        }
    }
}
