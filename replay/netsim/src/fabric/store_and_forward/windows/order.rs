//! In which order a block's packets come to its ports: port by port, by time, then by the rank of the link by which they came.
//!
//! Most ports have one packet in a window, or none. So packets are linked by port, and sorted only where there are several.

use crate::count::count;
use crate::kernel::{Place, tie};
use crate::time::SimTime;
use crate::topology::LinkId;

/// No packet.
const NONE: u32 = u32::MAX;

/// Ports of a word.
pub(super) const WORD: usize = 64;

/// Packets of a port that are sorted one by one: more are sorted at once.
const FEW: usize = 16;

/// The packets of a block.
#[derive(Default)]
pub(super) struct Order {
    /// Each packet as one number: the time of its arrival, then its own number; and the packet of the same port that was put in before it.
    packets: Vec<(u64, u32)>,
    /// The packet of each port that was put in last.
    lasts: Vec<u32>,
    /// A bit for each port that has packets.
    taken: Vec<u64>,
    /// The bits of a packet's number, at most 32.
    number_bits: u32,
    /// These bits set.
    mask: u64,
    /// The packets of the port at work, sorted.
    sorted: Vec<u64>,
}

impl Order {
    /// Begins with a block of `ports` ports, whose packets have numbers of so many bits.
    pub fn begin(&mut self, ports: usize, number_bits: u32) {
        self.packets.clear();
        self.number_bits = number_bits;
        self.mask = (1 << number_bits) - 1;
        if self.lasts.len() < ports {
            self.lasts.resize(ports, NONE);
            self.taken.resize(ports.div_ceil(WORD), 0);
        }
    }

    /// Puts in packet `number`, which goes on by `port`.
    #[inline]
    pub fn put(&mut self, port: u32, offset: u32, number: usize) {
        let port = port as usize;
        let before = std::mem::replace(&mut self.lasts[port], count(self.packets.len()));
        self.packets.push((u64::from(offset).wrapping_shl(self.number_bits) | number as u64, before));
        self.taken[port / WORD] |= 1 << (port % WORD);
    }

    /// The ports that have packets.
    pub fn ports(&self) -> impl Iterator<Item = usize> {
        self.taken.iter().enumerate().flat_map(|(word, bits)| {
            let mut rest = *bits;
            std::iter::from_fn(move || next_bit(&mut rest).map(|bit| word * WORD + bit))
        })
    }

    /// How many words the bits of ports have.
    pub const fn words(&self) -> usize {
        self.taken.len()
    }

    /// Takes the bits of a word, whose ports are to be taken, too.
    #[inline]
    pub fn take_word(&mut self, word: usize) -> u64 {
        std::mem::take(&mut self.taken[word])
    }

    /// Takes the packets of a port that has some: returns how many there are, of which [`Order::number`] tells in their order. `arrival` says of a packet
    /// when it arrives, and by which link.
    #[inline]
    pub fn take(&mut self, port: usize, arrival: impl Fn(usize) -> (SimTime, LinkId)) -> usize {
        let last = std::mem::replace(&mut self.lasts[port], NONE);
        self.sorted.clear();
        let (key, before) = self.packets[last as usize];
        self.sorted.push(key);
        if before != NONE {
            self.sort_behind(before, arrival);
        }
        self.sorted.len()
    }

    fn sort_behind(&mut self, mut next: u32, arrival: impl Fn(usize) -> (SimTime, LinkId)) {
        while let Some((key, before)) = self.packets.get(next as usize) {
            self.sorted.push(*key);
            next = *before;
        }
        if self.sorted.len() <= FEW {
            insert_each(&mut self.sorted);
        } else {
            self.sorted.sort_unstable();
        }
        let (bits, mask) = (self.number_bits, self.mask);
        if self.sorted.windows(2).any(|pair| pair[0] >> bits == pair[1] >> bits) {
            self.sorted.sort_unstable_by_key(|key| {
                let (at, link) = arrival((key & mask) as usize);
                (at, tie(at, Place(link.0)))
            });
        }
    }

    /// The number of a packet of the port at work.
    #[inline]
    pub fn number(&self, place: usize) -> usize {
        (self.sorted[place] & self.mask) as usize
    }
}

/// The lowest bit that is set, which is set no more.
#[inline]
pub(super) const fn next_bit(bits: &mut u64) -> Option<usize> {
    if *bits == 0 {
        return None;
    }
    let bit = bits.trailing_zeros() as usize;
    *bits &= *bits - 1;
    Some(bit)
}

/// Sorts a few numbers.
#[inline]
fn insert_each(keys: &mut [u64]) {
    for end in 1..keys.len() {
        let mut place = end;
        while place > 0 && keys[place - 1] > keys[place] {
            keys.swap(place - 1, place);
            place -= 1;
        }
    }
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
            (few, apart) in (1u32..101, 0u32..20),
            number_bits in 9u32..33,
        ) {
            let packets: Vec<_> = packets.into_iter().map(|(port, at, link)| (port % few, at >> apart << apart, link)).collect();
            let mut order = Order::default();
            let arrival = |number: usize| {
                let (_, offset, link) = packets[number];
                (SimTime(offset.into()), LinkId(link))
            };
            let rank = |(port, offset, link): (u32, u32, u32)| (port, offset, tie(SimTime(offset.into()), Place(link)));
            let mut expected: Vec<_> = packets.iter().map(|packet| rank(*packet)).collect();
            expected.sort_unstable();
            for _ in 0..2 {
                order.begin(few as usize, number_bits);
                for (number, (port, offset, _)) in packets.iter().enumerate() {
                    order.put(*port, *offset, number);
                }
                let ports: Vec<_> = order.ports().collect();
                let (mut got, mut met) = (Vec::new(), Vec::new());
                for word in 0..order.words() {
                    let mut bits = order.take_word(word);
                    while let Some(bit) = next_bit(&mut bits) {
                        met.push(word * WORD + bit);
                        let of_port = order.take(word * WORD + bit, arrival);
                        got.extend((0..of_port).map(|place| rank(packets[order.number(place)])));
                    }
                }
                prop_assert_eq!(ports, met);
                prop_assert_eq!(&got, &expected);
            }
        }
    }
}
