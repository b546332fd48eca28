//! Sets of ports and connections: what is followed.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

/// A set of ports.
#[derive(Clone, PartialEq, Eq)]
pub struct PortSet(Box<[u64; 1024]>);

impl Default for PortSet {
    fn default() -> Self {
        Self(Box::new([0; 1024]))
    }
}

impl std::fmt::Debug for PortSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PortSet({})", self.names().join(" "))
    }
}

impl PortSet {
    /// Adds a port; port 0 means "any free one" in configurations and is none.
    pub fn insert(&mut self, port: u16) {
        if port != 0 {
            self.0[usize::from(port >> 6)] |= 1 << (port & 63);
        }
    }

    /// Whether a port is in it.
    #[must_use]
    pub fn contains(&self, port: u16) -> bool {
        self.0[usize::from(port >> 6)] >> (port & 63) & 1 == 1
    }

    /// Adds all ports of another set.
    pub fn extend(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0.iter()) {
            *mine |= theirs;
        }
    }

    /// The ports as ranges, first and last, in order, not touching.
    #[must_use]
    pub fn ranges(&self) -> Vec<(u16, u16)> {
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for port in 1..=u16::MAX {
            if !self.contains(port) {
                continue;
            }
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == port => *last = port,
                _ => ranges.push((port, port)),
            }
        }
        ranges
    }

    /// The ranges in words: "8020", "50100-50200".
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let name =
            |(first, last): (u16, u16)| if first == last { first.to_string() } else { format!("{first}-{last}") };
        self.ranges().into_iter().map(name).collect()
    }
}

impl FromIterator<u16> for PortSet {
    fn from_iter<T: IntoIterator<Item = u16>>(ports: T) -> Self {
        let mut set = Self::default();
        for port in ports {
            set.insert(port);
        }
        set
    }
}

/// What is followed: the ports of Hadoop's servers, wherever they are, and the connections that its processes have open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// Ports on which Hadoop listens.
    pub ports: PortSet,
    /// Connections of Hadoop's processes, this side and the other, and whose.
    pub connections: HashMap<(SocketAddr, SocketAddr), Arc<str>>,
    /// Who listens on this host, by port.
    pub listeners: BTreeMap<u16, Arc<str>>,
    /// From here on the kernel gives ports to whoever asks. A connection between two such ports may be Hadoop's, and it
    /// is known only later.
    pub ephemeral_from: u16,
}

impl Followed {
    /// Whether a segment between these addresses is Hadoop's, as far as is known.
    #[must_use]
    pub fn has(&self, source: SocketAddr, destination: SocketAddr) -> bool {
        self.has_port(source.port(), destination.port())
            || self.connections.contains_key(&(source, destination))
            || self.connections.contains_key(&(destination, source))
    }

    /// Whether one of two ports is followed.
    #[must_use]
    #[inline]
    pub fn has_port(&self, source: u16, destination: u16) -> bool {
        self.ports.contains(source) || self.ports.contains(destination)
    }

    /// The ports that the kernel's filter has to let through: those that are followed, and this side's of connections to
    /// a server that is not Hadoop's own.
    #[must_use]
    pub fn filtered_by(&self) -> PortSet {
        let mut ports = self.ports.clone();
        for (local, remote) in self.connections.keys() {
            if !ports.contains(remote.port()) && remote.port() < self.ephemeral_from {
                ports.insert(local.port());
            }
        }
        ports
    }

    /// Which process of this host has a connection; "" = not known.
    #[must_use]
    pub fn owner(&self, local: SocketAddr, remote: SocketAddr) -> &str {
        let opened = self.connections.get(&(local, remote));
        opened.or_else(|| self.listeners.get(&local.port())).map_or("", |who| who)
    }

    /// Whether it may turn out to be Hadoop's.
    #[must_use]
    pub fn may_have(&self, source: SocketAddr, destination: SocketAddr) -> bool {
        source.port() >= self.ephemeral_from && destination.port() >= self.ephemeral_from
    }
}
