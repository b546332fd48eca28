//! Ways packet by packet: at each switch, the links by which a packet may go on, and which of them it takes.

use super::graph::GraphHops;
use super::grid::{GridHops, Rings};
use super::lattice_lanes::LatticeHops;
use super::minimal::MinimalHops;
use super::table::Table;
use super::tree::TreeHops;
use super::{Candidates, Choice, Hop, Lane, Ranks, RoutingConfig, RoutingError};
use crate::kernel::random::draw;
use crate::topology::{LinkId, NodeId, Structure, Topology};
use std::hash::{Hash, Hasher};
use std::ops::Range;

/// By what a packet chooses among several links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    First,
    Flow,
    Packet,
    Destination,
    Source,
    Credits,
}

/// The links that are offered.
#[derive(Clone, Debug)]
pub(super) enum NextHops {
    Tree(TreeHops),
    Grid(GridHops),
    Lattice(LatticeHops),
    Graph(GraphHops),
    Table(Table),
    Minimal(MinimalHops),
}

/// The routing of one topology: for each switch and destination the links that lie on a way.
#[derive(Clone, Debug)]
pub struct Routes {
    pub(super) next_hops: NextHops,
    rule: Rule,
    seed: u64,
    /// Classes of virtual lanes among which packets choose as they do among links, where that is what the routing does.
    spread: Option<u8>,
    config: RoutingConfig,
}

impl Routes {
    /// The routing `config` of `topology`; `seed` decides hashes and draws.
    ///
    /// # Errors
    /// When the routing does not fit the topology or is not the one that its file says, its tables would be too large, or its file
    /// is wrong.
    pub fn new(config: &RoutingConfig, topology: &Topology, seed: u64) -> Result<Self, RoutingError> {
        if topology.has_routes() && *config != RoutingConfig::File {
            return Err(RoutingError::NotTheFiles { routing: config.to_string() });
        }
        Self::ignoring_file(config, topology, seed)
    }

    /// The same, but a topology whose file says routes may have any routing.
    ///
    /// # Errors
    /// As [`Routes::new`].
    pub fn ignoring_file(config: &RoutingConfig, topology: &Topology, seed: u64) -> Result<Self, RoutingError> {
        fits(config, topology)?;
        let rule = match config {
            RoutingConfig::Ecmp => Rule::Flow,
            RoutingConfig::EcmpPacket | RoutingConfig::Random => Rule::Packet,
            RoutingConfig::DModK | RoutingConfig::UpDown => Rule::Destination,
            RoutingConfig::SModK => Rule::Source,
            RoutingConfig::Adaptive | RoutingConfig::AdaptiveVls(_) | RoutingConfig::MinimalAdaptive => Rule::Credits,
            RoutingConfig::Shortest
            | RoutingConfig::Dor
            | RoutingConfig::DorTies(_)
            | RoutingConfig::Bubble
            | RoutingConfig::Dally(_)
            | RoutingConfig::BubbleVls(_)
            | RoutingConfig::File
            | RoutingConfig::Table(_) => Rule::First,
        };
        let next_hops = match config {
            RoutingConfig::Table(file) => Some(NextHops::Table(Table::read(file, topology)?)),
            RoutingConfig::File => Some(NextHops::Table(Table::of(topology, "file", |at, to| topology.route(at, to))?)),
            RoutingConfig::Dor => GridHops::of(topology, Rings::Dateline).map(NextHops::Grid),
            RoutingConfig::Bubble => GridHops::of(topology, Rings::Bubble).map(NextHops::Grid),
            RoutingConfig::DorTies(_) | RoutingConfig::Dally(_) | RoutingConfig::BubbleVls(_) => None,
            RoutingConfig::MinimalAdaptive => Some(NextHops::Minimal(MinimalHops::new(topology, config)?)),
            _ => TreeHops::of(topology).map(NextHops::Tree),
        };
        let next_hops = match next_hops {
            Some(next_hops) => Some(next_hops),
            None => LatticeHops::of(topology, config, seed)?.map(NextHops::Lattice),
        };
        let spread = match config {
            RoutingConfig::AdaptiveVls(vls) => Some(vls.unwrap_or(1)),
            _ => None,
        };
        let next_hops = match next_hops {
            Some(next_hops) => next_hops,
            None if *config == RoutingConfig::UpDown => NextHops::Graph(GraphHops::up_down(topology, config)?),
            None => NextHops::Graph(GraphHops::shortest(topology, config)?),
        };
        Ok(Self { next_hops, rule, seed, spread, config: config.clone() })
    }

    /// All shortest ways of a topology, chosen among by a hash of the flow. Where the tables would be too large there
    /// are none; [`Routes::new`] says so.
    #[must_use]
    pub fn shortest(topology: &Topology) -> Self {
        let config = RoutingConfig::Ecmp;
        Self::ignoring_file(&config, topology, 1).unwrap_or_else(|_| Self {
            next_hops: NextHops::Table(Table::none(topology)),
            rule: Rule::Flow,
            seed: 1,
            spread: None,
            config,
        })
    }

    /// The routing of a LIGHTNESS routing file, whose text is `text` and which errors call `file`.
    ///
    /// # Errors
    /// As [`RoutingError::Line`] and [`RoutingError::Loop`] say.
    pub fn from_table(text: &str, file: &str, topology: &Topology) -> Result<Self, RoutingError> {
        let next_hops = NextHops::Table(Table::parse(text, file, topology)?);
        Ok(Self { next_hops, rule: Rule::First, seed: 0, spread: None, config: RoutingConfig::Table(file.into()) })
    }

    /// The routing that `next` defines: the link by which a packet for a host goes on that stands at a switch. Errors call it
    /// `name`. A link that does not leave the switch counts as none.
    ///
    /// # Errors
    /// When a host does not reach another one, or packets go round.
    pub fn by(
        topology: &Topology,
        name: &str,
        next: impl Fn(NodeId, NodeId) -> Option<LinkId>,
    ) -> Result<Self, RoutingError> {
        let next_hops = NextHops::Table(Table::of(topology, name, next)?);
        Ok(Self { next_hops, rule: Rule::First, seed: 0, spread: None, config: RoutingConfig::Table(name.into()) })
    }

    /// The routing as a LIGHTNESS routing file: one line a switch, ports by number of the destination, separated by
    /// blanks.
    ///
    /// # Errors
    /// When packets for one destination may take several ports of a switch.
    pub fn to_table(&self, topology: &Topology) -> Result<String, RoutingError> {
        if !self.has_one_port() {
            return Err(RoutingError::NoTable { routing: self.config.to_string() });
        }
        Ok(super::table::write(topology, |at, to| self.only_link(at, to)))
    }

    /// Whether packets for one destination take one port of a switch, whatever their flow and wherever they come from.
    #[must_use]
    pub fn has_one_port(&self) -> bool {
        let by_more = match &self.next_hops {
            NextHops::Graph(sets) => sets.is_up_down(),
            NextHops::Lattice(lattice) => lattice.looks_at_packets(),
            _ => false,
        };
        matches!(self.rule, Rule::First | Rule::Destination) && !by_more
    }

    /// What it was made from.
    #[must_use]
    pub const fn config(&self) -> &RoutingConfig {
        &self.config
    }

    /// Hashes what its own file says, if it has one.
    pub(crate) fn hash_into(&self, state: &mut impl Hasher) {
        if let NextHops::Table(table) = &self.next_hops {
            table.hash(state);
        }
    }

    /// How many classes of virtual lanes the routing needs to be free of deadlock.
    #[must_use]
    pub fn classes(&self) -> u8 {
        match &self.next_hops {
            NextHops::Grid(grid) => grid.classes(),
            NextHops::Lattice(lattice) => lattice.classes(),
            NextHops::Minimal(minimal) => minimal.escape_classes() + 1,
            NextHops::Tree(_) | NextHops::Graph(_) | NextHops::Table(_) => self.spread.unwrap_or(1),
        }
    }

    /// How many of the largest packets a buffer needs room for: 2 where rings keep bubbles.
    #[must_use]
    pub fn packets_of_room(&self) -> u32 {
        match &self.next_hops {
            NextHops::Grid(grid) if grid.needs_bubbles() => 2,
            NextHops::Lattice(lattice) if lattice.needs_bubbles() => 2,
            _ => 1,
        }
    }

    /// Where a packet for host `to` may go on that stands at switch `at`, having come by `input_link`. At a host, that is its
    /// link, whatever `input_link` is.
    #[inline]
    #[must_use]
    pub fn next(&self, at: NodeId, input_link: LinkId, to: NodeId) -> Candidates<'_> {
        let links = match &self.next_hops {
            NextHops::Tree(tree) => tree.next(at, to),
            NextHops::Grid(grid) => return grid.next(at, input_link, to),
            NextHops::Lattice(lattice) => return lattice.next(at, input_link, to),
            NextHops::Graph(sets) => sets.next(at, input_link, to),
            NextHops::Table(table) => table.next(at, to),
            NextHops::Minimal(minimal) => return minimal.next(at, to),
        };
        Candidates { links, class: 0, classes: self.spread.unwrap_or(1), enters_ring: false }
    }

    /// Whether where packets go on, as [`Routes::next`] says, depends on the switch and the destination alone.
    #[must_use]
    pub(crate) const fn ignores_inputs(&self) -> bool {
        matches!(self.next_hops, NextHops::Tree(_) | NextHops::Table(_))
    }

    /// Where the links that [`Routes::next`] offers at switch `at` lie among all links by the nodes at which they begin
    /// ([`Topology::ports`]), if that is reckoned, as in trees.
    #[inline]
    pub(crate) fn positions(&self, at: NodeId, to: NodeId) -> Option<Range<u32>> {
        match &self.next_hops {
            NextHops::Tree(tree) => Some(tree.positions(at, to)),
            _ => None,
        }
    }

    /// Whether a packet takes one lane that depends on more than place and destination: [`Routes::lane`].
    #[must_use]
    pub fn looks_at_packets(&self) -> bool {
        matches!(&self.next_hops, NextHops::Lattice(lattice) if lattice.looks_at_packets() && !lattice.ranked())
    }

    /// That lane, and whether the packet enters a ring that must keep a bubble.
    #[must_use]
    pub fn lane(&self, hop: &Hop) -> Option<(Lane, bool)> {
        match &self.next_hops {
            NextHops::Lattice(lattice) => lattice.lane(hop),
            _ => None,
        }
    }

    /// All lanes that a packet may take which commits itself to room, the preferred ones first, in place of what `ranks` held.
    pub fn ranks(&self, hop: &Hop, ranks: &mut Ranks) {
        ranks.clear();
        if let NextHops::Lattice(lattice) = &self.next_hops {
            return lattice.ranks(hop, ranks);
        }
        let on_escape = hop.class < self.escape_classes();
        ranks.push_candidates(&self.next(hop.at, hop.input_link, hop.to));
        if let Some(escape) = self.escape(hop.at, hop.input_link, on_escape, hop.to) {
            ranks.push_candidates(&escape);
        }
    }

    /// Where the packet may go on if nothing that [`Routes::next`] offers has room, `on_escape` if it came by a lane of the
    /// escape's classes; `None` if the routing has no escape there.
    #[must_use]
    pub fn escape(&self, at: NodeId, input_link: LinkId, on_escape: bool, to: NodeId) -> Option<Candidates<'_>> {
        match &self.next_hops {
            NextHops::Minimal(minimal) => minimal.escape(at, input_link, on_escape, to),
            _ => None,
        }
    }

    /// How many classes, from 0 on, are those of the escape.
    #[must_use]
    pub fn escape_classes(&self) -> u8 {
        match &self.next_hops {
            NextHops::Minimal(minimal) => minimal.escape_classes(),
            NextHops::Lattice(lattice) => lattice.escape_classes(),
            _ => 0,
        }
    }

    /// Whether a packet commits itself to a link and lane only where there is room for it, and judges all candidates again
    /// whenever credits come.
    #[must_use]
    pub fn commits_to_room(&self) -> bool {
        match &self.next_hops {
            NextHops::Minimal(_) => true,
            NextHops::Lattice(lattice) => lattice.ranked(),
            _ => self.spread.is_some(),
        }
    }

    /// Whether packets look at the room of lanes that end where they stand.
    #[must_use]
    pub(crate) fn looks_at_room_behind(&self) -> bool {
        matches!(&self.next_hops, NextHops::Lattice(lattice) if lattice.looks_at_room_behind())
    }

    /// Whether packets compare lanes by the flits that have come and not gone.
    #[must_use]
    pub fn compares_flits(&self) -> bool {
        matches!(&self.next_hops, NextHops::Lattice(lattice) if lattice.compares_flits())
    }

    /// Whether what a packet takes depends on the credits that are free.
    #[must_use]
    pub fn chooses_by_room(&self) -> bool {
        self.rule == Rule::Credits || self.commits_to_room()
    }

    /// How many cases [`Routes::case`] tells apart, where packets choose from several lanes and all switches are alike; else 0.
    pub(crate) fn cases(&self) -> usize {
        match &self.next_hops {
            NextHops::Lattice(lattice) => lattice.cases(),
            _ => 0,
        }
    }

    /// By what [`Routes::ranks`] are the same at all switches, in directions (see [`Routes::directions`]), below [`Routes::cases`]: of the
    /// packet `key` for the host `to` at switch `at`, which came by the direction `input`, `None` from a host, and its class there.
    /// `None` where it is at its end.
    #[inline]
    pub(crate) fn case(&self, at: NodeId, input: (Option<u8>, u8), to: NodeId, key: u64) -> Option<usize> {
        match &self.next_hops {
            NextHops::Lattice(lattice) => lattice.case(at, input, to, key),
            _ => None,
        }
    }

    /// The direction of a link between switches, as [`Routes::directions`] counts them.
    pub(crate) fn direction_of(&self, link: LinkId) -> Option<u8> {
        match &self.next_hops {
            NextHops::Lattice(lattice) => {
                let (axis, forward) = lattice.ways().direction_of(link)?;
                u8::try_from(2 * axis + usize::from(!forward)).ok()
            }
            _ => None,
        }
    }

    /// How many classes of virtual lanes a packet may take on the link of its source host, from 0 on: 1, or all, and then the one with
    /// the most room.
    #[must_use]
    pub fn classes_at_hosts(&self) -> u8 {
        self.spread.unwrap_or(1)
    }

    /// Directions of a lattice that this routing follows: two for each axis, forward and back.
    #[must_use]
    pub fn directions(&self) -> Option<usize> {
        match &self.next_hops {
            NextHops::Lattice(lattice) => Some(2 * lattice.ways().axes()),
            _ => None,
        }
    }

    /// The first direction of the way of packet `key` from host `from` to host `to`, axis by axis: 2 x axis forward, 1 more back.
    /// `None` between hosts of one router, and without directions.
    #[must_use]
    pub fn first_direction(&self, from: NodeId, to: NodeId, key: u64) -> Option<usize> {
        match &self.next_hops {
            NextHops::Lattice(lattice) => lattice.ways().first_direction(from, to, key),
            _ => None,
        }
    }

    /// The last direction of that way.
    #[must_use]
    pub fn last_direction(&self, from: NodeId, to: NodeId, key: u64) -> Option<usize> {
        match &self.next_hops {
            NextHops::Lattice(lattice) => lattice.ways().last_direction(from, to, key),
            _ => None,
        }
    }

    /// All directions of that way, a bit each.
    #[must_use]
    pub fn way_directions(&self, from: NodeId, to: NodeId, key: u64) -> u32 {
        match &self.next_hops {
            NextHops::Lattice(lattice) => lattice.ways().way_directions(from, to, key),
            _ => 0,
        }
    }

    /// The direction in which that way has most steps: of several the first.
    #[must_use]
    pub fn longest_direction(&self, from: NodeId, to: NodeId, key: u64) -> Option<usize> {
        match &self.next_hops {
            NextHops::Lattice(lattice) => lattice.ways().longest_direction(from, to, key),
            _ => None,
        }
    }

    /// All directions that lead nearer from host `from` to host `to`, a bit each.
    #[must_use]
    pub fn nearer_directions(&self, from: NodeId, to: NodeId) -> u32 {
        match &self.next_hops {
            NextHops::Lattice(lattice) => lattice.ways().nearer_directions(from, to),
            _ => 0,
        }
    }

    /// Which of `ways` links a packet takes that stands at `at`: its key, the flow it belongs to, and the hosts from
    /// which it comes and to which it goes.
    #[inline]
    #[must_use]
    pub fn choose(&self, ways: usize, at: NodeId, key: u64, flow: u64, source: NodeId, destination: NodeId) -> Choice {
        if ways <= 1 {
            return Choice::Index(0);
        }
        let number = match self.rule {
            Rule::First => 0,
            Rule::Flow => draw(self.seed, u64::from(at.0), flow),
            Rule::Packet => draw(self.seed, u64::from(at.0), key),
            Rule::Destination => return self.by_host(ways, at, destination, destination),
            Rule::Source => return self.by_host(ways, at, destination, source),
            Rule::Credits => return Choice::ByCredits,
        };
        let ways = ways as u64;
        // A division takes longer than all the rest.
        let index = if ways.is_power_of_two() { number & (ways - 1) } else { number % ways };
        Choice::Index(usize::try_from(index).unwrap_or(0))
    }

    /// The link that is for `host` among those that lead towards `destination`.
    fn by_host(&self, ways: usize, at: NodeId, destination: NodeId, host: NodeId) -> Choice {
        Choice::Index(match &self.next_hops {
            NextHops::Tree(tree) => tree.port(at, destination, host),
            _ => host.0 as usize % ways,
        })
    }

    /// Appends the links of a flow's way to `path`; `false` if it leads nowhere.
    pub(super) fn walk(
        &self,
        topology: &Topology,
        source: NodeId,
        destination: NodeId,
        flow: u64,
        path: &mut Vec<LinkId>,
    ) -> bool {
        let (mut at, mut input_link) = (source, LinkId(u32::MAX));
        for _ in 0..=topology.links().len() {
            if at == destination {
                return true;
            }
            let links = self.next(at, input_link, destination).links;
            let Choice::Index(index) = self.choose(links.len(), at, flow, flow, source, destination) else {
                return false;
            };
            let Some(link) = links.get(index) else { return false };
            path.push(*link);
            (at, input_link) = (topology.link(*link).to, *link);
        }
        false
    }
}

/// Refuses a routing whose way of reckoning the topology does not have.
fn fits(config: &RoutingConfig, topology: &Topology) -> Result<(), RoutingError> {
    let grid = matches!(topology.structure(), Structure::Grid(_) | Structure::Lattice(_));
    let one_way = topology.links().iter().any(|link| link.absent);
    let (needs, allowed) = match config {
        RoutingConfig::Dor
        | RoutingConfig::DorTies(_)
        | RoutingConfig::Bubble
        | RoutingConfig::Dally(_)
        | RoutingConfig::BubbleVls(_)
            if !grid =>
        {
            ("dimensions (shape = \"mesh\" or \"torus\")", "ecmp, d-mod-k or up-down")
        }
        RoutingConfig::UpDown | RoutingConfig::MinimalAdaptive if one_way => {
            ("cables that lead both ways (ways = 2)", "dor, bubble or { dally = \"adaptive\" }")
        }
        RoutingConfig::File if !topology.has_routes() => (
            "routes in the topology's file (comment in a DOT digraph, or fabric.topology.lfts)",
            "ecmp, shortest or up-down",
        ),
        RoutingConfig::DModK
        | RoutingConfig::SModK
        | RoutingConfig::Random
        | RoutingConfig::Adaptive
        | RoutingConfig::AdaptiveVls(_)
            if grid =>
        {
            ("ways that lead up and down again, as trees have", "dor, bubble, ecmp or up-down")
        }
        _ => return Ok(()),
    };
    let shape = match topology.structure() {
        Structure::Any => "a graph",
        Structure::Tree(_) => "a tree",
        Structure::Grid(grid) if grid.wraps => "a torus",
        Structure::Grid(_) => "a mesh",
        Structure::Lattice(lattice) => lattice.name,
    };
    Err(RoutingError::DoesNotFit { routing: config.to_string(), needs, shape, allowed })
}
