//! Packets that wait until it is known whether they are Hadoop's.
//!
//! A process that opens a port becomes known a moment later: dumpingd tells it then or after its next scan, JVMs write in batches. What
//! ran over that port meanwhile is held here and recorded afterwards, so that no connection lacks its beginning.

use std::collections::VecDeque;
use std::mem::size_of;

use trace::packet::Packet;

/// Bounds of what is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldRule {
    /// How long a packet waits, nanoseconds.
    pub longest_ns: u64,
    /// Memory for all of an interface's waiting packets, bytes.
    pub most_bytes: usize,
}

/// Holds packets.
#[derive(Debug)]
pub struct PendingPackets {
    rule: HoldRule,
    packets: VecDeque<Waiting>,
    bytes: usize,
}

/// A packet that waits, and the beginning of its frame where that is wanted.
#[derive(Clone, Debug)]
struct Waiting {
    since_ns: u64,
    packet: Packet,
    frame: Vec<u8>,
}

impl Waiting {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.packet.payload.capacity() + self.frame.capacity()
    }
}

/// What became of packets that were held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// They waited as long as any does, and nobody claimed them.
    pub unfollowed: u64,
    /// They had to make room earlier than that.
    pub undecided: u64,
    /// When the first of the undecided was seen, nanoseconds since the epoch.
    pub first_undecided_ns: u64,
}

impl PendingPackets {
    /// Nothing yet.
    #[must_use]
    pub fn new(rule: HoldRule) -> Self {
        Self { rule, packets: VecDeque::new(), bytes: 0 }
    }

    /// Holds a packet that came at `now_ns` of a clock that is never set, and its frame ("" = not wanted).
    pub fn hold(&mut self, now_ns: u64, packet: &Packet, frame: &[u8]) -> Released {
        let waiting = Waiting { since_ns: now_ns, packet: packet.clone(), frame: frame.to_vec() };
        self.bytes += waiting.bytes();
        self.packets.push_back(waiting);
        let mut released = Released::default();
        while self.bytes > self.rule.most_bytes {
            let Some(Waiting { packet, .. }) = self.pop() else { break };
            if released.undecided == 0 {
                released.first_undecided_ns = packet.time_ns;
            }
            released.undecided += 1;
        }
        released
    }

    /// Gives up those that waited too long.
    pub fn expire(&mut self, now_ns: u64) -> Released {
        let mut released = Released::default();
        while self.packets.front().is_some_and(|first| now_ns.saturating_sub(first.since_ns) > self.rule.longest_ns) {
            self.pop();
            released.unfollowed += 1;
        }
        released
    }

    /// Takes out those that are wanted, in the order in which they came.
    pub fn claim(&mut self, mut is_wanted: impl FnMut(&Packet) -> bool) -> Vec<(Packet, Vec<u8>)> {
        let mut claimed = Vec::new();
        let mut rest = VecDeque::with_capacity(self.packets.len());
        for waiting in self.packets.drain(..) {
            if is_wanted(&waiting.packet) {
                self.bytes = self.bytes.saturating_sub(waiting.bytes());
                claimed.push((waiting.packet, waiting.frame));
            } else {
                rest.push_back(waiting);
            }
        }
        self.packets = rest;
        claimed
    }

    fn pop(&mut self) -> Option<Waiting> {
        let first = self.packets.pop_front()?;
        self.bytes = self.bytes.saturating_sub(first.bytes());
        Some(first)
    }
}
