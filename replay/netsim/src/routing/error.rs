//! Why a routing cannot be used.

use crate::topology::TopologyError;
use thiserror::Error;

/// A routing that does not fit, or is not free of deadlock.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RoutingError {
    /// The topology has another form.
    #[error("fabric.routing = {routing}: it needs {needs}, but fabric.topology is {shape}; {allowed} would do")]
    DoesNotFit {
        /// The routing.
        routing: String,
        /// What it needs.
        needs: &'static str,
        /// What the topology is.
        shape: &'static str,
        /// Routings that fit.
        allowed: &'static str,
    },
    /// Another routing than the one that the topology's file says.
    #[error(
        "fabric.routing = {routing}, but the topology's file says routes: fabric.routing = \"file\" follows them, fabric.topology.routes = false leaves them out"
    )]
    NotTheFiles {
        /// The routing.
        routing: String,
    },
    /// Tables that would fill the memory.
    #[error(
        "fabric.routing = {routing}: its tables would have {entries} entries, at most {most} are possible; a routing that reckons (d-mod-k on trees, dor on meshes and tori) has no tables"
    )]
    TooLarge {
        /// The routing.
        routing: String,
        /// Entries of its tables.
        entries: u64,
        /// How many there may be.
        most: u64,
    },
    /// A topology in which two hosts have no way to each other.
    #[error("fabric.routing = {routing}: there is no way from {from} to {to}")]
    NoWay {
        /// The routing.
        routing: String,
        /// A node.
        from: String,
        /// A host.
        to: String,
    },
    /// Ways along which cables are out of order.
    #[error(
        "fabric.routing = {routing}: cables of its ways are out of order (fabric.topology.faults), and it has no other ways from {pairs}; ecmp, up-down and minimal-adaptive go round them"
    )]
    Faulty {
        /// The routing.
        routing: String,
        /// Some pairs of switches, by name.
        pairs: String,
    },
    /// A routing file that cannot be read.
    #[error("fabric.routing.table = \"{file}\": {reason}")]
    File {
        /// The file.
        file: String,
        /// Why not.
        reason: String,
    },
    /// A line of a routing file that is wrong.
    #[error("{file}:{line}: {reason}")]
    Line {
        /// The file.
        file: String,
        /// Its line, from 1 on.
        line: usize,
        /// What is wrong there, and what is allowed.
        reason: String,
    },
    /// A routing file by which packets go round.
    #[error("{file}: packets from {from} to {to} go round: {round}")]
    Loop {
        /// The file.
        file: String,
        /// A node from which they come.
        from: String,
        /// The host for which they are.
        to: String,
        /// The switches, one after the other.
        round: String,
    },
    /// What a file cannot hold.
    #[error("the routing cannot be written: {0}")]
    Written(#[from] TopologyError),
    /// A routing that has more than one port for a destination.
    #[error(
        "routing = {routing}: a routing file has one port for each destination; d-mod-k, shortest and dor can be written"
    )]
    NoTable {
        /// The routing.
        routing: String,
    },
    /// Links that may wait for each other for ever.
    #[error(
        "fabric.routing = {routing} may come to a deadlock on this topology; these links wait for each other: {cycle}. {advice}"
    )]
    Deadlock {
        /// The routing.
        routing: String,
        /// The links, one after the other, the first again at the end.
        cycle: String,
        /// What would do.
        advice: &'static str,
    },
    /// A routing whose freedom of deadlock cannot be looked at in reasonable time.
    #[error(
        "fabric.routing = {routing}: whether it is free of deadlock cannot be found out in reasonable time ({steps} steps, at most {most}); up-down and trees need no such check"
    )]
    Unchecked {
        /// The routing.
        routing: String,
        /// Steps it would take.
        steps: u64,
        /// How many are reasonable.
        most: u64,
    },
}
