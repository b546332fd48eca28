//! Which packets' ways are logged, and what of them.

use crate::time::SimTime;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Packets of a log at most.
pub const MAX_LOGGED_PACKETS: u32 = 65_536;

/// Which packets are logged: the first so many of those that leave some hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogWanted {
    /// How many.
    pub packets: u32,
    /// They leave their hosts then or later.
    pub from: SimTime,
    /// The hosts that they leave; empty: any.
    pub hosts: BTreeSet<u32>,
    /// Their numbers among the packets of their host; empty: any.
    pub numbers: BTreeSet<u64>,
    /// Whether each flit is logged.
    pub flits: bool,
}

/// What happened to a packet or a flit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HopEvent {
    /// It (of a packet its first flit) begins to leave a host or a switch over a link.
    Leaves,
    /// It has come to the end of a link: of a packet at a switch its first flit (`spinnaker`: its last), at a host its last.
    Arrives,
    /// It was lost in front of a link.
    Lost,
}

/// A row of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedHop {
    /// When, in picoseconds.
    pub at_ps: u64,
    /// The packet's source host.
    pub source: u32,
    /// The packet's number among those of its source.
    pub number: u64,
    /// The flit's number in its packet, from 0; `None` of a whole packet.
    pub flit: Option<u32>,
    /// What happened.
    pub event: HopEvent,
    /// Where: the place of its name in [`HopRecords::nodes`].
    pub node: u32,
    /// The link, as the place of its name in [`HopRecords::links`]; and its cable's number among those of the node.
    pub link: u32,
    /// See `link`.
    pub port: u32,
    /// The virtual lane or channel of the link.
    pub vl: u32,
}

/// What was logged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HopRecords {
    /// Names of nodes.
    pub nodes: Vec<String>,
    /// Names of links.
    pub links: Vec<String>,
    /// In the order of time, then of packets.
    pub hops: Vec<LoggedHop>,
    /// Packets that were logged.
    pub packets: u32,
    /// Whether more would have been logged than fits.
    pub is_full: bool,
}
