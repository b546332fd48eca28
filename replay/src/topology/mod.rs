//! Topologies: hosts, switches and the links between them, as data.
//!
//! | `shape` | what it is |
//! |---|---|
//! | `racks` | each host at its rack's switch; two rack switches joined directly, or any number through one core switch |
//! | `fat-tree` | LIGHTNESS' full fat-tree: `nodes` hosts in `racks`, an uplink from each rack switch to each of `cores` |
//!
//! Nodes are numbered hosts first (rack by rack), then rack switches, then core switches. Every cable is two links, one
//! for each direction.

mod shape;

pub use shape::{FatTreeConfig, Joined, RacksConfig, TopologyConfig};

use crate::units::{Buffer, Bytes, DurationPs, Length, Rate};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A host or a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// One direction of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// The keys of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinkConfig {
    /// Its rate, of frames with their headers. Default: `10Gbps`, the optical links of the LIGHTNESS deliverable.
    pub rate: Rate,
    /// The propagation delay. Default: none; the same key as `length` in other words, so only one of both may be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<DurationPs>,
    /// The length, at 5 ns a metre (the deliverable's cables). Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<Length>,
    /// How much may wait in front of it, the frame on the wire not counted. Default: `170 packets`, the pfifo of the
    /// lab's links, with which TCP loses nothing at 1 Gbit/s there.
    pub buffer: Buffer,
    /// If above 0, the link is no wire but a token bucket (Linux' htb): up to so many bytes pass at once after a pause.
    /// Default: `0B`, a wire. The lab's links have `32KiB`.
    pub burst: Bytes,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            rate: Rate::from_bps(10_000_000_000),
            delay: None,
            length: None,
            buffer: Buffer::Packets(170),
            burst: Bytes(0),
        }
    }
}

impl LinkConfig {
    /// The propagation delay in picoseconds, however it was given.
    ///
    /// # Errors
    /// When both `delay` and `length` are given, or a buffer or burst makes no sense; `key` is the link's key.
    pub fn delay_ps(&self, key: &'static str) -> Result<u64, TopologyError> {
        if self.burst.get() > 0 && self.rate == Rate::UNLIMITED {
            return Err(TopologyError::BurstWithoutRate { key, burst: self.burst });
        }
        match (self.delay, self.length) {
            (Some(delay), Some(length)) => Err(TopologyError::DelayAndLength { key, delay, length }),
            (Some(delay), None) => Ok(delay.ps()),
            (None, Some(length)) => Ok(length.light_time().ps()),
            (None, None) => Ok(0),
        }
    }
}

/// A topology that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// Both ways of giving a delay.
    #[error("fabric.topology.{key} has both delay = \"{delay}\" and length = \"{length}\": give one of them")]
    DelayAndLength {
        /// The link's key.
        key: &'static str,
        /// The delay.
        delay: DurationPs,
        /// The length.
        length: Length,
    },
    /// A token bucket that is never empty.
    #[error("fabric.topology.{key}: burst = \"{burst}\" needs a rate that is not \"unlimited\"")]
    BurstWithoutRate {
        /// The link's key.
        key: &'static str,
        /// The burst.
        burst: Bytes,
    },
    /// The generator's own rule.
    #[error(
        "fabric.topology.nodes = {nodes} is no multiple of fabric.topology.racks = {racks}: all racks of a fat-tree hold the same number of nodes"
    )]
    NotAMultiple {
        /// Hosts.
        nodes: u32,
        /// Racks.
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
    /// More nodes than can be numbered.
    #[error("the topology would have {cables} cables; at most {most} are possible")]
    TooLarge {
        /// How many there would be.
        cables: u64,
        /// How many there may be.
        most: u64,
    },
    /// No hosts at all.
    #[error("the topology has no hosts: the trace names none and fabric.topology.nodes is not given")]
    NoHosts,
}

/// One direction of a cable, with what the switch model needs to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where it begins.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// Its rate.
    pub rate: Rate,
    /// Its propagation delay in picoseconds.
    pub delay_ps: u64,
    /// What may wait in front of it.
    pub buffer: Buffer,
    /// The size of its token bucket in bytes; 0 for a wire.
    pub burst_bytes: u64,
}

/// Hosts, switches and links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    names: Vec<String>,
    hosts: u32,
    host_nodes: Vec<NodeId>,
    links: Vec<Link>,
    out: Vec<Vec<LinkId>>,
}

impl Topology {
    /// How many nodes are hosts: those numbered below.
    #[must_use]
    pub const fn hosts(&self) -> u32 {
        self.hosts
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        u32::try_from(self.names.len()).unwrap_or(u32::MAX)
    }

    /// The node of the workload's host `index`; idle hosts follow behind the workload's.
    #[must_use]
    pub fn host_node(&self, index: u32) -> NodeId {
        self.host_nodes[index as usize]
    }

    /// A node's name.
    #[must_use]
    pub fn name(&self, node: NodeId) -> &str {
        &self.names[node.0 as usize]
    }

    /// A link's name: "w1->rack1".
    #[must_use]
    pub fn link_name(&self, link: LinkId) -> String {
        let link = self.link(link);
        format!("{}->{}", self.name(link.from), self.name(link.to))
    }

    /// All links, in order of their ids.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// One link.
    #[must_use]
    pub fn link(&self, link: LinkId) -> &Link {
        &self.links[link.0 as usize]
    }

    /// The links that begin at `node`, in order of their ids.
    #[must_use]
    pub fn out(&self, node: NodeId) -> &[LinkId] {
        &self.out[node.0 as usize]
    }

    /// Gives all links the rate `rate`.
    pub fn set_rates(&mut self, rate: Rate) {
        for link in &mut self.links {
            link.rate = rate;
        }
    }

    fn add_node(&mut self, name: String) -> NodeId {
        let id = NodeId(self.nodes());
        self.names.push(name);
        self.out.push(Vec::new());
        id
    }

    /// Joins two nodes with a cable: two links with the keys of `config`, whose delay is `delay_ps`.
    fn join(&mut self, a: NodeId, b: NodeId, config: &LinkConfig, delay_ps: u64) {
        for (from, to) in [(a, b), (b, a)] {
            let id = LinkId(u32::try_from(self.links.len()).unwrap_or(u32::MAX));
            self.out[from.0 as usize].push(id);
            self.links.push(Link {
                from,
                to,
                rate: config.rate,
                delay_ps,
                buffer: config.buffer,
                burst_bytes: config.burst.get(),
            });
        }
    }
}
