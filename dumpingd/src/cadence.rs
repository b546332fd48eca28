//! When the next scan is due.
//!
//! Where the kernel tells at once who opens a connection and which one dies, a scan finds little that is new: the owners of
//! what events could not tell, and how far the counters of long connections are. Then it is made seldom, and sooner when
//! an event leaves a question open.

use std::time::{Duration, Instant};

/// Without events a scan is what tells of a connection.
pub const WITHOUT_EVENTS: Duration = Duration::from_secs(1);
/// With events it tells what they do not.
pub const WITH_EVENTS: Duration = Duration::from_secs(5);
/// Scans take at most this share of a CPU: an interval lasts at least so many times as long as its scan took.
pub const REST: u32 = 10;

/// The rhythm of a run's scans.
#[derive(Clone, Debug)]
pub struct Cadence {
    interval: Duration,
    is_given: bool,
    began: Instant,
    /// Nothing makes the next one begin earlier.
    earliest: Instant,
    next: Instant,
}

impl Cadence {
    /// As it was `given`, or else as seldom as events allow; the first scan begins now.
    #[must_use]
    pub fn begin(given: Option<Duration>, has_events: bool) -> Self {
        let interval = given.unwrap_or(if has_events { WITH_EVENTS } else { WITHOUT_EVENTS });
        let now = Instant::now();
        Self { interval, is_given: given.is_some(), began: now, earliest: now, next: now }
    }

    /// Between the beginnings of two scans.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Why it is that, in words.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match (self.is_given, self.interval == WITH_EVENTS) {
            (true, _) => "as --interval says",
            (false, true) => {
                "the kernel tells of connections that open and die; sooner, after 1 s, when it leaves an owner open"
            }
            (false, false) => "the kernel does not tell of all that happens between two scans",
        }
    }

    /// When the next scan begins.
    #[must_use]
    pub fn next(&self) -> Instant {
        self.next
    }

    /// A scan that began at `began` has taken so much CPU time. Returns whether the next one has to be late because of that.
    pub fn scanned(&mut self, began: Instant, cpu: Duration) -> bool {
        let stretched = cpu * REST;
        self.began = began;
        self.earliest = began + WITHOUT_EVENTS.max(stretched);
        self.next = began + self.interval.max(stretched);
        stretched > self.interval
    }

    /// Something happened that only a scan can tell. What a person told is kept to.
    pub fn scan_soon(&mut self) {
        if !self.is_given {
            self.next = self.next.min(self.earliest);
        }
    }

    /// From now on there are no events.
    pub fn lose_events(&mut self) {
        if !self.is_given {
            self.interval = WITHOUT_EVENTS;
            self.scan_soon();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: Duration = Duration::from_millis(5);

    #[test]
    fn what_events_leave_open_is_looked_for_after_a_second_and_what_was_told_is_kept_to() {
        let began = Instant::now();
        let mut seldom = Cadence::begin(None, true);
        assert!(!seldom.scanned(began, CHEAP));
        assert_eq!(seldom.next(), began + WITH_EVENTS);
        seldom.scan_soon();
        assert_eq!(seldom.next(), began + WITHOUT_EVENTS);
        seldom.scanned(began + WITHOUT_EVENTS, CHEAP);
        seldom.lose_events();
        assert_eq!(seldom.next(), began + 2 * WITHOUT_EVENTS);
        assert_eq!(seldom.interval(), WITHOUT_EVENTS);

        let given = Duration::from_secs(3600);
        let mut given = Cadence::begin(Some(given), true);
        given.scanned(began, CHEAP);
        given.scan_soon();
        given.lose_events();
        assert_eq!(given.next(), began + Duration::from_secs(3600));
        assert!(given.reason().contains("--interval"));
    }

    #[test]
    fn a_scan_that_takes_long_is_followed_by_a_longer_rest() {
        let began = Instant::now();
        let mut cadence = Cadence::begin(Some(Duration::from_secs(1)), false);
        assert!(cadence.scanned(began, Duration::from_millis(500)));
        assert_eq!(cadence.next(), began + Duration::from_secs(5));
        let mut seldom = Cadence::begin(None, true);
        seldom.scanned(began, Duration::from_millis(300));
        seldom.scan_soon();
        assert_eq!(seldom.next(), began + Duration::from_secs(3));
    }
}
