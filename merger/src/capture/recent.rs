//! The flows of the packets before, found by the addresses as they stand in a packet: a look at one place, without order and
//! without a hash of all that a key may be.

use std::net::{Ipv4Addr, SocketAddr};

use trace::packet::{PacketView, PlainPacket};

/// Places; a host talks over fewer connections at a time, mostly.
const PLACES: usize = 512;

/// A few flows by their addresses, each in the one place that its addresses name. IPv4 only.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent {
    places: Vec<Option<Place>>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    addresses: u128,
    flow: u32,
    forward: bool,
}

impl Recent {
    /// The flow of a packet, by number, and whether it goes from the lower to the higher address; `None` = look elsewhere.
    #[inline]
    pub fn find(&self, packet: &PacketView<'_>) -> Option<(u32, bool)> {
        self.find_addresses(addresses(packet)?)
    }

    /// As [`Recent::find`].
    #[inline]
    pub fn find_plain(&self, packet: &PlainPacket<'_>) -> Option<(u32, bool)> {
        let (source, destination) =
            ((packet.source, packet.source_port), (packet.destination, packet.destination_port));
        self.find_addresses(ends(source, destination))
    }

    #[inline]
    fn find_addresses(&self, addresses: u128) -> Option<(u32, bool)> {
        let place = self.places.get(place_of(addresses))?.as_ref()?;
        (place.addresses == addresses).then_some((place.flow, place.forward))
    }

    /// Keeps the flow of a packet, in place of the one that was there.
    pub fn keep(&mut self, packet: &PacketView<'_>, flow: u32, forward: bool) {
        let Some(addresses) = addresses(packet) else { return };
        if self.places.is_empty() {
            self.places = vec![None; PLACES];
        }
        self.places[place_of(addresses)] = Some(Place { addresses, flow, forward });
    }
}

/// Both ends as one number.
#[inline]
fn addresses(packet: &PacketView<'_>) -> Option<u128> {
    let (SocketAddr::V4(source), SocketAddr::V4(destination)) = (packet.source, packet.destination) else {
        return None;
    };
    Some(ends((*source.ip(), source.port()), (*destination.ip(), destination.port())))
}

#[inline]
fn ends(source: (Ipv4Addr, u16), destination: (Ipv4Addr, u16)) -> u128 {
    let end = |(ip, port): (Ipv4Addr, u16)| u128::from(ip.to_bits()) << 16 | u128::from(port);
    end(source) << 64 | end(destination)
}

#[inline]
fn place_of(addresses: u128) -> usize {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = ((addresses >> 64) as u64).wrapping_mul(ODD) ^ (addresses as u64).wrapping_mul(ODD).rotate_left(32);
    (mixed.wrapping_mul(ODD) >> 55) as usize % PLACES
}
