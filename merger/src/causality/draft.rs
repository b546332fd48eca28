//! The graph while it is being made: events in any order, edges by draft number, and the way to rows.

use rayon::prelude::*;
use trace::ids::{ConnectionId, EventId, MessageId, ProcessId, TaskId, TimerId};
use trace::rows::{Carrier, DependencyRow, EventKind, EventRow, Evidence, On};

use super::error::CausalityError;
use crate::compact::Message;
use crate::maps::HashMap;

/// How much earlier than its cause an event may be recorded before the cause is disbelieved, nanoseconds: two stamps
/// of one host can be out of order by the time between two cores' reads of the clock.
pub const SLACK_NS: u64 = 100_000;

/// Number of an event that is not yet a row.
pub type Draft = usize;

/// A moment to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The event.
    pub event: Draft,
    /// Which moment of it.
    pub on: On,
    /// How its news travels, if by a timer.
    pub by: Option<(TimerId, Carrier)>,
    /// Why it is believed.
    pub evidence: Evidence,
}

impl Cause {
    /// The event's last byte had arrived.
    pub const fn delivered(event: Draft, evidence: Evidence) -> Self {
        Self { event, on: On::Delivered, by: None, evidence }
    }

    /// The event happened.
    pub const fn sent(event: Draft, evidence: Evidence) -> Self {
        Self { event, on: On::Sent, by: None, evidence }
    }

    /// The same news, carried by a timer's next beat.
    pub const fn carried(self, timer: TimerId, carrier: Carrier) -> Self {
        Self { by: Some((timer, carrier)), ..self }
    }
}

/// Stands in 32 bits for none.
const NONE: u32 = u32::MAX;
/// The work of a mark whose delay is what the recording leaves between its causes and itself, nanoseconds.
const UNTOLD: u64 = u64::MAX;

const FROM_CLIENT: u8 = 1;
const PACED: u8 = 2;

/// An event that is not yet a row, in half of a row's memory: a long trace has millions of them. Ids are [`NONE`] where there is none.
#[derive(Clone, Copy, Debug)]
struct Event {
    happened_ns: u64,
    arrived_ns: u64,
    /// Of a send its bytes, of a mark its work in nanoseconds.
    amount: u64,
    process: u32,
    /// Of sends.
    message: u32,
    connection: u32,
    timer: u32,
    beat: u32,
    /// Of marks.
    task: u32,
    /// Place of its first cause among all.
    causes: u32,
    /// Place of its name among all; that of sends is the first one.
    name: u16,
    flags: u8,
}

impl Event {
    fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn is_send(&self) -> bool {
        self.message != NONE
    }

    fn bytes(&self) -> u64 {
        if self.is_send() { self.amount } else { 0 }
    }

    fn work_ns(&self) -> Option<u64> {
        (!self.is_send() && self.amount != UNTOLD).then_some(self.amount)
    }
}

fn some(id: u32) -> Option<u32> {
    (id != NONE).then_some(id)
}

/// A cause, and the place of the event's next one among all; [`NONE`] = it is the last.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// Draft; once rows are made the id.
    event: u32,
    timer: u32,
    next: u32,
    on: On,
    carrier: Option<Carrier>,
    evidence: Evidence,
}

impl Link {
    fn of(cause: Cause) -> Self {
        Self {
            event: number(cause.event),
            timer: cause.by.map_or(NONE, |(timer, _)| timer.0),
            next: NONE,
            on: cause.on,
            carrier: cause.by.map(|(_, carrier)| carrier),
            evidence: cause.evidence,
        }
    }

    fn cause(&self) -> Cause {
        let by = self.carrier.map(|carrier| (TimerId(self.timer), carrier));
        Cause { event: self.event as usize, on: self.on, by, evidence: self.evidence }
    }
}

/// A place in 32 bits; that more are there than fit is told when rows are made.
pub fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(NONE)
}

/// A recorded beat of a timer.
#[derive(Clone, Copy, Debug)]
pub struct Beat {
    /// Request.
    pub request: Draft,
    /// Response; its last event.
    pub response: Draft,
}

/// The graph under construction.
#[derive(Clone, Debug)]
pub struct Graph {
    events: Vec<Event>,
    /// The causes of all events.
    causes: Vec<Link>,
    /// Names of events.
    names: Vec<&'static str>,
    /// Beats of each timer, by [`TimerId::index`], ordered by time.
    pub beats: Vec<Vec<Beat>>,
    /// Causes that were disbelieved because they came after their effect.
    pub disbelieved: u64,
    /// News for which no recorded beat was found in time, and which therefore go without a timer.
    pub without_beat: u64,
}

impl Default for Graph {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            causes: Vec::new(),
            names: vec![""],
            beats: Vec::new(),
            disbelieved: 0,
            without_beat: 0,
        }
    }
}

impl Graph {
    /// Adds a send of `bytes` of a message.
    pub fn send(
        &mut self,
        message: &Message,
        process: Option<ProcessId>,
        bytes: u64,
        sent: u64,
        arrived: u64,
    ) -> Draft {
        self.push(Event {
            happened_ns: sent,
            arrived_ns: arrived.max(sent),
            amount: bytes,
            process: process.map_or(NONE, |process| process.0),
            message: message.message.0,
            connection: message.connection.0,
            flags: if message.from_client { FROM_CLIENT } else { 0 },
            ..BLANK
        })
    }

    /// Adds a mark with its causes. It happens at `at`, or when its causes are there if `at` says an earlier time
    /// (the job history counts in milliseconds). News for which no beat came any more is there when it happened.
    pub fn mark(
        &mut self,
        name: &'static str,
        process: Option<ProcessId>,
        task: Option<TaskId>,
        at: u64,
        causes: &[Cause],
    ) -> Draft {
        let there = |cause: &Cause| self.yielded(*cause).or_else(|| self.yielded(Cause { by: None, ..*cause }));
        let at = causes.iter().filter_map(there).fold(at, u64::max);
        let name = self.name(name);
        let mark = self.push(Event {
            name,
            happened_ns: at,
            arrived_ns: at,
            process: process.map_or(NONE, |process| process.0),
            task: task.map_or(NONE, |task| task.0),
            ..BLANK
        });
        for cause in causes {
            self.wait(mark, *cause);
        }
        mark
    }

    /// Adds a mark of work that ends before `piece` leaves, and takes `work_ns` or what the recording left for it.
    pub fn work(&mut self, name: &'static str, piece: Draft, causes: &[Cause], work_ns: u64) -> Draft {
        let begin = causes.iter().filter_map(|cause| self.yielded(*cause)).max().unwrap_or(0);
        let end = begin.saturating_add(work_ns).min(self.happened(piece)).max(begin);
        let process = self.process(piece);
        self.work_until(name, process, causes, end - begin, end)
    }

    /// The same of work that was done at `at`, however early it could have been.
    pub fn work_by(&mut self, name: &'static str, piece: Draft, causes: &[Cause], work_ns: u64, at: u64) -> Draft {
        let begin = causes.iter().filter_map(|cause| self.yielded(*cause)).max().unwrap_or(0);
        let process = self.process(piece);
        self.work_until(name, process, causes, work_ns.min(at.saturating_sub(begin)), at)
    }

    /// Adds a mark of a process's work that takes `work_ns` after its causes; in the recording it may have been done
    /// until `at`.
    pub fn work_until(
        &mut self,
        name: &'static str,
        process: Option<ProcessId>,
        causes: &[Cause],
        work_ns: u64,
        at: u64,
    ) -> Draft {
        let mark = self.mark(name, process, None, at, causes);
        self.events[mark].amount = work_ns.min(UNTOLD - 1);
        mark
    }

    /// Makes room for so many more events, and for as many causes.
    pub fn reserve(&mut self, events: usize) {
        self.events.reserve(events);
        self.causes.reserve(events);
    }

    fn push(&mut self, event: Event) -> Draft {
        self.events.push(event);
        self.events.len() - 1
    }

    /// There are few names.
    fn name(&mut self, name: &'static str) -> u16 {
        let known = self.names.iter().position(|known| *known == name);
        let place = known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        u16::try_from(place).unwrap_or(0)
    }

    /// How many events there are: the number of the next one.
    pub fn count(&self) -> usize {
        self.events.len()
    }

    /// When the event happened in the recording.
    pub fn happened(&self, event: Draft) -> u64 {
        self.events[event].happened_ns
    }

    /// When its last byte had arrived in the recording.
    pub fn arrived(&self, event: Draft) -> u64 {
        self.events[event].arrived_ns
    }

    /// Payload bytes; 0 of marks.
    pub fn bytes(&self, event: Draft) -> u64 {
        self.events[event].bytes()
    }

    /// Lets a send carry more bytes.
    pub fn add_bytes(&mut self, send: Draft, more: u64) {
        self.events[send].amount += more;
    }

    /// Where it happens.
    pub fn process(&self, event: Draft) -> Option<ProcessId> {
        some(self.events[event].process).map(ProcessId)
    }

    /// The message of a send.
    pub fn message(&self, event: Draft) -> Option<MessageId> {
        some(self.events[event].message).map(MessageId)
    }

    /// Whether it is a send of a client.
    pub fn is_from_client(&self, event: Draft) -> bool {
        self.events[event].is(FROM_CLIENT)
    }

    /// Whether it is part of a timer's beat.
    pub fn is_beat(&self, event: Draft) -> bool {
        self.events[event].timer != NONE
    }

    /// Notes that a send is part of a timer's beat of that number.
    pub fn set_beat(&mut self, send: Draft, timer: TimerId, beat: u32) {
        let event = &mut self.events[send];
        (event.timer, event.beat) = (timer.0, beat);
    }

    /// Whether the network alone decided when it left: it is handed over with what it waits for, without delay.
    pub fn is_paced(&self, event: Draft) -> bool {
        self.events[event].is(PACED)
    }

    /// Notes whether the network alone decided when it left.
    pub fn set_paced(&mut self, event: Draft, paced: bool) {
        let flags = &mut self.events[event].flags;
        *flags = if paced { *flags | PACED } else { *flags & !PACED };
    }

    /// What an event waits for, in the order in which that was found.
    pub fn causes(&self, event: Draft) -> impl Iterator<Item = Cause> + '_ {
        links(&self.causes, self.events[event].causes).map(|(_, link)| link.cause())
    }

    /// Lets an event wait for nothing.
    pub fn forget_causes(&mut self, event: Draft) {
        self.events[event].causes = NONE;
    }

    /// Lets an event wait no longer for another.
    pub fn forget_cause(&mut self, event: Draft, on: Draft) {
        let kept: Vec<Cause> = self.causes(event).filter(|cause| cause.event != on).collect();
        self.forget_causes(event);
        kept.into_iter().for_each(|cause| self.link(event, cause));
    }

    /// Adds a cause, but for one that is there.
    fn link(&mut self, event: Draft, cause: Cause) {
        let mut last = None;
        for (place, link) in links(&self.causes, self.events[event].causes) {
            let known = link.cause();
            if (known.event, known.on, known.by) == (cause.event, cause.on, cause.by) {
                return;
            }
            last = Some(place);
        }
        let place = number(self.causes.len());
        self.causes.push(Link::of(cause));
        match last {
            Some(last) => self.causes[last].next = place,
            None => self.events[event].causes = place,
        }
    }

    /// What a cause yields in the recording; `None` if its news finds no recorded beat.
    pub fn yielded(&self, cause: Cause) -> Option<u64> {
        let news = match cause.on {
            On::Sent => self.happened(cause.event),
            On::Delivered => self.arrived(cause.event),
        };
        let Some((timer, carrier)) = cause.by else { return Some(news) };
        let beats = &self.beats[timer.index()];
        let carries = |beat: &Beat| match carrier {
            Carrier::Request => beat.request,
            Carrier::Response => beat.response,
        };
        let at = beats.partition_point(|beat| self.happened(carries(beat)) < news);
        beats.get(at).map(|beat| self.arrived(carries(beat)))
    }

    /// Lets `event` wait for `cause`, unless the recording contradicts. News that would have come too late by a beat
    /// is taken without the beat. Returns whether it waits now.
    pub fn wait(&mut self, event: Draft, cause: Cause) -> bool {
        let at = self.happened(event);
        let believable = |yielded: Option<u64>| yielded.is_some_and(|yielded| yielded <= at.saturating_add(SLACK_NS));
        let mut cause = cause;
        if cause.by.is_some() && !believable(self.yielded(cause)) {
            self.without_beat += 1;
            cause.by = None;
        }
        let earlier = cause.event != event && self.happened(cause.event) <= at;
        if !earlier || !believable(self.yielded(cause)) {
            self.disbelieved += 1;
            return false;
        }
        self.link(event, cause);
        true
    }

    /// Whether nothing is known yet of what the event waits for.
    pub fn is_root(&self, event: Draft) -> bool {
        self.events[event].causes == NONE
    }

    /// Turns drafts into rows: ids in order of time (causes first among equals), delays from the causes.
    ///
    /// # Errors
    /// If there are more events, or causes, than ids.
    pub fn into_rows(mut self) -> Result<Rows, CausalityError> {
        let count = self.events.len().max(self.causes.len());
        if number(count) == NONE {
            return Err(CausalityError::TooManyEvents { count, limit: NONE });
        }
        let order = self.order();
        let mut ids = vec![0; self.events.len()];
        for (id, draft) in (0..).zip(&order) {
            ids[*draft as usize] = id;
        }
        let (mut handed, mut delays_ns) = (vec![0u64; self.events.len()], Vec::with_capacity(self.events.len()));
        let (mut dependencies, mut cyclic) = (0, 0);
        for (id, draft) in (0..).zip(order.iter().map(|draft| *draft as usize)) {
            let mut latest = None;
            for cause in self.causes(draft) {
                if ids[cause.event] >= id {
                    cyclic += 1;
                    continue;
                }
                let yielded = match (cause.by, cause.on) {
                    (None, On::Sent) => handed[cause.event],
                    _ => self.yielded(cause).unwrap_or(0),
                };
                latest = latest.max(Some(yielded));
                dependencies += 1;
            }
            let event = &self.events[draft];
            let delay_ns = match (latest, event.work_ns()) {
                (None, _) => 0,
                (Some(_), Some(work)) => work,
                (Some(_), None) if event.is(PACED) => 0,
                (Some(latest), None) => event.happened_ns.saturating_sub(latest),
            };
            handed[draft] = latest.map_or(event.happened_ns, |latest: u64| latest.saturating_add(delay_ns));
            delays_ns.push(delay_ns);
        }
        drop(handed);
        self.causes.iter_mut().for_each(|link| link.event = ids[link.event as usize]);
        let Self { events, causes, names, .. } = self;
        Ok(Rows { events, causes, names, order, delays_ns, dependencies, cyclic })
    }

    /// Drafts by recorded time; among those of one instant, causes before what waits for them.
    fn order(&self) -> Vec<u32> {
        // Times are sorted beside the drafts: looked up, they lie anywhere.
        let mut keys: Vec<(u64, u32)> = self.events.iter().map(|event| event.happened_ns).zip(0..).collect();
        keys.par_sort_unstable();
        let mut order: Vec<u32> = keys.iter().map(|(_, draft)| *draft).collect();
        let (mut depth, mut from): (HashMap<u32, u32>, usize) = (HashMap::default(), 0);
        for same in keys.chunk_by(|a, b| a.0 == b.0) {
            let of_instant = &mut order[from..from + same.len()];
            from += same.len();
            if of_instant.len() > 1 {
                self.dive(of_instant, &mut depth);
                of_instant.sort_unstable_by_key(|draft| (depth.get(draft).copied().unwrap_or(0), *draft));
            }
        }
        order
    }

    /// How many causes of the same instant precede each of `same`, one behind the other. Each event is looked at once all
    /// its causes were; where they wait for each other, the first of them without its causes.
    fn dive(&self, same: &[u32], depth: &mut HashMap<u32, u32>) {
        let instant = self.happened(same[0] as usize);
        let causes = |draft: u32| {
            let causes = links(&self.causes, self.events[draft as usize].causes).map(|(_, link)| link.event);
            causes.filter(move |cause| *cause != draft && self.happened(*cause as usize) == instant)
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
}

/// The causes of an event, of which the first has that place, with their places.
fn links(all: &[Link], first: u32) -> impl Iterator<Item = (usize, &Link)> {
    let mut next = first;
    std::iter::from_fn(move || {
        let place = next as usize;
        let link = all.get(place)?;
        next = link.next;
        Some((place, link))
    })
}

const BLANK: Event = Event {
    happened_ns: 0,
    arrived_ns: 0,
    amount: UNTOLD,
    process: NONE,
    message: NONE,
    connection: NONE,
    timer: NONE,
    beat: NONE,
    task: NONE,
    causes: NONE,
    name: 0,
    flags: 0,
};

/// The graph as rows, which are made as they are asked for: whole they take twice as much memory.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    events: Vec<Event>,
    causes: Vec<Link>,
    names: Vec<&'static str>,
    /// The places of the events, row by row.
    order: Vec<u32>,
    /// By row.
    delays_ns: Vec<u64>,
    dependencies: usize,
    /// Edges that were left out because they would have closed a cycle within one instant.
    pub cyclic: u64,
}

impl Rows {
    /// Nodes.
    pub fn events(&self) -> impl ExactSizeIterator<Item = EventRow> + '_ {
        self.order.iter().zip(&self.delays_ns).enumerate().map(|(id, (place, delay_ns))| {
            let event = &self.events[*place as usize];
            EventRow {
                event: EventId(number(id)),
                kind: if event.is_send() { EventKind::Send } else { EventKind::Mark },
                name: self.names[usize::from(event.name)].to_owned(),
                process: some(event.process).map(ProcessId),
                message: some(event.message).map(MessageId),
                connection: some(event.connection).map(ConnectionId),
                from_client: event.is(FROM_CLIENT),
                bytes: event.bytes(),
                recorded_ns: event.happened_ns,
                recorded_delivered_ns: event.arrived_ns,
                delay_ns: *delay_ns,
                task: some(event.task).map(TaskId),
                timer: some(event.timer).map(TimerId),
                beat: some(event.beat),
            }
        })
    }

    /// Edges, ordered by the event that waits.
    pub fn dependencies(&self) -> impl Iterator<Item = DependencyRow> + '_ {
        (0..).zip(&self.order).flat_map(|(id, place)| {
            let links = links(&self.causes, self.events[*place as usize].causes).map(|(_, link)| link);
            links.filter(move |link| link.event < id).map(move |link| DependencyRow {
                event: EventId(id),
                on_event: EventId(link.event),
                on: link.on,
                timer: link.carrier.map(|_| TimerId(link.timer)),
                carrier: link.carrier,
                evidence: link.evidence,
            })
        })
    }

    /// How many edges there are.
    pub fn dependency_count(&self) -> usize {
        self.dependencies
    }
}
