//! Loops that beat on their own account: which RPC methods they call, and their beats.

use std::collections::BTreeMap;
use std::io;

use trace::ids::{ConnectionId, MessageId, ProcessId, TimerId};
use trace::rows::{Evidence, TimerRow};

use super::draft::{Cause, Draft, Graph, number};
use super::index::{Call, Index, role};
use super::pieces::Pieces;
use crate::joined::Joined;
use crate::maps::{HashMap, HashSet};
use crate::spilled::{Sorted, Sorter};

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
    /// By message, 64 in one: whether it is half a beat.
    halves: Vec<u64>,
}

/// Memory that what is measured of beats takes at most, until it is sorted, bytes.
const MEASURED_BYTES: usize = 1 << 20;

/// The same of beats.
const BEATS_BYTES: usize = 1 << 20;

impl Timers {
    /// Finds the beats, gives each its cause where it is the pause after the beat before, and notes them in the graph.
    ///
    /// # Errors
    /// If a temporary file fails.
    pub fn find(joined: &Joined, index: &Index<'_>, pieces: &Pieces, graph: &mut Graph) -> io::Result<Self> {
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
        let mut timers = Self { halves: vec![0; joined.messages.len().div_ceil(64)], ..Self::default() };
        let (mut measured, mut beats) = (Sorter::within(MEASURED_BYTES), Sorter::within(BEATS_BYTES));
        for (call, timer) in all {
            let call = index.call_at(call);
            let Some(answer) = call.response else { continue };
            let of_timer = &mut loops[timer.index()];
            let figures = of_timer.add(joined, pieces, graph, timer, (call.request, answer));
            figures.into_iter().flatten().try_for_each(|figure| measured.push(figure))?;
            beats
                .push(((timer.0, of_timer.beats), (number(pieces.last(call.request)), number(pieces.last(answer)))))?;
            [call.request, answer].into_iter().for_each(|half| timers.add(half));
        }
        let medians = medians(&measured.sorted()?, &loops)?;
        let beats = beats.sorted()?;
        let mut in_order = beats.iter().peekable();
        for ((number, found), medians) in loops.into_iter().enumerate().zip(medians) {
            let timer = timer_id(number);
            if let Some(process) = found.process {
                timers.by_process.insert((process, found.name.clone()), timer);
            }
            timers.rows.push(found.row(timer, medians));
            let of_timer = std::iter::from_fn(|| in_order.next_if(|((beating, _), _)| *beating == timer.0));
            graph.add_beats(of_timer.map(|(_, (request, response))| [request, response].map(|half| half as Draft)));
        }
        drop(in_order);
        beats.check()?;
        Ok(timers)
    }

    fn add(&mut self, half: MessageId) {
        self.halves[half.index() / 64] |= 1 << (half.index() % 64);
    }

    /// The timer of a process that calls a method.
    pub fn of(&self, process: ProcessId, method: &str) -> Option<TimerId> {
        self.by_process.get(&(process, method.to_owned())).copied()
    }

    /// Whether a message is half a beat.
    pub fn has(&self, message: MessageId) -> bool {
        self.halves.get(message.index() / 64).is_some_and(|halves| halves >> (message.index() % 64) & 1 != 0)
    }

    /// The rows.
    pub fn into_rows(self) -> Vec<TimerRow> {
        self.rows
    }
}

fn timer_id(place: usize) -> TimerId {
    TimerId(number(place))
}

/// A timer whose beats are being found.
#[derive(Default)]
struct Loop {
    process: Option<ProcessId>,
    name: String,
    /// Of its last beat.
    connection: Option<ConnectionId>,
    response: Option<Draft>,
    /// How many there were.
    beats: u32,
    /// How many pauses were measured.
    pauses: usize,
}

/// What is measured of beats: pauses, times of service, bytes of requests and of responses.
const FIGURES: usize = 4;

/// The number of a timer and of what was measured of one of its beats, and that.
type Figure = (u32, u64);

/// By timer the median of each.
type Medians = [u64; FIGURES];

impl Loop {
    /// Adds the beat of a call and its answer. Returns what was measured of it.
    fn add(
        &mut self,
        joined: &Joined,
        pieces: &Pieces,
        graph: &mut Graph,
        timer: TimerId,
        (call, answer): (MessageId, MessageId),
    ) -> [Option<Figure>; FIGURES] {
        let halves = [pieces.last(call), pieces.last(answer)];
        halves.into_iter().for_each(|half| graph.set_beat(half, timer, self.beats));
        let pause = self.response.and_then(|last| {
            let first = pieces.first(call);
            let waits = graph.wait(first, Cause::delivered(last, Evidence::Timer));
            waits.then(|| graph.happened(first).saturating_sub(graph.arrived(last)))
        });
        let service = graph.happened(halves[1]).saturating_sub(graph.arrived(halves[0]));
        let (request, response) = (joined.message(call), joined.message(answer));
        (self.connection, self.response) = (Some(request.connection), Some(halves[1]));
        self.beats = self.beats.saturating_add(1);
        self.pauses += usize::from(pause.is_some());
        let figures = [pause, Some(service), Some(request.bytes), Some(response.bytes)];
        let mut kinds = timer.0 * FIGURES as u32..;
        figures.map(|figure| kinds.next().zip(figure))
    }

    fn row(&self, timer: TimerId, [pause_ns, service_ns, request_bytes, response_bytes]: Medians) -> TimerRow {
        TimerRow {
            timer,
            name: self.name.clone(),
            process: self.process,
            connection: self.connection.unwrap_or_default(),
            pause_ns,
            service_ns,
            request_bytes,
            response_bytes,
            beats: self.beats,
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

/// The medians of each loop; 0 where nothing was measured.
fn medians(measured: &Sorted<Figure>, loops: &[Loop]) -> io::Result<Vec<Medians>> {
    let mut medians = vec![Medians::default(); loops.len()];
    let mut in_order = measured.iter().peekable();
    while let Some(&(kind, _)) = in_order.peek() {
        let (timer, figure) = (kind as usize / FIGURES, kind as usize % FIGURES);
        let count = if figure == 0 { loops[timer].pauses } else { loops[timer].beats as usize };
        let mut of_kind = std::iter::from_fn(|| in_order.next_if(|(other, _)| *other == kind));
        medians[timer][figure] = of_kind.nth(count / 2).map_or(0, |(_, value)| value);
        of_kind.for_each(drop);
    }
    measured.check()?;
    Ok(medians)
}
