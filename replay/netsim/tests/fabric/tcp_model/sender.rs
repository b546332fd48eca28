//! The sending end: what is sent when, and what ACKs and timers say.

use super::receiver::Ack;
use super::{Data, Mistake, Packet, PlainEthernet, What};
use netsim::fabric::ethernet::EthernetConfig;
use netsim::fabric::ethernet::cubic::{AckInfo, Cubic};
use netsim::time::SimTime;

const MS: u64 = 1_000_000_000;
const TIMEOUT_MIN_PS: u64 = 200 * MS;
const TIMEOUT_MAX_PS: u64 = 120_000 * MS;
const TIMEOUT_INITIAL_PS: u64 = 1_000 * MS;
const PROBE_SLACK_PS: u64 = 2 * MS;
const RETRY_PS: u64 = 500 * MS;
const ASSUMED_ROUND_TRIP_PS: u64 = MS;
const BUFFER_OVERHEAD: u64 = 790;
const DUPLICATES: usize = 3;

/// A segment, also one that was acknowledged long ago.
struct Segment {
    start: u64,
    len: u64,
    sent_at: SimTime,
    /// When it has left its host's queue.
    departs: SimTime,
    acknowledged: bool,
    sacked: bool,
    lost: bool,
    resent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Open,
    Reduced { until: u64 },
    Recovery { until: u64 },
    Loss { until: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    Timeout,
    Probe,
    Reordering,
    Retry,
}

enum Chunk {
    Again(usize),
    New(u64),
}

pub struct Sender {
    pub written: u64,
    unacknowledged: u64,
    window_end: u64,
    segments: Vec<Segment>,
    condition: Condition,
    cubic: Cubic,
    /// Since the window began to be reduced: what it was then, and segments that were delivered and sent.
    prior_window: u64,
    reduced_delivered: u64,
    reduced_sent: u64,
    smoothed_ps: u64,
    variation_ps: u64,
    least_ps: u64,
    latest_ps: u64,
    /// Of what has arrived, what was sent last: when, and its number.
    latest_arrived: (SimTime, usize),
    backoff: u32,
    probed: bool,
    last_sent: SimTime,
    window_limited: bool,
    most_in_flight: u64,
    usage_end: u64,
    timer: Option<(SimTime, Timer)>,
    /// The timer is over, and nothing new was set.
    timer_is_over: bool,
    /// What it put into its host's queue: when each leaves, and what it counts there.
    in_host: Vec<(SimTime, u64)>,
    pub waits_for_host: bool,
    probes: bool,
}

impl Sender {
    pub fn new(config: &EthernetConfig, probes: bool) -> Self {
        Self {
            written: 0,
            unacknowledged: 0,
            window_end: config.receive_window.get(),
            segments: Vec::new(),
            condition: Condition::Open,
            cubic: Cubic::new(config.initial_window.into()),
            prior_window: 0,
            reduced_delivered: 0,
            reduced_sent: 0,
            smoothed_ps: 0,
            variation_ps: 0,
            least_ps: 0,
            latest_ps: 0,
            latest_arrived: (SimTime::ZERO, 0),
            backoff: 0,
            probed: false,
            last_sent: SimTime::ZERO,
            window_limited: false,
            most_in_flight: 0,
            usage_end: 0,
            timer: None,
            timer_is_over: false,
            in_host: Vec::new(),
            waits_for_host: false,
            probes,
        }
    }

    /// When its timer is next over.
    pub fn due(&self) -> Option<SimTime> {
        self.timer.filter(|_| !self.timer_is_over).map(|(at, _)| at)
    }

    fn set_timer(&mut self, at: SimTime, timer: Timer) {
        self.timer = Some((at, timer));
        self.timer_is_over = false;
    }

    /// All bytes that were sent at least once.
    fn next(&self) -> u64 {
        self.segments.last().map_or(0, |segment| segment.start + segment.len)
    }

    fn out(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|segment| !segment.acknowledged)
    }

    fn nothing_is_out(&self) -> bool {
        self.out().next().is_none()
    }

    fn sacked(&self) -> usize {
        self.out().filter(|segment| segment.sacked).count()
    }

    /// Segments believed to be in the network.
    fn in_flight(&self) -> u64 {
        self.out().filter(|segment| !segment.sacked && (!segment.lost || segment.resent)).count() as u64
    }

    /// The first lost segment that was not sent again.
    fn to_resend(&self) -> Option<usize> {
        self.segments.iter().position(|segment| !segment.acknowledged && segment.lost && !segment.resent)
    }

    pub fn measure(&mut self, sample: u64) {
        self.latest_ps = sample;
        if self.smoothed_ps == 0 {
            (self.smoothed_ps, self.variation_ps, self.least_ps) = (sample, sample / 2, sample);
        } else {
            let error = self.smoothed_ps.abs_diff(sample);
            self.variation_ps = self.variation_ps - self.variation_ps / 4 + error / 4;
            self.smoothed_ps = self.smoothed_ps - self.smoothed_ps / 8 + sample / 8;
            self.least_ps = self.least_ps.min(sample);
        }
    }

    fn timeout_ps(&self) -> u64 {
        match self.smoothed_ps {
            0 => TIMEOUT_INITIAL_PS,
            smoothed => smoothed + (4 * self.variation_ps).max(TIMEOUT_MIN_PS),
        }
    }

    fn begin_reduction(&mut self, condition: Condition) {
        self.condition = condition;
        (self.prior_window, self.reduced_delivered, self.reduced_sent) = (self.cubic.window, 0, 0);
        self.cubic.lost();
    }

    /// Its host's queue was full.
    pub fn slow_down(&mut self) {
        if self.condition == Condition::Open {
            self.begin_reduction(Condition::Reduced { until: self.next() });
        }
    }

    /// Sets the retransmission timer, or that of the probe before it.
    fn arm(&mut self, now: SimTime) {
        let out = self.out().count();
        if out == 0 {
            self.timer = None;
            return;
        }
        let timeout = self.timeout_ps().saturating_mul(1 << self.backoff.min(20)).min(TIMEOUT_MAX_PS);
        let well = matches!(self.condition, Condition::Open | Condition::Reduced { .. });
        if self.probes && well && self.sacked() == 0 && !self.probed && self.smoothed_ps > 0 {
            let alone = if out == 1 { TIMEOUT_MIN_PS } else { PROBE_SLACK_PS };
            self.set_timer(now.plus_ps((2 * self.smoothed_ps + alone).min(timeout)), Timer::Probe);
        } else {
            self.set_timer(now.plus_ps(timeout), Timer::Timeout);
        }
    }

    /// Takes note of what an ACK says has arrived. Returns how many segments of it are news.
    fn strike_out(&mut self, ack: &Ack) -> u64 {
        let mut news = 0;
        for (number, segment) in self.segments.iter_mut().enumerate().filter(|(_, segment)| !segment.acknowledged) {
            let (start, end) = (segment.start, segment.start + segment.len);
            let in_block = ack.block.is_some_and(|block| block.0 <= start && end <= block.1);
            let is_news = !segment.sacked && (end <= ack.next || in_block);
            segment.acknowledged = end <= ack.next;
            if is_news {
                news += 1;
                self.latest_arrived = self.latest_arrived.max((segment.sent_at, number));
            }
            if in_block && !segment.acknowledged {
                (segment.sacked, segment.lost, segment.resent) = (true, false, false);
            }
        }
        news
    }

    /// Ends a recovery when all that was under way at its start is acknowledged.
    fn leave_condition(&mut self) {
        let (reduces, is_over) = match self.condition {
            Condition::Open => (false, false),
            Condition::Loss { until } => (false, self.unacknowledged >= until),
            Condition::Recovery { until } => (true, self.unacknowledged >= until),
            Condition::Reduced { until } => (true, self.unacknowledged > until),
        };
        if is_over {
            self.condition = Condition::Open;
            if reduces {
                self.cubic.window = self.cubic.threshold;
            }
        }
    }

    /// RACK. Returns whether a recovery begins.
    fn detect_losses(&mut self, now: SimTime, is_patient: bool) -> bool {
        let recovers = matches!(self.condition, Condition::Recovery { .. } | Condition::Loss { .. });
        let patience = if recovers || !is_patient || self.sacked() >= DUPLICATES {
            0
        } else {
            (self.least_ps / 4).min(self.smoothed_ps / 8)
        };
        let (mut waits, mut newly) = (Vec::new(), 0);
        let (latest, latest_ps) = (self.latest_arrived, self.latest_ps);
        for (number, segment) in self.segments.iter_mut().enumerate().filter(|(_, segment)| !segment.acknowledged) {
            let in_flight = !segment.sacked && (!segment.lost || segment.resent);
            if !in_flight || (segment.sent_at, number) >= latest {
                continue;
            }
            let lost_at = segment.sent_at.plus_ps(latest_ps + patience);
            if patience > 0 && lost_at > now {
                waits.push(lost_at);
            } else {
                (segment.lost, segment.resent) = (true, false);
                newly += 1;
            }
        }
        let begins = newly > 0 && !recovers;
        if begins {
            match self.condition {
                Condition::Reduced { until } => self.condition = Condition::Recovery { until },
                _ => self.begin_reduction(Condition::Recovery { until: self.next() }),
            }
        }
        match (waits.into_iter().min(), self.timer) {
            (Some(at), _) => self.set_timer(at, Timer::Reordering),
            (None, Some((_, Timer::Reordering))) => self.arm(now),
            _ => {}
        }
        begins
    }

    /// Proportional rate reduction.
    fn reduce_rate(&mut self, delivered: u64) {
        self.reduced_delivered += delivered;
        let (in_flight, threshold) = (self.in_flight(), self.cubic.threshold);
        let quota = if in_flight > threshold {
            (threshold * self.reduced_delivered).div_ceil(self.prior_window.max(1)).saturating_sub(self.reduced_sent)
        } else {
            let room = self.reduced_delivered.saturating_sub(self.reduced_sent).max(delivered);
            room.min(threshold - in_flight)
        };
        self.cubic.window = in_flight + quota.max(u64::from(self.reduced_sent == 0));
    }
}

impl PlainEthernet {
    /// Sends of a flow what may be sent now.
    pub(super) fn try_send(&mut self, now: SimTime, flow: usize) {
        self.restart_after_idle(now, flow);
        let mut is_blocked = false;
        loop {
            let sender = &self.flows[flow].sender;
            if sender.nothing_is_out() && sender.next() == sender.written {
                return;
            }
            if sender.in_flight() >= sender.cubic.window {
                is_blocked = true;
                break;
            }
            let Some(chunk) = self.next_chunk(flow) else { break };
            if !self.host_has_room(now, flow) {
                break;
            }
            let sent = match chunk {
                Chunk::Again(number) => self.send_again(now, flow, number),
                Chunk::New(len) => self.send_new(now, flow, len),
            };
            if !sent {
                break;
            }
            self.flows[flow].sender.arm(now);
        }
        let sender = &mut self.flows[flow].sender;
        let out = sender.out().count() as u64;
        let is_over = sender.unacknowledged >= sender.usage_end;
        if is_over || is_blocked || (!sender.window_limited && out > sender.most_in_flight) {
            (sender.window_limited, sender.most_in_flight, sender.usage_end) = (is_blocked, out, sender.next());
        }
    }

    fn restart_after_idle(&mut self, now: SimTime, flow: usize) {
        let sender = &mut self.flows[flow].sender;
        if sender.nothing_is_out() && sender.next() < sender.written && sender.next() > 0 {
            let (idle, timeout) = (now.since_ps(sender.last_sent), sender.timeout_ps());
            if idle > timeout && self.config.slow_start_after_idle && self.mistake != Some(Mistake::PauseForgotten) {
                sender.cubic.restart(idle, timeout, self.config.initial_window.into());
            }
            sender.cubic.resumed(now, idle);
            sender.last_sent = now;
        }
    }

    fn next_chunk(&self, flow: usize) -> Option<Chunk> {
        let sender = &self.flows[flow].sender;
        if let Some(number) = sender.to_resend() {
            return Some(Chunk::Again(number));
        }
        let len = self.segment_bytes().min(sender.written - sender.next());
        let fits = sender.next() + len <= sender.window_end || sender.nothing_is_out();
        (len > 0 && fits).then_some(Chunk::New(len))
    }

    /// TCP small queues.
    fn host_has_room(&mut self, now: SimTime, flow: usize) -> bool {
        let least = 2 * (u64::from(self.wire(self.segment_bytes())) + BUFFER_OVERHEAD);
        let limit = (self.pacing_rate(flow) >> 10).max(least).min(self.config.small_queue_max.get());
        let limit = if self.makes(Mistake::SmallQueuesForgotten) { u64::MAX } else { limit };
        let place = self.flow_place(flow);
        let sender = &mut self.flows[flow].sender;
        let ahead: Vec<(SimTime, u64)> = sender.in_host.iter().copied().filter(|(departs, _)| *departs > now).collect();
        if ahead.iter().map(|(_, bytes)| bytes).sum::<u64>() <= limit {
            return true;
        }
        if !sender.waits_for_host {
            sender.waits_for_host = true;
            self.note(ahead[0].0, place, What::LeftHost(flow));
        }
        false
    }

    fn pacing_rate(&self, flow: usize) -> u64 {
        let sender = &self.flows[flow].sender;
        let round_trip_ps = if sender.smoothed_ps == 0 { ASSUMED_ROUND_TRIP_PS } else { sender.smoothed_ps };
        let percent = if sender.cubic.window < sender.cubic.threshold / 2 { 200 } else { 120 };
        let window = sender.cubic.window.max(sender.out().count() as u64);
        window * self.segment_bytes() * percent * 10_000 / (round_trip_ps / 1_000_000).max(1)
    }

    fn send_new(&mut self, now: SimTime, flow: usize, len: u64) -> bool {
        let start = self.flows[flow].sender.next();
        let departs = self.transmit(now, flow, start, len);
        let sender = &mut self.flows[flow].sender;
        let Some(departs) = departs else {
            if sender.nothing_is_out() {
                let wait = sender.timeout_ps().max(TIMEOUT_MIN_PS);
                sender.set_timer(now.plus_ps(wait), Timer::Retry);
            }
            return false;
        };
        let (acknowledged, sacked, lost, resent) = (false, false, false, false);
        sender.segments.push(Segment { start, len, sent_at: now, departs, acknowledged, sacked, lost, resent });
        true
    }

    /// Sends a segment again, unless it still lies in its host's queue.
    fn send_again(&mut self, now: SimTime, flow: usize, number: usize) -> bool {
        let Segment { start, len, departs, .. } = self.flows[flow].sender.segments[number];
        if departs > now {
            return false;
        }
        let Some(departs) = self.transmit(now, flow, start, len) else { return false };
        self.counters.resent += 1;
        let segment = &mut self.flows[flow].sender.segments[number];
        segment.resent |= segment.lost;
        (segment.sent_at, segment.departs) = (now, departs);
        true
    }

    /// Offers a segment to its host's queue. Returns when it leaves; `None` if there is no room.
    fn transmit(&mut self, now: SimTime, flow: usize, start: u64, len: u64) -> Option<SimTime> {
        let wire = self.wire(len);
        let sender = &mut self.flows[flow].sender;
        sender.last_sent = now;
        let data = Data { flow, start, len, round_trip: sender.smoothed_ps, push: start + len == sender.written };
        let ack = self.ack_to_carry(now, self.flows[flow].peer);
        let departs = self.launch(now, Packet { wire, sent_at: now, data: Some(data), ack, hops: 0 });
        let sender = &mut self.flows[flow].sender;
        match departs {
            None => {
                self.counters.refused_segments += 1;
                sender.slow_down();
            }
            Some(departs) => {
                sender.in_host.push((departs, u64::from(wire) + BUFFER_OVERHEAD));
                sender.reduced_sent += 1;
            }
        }
        departs
    }

    pub(super) fn timer(&mut self, now: SimTime, flow: usize) {
        let sender = &mut self.flows[flow].sender;
        sender.timer_is_over = true;
        match sender.timer {
            None => {}
            Some((_, Timer::Probe)) => self.probe(now, flow),
            Some((_, Timer::Timeout)) => self.time_out(now, flow),
            Some((_, Timer::Retry)) => {
                self.try_send(now, flow);
                let sender = &mut self.flows[flow].sender;
                if sender.nothing_is_out() {
                    sender.set_timer(now.plus_ps(RETRY_PS), Timer::Retry);
                }
            }
            Some((_, Timer::Reordering)) => {
                self.find_losses(now, flow);
                self.flows[flow].sender.arm(now);
                self.try_send(now, flow);
            }
        }
    }

    /// Tail loss probe.
    fn probe(&mut self, now: SimTime, flow: usize) {
        self.flows[flow].sender.probed = true;
        let last = self.flows[flow].sender.segments.len() - 1;
        let sent = match self.next_chunk(flow) {
            Some(Chunk::New(len)) => self.send_new(now, flow, len),
            _ => self.send_again(now, flow, last),
        };
        self.counters.probes += u64::from(sent);
        self.flows[flow].sender.arm(now);
    }

    fn time_out(&mut self, now: SimTime, flow: usize) {
        self.counters.timeouts += 1;
        let sender = &mut self.flows[flow].sender;
        let is_reduced = match sender.condition {
            Condition::Open => false,
            Condition::Reduced { until } | Condition::Recovery { until } => sender.unacknowledged < until,
            Condition::Loss { .. } => sender.backoff > 0,
        };
        if !is_reduced {
            sender.cubic.lost();
        }
        sender.cubic.timed_out();
        sender.condition = Condition::Loss { until: sender.next() };
        for segment in sender.segments.iter_mut().filter(|segment| !segment.acknowledged) {
            (segment.lost, segment.resent) = (!segment.sacked, false);
        }
        let refused = self.counters.refused_segments;
        self.try_send(now, flow);
        let sender = &mut self.flows[flow].sender;
        if self.counters.refused_segments > refused {
            sender.set_timer(now.plus_ps(RETRY_PS), Timer::Timeout);
        } else {
            sender.backoff += 1;
            sender.arm(now);
        }
    }

    fn find_losses(&mut self, now: SimTime, flow: usize) {
        let is_patient = !self.makes(Mistake::LostAtOnce);
        self.counters.recoveries += u64::from(self.flows[flow].sender.detect_losses(now, is_patient));
    }

    /// An ACK has come back.
    pub(super) fn acknowledged(&mut self, now: SimTime, flow: usize, ack: &Ack) {
        let sender = &mut self.flows[flow].sender;
        let progress = ack.next > sender.unacknowledged;
        let block = ack.block.filter(|_| self.mistake != Some(Mistake::BlocksForgotten));
        let delivered = sender.strike_out(&Ack { block, ..*ack });
        sender.unacknowledged = sender.unacknowledged.max(ack.next);
        sender.window_end = sender.window_end.max(ack.next + ack.window);
        if delivered > 0 {
            sender.measure(now.since_ps(ack.echo));
        }
        if progress {
            (sender.backoff, sender.probed) = (0, false);
        }
        sender.leave_condition();
        if delivered > 0 {
            self.find_losses(now, flow);
            self.adjust_window(now, flow, delivered, progress);
        }
        let sender = &mut self.flows[flow].sender;
        let waits = matches!(sender.timer, Some((at, Timer::Reordering)) if at > now);
        if (progress || delivered > 0) && !waits {
            sender.arm(now);
        }
        self.try_send(now, flow);
    }

    fn adjust_window(&mut self, now: SimTime, flow: usize, delivered: u64, progress: bool) {
        let pacing_rate = self.pacing_rate(flow);
        let sender = &mut self.flows[flow].sender;
        if matches!(sender.condition, Condition::Recovery { .. } | Condition::Reduced { .. }) {
            sender.reduce_rate(delivered);
            return;
        }
        let (unacknowledged, next) = (sender.unacknowledged, sender.next());
        let info = AckInfo { now, delivered, unacknowledged, next, pacing_rate };
        sender.cubic.measured(sender.latest_ps / 1_000_000, &info);
        let is_used = if sender.cubic.in_slow_start() {
            sender.cubic.window < 2 * sender.most_in_flight
        } else {
            sender.window_limited
        };
        if progress && is_used {
            sender.cubic.acknowledged(&info);
        }
    }
}
