//! Lets sources and a fabric take turns until what counts has arrived.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::background::{BACKGROUND, is_background};
use super::bursts::Burst;
use super::losing::FullQueue;
use super::options::RunOptions;
use super::sources::{Admission, Injection};
use super::steps::Settling;
use super::{Plan, Sources};
use crate::engine::{self, Workload};
use crate::fabric::packet::{Message, PacketFabric};
use crate::network::{Delivery, NetworkFigures, Token};
use crate::statistics::Meter;
use crate::time::SimTime;

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: SimTime,
    /// The end of the measurement.
    pub until: SimTime,
    /// Events of the kernel so far.
    pub events: u64,
}

/// What a run leaves beside what the meter has counted.
#[derive(Clone, Debug, Default)]
pub struct Raw {
    /// When it ended.
    pub end: SimTime,
    /// Whether it was stopped before its end.
    pub stopped: bool,
    /// The network's figures at its end.
    pub figures: NetworkFigures,
    /// Virtual lanes of each link.
    pub lanes: u32,
    /// Bytes that crossed each lane of each link in the measurement, flits filled up; empty without a measurement.
    pub lane_bytes: Vec<u64>,
    /// How long 0, 1, ... packets lay in the queue at the end of each lane of each link in the measurement, in a unit of the fabric; empty
    /// where that was not counted.
    pub occupancy: Vec<Vec<u64>>,
    /// From when until when packets counted, in picoseconds.
    pub measured_ps: (u64, u64),
    /// Whether the network had settled when the measurement began; `None` where it was not looked at.
    pub settled: Option<bool>,
    /// The bursts that are over.
    pub bursts: Vec<Burst>,
}

/// Progress is told no more often.
pub(super) const TELL: Duration = Duration::from_millis(100);

/// A run looks up this often in its measurement. Behind it, it looks as often whether all that counts has arrived, and ends if so.
const LOOKS: u64 = 256;
/// With bursts and questions it looks no more often than each microsecond whether the last packets of one were lost.
const MIN_BURST_LOOK_PS: u64 = 1_000_000;

impl Plan {
    /// The time between two looks.
    pub(crate) fn look_ps(&self) -> u64 {
        if let (Some(plan), Some(_)) = (self.ping_pong, self.count) {
            // What a host's questions take its link, and their answers to come, or longer.
            let link_ps = self.link.rate.time_ps(self.wire_bytes.saturating_mul(plan.window.into()));
            let noise_ps = plan.noise.map_or(0, |noise| noise.mean.ps());
            return link_ps.saturating_add(plan.turnaround_ps).saturating_add(noise_ps).max(MIN_BURST_LOOK_PS);
        }
        if let Some(bursts) = self.bursts {
            // What a burst takes a host's link, or longer.
            let bytes = self.wire_bytes.saturating_mul(bursts.messages);
            return self.link.rate.time_ps(bytes).max(MIN_BURST_LOOK_PS);
        }
        (self.steps.measurement_ps / LOOKS).max(1)
    }

    /// The meter of a run.
    pub(super) fn meter(&self, options: RunOptions) -> Meter {
        let mut meter = Meter::new(self, options.keep);
        if let Some(length_ps) = self.steps.evolution_ps {
            meter.count_evolution(length_ps);
        }
        if options.pairs {
            meter.count_pairs();
        }
        if self.ping_pong.is_some() {
            meter.keep_lost();
        }
        match (self.steps.convergence, self.steps.batches) {
            (Some((interval_ps, ..)), _) => meter.count_steps(SimTime(self.steps.warm_up_ps), interval_ps),
            (None, Some((_, batch_ps))) => meter.count_steps(SimTime(self.from_ps), batch_ps),
            (None, None) => {}
        }
        meter
    }

    /// Has `meter` measure from `from` on.
    pub(super) fn begin_measurement(&self, meter: &mut Meter, from: SimTime) -> SimTime {
        let until = SimTime(from.0.saturating_add(self.steps.measurement_ps));
        meter.measure(from, until);
        if let Some((_, batch_ps)) = self.steps.batches {
            meter.count_steps(from, batch_ps);
        }
        until
    }

    /// The end of the measurement as far as it is known, for progress.
    pub(super) fn foreseen(&self) -> SimTime {
        SimTime(self.until_ps.min(self.end_ps))
    }
}

/// Hosts hand nothing over while more than a share of the network's buffers is taken.
struct NetworkLimit {
    share: f64,
    /// How often hosts are told, in picoseconds; 0: always.
    every_ps: u64,
    next: SimTime,
    /// What they were told last: whether it is above the limit.
    above: bool,
}

impl NetworkLimit {
    /// Tells hosts what lies in `fabric` at `now`, if it is time to.
    fn look<F: PacketFabric<Meter>>(&mut self, now: SimTime, fabric: &F) {
        if now < self.next {
            return;
        }
        let (taken, room) = fabric.occupancy().unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "numbers of packets are far below 2^53")]
        let above = taken as f64 > self.share * room as f64;
        self.above = above;
        if let Some(periods) = now.0.checked_div(self.every_ps) {
            self.next = SimTime((periods + 1).saturating_mul(self.every_ps));
        }
    }
}

/// Sources that send, and what is looked at meanwhile.
struct Traffic<'a, 's, P, const REACTS: bool> {
    sources: &'a mut Sources<'s>,
    /// What is sent beside them, and not measured.
    background: Option<&'a mut Sources<'s>>,
    stop: &'a AtomicBool,
    progress: P,
    plan: &'a Plan,
    from: SimTime,
    until: SimTime,
    end: SimTime,
    /// Waits until the measurement can begin.
    settling: Option<Settling>,
    settled: Option<bool>,
    limit: Option<NetworkLimit>,
    /// Looks are no further apart, while something happens.
    slice_ps: u64,
    now: SimTime,
    began: bool,
    /// The first look later than `now`: reckoning it takes long.
    next_look: SimTime,
    looked: SimTime,
    reported_at: Instant,
    /// Bytes of each lane when the measurement began, and when it ended.
    before: Option<Lanes>,
    after: Option<Lanes>,
    stopped: bool,
    done: bool,
}

/// What was counted of lanes until an instant.
struct Lanes {
    bytes: Vec<u64>,
    occupancy: Vec<Vec<u64>>,
}

impl Lanes {
    fn of<F: PacketFabric<Meter>>(fabric: &F, now: SimTime) -> Self {
        Self { bytes: fabric.lane_bytes(now), occupancy: fabric.occupancy_times(now) }
    }
}

/// Whether the host of `message` takes it; `above`: whether nobody hands anything over.
fn room<F: PacketFabric<Meter>>(fabric: &F, plan: &Plan, above: bool, message: &Message) -> Admission {
    if above {
        return Admission::Wait;
    }
    match (plan.injection_queue, plan.full_queue) {
        // A host that waits holds one message, whichever queue that waits for.
        (Some(most), full) if fabric.is_full(message, most, full == FullQueue::Wait) == Some(true) => match full {
            FullQueue::Wait => Admission::Wait,
            FullQueue::Drop => Admission::Drop,
        },
        _ => Admission::Free,
    }
}

impl<P: FnMut(Progress), const REACTS: bool> Traffic<'_, '_, P, REACTS> {
    /// The first look later than `at`. Looks are counted from the end of the measurement.
    fn look_after(&self, at: SimTime) -> SimTime {
        let steps = at.since_ps(self.until) / self.slice_ps + 1;
        match self.until.0.checked_sub(at.0) {
            Some(before) if before > 0 => SimTime(self.until.0 - (before - 1) / self.slice_ps * self.slice_ps),
            _ => self.until.plus_ps(steps.saturating_mul(self.slice_ps)),
        }
    }

    /// Whether `now` is a look at which the run may end.
    const fn is_look(&self, now: SimTime) -> bool {
        now.0 >= self.until.0 && (now.0 - self.until.0).is_multiple_of(self.slice_ps)
    }

    /// Tells how far it is, now and then. Returns whether it is to stop.
    fn look(&mut self, events: impl FnOnce() -> u64) -> bool {
        if self.now.since_ps(self.looked) < self.slice_ps {
            return false;
        }
        self.looked = self.now;
        if self.reported_at.elapsed() >= TELL {
            let until = self.until.min(self.plan.foreseen());
            (self.progress)(Progress { now: self.now, until, events: events() });
            self.reported_at = Instant::now();
        }
        self.stop.load(Ordering::Relaxed)
    }

    /// Looks whether the network has settled, if it is time to; then the measurement begins.
    fn settle(&mut self, now: SimTime, meter: &mut Meter) {
        let Some(settling) = self.settling.as_mut().filter(|settling| settling.next() == now) else { return };
        let steps = meter.steps();
        let Some(settled) = settling.look(|index| steps.map(|steps| steps.get(index)).unwrap_or_default()) else {
            return;
        };
        (self.settling, self.settled) = (None, Some(settled));
        self.from = now;
        self.until = self.plan.begin_measurement(meter, now);
        self.next_look = SimTime::ZERO;
        self.end = SimTime(self.until.0.saturating_add(self.plan.steps.drain_ps));
    }

    /// Hands over all whose time is `now`.
    fn hand_over<F: PacketFabric<Meter>>(&mut self, now: SimTime, fabric: &mut F) {
        let above = self.limit.as_ref().is_some_and(|limit| limit.above);
        let plan = self.plan;
        while let Some(fate) = self.sources.next_at(now, |message| room(fabric, plan, above, message)) {
            match fate {
                Injection::HandedOver(message) => {
                    fabric.observer().handed_over(now, &message);
                    fabric.send(now, &message);
                }
                Injection::Refused(message) => fabric.observer().refused(now, &message),
            }
        }
        let Some(background) = &mut self.background else { return };
        // What finds no room is not measured either.
        while let Some(fate) = background.next_at(now, |message| room(fabric, plan, above, message)) {
            if let Injection::HandedOver(message) = fate {
                fabric.send(now, &Message { token: Token(message.token.0 | BACKGROUND), ..message });
            }
        }
    }
}

impl<F: PacketFabric<Meter>, P: FnMut(Progress), const R: bool> Workload<F> for Traffic<'_, '_, P, R> {
    const REACTS: bool = R;

    fn next_tick(&self, fabric: &F) -> Option<SimTime> {
        if !self.began {
            return Some(SimTime::ZERO);
        }
        // The next look; from one look the first behind the next event, for until then nothing changes.
        let look = match self.is_look(self.now) {
            true => self.look_after(self.now.max(fabric.next_event().unwrap_or(SimTime::MAX))),
            false => self.next_look,
        };
        let look = look.min(self.end);
        let next_limit = self.limit.as_ref().map_or(self.now, |limit| limit.next);
        let settling = self.settling.as_ref().map_or(self.now, Settling::next);
        let edges = [self.from, self.until, next_limit, settling].into_iter().filter(|edge| *edge > self.now);
        let background = self.background.as_ref().and_then(|background| background.next_time());
        edges.chain(self.sources.next_time()).chain(background).chain([look]).min()
    }

    fn tick(&mut self, now: SimTime, fabric: &mut F) {
        (self.now, self.began) = (now, true);
        self.settle(now, fabric.observer());
        if now >= self.next_look {
            self.next_look = self.look_after(now);
        }
        if now >= self.from && self.before.is_none() {
            self.before = Some(Lanes::of(fabric, now));
        }
        if now >= self.until && self.after.is_none() {
            self.after = Some(Lanes::of(fabric, now));
        }
        if now >= self.end || (self.is_look(now) && fabric.observer().outstanding() == 0) {
            self.done = true;
            return;
        }
        if let Some(limit) = &mut self.limit {
            limit.look(now, &*fabric);
        }
        self.sources.hear_of_losses(now, fabric.observer());
        self.hand_over(now, fabric);
        self.sources.look(now, fabric.observer());
        if self.sources.is_done() {
            self.done = true;
            return;
        }
        if now >= self.until && self.sources.next_time().is_none() && fabric.next_event().is_none() {
            self.done = true;
            return;
        }
        self.stopped = self.look(|| fabric.events());
        self.done = self.stopped;
    }

    fn delivered(&mut self, delivery: &Delivery, fabric: &mut F) {
        if is_background(delivery.token) {
            return;
        }
        self.sources.delivered(delivery.at, delivery.token, fabric.observer());
        self.sources.look(delivery.at, fabric.observer());
        if self.sources.answer_at_once() {
            self.hand_over(delivery.at, fabric);
        }
        self.done |= self.sources.is_done();
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

/// Runs until every packet of `sources` that counts has arrived, with a `background` beside them, but no longer than the plan says. `stop`
/// ends it sooner; `progress` is called now and then.
pub fn drive<'a, F: PacketFabric<Meter>>(
    fabric: &mut F,
    plan: &Plan,
    sources: &mut Sources<'a>,
    background: Option<&mut Sources<'a>>,
    stop: &AtomicBool,
    progress: impl FnMut(Progress),
) -> Raw {
    if plan.react.is_some() || plan.bursts.is_some() || plan.ping_pong.is_some() {
        drive_with::<F, true>(fabric, plan, (sources, background), stop, progress)
    } else {
        drive_with::<F, false>(fabric, plan, (sources, background), stop, progress)
    }
}

/// The same, with or without a look at what is delivered.
fn drive_with<'a, F: PacketFabric<Meter>, const REACTS: bool>(
    fabric: &mut F,
    plan: &Plan,
    (sources, background): (&mut Sources<'a>, Option<&mut Sources<'a>>),
    stop: &AtomicBool,
    progress: impl FnMut(Progress),
) -> Raw {
    let mut traffic = Traffic::<_, REACTS> {
        sources,
        background,
        stop,
        progress,
        plan,
        settling: Settling::new(&plan.steps),
        settled: None,
        from: SimTime(plan.from_ps),
        until: SimTime(plan.until_ps),
        end: SimTime(plan.end_ps),
        limit: plan.network_limit.map(|(share, every_ps)| NetworkLimit {
            share,
            every_ps,
            next: SimTime::ZERO,
            above: false,
        }),
        slice_ps: plan.look_ps(),
        now: SimTime::ZERO,
        began: false,
        next_look: SimTime::ZERO,
        looked: SimTime::ZERO,
        reported_at: Instant::now(),
        before: None,
        after: None,
        stopped: false,
        done: false,
    };
    engine::run(fabric, &mut traffic, SimTime::MAX);
    let Traffic { now, from, until, settling, settled, stopped, before, after, .. } = traffic;
    let bursts = sources.bursts().map(<[Burst]>::to_vec);
    // Bursts, and so many questions, are measured until the last one is over.
    let ends_itself = bursts.is_some() || (plan.ping_pong.is_some() && plan.count.is_some());
    let last_burst = bursts.as_ref().and_then(|bursts| bursts.last()).map(|last| SimTime(last.until_ps));
    let last_answer = Some(fabric.observer().last_end()).filter(|_| ends_itself && bursts.is_none());
    let end = [last_burst, last_answer].into_iter().flatten().fold(now, SimTime::max);
    let until = if ends_itself { end } else { until };
    let last = after.unwrap_or_else(|| Lanes::of(fabric, if ends_itself { end } else { now }));
    let (lane_bytes, occupancy) = match before {
        Some(before) => (
            last.bytes.iter().zip(&before.bytes).map(|(last, before)| last.saturating_sub(*before)).collect(),
            last.occupancy.iter().zip(&before.occupancy).map(|(last, before)| without(last, before)).collect(),
        ),
        None => (Vec::new(), Vec::new()),
    };
    // Stopped before the network had settled: nothing was measured.
    let (from, until) = if settling.is_some() { (end, end) } else { (from, until) };
    Raw {
        end,
        stopped,
        figures: fabric.figures(),
        lanes: fabric.lanes(),
        lane_bytes,
        occupancy,
        measured_ps: (from.0, until.0),
        settled,
        bursts: bursts.unwrap_or_default(),
    }
}

/// What of `last` has come since `before`.
fn without(last: &[u64], before: &[u64]) -> Vec<u64> {
    let before = before.iter().copied().chain(std::iter::repeat(0));
    last.iter().zip(before).map(|(last, before)| last.saturating_sub(before)).collect()
}
