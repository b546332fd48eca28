//! A reduce: fetches map outputs, merges them, computes, writes its part of the output.

use std::collections::BTreeMap;

use trace::ids::{ConnectionId, TaskId};
use trace::rows::{Carrier, Evidence, MessageKind};

use super::pending_outputs::PendingOutputs;
use super::plan::Actor;
use super::running::Running;
use super::state::{Continuation, Fetcher, Model, Reduce, TimerOwner};
use crate::kernel::{Cause, StepId, Work};
use crate::merge::merge_passes;
use crate::sizes::{
    COMPLETION_EVENTS, EVENTS_PAUSE_PS, FETCH_REQUEST_BYTES, MAX_MAPS_AT_ONCE, OUTPUT_HEADER_BYTES, WINDOW,
};
use crate::world::{MessageNote, NodeId, Protocol, node_manager};

impl Model {
    pub(super) fn start_reduce(&mut self, task: TaskId, assignment: StepId) {
        let (Some(running), Some(master)) = (self.running(task), self.master_of(task)) else { return };
        self.watch(task, assignment);
        let assigned = Cause::delivered(assignment, Evidence::Thread);
        let (first, after_ps) = match self.starts(running.node, running.behaviour.task_start_ps) {
            Work::Delay(ps) => (assigned, ps),
            computes @ Work::Of(..) => {
                let started = self.mark("task.started", running.actor, computes, None, &[assigned]);
                (Cause::sent(started, Evidence::Thread), 0)
            }
        };
        let ends = (running.actor.process, master);
        let owner = TimerOwner::Reduce(task);
        let timer = self.start_timer(ends, COMPLETION_EVENTS, EVENTS_PAUSE_PS, owner, Some(first), after_ps);
        self.reduces[task.index()] = Some(Box::new(Reduce {
            assignment,
            timer,
            reported: 0,
            seen: 0,
            pending: PendingOutputs::default(),
            fetchers: vec![Fetcher::default(); self.file.hadoop.parallel_copies],
            connections: BTreeMap::new(),
            fetched: 0,
            in_memory: 0,
            on_disk: Vec::new(),
            written: None,
            input: 0,
        }));
        if self.apps[running.app as usize].maps == 0 {
            self.end_shuffle(task);
        }
    }

    /// The master answers which maps are done.
    pub(super) fn events_are_sent(&mut self, task: TaskId) {
        let completed = self.apps[self.app_of(task) as usize].completed.len();
        if let Some(reduce) = &mut self.reduces[task.index()] {
            reduce.reported = completed;
        }
    }

    /// The reduce knows of further maps.
    pub(super) fn events_are_there(&mut self, task: TaskId) {
        let app = &self.apps[self.app_of(task) as usize];
        let Some(reduce) = &mut self.reduces[task.index()] else { return };
        for (map, done) in &app.completed[reduce.seen..reduce.reported] {
            if let Some(node) = self.tasks[map.index()].node {
                reduce.pending.add(node, *map, *done);
            }
        }
        reduce.seen = reduce.reported;
        if reduce.seen == app.maps as usize {
            let timer = reduce.timer;
            self.kernel.stop_timer(timer);
        }
        self.fill_fetchers(task);
    }

    /// Gives idle fetchers nodes that nobody fetches from, drawn by lot.
    fn fill_fetchers(&mut self, task: TaskId) {
        loop {
            let Some(reduce) = &self.reduces[task.index()] else { return };
            let Some(fetcher) = reduce.fetchers.iter().position(|fetcher| fetcher.at.is_none()) else { return };
            let busy = reduce.fetchers.iter().filter_map(|fetcher| fetcher.at.as_ref().map(|(node, _)| *node));
            let free = reduce.pending.beside(busy);
            if free.count == 0 {
                return;
            }
            let number = self.draw_below(free.count as u64) as usize;
            let node = self.reduces[task.index()].as_ref().and_then(|reduce| reduce.pending.node(number, &free));
            let Some(node) = node else { return };
            self.fetch(task, fetcher, node);
        }
    }

    /// A fetcher asks a node for outputs, and the node sends one after the other.
    fn fetch(&mut self, task: TaskId, fetcher: usize, node: NodeId) {
        let Some(running) = self.running(task) else { return };
        let Some(reduce) = &mut self.reduces[task.index()] else { return };
        let taken = reduce.pending.take(node, MAX_MAPS_AT_ONCE);
        let (timer, assignment, last) = (reduce.timer, reduce.assignment, reduce.fetchers[fetcher].last);
        let known = reduce.connections.get(&node).copied();
        let server = Actor { process: node_manager(node), task: Some(task) };
        let connection =
            known.unwrap_or_else(|| self.world.connect(running.actor.process, server.process, Protocol::Shuffle));
        let mut causes =
            vec![last.map_or(Cause::delivered(assignment, Evidence::Thread), |last| {
                Cause::delivered(last, Evidence::Thread)
            })];
        let news = taken.iter().map(|(_, done)| *done).max_by_key(|done| self.kernel.step(*done).happened);
        causes.extend(news.map(|done| Cause::sent(done, Evidence::Protocol).by(timer, Carrier::Response)));
        let call = self.next_call();
        let note = MessageNote {
            call,
            task: Some(task),
            ..MessageNote::new(MessageKind::ShuffleRequest, "/mapOutput", FETCH_REQUEST_BYTES)
        };
        let request = self.message(note);
        let there = (connection, true);
        let asked = self.send(running.actor, there, request, FETCH_REQUEST_BYTES, Work::Delay(0), None, &causes);
        let maps: Vec<TaskId> = taken.iter().map(|(map, _)| *map).collect();
        self.send_outputs(
            task,
            (server, node),
            (connection, call),
            &maps,
            asked,
            Continuation::Fetched(task, fetcher as u32),
        );
        if let Some(reduce) = &mut self.reduces[task.index()] {
            reduce.connections.insert(node, connection);
            reduce.fetchers[fetcher].at = Some((node, maps));
        }
    }

    fn send_outputs(
        &mut self,
        task: TaskId,
        (server, node): (Actor, NodeId),
        (connection, call): (ConnectionId, u32),
        maps: &[TaskId],
        asked: StepId,
        then: Continuation,
    ) {
        let mut before = Cause::delivered(asked, Evidence::Exchange);
        let service_ps = self.fetch_service_ps(self.app_of(task), node);
        if service_ps > 0 {
            let found = self.mark("fetch.found", server, Work::Delay(service_ps), None, &[before]);
            before = Cause::sent(found, Evidence::Span);
        }
        let mut sent: Vec<StepId> = Vec::new();
        for (number, map) in maps.iter().enumerate() {
            let bytes = self.partition_bytes(*map, task);
            let note = MessageNote {
                app_bytes: bytes,
                call,
                task: Some(task),
                map: Some(*map),
                reduce: Some(self.tasks[task.index()].number),
                ..MessageNote::new(MessageKind::ShuffleResponse, "/mapOutput", bytes + OUTPUT_HEADER_BYTES)
            };
            let message = self.message(note);
            let pieces: Vec<u64> = self.pieces(bytes).collect();
            for (piece, bytes) in pieces.iter().enumerate() {
                let mut causes = vec![before];
                let ahead = sent.len().checked_sub(WINDOW).map(|first| sent[first]);
                causes.extend(ahead.map(|step| Cause::delivered(step, Evidence::Stream)));
                let header = if piece == 0 { OUTPUT_HEADER_BYTES } else { 0 };
                let is_last = number + 1 == maps.len() && piece + 1 == pieces.len();
                let (work, hook) = (self.reads(node, *bytes), is_last.then_some(then));
                let step = self.send(server, (connection, false), message, bytes + header, work, hook, &causes);
                sent.push(step);
                before = Cause::sent(step, Evidence::Stream);
            }
        }
    }

    /// Bytes of a map's output that are a reduce's: shares differ by their skew, and are cut so that all of them together are
    /// the output.
    pub(crate) fn partition_bytes(&self, map: TaskId, reduce: TaskId) -> u64 {
        let app = self.app_of(reduce);
        let output = self.map_output_bytes(app, self.tasks[map.index()].number);
        let number = self.tasks[reduce.index()].number;
        let until = |shares: f64| (output as f64 * shares) as u64;
        let (before, with) = self.shares(app, number);
        until(with) - until(before)
    }

    /// The shares of the reduces before one, and with it.
    fn shares(&self, app: u32, number: u32) -> (f64, f64) {
        let ends = &self.apps[app as usize].share_ends;
        (number.checked_sub(1).map_or(0.0, |before| ends[before as usize]), ends[number as usize])
    }

    /// A fetch is complete: its outputs lie in memory, or on the disk where they are too large or too many.
    pub(super) fn fetched(&mut self, task: TaskId, fetcher: u32, last: StepId) {
        let Some(running) = self.running(task) else { return };
        let Some(reduce) = &mut self.reduces[task.index()] else { return };
        let fetcher = &mut reduce.fetchers[fetcher as usize];
        fetcher.last = Some(last);
        let maps = fetcher.at.take().map(|(_, maps)| maps).unwrap_or_default();
        reduce.fetched += maps.len();
        let buffer = self.file.hadoop.shuffle_bytes() as f64;
        let sizes: Vec<u64> = maps.iter().map(|map| self.partition_bytes(*map, task)).collect();
        for bytes in sizes {
            let Some(reduce) = &mut self.reduces[task.index()] else { return };
            reduce.input += bytes;
            if bytes as f64 > buffer * self.file.hadoop.memory_limit {
                self.write_segment(running, task, bytes, Cause::delivered(last, Evidence::Thread));
                continue;
            }
            reduce.in_memory += bytes;
            if reduce.in_memory as f64 >= buffer * self.file.hadoop.merge_percent {
                self.flush_memory(running, task, last);
            }
        }
        let maps = self.apps[running.app as usize].maps as usize;
        if self.reduces[task.index()].as_ref().is_some_and(|reduce| reduce.fetched == maps) {
            self.end_shuffle(task);
        } else {
            self.fill_fetchers(task);
        }
    }

    /// All that lies in memory is merged into a segment on the disk, behind the segment before.
    fn flush_memory(&mut self, running: Running, task: TaskId, after: StepId) {
        let Some(reduce) = &mut self.reduces[task.index()] else { return };
        let (bytes, written) = (std::mem::take(&mut reduce.in_memory), reduce.written);
        if bytes > 0 {
            let mut causes = vec![Cause::delivered(after, Evidence::Thread)];
            causes.extend(written.map(|written| Cause::sent(written, Evidence::Thread)));
            let compared = self.merge_work(running, bytes, &causes);
            self.write_segment(running, task, bytes, Cause::sent(compared, Evidence::Thread));
        }
    }

    fn write_segment(&mut self, running: Running, task: TaskId, bytes: u64, after: Cause) {
        let before = self.reduces[task.index()].as_ref().and_then(|reduce| reduce.written);
        let mut causes = vec![after];
        causes.extend(before.map(|before| Cause::sent(before, Evidence::Thread)));
        let work = self.writes(running.node, bytes);
        let written = self.mark("reduce.spill", running.actor, work, None, &causes);
        if let Some(reduce) = &mut self.reduces[task.index()] {
            reduce.on_disk.push(bytes);
            reduce.written = Some(written);
        }
    }

    fn end_shuffle(&mut self, task: TaskId) {
        let Some(running) = self.running(task) else { return };
        let Some(reduce) = &self.reduces[task.index()] else { return };
        let lasts = reduce.fetchers.iter().filter_map(|fetcher| fetcher.last);
        let mut causes: Vec<Cause> = lasts.map(|last| Cause::delivered(last, Evidence::Thread)).collect();
        if causes.is_empty() {
            causes.push(Cause::delivered(reduce.assignment, Evidence::Thread));
        }
        let then = Some(Continuation::ShuffleEnd(task));
        let end = self.mark("task.shuffle_end", running.actor, Work::Delay(0), then, &causes);
        self.tasks[task.index()].shuffle_end = Some(end);
    }

    /// The rest of a reduce: what is in memory goes to the disk, segments are merged until so few are left that they can be
    /// read at once, and then the reduce reads, computes and writes. The last pass is part of its reading (`MergeManagerImpl.finalMerge`).
    pub(super) fn reduce_input(&mut self, task: TaskId, end: StepId) {
        let Some(running) = self.running(task) else { return };
        self.flush_memory(running, task, end);
        let Some(reduce) = self.reduces[task.index()].take() else { return };
        let (passes, _) = merge_passes(&reduce.on_disk, self.file.hadoop.sort_factor);
        let mut last = reduce.written.unwrap_or(end);
        for bytes in passes {
            last = self.merge_pass(running, "reduce.merge", bytes, last);
        }
        let mut causes = vec![Cause::sent(end, Evidence::Thread)];
        causes.extend((last != end).then_some(Cause::sent(last, Evidence::Thread)));
        let sorted = self.mark("task.sort_end", running.actor, Work::Delay(0), None, &causes);
        self.tasks[task.index()].sort_end = Some(sorted);
        let opened = self.after_fixed_work(running, "output.opened", self.file.cluster.output_start.ps(), sorted);
        let computed = self.reduce_pieces(running, reduce.input, opened);
        self.watch_steps(running, &computed, &[], Some(sorted));
        let bytes = self.reduce_output_bytes(running, reduce.input);
        let ends = self.write_output(running, bytes, &computed);
        self.commit_output(running, &ends);
    }

    /// What a reduce makes of so many bytes of input, as the maps left them.
    fn reduce_output_bytes(&self, running: Running, input: u64) -> u64 {
        (input as f64 * self.uncompressed(running) * running.behaviour.output).round() as u64
    }

    /// Bytes that the maps wrote, by their bytes after compression.
    fn uncompressed(&self, running: Running) -> f64 {
        let job = &self.file.jobs[running.app as usize];
        if self.file.hadoop.compress && job.compressed > 0.0 { 1.0 / job.compressed } else { 1.0 }
    }

    /// A task whose output is written has it committed, and is done.
    pub(super) fn commit_output(&mut self, running: Running, ends: &[Cause]) {
        let commit_ps = self.file.cluster.output_commit.ps();
        if commit_ps == 0 {
            self.finish_task(running, ends);
        } else {
            let committed =
                self.mark("output.committed", running.actor, self.starts(running.node, commit_ps), None, ends);
            self.finish_task(running, &[Cause::sent(committed, Evidence::Thread)]);
        }
    }

    /// Work that is the same for all tasks, if there is any.
    fn after_fixed_work(&mut self, running: Running, name: &'static str, ps: u64, after: StepId) -> StepId {
        if ps == 0 {
            return after;
        }
        self.mark(name, running.actor, self.starts(running.node, ps), None, &[Cause::sent(after, Evidence::Thread)])
    }

    /// The merged input is read from the disk and computed on, piece by piece, the disk some pieces ahead.
    fn reduce_pieces(&mut self, running: Running, input: u64, sorted: StepId) -> Vec<StepId> {
        // A reduce computes on what the maps wrote before its compression.
        let (rate, factor) = (running.behaviour.rate, running.factor * self.uncompressed(running));
        let mut read = sorted;
        let mut computed: Vec<StepId> = Vec::new();
        for piece in self.pieces(input) {
            let mut causes = vec![Cause::sent(read, Evidence::Thread)];
            let ahead = computed.len().checked_sub(WINDOW).map(|first| computed[first]);
            causes.extend(ahead.map(|step| Cause::sent(step, Evidence::Thread)));
            let work = self.reads(running.node, piece);
            read = self.mark("reduce.read", running.actor, work, None, &causes);
            let mut causes = vec![Cause::sent(read, Evidence::Thread)];
            causes.extend(computed.last().map(|step| Cause::sent(*step, Evidence::Thread)));
            let work = self.computes(running.node, piece, rate, factor);
            computed.push(self.mark("reduce.piece", running.actor, work, None, &causes));
        }
        computed
    }
}
