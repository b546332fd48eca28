//! Where threads meet between two windows: a window takes microseconds, so that whoever comes early looks again and again before it sleeps.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

/// Looks at the meeting before a thread that waits lets others run. More only pay where each thread has a core.
const LOOKS: u32 = 256;
/// Looks between which others run, before it sleeps: on a busy machine they are whole time slices of other programs.
const YIELDS: u32 = 8;

/// Threads that wait for each other, again and again.
pub(in crate::fabric) struct Meeting {
    members: u32,
    spins: u32,
    arrived: AtomicU32,
    /// How many times all have met.
    rounds: AtomicU32,
    /// A member has panicked and will not come.
    broken: AtomicBool,
    /// Members that sleep, or are about to.
    asleep: AtomicU32,
    lock: Mutex<()>,
    woken: Condvar,
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
            asleep: AtomicU32::new(0),
            lock: Mutex::new(()),
            woken: Condvar::new(),
        }
    }

    /// Waits until all members have come; what each did before is then seen by all. Returns whether they all came.
    pub fn wait(&self) -> bool {
        let round = self.rounds.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.members {
            self.arrived.store(0, Ordering::Relaxed);
            // Either who goes to sleep sees the new round, or it is seen here that somebody sleeps: both orders are total.
            self.rounds.store(round.wrapping_add(1), Ordering::SeqCst);
            self.wake();
            return true;
        }
        for look in 0..self.spins + YIELDS {
            if self.is_over(round) {
                break;
            }
            if look < self.spins { spin_loop() } else { thread::yield_now() }
        }
        if !self.is_over(round) {
            self.sleep(round);
        }
        self.rounds.load(Ordering::Acquire) != round
    }

    /// Whether all have come, or one never will.
    fn is_over(&self, round: u32) -> bool {
        self.rounds.load(Ordering::SeqCst) != round || self.broken.load(Ordering::SeqCst)
    }

    fn sleep(&self, round: u32) {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.asleep.fetch_add(1, Ordering::SeqCst);
        let guard = self.woken.wait_while(guard, |()| !self.is_over(round)).unwrap_or_else(PoisonError::into_inner);
        self.asleep.fetch_sub(1, Ordering::SeqCst);
        drop(guard);
    }

    fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst) > 0 {
            // Who has not yet looked for the last time holds the lock until it sleeps.
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.woken.notify_all();
        }
    }

    /// A member of the meeting. If it panics, the others do not wait for it.
    pub const fn member(&self) -> Member<'_> {
        Member { meeting: self }
    }
}

/// See [`Meeting::member`].
pub(in crate::fabric) struct Member<'a> {
    meeting: &'a Meeting,
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.meeting.broken.store(true, Ordering::SeqCst);
            self.meeting.wake();
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
        for asleep in [0, 1] {
            let meeting = Meeting::new(2);
            thread::scope(|scope| {
                let lost = scope.spawn(|| {
                    let _member = meeting.member();
                    while meeting.asleep.load(Ordering::SeqCst) < asleep {
                        thread::yield_now();
                    }
                    panic!("on purpose");
                });
                assert!(!meeting.wait());
                assert!(lost.join().is_err());
            });
        }
    }

    #[test]
    fn who_sleeps_is_woken_by_the_last_that_comes() {
        let meeting = Meeting::new(3);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        assert!(meeting.wait());
                    }
                });
            }
            for _ in 0..50 {
                while meeting.asleep.load(Ordering::SeqCst) < 2 {
                    thread::yield_now();
                }
                assert!(meeting.wait());
            }
        });
        assert_eq!(meeting.asleep.load(Ordering::SeqCst), 0);
    }
}
