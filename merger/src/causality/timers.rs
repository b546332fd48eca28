//! Loops that beat on their own account: which RPC methods they call, and their beats.

use std::collections::BTreeMap;

use trace::ids::{ConnectionId, MessageId, ProcessId, TimerId};
use trace::rows::{Evidence, TimerRow};

use super::draft::{Beat, Cause, Graph};
use super::index::{Call, Index, role};
use super::pieces::Pieces;
use crate::joined::Joined;
use crate::maps::{HashMap, HashSet};

/// Methods that are called by loops with a pause, and by nothing else.
///
/// From the sources of Hadoop 3.4: `NodeStatusUpdaterImpl`, `RMCommunicator`, `BPServiceActor`, `EventFetcher`,
/// `JobClient` and `Job.monitorAndPrintJob`, `LeaseRenewer`, `SecondaryNameNode`.
const LOOPS: &[&str] = &[
    "nodeHeartbeat",
    "allocate",
    "sendHeartbeat",
    "sendLifeline",
    "blockReport",
    "cacheReport",
    "getMapCompletionEvents",
    "ping",
    "renewLease",
    "getJobReport",
    "getJobStatus",
    "getTaskReports",
    "getTaskAttemptCompletionEvents",
    "getTaskCompletionEvents",
    "getApplicationReport",
    "getTransactionID",
    "getTransactionId",
];

/// The timers of a trace.
#[derive(Clone, Debug, Default)]
pub struct Timers {
    rows: Vec<TimerRow>,
    by_process: HashMap<(ProcessId, String), TimerId>,
    members: HashMap<MessageId, TimerId>,
}

impl Timers {
    /// Finds the beats, gives each its cause where it is the pause after the beat before, and notes them in the graph.
    pub fn find(joined: &Joined, index: &Index<'_>, pieces: &Pieces, graph: &mut Graph) -> Self {
        let workers = working_threads(joined);
        // By the numbers of calls.
        let mut groups: BTreeMap<Group<'_>, Vec<u32>> = BTreeMap::new();
        for (number, call) in (0..).zip(index.calls()) {
            let message = &joined.message(call.request);
            if call.response.is_none() || !beats(joined, index, &workers, &call) {
                continue;
            }
            let connection = call.client.is_none().then_some(message.connection);
            groups.entry((call.client, connection, message.name)).or_default().push(number);
        }
        let (mut loops, mut all) = (Vec::with_capacity(groups.len()), Vec::new());
        for ((process, _, name), calls) in groups {
            all.extend(calls.into_iter().map(|call| (call, timer_id(loops.len()))));
            loops.push(Loop { process, name: name.to_owned(), ..Loop::default() });
        }
        // In the order of time, in which their events lie.
        all.sort_unstable_by_key(|(call, _)| *call);
        let mut timers = Self::default();
        for (call, timer) in all {
            let call = index.call_at(call);
            let Some(answer) = call.response else { continue };
            loops[timer.index()].add(joined, pieces, graph, timer, (call.request, answer));
            timers.members.extend([(call.request, timer), (answer, timer)]);
        }
        for (number, found) in loops.into_iter().enumerate() {
            let timer = timer_id(number);
            if let Some(process) = found.process {
                timers.by_process.insert((process, found.name.clone()), timer);
            }
            timers.rows.push(found.row(timer));
            graph.add_beats(found.beats);
        }
        timers
    }

    /// The timer of a process that calls a method.
    pub fn of(&self, process: ProcessId, method: &str) -> Option<TimerId> {
        self.by_process.get(&(process, method.to_owned())).copied()
    }

    /// The timer of which a message is half a beat.
    pub fn of_message(&self, message: MessageId) -> Option<TimerId> {
        self.members.get(&message).copied()
    }

    /// The rows.
    pub fn into_rows(self) -> Vec<TimerRow> {
        self.rows
    }
}

fn timer_id(number: usize) -> TimerId {
    TimerId(super::draft::number(number))
}

/// A timer whose beats are being found.
#[derive(Default)]
struct Loop {
    process: Option<ProcessId>,
    name: String,
    /// Of its last beat.
    connection: Option<ConnectionId>,
    beats: Vec<Beat>,
    pauses: Vec<u64>,
    services: Vec<u64>,
    requests: Vec<u64>,
    responses: Vec<u64>,
}

impl Loop {
    /// Adds the beat of a call and its answer.
    fn add(
        &mut self,
        joined: &Joined,
        pieces: &Pieces,
        graph: &mut Graph,
        timer: TimerId,
        (call, answer): (MessageId, MessageId),
    ) {
        let beat = Beat { request: pieces.last(call), response: pieces.last(answer) };
        let number = u32::try_from(self.beats.len()).unwrap_or(u32::MAX);
        for half in [beat.request, beat.response] {
            graph.set_beat(half, timer, number);
        }
        if let Some(last) = self.beats.last() {
            let first = pieces.first(call);
            if graph.wait(first, Cause::delivered(last.response, Evidence::Timer)) {
                self.pauses.push(graph.happened(first).saturating_sub(graph.arrived(last.response)));
            }
        }
        self.services.push(graph.happened(beat.response).saturating_sub(graph.arrived(beat.request)));
        self.requests.push(joined.message(call).bytes);
        self.responses.push(joined.message(answer).bytes);
        self.connection = Some(joined.message(call).connection);
        self.beats.push(beat);
    }

    fn row(&self, timer: TimerId) -> TimerRow {
        TimerRow {
            timer,
            name: self.name.clone(),
            process: self.process,
            connection: self.connection.unwrap_or_default(),
            pause_ns: median(&self.pauses),
            service_ns: median(&self.services),
            request_bytes: median(&self.requests),
            response_bytes: median(&self.responses),
            beats: u32::try_from(self.beats.len()).unwrap_or(u32::MAX),
        }
    }
}

/// Whose calls a timer is made of: the process, or where it is unknown the connection, and the method.
type Group<'w> = (Option<ProcessId>, Option<ConnectionId>, &'w str);

fn beats(joined: &Joined, index: &Index<'_>, workers: &HashSet<(ProcessId, u64)>, call: &Call) -> bool {
    let name = joined.message(call.request).name;
    match name {
        // Both the task's own thread (at the end of each phase) and the thread that reports progress call it.
        "statusUpdate" => {
            index.made_in(joined, call.request).is_none_or(|made| !workers.contains(&(made.process, made.thread)))
        }
        // Hadoop 1's TaskTracker; the localizer of YARN has a method of that name that is no loop.
        "heartbeat" => role(joined, call.client) == "TaskTracker",
        name => LOOPS.contains(&name),
    }
}

/// Threads that do something else than beat.
fn working_threads(joined: &Joined) -> HashSet<(ProcessId, u64)> {
    joined
        .spans
        .iter()
        .filter(|span| match span.kind {
            "call" => span.name != "statusUpdate" && !LOOPS.contains(&span.name),
            "block-read" | "block-write" | "fetch" => true,
            _ => false,
        })
        .map(|span| (span.process, span.thread))
        .collect()
}

fn median(values: &[u64]) -> u64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
