//! The links of a topology: two for each cable, of which there may be millions of few kinds.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use super::ids::{LinkId, NodeId};
use super::link::Cable;
use crate::count::count;
use crate::units::{Buffer, Rate};

/// One direction of a cable, with what the switch model needs to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// Where it begins.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// Its rate.
    pub rate: Rate,
    /// Its propagation delay in picoseconds.
    pub delay_ps: u64,
    /// What may wait in front of it.
    pub buffer: Buffer,
    /// The size of its token bucket in bytes; 0 for a wire.
    pub burst_bytes: u64,
    /// Whether it is the way back of a one-way cable, by which credits come back but nothing is sent. No node offers it.
    pub absent: bool,
}

impl Link {
    /// Its rate in figures: that of a link by which nothing is sent is none, so that it counts in no mean.
    #[must_use]
    pub const fn used_rate(&self) -> Rate {
        if self.absent { Rate::UNLIMITED } else { self.rate }
    }
}

/// All cables, 12 bytes each.
#[derive(Clone, Debug, Default)]
pub(super) struct Cables {
    cables: Vec<Ends>,
    kinds: Vec<Kind>,
    /// The number of each kind.
    numbers: HashMap<Kind, u32>,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    from: NodeId,
    to: NodeId,
    kind: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind {
    cable: Cable,
    one_way: bool,
}

impl Cables {
    /// Makes room for so many more.
    pub fn reserve_exact(&mut self, cables: usize) {
        self.cables.reserve_exact(cables);
    }

    /// Adds one: two links, of which the first is returned.
    pub fn push(&mut self, from: NodeId, to: NodeId, cable: Cable, one_way: bool) -> LinkId {
        let first = LinkId(count(2 * self.cables.len()));
        let kind = Kind { cable, one_way };
        // Mostly it is of the kind of the one before.
        let kind = match self.cables.last() {
            Some(last) if self.kinds[last.kind as usize] == kind => last.kind,
            _ => self.number(kind),
        };
        self.cables.push(Ends { from, to, kind });
        first
    }

    fn number(&mut self, kind: Kind) -> u32 {
        *self.numbers.entry(kind).or_insert_with(|| {
            self.kinds.push(kind);
            count(self.kinds.len() - 1)
        })
    }

    /// Gives all the rate `rate`.
    pub fn set_rates(&mut self, rate: Rate) {
        self.kinds.iter_mut().for_each(|kind| kind.cable.rate = rate);
        // Kinds may have become the same: what is added later gets a new one.
        self.numbers.clear();
    }

    pub const fn links(&self) -> Links<'_> {
        Links(self)
    }

    /// The link with a number; there is one.
    #[inline]
    pub fn link(&self, link: LinkId) -> Link {
        let Ends { from, to, kind } = self.cables[link.0 as usize / 2];
        let Kind { cable: Cable { rate, delay_ps, buffer, burst_bytes }, one_way } = self.kinds[kind as usize];
        let back = link.0 % 2 == 1;
        let (from, to) = if back { (to, from) } else { (from, to) };
        Link { from, to, rate, delay_ps, buffer, burst_bytes, absent: back && one_way }
    }
}

impl PartialEq for Cables {
    fn eq(&self, other: &Self) -> bool {
        self.links().iter().eq(other.links().iter())
    }
}

impl Eq for Cables {}

impl Hash for Cables {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.links().len().hash(state);
        self.links().iter().for_each(|link| link.hash(state));
    }
}

/// All links, in order of their ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links<'a>(&'a Cables);

impl<'a> Links<'a> {
    /// How many there are.
    #[must_use]
    pub const fn len(self) -> usize {
        2 * self.0.cables.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The link with a number; `None` if there are not as many.
    #[must_use]
    pub fn get(self, number: usize) -> Option<Link> {
        (number < self.len()).then(|| self.0.link(LinkId(count(number))))
    }

    /// One after the other.
    #[must_use]
    pub fn iter(self) -> LinksIter<'a> {
        LinksIter { cables: self.0, numbers: 0..count(self.len()) }
    }

    /// Cable by cable: the two links of each.
    pub fn cables(self) -> impl Iterator<Item = [Link; 2]> + use<'a> {
        (0..count(self.0.cables.len()))
            .map(move |cable| [2 * cable, 2 * cable + 1].map(|link| self.0.link(LinkId(link))))
    }
}

impl<'a> IntoIterator for Links<'a> {
    type Item = Link;
    type IntoIter = LinksIter<'a>;

    fn into_iter(self) -> LinksIter<'a> {
        self.iter()
    }
}

/// Links one after the other.
#[derive(Clone, Debug)]
pub struct LinksIter<'a> {
    cables: &'a Cables,
    numbers: Range<u32>,
}

impl Iterator for LinksIter<'_> {
    type Item = Link;

    #[inline]
    fn next(&mut self) -> Option<Link> {
        self.numbers.next().map(|number| self.cables.link(LinkId(number)))
    }

    fn nth(&mut self, skipped: usize) -> Option<Link> {
        self.numbers.nth(skipped).map(|number| self.cables.link(LinkId(number)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.numbers.size_hint()
    }
}

impl ExactSizeIterator for LinksIter<'_> {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn links_are_told_from_their_cable() {
        let wire = Cable { rate: Rate::UNLIMITED, delay_ps: 5, buffer: Buffer::Unlimited, burst_bytes: 0 };
        let slower = Cable { delay_ps: 9, ..wire };
        let mut cables = Cables::default();
        assert_eq!(cables.push(NodeId(0), NodeId(7), wire, false), LinkId(0));
        assert_eq!(cables.push(NodeId(1), NodeId(7), slower, true), LinkId(2));
        assert_eq!(cables.push(NodeId(2), NodeId(7), wire, false), LinkId(4));
        assert_eq!(cables.kinds.len(), 2);
        let links: Vec<Link> = cables.links().iter().collect();
        let ends: Vec<_> = links.iter().map(|link| (link.from.0, link.to.0, link.delay_ps, link.absent)).collect();
        let expected =
            [(0, 7, 5, false), (7, 0, 5, false), (1, 7, 9, false), (7, 1, 9, true), (2, 7, 5, false), (7, 2, 5, false)];
        assert_eq!(ends, expected);
        assert_eq!(cables.links().get(5), Some(links[5]));
        assert_eq!(cables.links().get(6), None);
        let pairs: Vec<[Link; 2]> = cables.links().cables().collect();
        assert_eq!(pairs.concat(), links);
    }

    #[test]
    fn what_is_the_same_after_a_change_is_equal() {
        let wire = |bps| Cable { rate: Rate::from_bps(bps), delay_ps: 5, buffer: Buffer::Unlimited, burst_bytes: 0 };
        let (mut two_kinds, mut one_kind) = (Cables::default(), Cables::default());
        for bps in [1_000, 2_000] {
            two_kinds.push(NodeId(0), NodeId(1), wire(bps), false);
            one_kind.push(NodeId(0), NodeId(1), wire(3_000), false);
        }
        assert_ne!(two_kinds, one_kind);
        two_kinds.set_rates(wire(3_000).rate);
        assert_eq!(two_kinds, one_kind);
        two_kinds.push(NodeId(1), NodeId(2), wire(3_000), false);
        one_kind.push(NodeId(1), NodeId(2), wire(3_000), false);
        assert_eq!(two_kinds, one_kind);
    }
}
