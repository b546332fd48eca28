//! What `CoflowSim` gives for Varys (`SEBF`), its arithmetic included.
//!
//! `CoflowSim` moves bytes tick by tick in floating point and compares what is left of a port's rate, in bit/s, with a thousandth. Rounding leaves
//! more than that of ports that are full, so that coflows count as served that get almost nothing. Its published mean hangs on it; [`Madd`](super::Madd) is
//! the algorithm without that. So here everything is added up in the order in which `CoflowSim` does.

use netsim::time::SimTime;
use netsim::units::{DurationPs, Rate};

use super::{Clock, Completion};
use crate::demand::{Coflow, CoflowError, Workload, bits_per_s};

/// What counts as nothing, of bytes and of bit/s.
const NOTHING: f64 = 1e-3;
/// Sizes are whole numbers of this for each flow.
const MEGABYTE: f64 = 1_048_576.0;
/// What its second has of its milliseconds.
const SECOND: f64 = 1_024.0;
const TICK: DurationPs = DurationPs::from_ms(8);
const EPOCH: DurationPs = DurationPs::from_ms(10_240);
const PS_A_MS: u64 = 1_000_000_000;
/// Its days have 86,400 of its seconds, and no run is longer than one.
const LATEST_MS: u64 = 86_400 * 1_024;

struct Flow {
    from: usize,
    left: f64,
    bit_s: f64,
}

struct Reducer {
    coflow: usize,
    port: usize,
    left: f64,
    /// Flows that are not at their end.
    flows: Vec<usize>,
    is_over: bool,
}

struct State {
    flows: Vec<Flow>,
    /// The reducer of each flow.
    reducer_of: Vec<usize>,
    reducers: Vec<Reducer>,
    jobs: Vec<Job>,
    /// Those that are not complete, the smallest bottleneck first.
    sorted: Vec<usize>,
    /// By receiver the flows that move, in the order in which they do.
    moving: Vec<Vec<usize>>,
    send_free: Vec<f64>,
    receive_free: Vec<f64>,
    port_bit_s: f64,
    tick_ms: u64,
}

struct Job {
    /// Its reducers.
    reducers: std::ops::Range<usize>,
    bottleneck: f64,
    /// A deadline by which those are sorted that share what is left, though none is asked for.
    deadline_ms: f64,
    start_ms: u64,
    end_ms: u64,
    left: usize,
}

/// When each coflow is complete, as `CoflowSim` has it under `SEBF`; a tick of 8 ms and an epoch of 10,240 ms, which are its own, where `clock` has none.
///
/// # Errors
/// If a coflow is not complete after a day.
pub fn coflowsim_sebf(workload: &Workload, rate: Rate, clock: Clock) -> Result<Vec<Completion>, CoflowError> {
    let own = |given: DurationPs, own: DurationPs| if given == DurationPs::ZERO { own } else { given };
    let (tick, epoch) = (own(clock.tick, TICK), own(clock.epoch, EPOCH));
    workload.check(rate, &[("a tick", tick), ("an epoch", epoch)])?;
    let tick_ms = (tick.ps() / PS_A_MS).max(1);
    let epoch_ms = (epoch.ps() / PS_A_MS).max(tick_ms);
    let mut state = State::new(workload, bits_per_s(rate) * SECOND / 1_000.0, tick_ms);
    let mut next = 0;
    let mut begin_ms = 0;
    while next < state.jobs.len() || !state.sorted.is_empty() {
        if begin_ms > LATEST_MS {
            let id = state.sorted.first().map_or_else(String::new, |job| workload.coflows()[*job].id.clone());
            return Err(CoflowError::Endless { id });
        }
        let arrived =
            workload.coflows()[next..].iter().take_while(|one| one.arrival.0 <= (begin_ms + epoch_ms) * PS_A_MS);
        let arrived = next..next + arrived.count();
        next = arrived.end;
        if !arrived.is_empty() {
            arrived.for_each(|job| state.begins(job, begin_ms));
            state.lay_out();
            state.allocate(begin_ms);
        }
        let mut at_ms = begin_ms;
        while at_ms < begin_ms + epoch_ms && !state.sorted.is_empty() {
            if state.moves(at_ms) {
                state.allocate(at_ms);
            }
            at_ms += tick_ms;
        }
        begin_ms += epoch_ms;
    }
    let at = |ms: u64| SimTime(ms * PS_A_MS);
    Ok(state.jobs.iter().map(|job| Completion { start: at(job.start_ms), end: at(job.end_ms) }).collect())
}

#[expect(clippy::cast_precision_loss, reason = "numbers of ports and flows, and milliseconds of days")]
impl State {
    fn new(workload: &Workload, port_bit_s: f64, tick_ms: u64) -> Self {
        let ports = workload.ports();
        let mut state = Self {
            flows: Vec::new(),
            reducer_of: Vec::new(),
            reducers: Vec::new(),
            jobs: Vec::new(),
            sorted: Vec::new(),
            moving: vec![Vec::new(); ports],
            send_free: vec![0.0; ports],
            receive_free: vec![0.0; ports],
            port_bit_s,
            tick_ms,
        };
        let mut random = JavaRandom::new(17);
        for (index, coflow) in workload.coflows().iter().enumerate() {
            state.add(index, coflow, 1.0 + random.next_f64());
        }
        state
    }

    fn add(&mut self, index: usize, coflow: &Coflow, deadline: f64) {
        let ports = self.moving.len();
        let mut is_sender = vec![false; ports];
        let mut bytes = vec![0.0; ports];
        for flow in &coflow.flows {
            is_sender[flow.from.index()] = true;
            bytes[flow.to.index()] += flow.bytes;
        }
        let senders: Vec<usize> = (0..ports).filter(|port| is_sender[*port]).collect();
        let first = self.reducers.len();
        let (mut all, mut most) = (0.0, 0.0_f64);
        for port in (0..ports).filter(|port| bytes[*port] > 0.0) {
            // Rounded up to a whole number of megabytes a flow, but for what dividing and adding up has made of whole ones.
            let each = ((bytes[port] / senders.len() as f64 / MEGABYTE - 1e-9).ceil()).max(1.0) * MEGABYTE;
            let left = each * senders.len() as f64;
            all += left;
            most = most.max(left);
            let flows: Vec<usize> = (self.flows.len()..self.flows.len() + senders.len()).collect();
            self.flows.extend(senders.iter().map(|from| Flow { from: *from, left: each, bit_s: 0.0 }));
            self.reducer_of.extend(flows.iter().map(|_| self.reducers.len()));
            self.reducers.push(Reducer { coflow: index, port, left, flows, is_over: false });
        }
        let bottleneck = most.max(all / senders.len() as f64);
        let deadline_ms = bottleneck / (self.port_bit_s / 8.0) * deadline * 1_000.0;
        let reducers = first..self.reducers.len();
        let left = reducers.len();
        self.jobs.push(Job { reducers, bottleneck, deadline_ms, start_ms: 0, end_ms: 0, left });
    }

    fn begins(&mut self, job: usize, now_ms: u64) {
        self.jobs[job].start_ms = now_ms;
        let bottleneck = self.jobs[job].bottleneck;
        let place = self.sorted.iter().position(|other| bottleneck < self.jobs[*other].bottleneck);
        self.sorted.insert(place.unwrap_or(self.sorted.len()), job);
    }

    /// Reducers of coflows that are not complete, coflow by coflow.
    fn of(&self, jobs: &[usize]) -> Vec<usize> {
        jobs.iter().flat_map(|job| self.jobs[*job].reducers.clone()).collect()
    }

    fn lay_out(&mut self) {
        self.moving.iter_mut().for_each(Vec::clear);
        for reducer in self.of(&self.sorted) {
            let Reducer { port, ref flows, is_over, .. } = self.reducers[reducer];
            if !is_over {
                self.moving[port].extend(flows);
            }
        }
    }

    /// Seconds that a coflow needs with what is free; none where a port that it needs is full.
    fn time(&self, job: usize) -> Option<f64> {
        let ports = self.moving.len();
        let (mut sends, mut receives) = (vec![0.0; ports], vec![0.0; ports]);
        for reducer in &self.reducers[self.jobs[job].reducers.clone()] {
            receives[reducer.port] = reducer.left;
            for flow in &reducer.flows {
                sends[self.flows[*flow].from] += self.flows[*flow].left;
            }
        }
        let mut most = 0.0_f64;
        for (bytes, free) in [(&sends, &self.send_free), (&receives, &self.receive_free)] {
            for (bytes, free) in bytes.iter().zip(free) {
                if *bytes > 0.0 && *free <= NOTHING {
                    return None;
                }
                // Where nothing is free and nothing needed that is no number, and not the most.
                most = most.max(bytes * 8.0 / free);
            }
        }
        Some(most)
    }

    fn allocate(&mut self, now_ms: u64) {
        let ports = self.moving.len();
        (self.send_free, self.receive_free) = (vec![self.port_bit_s; ports], vec![self.port_bit_s; ports]);
        let mut skipped = Vec::new();
        for job in self.sorted.clone() {
            for reducer in self.jobs[job].reducers.clone() {
                for flow in &self.reducers[reducer].flows {
                    self.flows[*flow].bit_s = 0.0;
                }
            }
            match self.time(job) {
                Some(seconds) => self.pace(job, seconds),
                None => skipped.push(job),
            }
        }
        self.share(&skipped);
        self.fill(now_ms);
    }

    fn take(&mut self, sends: &[f64], receives: &[f64]) {
        self.send_free.iter_mut().zip(sends).for_each(|(free, used)| *free -= used);
        self.receive_free.iter_mut().zip(receives).for_each(|(free, used)| *free -= used);
    }

    /// All flows of a coflow end together in `seconds`.
    fn pace(&mut self, job: usize, seconds: f64) {
        let ports = self.moving.len();
        let (mut sends, mut receives) = (vec![0.0; ports], vec![0.0; ports]);
        for reducer in &self.reducers[self.jobs[job].reducers.clone()] {
            let free = self.receive_free[reducer.port];
            if free <= NOTHING {
                continue;
            }
            for number in &reducer.flows {
                let flow = &mut self.flows[*number];
                let mut bit_s = flow.left * 8.0 / seconds;
                if bit_s > self.send_free[flow.from] || bit_s > free {
                    bit_s = self.send_free[flow.from].min(free);
                }
                flow.bit_s = bit_s;
                sends[flow.from] += bit_s;
                receives[reducer.port] += bit_s;
            }
        }
        self.take(&sends, &receives);
    }

    /// Coflows that can not go on everywhere share evenly.
    fn share(&mut self, jobs: &[usize]) {
        let ports = self.moving.len();
        let (mut senders, mut receivers) = (vec![0_u32; ports], vec![0_u32; ports]);
        let reducers = self.of(jobs);
        let is_free = |free: f64| free > NOTHING;
        for reducer in reducers.iter().map(|reducer| &self.reducers[*reducer]) {
            let flows = reducer.flows.iter().map(|flow| self.flows[*flow].from);
            for from in flows.filter(|from| is_free(self.receive_free[reducer.port]) && is_free(self.send_free[*from]))
            {
                senders[from] += 1;
                receivers[reducer.port] += 1;
            }
        }
        let (mut sends, mut receives) = (vec![0.0; ports], vec![0.0; ports]);
        for reducer in reducers.iter().map(|reducer| &self.reducers[*reducer]) {
            let (port, free) = (reducer.port, self.receive_free[reducer.port]);
            for number in reducer.flows.iter().filter(|_| is_free(free) && receivers[port] > 0) {
                let flow = &mut self.flows[*number];
                let from = flow.from;
                if !is_free(self.send_free[from]) || senders[from] == 0 {
                    continue;
                }
                let least = (self.send_free[from] / f64::from(senders[from])).min(free / f64::from(receivers[port]));
                flow.bit_s = if is_free(least) { least } else { 0.0 };
                sends[from] += flow.bit_s;
                receives[port] += flow.bit_s;
            }
        }
        self.take(&sends, &receives);
    }

    /// What is left goes to the coflows with the least time left, flow by flow.
    fn fill(&mut self, now_ms: u64) {
        #[expect(clippy::cast_possible_truncation, reason = "a cast saturates, as Java's does")]
        let time_left = |job: &usize| {
            let job = &self.jobs[*job];
            (job.start_ms as f64 + job.deadline_ms - now_ms as f64) as i32
        };
        let mut by_deadline = self.sorted.clone();
        by_deadline.sort_by_key(time_left);
        for reducer in self.of(&by_deadline) {
            let port = self.reducers[reducer].port;
            if self.receive_free[port] <= NOTHING {
                continue;
            }
            for number in &self.reducers[reducer].flows {
                let flow = &mut self.flows[*number];
                let least = self.send_free[flow.from].min(self.receive_free[port]);
                let least = if least <= NOTHING { 0.0 } else { least };
                flow.bit_s += least;
                self.send_free[flow.from] -= least;
                self.receive_free[port] -= least;
            }
        }
    }

    /// Bytes move for a tick. Returns whether a coflow is complete.
    fn moves(&mut self, now_ms: u64) -> bool {
        let part = self.tick_ms as f64 / SECOND;
        let before = self.sorted.len();
        for port in 0..self.moving.len() {
            let mut moved = 0.0;
            let mut over = Vec::new();
            for place in 0..self.moving[port].len() {
                let number = self.moving[port][place];
                if moved >= self.port_bit_s / 8.0 {
                    break;
                }
                let flow = &mut self.flows[number];
                let bytes = (flow.bit_s / 8.0 * part).min(flow.left);
                flow.left -= bytes;
                let reducer = &mut self.reducers[self.reducer_of[number]];
                if flow.left <= NOTHING {
                    reducer.flows.retain(|other| *other != number);
                    over.push(number);
                }
                moved += bytes;
                reducer.left -= bytes;
                if (reducer.left <= NOTHING || reducer.flows.is_empty()) && !reducer.is_over {
                    (reducer.is_over, reducer.left) = (true, 0.0);
                    let index = reducer.coflow;
                    let job = &mut self.jobs[index];
                    job.left -= 1;
                    job.end_ms = now_ms + self.tick_ms;
                    if job.left == 0 {
                        self.sorted.retain(|other| *other != index);
                    }
                }
            }
            if !over.is_empty() {
                self.moving[port].retain(|flow| !over.contains(flow));
            }
        }
        self.sorted.len() < before
    }
}

/// Java's `Random`: a linear congruential generator of 48 bits.
struct JavaRandom(u64);

impl JavaRandom {
    const FACTOR: u64 = 0x5_DEEC_E66D;

    const fn new(seed: u64) -> Self {
        Self(seed ^ Self::FACTOR)
    }

    fn next(&mut self, bits: u32) -> u64 {
        self.0 = (self.0.wrapping_mul(Self::FACTOR).wrapping_add(11)) & ((1 << 48) - 1);
        self.0 >> (48 - bits)
    }

    /// From 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "of 53 bits")]
    fn next_f64(&mut self) -> f64 {
        let (high, low) = (self.next(26), self.next(27));
        ((high << 27) + low) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::float_cmp)]

    use super::JavaRandom;

    #[test]
    fn random_numbers_are_javas() {
        // `new Random(42).nextDouble()` of any Java.
        let mut random = JavaRandom::new(42);
        assert_eq!(random.next_f64(), 0.727_563_680_032_868_1);
        assert_eq!(random.next_f64(), 0.683_223_471_759_845_4);
    }
}
