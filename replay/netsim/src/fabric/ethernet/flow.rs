//! What the two ends of a flow remember, and the packets between them.

use super::cubic::Cubic;
use crate::fabric::pipe::Pipe;
use crate::network::Token;
use crate::time::SimTime;
use std::collections::VecDeque;

/// No flow, no packet, the end of a path.
pub const NONE: u32 = u32::MAX;

/// A packet on its way: bytes of one flow, an acknowledgement of another, or both.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Where in the table of paths its present link stands.
    pub at: u32,
    /// Bytes on the wire.
    pub wire: u32,
    /// The flow whose bytes it carries, or [`NONE`].
    pub data_flow: u32,
    /// How many of its bytes.
    pub len: u32,
    /// The first of them.
    pub start: u64,
    /// When it was sent; an acknowledgement echoes it.
    pub sent_at: SimTime,
    /// What its sender took for the round trip then, picoseconds; of its data only.
    pub round_trip: u64,
    /// Whether it ends what the sender had to send (TCP's PSH).
    pub push: bool,
    /// The flow that it acknowledges, or [`NONE`].
    pub ack_flow: u32,
    /// What it says about that.
    pub ack: Ack,
}

impl Packet {
    /// The flow on whose way it is, and whether that is the way of its ACKs. In parts no packet has data of one flow and an ACK of another.
    pub const fn flow(&self) -> (u32, bool) {
        if self.data_flow == NONE { (self.ack_flow, true) } else { (self.data_flow, false) }
    }
}

/// What a receiver reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// All bytes below have arrived.
    pub next: u64,
    /// A block beyond has arrived (SACK); empty if `sack_end` is 0.
    pub sack_start: u64,
    /// Its end.
    pub sack_end: u64,
    /// Bytes beyond `next` that the receiver would take.
    pub window: u64,
    /// When the segment that caused this report was sent.
    pub echo: SimTime,
}

/// A segment that was sent and is not yet acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub start: u64,
    pub len: u32,
    pub sacked: bool,
    pub lost: bool,
    pub resent: bool,
    pub sent_at: SimTime,
    /// When it has left the host's own queue.
    pub departs: SimTime,
}

/// Where the sender stands in the handling of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// All is well.
    Open,
    /// The host's own queue was full (Linux: `TCP_CA_CWR`); until more than `until` is acknowledged the window follows
    /// proportional rate reduction.
    Reduced { until: u64 },
    /// Losses were reported; until `until` is acknowledged the window follows proportional rate reduction.
    Recovery { until: u64 },
    /// Time ran out; until `until` is acknowledged the sender is in slow start over what is left.
    Loss { until: u64 },
}

/// Proportional rate reduction: what was delivered and sent since the recovery began, in segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateReduction {
    pub prior_window: u64,
    pub delivered: u64,
    pub sent: u64,
}

/// A round-trip time estimate, in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrip {
    pub smoothed: u64,
    pub variation: u64,
    pub least: u64,
    pub latest: u64,
}

impl RoundTrip {
    /// Takes a measured round trip into the estimate (RFC 6298's weights).
    pub fn measure(&mut self, sample: u64) {
        self.latest = sample;
        if self.smoothed == 0 {
            (self.smoothed, self.variation, self.least) = (sample, sample / 2, sample);
            return;
        }
        self.variation = self.variation - self.variation / 4 + self.smoothed.abs_diff(sample) / 4;
        self.smoothed = self.smoothed - self.smoothed / 8 + sample / 8;
        self.least = self.least.min(sample);
    }
}

/// What hosts' own queues had no room for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refused {
    /// Segments of data, each time that one was tried.
    pub segments: u64,
    /// ACKs without data.
    pub acks: u64,
}

/// The sending end.
pub struct Sender {
    pub written: u64,
    pub unacknowledged: u64,
    pub next: u64,
    pub window_end: u64,
    pub segments: VecDeque<Segment>,
    /// The number of the first segment of `segments`, counted from the flow's start.
    pub first_number: u64,
    /// No segment with a lower number waits to be sent again.
    pub resend_from: u64,
    pub sacked: u64,
    /// What ACKs' blocks have said, as disjoint ranges in order.
    pub sacked_ranges: Vec<(u64, u64)>,
    pub lost: u64,
    pub resent: u64,
    pub condition: Condition,
    pub reduction: RateReduction,
    pub cubic: Cubic,
    pub round_trip: RoundTrip,
    /// Sending time and number of the segment that was sent last among those known to have arrived.
    pub latest_arrived: (SimTime, u64),
    pub backoff: u32,
    pub probed: bool,
    pub last_sent: SimTime,
    /// Whether the congestion window was what held the sender back, and the most segments in flight, since `usage_end`
    /// was sent.
    pub window_limited: bool,
    pub most_in_flight: u64,
    pub usage_end: u64,
    /// The deadline of the timer, and the instant at which an event looks at it.
    pub deadline: Option<(SimTime, TimerKind)>,
    pub timer_event: Option<SimTime>,
    /// Departures from the own NIC's queue that lie ahead, with truesizes.
    pub in_nic: VecDeque<(SimTime, u32)>,
    pub in_nic_bytes: u64,
    pub nic_event: bool,
}

/// What a sender's timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKind {
    /// Retransmission time-out.
    Timeout,
    /// Tail loss probe.
    Probe,
    /// The reordering window of RACK ends.
    Reordering,
    /// Nothing is out, and the next segment found no room in the host's queue.
    Retry,
}

/// The receiving end.
pub struct Receiver {
    pub next: u64,
    /// What has arrived beyond, as disjoint ranges in order.
    pub beyond: Vec<(u64, u64)>,
    /// What was acknowledged last.
    pub reported: u64,
    /// ACKs that are still sent at once (quick ACK).
    pub quick: u32,
    /// Whether this end answers what it gets: then ACKs wait to travel with the answer (Linux' pingpong mode).
    pub interactive: bool,
    pub last_arrival: SimTime,
    /// When a delayed ACK has to leave, and whether an event looks at it.
    pub ack_by: Option<SimTime>,
    pub ack_event: Option<SimTime>,
    pub echo: SimTime,
    pub newest: u64,
    /// The receive window in bytes, and what its growth goes by: bytes and start of the present round.
    pub window: u64,
    pub round_start: SimTime,
    pub round_from: u64,
    /// Where messages end, and their names.
    pub marks: VecDeque<(u64, Token)>,
}

/// One direction of a connection.
pub struct TcpFlow {
    /// Where its path and that of its ACKs stand in the table of paths.
    pub path: u32,
    pub ack_path: u32,
    /// The other direction, or [`NONE`].
    pub peer: u32,
    /// `Some` for traffic of a host to itself, which crosses no link.
    pub loopback: Option<Pipe>,
    pub sender: Sender,
    pub receiver: Receiver,
}

impl Sender {
    /// A new sender, with the receiver's first window.
    pub fn new(initial_window: u64, receive_window: u64) -> Self {
        Self {
            written: 0,
            unacknowledged: 0,
            next: 0,
            window_end: receive_window,
            segments: VecDeque::new(),
            first_number: 0,
            resend_from: 0,
            sacked: 0,
            sacked_ranges: Vec::new(),
            lost: 0,
            resent: 0,
            condition: Condition::Open,
            reduction: RateReduction::default(),
            cubic: Cubic::new(initial_window),
            round_trip: RoundTrip::default(),
            latest_arrived: (SimTime::ZERO, 0),
            backoff: 0,
            probed: false,
            last_sent: SimTime::ZERO,
            window_limited: false,
            most_in_flight: 0,
            usage_end: 0,
            deadline: None,
            timer_event: None,
            in_nic: VecDeque::new(),
            in_nic_bytes: 0,
            nic_event: false,
        }
    }

    /// Segments believed to be in the network.
    pub fn in_flight(&self) -> u64 {
        self.segments.len() as u64 + self.resent - self.sacked - self.lost
    }

    /// Whether the window may grow: only if it was used (in slow start: more than half of it).
    pub fn uses_window(&self) -> bool {
        if self.cubic.in_slow_start() { self.cubic.window < 2 * self.most_in_flight } else { self.window_limited }
    }
}

impl Receiver {
    /// A new receiver that announces `window` bytes.
    pub fn new(window: u64, quick: u32) -> Self {
        Self {
            next: 0,
            beyond: Vec::new(),
            reported: 0,
            quick,
            interactive: false,
            last_arrival: SimTime::ZERO,
            ack_by: None,
            ack_event: None,
            echo: SimTime::ZERO,
            newest: 0,
            window,
            round_start: SimTime::ZERO,
            round_from: 0,
            marks: VecDeque::new(),
        }
    }

    /// Takes the bytes `start..end`. Returns whether they were news.
    pub fn take(&mut self, start: u64, end: u64) -> bool {
        if end <= self.next {
            return false;
        }
        if start <= self.next {
            self.next = end;
            let filled = self.beyond.iter().take_while(|range| range.0 <= self.next).count();
            for (_, range_end) in self.beyond.drain(..filled) {
                self.next = self.next.max(range_end);
            }
            return true;
        }
        let index = self.beyond.partition_point(|range| range.1 < start);
        let mut merged = (start, end);
        let mut overlapping = index;
        while let Some(range) = self.beyond.get(overlapping).filter(|range| range.0 <= merged.1) {
            if range.0 <= start && end <= range.1 {
                return false;
            }
            merged = (merged.0.min(range.0), merged.1.max(range.1));
            overlapping += 1;
        }
        self.beyond.splice(index..overlapping, [merged]);
        true
    }

    /// The block beyond the gap that holds `byte`.
    pub fn block_with(&self, byte: u64) -> Option<(u64, u64)> {
        self.beyond.iter().copied().find(|range| range.0 <= byte && byte < range.1)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_receiver_knows_exactly_what_has_arrived(segments in prop::collection::vec((0u64..60, 1u64..8), 0..60)) {
            let mut receiver = Receiver::new(1, 0);
            let mut there = [false; 80];
            for (start, len) in segments {
                let range = usize::try_from(start).unwrap()..usize::try_from(start + len).unwrap();
                let news = there[range.clone()].iter().any(|byte| !byte);
                prop_assert_eq!(receiver.take(start, start + len), news);
                there[range].fill(true);
                let next = there.iter().position(|byte| !byte).unwrap() as u64;
                prop_assert_eq!(receiver.next, next);
                for byte in next..80 {
                    prop_assert_eq!(receiver.block_with(byte).is_some(), there[usize::try_from(byte).unwrap()]);
                }
            }
        }
    }

    #[test]
    fn round_trips_are_smoothed() {
        let mut estimate = RoundTrip::default();
        estimate.measure(800);
        assert_eq!((estimate.smoothed, estimate.variation), (800, 400));
        estimate.measure(1_600);
        assert_eq!((estimate.smoothed, estimate.variation, estimate.least), (900, 500, 800));
    }
}
