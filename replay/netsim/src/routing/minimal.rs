//! All shortest ways, taken as there is room, with an escape that is free of deadlock by itself (Duato 1993, 1996): packets take
//! any shortest way on lanes of their own, and where none has room, the escape's way on the escape's lanes.
//!
//! | topology | escape | its classes |
//! |---|---|---|
//! | tree | none is needed: up, then down | 1, shared |
//! | mesh, torus | dimension by dimension, datelines on rings | 1, 2 |
//! | graph | up*/down* | 1 |

use super::graph::GraphHops;
use super::grid::{GridHops, Rings};
use super::tree::TreeHops;
use super::{Candidates, RoutingConfig, RoutingError};
use crate::csr::Csr;
use crate::topology::{LinkId, MAX_ENTRIES, NodeId, Topology};

/// No link by which a packet came.
const NOWHERE: LinkId = LinkId(u32::MAX);

/// Shortest ways and their escape.
#[derive(Clone, Debug)]
pub(super) enum MinimalHops {
    Tree(TreeHops),
    Grid(GridSets),
    Graph { shortest: GraphHops, escape: GraphHops },
}

impl MinimalHops {
    /// The ways of `topology`.
    pub(super) fn new(topology: &Topology, config: &RoutingConfig) -> Result<Self, RoutingError> {
        if let Some(tree) = TreeHops::of(topology) {
            return Ok(Self::Tree(tree));
        }
        if let Some(grid) = GridHops::of(topology, Rings::Dateline) {
            return GridSets::new(grid, config).map(Self::Grid);
        }
        let shortest = GraphHops::shortest(topology, config)?;
        let escape = GraphHops::up_down(topology, config)?;
        for to in (0..topology.hosts()).map(NodeId) {
            for at in (topology.hosts()..topology.nodes()).map(NodeId) {
                if !shortest.next(at, NOWHERE, to).is_empty() && escape.next(at, NOWHERE, to).is_empty() {
                    let name = |node: NodeId| topology.name(node).to_owned();
                    return Err(RoutingError::NoWay { routing: config.to_string(), from: name(at), to: name(to) });
                }
            }
        }
        Ok(Self::Graph { shortest, escape })
    }

    /// How many classes the escape has; those behind them are for all shortest ways. 0: there is no escape.
    pub(super) fn escape_classes(&self) -> u8 {
        match self {
            Self::Tree(_) => 0,
            Self::Grid(grid) => grid.dimension_order.classes(),
            Self::Graph { .. } => 1,
        }
    }

    /// The shortest ways.
    pub(super) fn next(&self, at: NodeId, to: NodeId) -> Candidates<'_> {
        let (links, at_end) = match self {
            Self::Tree(tree) => (tree.next(at, to), true),
            Self::Grid(grid) => match grid.dimension_order.end(at, to) {
                Some(link) => (std::slice::from_ref(link), true),
                None => (grid.links(at, to), false),
            },
            Self::Graph { shortest, .. } => (shortest.next(at, NOWHERE, to), shortest.is_end(at, to)),
        };
        // The last link leads to a host, which takes whatever comes.
        let class = if at_end { 0 } else { self.escape_classes() };
        Candidates { links, class, classes: 1, enters_ring: false }
    }

    /// The escape's way of a packet that came by `input_link`, and whether on a lane of the escape; `None` where the
    /// shortest ways need none.
    pub(super) fn escape(&self, at: NodeId, input_link: LinkId, on_escape: bool, to: NodeId) -> Option<Candidates<'_>> {
        match self {
            Self::Tree(_) => None,
            Self::Grid(grid) => {
                grid.dimension_order.end(at, to).is_none().then(|| grid.dimension_order.next(at, input_link, to))
            }
            // Up again from a lane of the shortest ways: nothing of the escape waits for those.
            Self::Graph { shortest, escape } => (!shortest.is_end(at, to)).then(|| Candidates {
                links: escape.next(at, if on_escape { input_link } else { NOWHERE }, to),
                class: 0,
                classes: 1,
                enters_ring: false,
            }),
        }
    }
}

/// The links of a grid that lead nearer, for each router and each set of directions that do.
#[derive(Clone, Debug)]
pub(super) struct GridSets {
    dimension_order: GridHops,
    /// Of each router and pattern (a digit of base 4 for each dimension: nowhere, forward, back, both).
    sets: Csr<LinkId>,
}

impl GridSets {
    fn new(dimension_order: GridHops, config: &RoutingConfig) -> Result<Self, RoutingError> {
        let (routers, dimensions) = (dimension_order.routers(), dimension_order.dimensions());
        let patterns = 4u64.saturating_pow(u32::try_from(dimensions).unwrap_or(u32::MAX));
        let entries = patterns.saturating_mul(u64::from(routers));
        if entries > MAX_ENTRIES {
            return Err(RoutingError::TooLarge { routing: config.to_string(), entries, most: MAX_ENTRIES });
        }
        let mut sets = Csr::default();
        for router in 0..routers {
            for pattern in 0..patterns {
                for dimension in 0..dimensions {
                    let directions = pattern >> (2 * dimension);
                    let there = [(1, true), (2, false)].into_iter().filter(|(bit, _)| directions & bit != 0);
                    sets.extend(there.filter_map(|(_, forward)| dimension_order.port(router, dimension, forward)));
                }
                sets.end_row();
            }
        }
        Ok(Self { dimension_order, sets })
    }

    fn links(&self, at: NodeId, to: NodeId) -> &[LinkId] {
        let mut pattern = 0;
        for (dimension, (forward, back)) in self.dimension_order.nearer(at, to).enumerate() {
            pattern |= (usize::from(forward) | usize::from(back) << 1) << (2 * dimension);
        }
        let router = self.dimension_order.router(at) as usize;
        let entry = (router << (2 * self.dimension_order.dimensions())) + pattern;
        self.sets.row(entry)
    }
}
