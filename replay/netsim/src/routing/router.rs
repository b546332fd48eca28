//! Whole ways.

use super::{Routes, RoutingConfig, RoutingError};
use crate::topology::{LinkId, NodeId, Topology};
use std::sync::Arc;

/// Finds whole ways through a topology, for fabrics that fix the way of a flow when it is opened.
#[derive(Clone)]
pub struct Router {
    config: RoutingConfig,
    seed: u64,
    routes: Option<Arc<Routes>>,
}

impl Router {
    /// A router with `config` that looks at its topology when it is first asked; `seed` decides the hashes.
    #[must_use]
    pub const fn new(config: RoutingConfig, seed: u64) -> Self {
        Self { config, seed, routes: None }
    }

    /// A router for `topology`.
    ///
    /// # Errors
    /// When the routing does not fit the topology, or its file is wrong.
    pub fn of(config: &RoutingConfig, topology: &Topology, seed: u64) -> Result<Self, RoutingError> {
        let routes = Routes::new(config, topology, seed)?;
        Ok(Self { config: config.clone(), seed, routes: Some(Arc::new(routes)) })
    }

    /// Appends the links from `source` to `destination` for the flow with number `flow` to `path`; nothing if there is
    /// no way.
    pub fn way(&mut self, topology: &Topology, source: NodeId, destination: NodeId, flow: u64, path: &mut Vec<LinkId>) {
        if self.routes.is_none() {
            self.routes = Routes::new(&self.config, topology, self.seed).ok().map(Arc::new);
        }
        if let Some(routes) = &self.routes
            && !routes.walk(topology, source, destination, flow, path)
        {
            path.clear();
        }
    }
}
