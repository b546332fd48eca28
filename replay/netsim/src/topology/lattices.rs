//! Lattices: twisted, one-way and damaged tori and meshes, midimews, SpiNNaker's triangles.

use super::builder::Builder;
use super::faults::{FaultsConfig, check_joined};
use super::ids::MAX_CABLES;
use super::keys::{check_nodes, listed};
use super::lattice::Lattice;
use super::link::{Cable, cables};
use super::{HostPlace, LinkConfig, NodeId, Structure, Topology, TopologyError};
use serde::{Deserialize, Serialize};

/// A midimew: n routers in a circle, each joined to those b and b - 1 further on, b = ceil(sqrt(n / 2)); the mean distance is the least
/// that is possible with four links (Beivide and others 1991).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MidimewConfig {
    /// Routers, 5 at least. Default: 13, as in INSEE's figure 2.
    pub routers: u32,
    /// Hosts at each router. Default: 1.
    pub concentration: u32,
    /// Hosts: routers x concentration, to be sure. Default: whatever these make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// From a host to its router.
    pub host_link: LinkConfig,
    /// Between routers.
    pub link: LinkConfig,
    /// Between routers, those of the step b, then those of b - 1, in place of `link`. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkConfig>,
    /// Directions of cables between routers: 2, or 1 (forward only). Default: 2.
    #[serde(skip_serializing_if = "both_ways")]
    pub ways: u8,
    /// Cables between routers that are out of order: how many, or which. Default: none.
    #[serde(skip_serializing_if = "FaultsConfig::is_none")]
    pub faults: FaultsConfig,
    /// Decides which, if `faults` is a number. Default: 1.
    #[serde(skip_serializing_if = "is_first_seed")]
    pub fault_seed: u64,
}

impl Default for MidimewConfig {
    fn default() -> Self {
        let link = LinkConfig::default();
        Self {
            routers: 13,
            concentration: 1,
            nodes: None,
            host_link: link,
            link,
            links: Vec::new(),
            ways: 2,
            faults: FaultsConfig::default(),
            fault_seed: 1,
        }
    }
}

/// SpiNNaker's network: a torus of two dimensions whose routers are also joined along the diagonal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SpinnakerConfig {
    /// Routers in both dimensions, 3 at least. Default: `[8, 8]`.
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
    /// Between routers, those of (1, 0), (0, 1) and (1, 1), in place of `link`. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkConfig>,
    /// Directions of cables between routers: 2, or 1 (forward only). Default: 2.
    #[serde(skip_serializing_if = "both_ways")]
    pub ways: u8,
    /// Cables between routers that are out of order: how many, or which. Default: none.
    #[serde(skip_serializing_if = "FaultsConfig::is_none")]
    pub faults: FaultsConfig,
    /// Decides which, if `faults` is a number. Default: 1.
    #[serde(skip_serializing_if = "is_first_seed")]
    pub fault_seed: u64,
}

impl Default for SpinnakerConfig {
    fn default() -> Self {
        let link = LinkConfig::default();
        Self {
            size: vec![8, 8],
            concentration: 1,
            nodes: None,
            host_link: link,
            link,
            links: Vec::new(),
            ways: 2,
            faults: FaultsConfig::default(),
            fault_seed: 1,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
pub(super) const fn both_ways(ways: &u8) -> bool {
    *ways == 2
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
pub(super) const fn is_first_seed(seed: &u64) -> bool {
    *seed == 1
}

/// Whether rings lead forward only.
pub(super) fn one_way(ways: u8) -> Result<bool, TopologyError> {
    match ways {
        1 => Ok(true),
        2 => Ok(false),
        other => Err(TopologyError::value("ways", other, "1 (cables lead forward only) or 2 (both ways)")),
    }
}

impl MidimewConfig {
    pub(super) fn build(&self, hosts: &[HostPlace]) -> Result<Topology, TopologyError> {
        let n = self.routers;
        if n < 5 {
            return Err(TopologyError::value("routers", n, "at least 5: fewer have no two steps"));
        }
        // The least b with 2 b^2 >= n.
        let b = (1..=n).find(|b| 2 * u64::from(*b) * u64::from(*b) >= n.into()).unwrap_or(n);
        let lattice = Lattice {
            name: "a midimew",
            size: vec![n],
            wraps: true,
            twist: vec![vec![0]],
            steps: vec![vec![b], vec![b - 1]],
            one_way: one_way(self.ways)?,
            concentration: self.concentration,
            ports: Vec::new(),
        };
        let keys = LatticeKeys {
            what: format!("a midimew of {n}"),
            nodes: self.nodes,
            host_link: &self.host_link,
            link: &self.link,
            links: &self.links,
            faults: &self.faults,
            fault_seed: self.fault_seed,
        };
        keys.build(lattice, hosts)
    }
}

impl SpinnakerConfig {
    pub(super) fn build(&self, hosts: &[HostPlace]) -> Result<Topology, TopologyError> {
        if self.size.len() != 2 || self.size.iter().any(|size| *size < 3) {
            return Err(TopologyError::value("size", listed(&self.size), "two numbers of at least 3 are needed"));
        }
        let lattice = Lattice {
            name: "a SpiNNaker network",
            size: self.size.clone(),
            wraps: true,
            twist: vec![vec![0; 2]; 2],
            steps: vec![vec![1, 0], vec![0, 1], vec![1, 1]],
            one_way: one_way(self.ways)?,
            concentration: self.concentration,
            ports: Vec::new(),
        };
        let keys = LatticeKeys {
            what: format!("a SpiNNaker network of {}", listed(&self.size)),
            nodes: self.nodes,
            host_link: &self.host_link,
            link: &self.link,
            links: &self.links,
            faults: &self.faults,
            fault_seed: self.fault_seed,
        };
        keys.build(lattice, hosts)
    }
}

/// What the keys of lattices have in common.
pub(super) struct LatticeKeys<'a> {
    pub(super) what: String,
    pub(super) nodes: Option<u32>,
    pub(super) host_link: &'a LinkConfig,
    pub(super) link: &'a LinkConfig,
    pub(super) links: &'a [LinkConfig],
    pub(super) faults: &'a FaultsConfig,
    pub(super) fault_seed: u64,
}

impl LatticeKeys<'_> {
    /// The network of `lattice` for `hosts`.
    pub(super) fn build(self, mut lattice: Lattice, hosts: &[HostPlace]) -> Result<Topology, TopologyError> {
        if lattice.concentration == 0 {
            return Err(TopologyError::Zero { key: "concentration" });
        }
        let routers = lattice.size.iter().fold(1u64, |product, size| product.saturating_mul((*size).into()));
        let each = u64::from(lattice.concentration) + lattice.axes() as u64;
        let (all, most) = (routers.saturating_mul(each), MAX_CABLES);
        if all > most {
            return Err(TopologyError::TooLarge { cables: all, most });
        }
        let places = lattice.routers() * lattice.concentration;
        check_nodes(self.nodes, places, &self.what)?;
        let host_cable = self.host_link.cable("host_link")?;
        let of_axes: Vec<Cable> = cables((self.link, "link"), (self.links, "links"), lattice.axes())?;
        let mut builder = Builder::with_hosts(hosts, places, &|| self.what.clone())?;
        for router in 0..lattice.routers() {
            let coordinates: Vec<u32> =
                lattice.coordinates(router).into_iter().map(|at| u32::try_from(at).unwrap_or(0)).collect();
            builder.add_numbered("r", &coordinates);
        }
        for host in 0..places {
            builder.join(NodeId(host), NodeId(places + host / lattice.concentration), &host_cable);
        }
        let all = lattice.cables();
        let faulty = {
            let name = |router: u32| builder.topology.name(NodeId(places + router));
            let ends: Vec<(&str, &str)> = all.iter().map(|cable| (name(cable.from), name(cable.to))).collect();
            self.faults.among(&ends, self.fault_seed)?
        };
        let rings: Vec<bool> = (0..lattice.axes()).map(|axis| lattice.is_ring(axis)).collect();
        let mut joined = Vec::with_capacity(all.len());
        for (cable, _) in all.into_iter().zip(faulty).filter(|(_, faulty)| !faulty) {
            let (from, to) = (NodeId(places + cable.from), NodeId(places + cable.to));
            let one_way = lattice.one_way && rings[cable.axis];
            joined.push((cable, builder.join_by(from, to, &of_axes[cable.axis], one_way)));
        }
        lattice.join(joined.into_iter());
        check_joined(&builder)?;
        Ok(builder.finish(Structure::Lattice(lattice)))
    }
}
