//! The sending end of TCP: what is sent when, what ACKs and timers say, and what is sent again.

use super::cubic::AckInfo;
use super::flow::{Ack, Condition, Packet, RateReduction, Segment, TimerKind};
use super::host_queue::RETRY_PS;
use super::{Ethernet, Event};
use crate::kernel::Phase;
use crate::time::SimTime;
use smallvec::SmallVec;

/// The least and the largest retransmission time-out (Linux).
pub(super) const TIMEOUT_MIN_PS: u64 = 200_000_000_000;
const TIMEOUT_MAX_PS: u64 = 120_000_000_000_000;
/// The time-out before a round trip was measured (Linux: 1 s).
const TIMEOUT_INITIAL_PS: u64 = 1_000_000_000_000;
/// What Linux adds to two round trips before it probes the tail.
const PROBE_SLACK_PS: u64 = 2_000_000_000;
/// SACKed segments that make a hole a loss without waiting.
const DUPLICATES: u64 = 3;

impl Ethernet {
    /// Sends of `flow` what may be sent now.
    pub(super) fn try_send(&mut self, now: SimTime, flow: u32) {
        self.restart_after_idle(now, flow);
        let mut blocked_by_window = false;
        loop {
            let sender = &self.flows[flow].sender;
            if sender.segments.is_empty() && sender.next == sender.written {
                return;
            }
            if sender.in_flight() >= sender.cubic.window {
                blocked_by_window = true;
                break;
            }
            let Some(chunk) = self.next_chunk(flow) else { break };
            if !self.small_queue_has_room(now, flow) || !self.send_chunk(now, flow, chunk) {
                break;
            }
        }
        let sender = &mut self.flows[flow].sender;
        let out = sender.segments.len() as u64;
        if sender.unacknowledged >= sender.usage_end
            || blocked_by_window
            || (!sender.window_limited && out > sender.most_in_flight)
        {
            sender.window_limited = blocked_by_window;
            sender.most_in_flight = out;
            sender.usage_end = sender.next;
        }
    }

    /// Linux' slow start after idle, and CUBIC's clock after a pause.
    fn restart_after_idle(&mut self, now: SimTime, flow: u32) {
        let initial = self.config.initial_window.into();
        let sender = &mut self.flows[flow].sender;
        if sender.segments.is_empty() && sender.next < sender.written && sender.next > 0 {
            let idle = now.since_ps(sender.last_sent);
            let timeout = timeout_ps(sender);
            if idle > timeout && self.config.slow_start_after_idle {
                sender.cubic.restart(idle, timeout, initial);
            }
            sender.cubic.resumed(now, idle);
            sender.last_sent = now;
        }
    }

    /// The segment number to send again, or the length of a new segment; `None` if nothing may be sent.
    fn next_chunk(&mut self, flow: u32) -> Option<Chunk> {
        let segment_bytes = self.segment_bytes;
        let sender = &mut self.flows[flow].sender;
        if sender.lost > sender.resent {
            let from = sender.resend_from.max(sender.first_number) - sender.first_number;
            let from = usize::try_from(from).unwrap_or(usize::MAX);
            let waiting = sender.segments.iter().skip(from).position(|segment| segment.lost && !segment.resent);
            if let Some(offset) = waiting {
                sender.resend_from = sender.first_number + (from + offset) as u64;
                return Some(Chunk::Again(from + offset));
            }
        }
        let len = segment_bytes.min(sender.written - sender.next);
        let fits = sender.next + len <= sender.window_end || sender.segments.is_empty();
        (len > 0 && fits).then(|| Chunk::New(u32::try_from(len).unwrap_or(u32::MAX)))
    }

    /// Sends `chunk`. Returns whether the host's queue took it.
    fn send_chunk(&mut self, now: SimTime, flow: u32, chunk: Chunk) -> bool {
        let sent = match chunk {
            Chunk::Again(index) => self.send_again(now, flow, index),
            Chunk::New(len) => self.send_new(now, flow, len),
        };
        if sent {
            self.arm_timer(now, flow);
        }
        sent
    }

    fn send_new(&mut self, now: SimTime, flow: u32, len: u32) -> bool {
        let start = self.flows[flow].sender.next;
        let departure = self.transmit(now, flow, start, len);
        let sender = &mut self.flows[flow].sender;
        let Some(departs) = departure else {
            if sender.segments.is_empty() {
                let wait = timeout_ps(sender).max(TIMEOUT_MIN_PS);
                self.arm_retry(now, flow, wait);
            }
            return false;
        };
        sender.next += u64::from(len);
        sender.segments.push_back(Segment {
            start,
            len,
            sacked: false,
            lost: false,
            resent: false,
            sent_at: now,
            departs,
        });
        if sender.segments.len() == 1 {
            sender.deadline = None;
        }
        true
    }

    /// Sends a segment again, unless it still lies in the host's own queue (Linux: `skb_still_in_host_queue`).
    fn send_again(&mut self, now: SimTime, flow: u32, index: usize) -> bool {
        let Segment { start, len, departs, .. } = self.flows[flow].sender.segments[index];
        if departs > now {
            return false;
        }
        let Some(departs) = self.transmit(now, flow, start, len) else { return false };
        self.resent += 1;
        let sender = &mut self.flows[flow].sender;
        let segment = &mut sender.segments[index];
        if segment.lost && !segment.resent {
            segment.resent = true;
            sender.resent += 1;
        }
        (segment.sent_at, segment.departs) = (now, departs);
        true
    }

    /// Offers a segment to the host's queue: when it leaves, if there is room.
    fn transmit(&mut self, now: SimTime, flow: u32, start: u64, len: u32) -> Option<SimTime> {
        let wire = self.wire_bytes(u64::from(len));
        let entry = &mut self.flows[flow];
        let (path, peer) = (entry.path, entry.peer);
        entry.sender.last_sent = now;
        let push = start + u64::from(len) == entry.sender.written;
        let round_trip = entry.sender.round_trip.smoothed;
        let (ack_flow, ack) = self.ack_to_carry(now, peer);
        let packet =
            Packet { at: path, wire, data_flow: flow, len, start, sent_at: now, round_trip, push, ack_flow, ack };
        self.enqueue_segment(now, packet)
    }

    /// Sets the retransmission timer, or the probe before it.
    fn arm_timer(&mut self, now: SimTime, flow: u32) {
        let sender = &self.flows[flow].sender;
        if sender.segments.is_empty() {
            self.flows[flow].sender.deadline = None;
            return;
        }
        let timeout = timeout_ps(sender).saturating_mul(1 << sender.backoff.min(20)).min(TIMEOUT_MAX_PS);
        let probing = matches!(sender.condition, Condition::Open | Condition::Reduced { .. })
            && sender.sacked == 0
            && !sender.probed
            && sender.round_trip.smoothed > 0;
        let (wait, kind) = if probing {
            let alone = if sender.segments.len() == 1 { TIMEOUT_MIN_PS } else { PROBE_SLACK_PS };
            ((2 * sender.round_trip.smoothed + alone).min(timeout), TimerKind::Probe)
        } else {
            (timeout, TimerKind::Timeout)
        };
        self.set_deadline(flow, now.plus_ps(wait), kind);
    }

    pub(super) fn set_deadline(&mut self, flow: u32, at: SimTime, kind: TimerKind) {
        let place = self.flow_place(flow);
        let sender = &mut self.flows[flow].sender;
        sender.deadline = Some((at, kind));
        // One event at a time looks at the deadline; if that has moved on by then, it looks again.
        if sender.timer_event.is_none_or(|event| event > at) {
            sender.timer_event = Some(at);
            self.queue.schedule(at, Phase::Arrive, place, Event::Timer(flow));
        }
    }

    /// An event looks at the timer of `flow`.
    pub(super) fn timer(&mut self, now: SimTime, flow: u32) {
        let sender = &mut self.flows[flow].sender;
        if sender.timer_event != Some(now) {
            return;
        }
        sender.timer_event = None;
        match sender.deadline {
            None => {}
            Some((at, kind)) if at > now => self.set_deadline(flow, at, kind),
            Some((_, TimerKind::Probe)) => self.probe(now, flow),
            Some((_, TimerKind::Timeout)) => self.time_out(now, flow),
            Some((_, TimerKind::Retry)) => self.retry(now, flow),
            Some((_, TimerKind::Reordering)) => {
                self.detect_losses(now, flow);
                self.arm_timer(now, flow);
                self.try_send(now, flow);
            }
        }
    }

    /// Tail loss probe: something new if there is, else the last segment again.
    fn probe(&mut self, now: SimTime, flow: u32) {
        self.flows[flow].sender.probed = true;
        let last = self.flows[flow].sender.segments.len() - 1;
        let sent = match self.next_chunk(flow) {
            Some(Chunk::New(len)) => self.send_new(now, flow, len),
            _ => self.send_again(now, flow, last),
        };
        self.probes += u64::from(sent);
        self.arm_timer(now, flow);
    }

    fn time_out(&mut self, now: SimTime, flow: u32) {
        self.timeouts += 1;
        let sender = &mut self.flows[flow].sender;
        // One reduction a window: not if the one before is not over.
        let reduced = match sender.condition {
            Condition::Open => false,
            Condition::Reduced { until } | Condition::Recovery { until } => sender.unacknowledged < until,
            Condition::Loss { .. } => sender.backoff > 0,
        };
        if !reduced {
            sender.cubic.lost();
        }
        sender.cubic.timed_out();
        sender.condition = Condition::Loss { until: sender.next };
        sender.lost = 0;
        sender.resent = 0;
        for segment in &mut sender.segments {
            segment.resent = false;
            segment.lost = !segment.sacked;
            sender.lost += u64::from(segment.lost);
        }
        sender.resend_from = sender.first_number;
        let refused = self.refused.segments;
        self.try_send(now, flow);
        if self.refused.segments > refused {
            self.set_deadline(flow, now.plus_ps(RETRY_PS), TimerKind::Timeout);
        } else {
            self.flows[flow].sender.backoff += 1;
            self.arm_timer(now, flow);
        }
    }

    /// Tries again what found no room in the host's queue when nothing was out.
    fn retry(&mut self, now: SimTime, flow: u32) {
        self.try_send(now, flow);
        if self.flows[flow].sender.segments.is_empty() {
            self.arm_retry(now, flow, RETRY_PS);
        }
    }

    /// An ACK for `flow` has come back.
    pub(super) fn acknowledged(&mut self, now: SimTime, flow: u32, ack: &Ack) {
        let sender = &mut self.flows[flow].sender;
        let progress = ack.next > sender.unacknowledged;
        let delivered = strike_acknowledged(sender, ack.next) + mark_sacked(sender, ack);
        sender.unacknowledged = sender.unacknowledged.max(ack.next);
        sender.window_end = sender.window_end.max(ack.next.saturating_add(ack.window));
        if delivered > 0 {
            let sample = now.since_ps(ack.echo);
            sender.round_trip.measure(sample);
        }
        if progress {
            sender.backoff = 0;
            sender.probed = false;
        }
        self.leave_condition(flow);
        if delivered > 0 {
            self.detect_losses(now, flow);
            self.adjust_window(now, flow, delivered, progress);
        }
        let waits_for_reordering =
            matches!(self.flows[flow].sender.deadline, Some((at, TimerKind::Reordering)) if at > now);
        if (progress || delivered > 0) && !waits_for_reordering {
            self.arm_timer(now, flow);
        }
        self.try_send(now, flow);
    }

    /// Ends a recovery when all that was under way at its start is acknowledged.
    fn leave_condition(&mut self, flow: u32) {
        let sender = &mut self.flows[flow].sender;
        match sender.condition {
            Condition::Recovery { until } if sender.unacknowledged >= until => {
                sender.condition = Condition::Open;
                sender.cubic.window = sender.cubic.threshold;
            }
            // Linux waits for something above: what was sent when the window was already reduced.
            Condition::Reduced { until } if sender.unacknowledged > until => {
                sender.condition = Condition::Open;
                sender.cubic.window = sender.cubic.threshold;
            }
            Condition::Loss { until } if sender.unacknowledged >= until => sender.condition = Condition::Open,
            _ => {}
        }
    }

    /// RACK: what was sent before something that has arrived is lost, at once after three SACKed segments or within a
    /// recovery, else after a quarter of the least round trip.
    fn detect_losses(&mut self, now: SimTime, flow: u32) {
        let sender = &mut self.flows[flow].sender;
        let recovers = matches!(sender.condition, Condition::Recovery { .. } | Condition::Loss { .. });
        let patience = if recovers || sender.sacked >= DUPLICATES {
            0
        } else {
            (sender.round_trip.least / 4).min(sender.round_trip.smoothed / 8)
        };
        let mut wait = None;
        let mut newly = 0;
        let first = sender.first_number;
        for (number, segment) in (first..).zip(&mut sender.segments) {
            let before = (segment.sent_at, number) < sender.latest_arrived;
            if !before && segment.sent_at > sender.latest_arrived.0 && !segment.resent {
                break;
            }
            if !before || segment.sacked || (segment.lost && !segment.resent) {
                continue;
            }
            let lost_at = segment.sent_at.plus_ps(sender.round_trip.latest + patience);
            if patience > 0 && lost_at > now {
                wait = Some(wait.map_or(lost_at, |at: SimTime| at.min(lost_at)));
                continue;
            }
            if segment.resent {
                sender.resent -= 1;
                segment.resent = false;
            } else {
                sender.lost += 1;
            }
            segment.lost = true;
            sender.resend_from = sender.resend_from.min(number);
            newly += 1;
        }
        if newly > 0 && !recovers {
            if let Condition::Reduced { until } = sender.condition {
                sender.condition = Condition::Recovery { until };
            } else {
                sender.condition = Condition::Recovery { until: sender.next };
                sender.reduction = RateReduction { prior_window: sender.cubic.window, ..RateReduction::default() };
                sender.cubic.lost();
            }
            self.recoveries += 1;
        }
        if let Some(at) = wait {
            self.set_deadline(flow, at, TimerKind::Reordering);
        } else if let Some((_, TimerKind::Reordering)) = self.flows[flow].sender.deadline {
            self.arm_timer(now, flow);
        }
    }

    /// The congestion window after an ACK that delivered something.
    fn adjust_window(&mut self, now: SimTime, flow: u32, delivered: u64, progress: bool) {
        let pacing_rate = self.pacing_rate(flow);
        let sender = &mut self.flows[flow].sender;
        let info = AckInfo { now, delivered, unacknowledged: sender.unacknowledged, next: sender.next, pacing_rate };
        if let Condition::Recovery { .. } | Condition::Reduced { .. } = sender.condition {
            reduce_rate(sender, delivered);
            return;
        }
        sender.cubic.measured(sender.round_trip.latest / 1_000_000, &info);
        if progress && sender.uses_window() {
            sender.cubic.acknowledged(&info);
        }
    }
}

/// What may be sent next.
enum Chunk {
    /// A lost segment, by its index among those that are out.
    Again(usize),
    /// So many new bytes.
    New(u32),
}

fn timeout_ps(sender: &super::flow::Sender) -> u64 {
    match sender.round_trip.smoothed {
        0 => TIMEOUT_INITIAL_PS,
        smoothed => smoothed + (4 * sender.round_trip.variation).max(TIMEOUT_MIN_PS),
    }
}

/// Strikes out the segments below `next`. Returns how many of them were not known to have arrived.
fn strike_acknowledged(sender: &mut super::flow::Sender, next: u64) -> u64 {
    let mut delivered = 0;
    while let Some(segment) = sender.segments.front() {
        if segment.start + u64::from(segment.len) > next {
            break;
        }
        if segment.sacked {
            sender.sacked -= 1;
        } else {
            delivered += 1;
            sender.latest_arrived = sender.latest_arrived.max((segment.sent_at, sender.first_number));
        }
        sender.lost -= u64::from(segment.lost);
        sender.resent -= u64::from(segment.lost && segment.resent);
        sender.segments.pop_front();
        sender.first_number += 1;
    }
    delivered
}

/// Marks what the ACK's block adds to what is known. Returns how many segments that are.
fn mark_sacked(sender: &mut super::flow::Sender, ack: &Ack) -> u64 {
    if ack.sack_end == 0 {
        return 0;
    }
    let mut delivered = 0;
    for (start, end) in news_of_block(&mut sender.sacked_ranges, ack) {
        let first = sender.segments.partition_point(|segment| segment.start < start);
        for (number, segment) in (sender.first_number..).zip(&mut sender.segments).skip(first) {
            if segment.start + u64::from(segment.len) > end {
                break;
            }
            segment.sacked = true;
            sender.sacked += 1;
            sender.lost -= u64::from(segment.lost);
            sender.resent -= u64::from(segment.lost && segment.resent);
            (segment.lost, segment.resent) = (false, false);
            sender.latest_arrived = sender.latest_arrived.max((segment.sent_at, number));
            delivered += 1;
        }
    }
    delivered
}

/// The parts of the ACK's block that no earlier one has said: mostly one, more where ACKs were lost.
fn news_of_block(known: &mut Vec<(u64, u64)>, ack: &Ack) -> SmallVec<[(u64, u64); 2]> {
    known.drain(..known.partition_point(|range| range.1 <= ack.next));
    let from = known.partition_point(|range| range.1 < ack.sack_start);
    let to = known.partition_point(|range| range.0 <= ack.sack_end);
    let (mut news, mut said, mut end) = (SmallVec::new(), ack.sack_start, ack.sack_end);
    for range in &known[from..to] {
        if range.0 > said {
            news.push((said, range.0));
        }
        (said, end) = (said.max(range.1), end.max(range.1));
    }
    if said < ack.sack_end {
        news.push((said, ack.sack_end));
    }
    let start = known[from..to].first().map_or(ack.sack_start, |range| range.0.min(ack.sack_start));
    known.splice(from..to, [(start, end)]);
    news
}

/// Proportional rate reduction (RFC 6937) with its slow-start bound: the window glides to the threshold.
fn reduce_rate(sender: &mut super::flow::Sender, delivered: u64) {
    let in_flight = sender.in_flight();
    let threshold = sender.cubic.threshold;
    let reduction = &mut sender.reduction;
    reduction.delivered += delivered;
    let quota = if in_flight > threshold {
        let due = (threshold * reduction.delivered).div_ceil(reduction.prior_window.max(1));
        due.saturating_sub(reduction.sent)
    } else {
        let due = reduction.delivered.saturating_sub(reduction.sent).max(delivered);
        due.min(threshold - in_flight)
    };
    let least = u64::from(reduction.sent == 0);
    sender.cubic.window = in_flight + quota.max(least);
}
