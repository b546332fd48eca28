//! Routings in the formats of other programs.

use super::{Routes, RoutingError};
use crate::topology::{Format, Graph, Topology};

impl Routes {
    /// The topology and the routing as a DOT digraph whose edges have routes in `comment`, as ORCS reads them.
    ///
    /// # Errors
    /// When packets for one destination may take several ports of a switch, or a host's name cannot stand there.
    pub fn to_dot(&self, topology: &Topology) -> Result<String, RoutingError> {
        self.has_table()?;
        Ok(Graph::routed(topology, |at, to| self.only_link(at, to))?.write(Format::Dot))
    }

    fn has_table(&self) -> Result<(), RoutingError> {
        if self.has_one_port() { Ok(()) } else { Err(RoutingError::NoTable { routing: self.config().to_string() }) }
    }
}
