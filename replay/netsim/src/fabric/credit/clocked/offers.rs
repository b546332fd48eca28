//! Lanes that a head may take which commits itself to room alone.

use crate::routing::Pick;

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
pub(super) struct KnownOffers {
    offers: [Offer; KEPT],
    /// How many there are; 0: it is not known.
    count: u8,
}

impl KnownOffers {
    pub const NOTHING: Self = {
        let none = Offer { output: 0, vl: 0, rank: 0, pick: Pick::Drawn, need: Need::Packet };
        Self { offers: [none; KEPT], count: 0 }
    };

    /// Nothing if it is not known.
    #[inline]
    pub fn offers(&self) -> &[Offer] {
        self.offers.get(..usize::from(self.count)).unwrap_or_default()
    }

    /// Keeps `all`, if that is little.
    #[inline]
    pub fn keep(&mut self, all: &[Offer]) {
        self.count = self.offers.get_mut(..all.len()).map_or(0, |offers| {
            offers.copy_from_slice(all);
            all.len() as u8
        });
    }
}
