//! Virtual lanes on lattices: which lane a packet takes, or which it may take, the preferred ones first. The rules are those of
//! INSEE's routers; `docs/topologies.md` says where the paper and its program differ.

use super::candidates::{BusyPolicy, Candidates, CreditRequirement, Hop, Lane, Pick, Ranks};
use super::lattice::{LatticeStep, LatticeWays};
use super::vcs::{BubbleAt, BubbleConfig, BubbleMode, Dally, DallyConfig, Directions, Equals, Order, RoomUnit, Ties};
use super::{RoutingConfig, RoutingError};
use crate::topology::{LinkId, NodeId, Topology};

/// By what rings are kept from filling up, and how lanes are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lanes {
    /// Two classes: 1 while the end of the ring lies ahead.
    Dateline,
    /// One class, a bubble in each ring.
    Bubble,
    Dally(DallyConfig),
    BubbleVls(BubbleConfig),
}

/// Ways and lanes of a lattice.
#[derive(Clone, Debug)]
pub(super) struct LatticeHops {
    ways: LatticeWays,
    lanes: Lanes,
    /// How many cases there are; 0 where ranks depend on more.
    cases: usize,
}

/// More cases are not told apart.
const MAX_CASES: usize = 1 << 14;

impl LatticeHops {
    /// Those of `config`, if it is one for lattices and `topology` is one.
    pub(super) fn of(topology: &Topology, config: &RoutingConfig, seed: u64) -> Result<Option<Self>, RoutingError> {
        let (lanes, order, ties) = match config {
            RoutingConfig::Dor => (Lanes::Dateline, Order::Dim, Ties::Destination),
            RoutingConfig::DorTies(ties) => (Lanes::Dateline, Order::Dim, *ties),
            RoutingConfig::Bubble => (Lanes::Bubble, Order::Dim, Ties::Destination),
            RoutingConfig::Dally(dally) => (Lanes::Dally(*dally), dally.order, dally.ties),
            RoutingConfig::BubbleVls(bubble) => (Lanes::BubbleVls(*bubble), Order::Dim, bubble.ties),
            _ => return Ok(None),
        };
        let ways = LatticeWays::of(topology, config, order, ties, seed)?;
        let hops = ways.map(|ways| Self { ways, lanes, cases: 0 });
        Ok(hops.map(|hops| Self { cases: hops.count_cases(), ..hops }))
    }

    /// How many cases there are of what ranks depend on, if all routers are alike: by which direction or from a host a packet came, its class
    /// there, the direction of its escape, and those that lead nearer, a bit each.
    fn count_cases(&self) -> usize {
        let directions = 2 * self.ways.axes();
        let keeps_bubbles = matches!(self.lanes, Lanes::BubbleVls(_)) && !self.looks_at_room_behind();
        let is_alike = self.ranked() && keeps_bubbles && self.ways.is_uniform();
        let nearer = 1usize.checked_shl(directions as u32).filter(|_| is_alike).unwrap_or(0);
        let factors = [directions + 1, self.classes().into(), directions, nearer];
        let cases = factors.into_iter().fold(1usize, usize::saturating_mul);
        if cases > MAX_CASES { 0 } else { cases }
    }

    pub(super) const fn cases(&self) -> usize {
        self.cases
    }

    /// The case of a packet for the host `to` at the router `at`, which came by the direction `input` in `class`.
    #[inline]
    pub(super) fn case(&self, at: NodeId, (input, class): (Option<u8>, u8), to: NodeId, key: u64) -> Option<usize> {
        if self.cases == 0 {
            return None;
        }
        // Axis by axis: all that have cases go so.
        let (nearer, escape) = self.ways.first_of(self.ways.router(at), to, key, self.keeps_record());
        let directions = 2 * self.ways.axes();
        let input = input.map_or(directions, usize::from);
        let case = (nearer as usize * directions + escape?) * (directions + 1) + input;
        Some(case * usize::from(self.classes()) + usize::from(class))
    }

    pub(super) const fn ways(&self) -> &LatticeWays {
        &self.ways
    }

    /// How many classes of virtual lanes there are.
    pub(super) fn classes(&self) -> u8 {
        match self.lanes {
            Lanes::Dateline if self.ways.has_rings() => 2,
            Lanes::Dateline | Lanes::Bubble => 1,
            Lanes::Dally(dally) => dally.classes(),
            Lanes::BubbleVls(bubble) => bubble.classes(),
        }
    }

    /// How many of these, from 0 on, are those of the escape; 0: there is none, all packets take one way.
    pub(super) fn escape_classes(&self) -> u8 {
        match self.lanes {
            _ if !self.ranked() => 0,
            Lanes::Dally(_) => 2,
            Lanes::BubbleVls(BubbleConfig { mode: BubbleMode::Oblivious, .. }) => 0,
            Lanes::Dateline | Lanes::Bubble | Lanes::BubbleVls(_) => 1,
        }
    }

    /// Whether packets go on from a router as they do from any other one to a destination that lies in the same direction.
    pub(super) fn is_uniform(&self) -> bool {
        self.ways.ties == Ties::Draw && matches!(self.lanes, Lanes::BubbleVls(_)) && self.ways.is_uniform()
    }

    /// Whether packets compare lanes by flits.
    pub(super) const fn compares_flits(&self) -> bool {
        match self.lanes {
            Lanes::BubbleVls(bubble) => bubble.compares_flits(),
            Lanes::Dateline | Lanes::Bubble | Lanes::Dally(_) => false,
        }
    }

    /// Whether bubbles are looked at where packets stand, in place of the next router.
    pub(super) const fn looks_at_room_behind(&self) -> bool {
        matches!(self.lanes, Lanes::BubbleVls(BubbleConfig { bubble_at: BubbleAt::Here, .. }))
    }

    /// Whether packets have several lanes to choose from, or commit themselves to room.
    pub(super) const fn ranked(&self) -> bool {
        match self.lanes {
            Lanes::Dateline | Lanes::Bubble => false,
            Lanes::Dally(dally) => matches!(dally.mode, Dally::Improved | Dally::Adaptive),
            Lanes::BubbleVls(bubble) => {
                !matches!(bubble.mode, BubbleMode::Oblivious) || matches!(bubble.bubble_at, BubbleAt::Here)
            }
        }
    }

    /// Whether a packet's lane depends on more than place and destination.
    pub(super) fn looks_at_packets(&self) -> bool {
        self.ways.ties == Ties::Draw || matches!(self.lanes, Lanes::Dally(_) | Lanes::BubbleVls(_))
    }

    /// Whether rings are kept from filling up by bubbles.
    pub(super) fn needs_bubbles(&self) -> bool {
        matches!(self.lanes, Lanes::Bubble | Lanes::BubbleVls(_)) && self.ways.has_rings()
    }

    /// The link by which packets for `to` go on whose pattern is the destination's, with its class where that is all it depends on.
    pub(super) fn next(&self, at: NodeId, input_link: LinkId, to: NodeId) -> Candidates<'_> {
        let Some((link, way)) = self.ways.link(at, to, self.ways.pattern(to, 0)) else {
            return LatticeWays::candidates(None, 0, false);
        };
        let Some(way) = way else { return LatticeWays::candidates(Some(link), 0, false) };
        let class = match self.lanes {
            Lanes::Dateline => u8::from(self.ways.wraps_ahead(self.ways.router(at), way)),
            _ => 0,
        };
        let enters = self.needs_bubbles() && self.enters(way, self.ways.direction_of(input_link));
        LatticeWays::candidates(Some(link), class, enters)
    }

    /// Whether a packet on `way` enters a ring, having come by `input_direction`.
    fn enters(&self, way: LatticeStep, input_direction: Option<(usize, bool)>) -> bool {
        self.ways.is_ring(way.axis) && input_direction != Some((way.axis, way.forward))
    }

    /// The one lane of a packet, and whether it enters a ring that keeps a bubble.
    pub(super) fn lane(&self, hop: &Hop) -> Option<(Lane, bool)> {
        let (link, way) = self.ways.link(hop.at, hop.to, self.ways.pattern(hop.to, hop.key))?;
        let Some(way) = way else { return Some((Lane { link: *link, class: 0 }, false)) };
        let input_direction = self.ways.direction_of(hop.input_link);
        let stays = input_direction == Some((way.axis, way.forward));
        let router = self.ways.router(hop.at);
        let class = match self.lanes {
            Lanes::Dateline => u8::from(self.ways.wraps_ahead(router, way)),
            Lanes::Bubble => 0,
            Lanes::Dally(DallyConfig { mode: Dally::Trc, .. }) => match self.ways.place(router, way.axis) {
                0 => 0,
                _ if stays => hop.class.min(1),
                _ => 1,
            },
            Lanes::Dally(DallyConfig { mode: Dally::Entry, .. }) if stays => hop.class.min(1),
            Lanes::Dally(DallyConfig { mode: Dally::Entry, .. }) => u8::from(self.ways.wraps_ahead(router, way)),
            Lanes::Dally(_) => self.basic(router, way),
            Lanes::BubbleVls(BubbleConfig { mode: BubbleMode::Oblivious, .. }) if stays => hop.class,
            Lanes::BubbleVls(bubble @ BubbleConfig { mode: BubbleMode::Oblivious, .. }) => {
                u8::try_from(self.ways.draw(hop.at, hop.key) % u64::from(bubble.classes())).unwrap_or(0)
            }
            Lanes::BubbleVls(_) => 0,
        };
        // A lane of the escape is entered from lanes that are none, too.
        let from_elsewhere = self.escape_classes() == 1 && hop.class != 0;
        let enters = self.needs_bubbles() && self.ways.is_ring(way.axis) && (!stays || from_elsewhere);
        Some((Lane { link: *link, class }, enters))
    }

    /// The class that waits for nothing that waits for it.
    fn basic(&self, router: u32, way: LatticeStep) -> u8 {
        u8::from(!self.ways.wraps_ahead(router, way))
    }

    /// All lanes of a packet, the preferred ones first.
    pub(super) fn ranks(&self, hop: &Hop, ranks: &mut Ranks) {
        let Some((escape, enters)) = self.lane(hop) else { return };
        let one = |lane: Lane, required: CreditRequirement, ranks: &mut Ranks| {
            ranks.push([lane], Pick::Drawn, required, BusyPolicy::NextRank);
        };
        if self.ways.end(hop.at, hop.to).is_some() {
            return one(escape, CreditRequirement::Packet, ranks);
        }
        let required = if enters { self.bubble(hop, escape) } else { CreditRequirement::Packet };
        let nearer = if self.ranked() { self.nearer(hop.at, hop.to, hop.key) } else { 0 };
        match self.lanes {
            Lanes::Dateline | Lanes::Bubble => one(escape, required, ranks),
            Lanes::Dally(dally) => {
                if dally.mode == Dally::Adaptive {
                    ranks.push(
                        self.adaptive(hop, nearer, 2, |_, _| true),
                        Pick::Drawn,
                        CreditRequirement::Packet,
                        BusyPolicy::Wait,
                    );
                }
                if escape.class == 1 {
                    // Without the end of a ring ahead either class will do: one is drawn, then the other.
                    let first = u8::try_from(self.ways.draw(hop.at, hop.key) & 1).unwrap_or(0);
                    one(Lane { class: first, ..escape }, CreditRequirement::Packet, ranks);
                    one(Lane { class: 1 - first, ..escape }, CreditRequirement::Packet, ranks);
                } else {
                    one(escape, CreditRequirement::Packet, ranks);
                }
            }
            Lanes::BubbleVls(bubble) => {
                let input_direction = self.ways.direction_of(hop.input_link);
                let own = |axis, forward| input_direction == Some((axis, forward)) && hop.class > 0;
                match bubble.mode {
                    BubbleMode::Oblivious => {}
                    BubbleMode::Random => {
                        let straight = self.adaptive(hop, nearer, 1, own);
                        let straight = straight.filter(|lane| lane.class == hop.class);
                        ranks.push(straight, Pick::Drawn, CreditRequirement::Packet, BusyPolicy::NextRank);
                        ranks.push(
                            self.adaptive(hop, nearer, 1, |_, _| true),
                            Pick::Drawn,
                            CreditRequirement::Packet,
                            BusyPolicy::Wait,
                        );
                    }
                    BubbleMode::Shortest => {
                        let pick = match (bubble.room, bubble.equals) {
                            (RoomUnit::Credits, Equals::Draw) => Pick::MostRoom,
                            (RoomUnit::Credits, Equals::First) => Pick::FirstOfMost,
                            (RoomUnit::Flits, Equals::Draw) => Pick::MostFlits,
                            (RoomUnit::Flits, Equals::First) => Pick::FirstOfMostFlits,
                        };
                        ranks.push(
                            self.adaptive(hop, nearer, 1, |_, _| true),
                            pick,
                            CreditRequirement::Packet,
                            BusyPolicy::Wait,
                        );
                    }
                    BubbleMode::Smart => {
                        let axes = self.ways.axes();
                        let first = input_direction.map_or(0, |(axis, _)| axis);
                        for axis in (0..axes).map(|trial| (first + trial) % axes) {
                            let straight = self.adaptive(hop, nearer, 1, |on, forward| on == axis && own(on, forward));
                            let mut straight = straight.filter(|lane| lane.class == hop.class).peekable();
                            if straight.peek().is_some() {
                                ranks.push(straight, Pick::Drawn, CreditRequirement::Packet, BusyPolicy::NextRank);
                            } else {
                                let turning = self.adaptive(hop, nearer, 1, |on, _| on == axis);
                                ranks.push(turning, Pick::Drawn, CreditRequirement::Packet, BusyPolicy::NextRank);
                            }
                        }
                    }
                }
                one(escape, required, ranks);
            }
        }
    }

    /// The directions in which a packet is offered adaptive lanes, a bit each.
    fn nearer(&self, at: NodeId, to: NodeId, key: u64) -> u32 {
        if self.keeps_record() {
            return self.ways.directions_of_record(at, to, key);
        }
        self.ways.directions_to(self.ways.router(at), self.ways.target(to))
    }

    /// Whether packets are offered adaptive lanes along their record alone.
    fn keeps_record(&self) -> bool {
        matches!(self.lanes, Lanes::BubbleVls(BubbleConfig { directions: Directions::Record, .. }))
    }

    /// The lanes from class `first` on of `directions` (a bit each), as far as `wanted`.
    fn adaptive(
        &self,
        hop: &Hop,
        directions: u32,
        first: u8,
        wanted: impl Fn(usize, bool) -> bool,
    ) -> impl Iterator<Item = Lane> {
        let classes = first..self.classes();
        self.ways
            .ports(self.ways.router(hop.at), directions)
            .filter(move |(axis, forward, _)| wanted(*axis, *forward))
            .flat_map(move |(_, _, link)| classes.clone().map(move |class| Lane { link, class }))
    }

    /// The credits of a bubble that a packet must find that enters a ring by `lane`.
    fn bubble(&self, hop: &Hop, lane: Lane) -> CreditRequirement {
        let at = match self.lanes {
            Lanes::BubbleVls(bubble) => bubble.bubble_at,
            _ => BubbleAt::Next,
        };
        let here = || {
            let (axis, forward) = self.ways.direction_of(lane.link)?;
            self.ways.behind(self.ways.router(hop.at), axis, forward)
        };
        match at {
            BubbleAt::Next => CreditRequirement::Bubble,
            // A ring that faults have broken has nothing behind its first router, and cannot fill up.
            BubbleAt::Here => here().map_or(CreditRequirement::Packet, |link| {
                CreditRequirement::BubbleIn(Lane { link, class: lane.class })
            }),
        }
    }

    /// The lanes for which a packet for `to` of `pattern` waits at `at`, if nothing else has room, having come by `input_lane`; of one that is
    /// drawn, all that may be.
    pub(super) fn waited(&self, at: NodeId, input_lane: Option<Lane>, to: NodeId, pattern: u32) -> Vec<Lane> {
        let Some((link, way)) = self.ways.link(at, to, pattern) else { return Vec::new() };
        let link = *link;
        let Some(way) = way else { return vec![Lane { link, class: 0 }] };
        let router = self.ways.router(at);
        let stays = input_lane.filter(|lane| self.ways.direction_of(lane.link) == Some((way.axis, way.forward)));
        let class = match self.lanes {
            Lanes::Dateline => u8::from(self.ways.wraps_ahead(router, way)),
            Lanes::Dally(DallyConfig { mode: Dally::Trc, .. }) => match self.ways.place(router, way.axis) {
                0 => 0,
                _ => stays.map_or(1, |lane| lane.class),
            },
            Lanes::Dally(DallyConfig { mode: Dally::Entry, .. }) => {
                stays.map_or_else(|| u8::from(self.ways.wraps_ahead(router, way)), |lane| lane.class)
            }
            Lanes::Dally(_) => self.basic(router, way),
            Lanes::BubbleVls(bubble @ BubbleConfig { mode: BubbleMode::Oblivious, .. }) => match stays {
                Some(lane) => lane.class,
                None => return (0..bubble.classes()).map(|class| Lane { link, class }).collect(),
            },
            Lanes::Bubble | Lanes::BubbleVls(_) => 0,
        };
        vec![Lane { link, class }]
    }

    /// Beside those, the lanes of the escape's classes that such a packet may hold without waiting for them.
    pub(super) fn held(&self, waited: &Lane) -> Option<Lane> {
        let either = matches!(self.lanes, Lanes::Dally(dally) if self.ranked() && dally.mode != Dally::Trc);
        (either && waited.class == 1).then_some(Lane { class: 0, ..*waited })
    }
}
