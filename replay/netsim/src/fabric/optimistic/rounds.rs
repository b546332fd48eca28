//! Parts on threads: batches of events, then GVT, again and again until a time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use std::{panic, thread};

use super::model::Model;
use super::options::{LOOKAHEADS_AHEAD, OptimisticCost, OptimisticOptions};
use super::part::{Mail, Part};
use crate::cost::thread_cpu_s;
use crate::count::count;
use crate::fabric::windows::{Meeting, WindowProgress, WindowsCost};
use crate::time::SimTime;

/// How parts are run, and how far they are.
pub(in crate::fabric) struct Rounds {
    options: OptimisticOptions,
    /// How far ahead of GVT a part may run, in picoseconds.
    ahead_ps: u64,
    /// The least time from one part to another, and how far inputs are run at once.
    lookahead_ps: u64,
    /// Threads for all parts, at most.
    pub most: usize,
    /// Whatever is earlier is sure.
    gvt: SimTime,
    pub cost: WindowsCost,
    rounds: u64,
}

/// One run of the parts of a thread.
#[derive(Clone, Copy)]
struct Span {
    from: SimTime,
    until: SimTime,
    gvt_interval: u32,
    batch: u32,
    ahead_ps: u64,
    lookahead_ps: u64,
}

/// What a thread did until a time.
#[derive(Default)]
struct Ran {
    /// Whether it was told to stop.
    stopped: bool,
    rounds: u64,
    barrier_wait_s: f64,
}

impl Rounds {
    /// At time 0, on as many threads as there are cores; `lookahead_ps`: the least time from one part to another.
    pub fn new(options: OptimisticOptions, lookahead_ps: u64) -> Self {
        let ahead_ps = options.ahead_ps.unwrap_or(lookahead_ps.saturating_mul(LOOKAHEADS_AHEAD)).max(1);
        let most = thread::available_parallelism().map_or(1, usize::from);
        Self { options, ahead_ps, lookahead_ps, most, gvt: SimTime::ZERO, cost: WindowsCost::default(), rounds: 0 }
    }

    /// Runs `parts` until `until`, that instant not included; then all that is earlier is sure, and nothing later was run. `look` is called
    /// whenever GVT is known; when it returns true, the run stops soon after, where `look` was called last. Returns whether it did: it cannot be gone on
    /// with.
    pub fn run_before<M: Model>(
        &mut self,
        parts: &mut [Part<M>],
        shared: &M::Shared,
        until: SimTime,
        mut look: impl FnMut(WindowProgress) -> bool,
    ) -> bool {
        let OptimisticOptions { gvt_interval, batch, .. } = self.options;
        let span = Span {
            from: self.gvt,
            until,
            gvt_interval: gvt_interval.max(1),
            batch: batch.max(1),
            ahead_ps: self.ahead_ps,
            lookahead_ps: self.lookahead_ps,
        };
        self.gvt = until;
        parts.iter_mut().for_each(|part| part.model.begin(shared, until));
        let of_a_thread = parts.len().div_ceil(self.most.clamp(1, parts.len().max(1))).max(1);
        let exchange = Exchange::new(parts.len(), parts.len().div_ceil(of_a_thread));
        let (mine, others) = parts.split_at_mut(of_a_thread.min(parts.len()));
        thread::scope(|scope| {
            let groups = (1..).zip(others.chunks_mut(of_a_thread)).map(|(group, parts)| {
                let exchange = &exchange;
                scope.spawn(move || {
                    let ran = together(parts, group * of_a_thread, shared, exchange, span, &mut |_| false);
                    (ran.barrier_wait_s, thread_cpu_s())
                })
            });
            let groups: Vec<_> = groups.collect();
            let ran = together(mine, 0, shared, &exchange, span, &mut look);
            self.cost.threads = groups.len() + 1;
            self.cost.barrier_wait_s += ran.barrier_wait_s;
            self.rounds += ran.rounds;
            for group in groups {
                let (barrier_wait_s, cpu_s) = group.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked));
                self.cost.barrier_wait_s += barrier_wait_s;
                self.cost.others_cpu_s += cpu_s;
            }
            ran.stopped
        })
    }

    /// What it has taken so far.
    pub fn optimistic_cost<M: Model>(&self, parts: &[Part<M>]) -> OptimisticCost {
        let mut cost = OptimisticCost {
            gvt_interval: self.options.gvt_interval,
            batch: self.options.batch,
            ahead_ps: self.ahead_ps,
            gvt_rounds: self.rounds,
            ..OptimisticCost::default()
        };
        parts.iter().for_each(|part| cost.add(part.cost()));
        cost
    }
}

/// What threads share while they run parts.
struct Exchange<E, N> {
    meeting: Meeting,
    /// The earliest time at which something may still happen. Three in turns: one is agreed on while the one before is made ready again.
    earliest: [AtomicU64; 3],
    /// Whether a thread wants to stop. Once it does, it wants to until the end.
    stop: [AtomicBool; 3],
    /// What each part has been sent and has not fetched.
    mailboxes: Vec<Mutex<Mail<E, N>>>,
}

impl<E, N> Exchange<E, N> {
    fn new(parts: usize, threads: usize) -> Self {
        Self {
            meeting: Meeting::new(count(threads)),
            earliest: [u64::MAX, u64::MAX, u64::MAX].map(AtomicU64::new),
            stop: [false, false, false].map(AtomicBool::new),
            mailboxes: std::iter::repeat_with(Mutex::default).take(parts).collect(),
        }
    }

    fn mailbox(&self, part: usize) -> MutexGuard<'_, Mail<E, N>> {
        self.mailboxes[part].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings what is in `outbox` to the parts that it is for.
    fn post(&self, outbox: &mut [Mail<E, N>]) {
        for (part, mail) in outbox.iter_mut().enumerate().filter(|(_, mail)| !mail.is_empty()) {
            self.mailbox(part).append(mail);
        }
    }

    /// The earliest time of all threads, of which `mine` is one, and whether one of them wants to stop; `None` if one has panicked.
    fn agree(&self, round: usize, mine: SimTime, stop: bool) -> Option<(SimTime, bool)> {
        let turn = round % 3;
        self.earliest[turn].fetch_min(mine.0, Ordering::Relaxed);
        if stop {
            self.stop[turn].store(true, Ordering::Relaxed);
        }
        if !self.meeting.wait() {
            return None;
        }
        self.earliest[(round + 2) % 3].store(u64::MAX, Ordering::Relaxed);
        Some((SimTime(self.earliest[turn].load(Ordering::Relaxed)), self.stop[turn].load(Ordering::Relaxed)))
    }
}

/// Runs the parts of one thread, of which the first has the number `first`.
fn together<M: Model>(
    parts: &mut [Part<M>],
    first: usize,
    shared: &M::Shared,
    exchange: &Exchange<M::Event, M::Note>,
    mut span: Span,
    look: &mut impl FnMut(WindowProgress) -> bool,
) -> Ran {
    let _member = exchange.meeting.member();
    let (mut ran, mut gvt) = (Ran::default(), span.from);
    for round in 0.. {
        let horizon = gvt.plus_ps(span.ahead_ps).min(span.until);
        run_batches(parts, first, shared, exchange, span, horizon);
        let came = Instant::now();
        let all = exchange.meeting.wait();
        // All that was sent is in a mailbox, or was fetched: nothing is under way while GVT is computed.
        let mut earliest = SimTime::MAX;
        for (number, part) in (first..).zip(&mut *parts) {
            part.inbox.append(&mut exchange.mailbox(number));
            earliest = part.earliest().map_or(earliest, |at| at.min(earliest));
        }
        let agreed = if all { exchange.agree(round, earliest, ran.stopped) } else { None };
        ran.barrier_wait_s += came.elapsed().as_secs_f64();
        let Some((next, stop)) = agreed else { break };
        if stop {
            // No part has run anything that is later, so that all of it can be told of that time.
            span.until = span.until.min(horizon.plus_ps(span.lookahead_ps));
            parts.iter_mut().for_each(|part| part.model.shorten(span.until));
        }
        gvt = next.min(span.until);
        parts.iter_mut().for_each(|part| part.collect_fossils(shared, gvt));
        ran.rounds += 1;
        let events = parts.first().map_or(0, |part| part.model.events());
        ran.stopped |= look(WindowProgress { now: gvt, events });
        if gvt >= span.until {
            break;
        }
    }
    ran
}

/// Runs batches of the parts of one thread in turn, until GVT has to be computed, or nothing is left that is earlier than `horizon`.
fn run_batches<M: Model>(
    parts: &mut [Part<M>],
    first: usize,
    shared: &M::Shared,
    exchange: &Exchange<M::Event, M::Note>,
    span: Span,
    horizon: SimTime,
) {
    for _ in 0..span.gvt_interval {
        let mut busy = false;
        for (number, part) in (first..).zip(&mut *parts) {
            part.inbox.append(&mut exchange.mailbox(number));
            part.receive(shared);
            busy |= part.run_batch(shared, span.batch, horizon);
            exchange.post(&mut part.outbox);
        }
        if !busy {
            break;
        }
    }
}
