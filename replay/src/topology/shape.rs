//! The shapes of topologies and how they are built from their keys.

use super::{LinkConfig, NodeId, Topology, TopologyError};
use crate::fabric::HostPlace;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A shape and its keys: the `[fabric.topology]` table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "shape", rename_all = "kebab-case")]
pub enum TopologyConfig {
    /// Racks joined by uplinks.
    Racks(RacksConfig),
    /// LIGHTNESS' full fat-tree.
    FatTree(FatTreeConfig),
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

/// Links are numbered with 24 bits, so that event keys have room for them.
const MOST_CABLES: u64 = 1 << 22;

/// The hosts by rack, in the order in which racks first appear.
struct Placing {
    racks: Vec<String>,
    /// The rack of each host.
    rack_of: Vec<usize>,
}

impl Placing {
    fn of(hosts: &[HostPlace]) -> Result<Self, TopologyError> {
        let mut names = BTreeSet::new();
        let mut racks: Vec<String> = Vec::new();
        let mut rack_of = Vec::with_capacity(hosts.len());
        for host in hosts {
            if !names.insert(&host.name) {
                return Err(TopologyError::HostTwice { name: host.name.clone() });
            }
            let known = racks.iter().position(|rack| *rack == host.rack);
            rack_of.push(known.unwrap_or_else(|| {
                racks.push(host.rack.clone());
                racks.len() - 1
            }));
        }
        Ok(Self { racks, rack_of })
    }

    fn hosts_in(&self, rack: usize) -> usize {
        self.rack_of.iter().filter(|r| **r == rack).count()
    }
}

impl TopologyConfig {
    /// Builds the topology for `hosts`, and idle hosts where the shape asks for them.
    ///
    /// # Errors
    /// When the hosts do not fit, or keys contradict each other.
    pub fn build(&self, hosts: &[HostPlace]) -> Result<Topology, TopologyError> {
        let placing = Placing::of(hosts)?;
        match self {
            Self::Racks(config) => config.build(hosts, &placing),
            Self::FatTree(config) => config.build(hosts, placing),
        }
    }
}

impl RacksConfig {
    fn build(&self, hosts: &[HostPlace], placing: &Placing) -> Result<Topology, TopologyError> {
        if hosts.is_empty() {
            return Err(TopologyError::NoHosts);
        }
        let host_delay = self.host_link.delay_ps("host_link")?;
        let uplink_delay = self.uplink.delay_ps("uplink")?;
        let racks = placing.racks.len();
        if self.joined == Joined::Direct && racks > 2 {
            return Err(TopologyError::DirectNeedsTwo { racks });
        }
        let places: Vec<usize> = (0..racks).map(|rack| placing.hosts_in(rack)).collect();
        let (mut topology, switches) = hosts_and_racks(hosts, placing, &places);
        for (host, rack) in host_racks(&places) {
            topology.join(host, switches[rack], &self.host_link, host_delay);
        }
        match (switches.as_slice(), self.joined) {
            ([_], _) => {}
            ([a, b], Joined::Auto | Joined::Direct) => topology.join(*a, *b, &self.uplink, uplink_delay),
            _ => {
                let core = topology.add_node("core".to_owned());
                for switch in switches {
                    topology.join(switch, core, &self.uplink, uplink_delay);
                }
            }
        }
        Ok(topology)
    }
}

impl FatTreeConfig {
    fn build(&self, hosts: &[HostPlace], mut placing: Placing) -> Result<Topology, TopologyError> {
        for (key, value) in [("cores", self.cores), ("factor", self.factor)] {
            if value == 0 {
                return Err(TopologyError::Zero { key });
            }
        }
        let host_delay = self.host_link.delay_ps("host_link")?;
        let uplink_delay = self.uplink.delay_ps("uplink")?;
        let used = placing.racks.len();
        let racks = self.racks.unwrap_or(u32::try_from(used.max(1)).unwrap_or(u32::MAX));
        if racks == 0 {
            return Err(TopologyError::Zero { key: "racks" });
        }
        if used > racks as usize {
            return Err(TopologyError::TooFewRacks { racks, used, names: placing.racks.join(", ") });
        }
        let places = self.places(racks, &placing)?;
        let cables = u64::from(racks) * (u64::from(places) + u64::from(self.cores) * u64::from(self.factor));
        if cables > MOST_CABLES {
            return Err(TopologyError::TooLarge { cables, most: MOST_CABLES });
        }
        for number in used..racks as usize {
            placing.racks.push(format!("rack{number}"));
        }
        let places = vec![places as usize; racks as usize];
        let (mut topology, switches) = hosts_and_racks(hosts, &placing, &places);
        for (host, rack) in host_racks(&places) {
            topology.join(host, switches[rack], &self.host_link, host_delay);
        }
        let cores: Vec<NodeId> = (0..self.cores).map(|core| topology.add_node(format!("core{core}"))).collect();
        for switch in switches {
            for core in &cores {
                for _ in 0..self.factor {
                    topology.join(switch, *core, &self.uplink, uplink_delay);
                }
            }
        }
        Ok(topology)
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

/// Hosts rack by rack with `places` in each (idle ones where the workload has fewer), then the rack switches.
fn hosts_and_racks(hosts: &[HostPlace], placing: &Placing, places: &[usize]) -> (Topology, Vec<NodeId>) {
    let mut topology = Topology { host_nodes: vec![NodeId(0); hosts.len()], ..Topology::default() };
    let mut idle = Vec::new();
    for (rack, places) in places.iter().enumerate() {
        let here = (0..hosts.len()).filter(|host| placing.rack_of[*host] == rack);
        let before = topology.nodes();
        for host in here {
            topology.host_nodes[host] = topology.add_node(hosts[host].name.clone());
        }
        while ((topology.nodes() - before) as usize) < *places {
            let name = format!("idle{}", topology.nodes());
            idle.push(topology.add_node(name));
        }
    }
    topology.hosts = topology.nodes();
    topology.host_nodes.extend(idle);
    let switches = placing.racks.iter().map(|rack| topology.add_node(rack.clone())).collect();
    (topology, switches)
}

/// Each host's node with the number of its rack.
fn host_racks(places: &[usize]) -> Vec<(NodeId, usize)> {
    let racks = places.iter().enumerate().flat_map(|(rack, places)| std::iter::repeat_n(rack, *places));
    (0..).map(NodeId).zip(racks).collect()
}
