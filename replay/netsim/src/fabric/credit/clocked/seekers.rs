//! What is known of heads that commit themselves to lanes with room alone, in cycles.

use super::output::NEVER;
use crate::routing::{Pick, Ranks};

/// How many credits a head must find in a lane.
#[derive(Clone, Copy)]
pub(in crate::fabric::credit) enum Need {
    /// Its own.
    Packet,
    /// Its own, and those that packets from hosts leave free.
    Reserve,
    /// Those of two of the largest packets.
    Bubble,
}

/// A lane that a head may take.
#[derive(Clone, Copy)]
pub(in crate::fabric::credit) struct Offer {
    /// The bit of its output.
    pub output: u8,
    pub vl: u8,
    /// Those of a lower rank are preferred.
    pub rank: u8,
    /// Which one of its rank is taken.
    pub pick: Pick,
    pub need: Need,
}

/// So many offers to a head are kept while it waits.
const KEPT: usize = 6;

/// What a waiting head may take: half a line of a cache.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub offers: [Offer; KEPT],
    /// How many there are; 0: it is not known.
    pub count: u8,
}

impl Known {
    const NOTHING: Self = {
        let none = Offer { output: 0, vl: 0, rank: 0, pick: Pick::Drawn, need: Need::Packet };
        Self { offers: [none; KEPT], count: 0 }
    };
}

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
    /// By queue.
    pub(super) known: Vec<Known>,
    /// What the head may take that chooses: filled anew for each, and lent meanwhile.
    pub(super) offers: Vec<Offer>,
    pub(super) ranks: Ranks,
}

impl Seeking {
    /// Nobody waits for the lanes that begin at so many switches, by lane, or in so many queues.
    pub fn new(switches: impl Iterator<Item = u32>, queues: usize) -> Self {
        let nobody = |switch| Seekers { heads: 0, wake: NEVER, need: u32::MAX, switch };
        Self {
            seekers: switches.map(nobody).collect(),
            known: vec![Known::NOTHING; queues],
            offers: Vec::new(),
            ranks: Ranks::default(),
        }
    }

    /// Keeps what the head of `queue` may take, if that is little.
    #[inline]
    pub(super) fn keep(&mut self, queue: u32, all: &[Offer]) {
        let known = &mut self.known[queue as usize];
        known.count = known.offers.get_mut(..all.len()).map_or(0, |offers| {
            offers.copy_from_slice(all);
            all.len() as u8
        });
    }

    /// What is looked at of what the head of `queue` may take: something to wait for.
    pub fn read(&self, queue: u32) -> u64 {
        self.known[queue as usize].count.into()
    }

    /// The head of `queue` is another one.
    #[inline]
    pub(super) fn forget(&mut self, queue: u32) {
        self.known[queue as usize].count = 0;
    }
}
