//! What can be wrong.

use thiserror::Error;

/// Why congestion cannot be counted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CongestionError {
    /// Packets of one pair may take several paths.
    #[error(
        "routing {routing} has no fixed path for a pair of hosts; those that have one: d-mod-k, s-mod-k, shortest, up-down, dor, ecmp, a table"
    )]
    NotStatic {
        /// The routing.
        routing: String,
    },
    /// The routing does not lead from one host to another.
    #[error("routing {routing} has no path from {from} to {to}: it ends at {at}")]
    NoPath {
        /// The routing.
        routing: String,
        /// Where the path begins.
        from: String,
        /// Where it should end.
        to: String,
        /// The node that has no link for it, or is reached again and again.
        at: String,
    },
    /// A number of hosts that the topology or the pattern does not have.
    #[error("{wanted} hosts are asked for: from {least} to {most} can be taken")]
    Hosts {
        /// How many are asked for.
        wanted: usize,
        /// The fewest.
        least: usize,
        /// The most.
        most: usize,
    },
    /// There is nobody to send to.
    #[error("{hosts} of the hosts can take part: at least 2 are needed")]
    TooFew {
        /// How many there are.
        hosts: usize,
    },
    /// A host's name that the topology does not know, or that is listed twice.
    #[error("line {line}: host {name} {what}")]
    Host {
        /// Where it is listed, counted from 1.
        line: usize,
        /// The name.
        name: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A level that the pattern does not have.
    #[error("there is no level {level}: the pattern has {levels}, counted from 0")]
    Level {
        /// The level that is asked for.
        level: usize,
        /// How many there are.
        levels: usize,
    },
    /// The name of no pattern.
    #[error("{name} is no pattern: {}", known.join(", "))]
    Pattern {
        /// What was given.
        name: String,
        /// The patterns that there are.
        known: &'static [&'static str],
    },
    /// A split that leaves a pattern without two ranks.
    #[error("the first pattern cannot have {part} of {hosts} hosts: both need at least 2")]
    Part {
        /// Ranks of the first pattern.
        part: usize,
        /// Ranks of both patterns together.
        hosts: usize,
    },
    /// No run is asked for.
    #[error("no run is asked for: at least 1 is needed")]
    NoRun,
}
