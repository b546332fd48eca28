//! Programs that submit jobs: when they are told that a job is finished, and which of them followed which.

use std::collections::BTreeSet;

use trace::ids::{HostId, ProcessId, TimerId};
use trace::rows::{Carrier, Evidence};

use super::beats::Beat;
use super::draft::{Cause, Draft, Graph};
use super::index::role;
use super::rules::CauseInference;
use crate::joined::Joined;
use crate::maps::HashMap;

/// The last polls of clients, and what waits for their answers.
pub(super) struct LastPolls {
    /// Each client's loop, by its begin: when its first request was sent, when its last response was, that response, the loop.
    loops: Vec<(u64, u64, Draft, TimerId)>,
    /// When the last of the loops until each ended.
    latest: Vec<u64>,
    /// Events but beats that wait for such a response, in order.
    waiting: HashMap<Draft, Vec<Draft>>,
}

/// The loops of clients: first and last beat.
fn loops<'g>(joined: &'g Joined, graph: &'g Graph) -> impl Iterator<Item = (TimerId, Beat, Beat)> + 'g {
    let ends = graph.beats.timers().map(|beats| Some((beats.first()?, beats.last()?)));
    let all = (0..).zip(ends).filter_map(|(number, ends)| ends.map(|(first, last)| (TimerId(number), first, last)));
    all.filter(move |(_, _, last)| role(joined, graph.process(last.request)) == "Client")
}

impl LastPolls {
    /// Lets the graph note what waits for them, before anything does.
    pub fn watch(joined: &Joined, graph: &mut Graph) {
        let responses: Vec<Draft> = loops(joined, graph).map(|(_, _, last)| last.response).collect();
        responses.into_iter().for_each(|response| graph.watch(response));
    }

    /// Finds them, when all causes but those of jobs' ends are known.
    pub fn find(inference: &CauseInference<'_>) -> Self {
        let graph = &*inference.graph;
        let all = loops(inference.joined, graph).map(|(timer, first, last)| {
            (graph.happened(first.request), graph.happened(last.response), last.response, timer)
        });
        let mut loops: Vec<(u64, u64, Draft, TimerId)> = all.collect();
        let waiting = loops.iter().map(|(_, _, response, _)| {
            let events = graph.waiting(*response).into_iter().filter(|event| !graph.is_beat(*event));
            (*response, events.collect())
        });
        let waiting = waiting.collect();
        loops.sort_by_key(|(begin, ..)| *begin);
        let latest = loops.iter().scan(0, |latest, (_, end, ..)| {
            *latest = (*end).max(*latest);
            Some(*latest)
        });
        Self { latest: latest.collect(), loops, waiting }
    }

    /// What a client did after its last poll, it did because the job was finished: that is news which the poll brought.
    pub fn tell(&self, inference: &mut CauseInference<'_>, finish: Draft) {
        let at = inference.graph.happened(finish);
        let begun = self.loops.partition_point(|(begin, ..)| *begin < at);
        let open = (0..begun).rev().take_while(|place| self.latest[*place] >= at);
        let polling = open.map(|place| &self.loops[place]).filter(|(_, end, ..)| *end >= at);
        // One or two of a job: looking at each is quicker than a map.
        let polls: Vec<(Draft, TimerId)> = polling.map(|(_, _, response, timer)| (*response, *timer)).collect();
        let events: BTreeSet<Draft> =
            polls.iter().filter_map(|(response, _)| self.waiting.get(response)).flatten().copied().collect();
        for event in events {
            let poll = |cause: Cause| polls.iter().rfind(|(response, _)| *response == cause.event).copied();
            let poll = inference.graph.causes(event).find_map(poll);
            let Some((response, timer)) = poll else { continue };
            let news = Cause::sent(finish, Evidence::Protocol).carried(timer, Carrier::Response);
            if inference.graph.yielded(news) == Some(inference.graph.arrived(response)) {
                inference.graph.forget_cause(event, response);
                inference.graph.wait(event, news);
            }
        }
    }
}

/// A client program that was started when another on its host had ended is taken to have waited for that.
pub(super) fn follow(inference: &mut CauseInference<'_>) {
    let clients = || inference.joined.processes.iter().filter(|process| process.role == "Client");
    let mut ends: HashMap<HostId, Vec<(u64, ProcessId)>> = HashMap::default();
    for process in clients() {
        ends.entry(process.host).or_default().push((process.last_seen_ns, process.process));
    }
    ends.values_mut().for_each(|ends| ends.sort_by_key(|(end, _)| *end));
    let mut origins = Vec::new();
    for process in clients() {
        let before = ends.get(&process.host).and_then(|ends| {
            let after = ends.partition_point(|(end, _)| *end <= process.first_seen_ns);
            Some(ends[after.checked_sub(1)?])
        });
        let last = before.and_then(|(end, before)| inference.threads.received(before, end));
        origins.extend(last.map(|last| (process.process, Cause { evidence: Evidence::Heuristic, ..last.cause })));
    }
    for (process, cause) in origins {
        inference.threads.set_origin(process, cause);
    }
}
