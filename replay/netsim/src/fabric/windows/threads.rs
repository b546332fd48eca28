//! Parts on threads, window by window, until a time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{panic, thread};

use super::meeting::Meeting;
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

/// A part of a network that is run in windows.
pub(in crate::fabric) trait Part: Send {
    /// What all parts read and none changes.
    type Shared: Sync;
    /// What one part sends another in a window.
    type Mail: Default + Send;

    /// The width of a window in picoseconds.
    fn width(shared: &Self::Shared) -> u64;

    /// The first window from `from` on in which something happens here, or in another part because of what this one sends it.
    fn next_window(&self, shared: &Self::Shared, from: u64) -> Option<u64>;

    /// All that happens from the begin of `window` until its end, or until `limit`, that not included.
    fn run_window(&mut self, shared: &Self::Shared, window: u64, limit: SimTime);

    /// What it has for each part, in their order; empty where it has nothing.
    fn mail(&mut self) -> &mut [Self::Mail];

    /// Whether there is nothing in `mail`.
    fn is_empty(mail: &Self::Mail) -> bool;

    /// Takes in what another part has sent in the window that ended at `border`, and leaves it empty.
    fn take_in(&mut self, shared: &Self::Shared, border: SimTime, mail: &mut Self::Mail);

    /// Events so far.
    fn events(&self) -> u64;
}

/// How parts are run, and what that took.
#[derive(Clone, Copy, Debug)]
pub(in crate::fabric) struct Threads {
    /// Threads for all parts, at most; more than parts are not made.
    pub most: usize,
    /// The first window that is not over.
    window: u64,
    /// What threads have computed beside the one that runs them, in seconds.
    pub others_cpu_s: f64,
}

impl Default for Threads {
    /// As many as there are cores, at time 0.
    fn default() -> Self {
        let most = thread::available_parallelism().map_or(1, usize::from);
        Self { most, window: 0, others_cpu_s: 0.0 }
    }
}

impl Threads {
    /// Runs `parts` until `until`, that instant not included. `look` is called between two windows; when it returns true, the run stops
    /// there. Returns whether it did.
    pub fn run_before<P: Part>(
        &mut self,
        parts: &mut [P],
        shared: &P::Shared,
        until: SimTime,
        mut look: impl FnMut(WindowProgress) -> bool,
    ) -> bool {
        let from = self.window;
        self.window = until.0 / P::width(shared);
        if let [part] = parts {
            return alone(part, shared, from, until, &mut look);
        }
        // A thread more than there are cores would only wait for one of them at each window.
        let of_a_thread = parts.len().div_ceil(self.most.clamp(1, parts.len().max(1))).max(1);
        let exchange = Exchange::new(parts.len(), parts.len().div_ceil(of_a_thread));
        let (mine, others) = parts.split_at_mut(of_a_thread.min(parts.len()));
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
                self.others_cpu_s += group.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked));
            }
            stopped
        })
    }
}

/// When `window` begins.
fn begin<P: Part>(shared: &P::Shared, window: u64) -> SimTime {
    SimTime(window.saturating_mul(P::width(shared)))
}

fn alone<P: Part>(
    part: &mut P,
    shared: &P::Shared,
    mut from: u64,
    until: SimTime,
    look: &mut impl FnMut(WindowProgress) -> bool,
) -> bool {
    while let Some(window) = part.next_window(shared, from).filter(|window| begin::<P>(shared, *window) < until) {
        part.run_window(shared, window, until);
        from = window + 1;
        if look(WindowProgress { now: begin::<P>(shared, from), events: part.events() }) {
            return true;
        }
    }
    false
}

/// What threads share while they run parts that send each other `M`.
struct Exchange<M> {
    meeting: Meeting,
    /// The next window and one, or 0 to stop. Three in turns: one is agreed on while the one before is made ready again.
    next: [AtomicU64; 3],
    /// From each part to each, two in turns: one is filled while the other is read.
    mail: [Vec<Vec<Mutex<M>>>; 2],
}

impl<M: Default> Exchange<M> {
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

/// Runs the parts of one thread, of which the first has the number `first`.
fn together<P: Part>(
    parts: &mut [P],
    first: usize,
    shared: &P::Shared,
    exchange: &Exchange<P::Mail>,
    mut from: u64,
    until: SimTime,
    look: &mut impl FnMut(WindowProgress) -> bool,
) -> bool {
    let _member = exchange.meeting.member();
    let (mut stop, mut border) = (false, begin::<P>(shared, from));
    for round in 0.. {
        let mine = parts.iter().filter_map(|part| part.next_window(shared, from)).min().unwrap_or(u64::MAX);
        let window = exchange.agree(round, Some(mine).filter(|_| !stop));
        for (number, part) in (first..).zip(&mut *parts) {
            for row in &exchange.mail[(round + 1) % 2] {
                part.take_in(shared, border, &mut row[number].lock().unwrap_or_else(PoisonError::into_inner));
            }
        }
        let Some(window) = window.filter(|window| begin::<P>(shared, *window) < until) else { break };
        for (number, part) in (first..).zip(&mut *parts) {
            part.run_window(shared, window, until);
            send(part, &exchange.mail[round % 2][number]);
        }
        from = window + 1;
        border = begin::<P>(shared, from).min(until);
        stop = look(WindowProgress { now: begin::<P>(shared, from), events: parts.first().map_or(0, Part::events) });
    }
    stop
}

/// Puts what `part` has for others where they find it.
fn send<P: Part>(part: &mut P, row: &[Mutex<P::Mail>]) {
    for (mail, slot) in part.mail().iter_mut().zip(row) {
        if !P::is_empty(mail) {
            std::mem::swap(mail, &mut *slot.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}
