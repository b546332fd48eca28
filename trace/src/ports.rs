//! `ports.json`: what belongs to Hadoop's processes on a host now. dumpingd writes it whenever that changes, the sniffer
//! follows it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The file's name in the host's folder.
pub const FILE: &str = "ports.json";

/// What belongs to Hadoop's processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HadoopPorts {
    /// Format version, 1.
    pub version: u32,
    /// When this was so, nanoseconds since the epoch.
    pub t: u64,
    /// Ports on which they listen, and who: role and pid ("DataNode 4711").
    pub listen: BTreeMap<u16, String>,
    /// Connections that they opened.
    pub connections: BTreeSet<OpenConnection>,
    /// Ports and connections that are not told of, as there are too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A connection that a process opened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OpenConnection {
    /// This side.
    pub local: SocketAddr,
    /// The other side.
    pub remote: SocketAddr,
    /// Role and pid of the process.
    pub owner: String,
}
