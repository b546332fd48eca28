//! Routings in the formats of other programs.

use super::{Routes, RoutingError};
use crate::topology::{Format, Graph, Tables, Topology};

impl Routes {
    /// The topology and the routing as a DOT digraph whose edges have routes in `comment`, as ORCS reads them.
    ///
    /// # Errors
    /// When packets for one destination may take several ports of a switch, or a host's name cannot stand there.
    pub fn to_dot(&self, topology: &Topology) -> Result<String, RoutingError> {
        Ok(self.graph(topology)?.write(Format::Dot)?)
    }

    /// The routing as forwarding tables of a subnet of InfiniBand, which go with what [`Graph::write`] makes of
    /// [`Graph::of`] the topology.
    ///
    /// # Errors
    /// When packets for one destination may take several ports of a switch, or LIDs, ports or names do not fit.
    pub fn to_lfts(&self, topology: &Topology, tables: Tables) -> Result<String, RoutingError> {
        Ok(self.graph(topology)?.write_lfts(tables)?)
    }

    fn graph(&self, topology: &Topology) -> Result<Graph, RoutingError> {
        if !self.has_one_port() {
            return Err(RoutingError::NoTable { routing: self.config().to_string() });
        }
        Ok(Graph::routed(topology, |at, to| self.only_link(at, to))?)
    }
}
