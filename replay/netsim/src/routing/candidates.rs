//! What a switch is told of a packet's way.

use crate::topology::{LinkId, NodeId};

/// Where a packet may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidates<'a> {
    /// The links, in order; never empty.
    pub links: &'a [LinkId],
    /// The first class of virtual lanes that it may take: 0, or below [`super::Routes::classes`].
    pub class: u8,
    /// How many classes it may take, from there on.
    pub classes: u8,
    /// Whether the packet enters a ring that must keep a bubble: room for two packets is needed.
    pub enters_ring: bool,
}

/// Which of several links a packet takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The one at this position.
    Index(usize),
    /// The one with the most credits: the switch knows.
    ByCredits,
}

/// A packet at a switch, as far as its way depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The switch.
    pub at: NodeId,
    /// The link by which it came, and its class of virtual lanes there.
    pub input_link: LinkId,
    /// That class.
    pub class: u8,
    /// The host to which it goes.
    pub to: NodeId,
    /// By what draws know the packet.
    pub key: u64,
}

/// A link and a class of its virtual lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lane {
    /// The link.
    pub link: LinkId,
    /// The class.
    pub class: u8,
}

/// Which of several lanes with room a packet takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The one with most; a draw among equals.
    MostRoom,
    /// The one with most; of several the first.
    FirstOfMost,
    /// As `MostRoom`, by flits.
    MostFlits,
    /// As `FirstOfMost`, by flits.
    FirstOfMostFlits,
    /// Any, drawn evenly.
    Drawn,
}

impl Pick {
    /// Whether lanes are compared.
    #[must_use]
    pub const fn compares(self) -> bool {
        !matches!(self, Self::Drawn)
    }

    /// Whether that is by flits that have come and not gone, in place of credits.
    #[must_use]
    pub const fn by_flits(self) -> bool {
        matches!(self, Self::MostFlits | Self::FirstOfMostFlits)
    }

    /// Whether of several with as much room the first is taken.
    #[must_use]
    pub const fn takes_first(self) -> bool {
        matches!(self, Self::FirstOfMost | Self::FirstOfMostFlits)
    }
}

/// The credits that a packet must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditRequirement {
    /// Its own, in the lane that it takes.
    Packet,
    /// That of two of the largest packets, in the lane that it takes.
    Bubble,
    /// Its own in the lane that it takes, and that of two of the largest packets in this one, which ends here.
    BubbleIn(Lane),
}

/// What a packet does where a lane has one packet at a time, and others have all those of a rank that have room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusyPolicy {
    /// It waits for one of them.
    Wait,
    /// It looks at the next rank.
    NextRank,
}

/// Lanes of which one is taken that has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank<'a> {
    /// The lanes, in order.
    pub lanes: &'a [Lane],
    /// Which of them.
    pub pick: Pick,
    /// The credits that count as room in them.
    pub required: CreditRequirement,
    /// What the packet does if others have them.
    pub when_busy: BusyPolicy,
}

/// Where a packet may go on, the preferred lanes first; those of a later rank are taken where none before has room.
#[derive(Clone, Debug, Default)]
pub struct Ranks {
    lanes: Vec<Lane>,
    /// Of each rank: where its lanes end, and how they are taken.
    ends: Vec<(usize, Pick, CreditRequirement, BusyPolicy)>,
}

impl Ranks {
    /// All ranks, in order.
    pub fn iter(&self) -> impl Iterator<Item = Rank<'_>> {
        let begins = std::iter::once(0).chain(self.ends.iter().map(|(end, ..)| *end));
        begins.zip(&self.ends).map(|(begin, (end, pick, required, when_busy))| Rank {
            lanes: &self.lanes[begin..*end],
            pick: *pick,
            required: *required,
            when_busy: *when_busy,
        })
    }

    pub(super) fn clear(&mut self) {
        self.lanes.clear();
        self.ends.clear();
    }

    /// Adds a rank, unless it has no lanes.
    pub(super) fn push(
        &mut self,
        lanes: impl IntoIterator<Item = Lane>,
        pick: Pick,
        required: CreditRequirement,
        when_busy: BusyPolicy,
    ) {
        let before = self.lanes.len();
        self.lanes.extend(lanes);
        if self.lanes.len() > before {
            self.ends.push((self.lanes.len(), pick, required, when_busy));
        }
    }

    /// Adds the lanes of `candidates` as a rank.
    pub(super) fn push_candidates(&mut self, candidates: &Candidates) {
        let classes = candidates.class..candidates.class + candidates.classes;
        let of_link = |link: &LinkId| {
            let link = *link;
            classes.clone().map(move |class| Lane { link, class })
        };
        self.push(
            candidates.links.iter().flat_map(of_link),
            Pick::MostRoom,
            CreditRequirement::Packet,
            BusyPolicy::Wait,
        );
    }
}
