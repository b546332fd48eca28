//! Notices when the wall clock is set.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// A clock that runs a little fast or slow (NTP corrects by 500 ppm at most) is not set; one that jumps so far is,
/// nanoseconds.
const STEP_NS: i128 = 1_000_000;
/// The two clocks are read one after the other; if more passed between, the reading says nothing.
const APART_NS: i128 = 50_000;

/// Compares the wall clock with one that is never set.
#[derive(Debug, Default)]
pub struct ClockWatch {
    difference_ns: Option<i128>,
}

impl ClockWatch {
    /// By how much the wall clock was put forward since the last call, nanoseconds; `None` = it was not.
    pub fn step(&mut self) -> Option<i64> {
        let difference = difference_ns()?;
        self.compare(difference)
    }

    fn compare(&mut self, difference: i128) -> Option<i64> {
        let before = self.difference_ns.replace(difference)?;
        let step = difference - before;
        (step.abs() > STEP_NS).then(|| i64::try_from(step).unwrap_or(if step > 0 { i64::MAX } else { i64::MIN }))
    }
}

fn difference_ns() -> Option<i128> {
    let read = |clock| clock_gettime(clock).ok().map(|time| nanoseconds(Duration::from(time)));
    for _ in 0..4 {
        let before = read(ClockId::CLOCK_MONOTONIC)?;
        let wall = read(ClockId::CLOCK_REALTIME)?;
        let after = read(ClockId::CLOCK_MONOTONIC)?;
        if after - before <= APART_NS {
            return Some(wall - before);
        }
    }
    None
}

fn nanoseconds(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).unwrap_or(i128::MAX)
}

#[cfg(test)]
mod tests {
    use super::ClockWatch;

    #[test]
    fn a_clock_that_is_set_is_told_from_one_that_drifts() {
        let mut watch = ClockWatch::default();
        assert_eq!(watch.compare(5_000_000_000), None);
        assert_eq!(watch.compare(5_000_050_000), None, "50 us in a look is drift");
        assert_eq!(watch.compare(8_000_050_000), Some(3_000_000_000));
        assert_eq!(watch.compare(8_000_050_000), None);
        assert_eq!(watch.compare(1_000_000_000), Some(-7_000_050_000));
    }
}
