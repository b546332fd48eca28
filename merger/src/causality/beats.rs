//! Recorded beats of timers.

use std::io;

use trace::ids::TimerId;

use super::draft::{Draft, number};
use crate::spilled::{Reader, Record, RecordList, Writer};

/// A recorded beat of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Request.
    pub request: Draft,
    /// Response; its last event.
    pub response: Draft,
    /// When each happened, nanoseconds since the epoch.
    pub times_ns: [u64; 2],
}

impl Record for Beat {
    const BLANK: Self = Self { request: 0, response: 0, times_ns: [0; 2] };
    const BYTES: usize = 2 * 4 + 2 * 8;

    fn write(&self, out: &mut Writer<'_>) {
        [self.request, self.response].into_iter().for_each(|half| number(half).write(out));
        self.times_ns.into_iter().for_each(|time| time.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Self {
        let [request, response] = std::array::from_fn(|_| input.u32() as Draft);
        Self { request, response, times_ns: std::array::from_fn(|_| input.u64()) }
    }
}

/// Memory that beats take at most, bytes.
const MAX_BYTES: usize = 1 << 20;

/// The beats of all timers: those of each one behind the other, in the order of time.
#[derive(Debug)]
pub struct Beats {
    all: RecordList<Beat>,
    /// By timer where its beats end.
    ends: Vec<u32>,
}

impl Default for Beats {
    fn default() -> Self {
        Self { all: RecordList::within(MAX_BYTES), ends: Vec::new() }
    }
}

impl Beats {
    /// Adds those of the next timer.
    pub fn add(&mut self, beats: impl Iterator<Item = Beat>) {
        beats.for_each(|beat| self.all.push(beat));
        self.ends.push(number(self.all.len()));
    }

    /// Those of a timer.
    pub fn of(&self, timer: TimerId) -> TimerBeats<'_> {
        let end = |timer: usize| self.ends.get(timer).map_or(self.all.len(), |end| *end as usize);
        let begin = timer.index().checked_sub(1).map_or(0, end);
        TimerBeats { all: &self.all, begin, end: end(timer.index()) }
    }

    /// Those of all timers, by [`TimerId::index`].
    pub fn timers(&self) -> impl Iterator<Item = TimerBeats<'_>> {
        (0..self.ends.len()).map(|timer| self.of(TimerId(number(timer))))
    }

    /// Whether all could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn check(&self) -> io::Result<()> {
        self.all.check()
    }
}

/// The beats of one timer.
#[derive(Clone, Copy)]
pub struct TimerBeats<'b> {
    all: &'b RecordList<Beat>,
    begin: usize,
    end: usize,
}

impl TimerBeats<'_> {
    /// A beat by its number.
    pub fn get(self, beat: usize) -> Option<Beat> {
        let place = self.begin + beat;
        (place < self.end).then(|| self.all.get(place))
    }

    /// The first one.
    pub fn first(self) -> Option<Beat> {
        self.get(0)
    }

    /// The last one.
    pub fn last(self) -> Option<Beat> {
        self.get((self.end - self.begin).checked_sub(1)?)
    }

    /// How many lie in front of the first that is not before something; all that are lie in front.
    pub fn partition_point(self, is_before: impl Fn(&Beat) -> bool) -> usize {
        self.all.partition_point_in(self.begin..self.end, is_before) - self.begin
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::spilled::read_back;

    #[test]
    fn beats_lie_by_timer() {
        let beat = |at: u64| Beat { request: at as usize, response: at as usize + 1, times_ns: [at, at + 1] };
        let mut beats = Beats::default();
        beats.add([1, 5, 9].into_iter().map(beat));
        beats.add(std::iter::empty());
        beats.add([3].into_iter().map(beat));
        let of = |timer: u32| beats.of(TimerId(timer));
        assert_eq!((of(0).first(), of(0).last(), of(0).get(3)), (Some(beat(1)), Some(beat(9)), None));
        assert_eq!((of(1).first(), of(1).last()), (None, None));
        assert_eq!((of(2).get(0), of(2).get(1)), (Some(beat(3)), None));
        assert_eq!([0, 5, 6, 10].map(|at| of(0).partition_point(|beat| beat.times_ns[0] < at)), [0, 1, 2, 3]);
        assert_eq!(beats.timers().map(|of| of.last().is_some()).collect::<Vec<_>>(), [true, false, true]);
        assert!(beats.check().is_ok());
        assert_eq!(read_back(&beat(7)), beat(7));
    }
}
