//! The shapes that are trees: their keys, and what they make of them.

use super::builder::Builder;
use super::keys::{check_nodes, listed};
use super::link::{Cable, cables};
use super::tree::{Tree, two_levels};
use super::{HostPlace, LinkConfig, NodeId, Topology, TopologyError};
use crate::count::count;
use serde::{Deserialize, Serialize};

/// The links of a tree: those of the hosts, and those above.
struct Links<'a> {
    host_link: &'a LinkConfig,
    uplink: &'a LinkConfig,
    uplinks: &'a [LinkConfig],
}

impl Links<'_> {
    /// The cables of each level.
    fn cables(&self, tree: &Tree) -> Result<Vec<Cable>, TopologyError> {
        let mut all = vec![self.host_link.cable("host_link")?];
        all.extend(cables((self.uplink, "uplink"), (self.uplinks, "uplinks"), tree.height() - 1)?);
        Ok(all)
    }
}

/// A shape that is a tree: what it says of itself.
pub(super) trait TreeShape {
    /// The tree, for so many hosts of the workload.
    fn tree(&self, hosts: usize) -> Result<Tree, TopologyError>;
    /// What it is, in words.
    fn what(&self) -> String;
    /// `nodes`, where it is given.
    fn nodes(&self) -> Option<u32>;
    /// Cables of each level.
    fn cables(&self, tree: &Tree) -> Result<Vec<Cable>, TopologyError>;
    /// Names a switch.
    fn name(builder: &mut Builder, level: usize, index: u32) -> NodeId {
        builder.add_numbered("s", &[count(level), index])
    }

    /// Builds it, the workload's hosts on the first places.
    fn build(&self, hosts: &[HostPlace]) -> Result<Topology, TopologyError>
    where
        Self: Sized,
    {
        let tree = self.tree(hosts.len())?;
        let places = tree.nodes(0);
        check_nodes(self.nodes(), places, &self.what())?;
        let cables = self.cables(&tree)?;
        let builder = Builder::with_hosts(hosts, places, &|| self.what())?;
        Ok(builder.into_tree(tree, &cables, Self::name))
    }
}

/// Refuses a number below `least`.
pub(super) fn at_least(key: &str, value: u32, least: u32, why: &str) -> Result<u32, TopologyError> {
    if value < least {
        return Err(TopologyError::value(key, value, format!("at least {least} is needed{why}")));
    }
    Ok(value)
}

/// How many levels a tree may have: with two children each, more have too many hosts.
const MAX_LEVELS: u32 = 22;

fn levels(key: &str, n: u32) -> Result<usize, TopologyError> {
    if n == 0 || n > MAX_LEVELS {
        return Err(TopologyError::value(key, n, format!("the number of levels is from 1 to {MAX_LEVELS}")));
    }
    Ok(n as usize)
}

macro_rules! tree_shape {
    ($config:ty, |$self:ident| $tree:expr, $what:expr) => {
        impl TreeShape for $config {
            fn tree(&$self, _hosts: usize) -> Result<Tree, TopologyError> {
                $tree
            }

            fn what(&$self) -> String {
                $what
            }

            fn nodes(&self) -> Option<u32> {
                self.nodes
            }

            fn cables(&self, tree: &Tree) -> Result<Vec<Cable>, TopologyError> {
                Links { host_link: &self.host_link, uplink: &self.uplink, uplinks: &self.uplinks }.cables(tree)
            }
        }
    };
}

/// Hosts at one switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SingleSwitchConfig {
    /// Hosts, idle ones included. Default: as many as the workload has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// From a host to the switch.
    pub host_link: LinkConfig,
}

impl TreeShape for SingleSwitchConfig {
    fn tree(&self, hosts: usize) -> Result<Tree, TopologyError> {
        match self.nodes {
            Some(0) => Err(TopologyError::Zero { key: "nodes" }),
            None if hosts == 0 => Err(TopologyError::NoHosts),
            Some(nodes) => Tree::new(vec![nodes], vec![1], vec![1]),
            None => Tree::new(vec![count(hosts)], vec![1], vec![1]),
        }
    }

    fn what(&self) -> String {
        "fabric.topology.nodes".to_owned()
    }

    fn nodes(&self) -> Option<u32> {
        self.nodes
    }

    fn cables(&self, _tree: &Tree) -> Result<Vec<Cable>, TopologyError> {
        Ok(vec![self.host_link.cable("host_link")?])
    }

    fn name(builder: &mut Builder, _level: usize, _index: u32) -> NodeId {
        builder.add_node("switch")
    }
}

/// A k-ary n-tree (Petrini and Vanneschi): n levels of switches with k links down and k up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KaryTreeConfig {
    /// Links of a switch down, and up. Default: 4, as the tree that INSEE shows.
    pub k: u32,
    /// Levels of switches. Default: 3.
    pub n: u32,
    /// Hosts: k^n, to be sure. Default: whatever k and n make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// From a host to its switch.
    pub host_link: LinkConfig,
    /// Between switches.
    pub uplink: LinkConfig,
    /// Between switches, level by level from below, in place of `uplink`. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uplinks: Vec<LinkConfig>,
}

impl Default for KaryTreeConfig {
    fn default() -> Self {
        let link = LinkConfig::default();
        Self { k: 4, n: 3, nodes: None, host_link: link, uplink: link, uplinks: Vec::new() }
    }
}

tree_shape!(
    KaryTreeConfig,
    |self| {
        let n = levels("n", self.n)?;
        let k = at_least("k", self.k, 1, "")?;
        thin_tree(k, k, n)
    },
    format!("a {}-ary {}-tree", self.k, self.n)
);

/// n levels of switches with k children each, and `up` parents each.
fn thin_tree(k: u32, up: u32, n: usize) -> Result<Tree, TopologyError> {
    let mut parents = vec![up; n];
    parents[0] = 1;
    Tree::new(vec![k; n], parents, vec![1; n])
}

/// A k:k'-ary n-thin-tree (INSEE): a k-ary n-tree whose switches have only k' links up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ThinTreeConfig {
    /// Links of a switch down. Default: 4, as the tree that INSEE shows.
    pub k: u32,
    /// k', links of a switch up. Default: 2.
    pub k_up: u32,
    /// Levels of switches. Default: 3.
    pub n: u32,
    /// Hosts: k^n, to be sure. Default: whatever k and n make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// From a host to its switch.
    pub host_link: LinkConfig,
    /// Between switches.
    pub uplink: LinkConfig,
    /// Between switches, level by level from below, in place of `uplink`. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uplinks: Vec<LinkConfig>,
}

impl Default for ThinTreeConfig {
    fn default() -> Self {
        let link = LinkConfig::default();
        Self { k: 4, k_up: 2, n: 3, nodes: None, host_link: link, uplink: link, uplinks: Vec::new() }
    }
}

tree_shape!(
    ThinTreeConfig,
    |self| {
        let n = levels("n", self.n)?;
        let k = at_least("k", self.k, 1, "")?;
        let up = at_least("k_up", self.k_up, 1, "")?;
        if up > k {
            let allowed = format!("a thin tree has at most k = {k} links up; xgft takes any number");
            return Err(TopologyError::value("k_up", up, allowed));
        }
        thin_tree(k, up, n)
    },
    format!("a {}:{}-ary {}-thin-tree", self.k, self.k_up, self.n)
);

/// An m-port n-tree (Lin, Chung and Huang; FatTreeSim): n levels of switches that all have m ports in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PortTreeConfig {
    /// Ports of a switch; even. Default: 4, as the tree that FatTreeSim shows.
    pub m: u32,
    /// Levels of switches. Default: 3.
    pub n: u32,
    /// Hosts: m (m/2)^(n-1), to be sure. Default: whatever m and n make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// From a host to its switch.
    pub host_link: LinkConfig,
    /// Between switches.
    pub uplink: LinkConfig,
    /// Between switches, level by level from below, in place of `uplink`. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uplinks: Vec<LinkConfig>,
}

impl Default for PortTreeConfig {
    fn default() -> Self {
        let link = LinkConfig::default();
        Self { m: 4, n: 3, nodes: None, host_link: link, uplink: link, uplinks: Vec::new() }
    }
}

tree_shape!(
    PortTreeConfig,
    |self| {
        let n = levels("n", self.n)?;
        let m = at_least("m", self.m, 2, "")?;
        if !m.is_multiple_of(2) {
            return Err(TopologyError::value("m", m, "half the ports lead down and half up, so m is even"));
        }
        let mut children = vec![m / 2; n];
        children[n - 1] = m;
        let mut parents = vec![m / 2; n];
        parents[0] = 1;
        Tree::new(children, parents, vec![1; n])
    },
    format!("a {}-port {}-tree", self.m, self.n)
);

/// A generalised fat tree XGFT(h; m1..mh; w1..wh) (Öhring and others), with parallel cables (Zahavi).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct XgftConfig {
    /// Children of the switches of each level, from below. Default: `[4, 4]`.
    pub m: Vec<u32>,
    /// Parents of the nodes of each level, hosts first; the first is 1, for a host has one link. Default: `[1, 2]`, half
    /// as much up as down.
    pub w: Vec<u32>,
    /// Cables to each of these parents; the first is 1. Default, written as an empty list: 1 everywhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cables: Vec<u32>,
    /// Hosts: m1 ... mh, to be sure. Default: whatever m makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// From a host to its switch.
    pub host_link: LinkConfig,
    /// Between switches.
    pub uplink: LinkConfig,
    /// Between switches, level by level from below, in place of `uplink`. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uplinks: Vec<LinkConfig>,
}

impl Default for XgftConfig {
    fn default() -> Self {
        let link = LinkConfig::default();
        Self {
            m: vec![4, 4],
            w: vec![1, 2],
            cables: Vec::new(),
            nodes: None,
            host_link: link,
            uplink: link,
            uplinks: Vec::new(),
        }
    }
}

tree_shape!(
    XgftConfig,
    |self| {
        let height = self.m.len();
        levels("m", count(height)).map_err(|_| {
            TopologyError::value("m", listed(&self.m), format!("1 to {MAX_LEVELS} numbers, one a level"))
        })?;
        let cables = if self.cables.is_empty() { vec![1; height] } else { self.cables.clone() };
        for (key, list) in [("m", &self.m), ("w", &self.w), ("cables", &cables)] {
            let wrong = |allowed: String| Err(TopologyError::value(key, listed(list), allowed));
            if list.len() != height {
                return wrong(format!("as many numbers as m are needed, {height}"));
            }
            if list.contains(&0) {
                return wrong("at least 1 is needed at every level".to_owned());
            }
            if key != "m" && list[0] != 1 {
                return wrong("the first is 1: a host has one link, to one switch".to_owned());
            }
        }
        Tree::new(self.m.clone(), self.w.clone(), cables)
    },
    format!("the tree XGFT({}; {}; {})", self.m.len(), listed(&self.m), listed(&self.w))
);

/// Leaf switches with hosts, each joined to every spine switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LeafSpineConfig {
    /// Leaf switches. Default: 4 (ours).
    pub leaves: u32,
    /// Spine switches. Default: 2 (ours).
    pub spines: u32,
    /// Hosts at each leaf. Default: 4 (ours).
    pub hosts: u32,
    /// Cables from each leaf to each spine. Default: 1.
    pub cables: u32,
    /// Hosts: leaves x hosts, to be sure. Default: whatever these make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// From a host to its leaf.
    pub host_link: LinkConfig,
    /// From a leaf to a spine.
    pub uplink: LinkConfig,
}

impl Default for LeafSpineConfig {
    fn default() -> Self {
        let link = LinkConfig::default();
        Self { leaves: 4, spines: 2, hosts: 4, cables: 1, nodes: None, host_link: link, uplink: link }
    }
}

impl TreeShape for LeafSpineConfig {
    fn tree(&self, _hosts: usize) -> Result<Tree, TopologyError> {
        for (key, value) in
            [("leaves", self.leaves), ("spines", self.spines), ("hosts", self.hosts), ("cables", self.cables)]
        {
            if value == 0 {
                return Err(TopologyError::Zero { key });
            }
        }
        two_levels(self.hosts, self.leaves, self.spines, self.cables)
    }

    fn what(&self) -> String {
        format!("a leaf-spine network of {} leaves with {} hosts each", self.leaves, self.hosts)
    }

    fn nodes(&self) -> Option<u32> {
        self.nodes
    }

    fn cables(&self, _tree: &Tree) -> Result<Vec<Cable>, TopologyError> {
        Ok(vec![self.host_link.cable("host_link")?, self.uplink.cable("uplink")?])
    }

    fn name(builder: &mut Builder, level: usize, index: u32) -> NodeId {
        builder.add_numbered(if level == 1 { "leaf" } else { "spine" }, &[index])
    }
}
