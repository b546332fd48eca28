//! How long so many packets lie in queues.

use std::collections::VecDeque;

/// One queue. Times are whatever its fabric counts in.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// Packets in it, since when.
    packets: usize,
    since: u64,
    /// When packets come into it and when they have left it, from `since` on, both in order.
    enters: VecDeque<u64>,
    leaves: VecDeque<u64>,
    /// How long 0, 1, ... packets have lain in it before `since`.
    times: Vec<u64>,
}

impl Queue {
    /// Counts what has happened before `until`.
    fn count_until(&mut self, until: u64) {
        loop {
            let (enters, leaves) = (self.enters.front().copied(), self.leaves.front().copied());
            let next = enters.into_iter().chain(leaves).min().filter(|next| *next < until);
            self.lasts_until(next.unwrap_or(until));
            let Some(next) = next else { return };
            // In the same instant one comes before another leaves: no packet leaves before it has come.
            if enters == Some(next) {
                self.enters.pop_front();
                self.packets += 1;
            } else {
                self.leaves.pop_front();
                self.packets = self.packets.saturating_sub(1);
            }
        }
    }

    /// Nothing comes or leaves before `until`.
    fn lasts_until(&mut self, until: u64) {
        if until <= self.since {
            return;
        }
        if self.packets >= self.times.len() {
            self.times.resize(self.packets + 1, 0);
        }
        self.times[self.packets] += until - self.since;
        self.since = until;
    }
}

/// How long so many packets lie in each of some first-in first-out queues.
#[derive(Clone, Debug)]
pub(super) struct Occupancy {
    queues: Vec<Queue>,
}

impl Occupancy {
    /// `queues` queues that are empty at time 0.
    pub fn new(queues: usize) -> Self {
        Self { queues: vec![Queue::default(); queues] }
    }

    /// At `now` it is known that a packet comes into `queue` at `at`, at the earliest now and behind all that came before.
    pub fn enters(&mut self, queue: usize, now: u64, at: u64) {
        let queue = &mut self.queues[queue];
        queue.count_until(now);
        queue.enters.push_back(at);
    }

    /// At `now` it is known that the packet that has come first into `queue` of those in it has left it at `at`.
    pub fn leaves(&mut self, queue: usize, now: u64, at: u64) {
        let queue = &mut self.queues[queue];
        queue.count_until(now);
        queue.leaves.push_back(at);
    }

    /// Of each queue, how long 0, 1, ... packets have lain in it before `until`, which is not earlier than all that was told.
    pub fn times(&self, until: u64) -> Vec<Vec<u64>> {
        let times = |queue: &Queue| {
            let mut queue = queue.clone();
            queue.count_until(until);
            queue.times
        };
        self.queues.iter().map(times).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Occupancy;

    #[test]
    fn packets_are_counted_from_when_they_come_until_they_have_left() {
        let mut occupancy = Occupancy::new(2);
        occupancy.enters(1, 5, 10);
        occupancy.enters(1, 9, 12);
        occupancy.leaves(1, 10, 20);
        assert_eq!(occupancy.times(15), [vec![15], vec![10, 2, 3]]);
        occupancy.leaves(1, 20, 25);
        // The next one comes as the one before leaves.
        occupancy.enters(1, 21, 25);
        assert_eq!(occupancy.times(30), [vec![30], vec![10, 2 + 5 + 5, 8]]);
    }
}
