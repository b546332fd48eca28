//! A host's own queue: what TCP puts into it, and what happens when it is full.
//!
//! As in Linux 6, a segment that finds no room (`NET_XMIT_DROP`) is not lost: it counts as not sent, the congestion
//! window is reduced once a round trip (`tcp_enter_cwr`), and the segment is tried again with the next ACK or timer. An
//! ACK that carries no data and finds no room is lost; the ACKs after it say more than it did.

use super::flow::{Condition, NONE, Packet, RateReduction, TimerKind};
use super::{Ethernet, Event};
use crate::kernel::Phase;
use crate::time::SimTime;

/// After how long Linux tries again what found no room when a timer sent it (`TCP_RESOURCE_PROBE_INTERVAL`).
pub(super) const RETRY_PS: u64 = 500_000_000_000;
/// The round trip that Linux assumes for its pacing rate before it has measured one.
const ASSUMED_ROUND_TRIP_PS: u64 = 1_000_000_000;
/// Bookkeeping that Linux charges for a segment's buffer beyond its bytes on the wire (2,304 for 1,514).
const BUFFER_OVERHEAD: u32 = 790;

impl Ethernet {
    /// Puts a segment into its host's queue. Returns when it leaves; `None` if there is no room, and then it counts as
    /// not sent.
    pub(super) fn enqueue_segment(&mut self, now: SimTime, packet: Packet) -> Option<SimTime> {
        let flow = packet.data_flow;
        let Some(departure) = self.launch(now, packet) else {
            self.refused.segments += 1;
            self.reduce_window(flow);
            return None;
        };
        let charged = packet.wire + BUFFER_OVERHEAD;
        let sender = &mut self.flows[flow].sender;
        sender.in_nic.push_back((departure, charged));
        sender.in_nic_bytes += u64::from(charged);
        sender.reduction.sent += 1;
        Some(departure)
    }

    /// Puts an ACK without data into its host's queue; without room it is lost, and the sending half of the connection
    /// slows down.
    pub(super) fn enqueue_ack(&mut self, now: SimTime, packet: Packet) {
        if self.launch(now, packet).is_some() {
            return;
        }
        self.refused.acks += 1;
        let peer = self.flows[packet.ack_flow].peer;
        if peer != NONE {
            self.reduce_window(peer);
        }
    }

    /// Linux' `tcp_enter_cwr`: the window glides to a new threshold until what is out now is acknowledged.
    fn reduce_window(&mut self, flow: u32) {
        let sender = &mut self.flows[flow].sender;
        if sender.condition == Condition::Open {
            sender.condition = Condition::Reduced { until: sender.next };
            sender.reduction = RateReduction { prior_window: sender.cubic.window, ..RateReduction::default() };
            sender.cubic.lost();
        }
    }

    /// Whether TCP small queues let `flow` put another segment into its host's queue; if not, the flow is called when
    /// they will.
    pub(super) fn small_queue_has_room(&mut self, now: SimTime, flow: u32) -> bool {
        let limit = self.small_queue_limit(flow);
        let sender = &mut self.flows[flow].sender;
        while let Some((departure, bytes)) = sender.in_nic.front() {
            if *departure > now {
                break;
            }
            sender.in_nic_bytes -= u64::from(*bytes);
            sender.in_nic.pop_front();
        }
        if sender.in_nic_bytes <= limit {
            return true;
        }
        if let (false, Some((departure, _))) = (sender.nic_event, sender.in_nic.front()) {
            sender.nic_event = true;
            let departure = *departure;
            self.queue.schedule(departure, Phase::Arrive, self.flow_place(flow), Event::NicSent(flow));
        }
        false
    }

    /// TCP small queues: how many bytes of buffers a flow may have in its own host's queue. Linux: what it sends in a
    /// millisecond at its pacing rate, at least two segments.
    fn small_queue_limit(&self, flow: u32) -> u64 {
        let least = 2 * u64::from(self.wire_bytes(self.segment_bytes) + BUFFER_OVERHEAD);
        (self.pacing_rate(flow) >> 10).max(least).min(self.config.small_queue_max.get())
    }

    /// Bytes a second that Linux would pace at: a window a round trip, times 2 in slow start and 1.2 after it.
    pub(super) fn pacing_rate(&self, flow: u32) -> u64 {
        let sender = &self.flows[flow].sender;
        let round_trip_us = match sender.round_trip.smoothed {
            0 => ASSUMED_ROUND_TRIP_PS,
            smoothed => smoothed,
        } / 1_000_000;
        let percent = if sender.cubic.window < sender.cubic.threshold / 2 { 200 } else { 120 };
        let window = sender.cubic.window.max(sender.segments.len() as u64);
        window * self.segment_bytes * percent * 10_000 / round_trip_us.max(1)
    }

    /// Nothing of `flow` is out and its next segment found no room: no ACK will come, so a timer tries again.
    pub(super) fn arm_retry(&mut self, now: SimTime, flow: u32, wait_ps: u64) {
        self.set_deadline(flow, now.plus_ps(wait_ps), TimerKind::Retry);
    }
}
