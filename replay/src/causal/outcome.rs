//! What came out of a replay: when everything happened, and because of what.

use std::collections::HashMap;

use trace::ids::{EventId, TimerId};
use trace::rows::Carrier;

/// Stands for a time at which something has not happened.
pub(super) const NEVER: i64 = i64::MIN;
/// Stands for no dependency.
pub(super) const NO_CAUSE: u32 = u32::MAX;

/// What became of an event. Times are picoseconds since the job was submitted; negative before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventOutcome {
    pub(super) cause: u32,
    pub(super) caused_ps: i64,
    pub(super) ready_ps: i64,
    pub(super) happened_ps: i64,
    pub(super) delivered_ps: i64,
}

impl EventOutcome {
    pub(super) const NOTHING: Self =
        Self { cause: NO_CAUSE, caused_ps: NEVER, ready_ps: NEVER, happened_ps: NEVER, delivered_ps: NEVER };

    /// When it happened; `None` if it did not.
    #[must_use]
    pub fn happened_ps(&self) -> Option<i64> {
        (self.happened_ps != NEVER).then_some(self.happened_ps)
    }

    /// When its last byte had arrived (marks: when it happened).
    #[must_use]
    pub fn delivered_ps(&self) -> Option<i64> {
        (self.delivered_ps != NEVER).then_some(self.delivered_ps)
    }

    /// The number of the dependency that it waited for longest; `None` if it had none.
    #[must_use]
    pub fn cause(&self) -> Option<u32> {
        (self.cause != NO_CAUSE).then_some(self.cause)
    }

    /// The time that this dependency yielded.
    #[must_use]
    pub const fn caused_ps(&self) -> i64 {
        self.caused_ps
    }

    /// When its process was ready for it; later it happened only if its connection had to be opened first.
    #[must_use]
    pub const fn ready_ps(&self) -> i64 {
        self.ready_ps
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
    /// When it was there, picoseconds since the job was submitted.
    pub at_ps: i64,
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
    /// When it was sent, picoseconds since the job was submitted.
    pub sent_ps: i64,
    /// When it had arrived; `None` if the replay ended before.
    pub delivered_ps: Option<i64>,
}

/// What came out of a replay.
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
    /// Payload bytes that were handed to the network.
    pub bytes: u64,
}

impl Outcome {
    /// An event's outcome.
    #[must_use]
    pub fn event(&self, event: EventId) -> &EventOutcome {
        &self.events[event.index()]
    }

    /// When a carrier was sent, and when it had arrived.
    #[must_use]
    pub fn carrier_ps(&self, carrier: CarrierId) -> (Option<i64>, Option<i64>) {
        match carrier {
            CarrierId::Event(event) => (self.event(event).happened_ps(), self.event(event).delivered_ps()),
            CarrierId::Synthetic(number) => {
                let beat = &self.synthetic[number as usize];
                (Some(beat.sent_ps), beat.delivered_ps)
            }
        }
    }
}
