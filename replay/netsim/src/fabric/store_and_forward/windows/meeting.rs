//! Where threads meet between two windows: a window takes microseconds, so that whoever comes early looks again and again before it sleeps.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

/// Looks at the meeting before a thread that waits lets others run. More only pay where each thread has a core.
const LOOKS: u32 = 256;

/// Threads that wait for each other, again and again.
pub(super) struct Meeting {
    members: u32,
    spins: u32,
    arrived: AtomicU32,
    /// How many times all have met.
    rounds: AtomicU32,
    /// A member has panicked and will not come.
    broken: AtomicBool,
}

impl Meeting {
    pub fn new(members: u32) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self {
            members,
            spins: if members as usize <= cores { LOOKS } else { 0 },
            arrived: AtomicU32::new(0),
            rounds: AtomicU32::new(0),
            broken: AtomicBool::new(false),
        }
    }

    /// Waits until all members have come; what each did before is then seen by all. Returns whether they all came.
    pub fn wait(&self) -> bool {
        let round = self.rounds.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.members {
            self.arrived.store(0, Ordering::Relaxed);
            self.rounds.store(round.wrapping_add(1), Ordering::Release);
            return true;
        }
        let mut looks = 0;
        while self.rounds.load(Ordering::Acquire) == round {
            if self.broken.load(Ordering::Acquire) {
                return false;
            }
            looks += 1;
            if looks < self.spins { spin_loop() } else { thread::yield_now() }
        }
        true
    }

    /// A member of the meeting. If it panics, the others do not wait for it.
    pub const fn member(&self) -> Member<'_> {
        Member { meeting: self }
    }
}

/// See [`Meeting::member`].
pub(super) struct Member<'a> {
    meeting: &'a Meeting,
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.meeting.broken.store(true, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn nobody_goes_on_before_all_have_come() {
        for members in [1, 2, 3, 7] {
            let (meeting, count) = (Meeting::new(members), AtomicU64::new(0));
            thread::scope(|scope| {
                for _ in 0..members {
                    scope.spawn(|| {
                        for round in 1..=300 {
                            count.fetch_add(1, Ordering::Relaxed);
                            assert!(meeting.wait());
                            assert_eq!(count.load(Ordering::Relaxed), round * u64::from(members));
                            assert!(meeting.wait());
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn who_waits_for_one_that_panics_is_told() {
        let meeting = Meeting::new(2);
        thread::scope(|scope| {
            let lost = scope.spawn(|| {
                let _member = meeting.member();
                panic!("on purpose");
            });
            assert!(!meeting.wait());
            assert!(lost.join().is_err());
        });
    }
}
