//! Why a fabric cannot be built.

use crate::routing::RoutingError;
use crate::topology::TopologyError;
use thiserror::Error;

/// A fabric that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FabricError {
    /// No host to build it for.
    #[error("the fabric has no hosts: the trace names none and the topology asks for none (fabric.topology.nodes)")]
    NoHosts,
    /// The topology does not fit.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The routing does not fit.
    #[error(transparent)]
    Routing(#[from] RoutingError),
    /// What is wrong with the network below the ToRs: its keys are those of `fabric.rack`.
    #[error("{}", .0.to_string().replacen("fabric.", "fabric.rack.", 1))]
    Rack(Box<FabricError>),
    /// A rate, delay or length with which no run comes to its end.
    #[error("fabric.{path} = {value}: {allowed}")]
    Limit {
        /// The key, by its path below `fabric`.
        path: String,
        /// The value that was given.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A name of a host or rack that is not there.
    #[error("fabric.{key} = {name}: no host or rack has this name; there are {known}")]
    NoPlace {
        /// The key, below `fabric`.
        key: &'static str,
        /// The name that was given.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// A value that makes no sense.
    #[error("fabric.{key} = {value}: {allowed}")]
    Value {
        /// The key, below `fabric`.
        key: &'static str,
        /// The value that was given.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
}
