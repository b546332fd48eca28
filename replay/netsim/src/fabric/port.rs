//! An output port: a finite first-in first-out queue in front of a link.
//!
//! A packet's departure is certain as soon as it is accepted, for nothing overtakes it. So it costs one event (its
//! arrival at the other end), and the queue is a list of departures, from which those that are over are struck out when
//! somebody looks.

use crate::fabric::figures::LinkMeter;
use crate::time::SimTime;
use crate::topology::Link;
use crate::units::{Buffer, Rate};
use std::collections::VecDeque;

/// One direction of a cable with the queue in front of it: two cache lines, of which a wire that is free needs the first.
#[repr(C, align(64))]
pub struct Port {
    rate: Rate,
    delay_ps: u64,
    /// The time that the token bucket's size takes at the rate; 0 for a wire.
    burst_ps: u64,
    /// A wire: when it falls free. A bucket: `burst_ps` after the instant at which the tokens come (or came) to be 0.
    free_ps: u64,
    /// What the packets up to then left of a picosecond.
    remainder: u64,
    pub(super) meter: LinkMeter,
    limit: QueueLimit,
    /// Starts of transmission, with the packets' bytes; those that lie behind are struck out when the link is busy.
    waiting: VecDeque<(SimTime, u32)>,
    waiting_bytes: u64,
}

const _: () = assert!(size_of::<Port>() == 128, "a port is two cache lines");

/// What a queue holds at most, in eight bytes.
#[derive(Clone, Copy)]
struct QueueLimit(u64);

impl QueueLimit {
    const STRICT: u64 = 1 << 63;
    const IN_BYTES: u64 = 1 << 62;
    const NUMBER: u64 = Self::IN_BYTES - 1;

    const fn new(buffer: Buffer, strict: bool) -> Self {
        let bits = match buffer {
            Buffer::Packets(most) => most as u64,
            Buffer::Bytes(most) if most < Self::NUMBER => most | Self::IN_BYTES,
            Buffer::Bytes(_) | Buffer::Unlimited => Self::NUMBER | Self::IN_BYTES,
        };
        Self(if strict { bits | Self::STRICT } else { bits })
    }

    /// Whether what is larger than the whole buffer is dropped when the link is busy, rather than let in alone.
    const fn is_strict(self) -> bool {
        self.0 & Self::STRICT != 0
    }

    /// Whether there is room for `more` bytes beside `packets` packets of `bytes` together.
    const fn has_room(self, packets: usize, bytes: u64, more: u32) -> bool {
        let most = self.0 & Self::NUMBER;
        if self.0 & Self::IN_BYTES == 0 { (packets as u64) < most } else { bytes + more as u64 <= most }
    }
}

/// An accepted packet's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Its first bit leaves.
    pub started: SimTime,
    /// Its last bit has left.
    pub sent: SimTime,
    /// Its last bit is at the other end.
    pub arrives: SimTime,
}

impl Port {
    /// The port in front of `link`; `extra_ps` is added to its propagation delay.
    #[must_use]
    pub fn new(link: Link, extra_ps: u64) -> Self {
        Self {
            rate: link.rate,
            delay_ps: link.delay_ps.saturating_add(extra_ps),
            limit: QueueLimit::new(link.buffer, false),
            burst_ps: if link.burst_bytes > 0 { link.rate.time_ps(link.burst_bytes) } else { 0 },
            free_ps: 0,
            remainder: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            meter: LinkMeter::default(),
        }
    }

    /// As [`Port::new`], but with no room at all for a packet that is larger than the whole buffer, unless the link is
    /// free. (TCP at a host's own port needs room for one.)
    #[must_use]
    pub fn strict(link: Link, extra_ps: u64) -> Self {
        Self { limit: QueueLimit::new(link.buffer, true), ..Self::new(link, extra_ps) }
    }

    /// When all that it has taken so far has left.
    #[inline]
    #[must_use]
    pub const fn free(&self) -> SimTime {
        SimTime(self.free_ps)
    }

    /// When the first packet begins to leave of those that wait, if any of them is known to.
    #[inline]
    #[must_use]
    pub fn next_start(&self) -> Option<SimTime> {
        self.waiting.front().map(|(start, _)| *start)
    }

    /// From the offer of a packet of `bytes` to its arrival, picoseconds, when the link is free or its bucket full.
    #[must_use]
    pub fn idle_ps(&self, bytes: u32) -> u64 {
        let wire_ps = if self.burst_ps > 0 { 0 } else { self.rate.time_ps(bytes.into()) };
        self.delay_ps.saturating_add(wire_ps)
    }

    /// Sends a packet of `bytes` that was offered at `now`, whatever waits: a host's queue, which is kept elsewhere.
    #[inline]
    pub fn send(&mut self, now: SimTime, bytes: u32, interval_ps: u64) -> Passage {
        let (start, sent) = self.take(now, bytes);
        self.meter.crossed(SimTime(start), u64::from(bytes), interval_ps);
        self.passage(start, sent)
    }

    #[inline]
    fn passage(&self, start: u64, sent: u64) -> Passage {
        Passage { started: SimTime(start), sent: SimTime(sent), arrives: SimTime(sent).plus_ps(self.delay_ps) }
    }

    /// Strikes out what has begun to leave by `now`.
    #[inline]
    fn strike_out(&mut self, now: SimTime) {
        while let Some((start, bytes)) = self.waiting.front() {
            if *start > now {
                break;
            }
            self.waiting_bytes -= u64::from(*bytes);
            self.waiting.pop_front();
        }
    }

    /// Whether a packet of `bytes` would be accepted at `now`.
    #[inline]
    pub fn has_room(&mut self, now: SimTime, bytes: u32) -> bool {
        // Free, and nothing waits; a bucket's may wait for tokens of which it has some again.
        if self.free_ps <= now.0 {
            return true;
        }
        self.strike_out(now);
        (self.waiting.is_empty() && !self.limit.is_strict())
            || self.limit.has_room(self.waiting.len(), self.waiting_bytes, bytes)
    }

    /// Bytes of packets that have begun to leave before `now`.
    #[must_use]
    pub fn begun_bytes(&self, now: SimTime) -> u64 {
        let waiting = self.waiting.iter().rev().take_while(|(start, _)| *start >= now);
        self.meter.bytes() - waiting.map(|(_, bytes)| u64::from(*bytes)).sum::<u64>()
    }

    /// Offers a packet of `bytes` at `now`: its times, or `None` if it is dropped.
    #[inline]
    pub fn offer(&mut self, now: SimTime, bytes: u32, interval_ps: u64) -> Option<Passage> {
        if !self.has_room(now, bytes) {
            self.meter.dropped(now, interval_ps);
            return None;
        }
        let (start, sent) = self.take(now, bytes);
        if start > now.0 {
            self.waiting.push_back((SimTime(start), bytes));
            self.waiting_bytes += u64::from(bytes);
            self.meter.queued(now, self.waiting_bytes, interval_ps);
        }
        self.meter.crossed(SimTime(start), u64::from(bytes), interval_ps);
        Some(self.passage(start, sent))
    }

    /// Takes the link for a packet of `bytes` from `now` on, as soon as it is free: when its first and last bit leave.
    #[inline]
    fn take(&mut self, now: SimTime, bytes: u32) -> (u64, u64) {
        if self.free_ps < now.0 {
            self.remainder = 0;
        }
        let time = self.rate.next_time_ps(bytes, &mut self.remainder);
        let free_at = self.free_ps.max(now.0);
        self.free_ps = free_at.saturating_add(time);
        if self.burst_ps == 0 {
            return (free_at, self.free_ps);
        }
        let start = free_at.saturating_sub(self.burst_ps).max(now.0);
        (start, start)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::topology::NodeId;

    fn port(buffer: Buffer, burst_bytes: u64) -> Port {
        let link = Link {
            from: NodeId(0),
            to: NodeId(1),
            rate: Rate::from_bps(8_000_000_000),
            delay_ps: 500,
            buffer,
            burst_bytes,
            absent: false,
        };
        Port::new(link, 0)
    }

    #[test]
    fn a_wire_sends_one_after_the_other() {
        let mut port = port(Buffer::Unlimited, 0);
        let passages: Vec<_> = (0..3).map(|_| port.offer(SimTime(0), 100, 1).unwrap()).collect();
        assert_eq!(passages.iter().map(|p| p.sent.0).collect::<Vec<_>>(), [100_000, 200_000, 300_000]);
        assert_eq!(passages[0].arrives, SimTime(100_500));
        assert_eq!(port.offer(SimTime(900_000), 100, 1).unwrap().sent, SimTime(1_000_000));
    }

    #[test]
    fn a_full_buffer_drops_and_the_packet_on_the_wire_is_not_in_it() {
        let mut port = port(Buffer::Packets(2), 0);
        assert!((0..3).all(|_| port.offer(SimTime(0), 100, 1).is_some()));
        assert_eq!(port.offer(SimTime(99_999), 100, 1), None);
        assert!(port.offer(SimTime(100_000), 100, 1).is_some());
        assert_eq!(port.meter.drops(), 1);
        assert_eq!(port.meter.figures("p", Rate::UNLIMITED).queue_max_bytes, 200);
    }

    #[test]
    fn a_byte_buffer_counts_bytes() {
        let mut port = port(Buffer::Bytes(250), 0);
        assert!((0..3).all(|_| port.offer(SimTime(0), 100, 1).is_some()));
        assert_eq!(port.offer(SimTime(0), 100, 1), None);
        assert!(port.offer(SimTime(0), 50, 1).is_some());
    }

    #[test]
    fn a_packet_larger_than_the_buffer_gets_in_whenever_nothing_waits() {
        let mut port = port(Buffer::Bytes(50), 0);
        assert!(port.offer(SimTime(0), 100, 1).is_some() && port.offer(SimTime(10), 100, 1).is_some());
        assert_eq!(port.offer(SimTime(99_999), 100, 1), None);
        // The second one has begun to leave.
        assert!(port.offer(SimTime(150_000), 100, 1).is_some());
    }

    #[test]
    fn a_token_bucket_lets_its_burst_pass_at_once_and_then_keeps_the_rate() {
        let mut port = port(Buffer::Unlimited, 250);
        let sent: Vec<u64> = (0..6).map(|_| port.offer(SimTime(0), 100, 1).unwrap().sent.0).collect();
        // 250 bytes of tokens: packets pass while there is any (0, 100, 200 spent), the fourth when 50 are paid back.
        assert_eq!(sent, [0, 0, 0, 50_000, 150_000, 250_000]);
    }

    #[test]
    fn an_idle_port_takes_as_long_as_it_says() {
        for burst_bytes in [0, 250] {
            let mut port = port(Buffer::Unlimited, burst_bytes);
            assert_eq!(port.idle_ps(100), port.offer(SimTime(0), 100, 1).unwrap().arrives.0);
        }
    }
}
