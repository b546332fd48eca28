//! Parts on threads, window by window, until a time.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
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
        self.run_on_threads(parts, shared, (from, until), &mut look, |_, _, _| None).stopped
    }

    /// The same from stop to stop on the same threads, from the one at `now` on, where it is. Returns the last one, and whether `look` stopped it.
    pub fn run_stops<P: Part>(
        &mut self,
        parts: &mut [P],
        shared: &P::Shared,
        now: SimTime,
        mut look: impl FnMut(WindowProgress) -> bool,
        stops: &(impl Stops<P> + Sync),
    ) -> (SimTime, bool) {
        let outlasts = |part: &P, now: SimTime| stops.outlasts(part, now.0 / P::width(shared));
        // Where it is nothing is run again.
        if parts.iter().map(|part| stops.awaited(part)).sum::<i64>() == 0 {
            return (now, false);
        }
        let any_outlasts = parts.iter().any(|part| outlasts(part, now));
        let Some(until) = stops.next(now, any_outlasts) else { return (now, false) };
        let next = |exchange: &Exchange<P::Mail>, (number, now): (usize, SimTime), parts: &[MutexGuard<'_, &mut P>]| {
            let awaited = parts.iter().map(|part| stops.awaited(part)).sum();
            let is_over = exchange.all_awaited(number, awaited)? == 0;
            let outlasts = exchange.any_outlasts(number, !is_over && parts.iter().any(|part| outlasts(part, now)))?;
            if is_over { None } else { stops.next(now, outlasts) }
        };
        let ran = self.run_on_threads(parts, shared, (self.window, until), &mut look, next);
        self.window = ran.until.0 / P::width(shared);
        (ran.until, ran.stopped)
    }

    /// Runs `parts`, several ones, from the window `from` on until a time, then until the next one as long as `next` says one: of the stop with a
    /// number at a time, and the parts of a thread.
    fn run_on_threads<P: Part>(
        &mut self,
        parts: &mut [P],
        shared: &P::Shared,
        (from, until): (u64, SimTime),
        look: &mut impl FnMut(WindowProgress) -> bool,
        next: impl Fn(&Exchange<P::Mail>, (usize, SimTime), &[MutexGuard<'_, &mut P>]) -> Option<SimTime> + Sync,
    ) -> Ran {
        let pool = Pool::new(parts, self.most);
        let exchange = Exchange::new(pool.parts.len(), pool.shares.len());
        thread::scope(|scope| {
            let others = (1..pool.shares.len()).map(|number| {
                let (pool, exchange, next) = (&pool, &exchange, &next);
                scope.spawn(move || {
                    let ran = together(pool, number, shared, exchange, (from, until), &mut |_| false, next);
                    WindowsCost { others_cpu_s: thread_cpu_s(), ..ran.cost }
                })
            });
            let others: Vec<_> = others.collect();
            let ran = together(&pool, 0, shared, &exchange, (from, until), look, &next);
            self.cost.threads = others.len() + 1;
            self.cost.windows += ran.cost.windows;
            self.cost.add(ran.cost);
            for other in others {
                self.cost.add(other.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked)));
            }
            self.cost.barrier_wait_s += Duration::from_nanos(exchange.waited_ns.load(Ordering::Relaxed)).as_secs_f64();
            ran
        })
    }
}

/// Where a run stops, and looks whether it is over.
pub(in crate::fabric) trait Stops<P> {
    /// What is awaited of a part: that of all parts together is 0 if the run is over.
    fn awaited(&self, part: &P) -> i64;

    /// Whether something that is awaited is certainly still to come to a part behind the window in which the stop lies.
    fn outlasts(&self, part: &P, window: u64) -> bool;

    /// The stop behind `now`; `None` if there is none. `outlasts`: whether that is so of any part.
    fn next(&self, now: SimTime, outlasts: bool) -> Option<SimTime>;
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

/// What a thread did.
#[derive(Default)]
struct Ran {
    /// The time until which it ran, unless it was told to stop.
    until: SimTime,
    /// Times until which it has run before.
    stops: usize,
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
    let mut ran = Ran { until, ..Ran::default() };
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

/// Parts that threads run, window by window: each first those of its share, then what others have not begun.
struct Pool<'a, P> {
    parts: Vec<Mutex<&'a mut P>>,
    /// The parts of each thread, next to each other.
    shares: Vec<Range<usize>>,
    /// How many of each share have been taken in a round; two in turns.
    taken: [Vec<AtomicUsize>; 2],
}

impl<'a, P> Pool<'a, P> {
    /// For `threads` threads at most: one more than there are parts would have nothing to do.
    fn new(parts: &'a mut [P], threads: usize) -> Self {
        let share = parts.len().div_ceil(threads.clamp(1, parts.len().max(1))).max(1);
        let shares: Vec<_> =
            (0..parts.len()).step_by(share).map(|first| first..parts.len().min(first + share)).collect();
        let none_taken = || shares.iter().map(|_| AtomicUsize::new(0)).collect();
        Self { taken: [none_taken(), none_taken()], parts: parts.iter_mut().map(Mutex::new).collect(), shares }
    }

    /// A part that nobody runs yet in this round, and that this thread is to run.
    fn take(&self, round: usize, thread: usize) -> Option<usize> {
        (thread..self.shares.len()).chain(0..thread).find_map(|share| {
            let number = self.shares[share].start + self.taken[round % 2][share].fetch_add(1, Ordering::Relaxed);
            Some(number).filter(|number| *number < self.shares[share].end)
        })
    }

    /// Makes all parts ready to be taken in a round. No thread takes any in that one yet, or still in the round before the one before it.
    fn offer_all(&self, round: usize) {
        self.taken[round % 2].iter().for_each(|taken| taken.store(0, Ordering::Relaxed));
    }

    fn lock(&self, number: usize) -> MutexGuard<'_, &'a mut P> {
        self.parts[number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parts of a thread's share, while none is run.
    fn share(&self, thread: usize) -> Vec<MutexGuard<'_, &'a mut P>> {
        self.shares[thread].clone().map(|number| self.lock(number)).collect()
    }
}

/// What threads share while they run parts that send each other `M`.
struct Exchange<M> {
    meeting: Meeting,
    /// How long threads have waited for each other, added up.
    waited_ns: AtomicU64,
    /// The next window and one, or 0 to stop. Three in turns: one is agreed on while the one before is made ready again.
    next: [AtomicU64; 3],
    /// From each part to each, two in turns: one is filled while the other is read.
    mail: [Vec<Vec<Mutex<M>>>; 2],
    /// What is awaited at a stop, and whether any of it is sure to be still to come behind its window; two in turns.
    awaited: [AtomicI64; 2],
    outlasts: [AtomicBool; 2],
}

impl<M: Default> Exchange<M> {
    fn new(parts: usize, threads: usize) -> Self {
        let row = || (0..parts).map(|_| Mutex::default()).collect();
        let mail = || (0..parts).map(|_| row()).collect();
        Self {
            meeting: Meeting::new(count(threads)),
            waited_ns: AtomicU64::new(0),
            next: [u64::MAX, u64::MAX, u64::MAX].map(AtomicU64::new),
            mail: [mail(), mail()],
            awaited: [const { AtomicI64::new(0) }; 2],
            outlasts: [const { AtomicBool::new(false) }; 2],
        }
    }

    /// Waits for all threads. Returns whether they all came.
    fn meets(&self) -> bool {
        let came = Instant::now();
        let all_came = self.meeting.wait();
        self.waited_ns.fetch_add(u64::try_from(came.elapsed().as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        all_came
    }

    /// Waits for all threads, and says which window is next; `None` if one of them wants to stop, or has panicked.
    fn agree(&self, round: usize, mine: Option<u64>) -> Option<u64> {
        let next = &self.next[round % 3];
        next.fetch_min(mine.map_or(0, |window| window.saturating_add(1)), Ordering::Relaxed);
        if !self.meets() {
            return None;
        }
        self.next[(round + 2) % 3].store(u64::MAX, Ordering::Relaxed);
        next.load(Ordering::Relaxed).checked_sub(1)
    }

    /// What all threads await at the stop with a number, of which `mine` is a thread's; `None` if one has panicked.
    fn all_awaited(&self, stop: usize, mine: i64) -> Option<i64> {
        self.awaited[stop % 2].fetch_add(mine, Ordering::Relaxed);
        self.meets().then(|| self.awaited[stop % 2].load(Ordering::Relaxed))
    }

    /// Whether any thread says so at the stop with a number, behind [`Self::all_awaited`]; `None` if one has panicked.
    fn any_outlasts(&self, stop: usize, mine: bool) -> Option<bool> {
        // Nobody looks at those of the stop before any more, nor at those of the next one yet.
        self.awaited[(stop + 1) % 2].store(0, Ordering::Relaxed);
        self.outlasts[(stop + 1) % 2].store(false, Ordering::Relaxed);
        self.outlasts[stop % 2].fetch_or(mine, Ordering::Relaxed);
        self.meets().then(|| self.outlasts[stop % 2].load(Ordering::Relaxed))
    }
}

/// Runs parts on the thread with a number, until a time and from there on as long as `next` says one.
fn together<P: Part>(
    pool: &Pool<'_, P>,
    thread: usize,
    shared: &P::Shared,
    exchange: &Exchange<P::Mail>,
    (mut from, until): (u64, SimTime),
    look: &mut impl FnMut(WindowProgress) -> bool,
    next: &impl Fn(&Exchange<P::Mail>, (usize, SimTime), &[MutexGuard<'_, &mut P>]) -> Option<SimTime>,
) -> Ran {
    let _member = exchange.meeting.member();
    let (mut ran, mut border) = (Ran { until, ..Ran::default() }, begin::<P>(shared, from));
    let mut first = first_window(&pool.share(thread), shared, from);
    for round in 0.. {
        let window = exchange.agree(round, Some(first).filter(|_| !ran.stopped));
        pool.offer_all(round + 1);
        let take_in = |part: &mut P, number: usize| {
            for row in &exchange.mail[(round + 1) % 2] {
                part.take_in(shared, border, &mut row[number].lock().unwrap_or_else(PoisonError::into_inner));
            }
        };
        let Some(window) = window.filter(|window| begin::<P>(shared, *window) < ran.until) else {
            let mut parts = pool.share(thread);
            for (part, number) in parts.iter_mut().zip(pool.shares[thread].clone()) {
                take_in(part, number);
            }
            let Some(until) = window.and_then(|_| next(exchange, (ran.stops, ran.until), &parts)) else { break };
            ran.stops += 1;
            from = ran.until.0 / P::width(shared);
            (ran.until, border) = (until, begin::<P>(shared, from));
            first = first_window(&parts, shared, from);
            continue;
        };
        (from, first) = (window + 1, u64::MAX);
        while let Some(number) = pool.take(round, thread) {
            let mut part = pool.lock(number);
            take_in(&mut part, number);
            part.run_window(shared, window, ran.until);
            ran.cost.remote_events += send(&mut **part, &exchange.mail[round % 2][number]);
            first = first.min(part.next_window(shared, from).unwrap_or(u64::MAX));
        }
        ran.cost.windows += 1;
        border = begin::<P>(shared, from).min(ran.until);
        if thread == 0 {
            let events = pool.lock(0).events();
            ran.stopped = look(WindowProgress { now: begin::<P>(shared, from), events });
        }
    }
    ran
}

/// The first window from `from` on in which something happens in any of `parts`, or because of what they send; the last there can be without any.
fn first_window<P: Part>(parts: &[MutexGuard<'_, &mut P>], shared: &P::Shared, from: u64) -> u64 {
    parts.iter().filter_map(|part| part.next_window(shared, from)).min().unwrap_or(u64::MAX)
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

    /// Whichever threads are slow, each part is run once in each round.
    #[test]
    fn each_part_is_taken_once_in_a_round() {
        for (count, threads) in [(1, 3), (2, 2), (7, 2), (8, 3), (5, 16)] {
            let mut rounds = vec![0usize; count];
            let pool = Pool::new(&mut rounds, threads);
            let meeting = Meeting::new(u32::try_from(pool.shares.len()).unwrap());
            thread::scope(|scope| {
                for thread in 0..pool.shares.len() {
                    let (pool, meeting) = (&pool, &meeting);
                    scope.spawn(move || {
                        for round in 0..200 {
                            assert!(meeting.wait());
                            pool.offer_all(round + 1);
                            while let Some(number) = pool.take(round, thread) {
                                let mut part = pool.lock(number);
                                assert_eq!(**part, round, "part {number}");
                                **part += 1;
                                if round % 3 == thread {
                                    thread::yield_now();
                                }
                            }
                        }
                    });
                }
            });
            drop(pool);
            assert_eq!(rounds, vec![200; count], "{count} parts on {threads} threads");
        }
    }
}
