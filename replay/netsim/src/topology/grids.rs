//! Meshes and tori: routers in one to many dimensions, with hosts at each of them.

use super::builder::Builder;
use super::ids::MAX_CABLES;
use super::keys::{check_nodes, listed};
use super::link::{Cable, cables};
use super::{Grid, HostPlace, LinkConfig, NodeId, Structure, Topology, TopologyError};
use serde::{Deserialize, Serialize};

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
}

impl Default for GridConfig {
    fn default() -> Self {
        let link = LinkConfig::default();
        Self { size: vec![8, 8], concentration: 1, nodes: None, host_link: link, link, links: Vec::new() }
    }
}

/// How many dimensions there may be.
const MAX_DIMENSIONS: usize = 16;

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
}
