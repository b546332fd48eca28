//! What a thread had got before it did something.
//!
//! Each thread has a list of moments at which something reached it: a response, a piece of a block, the request that it
//! serves, work that another thread started it for or handed over to it. What it does next is because of the latest of
//! them; for work that was handed over that is what the other thread had got. A thread that started others and waited
//! for them acts because of the last thing that those got.

use trace::ids::{MessageId, ProcessId};
use trace::rows::{Evidence, MessageKind, On};

use super::draft::{Cause, Draft, Graph, number};
use super::index::{Index, role};
use super::pieces::Pieces;
use super::timers::Timers;
use crate::joined::{Joined, ThreadStart};
use crate::maps::{HashMap, HashSet};

/// A thread of a process.
pub type Thread = (ProcessId, u64);

/// Longest chain of "was handed over by" that is followed.
const GENERATIONS: u32 = 32;

/// Threads that are believed to have read one message, at most: there is one, but for records of a damaged file.
const MAX_READERS: usize = 16;

/// Something reached a thread.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// When, as the process itself saw it.
    pub at: u64,
    /// What it was.
    pub cause: Cause,
}

/// A [`Moment`] in half of the memory: its news never comes by a timer.
#[derive(Clone, Copy, Debug)]
struct Kept {
    at: u64,
    event: u32,
    on: On,
    evidence: Evidence,
}

impl From<Moment> for Kept {
    fn from(Moment { at, cause }: Moment) -> Self {
        Self { at, event: number(cause.event), on: cause.on, evidence: cause.evidence }
    }
}

impl From<&Kept> for Moment {
    fn from(kept: &Kept) -> Self {
        let cause = Cause { event: kept.event as usize, on: kept.on, by: None, evidence: kept.evidence };
        Self { at: kept.at, cause }
    }
}

/// What reached the threads, and the processes as a whole.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    moments: HashMap<Thread, Vec<Kept>>,
    /// Work that a thread was started for or that was handed over to it, by its place among all: ordered by the thread, and when.
    handed: Vec<u32>,
    /// The same, ordered by the thread that started another.
    started: Vec<u32>,
    /// Threads that do nothing but beat: nobody waits for them.
    beating: HashSet<Thread>,
    /// What a process got, but for beats of timers and openings of connections, in order.
    received: HashMap<ProcessId, Vec<Kept>>,
    /// Why a process exists.
    origins: HashMap<ProcessId, Cause>,
}

impl Threads {
    /// Collects the moments from spans, messages, and the JVMs' records of started threads. `consumed` are the marks of
    /// computing what was read, by piece.
    pub fn new(
        joined: &Joined,
        index: &Index<'_>,
        pieces: &Pieces,
        timers: &Timers,
        graph: &Graph,
        consumed: &HashMap<Draft, Draft>,
    ) -> Self {
        let mut threads = Self::default();
        threads.take_spans(joined, index, pieces, graph, consumed);
        threads.take_deliveries(joined, pieces, timers, graph);
        for moments in threads.moments.values_mut().chain(threads.received.values_mut()) {
            moments.sort_by_key(|moment| moment.at);
            moments.shrink_to_fit();
        }
        threads.beating = beating(joined, timers);
        let all: Vec<u32> = (0..).zip(&joined.threads).map(|(place, _)| place).collect();
        (threads.handed, threads.started) = (all.clone(), all);
        threads.handed.sort_by_cached_key(|place| {
            let start = start(joined, *place);
            (start.process, start.child, start.at_ns, start.by)
        });
        threads.started.sort_by_cached_key(|place| {
            let start = start(joined, *place);
            (start.process, start.by)
        });
        threads
    }

    fn take_spans(
        &mut self,
        joined: &Joined,
        index: &Index<'_>,
        pieces: &Pieces,
        graph: &Graph,
        consumed: &HashMap<Draft, Draft>,
    ) {
        let mut readers: HashMap<MessageId, usize> = HashMap::default();
        for span in &joined.spans {
            let thread = (span.process, span.thread);
            let mut add = |at: u64, cause: Cause| {
                self.moments.entry(thread).or_default().push(Moment { at, cause }.into());
            };
            match span.kind.as_str() {
                "rpc" | "block" | "shuffle" => {
                    if let Some(request) = span.request {
                        add(span.begin_ns, Cause::delivered(pieces.last(request), Evidence::Span));
                    }
                }
                "call" => {
                    if let Some(response) = span.response {
                        add(span.end_ns, Cause::delivered(pieces.last(response), Evidence::Thread));
                    }
                }
                "block-read" | "block-write" | "fetch" => {
                    let exchange = span.request.and_then(|request| index.exchange(&joined.messages[request.index()]));
                    let Some(exchange) = exchange else { continue };
                    let got = if span.kind == "block-write" { &exchange.acks } else { &exchange.data };
                    let mut few = |message: &MessageId| {
                        let readings = readers.entry(*message).or_default();
                        *readings += 1;
                        *readings <= MAX_READERS
                    };
                    for piece in got.iter().filter(|message| few(message)).flat_map(|message| pieces.all(*message)) {
                        let (at, cause) = match consumed.get(&piece) {
                            Some(mark) => (graph.happened(*mark), Cause::sent(*mark, Evidence::Thread)),
                            None => (graph.arrived(piece), Cause::delivered(piece, Evidence::Thread)),
                        };
                        if at <= span.end_ns {
                            add(at.max(span.begin_ns), cause);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn take_deliveries(&mut self, joined: &Joined, pieces: &Pieces, timers: &Timers, graph: &Graph) {
        for message in &joined.messages {
            let Some(process) = super::index::receiver(joined, message) else { continue };
            let says_nothing =
                matches!(message.kind, MessageKind::RpcConnect | MessageKind::RpcPing | MessageKind::Sasl);
            if says_nothing || timers.of_message(message.message).is_some() {
                continue;
            }
            let cause = Cause::delivered(pieces.last(message.message), Evidence::Heuristic);
            let at = graph.arrived(cause.event);
            self.received.entry(process).or_default().push(Moment { at, cause }.into());
        }
    }

    /// Notes why a process exists; what it does first waits for that.
    pub fn set_origin(&mut self, process: ProcessId, cause: Cause) {
        self.origins.insert(process, cause);
    }

    /// Why a process exists, if that is known.
    pub fn origin(&self, process: ProcessId) -> Option<Cause> {
        self.origins.get(&process).copied()
    }

    /// Notes that a thread knows of something from `at` on.
    pub fn reach(&mut self, thread: Thread, at: u64, cause: Cause) {
        let moments = self.moments.entry(thread).or_default();
        let place = moments.partition_point(|moment| moment.at <= at);
        moments.insert(place, Moment { at, cause }.into());
    }

    /// The latest thing that reached a thread, or those whose end it waited for, until `until`.
    pub fn latest(&self, joined: &Joined, thread: Thread, until: u64) -> Option<Moment> {
        self.follow(joined, thread, until, GENERATIONS)
    }

    /// The latest thing that reached a thread until `until` while it served `request`, which it began at `begin`: a thread
    /// that leaves the answer to others (as the NameNode does until its edit log is synced) takes the next request before.
    pub fn latest_serving(
        &self,
        joined: &Joined,
        thread: Thread,
        request: Draft,
        begin: u64,
        until: u64,
    ) -> Option<Moment> {
        let moments = self.moments.get(&thread)?;
        let served = &moments[moments.partition_point(|moment| moment.at < begin)..];
        let is_other = |moment: &&Kept| moment.evidence == Evidence::Span && moment.event != number(request);
        let next = served.iter().take_while(|moment| moment.at <= until).find(is_other);
        let until = next.map_or(Some(until), |next| next.at.checked_sub(1))?;
        self.latest(joined, thread, until)
    }

    fn follow(&self, joined: &Joined, thread: Thread, until: u64, generations: u32) -> Option<Moment> {
        let own = self.own(thread, until);
        let joins = waits_for_children(role(joined, Some(thread.0)))
            .then(|| self.ended_children(joined, thread, until))
            .flatten();
        let own = [own, joins].into_iter().flatten().max_by_key(|moment| moment.at);
        let handed = self.handed_over(joined, thread, until).filter(|(at, _)| own.is_none_or(|own| own.at < *at));
        handed
            .filter(|_| generations > 0)
            .and_then(|(at, by)| {
                let inherited = self.follow(joined, (thread.0, by), at, generations - 1)?;
                Some(Moment { at, cause: Cause { evidence: Evidence::ThreadStart, ..inherited.cause } })
            })
            .or(own)
    }

    fn handed_over(&self, joined: &Joined, thread: Thread, until: u64) -> Option<(u64, u64)> {
        let after = self.handed.partition_point(|place| {
            let start = start(joined, *place);
            (start.process, start.child, start.at_ns) <= (thread.0, thread.1, until)
        });
        let last = start(joined, self.handed[after.checked_sub(1)?]);
        ((last.process, last.child) == thread).then_some((last.at_ns, last.by))
    }

    fn own(&self, thread: Thread, until: u64) -> Option<Moment> {
        let moments = self.moments.get(&thread)?;
        let after = moments.partition_point(|moment| moment.at <= until);
        Some((&moments[after.checked_sub(1)?]).into())
    }

    /// The last thing that a thread's children got, of those that got nothing more after `until`.
    fn ended_children(&self, joined: &Joined, thread: Thread, until: u64) -> Option<Moment> {
        let first = self.started.partition_point(|place| {
            let start = start(joined, *place);
            (start.process, start.by) < thread
        });
        let from_there = self.started[first..].iter().map(|place| start(joined, *place));
        from_there
            .take_while(|start| (start.process, start.by) == thread)
            .filter(|start| start.at_ns <= until && !self.beating.contains(&(thread.0, start.child)))
            .filter_map(|start| self.moments.get(&(thread.0, start.child))?.last())
            .filter(|last| last.at <= until)
            .max_by_key(|last| last.at)
            .map(Moment::from)
            .map(|last| Moment { cause: Cause { evidence: Evidence::Thread, ..last.cause }, ..last })
    }

    /// The last thing but beats that a process had got until `until`.
    pub fn received(&self, process: ProcessId, until: u64) -> Option<Moment> {
        let moments = self.received.get(&process)?;
        let after = moments.partition_point(|moment| moment.at <= until);
        Some((&moments[after.checked_sub(1)?]).into())
    }

    /// All that a process had got between two times, beats left out; in order.
    pub fn received_between(
        &self,
        process: ProcessId,
        from: u64,
        until: u64,
    ) -> impl DoubleEndedIterator<Item = Moment> + '_ {
        let moments = self.received.get(&process).map(Vec::as_slice).unwrap_or_default();
        let first = moments.partition_point(|moment| moment.at < from);
        let last = moments.partition_point(|moment| moment.at <= until);
        moments[first.min(last)..last].iter().map(Moment::from)
    }
}

fn start(joined: &Joined, place: u32) -> &ThreadStart {
    &joined.threads[place as usize]
}

/// Threads all of whose calls are beats.
fn beating(joined: &Joined, timers: &Timers) -> HashSet<Thread> {
    let mut beating: HashMap<Thread, bool> = HashMap::default();
    for span in &joined.spans {
        let beats = span.request.is_some_and(|request| timers.of_message(request).is_some());
        *beating.entry((span.process, span.thread)).or_insert(true) &= beats;
    }
    beating.into_iter().filter(|(_, beats)| *beats).map(|(thread, _)| thread).collect()
}

/// Programs whose threads start others and wait for their end; daemons keep theirs in pools.
fn waits_for_children(role: &str) -> bool {
    matches!(role, "YarnChild" | "Child" | "Client" | "ContainerLocalizer")
}
