//! Loops that beat on their own account: which RPC methods they call, and their beats.

use std::collections::BTreeMap;

use trace::ids::{ConnectionId, MessageId, ProcessId, TimerId};
use trace::rows::{Evidence, TimerRow};

use super::draft::{Beat, Cause, Graph};
use super::index::{Call, Index, role};
use super::pieces::Pieces;
use crate::joined::Joined;
use crate::maps::{HashMap, HashSet};
use crate::words::Word;

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
        let mut groups: BTreeMap<Group, Vec<Call>> = BTreeMap::new();
        for call in &index.calls {
            let message = &joined.messages[call.request.index()];
            if call.response.is_none() || !beats(joined, index, &workers, call) {
                continue;
            }
            let connection = call.client.is_none().then_some(message.connection);
            groups.entry((call.client, connection, message.name.clone())).or_default().push(*call);
        }
        let mut timers = Self::default();
        for ((process, _, name), calls) in groups {
            timers.add(joined, pieces, graph, process, name.as_str().to_owned(), &calls);
        }
        timers
    }

    fn add(
        &mut self,
        joined: &Joined,
        pieces: &Pieces,
        graph: &mut Graph,
        process: Option<ProcessId>,
        name: String,
        calls: &[Call],
    ) {
        let timer = TimerId(u32::try_from(self.rows.len()).unwrap_or(u32::MAX));
        let mut beats = Vec::with_capacity(calls.len());
        let (mut pauses, mut services, mut requests, mut responses) = (vec![], vec![], vec![], vec![]);
        let mut last: Option<Beat> = None;
        for call in calls {
            let Some(answer) = call.response else { continue };
            let beat = Beat { request: pieces.last(call.request), response: pieces.last(answer) };
            let number = u32::try_from(beats.len()).unwrap_or(u32::MAX);
            for half in [beat.request, beat.response] {
                graph.set_beat(half, timer, number);
            }
            if let Some(last) = last {
                let first = pieces.first(call.request);
                if graph.wait(first, Cause::delivered(last.response, Evidence::Timer)) {
                    pauses.push(graph.happened(first).saturating_sub(graph.arrived(last.response)));
                }
            }
            services.push(graph.happened(beat.response).saturating_sub(graph.arrived(beat.request)));
            requests.push(joined.messages[call.request.index()].bytes);
            responses.push(joined.messages[answer.index()].bytes);
            self.members.insert(call.request, timer);
            self.members.insert(answer, timer);
            beats.push(beat);
            last = Some(beat);
        }
        let Some(call) = calls.last() else { return };
        if let Some(process) = process {
            self.by_process.insert((process, name.clone()), timer);
        }
        self.rows.push(TimerRow {
            timer,
            name,
            process,
            connection: joined.messages[call.request.index()].connection,
            pause_ns: median(pauses),
            service_ns: median(services),
            request_bytes: median(requests),
            response_bytes: median(responses),
            beats: u32::try_from(beats.len()).unwrap_or(u32::MAX),
        });
        graph.beats.push(beats);
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

/// Whose calls a timer is made of: the process, or where it is unknown the connection, and the method.
type Group = (Option<ProcessId>, Option<ConnectionId>, Word);

fn beats(joined: &Joined, index: &Index<'_>, workers: &HashSet<(ProcessId, u64)>, call: &Call) -> bool {
    let name = joined.messages[call.request.index()].name.as_str();
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
        .filter(|span| match span.kind.as_str() {
            "call" => span.name != "statusUpdate" && !LOOPS.contains(&span.name.as_str()),
            "block-read" | "block-write" | "fetch" => true,
            _ => false,
        })
        .map(|span| (span.process, span.thread))
        .collect()
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
