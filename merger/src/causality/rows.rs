//! From the graph to its rows, which come in batches, in the order of time.

use std::sync::Arc;

use trace::ids::{ConnectionId, EventId, MessageId, ProcessId, TaskId, TimerId};
use trace::rows::{DependencyRow, EventKind, EventRow, On};

use super::draft::{ByTime, Graph};
use super::error::CausalityError;
use super::event::{Event, FROM_CLIENT, Link, NONE, PACED, SINCE_LEFT, number, some};
use crate::maps::HashMap;
use crate::spilled::{Reader, Record, RecordList, Writer};

/// Events in a batch of rows at most.
const BATCH: usize = 4096;
/// With so many causes it is full before; those of the last event come in addition.
const MAX_BATCH_CAUSES: usize = 8 * BATCH;

/// Events that follow on each other, with what they wait for.
#[derive(Clone, Debug)]
pub struct RowBatch {
    /// Id of its first event.
    first: u32,
    events: Vec<Delayed>,
    /// Ordered by the event that waits, whose id stands in place of the next link's.
    causes: Vec<Link>,
    names: Arc<[&'static str]>,
}

/// How many rows a graph has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Nodes.
    pub events: u64,
    /// Edges.
    pub dependencies: u64,
    /// Edges that were left out because they would have closed a cycle within one instant.
    pub cyclic: u64,
}

/// An event, and how long after its causes it happens.
#[derive(Clone, Copy, Debug)]
struct Delayed {
    event: Event,
    delay_ns: u64,
}

/// The id of a draft, [`NONE`] until it has one, and when it is handed over.
#[derive(Clone, Copy, Debug)]
struct Handed {
    id: u32,
    at_ns: u64,
}

impl Record for Handed {
    const BLANK: Self = Self { id: NONE, at_ns: 0 };
    const BYTES: usize = u32::BYTES + u64::BYTES;

    fn write(&self, out: &mut Writer<'_>) {
        self.id.write(out);
        self.at_ns.write(out);
    }

    fn read(input: &mut Reader<'_>) -> Self {
        Self { id: input.u32(), at_ns: input.u64() }
    }
}

/// Memory that what is handed over takes at most, bytes.
const HANDED_BYTES: usize = 4 << 20;

impl RowCounts {
    /// Counts a batch, which is given on.
    fn count(&mut self, batch: RowBatch) -> RowBatch {
        self.events += batch.events.len() as u64;
        self.dependencies += batch.causes.len() as u64;
        batch
    }
}

impl RowBatch {
    fn new(first: u32, names: &Arc<[&'static str]>) -> Self {
        Self {
            first,
            events: Vec::with_capacity(BATCH),
            causes: Vec::with_capacity(2 * BATCH),
            names: Arc::clone(names),
        }
    }

    /// Whether no more events are to be added. Damaged records could give some many causes.
    fn is_full(&self) -> bool {
        self.events.len() == BATCH || self.causes.len() >= MAX_BATCH_CAUSES
    }

    /// Nodes, in the order of their ids.
    pub fn events(self: Arc<Self>) -> impl Iterator<Item = EventRow> {
        (0..self.events.len()).map(move |place| self.event(place))
    }

    /// Edges, ordered by the event that waits.
    pub fn dependencies(self: Arc<Self>) -> impl Iterator<Item = DependencyRow> {
        (0..self.causes.len()).map(move |place| self.dependency(place))
    }

    fn event(&self, place: usize) -> EventRow {
        let Delayed { event, delay_ns } = self.events[place];
        EventRow {
            event: EventId(self.first + number(place)),
            kind: if event.is_send() { EventKind::Send } else { EventKind::Mark },
            name: self.names.get(usize::from(event.name)).copied().unwrap_or_default().to_owned(),
            process: some(event.process).map(ProcessId),
            message: some(event.message).map(MessageId),
            connection: some(event.connection).map(ConnectionId),
            from_client: event.is(FROM_CLIENT),
            bytes: event.bytes(),
            recorded_ns: event.happened_ns,
            recorded_delivered_ns: event.arrived_ns,
            delay_ns,
            task: some(event.task).map(TaskId),
            timer: some(event.timer).map(TimerId),
            beat: some(event.beat),
        }
    }

    fn dependency(&self, place: usize) -> DependencyRow {
        let link = self.causes[place];
        DependencyRow {
            event: EventId(link.next),
            on_event: EventId(link.event),
            on: link.on,
            timer: link.carrier.map(|_| TimerId(link.timer)),
            carrier: link.carrier,
            evidence: link.evidence,
        }
    }

    /// Adds the next event, whose id is known. Returns how many of its edges would have closed a cycle.
    fn add(&mut self, graph: &Graph, draft: usize, handed: &mut RecordList<Handed>) -> u64 {
        let Handed { id, .. } = handed.get(draft);
        let (mut latest, mut latest_left, mut cyclic) = (None, 0, 0);
        for (_, link) in graph.links(draft) {
            let cause = link.cause();
            let Handed { id: event, at_ns: handed_ns } = handed.get(cause.event);
            if event >= id {
                cyclic += 1;
                continue;
            }
            let left = graph.yielded(cause).unwrap_or(0);
            let yielded = match (cause.by, cause.on) {
                (None, On::Sent) => handed_ns,
                _ => left,
            };
            latest = latest.max(Some(yielded));
            latest_left = latest_left.max(left);
            self.causes.push(Link { event, next: id, ..link });
        }
        let event = graph.events.get(draft);
        let delay_ns = match (latest, event.work_ns()) {
            (None, _) => 0,
            (Some(_), Some(work)) => work,
            (Some(_), None) if event.is(PACED) => 0,
            (Some(latest), None) if event.is(SINCE_LEFT) => event.happened_ns.saturating_sub(latest.max(latest_left)),
            (Some(latest), None) => event.happened_ns.saturating_sub(latest),
        };
        let handed_ns = latest.map_or(event.happened_ns, |latest: u64| latest.saturating_add(delay_ns));
        handed.change(draft, |handed| handed.at_ns = handed_ns);
        self.events.push(Delayed { event, delay_ns });
        cyclic
    }
}

/// Turns drafts into rows: ids in order of time (causes first among equals), delays from the causes. `take` is given one batch after
/// the other, the last of which may be empty, and says whether it wants more.
///
/// # Errors
/// If there are more events, or causes, than ids, or a temporary file fails.
pub fn make(graph: &Graph, mut take: impl FnMut(RowBatch) -> bool) -> Result<RowCounts, CausalityError> {
    let count = graph.events.len().max(graph.causes.len());
    if number(count) == NONE {
        return Err(CausalityError::TooManyEvents { count, limit: NONE });
    }
    let mut handed: RecordList<Handed> = RecordList::blank(graph.count(), HANDED_BYTES);
    let ByTime { sorter: drafts, count: of_messages } = graph.take_by_time();
    drafts.extend((of_messages..graph.count()).map(|draft| (graph.happened(draft), number(draft))))?;
    let sorted = drafts.sorted();
    let mut drafts = sorted.iter().peekable();
    let (mut same, mut depth, mut ids) = (Vec::new(), HashMap::default(), 0..);
    let names = Arc::from(&graph.names[..]);
    let (mut counts, mut batch) = (RowCounts::default(), RowBatch::new(0, &names));
    let mut wants_more = true;
    while wants_more && let Some((instant, draft)) = drafts.next() {
        same.clear();
        same.push(draft);
        same.extend(std::iter::from_fn(|| drafts.next_if(|(at, _)| *at == instant).map(|(_, draft)| draft)));
        if same.len() > 1 {
            depth.clear();
            dive(graph, &same, &mut depth);
            same.sort_unstable_by_key(|draft| (depth.get(draft).copied().unwrap_or(0), *draft));
        }
        for (draft, id) in same.iter().zip(&mut ids) {
            handed.change(*draft as usize, |handed| handed.id = id);
        }
        for draft in &same {
            counts.cyclic += batch.add(graph, *draft as usize, &mut handed);
            if batch.is_full() {
                let next = RowBatch::new(batch.first + number(batch.events.len()), &names);
                wants_more = take(counts.count(std::mem::replace(&mut batch, next)));
            }
            if !wants_more {
                break;
            }
        }
    }
    if wants_more {
        take(counts.count(batch));
    }
    sorted.check()?;
    handed.check()?;
    graph.check()?;
    Ok(counts)
}

/// How many causes of the same instant precede each of `same`, one behind the other. Each event is looked at once all
/// its causes were; where they wait for each other, the first of them without its causes.
fn dive(graph: &Graph, same: &[u32], depth: &mut HashMap<u32, u32>) {
    let instant = graph.happened(same[0] as usize);
    let causes = |draft: u32| {
        let causes = graph.links(draft as usize).map(|(_, link)| link.event);
        causes.filter(move |cause| *cause != draft && graph.happened(*cause as usize) == instant)
    };
    let mut waiting: HashMap<u32, usize> = same.iter().map(|draft| (*draft, causes(*draft).count())).collect();
    let mut effects: HashMap<u32, Vec<u32>> = HashMap::default();
    for draft in same {
        for cause in causes(*draft) {
            effects.entry(cause).or_default().push(*draft);
        }
    }
    let mut ready: Vec<u32> = same.iter().copied().filter(|draft| waiting[draft] == 0).collect();
    let mut left = same.iter();
    while let Some(draft) = ready.pop().or_else(|| left.find(|draft| waiting.contains_key(draft)).copied()) {
        if waiting.remove(&draft).is_none() {
            continue;
        }
        let known = causes(draft).filter_map(|cause| depth.get(&cause)).max();
        depth.insert(draft, known.map_or(0, |known| known + 1));
        for effect in effects.get(&draft).into_iter().flatten() {
            if let Some(count) = waiting.get_mut(effect) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    ready.push(*effect);
                }
            }
        }
    }
}
