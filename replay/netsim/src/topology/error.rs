//! Why a topology cannot be built.

use crate::units::{Bytes, DurationPs, Length};
use std::path::Path;
use thiserror::Error;

/// A topology that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// Both ways of giving a delay.
    #[error("fabric.topology.{key} has both delay = \"{delay}\" and length = \"{length}\": give one of them")]
    DelayAndLength {
        /// The link's key.
        key: String,
        /// The delay.
        delay: DurationPs,
        /// The length.
        length: Length,
    },
    /// A token bucket that is never empty.
    #[error("fabric.topology.{key}: burst = \"{burst}\" needs a rate that is not \"unlimited\"")]
    BurstWithoutRate {
        /// The link's key.
        key: String,
        /// The burst.
        burst: Bytes,
    },
    /// A value that makes no sense.
    #[error("fabric.topology.{key} = {value}: {allowed}")]
    Value {
        /// The key, below `fabric.topology`.
        key: String,
        /// The value that was given.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// The generator's own rule.
    #[error(
        "fabric.topology.nodes = {nodes} is no multiple of fabric.topology.racks = {racks}: all racks of a fat-tree hold the same number of nodes"
    )]
    NotAMultiple {
        /// Hosts of the whole tree.
        nodes: u32,
        /// Racks over which they are spread evenly.
        racks: u32,
    },
    /// More racks in the trace than in the topology.
    #[error(
        "fabric.topology.racks = {racks}, but the hosts stand in {used} racks ({names}): at least {used} are needed"
    )]
    TooFewRacks {
        /// Racks of the topology.
        racks: u32,
        /// Racks of the hosts.
        used: usize,
        /// The racks of the hosts.
        names: String,
    },
    /// More hosts in a rack than the topology has places there.
    #[error("rack {rack} has {hosts} hosts, but fabric.topology.nodes / racks leaves {places} places in each rack")]
    RackTooSmall {
        /// The rack.
        rack: String,
        /// Its hosts.
        hosts: usize,
        /// Its places.
        places: u32,
    },
    /// A number of which there must be at least one.
    #[error("fabric.topology.{key} = 0: at least 1 is needed")]
    Zero {
        /// The key.
        key: &'static str,
    },
    /// A direct join of other than two racks.
    #[error("fabric.topology.joined = \"direct\" joins 2 racks, but the hosts stand in {racks}; use \"core\"")]
    DirectNeedsTwo {
        /// Racks of the hosts.
        racks: usize,
    },
    /// A host that is there twice.
    #[error("host {name} is named twice")]
    HostTwice {
        /// Its name.
        name: String,
    },
    /// More hosts in the workload than in the topology.
    #[error("the workload has {hosts} hosts, but {what} has places for {places}")]
    TooFewPlaces {
        /// Hosts of the workload.
        hosts: usize,
        /// The topology in words.
        what: String,
        /// Its hosts.
        places: u32,
    },
    /// More nodes than can be numbered.
    #[error("the topology would have {cables} cables; at most {most} are possible")]
    TooLarge {
        /// How many there would be.
        cables: u64,
        /// How many there may be.
        most: u64,
    },
    /// No hosts at all.
    #[error(
        "the topology has no hosts: the trace names none, and neither fabric.topology.nodes nor traffic.hosts is given"
    )]
    NoHosts,
    /// A file that cannot be read.
    #[error("fabric.topology.{key} = \"{file}\": {reason}")]
    File {
        /// The key that names it.
        key: &'static str,
        /// The file.
        file: String,
        /// Why not.
        reason: String,
    },
    /// A file of which a line is wrong.
    #[error("{file}:{line}: {reason}")]
    Line {
        /// The file.
        file: String,
        /// Its line, from 1 on.
        line: usize,
        /// What is wrong there, and what is allowed.
        reason: String,
    },
    /// Routes that would fill the memory.
    #[error("routes of {entries} pairs of a switch and a host; at most {most} are possible")]
    TooManyRoutes {
        /// How many there would be.
        entries: u64,
        /// How many there may be.
        most: u64,
    },
    /// A name that a format has no place for.
    #[error("\"{name}\" cannot be written: {reason}")]
    Name {
        /// The node's name.
        name: String,
        /// Why not, and what would do.
        reason: String,
    },
    /// A file of which something would be left out.
    #[error("{warning} (fabric.topology.strict = false leaves it out)")]
    LeftOut {
        /// File, line and what is left out.
        warning: String,
    },
    /// Cables that are missing part the network.
    #[error(
        "fabric.topology.faults: the network falls apart, there is no way from {pairs}; fewer faults, or others (fault_seed)"
    )]
    Parted {
        /// Some routers without a way to each other, by name.
        pairs: String,
    },
    /// Links without a way back, for which a format has no place.
    #[error("fabric.topology.ways = 1: this format has no place for cables that lead one way; json has")]
    OneWay,
    /// A graph that is no network.
    #[error("{file}: {reason}")]
    Graph {
        /// The file.
        file: String,
        /// What is wrong, and what is allowed.
        reason: String,
    },
}

impl TopologyError {
    /// The error of a file.
    pub(super) fn file(key: &'static str, file: &Path, reason: String) -> Self {
        Self::File { key, file: file.display().to_string(), reason }
    }

    /// The error of a value.
    pub(super) fn value(key: impl Into<String>, value: impl ToString, allowed: impl Into<String>) -> Self {
        Self::Value { key: key.into(), value: value.to_string(), allowed: allowed.into() }
    }
}
