//! Meshes and tori: routers in one to many dimensions, with hosts at each of them.

use super::builder::Builder;
use super::faults::FaultsConfig;
use super::ids::MAX_CABLES;
use super::keys::{check_nodes, listed};
use super::lattice::Lattice;
use super::lattices::{LatticeKeys, both_ways, is_first_seed, one_way};
use super::link::{Cable, cables};
use super::{Grid, HostPlace, LinkConfig, NodeId, Structure, Topology, TopologyError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A mesh or a torus: `shape` says which.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GridConfig {
    /// Routers in each dimension. Default: `[8, 8]`.
    pub size: Vec<u32>,
    /// Hosts at each router. Default: 1.
    pub concentration: u32,
    /// Hosts: size x concentration, to be sure. Default: whatever these make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// From a host to its router.
    pub host_link: LinkConfig,
    /// Between routers.
    pub link: LinkConfig,
    /// Between routers, dimension by dimension, in place of `link`. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkConfig>,
    /// Of a torus: how far a step over the end of a dimension shifts another one, as `{ y = { x = 4 } }`: over the end of y, x
    /// is shifted by 4. Default: nowhere.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub twist: Twist,
    /// Of a torus: directions of cables between routers: 2, or 1 (forward only). Default: 2.
    #[serde(skip_serializing_if = "both_ways")]
    pub ways: u8,
    /// Cables between routers that are out of order: how many, or which. Default: none.
    #[serde(skip_serializing_if = "FaultsConfig::is_none")]
    pub faults: FaultsConfig,
    /// Decides which, if `faults` is a number. Default: 1.
    #[serde(skip_serializing_if = "is_first_seed")]
    pub fault_seed: u64,
}

/// For a dimension, how far a step over its end shifts another one; both by name.
pub type Twist = BTreeMap<String, BTreeMap<String, u32>>;

impl Default for GridConfig {
    fn default() -> Self {
        let link = LinkConfig::default();
        Self {
            size: vec![8, 8],
            concentration: 1,
            nodes: None,
            host_link: link,
            link,
            links: Vec::new(),
            twist: Twist::new(),
            ways: 2,
            faults: FaultsConfig::default(),
            fault_seed: 1,
        }
    }
}

/// How many dimensions there may be.
const MAX_DIMENSIONS: usize = 16;

/// What dimensions are called where one is named.
const DIMENSIONS: [&str; 3] = ["x", "y", "z"];

impl GridConfig {
    fn grid(&self, wraps: bool) -> Result<Grid, TopologyError> {
        let wrong = |allowed: String| Err(TopologyError::value("size", listed(&self.size), allowed));
        if self.size.is_empty() || self.size.len() > MAX_DIMENSIONS {
            return wrong(format!("1 to {MAX_DIMENSIONS} numbers are needed, one a dimension"));
        }
        if self.size.contains(&0) {
            return wrong("at least 1 router is needed in every dimension".to_owned());
        }
        if self.concentration == 0 {
            return Err(TopologyError::Zero { key: "concentration" });
        }
        let routers = self.size.iter().fold(1u64, |product, size| product.saturating_mul((*size).into()));
        let each = u64::from(self.concentration) + self.size.len() as u64;
        let (cables, most) = (routers.saturating_mul(each), MAX_CABLES);
        if cables > most {
            return Err(TopologyError::TooLarge { cables, most });
        }
        Ok(Grid { size: self.size.clone(), wraps, concentration: self.concentration })
    }

    pub(super) fn build(&self, hosts: &[HostPlace], wraps: bool) -> Result<Topology, TopologyError> {
        let grid = self.grid(wraps)?;
        if !self.twist.is_empty() || self.ways != 2 || !self.faults.is_none() {
            return self.lattice(&grid, hosts);
        }
        let what = || format!("a {} of {}", if wraps { "torus" } else { "mesh" }, listed(&self.size));
        let (routers, dimensions) = (grid.routers(), grid.size.len());
        let places = routers * grid.concentration;
        check_nodes(self.nodes, places, &what())?;
        let host_cable = self.host_link.cable("host_link")?;
        let cables: Vec<Cable> = cables((&self.link, "link"), (&self.links, "links"), dimensions)?;
        let mut builder = Builder::with_hosts(hosts, places, &what)?;
        for router in 0..routers {
            builder.add_numbered("r", &grid.coordinates(router));
        }
        for host in 0..places {
            builder.join(NodeId(host), NodeId(places + host / grid.concentration), &host_cable);
        }
        for (dimension, cable) in cables.iter().enumerate() {
            let (size, stride) = (grid.size[dimension], grid.stride(dimension));
            for router in 0..routers {
                let here = router / stride % size;
                let next = match here + 1 {
                    next if next < size => router + stride,
                    _ if grid.is_ring(dimension) => router - here * stride,
                    _ => continue,
                };
                builder.join(NodeId(places + router), NodeId(places + next), cable);
            }
        }
        Ok(builder.finish(Structure::Grid(grid)))
    }

    /// The network where it is no plain mesh or torus.
    fn lattice(&self, grid: &Grid, hosts: &[HostPlace]) -> Result<Topology, TopologyError> {
        let mut lattice = Lattice::of_grid(grid);
        lattice.one_way = one_way(self.ways)?;
        if lattice.one_way && !grid.wraps {
            return Err(TopologyError::value(
                "ways",
                1,
                "2 for a mesh, of which one way leads nowhere; a torus may have 1",
            ));
        }
        lattice.twist = self.shifts(grid)?;
        let twisted = lattice.twist.iter().flatten().any(|shift| *shift > 0);
        if twisted {
            lattice.name = "a twisted torus";
        }
        let kind = lattice.name;
        let keys = LatticeKeys {
            what: format!("{kind} of {}", listed(&self.size)),
            nodes: self.nodes,
            host_link: &self.host_link,
            link: &self.link,
            links: &self.links,
            faults: &self.faults,
            fault_seed: self.fault_seed,
        };
        keys.build(lattice, hosts)
    }

    /// For each dimension how far a step over its end shifts each other one.
    fn shifts(&self, grid: &Grid) -> Result<Vec<Vec<u32>>, TopologyError> {
        let dimensions = grid.size.len();
        let mut shifts = vec![vec![0; dimensions]; dimensions];
        let number = |name: &str| {
            let found = DIMENSIONS.iter().position(|known| *known == name).filter(|number| *number < dimensions);
            let names = DIMENSIONS[..dimensions.min(DIMENSIONS.len())].join(", ");
            found.ok_or_else(|| TopologyError::value("twist", name, format!("the dimensions are called {names}")))
        };
        for (over, others) in &self.twist {
            let over_number = number(over)?;
            for (shifted, by) in others {
                let key = format!("twist.{over}.{shifted}");
                let shifted_number = number(shifted)?;
                if !grid.wraps {
                    return Err(TopologyError::value(key, by, "a torus: a mesh has no step over the end"));
                }
                if over_number == shifted_number {
                    return Err(TopologyError::value(
                        key,
                        by,
                        "another dimension than the one whose end is stepped over",
                    ));
                }
                if grid.size[over_number] < 2 {
                    return Err(TopologyError::value(key, by, format!("at least 2 routers in {over}")));
                }
                shifts[over_number][shifted_number] = by % grid.size[shifted_number];
            }
        }
        let shifting = |dimension: usize| shifts[dimension].iter().any(|shift| *shift > 0);
        for over in 0..dimensions {
            if let Some(chained) = (0..dimensions).find(|other| shifts[over][*other] > 0 && shifting(*other)) {
                let key = format!("twist.{}.{}", DIMENSIONS[over], DIMENSIONS[chained]);
                let allowed = "a dimension that is shifted shifts no other one";
                return Err(TopologyError::value(key, shifts[over][chained], allowed));
            }
        }
        Ok(shifts)
    }
}
