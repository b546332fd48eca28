//! Parts on threads, window by window, until a time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{panic, thread};

use super::Windows;
use super::meeting::Meeting;
use super::part::{Mail, Part};
use super::seam::{HostMessages, PartObserver};
use super::shared::Shared;
use crate::cost::thread_cpu_s;
use crate::count::count;
use crate::time::SimTime;

/// How far a run is, told between two windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowProgress {
    /// When the next window begins.
    pub now: SimTime,
    /// Events of the first part so far.
    pub events: u64,
}

/// What threads share while they run.
struct Exchange {
    meeting: Meeting,
    /// The next window and one, or 0 to stop. Three in turns: one is agreed on while the one before is made ready again.
    next: [AtomicU64; 3],
    /// From each part to each, two in turns: one is filled while the other is read.
    mail: [Vec<Vec<Mutex<Mail>>>; 2],
}

impl Exchange {
    fn new(parts: usize, threads: usize) -> Self {
        let row = || (0..parts).map(|_| Mutex::default()).collect();
        let mail = || (0..parts).map(|_| row()).collect();
        Self {
            meeting: Meeting::new(count(threads)),
            next: [u64::MAX, u64::MAX, u64::MAX].map(AtomicU64::new),
            mail: [mail(), mail()],
        }
    }

    /// Waits for all threads, and says which window is next; `None` if one of them wants to stop, or has panicked.
    fn agree(&self, round: usize, mine: Option<u64>) -> Option<u64> {
        let next = &self.next[round % 3];
        next.fetch_min(mine.map_or(0, |window| window.saturating_add(1)), Ordering::Relaxed);
        if !self.meeting.wait() {
            return None;
        }
        self.next[(round + 2) % 3].store(u64::MAX, Ordering::Relaxed);
        next.load(Ordering::Relaxed).checked_sub(1)
    }
}

impl<O: PartObserver, M: HostMessages> Windows<O, M> {
    /// Runs until `until`, that instant not included. `look` is called between two windows; when it returns true, the run stops
    /// there. Returns whether it did.
    pub fn run_before(&mut self, until: SimTime, mut look: impl FnMut(WindowProgress) -> bool) -> bool {
        let shared = &self.shared;
        let from = self.window;
        self.window = until.0 / shared.width;
        let [first, others @ ..] = self.parts.as_mut_slice() else { return false };
        if others.is_empty() {
            return alone(first, shared, from, until, &mut look);
        }
        let parts = others.len() + 1;
        // A thread more than there are cores would only wait for one of them at each window.
        let of_a_thread = parts.div_ceil(self.threads.clamp(1, parts));
        let (mine, others) = self.parts.split_at_mut(of_a_thread);
        let exchange = Exchange::new(parts, parts.div_ceil(of_a_thread));
        thread::scope(|scope| {
            let groups = (1..).zip(others.chunks_mut(of_a_thread)).map(|(group, parts)| {
                let exchange = &exchange;
                scope.spawn(move || {
                    together(parts, group * of_a_thread, shared, exchange, from, until, &mut |_| false);
                    thread_cpu_s()
                })
            });
            let groups: Vec<_> = groups.collect();
            let stopped = together(mine, 0, shared, &exchange, from, until, &mut look);
            for group in groups {
                self.cpu_s += group.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked));
            }
            stopped
        })
    }
}

fn alone<O: PartObserver, M: HostMessages>(
    part: &mut Part<O, M>,
    shared: &Shared,
    mut from: u64,
    until: SimTime,
    look: &mut impl FnMut(WindowProgress) -> bool,
) -> bool {
    while let Some(window) = part.next_window(from).filter(|window| shared.begin(*window) < until) {
        part.run_window(shared, window, until);
        from = window + 1;
        if look(WindowProgress { now: shared.begin(from), events: part.events() }) {
            return true;
        }
    }
    false
}

/// Runs the parts of one thread, of which the first has the number `first`.
fn together<O: PartObserver, M: HostMessages>(
    parts: &mut [Part<O, M>],
    first: usize,
    shared: &Shared,
    exchange: &Exchange,
    mut from: u64,
    until: SimTime,
    look: &mut impl FnMut(WindowProgress) -> bool,
) -> bool {
    let _member = exchange.meeting.member();
    let mut stop = false;
    for round in 0.. {
        let mine = parts.iter().filter_map(|part| part.next_window(from)).min().unwrap_or(u64::MAX);
        let window = exchange.agree(round, Some(mine).filter(|_| !stop));
        for (number, part) in (first..).zip(&mut *parts) {
            take_in(part, number, shared, &exchange.mail[(round + 1) % 2]);
        }
        let Some(window) = window.filter(|window| shared.begin(*window) < until) else { break };
        for (number, part) in (first..).zip(&mut *parts) {
            part.run_window(shared, window, until);
            send(part, &exchange.mail[round % 2][number]);
        }
        from = window + 1;
        stop = look(WindowProgress { now: shared.begin(from), events: parts.first().map_or(0, Part::events) });
    }
    stop
}

/// Puts what `part` has for others where they find it.
fn send<O, M>(part: &mut Part<O, M>, row: &[Mutex<Mail>]) {
    for (mail, slot) in part.outbox.mail.iter_mut().zip(row) {
        if !mail.is_empty() {
            std::mem::swap(mail, &mut *slot.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// Takes what others have for `part`, in their order.
fn take_in<O: PartObserver, M: HostMessages>(
    part: &mut Part<O, M>,
    number: usize,
    shared: &Shared,
    mail: &[Vec<Mutex<Mail>>],
) {
    for row in mail {
        part.take_in(shared, &mut row[number].lock().unwrap_or_else(PoisonError::into_inner));
    }
}
