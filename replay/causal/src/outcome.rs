//! What came out of an execution: when everything happened, and because of what.

use std::collections::HashMap;

use trace::ids::{EventId, TimerId};
use trace::rows::Carrier;

use super::time::JobTime;

/// Stands for no dependency.
pub(crate) const NO_CAUSE: u32 = u32::MAX;

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventOutcome {
    pub(crate) cause: u32,
    pub(crate) caused: JobTime,
    pub(crate) ready: JobTime,
    pub(crate) happened: JobTime,
    pub(crate) delivered: JobTime,
}

impl EventOutcome {
    pub(crate) const NOTHING: Self = Self {
        cause: NO_CAUSE,
        caused: JobTime::NEVER,
        ready: JobTime::NEVER,
        happened: JobTime::NEVER,
        delivered: JobTime::NEVER,
    };

    /// When it happened; `None` if it did not.
    #[must_use]
    pub fn happened(&self) -> Option<JobTime> {
        (self.happened != JobTime::NEVER).then_some(self.happened)
    }

    /// When its last byte had arrived (marks: when it happened).
    #[must_use]
    pub fn delivered(&self) -> Option<JobTime> {
        (self.delivered != JobTime::NEVER).then_some(self.delivered)
    }

    /// The number of the dependency that it waited for longest; `None` if it had none.
    #[must_use]
    pub fn cause(&self) -> Option<u32> {
        (self.cause != NO_CAUSE).then_some(self.cause)
    }

    /// The time that this dependency yielded.
    #[must_use]
    pub const fn caused(&self) -> JobTime {
        self.caused
    }

    /// When its process was ready for it; it happened later only if its connection had to be opened first or, in a
    /// recording, if the network paced it.
    #[must_use]
    pub const fn ready(&self) -> JobTime {
        self.ready
    }
}

/// A send that carries news: one half of a beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CarrierId {
    /// A recorded send.
    Event(EventId),
    /// A send of a beat that goes on after the recorded ones, by number.
    Synthetic(u32),
}

/// News that travelled by a timer's beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piggyback {
    /// When it was there.
    pub at: JobTime,
    /// What carried it.
    pub carrier: CarrierId,
}

/// Half a beat that goes on after the recorded ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntheticHeartbeat {
    /// Whose beat.
    pub timer: TimerId,
    /// Which half.
    pub half: Carrier,
    /// When it was sent.
    pub sent: JobTime,
    /// When it had arrived; `None` if the execution ended before.
    pub delivered: Option<JobTime>,
}

/// What came out of an execution.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// By event number.
    pub events: Vec<EventOutcome>,
    /// By number of the dependency: the news that took a timer's beat.
    pub piggybacked: HashMap<u32, Piggyback>,
    /// Beats that went on after the recorded ones.
    pub synthetic: Vec<SyntheticHeartbeat>,
    /// From the job's submission to its end, picoseconds.
    pub job_time_ps: u64,
    /// How many events happened, those of synthetic beats among them.
    pub causal_events: u64,
    /// Payload bytes that were handed over.
    pub bytes: u64,
}

impl Outcome {
    /// An event's outcome.
    #[must_use]
    pub fn event(&self, event: EventId) -> &EventOutcome {
        &self.events[event.index()]
    }
}

/// When everything happened, and because of what.
pub trait Happened {
    /// An event's outcome.
    fn event(&self, event: EventId) -> EventOutcome;

    /// The news of a dependency, by its number, that took a timer's beat; `None` where it did not travel by one.
    fn piggyback(&self, dependency: u32) -> Option<Piggyback>;

    /// A beat that went on after the recorded ones, by its number.
    fn synthetic(&self, number: u32) -> Option<&SyntheticHeartbeat>;

    /// When a carrier was sent.
    fn sent(&self, carrier: CarrierId) -> Option<JobTime> {
        match carrier {
            CarrierId::Event(event) => self.event(event).happened(),
            CarrierId::Synthetic(number) => self.synthetic(number).map(|beat| beat.sent),
        }
    }
}

impl Happened for Outcome {
    fn event(&self, event: EventId) -> EventOutcome {
        self.events[event.index()]
    }

    fn piggyback(&self, dependency: u32) -> Option<Piggyback> {
        self.piggybacked.get(&dependency).copied()
    }

    fn synthetic(&self, number: u32) -> Option<&SyntheticHeartbeat> {
        self.synthetic.get(number as usize)
    }
}
