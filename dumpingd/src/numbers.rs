//! Maps and sets of numbers that the kernel gave: inodes and cookies. Nobody can choose these, so a plain hash does, and
//! 10,000 sockets are looked up several times a scan.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map from such numbers.
pub type NumberMap<V> = HashMap<u64, V, BuildHasherDefault<NumberHasher>>;
/// A set of such numbers.
pub type NumberSet = HashSet<u64, BuildHasherDefault<NumberHasher>>;

/// Spreads numbers by a multiplication (Knuth's golden ratio), the upper half over the lower.
#[derive(Clone, Copy, Debug, Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
