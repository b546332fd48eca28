//! How many packets were lost, by reason.

use serde::{Deserialize, Serialize};

use crate::fabric::packet::Loss;

/// Packets that were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// As their messages found the queues of their hosts full.
    pub full_queue: u64,
    /// As they were the first in the queues of their hosts and found no room.
    pub blocked_head: u64,
    /// After they had left their hosts.
    pub in_network: u64,
}

impl Losses {
    /// Counts `packets` packets more.
    pub const fn count(&mut self, reason: Loss, packets: u64) {
        match reason {
            Loss::FullQueue => self.full_queue += packets,
            Loss::BlockedHead => self.blocked_head += packets,
            Loss::InNetwork => self.in_network += packets,
        }
    }

    /// Counts those of another count, too.
    pub const fn add(&mut self, other: &Self) {
        self.full_queue += other.full_queue;
        self.blocked_head += other.blocked_head;
        self.in_network += other.in_network;
    }

    /// All of them.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.full_queue + self.blocked_head + self.in_network
    }

    /// Those of which there are some, by the names that summaries have for the reasons.
    pub fn by_name(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let named =
            [("full_queue", self.full_queue), ("blocked_head", self.blocked_head), ("in_network", self.in_network)];
        named.into_iter().filter(|(_, packets)| *packets > 0)
    }
}
