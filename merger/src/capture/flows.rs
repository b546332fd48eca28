//! Between which addresses packets went, and which way.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use trace::packet::Direction;

use crate::spilled::{Reader, Record, Writer};

/// Two addresses between which packets went, the lower one first.
///
/// Addresses like 127.0.0.1 mean another host on each host: `host` tells these apart, and is `None` for all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    low: PackedAddress,
    high: PackedAddress,
    host: Option<u32>,
}

/// A canonical address in 20 bytes, ordered as [`SocketAddr`]s are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PackedAddress {
    is_v6: bool,
    /// Of an IPv4 address the first four.
    octets: [u8; 16],
    port: u16,
}

impl From<SocketAddr> for PackedAddress {
    fn from(address: SocketAddr) -> Self {
        let octets = match address.ip() {
            IpAddr::V4(ip) => {
                let mut octets = [0; 16];
                octets[..4].copy_from_slice(&ip.octets());
                octets
            }
            IpAddr::V6(ip) => ip.octets(),
        };
        Self { is_v6: address.is_ipv6(), octets, port: address.port() }
    }
}

impl From<PackedAddress> for SocketAddr {
    fn from(PackedAddress { is_v6, octets, port }: PackedAddress) -> Self {
        let [a, b, c, d, ..] = octets;
        let ip = if is_v6 { Ipv6Addr::from(octets).into() } else { Ipv4Addr::new(a, b, c, d).into() };
        Self::new(ip, port)
    }
}

impl Record for PackedAddress {
    const BLANK: Self = Self { is_v6: false, octets: [0; 16], port: 0 };
    const BYTES: usize = 1 + 16 + 2;

    fn write(&self, out: &mut Writer<'_>) {
        out.bytes([u8::from(self.is_v6)]);
        out.bytes(self.octets);
        out.bytes(self.port.to_le_bytes());
    }

    fn read(input: &mut Reader<'_>) -> Self {
        Self { is_v6: input.u8() != 0, octets: input.bytes(), port: input.u16() }
    }
}

impl Record for FlowKey {
    const BLANK: Self = Self { low: PackedAddress::BLANK, high: PackedAddress::BLANK, host: None };
    const BYTES: usize = 2 * PackedAddress::BYTES + 1 + 4;

    fn write(&self, out: &mut Writer<'_>) {
        self.low.write(out);
        self.high.write(out);
        out.bytes([u8::from(self.host.is_some())]);
        self.host.unwrap_or(0).write(out);
    }

    fn read(input: &mut Reader<'_>) -> Self {
        let (low, high) = (PackedAddress::read(input), PackedAddress::read(input));
        let (is_local, host) = (input.u8() != 0, input.u32());
        Self { low, high, host: is_local.then_some(host) }
    }
}

impl FlowKey {
    /// The flow of a packet that host `host` saw, and whether it went from the lower to the higher address.
    #[must_use]
    pub fn of(source: SocketAddr, destination: SocketAddr, host: usize) -> (Self, bool) {
        let forward = source <= destination;
        let (low, high) = if forward { (source, destination) } else { (destination, source) };
        let local = low.ip().is_loopback() || high.ip().is_loopback();
        let host = local.then(|| u32::try_from(host).unwrap_or(u32::MAX));
        (Self { low: low.into(), high: high.into(), host }, forward)
    }

    /// The lower address.
    #[must_use]
    pub fn low(&self) -> SocketAddr {
        self.low.into()
    }

    /// The higher address.
    #[must_use]
    pub fn high(&self) -> SocketAddr {
        self.high.into()
    }

    /// The host, by its number, if the addresses mean something on it only.
    #[must_use]
    pub fn host(&self) -> Option<usize> {
        self.host.map(|host| host as usize)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address() -> impl Strategy<Value = SocketAddr> {
        // Few, so that some are the same.
        let v4 = prop_oneof![any::<[u8; 4]>(), Just([10, 0, 0, 1])].prop_map(IpAddr::from);
        let v6 = prop_oneof![any::<[u8; 16]>(), Just([0; 16])].prop_map(IpAddr::from);
        (prop_oneof![v4, v6], prop_oneof![any::<u16>(), Just(80)])
            .prop_map(|(ip, port)| canonical(SocketAddr::new(ip, port)))
    }

    proptest! {
        #[test]
        fn packed_addresses_are_as_they_were_and_in_their_order(a in address(), b in address()) {
            let (packed_a, packed_b) = (PackedAddress::from(a), PackedAddress::from(b));
            prop_assert_eq!(SocketAddr::from(packed_a), a);
            prop_assert_eq!(packed_a.cmp(&packed_b), a.cmp(&b));
        }
    }
}
