//! The shapes of topologies and how they are built from their keys.

use super::builder::Builder;
use super::placing::Placing;
use super::tree::two_levels;
use super::trees::TreeShape;
use super::{
    GraphConfig, GridConfig, HostPlace, KaryTreeConfig, LeafSpineConfig, LinkConfig, MidimewConfig, NodeId,
    PortTreeConfig, SingleSwitchConfig, SpinnakerConfig, Structure, ThinTreeConfig, Topology, TopologyError,
    XgftConfig,
};
use crate::count::count;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A shape and its keys: the `[fabric.topology]` table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "shape", rename_all = "kebab-case")]
pub enum TopologyConfig {
    /// Racks joined by uplinks.
    Racks(RacksConfig),
    /// LIGHTNESS' full fat-tree.
    FatTree(FatTreeConfig),
    /// One switch.
    SingleSwitch(SingleSwitchConfig),
    /// Leaves, each joined to every spine.
    LeafSpine(LeafSpineConfig),
    /// As many links up as down.
    KAryNTree(KaryTreeConfig),
    /// Fewer links up than down.
    ThinTree(ThinTreeConfig),
    /// All ports of all switches in use.
    MPortNTree(PortTreeConfig),
    /// A generalised fat tree.
    Xgft(XgftConfig),
    /// Routers in dimensions with ends.
    Mesh(GridConfig),
    /// Routers in dimensions that are rings.
    Torus(GridConfig),
    /// Routers in a circle, each joined to four.
    Midimew(MidimewConfig),
    /// A torus with diagonals.
    Spinnaker(SpinnakerConfig),
    /// What a file says.
    Graph(GraphConfig),
}

impl Default for TopologyConfig {
    fn default() -> Self {
        Self::Racks(RacksConfig::default())
    }
}

/// How rack switches are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Joined {
    /// Two racks directly, more through a core switch.
    #[default]
    Auto,
    /// Two racks by one cable.
    Direct,
    /// Each rack by one cable to a core switch.
    Core,
}

/// Each host at its rack's switch: the lab's network, and small clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RacksConfig {
    /// From a host to its rack's switch.
    pub host_link: LinkConfig,
    /// From a rack's switch to the other one, or to the core.
    pub uplink: LinkConfig,
    /// How the racks are joined. Default: `auto` (two racks directly, as the lab does; more through a core switch).
    pub joined: Joined,
}

/// A full fat-tree as LIGHTNESS' topology generator made it: from each rack switch one uplink to each core switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FatTreeConfig {
    /// Hosts, idle ones included; a multiple of `racks`. Default: as many as the workload needs, every rack filled up
    /// with idle hosts to the size of the largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// Racks. Default: those of the workload's hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub racks: Option<u32>,
    /// Core switches. Default: 2 (ours).
    pub cores: u32,
    /// Cables from each rack switch to each core switch. Default: 1, the deliverable's.
    pub factor: u32,
    /// From a host to its rack's switch.
    pub host_link: LinkConfig,
    /// From a rack's switch to a core switch.
    pub uplink: LinkConfig,
}

impl Default for FatTreeConfig {
    fn default() -> Self {
        Self {
            nodes: None,
            racks: None,
            cores: 2,
            factor: 1,
            host_link: LinkConfig::default(),
            uplink: LinkConfig::default(),
        }
    }
}

impl TopologyConfig {
    /// The shape's name in configurations.
    #[must_use]
    pub const fn shape(&self) -> &'static str {
        match self {
            Self::Racks(_) => "racks",
            Self::FatTree(_) => "fat-tree",
            Self::SingleSwitch(_) => "single-switch",
            Self::LeafSpine(_) => "leaf-spine",
            Self::KAryNTree(_) => "k-ary-n-tree",
            Self::ThinTree(_) => "thin-tree",
            Self::MPortNTree(_) => "m-port-n-tree",
            Self::Xgft(_) => "xgft",
            Self::Mesh(_) => "mesh",
            Self::Torus(_) => "torus",
            Self::Midimew(_) => "midimew",
            Self::Spinnaker(_) => "spinnaker",
            Self::Graph(_) => "graph",
        }
    }

    /// Builds the topology for `hosts`, and idle hosts where the shape has more places. Where `hosts` is empty, all are
    /// idle; `racks`, and shapes without `nodes` that need it, cannot do that.
    ///
    /// The workload's hosts stand on the first places, rack by rack; in `racks` and `fat-tree` on the first places of
    /// their racks; in `graph` on the hosts of their names, and where there is none on the first that are left.
    ///
    /// # Errors
    /// When the hosts do not fit, keys contradict each other, or a file cannot be read.
    pub fn build(&self, hosts: &[HostPlace]) -> Result<Topology, TopologyError> {
        match self {
            Self::Racks(config) => config.build(hosts, &Placing::of(hosts)?),
            Self::FatTree(config) => config.build(hosts, Placing::of(hosts)?),
            Self::SingleSwitch(config) => config.build(hosts),
            Self::LeafSpine(config) => config.build(hosts),
            Self::KAryNTree(config) => config.build(hosts),
            Self::ThinTree(config) => config.build(hosts),
            Self::MPortNTree(config) => config.build(hosts),
            Self::Xgft(config) => config.build(hosts),
            Self::Mesh(config) => config.build(hosts, false),
            Self::Torus(config) => config.build(hosts, true),
            Self::Midimew(config) => config.build(hosts),
            Self::Spinnaker(config) => config.build(hosts),
            Self::Graph(config) => config.build(hosts),
        }
    }

    /// How many hosts and racks the shape has, where its keys say so.
    #[must_use]
    pub fn places(&self) -> (Option<u32>, Option<u32>) {
        match self {
            Self::Racks(_) => (None, None),
            Self::FatTree(tree) => (tree.nodes, tree.racks),
            other => (other.build(&[]).ok().map(|topology| topology.hosts()), None),
        }
    }

    /// Takes files that it names as relative to `folder`.
    pub fn relative_to(&mut self, folder: &Path) {
        if let Self::Graph(config) = self {
            config.file = folder.join(&config.file);
            config.lfts = config.lfts.as_ref().map(|lfts| folder.join(lfts));
        }
    }
}

impl RacksConfig {
    fn build(&self, hosts: &[HostPlace], placing: &Placing) -> Result<Topology, TopologyError> {
        if hosts.is_empty() {
            return Err(TopologyError::NoHosts);
        }
        let host_link = self.host_link.cable("host_link")?;
        let uplink = self.uplink.cable("uplink")?;
        let racks = placing.racks.len();
        if self.joined == Joined::Direct && racks > 2 {
            return Err(TopologyError::DirectNeedsTwo { racks });
        }
        let places: Vec<usize> = (0..racks).map(|rack| placing.hosts_in(rack)).collect();
        let mut builder = hosts_by_rack(hosts, placing, &places);
        let switches: Vec<NodeId> = placing.racks.iter().map(|rack| builder.add_node(rack)).collect();
        let hosts_racks = places.iter().zip(&switches).flat_map(|(places, rack)| std::iter::repeat_n(*rack, *places));
        for (host, rack) in (0..).map(NodeId).zip(hosts_racks) {
            builder.join(host, rack, &host_link);
        }
        match (switches.as_slice(), self.joined) {
            ([_], _) => {}
            ([a, b], Joined::Auto | Joined::Direct) => builder.join(*a, *b, &uplink),
            _ => {
                let core = builder.add_node("core");
                for switch in switches {
                    builder.join(switch, core, &uplink);
                }
            }
        }
        Ok(builder.finish(Structure::Any))
    }
}

impl FatTreeConfig {
    fn build(&self, hosts: &[HostPlace], mut placing: Placing) -> Result<Topology, TopologyError> {
        for (key, value) in [("cores", self.cores), ("factor", self.factor)] {
            if value == 0 {
                return Err(TopologyError::Zero { key });
            }
        }
        let cables = [self.host_link.cable("host_link")?, self.uplink.cable("uplink")?];
        let used = placing.racks.len();
        let racks = self.racks.unwrap_or(u32::try_from(used.max(1)).unwrap_or(u32::MAX));
        if racks == 0 {
            return Err(TopologyError::Zero { key: "racks" });
        }
        if used > racks as usize {
            return Err(TopologyError::TooFewRacks { racks, used, names: placing.racks.join(", ") });
        }
        let places = self.places(racks, &placing)?;
        let tree = two_levels(places, racks, self.cores, self.factor)?;
        for number in used..racks as usize {
            placing.racks.push(format!("rack{number}"));
        }
        let builder = hosts_by_rack(hosts, &placing, &vec![places as usize; racks as usize]);
        Ok(builder.into_tree(tree, &cables, |builder, level, index| match level {
            1 => builder.add_node(&placing.racks[index as usize]),
            _ => builder.add_numbered("core", &[index]),
        }))
    }

    /// How many hosts stand in each rack.
    fn places(&self, racks: u32, placing: &Placing) -> Result<u32, TopologyError> {
        let largest = (0..placing.racks.len()).map(|rack| placing.hosts_in(rack)).max().unwrap_or(0);
        let Some(nodes) = self.nodes else {
            return match u32::try_from(largest) {
                Ok(0) | Err(_) => Err(TopologyError::NoHosts),
                Ok(largest) => Ok(largest),
            };
        };
        if nodes == 0 {
            return Err(TopologyError::Zero { key: "nodes" });
        }
        if !nodes.is_multiple_of(racks) {
            return Err(TopologyError::NotAMultiple { nodes, racks });
        }
        let places = nodes / racks;
        for (rack, name) in placing.racks.iter().enumerate() {
            let hosts = placing.hosts_in(rack);
            if hosts > places as usize {
                return Err(TopologyError::RackTooSmall { rack: name.clone(), hosts, places });
            }
        }
        Ok(places)
    }
}

/// Hosts rack by rack with `places` in each (idle ones where the workload has fewer).
fn hosts_by_rack(hosts: &[HostPlace], placing: &Placing, places: &[usize]) -> Builder {
    let mut builder = Builder::default();
    builder.topology.host_nodes = vec![NodeId(0); hosts.len()];
    let mut in_rack = vec![Vec::new(); places.len()];
    for host in 0..hosts.len() {
        in_rack[placing.rack(host)].push(host);
    }
    for (here, places) in in_rack.iter().zip(places) {
        let end = builder.topology.nodes() + count(*places);
        for host in here {
            builder.topology.host_nodes[*host] = builder.add_node(&hosts[*host].name);
        }
        builder.add_idle(end, !hosts.is_empty());
    }
    builder.hosts_end();
    builder
}
