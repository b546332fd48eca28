//! What is known of heads that commit themselves to lanes with room alone, in cycles.

use super::cases::Cases;
use super::offers::{KnownOffers, Offer};
use super::output::NEVER;
use crate::routing::Ranks;

/// The heads that wait for room on a lane: half a line of a cache.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(super) struct Seekers {
    /// By their bits; those that have gone on are left there until the lane is looked at.
    pub heads: u128,
    /// The earliest cycle in which the lane is looked at; [`NEVER`] if none is known.
    pub wake: u64,
    /// The least that one of them needs.
    pub need: u32,
    /// The switch where the lane begins.
    pub switch: u32,
}

/// What is known of heads that commit themselves to room alone.
pub(in crate::fabric::credit) struct Seeking {
    /// By lane.
    pub(super) seekers: Vec<Seekers>,
    /// By queue, if its head has looked.
    pub(super) known: Vec<KnownOffers>,
    /// What the head may take that chooses: filled anew for each, and lent meanwhile.
    pub(super) offers: Vec<Offer>,
    pub(super) ranks: Ranks,
    pub(super) cases: Cases,
}

impl Seeking {
    /// Nobody waits for the lanes that begin at so many switches, by lane, or in so many queues.
    pub(super) fn new(switches: impl Iterator<Item = u32>, queues: usize, cases: Cases) -> Self {
        let nobody = |switch| Seekers { heads: 0, wake: NEVER, need: u32::MAX, switch };
        Self {
            seekers: switches.map(nobody).collect(),
            known: vec![KnownOffers::NOTHING; queues],
            offers: Vec::new(),
            ranks: Ranks::default(),
            cases,
        }
    }

    /// Keeps what the head of `queue` may take, if that is little.
    #[inline]
    pub(super) fn keep(&mut self, queue: u32, all: &[Offer]) {
        self.known[queue as usize].keep(all);
    }

    /// What is looked at of what the head of `queue` may take: something to wait for.
    pub fn read(&self, queue: u32) -> u64 {
        self.known[queue as usize].offers().len() as u64
    }
}
