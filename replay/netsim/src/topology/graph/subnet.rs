//! How an InfiniBand subnet numbers the nodes of a graph.

use std::collections::HashMap;

/// Unicast LIDs are those from 1 to this one (InfiniBand specification, volume 1, 4.1.3).
pub(super) const MAX_LID: u16 = 0xBFFF;
/// Ports of a node are numbered from 1 to this one; 255 means none.
pub(super) const MAX_PORT: u8 = 254;

/// What has a LID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A host, by its node.
    Host(usize),
    Switch,
    /// A host's further LID, by which it has another path (LMC).
    OtherPath,
}

/// What forwarding tables refer to, as nodes and cables of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subnet {
    pub(super) lids: HashMap<u16, Owner>,
    /// Hosts by the GUID of their port.
    pub(super) hosts: HashMap<u64, usize>,
    /// Switches by their GUID.
    pub(super) switches: HashMap<u64, usize>,
    /// The cable at each port, as twice the number of its edge, 1 more if it leads against its ends.
    pub(super) ports: HashMap<(usize, u8), u32>,
}
