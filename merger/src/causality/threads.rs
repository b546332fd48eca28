//! What a thread had got before it did something.
//!
//! Each thread has a list of moments at which something reached it: a response, a piece of a block, the request that it
//! serves, work that another thread started it for or handed over to it. What it does next is because of the latest of
//! them; for work that was handed over that is what the other thread had got. A thread that started others and waited
//! for them acts because of the last thing that those got.

use std::cell::RefCell;
use std::io;

use trace::ids::{MessageId, ProcessId};
use trace::rows::{Evidence, MessageKind};

use super::consumed::Consumed;
use super::draft::{Cause, Draft, Graph, number};
use super::index::{Index, role};
pub use super::moments::{Moment, Thread};
use super::moments::{Moments, Unsorted};
use super::pieces::Pieces;
use super::timers::Timers;
use crate::joined::Joined;
use crate::maps::{HashMap, HashSet};
use crate::spilled::{Record, RecordList, RecordLog, Sorter};

/// Longest chain of "was handed over by" that is followed.
const GENERATIONS: u32 = 32;

/// Threads that are believed to have read one message, at most: there is one, but for records of a damaged file.
const MAX_READERS: usize = 16;

/// What reached the threads, and the processes as a whole.
#[derive(Debug, Default)]
pub struct Threads {
    moments: Moments,
    /// Work that a thread was started for or that was handed over to it.
    handed: RecordList<Handed>,
    /// The same, ordered by the thread that started another.
    started: RecordList<Started>,
    /// Of some threads: when those that they started got the last thing, ordered by that, and their places in `started`.
    ended: RefCell<HashMap<Thread, Vec<(u64, u32)>>>,
    /// Threads that do nothing but beat: nobody waits for them.
    beating: HashSet<Thread>,
    /// What a process got, but for beats of timers and openings of connections; its thread is [`WHOLE`].
    received: Moments,
    /// Why a process exists.
    origins: HashMap<ProcessId, Cause>,
}

/// A process, its thread, when work was handed over to it, and the thread that did so.
type Handed = (u32, (u64, (u64, u64)));

/// A process, its thread, when that started another, the place of that among all that was told, and the other one.
type Started = (u32, (u64, (u64, (u64, u64))));

/// Stands for all threads of a process.
const WHOLE: u64 = 0;

/// Memory that each list of threads takes at most, and sorting it, bytes.
const MAX_BYTES: usize = 1 << 20;

/// Threads of which those that they started are held in order.
const MAX_ENDED: usize = 256;

impl Threads {
    /// Collects the moments from spans, messages, and the JVMs' records of started threads. `consumed` are the marks of
    /// computing what was read, by piece.
    ///
    /// # Errors
    /// If a temporary file fails.
    pub fn new(
        joined: &Joined,
        index: &Index<'_>,
        pieces: &Pieces,
        timers: &Timers,
        graph: &Graph,
        consumed: &Consumed,
    ) -> io::Result<Self> {
        let deliveries = &pieces.deliveries;
        let others = || -> io::Result<_> {
            Ok((of_deliveries(joined, deliveries, timers)?, beating(joined, timers), starts(joined)?))
        };
        // The graph is looked at by this thread alone.
        let mut beside = Err(io::ErrorKind::Other.into());
        let moments = rayon::in_place_scope(|scope| {
            scope.spawn(|_| beside = others());
            Moments::of(of_spans(joined, index, pieces, graph, consumed)?)
        })?;
        let (received, beating, (handed, started)) = beside?;
        Ok(Self { moments, received, beating, handed, started, ..Self::default() })
    }

    /// Whether all could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn check(&self) -> io::Result<()> {
        self.moments.check().and(self.received.check()).and(self.handed.check()).and(self.started.check())
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
        self.moments.insert(thread, Moment { at, cause });
        // What its process's threads got last may be something else now.
        self.ended.get_mut().retain(|(process, _), _| *process != thread.0);
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
        self.moments.last(thread)?;
        let is_other = |moment: &Moment| moment.cause.evidence == Evidence::Span && moment.cause.event != request;
        let next = self.moments.between(thread, begin, until).find(is_other);
        let until = next.map_or(Some(until), |next| next.at.checked_sub(1))?;
        self.latest(joined, thread, until)
    }

    fn follow(&self, joined: &Joined, thread: Thread, until: u64, generations: u32) -> Option<Moment> {
        let own = self.moments.last_until(thread, until);
        let joins =
            waits_for_children(role(joined, Some(thread.0))).then(|| self.ended_children(thread, until)).flatten();
        let own = [own, joins].into_iter().flatten().max_by_key(|moment| moment.at);
        let handed = self.handed_over(thread, until).filter(|(at, _)| own.is_none_or(|own| own.at < *at));
        handed
            .filter(|_| generations > 0)
            .and_then(|(at, by)| {
                let inherited = self.follow(joined, (thread.0, by), at, generations - 1)?;
                Some(Moment { at, cause: Cause { evidence: Evidence::ThreadStart, ..inherited.cause } })
            })
            .or(own)
    }

    /// When work was last handed over to a thread until a time, and by which one.
    fn handed_over(&self, (process, thread): Thread, until: u64) -> Option<(u64, u64)> {
        let last = (process.0, (thread, (until, u64::MAX)));
        let behind = self.handed.partition_point(|start| *start <= last);
        let (of, (child, (at_ns, by))) = self.handed.get(behind.checked_sub(1)?);
        ((of, child) == (process.0, thread)).then_some((at_ns, by))
    }

    /// The last thing that a thread's children got, of those that got nothing more after `until`.
    fn ended_children(&self, thread: Thread, until: u64) -> Option<Moment> {
        let mut known = self.ended.borrow_mut();
        if known.len() >= MAX_ENDED && !known.contains_key(&thread) {
            known.clear();
        }
        let ended = known.entry(thread).or_insert_with(|| self.ends_of_children(thread));
        let by_then = ended.partition_point(|(last, _)| *last <= until);
        let latest = ended[..by_then].iter().rev().find_map(|(_, place)| {
            let (_, (_, (at_ns, (_, child)))) = self.started.get(*place as usize);
            (at_ns <= until).then_some(child)
        });
        let last = self.moments.last((thread.0, latest?))?;
        Some(Moment { cause: Cause { evidence: Evidence::Thread, ..last.cause }, ..last })
    }

    /// When the threads that a thread started, and that do not only beat, got the last thing, and by which starts; ordered by both.
    fn ends_of_children(&self, (process, thread): Thread) -> Vec<(u64, u32)> {
        let first = self.started.partition_point(|(of, (by, _))| (*of, *by) < (process.0, thread));
        let by_thread = (first..self.started.len()).map_while(|place| {
            let (of, (by, (_, (_, child)))) = self.started.get(place);
            ((of, by) == (process.0, thread)).then_some((place, (process, child)))
        });
        let ends = by_thread.filter_map(|(place, child)| {
            let last = self.moments.last(child).filter(|_| !self.beating.contains(&child))?;
            Some((last.at, number(place)))
        });
        let mut ends: Vec<(u64, u32)> = ends.collect();
        ends.sort_unstable();
        ends
    }

    /// The last thing but beats that a process had got until `until`.
    pub fn received(&self, process: ProcessId, until: u64) -> Option<Moment> {
        self.received.last_until((process, WHOLE), until)
    }

    /// All that a process had got between two times, beats left out; in order.
    pub fn received_between(
        &self,
        process: ProcessId,
        from: u64,
        until: u64,
    ) -> impl DoubleEndedIterator<Item = Moment> + '_ {
        self.received.between((process, WHOLE), from, until)
    }
}

/// What reached threads by what they did.
fn of_spans(
    joined: &Joined,
    index: &Index<'_>,
    pieces: &Pieces,
    graph: &Graph,
    consumed: &Consumed,
) -> io::Result<Unsorted> {
    let mut moments = Unsorted::default();
    let mut readers: HashMap<MessageId, usize> = HashMap::default();
    for span in joined.spans.iter() {
        let mut add = |at: u64, cause: Cause| moments.add((span.process, span.thread), Moment { at, cause });
        match span.kind {
            "rpc" | "block" | "shuffle" => {
                if let Some(request) = span.request {
                    add(span.begin_ns, Cause::delivered(pieces.last(request), Evidence::Span))?;
                }
            }
            "call" => {
                if let Some(response) = span.response {
                    add(span.end_ns, Cause::delivered(pieces.last(response), Evidence::Thread))?;
                }
            }
            "block-read" | "block-write" | "fetch" => {
                let exchange = span.request.and_then(|request| index.exchange(&joined.message(request)));
                let Some(exchange) = exchange else { continue };
                let got = if span.kind == "block-write" { exchange.acks() } else { exchange.data() };
                let mut few = |message: &MessageId| {
                    let readings = readers.entry(*message).or_default();
                    *readings += 1;
                    *readings <= MAX_READERS
                };
                for piece in got.iter().filter(|message| few(message)).flat_map(|message| pieces.all(*message)) {
                    let (at, cause) = match consumed.get(piece) {
                        Some(mark) => (graph.happened(mark), Cause::sent(mark, Evidence::Thread)),
                        None => (graph.arrived(piece), Cause::delivered(piece, Evidence::Thread)),
                    };
                    if at <= span.end_ns {
                        add(at.max(span.begin_ns), cause)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(moments)
}

/// What reached processes as a whole.
fn of_deliveries(joined: &Joined, deliveries: &RecordLog<(u64, u32)>, timers: &Timers) -> io::Result<Moments> {
    let mut moments = Unsorted::default();
    for (message, (at, last)) in joined.messages.iter().zip(deliveries.iter()) {
        let Some(process) = super::index::receiver(joined, &message) else { continue };
        let says_nothing = matches!(message.kind, MessageKind::RpcConnect | MessageKind::RpcPing | MessageKind::Sasl);
        if says_nothing || timers.has(message.message) {
            continue;
        }
        let cause = Cause::delivered(last as usize, Evidence::Heuristic);
        moments.add((process, WHOLE), Moment { at, cause })?;
    }
    Moments::of(moments)
}

/// Who started whom, in both orders.
fn starts(joined: &Joined) -> io::Result<(RecordList<Handed>, RecordList<Started>)> {
    // One after the other, for each is sorted in memory of its own.
    let by_child =
        sorted(joined.threads.iter().map(|start| (start.process.0, (start.child, (start.at_ns, start.by)))))?;
    let placed = (0..).zip(joined.threads.iter());
    let by_parent =
        sorted(placed.map(|(place, start)| (start.process.0, (start.by, (start.at_ns, (place, start.child))))))?;
    joined.threads.check()?;
    Ok((by_child, by_parent))
}

/// Records as a list in their order.
fn sorted<T: Record + Ord + Send>(mut records: impl Iterator<Item = T>) -> io::Result<RecordList<T>> {
    let mut sorter = Sorter::within(MAX_BYTES);
    records.try_for_each(|record| sorter.push(record))?;
    sorter.sorted()?.into_list(MAX_BYTES)
}

/// Threads all of whose calls are beats.
fn beating(joined: &Joined, timers: &Timers) -> HashSet<Thread> {
    let mut beating: HashMap<Thread, bool> = HashMap::default();
    for span in joined.spans.iter() {
        let beats = span.request.is_some_and(|request| timers.has(request));
        *beating.entry((span.process, span.thread)).or_insert(true) &= beats;
    }
    beating.into_iter().filter(|(_, beats)| *beats).map(|(thread, _)| thread).collect()
}

/// Programs whose threads start others and wait for their end; daemons keep theirs in pools.
fn waits_for_children(role: &str) -> bool {
    matches!(role, "YarnChild" | "Child" | "Client" | "ContainerLocalizer")
}
