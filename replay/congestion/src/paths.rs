//! The path of each pair of hosts.

use crate::CongestionError;
use netsim::routing::{Choice, Routes};
use netsim::topology::{LinkId, NodeId, Topology};

/// A routing that has one path for each pair of hosts. Paths are walked switch by switch: no table of pairs is needed.
#[derive(Clone, Copy, Debug)]
pub struct Paths<'a> {
    topology: &'a Topology,
    routes: &'a Routes,
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
        Ok(Self { topology, routes })
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
            path.push(*link);
            (at, input) = (self.topology.link(*link).to, *link);
            steps += 1;
        }
        Ok(())
    }
}
