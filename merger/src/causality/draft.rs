//! The graph while it is being made: events in any order, and edges by draft number.

use std::io;
use std::sync::{Mutex, PoisonError};

use trace::ids::{MessageId, ProcessId, TaskId, TimerId};
use trace::rows::{Carrier, On};

use super::beats::{Beat, Beats};
pub use super::event::{Cause, Draft, number};
use super::event::{Event, FROM_CLIENT, Link, NONE, PACED, SINCE_LEFT, UNTOLD, some};
use crate::compact::Message;
use crate::maps::HashMap;
use crate::spilled::{Record as _, RecordList, SharedSorter};

/// How much earlier than its cause an event may be recorded before the cause is disbelieved, nanoseconds: two stamps
/// of one host can be out of order by the time between two cores' reads of the clock.
pub const SLACK_NS: u64 = 100_000;

/// Memory that causes take at most, bytes: those of an event are looked at when it gets them.
const CAUSES_BYTES: usize = 1 << 20;

/// The graph under construction.
#[derive(Debug)]
pub struct Graph {
    pub(super) events: RecordList<Event>,
    /// The causes of all events.
    pub(super) causes: RecordList<Link>,
    /// Names of events.
    pub(super) names: Vec<&'static str>,
    /// Beats of timers.
    pub beats: Beats,
    /// Of some events which others were told to wait for them.
    watched: HashMap<Draft, Vec<u32>>,
    /// Causes that were disbelieved because they came after their effect.
    pub disbelieved: u64,
    /// News for which no recorded beat was found in time, and which therefore go without a timer.
    pub without_beat: u64,
    /// The first events by when they happened, until rows are made.
    by_time: Mutex<ByTime>,
}

/// Events sorted by when they happened, nanoseconds since the epoch.
#[derive(Debug)]
pub(super) struct ByTime {
    pub sorter: SharedSorter<(u64, u32)>,
    /// How many there are: all before this draft.
    pub count: usize,
}

/// Memory that those which are sorted at once take at most, bytes.
const BY_TIME_BYTES: usize = 1 << 20;

impl Default for ByTime {
    fn default() -> Self {
        Self { sorter: SharedSorter::within(BY_TIME_BYTES), count: 0 }
    }
}

impl Default for Graph {
    fn default() -> Self {
        Self {
            events: RecordList::default(),
            causes: RecordList::within(CAUSES_BYTES),
            names: vec![""],
            beats: Beats::default(),
            watched: HashMap::default(),
            disbelieved: 0,
            without_beat: 0,
            by_time: Mutex::default(),
        }
    }
}

impl Graph {
    /// Notes that all events so far have been sorted.
    pub(super) fn set_by_time(&mut self, sorter: SharedSorter<(u64, u32)>) {
        self.by_time = Mutex::new(ByTime { sorter, count: self.count() });
    }

    /// Those that were sorted; none if they were taken before.
    pub(super) fn take_by_time(&self) -> ByTime {
        std::mem::take(&mut *self.by_time.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a send of `bytes` of a message.
    pub fn send(
        &mut self,
        message: &Message<'_>,
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
            ..Event::BLANK
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
            ..Event::BLANK
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
        self.events.change(mark, |event| event.amount = work_ns.min(UNTOLD - 1));
        mark
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

    /// Whether all could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn check(&self) -> io::Result<()> {
        self.events.check().and(self.causes.check()).and(self.beats.check())
    }

    /// How many events there are: the number of the next one.
    pub fn count(&self) -> usize {
        self.events.len()
    }

    /// When the event happened in the recording.
    pub fn happened(&self, event: Draft) -> u64 {
        self.events.get(event).happened_ns
    }

    /// When its last byte had arrived in the recording.
    pub fn arrived(&self, event: Draft) -> u64 {
        self.events.get(event).arrived_ns
    }

    /// Payload bytes; 0 of marks.
    pub fn bytes(&self, event: Draft) -> u64 {
        self.events.get(event).bytes()
    }

    /// Lets a send carry more bytes.
    pub fn add_bytes(&mut self, send: Draft, more: u64) {
        self.events.change(send, |event| event.amount += more);
    }

    /// Where it happens.
    pub fn process(&self, event: Draft) -> Option<ProcessId> {
        some(self.events.get(event).process).map(ProcessId)
    }

    /// The message of a send.
    pub fn message(&self, event: Draft) -> Option<MessageId> {
        some(self.events.get(event).message).map(MessageId)
    }

    /// Whether it is a send of a client.
    pub fn is_from_client(&self, event: Draft) -> bool {
        self.events.get(event).is(FROM_CLIENT)
    }

    /// Whether it is part of a timer's beat.
    pub fn is_beat(&self, event: Draft) -> bool {
        self.events.get(event).timer != NONE
    }

    /// Notes that a send is part of a timer's beat of that number.
    pub fn set_beat(&mut self, send: Draft, timer: TimerId, beat: u32) {
        self.events.change(send, |event| (event.timer, event.beat) = (timer.0, beat));
    }

    /// Whether the network alone decided when it left: it is handed over with what it waits for, without delay.
    pub fn is_paced(&self, event: Draft) -> bool {
        self.events.get(event).is(PACED)
    }

    /// Notes whether the network alone decided when it left.
    pub fn set_paced(&mut self, event: Draft, paced: bool) {
        self.events.change(event, |event| {
            event.flags = if paced { event.flags | PACED } else { event.flags & !PACED };
        });
    }

    /// Counts an event's delay from when what it waits for had left its sender, and not from when that was handed over.
    pub fn count_since_left(&mut self, event: Draft) {
        self.events.change(event, |event| event.flags |= SINCE_LEFT);
    }

    /// Adds the beats of the next timer: of each its request and its response.
    pub fn add_beats(&mut self, beats: impl Iterator<Item = [Draft; 2]>) {
        let events = &self.events;
        self.beats.add(beats.map(|halves| {
            let times_ns = halves.map(|half| events.get(half).happened_ns);
            Beat { request: halves[0], response: halves[1], times_ns }
        }));
    }

    /// Notes from now on which events wait for one.
    pub fn watch(&mut self, event: Draft) {
        self.watched.entry(event).or_default();
    }

    /// The events that wait for one that is watched, in their order.
    pub fn waiting(&self, event: Draft) -> Vec<Draft> {
        let told = self.watched.get(&event).into_iter().flatten().map(|waiting| *waiting as usize);
        let mut waiting: Vec<Draft> =
            told.filter(|waiting| self.causes(*waiting).any(|cause| cause.event == event)).collect();
        waiting.sort_unstable();
        waiting.dedup();
        waiting
    }

    /// What an event waits for, in the order in which that was found.
    pub fn causes(&self, event: Draft) -> impl Iterator<Item = Cause> + '_ {
        self.links(event).map(|(_, link)| link.cause())
    }

    /// The causes of an event with their places among all.
    pub(super) fn links(&self, event: Draft) -> impl Iterator<Item = (usize, Link)> + '_ {
        let mut next = self.events.get(event).causes;
        std::iter::from_fn(move || {
            let place = next as usize;
            let link = (place < self.causes.len()).then(|| self.causes.get(place))?;
            next = link.next;
            Some((place, link))
        })
    }

    /// Lets an event wait for nothing.
    pub fn forget_causes(&mut self, event: Draft) {
        self.events.change(event, |event| event.causes = NONE);
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
        for (place, link) in self.links(event) {
            let known = link.cause();
            if (known.event, known.on, known.by) == (cause.event, cause.on, cause.by) {
                return;
            }
            last = Some(place);
        }
        let place = number(self.causes.len());
        self.causes.push(Link::of(cause));
        if let Some(waiting) = self.watched.get_mut(&cause.event) {
            waiting.push(number(event));
        }
        match last {
            Some(last) => self.causes.change(last, |link| link.next = place),
            None => self.events.change(event, |event| event.causes = place),
        }
    }

    /// What a cause yields in the recording; `None` if its news finds no recorded beat.
    pub fn yielded(&self, cause: Cause) -> Option<u64> {
        let news = match cause.on {
            On::Sent => self.happened(cause.event),
            On::Delivered => self.arrived(cause.event),
        };
        let Some((timer, carrier)) = cause.by else { return Some(news) };
        let beats = self.beats.of(timer);
        let beat = beats.get(beats.partition_point(|beat| beat.times_ns[carrier as usize] < news))?;
        Some(self.arrived(match carrier {
            Carrier::Request => beat.request,
            Carrier::Response => beat.response,
        }))
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
        self.events.get(event).causes == NONE
    }
}
