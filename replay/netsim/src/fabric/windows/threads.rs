//! Parts on threads, window by window, until a time.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
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

    /// How many packets and credits there are in `mail`.
    fn events_of(mail: &Self::Mail) -> usize;

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
    pub cost: WindowsCost,
}

/// What it took to run parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WindowsCost {
    /// Threads that ran them.
    pub threads: usize,
    /// Windows in which something happened.
    pub windows: u64,
    /// Packets and credits that one part sent another.
    pub remote_events: u64,
    /// How long threads waited for each other between two windows, added up, in seconds.
    pub barrier_wait_s: f64,
    /// What threads have computed beside the one that runs them, in seconds.
    pub others_cpu_s: f64,
}

impl WindowsCost {
    /// Adds what another thread took for the same windows.
    fn add(&mut self, other: Self) {
        self.remote_events += other.remote_events;
        self.barrier_wait_s += other.barrier_wait_s;
        self.others_cpu_s += other.others_cpu_s;
    }
}

impl Default for Threads {
    /// As many as there are cores, at time 0.
    fn default() -> Self {
        let most = thread::available_parallelism().map_or(1, usize::from);
        Self { most, window: 0, cost: WindowsCost::default() }
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
            let ran = alone(part, shared, from, until, &mut look);
            self.cost.threads = 1;
            self.cost.windows += ran.cost.windows;
            return ran.stopped;
        }
        // A thread more than there are cores would only wait for one of them at each window.
        let of_a_thread = parts.len().div_ceil(self.most.clamp(1, parts.len().max(1))).max(1);
        let exchange = Exchange::new(parts.len(), parts.len().div_ceil(of_a_thread));
        let (mine, others) = parts.split_at_mut(of_a_thread.min(parts.len()));
        thread::scope(|scope| {
            let groups = (1..).zip(others.chunks_mut(of_a_thread)).map(|(group, parts)| {
                let exchange = &exchange;
                scope.spawn(move || {
                    let ran = together(parts, group * of_a_thread, shared, exchange, from, until, &mut |_| false);
                    WindowsCost { others_cpu_s: thread_cpu_s(), ..ran.cost }
                })
            });
            let groups: Vec<_> = groups.collect();
            let ran = together(mine, 0, shared, &exchange, from, until, &mut look);
            self.cost.threads = groups.len() + 1;
            self.cost.windows += ran.cost.windows;
            self.cost.add(ran.cost);
            for group in groups {
                self.cost.add(group.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked)));
            }
            ran.stopped
        })
    }
}

/// What `of` makes of the numbers below `count`, in their order, in `shares` shares, each on a thread of its own; and what other threads than this one
/// computed for it, in seconds.
pub(in crate::fabric) fn in_shares<R: Send, I: Iterator<Item = R>>(
    count: usize,
    shares: usize,
    of: impl Fn(Range<usize>) -> I + Sync,
) -> (Vec<R>, f64) {
    let share = count.div_ceil(shares.max(1)).max(1);
    if share >= count {
        return (of(0..count).collect(), 0.0);
    }
    thread::scope(|scope| {
        let of = &of;
        let ranges = (share..count).step_by(share).map(|first| first..count.min(first + share));
        let collected = |range| (of(range).collect::<Vec<R>>(), thread_cpu_s());
        let others: Vec<_> = ranges.map(|range| scope.spawn(move || collected(range))).collect();
        // Room for all at once: what this thread makes is not moved again.
        let mut made = Vec::with_capacity(count);
        made.extend(of(0..share));
        let mut others_cpu_s = 0.0;
        for other in others {
            let (more, cpu_s) = other.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked));
            made.extend(more);
            others_cpu_s += cpu_s;
        }
        (made, others_cpu_s)
    })
}

/// What a thread did until a time.
#[derive(Default)]
struct Ran {
    /// Whether it was told to stop.
    stopped: bool,
    cost: WindowsCost,
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
) -> Ran {
    let mut ran = Ran::default();
    while let Some(window) = part.next_window(shared, from).filter(|window| begin::<P>(shared, *window) < until) {
        part.run_window(shared, window, until);
        ran.cost.windows += 1;
        from = window + 1;
        if look(WindowProgress { now: begin::<P>(shared, from), events: part.events() }) {
            ran.stopped = true;
            break;
        }
    }
    ran
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
) -> Ran {
    let _member = exchange.meeting.member();
    let (mut ran, mut border) = (Ran::default(), begin::<P>(shared, from));
    for round in 0.. {
        let mine = parts.iter().filter_map(|part| part.next_window(shared, from)).min().unwrap_or(u64::MAX);
        let came = Instant::now();
        let window = exchange.agree(round, Some(mine).filter(|_| !ran.stopped));
        ran.cost.barrier_wait_s += came.elapsed().as_secs_f64();
        for (number, part) in (first..).zip(&mut *parts) {
            for row in &exchange.mail[(round + 1) % 2] {
                part.take_in(shared, border, &mut row[number].lock().unwrap_or_else(PoisonError::into_inner));
            }
        }
        let Some(window) = window.filter(|window| begin::<P>(shared, *window) < until) else { break };
        for (number, part) in (first..).zip(&mut *parts) {
            part.run_window(shared, window, until);
            ran.cost.remote_events += send(part, &exchange.mail[round % 2][number]);
        }
        ran.cost.windows += 1;
        from = window + 1;
        border = begin::<P>(shared, from).min(until);
        ran.stopped =
            look(WindowProgress { now: begin::<P>(shared, from), events: parts.first().map_or(0, Part::events) });
    }
    ran
}

/// Puts what `part` has for others where they find it. Returns how many events that brings about.
fn send<P: Part>(part: &mut P, row: &[Mutex<P::Mail>]) -> u64 {
    let mut events = 0;
    for (mail, slot) in part.mail().iter_mut().zip(row) {
        if !P::is_empty(mail) {
            events += P::events_of(mail) as u64;
            std::mem::swap(mail, &mut *slot.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
    events
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn shares_are_put_together_in_order() {
        for count in [0, 1, 2, 7, 100] {
            for shares in [0, 1, 2, 3, 7, 200] {
                let (made, _) = in_shares(count, shares, |range| range.map(|number| number * 3));
                assert_eq!(made, (0..count).map(|number| number * 3).collect::<Vec<_>>(), "{count} in {shares}");
            }
        }
    }
}
