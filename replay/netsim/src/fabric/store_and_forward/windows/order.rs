//! In which order a block's packets come to its ports: port by port, by time, then by the rank of the link by which they came.
//!
//! Most ports have one packet in a window, or none. So packets are counted and laid out by port, and what is not in order then is put
//! in order one by one: how many a port has is not to be foreseen, and no loop or branch of its own depends on that.

use crate::kernel::{Place, take_lowest, tie};
use crate::time::SimTime;
use crate::topology::LinkId;
use std::ops::Range;

/// Ports of a word.
const WORD: usize = 64;

/// Packets of a port that are sorted one by one: more are sorted at once.
const FEW: u32 = 16;

/// Ports for each packet of a block up to which all ports are looked at: where there are more, it is noted which have packets.
const PORTS_OF_A_PACKET: usize = 8;

/// A packet that has come.
#[derive(Clone, Copy)]
struct Arrival {
    /// Its port, then the time of its arrival.
    key: u64,
    number: u32,
}

impl Arrival {
    #[inline(always)]
    const fn port(self) -> usize {
        (self.key >> u32::BITS) as usize
    }
}

/// The packets of a block.
#[derive(Default)]
pub(super) struct Order {
    /// As they were put in.
    packets: Vec<Arrival>,
    /// In order; what lies behind so many as there are packets is of no meaning.
    sorted: Vec<Arrival>,
    /// How many packets each port has, then where its next one goes; 0 where there is none.
    counts: Vec<u32>,
    /// How many ports the block has.
    ports: usize,
    /// Whether all of them are looked at.
    is_dense: bool,
    /// A bit for each port that has packets, where not all are looked at.
    taken: Vec<u64>,
    /// Ports with many packets: where these are.
    crowded: Vec<Range<usize>>,
}

impl Order {
    /// Begins with a block of `ports` ports and about so many packets.
    pub fn begin(&mut self, ports: usize, packets: usize) {
        self.packets.clear();
        self.ports = ports;
        self.is_dense = ports / PORTS_OF_A_PACKET <= packets;
        if self.counts.len() < ports {
            self.counts.resize(ports, 0);
            self.taken.resize(ports.div_ceil(WORD), 0);
        }
    }

    /// Puts in packet `number`, which goes on by `port` and arrives at `offset`.
    #[inline(always)]
    pub fn put(&mut self, port: u32, offset: u32, number: usize) {
        self.packets.push(Arrival { key: u64::from(port) << u32::BITS | u64::from(offset), number: number as u32 });
        let port = port as usize;
        self.counts[port] = self.counts[port].wrapping_add(1);
        if !self.is_dense {
            self.taken[port / WORD] |= 1 << (port % WORD);
        }
    }

    /// The ports of all packets.
    pub fn ports(&self) -> impl Iterator<Item = usize> {
        self.packets.iter().map(|packet| packet.port())
    }

    /// Puts all packets in order. `arrival` says of a packet when it arrives, and by which link.
    #[inline]
    pub fn sort(&mut self, arrival: impl Fn(usize) -> (SimTime, LinkId)) {
        let Some(first) = self.packets.first() else { return };
        if self.sorted.len() < self.packets.len() {
            self.sorted.resize(self.packets.len().next_power_of_two(), *first);
        }
        if self.is_dense {
            self.lay_out_all();
        } else {
            self.lay_out_taken();
        }
        let sorted = &mut self.sorted[..self.packets.len()];
        let mut has_ties = false;
        let mut before = 0;
        for place in 0..sorted.len() {
            let Arrival { key, .. } = sorted[place];
            if key <= before {
                has_ties |= insert(sorted, place);
            }
            before = before.max(key);
        }
        if has_ties {
            let same = |one: &Arrival, other: &Arrival| one.key == other.key;
            for tied in sorted.chunk_by_mut(same).filter(|tied| tied.len() > 1) {
                tied.sort_unstable_by_key(|packet| {
                    let (at, link) = arrival(packet.number as usize);
                    tie(at, Place(link.0))
                });
            }
        }
    }

    /// Lays packets out by port, where most ports have some.
    fn lay_out_all(&mut self) {
        let (mut begin, mut most) = (0u32, 0);
        for count in &mut self.counts[..self.ports] {
            let packets = std::mem::replace(count, begin);
            begin = begin.wrapping_add(packets);
            most = most.max(packets);
        }
        self.distribute();
        if most > FEW {
            // A port's packets end where those of the next one begin.
            let mut begin = 0;
            for end in &self.counts[..self.ports] {
                if end - begin > FEW {
                    self.sorted[begin as usize..*end as usize].sort_unstable_by_key(|packet| packet.key);
                }
                begin = *end;
            }
        }
        self.counts[..self.ports].fill(0);
    }

    /// The same where most ports have none.
    fn lay_out_taken(&mut self) {
        let mut begin = 0u32;
        for (word, bits) in self.taken.iter_mut().enumerate() {
            let mut bits = std::mem::take(bits);
            while let Some(bit) = take_lowest(&mut bits) {
                let packets = std::mem::replace(&mut self.counts[word * WORD + bit as usize], begin);
                let end = begin.wrapping_add(packets);
                if packets > FEW {
                    self.crowded.push(begin as usize..end as usize);
                }
                begin = end;
            }
        }
        self.distribute();
        for packet in &self.packets {
            self.counts[packet.port()] = 0;
        }
        for packets in self.crowded.drain(..) {
            self.sorted[packets].sort_unstable_by_key(|packet| packet.key);
        }
    }

    /// Puts each packet where the next one of its port goes.
    #[inline(always)]
    fn distribute(&mut self) {
        for packet in &self.packets {
            let place = &mut self.counts[packet.port()];
            self.sorted[*place as usize] = *packet;
            *place = place.wrapping_add(1);
        }
    }

    /// How many packets there are.
    pub const fn len(&self) -> usize {
        self.packets.len()
    }

    /// The port and the number of the packet with a place in the order.
    #[inline(always)]
    pub fn packet(&self, place: usize) -> (usize, usize) {
        let packet = self.sorted[place];
        (packet.port(), packet.number as usize)
    }
}

/// Puts the packet at `place` where it belongs among those before it, which are in order: fewer than [`FEW`] steps. Returns whether one of
/// them has the same key.
#[inline(never)]
fn insert(packets: &mut [Arrival], mut place: usize) -> bool {
    while place > 0 && packets[place - 1].key > packets[place].key {
        packets.swap(place - 1, place);
        place -= 1;
    }
    place > 0 && packets[place - 1].key == packets[place].key
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// As a list sorted by port, time and rank.
        #[test]
        fn packets_come_by_port_time_and_rank(
            packets in prop::collection::vec((0u32..100, 0u32..1 << 20, 0u32..50), 0..300),
            (few, apart, spread) in (1u32..101, 0u32..20, 1u32..50),
        ) {
            let packets: Vec<_> = packets.into_iter().map(|(port, at, link)| (port % few * spread, at >> apart << apart, link)).collect();
            let mut order = Order::default();
            let arrival = |number: usize| {
                let (_, offset, link) = packets[number];
                (SimTime(offset.into()), LinkId(link))
            };
            let rank = |(port, offset, link): (u32, u32, u32)| (port, offset, tie(SimTime(offset.into()), Place(link)));
            let mut expected: Vec<_> = packets.iter().map(|packet| rank(*packet)).collect();
            expected.sort_unstable();
            for _ in 0..2 {
                order.begin((few * spread) as usize, packets.len());
                for (number, (port, offset, _)) in packets.iter().enumerate() {
                    order.put(*port, *offset, number);
                }
                prop_assert!(order.ports().eq(packets.iter().map(|(port, ..)| *port as usize)));
                order.sort(arrival);
                let sorted: Vec<_> = (0..order.len()).map(|place| order.packet(place)).collect();
                let got: Vec<_> = sorted.iter().map(|(port, number)| {
                    assert_eq!(packets[*number].0 as usize, *port);
                    rank(packets[*number])
                }).collect();
                prop_assert_eq!(&got, &expected);
            }
        }
    }
}
