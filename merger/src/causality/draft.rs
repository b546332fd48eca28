//! The graph while it is being made: events in any order, edges by draft number, and the way to rows.

use std::collections::HashMap;

use trace::ids::{EventId, MessageId, ProcessId, TaskId, TimerId};
use trace::rows::{Carrier, DependencyRow, EventKind, EventRow, Evidence, MessageRow, On};

use super::error::CausalityError;

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

/// An event that is not yet a row.
#[derive(Clone, Debug)]
pub struct Event {
    /// What is already known of the row; `event` and `delay_ns` are set in the end.
    pub row: EventRow,
    /// What it waits for.
    pub causes: Vec<Cause>,
    /// Whether the network alone decided when it left: it is handed over with what it waits for, without delay.
    pub paced: bool,
    /// Its delay, where that is not what the recording leaves between its causes and itself.
    pub work_ns: Option<u64>,
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
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Events.
    pub events: Vec<Event>,
    /// Beats of each timer, by [`TimerId::index`], ordered by time.
    pub beats: Vec<Vec<Beat>>,
    /// Causes that were disbelieved because they came after their effect.
    pub disbelieved: u64,
    /// News for which no recorded beat was found in time, and which therefore go without a timer.
    pub without_beat: u64,
}

impl Graph {
    /// Adds a send of `bytes` of a message.
    pub fn send(
        &mut self,
        message: &MessageRow,
        process: Option<ProcessId>,
        bytes: u64,
        sent: u64,
        arrived: u64,
    ) -> Draft {
        self.push(EventRow {
            kind: EventKind::Send,
            process,
            message: Some(message.message),
            connection: Some(message.connection),
            from_client: message.from_client,
            bytes,
            recorded_ns: sent,
            recorded_delivered_ns: arrived.max(sent),
            ..blank()
        })
    }

    /// Adds a mark with its causes. It happens at `at`, or when its causes are there if `at` says an earlier time
    /// (the job history counts in milliseconds). News for which no beat came any more is there when it happened.
    pub fn mark(
        &mut self,
        name: &str,
        process: Option<ProcessId>,
        task: Option<TaskId>,
        at: u64,
        causes: &[Cause],
    ) -> Draft {
        let there = |cause: &Cause| self.yielded(*cause).or_else(|| self.yielded(Cause { by: None, ..*cause }));
        let at = causes.iter().filter_map(there).fold(at, u64::max);
        let mark = self.push(EventRow {
            name: name.to_owned(),
            process,
            task,
            recorded_ns: at,
            recorded_delivered_ns: at,
            ..blank()
        });
        for cause in causes {
            self.wait(mark, *cause);
        }
        mark
    }

    /// Adds a mark of work that ends before `piece` leaves, and takes `work_ns` or what the recording left for it.
    pub fn work(&mut self, name: &str, piece: Draft, causes: &[Cause], work_ns: u64) -> Draft {
        let begin = causes.iter().filter_map(|cause| self.yielded(*cause)).max().unwrap_or(0);
        let end = begin.saturating_add(work_ns).min(self.happened(piece)).max(begin);
        let process = self.events[piece].row.process;
        self.work_until(name, process, causes, end - begin, end)
    }

    /// Adds a mark of a process's work that takes `work_ns` after its causes; in the recording it may have been done
    /// until `at`.
    pub fn work_until(
        &mut self,
        name: &str,
        process: Option<ProcessId>,
        causes: &[Cause],
        work_ns: u64,
        at: u64,
    ) -> Draft {
        let mark = self.mark(name, process, None, at, causes);
        self.events[mark].work_ns = Some(work_ns);
        mark
    }

    fn push(&mut self, row: EventRow) -> Draft {
        self.events.push(Event { row, causes: Vec::new(), paced: false, work_ns: None });
        self.events.len() - 1
    }

    /// When the event happened in the recording.
    pub fn happened(&self, event: Draft) -> u64 {
        self.events[event].row.recorded_ns
    }

    /// When its last byte had arrived in the recording.
    pub fn arrived(&self, event: Draft) -> u64 {
        self.events[event].row.recorded_delivered_ns
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
        let waits = &mut self.events[event].causes;
        if !waits.iter().any(|known| (known.event, known.on, known.by) == (cause.event, cause.on, cause.by)) {
            // Most events wait for one.
            waits.reserve_exact(1);
            waits.push(cause);
        }
        true
    }

    /// Whether nothing is known yet of what the event waits for.
    pub fn is_root(&self, event: Draft) -> bool {
        self.events[event].causes.is_empty()
    }

    /// Turns drafts into rows: ids in order of time (causes first among equals), delays from the causes. Rows are made
    /// where the drafts lie, as a second copy of all events would be most of a long trace's memory.
    ///
    /// # Errors
    /// If there are more events than ids.
    pub fn into_rows(mut self) -> Result<Rows, CausalityError> {
        let count = self.events.len();
        if u32::try_from(count).is_err() {
            return Err(CausalityError::TooManyEvents { count, limit: u32::MAX });
        }
        let order = self.order();
        for (id, draft) in order.iter().enumerate() {
            self.events[*draft].row.event = EventId(u32::try_from(id).unwrap_or(u32::MAX));
        }
        let mut handed = vec![0u64; count];
        let edges = self.events.iter().map(|event| event.causes.len()).sum();
        let mut rows = Rows { dependencies: Vec::with_capacity(edges), ..Rows::default() };
        for draft in order {
            let id = self.events[draft].row.event;
            let mut latest = None;
            for cause in std::mem::take(&mut self.events[draft].causes) {
                let on_event = self.events[cause.event].row.event;
                if on_event >= id {
                    rows.cyclic += 1;
                    continue;
                }
                let yielded = match (cause.by, cause.on) {
                    (None, On::Sent) => handed[cause.event],
                    _ => self.yielded(cause).unwrap_or(0),
                };
                latest = latest.max(Some(yielded));
                rows.dependencies.push(DependencyRow {
                    event: id,
                    on_event,
                    on: cause.on,
                    timer: cause.by.map(|by| by.0),
                    carrier: cause.by.map(|by| by.1),
                    evidence: cause.evidence,
                });
            }
            let event = &mut self.events[draft];
            let recorded = event.row.recorded_ns;
            let delay = match (latest, event.work_ns) {
                (None, _) => 0,
                (Some(_), Some(work)) => work,
                (Some(latest), None) => {
                    if event.paced {
                        0
                    } else {
                        recorded.saturating_sub(latest)
                    }
                }
            };
            handed[draft] = latest.map_or(recorded, |latest| latest.saturating_add(delay));
            event.row.delay_ns = delay;
        }
        drop(handed);
        rows.events = in_place(self.events);
        Ok(rows)
    }

    /// Drafts by recorded time; among those of one instant, causes before what waits for them.
    fn order(&self) -> Vec<Draft> {
        let mut order: Vec<Draft> = (0..self.events.len()).collect();
        order.sort_by_key(|draft| (self.happened(*draft), *draft));
        let mut depth: HashMap<Draft, u32> = HashMap::new();
        for same in order.chunk_by(|a, b| self.happened(*a) == self.happened(*b)) {
            if same.len() > 1 {
                self.dive(same, &mut depth);
            }
        }
        order.sort_by_key(|draft| (self.happened(*draft), depth.get(draft).copied().unwrap_or(0), *draft));
        order
    }

    /// How many causes of the same instant precede each of `same`, one behind the other. Each event is looked at once all
    /// its causes were; where they wait for each other, the first of them without its causes.
    fn dive(&self, same: &[Draft], depth: &mut HashMap<Draft, u32>) {
        let instant = self.happened(same[0]);
        let causes = |draft: Draft| {
            let causes = self.events[draft].causes.iter().map(|cause| cause.event);
            causes.filter(move |cause| *cause != draft && self.happened(*cause) == instant)
        };
        let mut waiting: HashMap<Draft, usize> = same.iter().map(|draft| (*draft, causes(*draft).count())).collect();
        let mut effects: HashMap<Draft, Vec<Draft>> = HashMap::new();
        for draft in same {
            for cause in causes(*draft) {
                effects.entry(cause).or_default().push(*draft);
            }
        }
        let mut ready: Vec<Draft> = same.iter().copied().filter(|draft| waiting[draft] == 0).collect();
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

/// Puts events to the places that their ids name, each by one swap, and leaves their rows.
fn in_place(mut events: Vec<Event>) -> Vec<EventRow> {
    for at in 0..events.len() {
        while events[at].row.event.index() != at {
            let place = events[at].row.event.index();
            events.swap(at, place);
        }
    }
    // The rows take over the memory of the events.
    events.into_iter().map(|event| event.row).collect()
}

/// The graph as rows.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Nodes.
    pub events: Vec<EventRow>,
    /// Edges, ordered by the event that waits.
    pub dependencies: Vec<DependencyRow>,
    /// Edges that were left out because they would have closed a cycle within one instant.
    pub cyclic: u64,
}

fn blank() -> EventRow {
    EventRow {
        event: EventId::default(),
        kind: EventKind::Mark,
        name: String::new(),
        process: None,
        message: None::<MessageId>,
        connection: None,
        from_client: false,
        bytes: 0,
        recorded_ns: 0,
        recorded_delivered_ns: 0,
        delay_ns: 0,
        task: None,
        timer: None,
        beat: None,
    }
}
