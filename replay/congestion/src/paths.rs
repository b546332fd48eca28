//! The path of each pair of hosts.

use crate::CongestionError;
use crate::tree::{DecidedBy, TreeLinks};
use netsim::routing::{Choice, Routes, RoutingConfig};
use netsim::topology::{LinkId, NodeId, Structure, Topology};

/// A routing that has one path for each pair of hosts. There is no table of pairs: paths through trees are computed, all others
/// walked switch by switch.
#[derive(Debug)]
pub struct Paths<'a> {
    topology: &'a Topology,
    routes: &'a Routes,
    tree: Option<TreeLinks>,
}

impl<'a> Paths<'a> {
    /// The paths of `routes`; `ecmp` takes a hash of the pair of hosts.
    ///
    /// # Errors
    /// When packets of a pair may take several.
    pub fn new(topology: &'a Topology, routes: &'a Routes) -> Result<Self, CongestionError> {
        if !routes.config().keeps_flows() {
            return Err(CongestionError::NotStatic { routing: routes.config().to_string() });
        }
        let decided_by = match routes.config() {
            RoutingConfig::DModK | RoutingConfig::UpDown | RoutingConfig::Shortest => Some(DecidedBy::Destination),
            RoutingConfig::SModK => Some(DecidedBy::Source),
            _ => None,
        };
        let mut paths = Self { topology, routes, tree: None };
        if let (Structure::Tree(tree), Some(decided_by)) = (topology.structure(), decided_by) {
            let walk = |from, to, path: &mut Vec<LinkId>| paths.walk(from, to, path);
            paths.tree = Some(TreeLinks::new(topology, tree, decided_by, walk)?);
        }
        Ok(paths)
    }

    /// The network.
    #[must_use]
    pub const fn topology(&self) -> &'a Topology {
        self.topology
    }

    /// Appends the links from host `from` to host `to`, none from a host to itself.
    ///
    /// # Errors
    /// When the routing does not lead there.
    pub fn walk(&self, from: NodeId, to: NodeId, path: &mut Vec<LinkId>) -> Result<(), CongestionError> {
        self.follow(from, to, |link| path.push(link))
    }

    /// Calls `pass` with the links from host `from` to host `to`.
    fn follow(&self, from: NodeId, to: NodeId, mut pass: impl FnMut(LinkId)) -> Result<(), CongestionError> {
        let flow = u64::from(from.0) << 32 | u64::from(to.0);
        let (mut at, mut input) = (from, LinkId(u32::MAX));
        let mut steps = 0;
        while at != to {
            let links = self.routes.next(at, input, to).links;
            let link = match self.routes.choose(links.len(), at, flow, flow, from, to) {
                // A path that goes round takes more links than there are.
                Choice::Index(index) if steps < self.topology.links().len() => links.get(index),
                _ => None,
            };
            let Some(link) = link else {
                let name = |node| self.topology.name(node).to_owned();
                let routing = self.routes.config().to_string();
                return Err(CongestionError::NoPath { routing, from: name(from), to: name(to), at: name(at) });
            };
            pass(*link);
            (at, input) = (self.topology.link(*link).to, *link);
            steps += 1;
        }
        Ok(())
    }

    /// Writes the links of many paths, in numbers of its own ([`Paths::by_link`]), into `links` one behind the other, those of a
    /// path in no order, and where each ends into `ends`.
    pub(crate) fn write(
        &self,
        pairs: impl ExactSizeIterator<Item = (NodeId, NodeId)>,
        links: &mut Vec<u32>,
        ends: &mut Vec<usize>,
    ) -> Result<(), CongestionError> {
        ends.clear();
        let Some(tree) = &self.tree else {
            links.clear();
            for (from, to) in pairs {
                self.follow(from, to, |link| links.push(link.0))?;
                ends.push(links.len());
            }
            return Ok(());
        };
        links.resize(pairs.len() * tree.longest(), 0);
        let mut end = 0;
        ends.extend(pairs.map(|(from, to)| {
            end += tree.write(from, to, &mut links[end..]);
            end
        }));
        links.truncate(end);
        Ok(())
    }

    /// The topology's links by the numbers of [`Paths::write`].
    pub(crate) fn links(&self) -> impl Iterator<Item = LinkId> {
        let computed = self.tree.as_ref().map(TreeLinks::links);
        (0..self.topology.links().len())
            .map(move |number| computed.map_or_else(|| number.into(), |links| links[number]))
    }

    /// What was counted for the numbers of [`Paths::write`], by number of the topology's links.
    pub(crate) fn by_link(&self, counts: Vec<u64>) -> Vec<u64> {
        let mut by_link = vec![0; counts.len()];
        for (link, count) in self.links().zip(counts) {
            by_link[usize::from(link)] = count;
        }
        by_link
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use netsim::topology::TopologyConfig;

    #[test]
    fn computed_paths_are_those_that_are_walked() {
        for keys in [
            "shape = \"single-switch\"\nnodes = 5",
            "shape = \"fat-tree\"\nnodes = 12\nracks = 3\ncores = 2",
            "shape = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts = 4",
            "shape = \"k-ary-n-tree\"\nk = 3\nn = 3",
            "shape = \"thin-tree\"\nk = 4\nk_up = 2\nn = 3",
            "shape = \"m-port-n-tree\"\nm = 4\nn = 3",
            "shape = \"xgft\"\nm = [3, 2, 4]\nw = [1, 2, 3]",
            "shape = \"xgft\"\nm = [2, 3, 2]\nw = [1, 2, 2]\ncables = [1, 3, 2]",
            "shape = \"xgft\"\nm = [4, 3, 1]\nw = [1, 2, 2]",
            "shape = \"xgft\"\nm = [1, 3]\nw = [1, 2]",
        ] {
            let topology = toml::from_str::<TopologyConfig>(keys).unwrap().build(&[]).unwrap();
            for routing in [RoutingConfig::DModK, RoutingConfig::SModK, RoutingConfig::UpDown, RoutingConfig::Shortest]
            {
                let routes = Routes::new(&routing, &topology, 1).unwrap();
                let paths = Paths::new(&topology, &routes).unwrap();
                let links = paths.tree.as_ref().unwrap().links();
                let hosts = || (0..topology.hosts()).map(NodeId);
                let pairs: Vec<_> = hosts().flat_map(|from| hosts().map(move |to| (from, to))).collect();
                let (mut numbers, mut ends, mut begin) = (Vec::new(), Vec::new(), 0);
                paths.write(pairs.iter().copied(), &mut numbers, &mut ends).unwrap();
                for ((from, to), end) in pairs.into_iter().zip(ends) {
                    let mut walked = Vec::new();
                    paths.walk(from, to, &mut walked).unwrap();
                    walked.sort_unstable();
                    let mut computed: Vec<_> =
                        numbers[begin..end].iter().map(|number| links[*number as usize]).collect();
                    computed.sort_unstable();
                    assert_eq!(computed, walked, "{keys} {routing} {from:?} {to:?}");
                    begin = end;
                }
            }
        }
    }
}
