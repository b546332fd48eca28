//! What goes from one part of a network to another: packets, credits, and word of messages.

use super::packet::Packet;
use super::returns::Return;
use crate::fabric::ids::LaneId;
use crate::fabric::messages::Carried;
use crate::network::Token;
use crate::time::SimTime;

/// What one part sends another in a window.
#[derive(Default)]
pub(super) struct Mail {
    /// Packets that have started, those of a lane in the order of time.
    pub packets: Vec<SentPacket>,
    /// Packets that leave buffers, each with the lane by whose number where it begins.
    pub credits: Vec<(LaneId, Return)>,
    /// Messages of several packets that are under way.
    pub opened: Vec<(Token, u64)>,
}

impl Mail {
    pub const fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.credits.is_empty() && self.opened.is_empty()
    }
}

/// A packet that has started on a link which ends in another part.
pub(super) struct SentPacket {
    /// Its lane, by its number where it ends.
    pub lane: LaneId,
    /// When it has started, and from when on it can be the head of its queue.
    pub times: (SimTime, SimTime),
    pub packet: Packet,
    pub message: Carried,
}

/// A packet that left the buffer of a lane that begins elsewhere.
#[derive(Clone, Copy)]
struct Departure {
    lane: LaneId,
    /// When its last flit had left.
    ended: SimTime,
    credits: u16,
}

/// What a part has for others.
pub(super) struct Border {
    pub mail: Vec<Mail>,
    /// What has left in this window, and what was still leaving when it began: the other part is told later, and what it has started
    /// meanwhile found this in the buffer.
    left: Vec<Departure>,
    sorted: bool,
}

impl Border {
    /// Nothing yet, for `parts` parts.
    pub fn new(parts: usize) -> Self {
        Self { mail: std::iter::repeat_with(Mail::default).take(parts).collect(), left: Vec::new(), sorted: true }
    }

    /// A window begins at `begin`.
    pub fn begin_window(&mut self, begin: SimTime) {
        self.left.retain(|left| left.ended > begin);
        self.sorted = false;
    }

    /// What is `leaving` the buffer of `lane`, which begins elsewhere.
    pub fn left(&mut self, lane: LaneId, leaving: &Return) {
        self.left.push(Departure { lane, ended: leaving.end, credits: leaving.credits });
    }

    /// Credits of packets that left the buffer of `lane` and whose last flit had not left at `now`, of this window's.
    pub fn leaving(&mut self, lane: LaneId, now: SimTime) -> u32 {
        if !self.sorted {
            self.left.sort_by_key(|left| left.lane);
            self.sorted = true;
        }
        let first = self.left.partition_point(|left| left.lane < lane);
        let of_lane = self.left[first..].iter().take_while(|left| left.lane == lane);
        of_lane.filter(|left| left.ended > now).map(|left| u32::from(left.credits)).sum()
    }
}
