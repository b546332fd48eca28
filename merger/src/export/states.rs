//! Overlapping intervals of a process to one state at a time.

use std::collections::BTreeMap;

/// What a process does, in Paraver's usual states. Later ones cover earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Nothing that the trace knows of.
    Idle,
    /// It waits for an answer.
    Waiting,
    /// It works on a message, or a task is in one of its phases.
    Running,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Idle, Self::Running, Self::Waiting];

    /// Paraver's number.
    pub const fn number(self) -> u32 {
        match self {
            Self::Idle => 0,
            Self::Running => 1,
            Self::Waiting => 3,
        }
    }

    /// Paraver's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::Running => "Running",
            Self::Waiting => "Waiting a message",
        }
    }

    /// Paraver's usual colour: red, green, blue.
    pub const fn colour(self) -> [u8; 3] {
        match self {
            Self::Idle => [117, 195, 255],
            Self::Running => [0, 0, 255],
            Self::Waiting => [255, 0, 0],
        }
    }
}

/// A time in which a state holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Begin, nanoseconds.
    pub begin: u64,
    /// End, nanoseconds.
    pub end: u64,
    /// State.
    pub state: State,
}

impl Interval {
    /// From `begin` to `end`; nothing if they are reversed.
    pub fn new(begin: u64, end: u64, state: State) -> Self {
        Self { begin, end: end.max(begin), state }
    }
}

/// Intervals without overlap, in order, neighbours of one state joined: at each time the highest state holds.
pub fn flatten(intervals: Vec<Interval>) -> Vec<Interval> {
    let mut changes: Vec<(u64, bool, State)> = intervals
        .into_iter()
        .filter(|interval| interval.end > interval.begin)
        .flat_map(|interval| [(interval.begin, true, interval.state), (interval.end, false, interval.state)])
        .collect();
    changes.sort_unstable();
    let mut open: BTreeMap<State, u32> = BTreeMap::new();
    let mut flat: Vec<Interval> = Vec::new();
    let mut since = 0;
    for (at, begins, state) in changes {
        if at > since
            && let Some((top, _)) = open.last_key_value()
        {
            match flat.last_mut() {
                Some(last) if last.end == since && last.state == *top => last.end = at,
                _ => flat.push(Interval::new(since, at, *top)),
            }
        }
        since = at;
        if begins {
            *open.entry(state).or_default() += 1;
        } else if let Some(count) = open.get_mut(&state) {
            *count -= 1;
            if *count == 0 {
                open.remove(&state);
            }
        }
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_state_covers_the_others() {
        let flat = flatten(vec![
            Interval::new(0, 100, State::Idle),
            Interval::new(10, 60, State::Waiting),
            Interval::new(20, 30, State::Running),
            Interval::new(30, 40, State::Running),
        ]);
        let plain: Vec<_> = flat.iter().map(|interval| (interval.begin, interval.end, interval.state)).collect();
        assert_eq!(
            plain,
            [
                (0, 10, State::Idle),
                (10, 20, State::Waiting),
                (20, 40, State::Running),
                (40, 60, State::Waiting),
                (60, 100, State::Idle)
            ]
        );
    }
}
