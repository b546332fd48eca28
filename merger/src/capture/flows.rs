//! Between which addresses packets went, and which way.

use std::net::{IpAddr, SocketAddr};

use trace::packet::Direction;

/// Two addresses between which packets went, the lower one first.
///
/// Addresses like 127.0.0.1 mean another host on each host: `host` tells these apart, and is `None` for all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// The lower address.
    pub low: SocketAddr,
    /// The higher address.
    pub high: SocketAddr,
    /// The host, by its number, if the addresses mean something on it only.
    pub host: Option<usize>,
}

impl FlowKey {
    /// The flow of a packet that host `host` saw, and whether it went from the lower to the higher address.
    #[must_use]
    pub fn of(source: SocketAddr, destination: SocketAddr, host: usize) -> (Self, bool) {
        let forward = source <= destination;
        let (low, high) = if forward { (source, destination) } else { (destination, source) };
        let local = low.ip().is_loopback() || high.ip().is_loopback();
        (Self { low, high, host: local.then_some(host) }, forward)
    }
}

/// An IPv4 address that was written as an IPv6 one is the IPv4 address.
#[must_use]
pub fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Which way a packet goes for a host with these addresses.
#[must_use]
pub fn direction_of(source: IpAddr, destination: IpAddr, own: impl Fn(IpAddr) -> bool) -> Direction {
    match (own(source), own(destination)) {
        (true, true) => Direction::Loopback,
        (true, false) => Direction::Out,
        (false, true) => Direction::In,
        (false, false) => Direction::Foreign,
    }
}
