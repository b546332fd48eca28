//! Flows to which packets come, found by their addresses.

use std::borrow::Cow;
use std::hash::BuildHasher as _;

use foldhash::quality::RandomState;
use hashbrown::HashTable;

use super::flows::FlowKey;
use super::observed::Context;
use super::settled::{StoredFlow, spilled};
use super::spill::Part;

/// Flows by number, in the order in which they began. There may be millions: they are never moved all at once, and their keys stand in them only.
#[derive(Clone, Debug, Default)]
pub(super) struct GrowingFlows {
    /// `PER_BLOCK` in each but the last.
    blocks: Vec<Vec<GrowingFlow>>,
    numbers: HashTable<u32>,
    hasher: RandomState,
}

const PER_BLOCK: usize = 1 << 10;

impl GrowingFlows {
    pub fn len(&self) -> usize {
        let before = self.blocks.len().saturating_sub(1) * PER_BLOCK;
        before + self.blocks.last().map_or(0, Vec::len)
    }

    #[inline]
    pub fn get(&self, number: u32) -> &GrowingFlow {
        &self.blocks[number as usize / PER_BLOCK][number as usize % PER_BLOCK]
    }

    #[inline]
    pub fn get_mut(&mut self, number: u32) -> &mut GrowingFlow {
        &mut self.blocks[number as usize / PER_BLOCK][number as usize % PER_BLOCK]
    }

    pub fn iter(&self) -> impl Iterator<Item = &GrowingFlow> {
        self.blocks.iter().flatten()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut GrowingFlow> {
        self.blocks.iter_mut().flatten()
    }

    /// The number of the flow with a key, which begins where there is none: its first packet comes from that file.
    pub fn number_of(&mut self, key: FlowKey, file: u16) -> u32 {
        let hash = self.hasher.hash_one(key);
        let is_it = |number: &u32| self.get(*number).key == key;
        if let Some(number) = self.numbers.find(hash, is_it) {
            return *number;
        }
        let next = self.len() as u32;
        match self.blocks.last_mut() {
            Some(block) if block.len() < PER_BLOCK => block.push(GrowingFlow::new(key, file)),
            _ => self.blocks.push(vec![GrowingFlow::new(key, file)]),
        }
        let Self { blocks, numbers, hasher } = self;
        let hash_of =
            |number: &u32| hasher.hash_one(blocks[*number as usize / PER_BLOCK][*number as usize % PER_BLOCK].key);
        numbers.insert_unique(hash, next, hash_of);
        next
    }

    /// Gives back what only helps to find flows.
    pub fn settle(&mut self) {
        self.numbers = HashTable::default();
    }
}

/// A flow to which packets come.
#[derive(Clone, Debug)]
pub(super) struct GrowingFlow {
    pub key: FlowKey,
    /// Parts in the files, in order.
    parts: Vec<Part>,
    /// What follows on them.
    pub bytes: Chunks,
    pub context: Context,
    pub packets: u32,
    pub file: u16,
    pub several_files: bool,
    pub first_ns: u64,
    pub last_ns: u64,
}

impl GrowingFlow {
    /// Without packets; the first one comes from a file.
    fn new(key: FlowKey, file: u16) -> Self {
        Self {
            key,
            parts: Vec::new(),
            bytes: Chunks::default(),
            context: Context::default(),
            packets: 0,
            file,
            several_files: false,
            first_ns: u64::MAX,
            last_ns: 0,
        }
    }

    pub fn spilled(&self) -> u64 {
        spilled(&self.parts)
    }

    /// Has it go on in the files with this part; `begin` is that of the last file.
    pub fn add_part(&mut self, (at, length): Part, begin: u64) {
        match self.parts.last_mut() {
            Some((before, bytes)) if *before >= begin && *before + u64::from(*bytes) == at => *bytes += length,
            _ => {
                if self.parts.is_empty() {
                    // Most flows have one part.
                    self.parts.reserve_exact(1);
                }
                self.parts.push((at, length));
            }
        }
    }

    /// As it is; its packets are given up.
    pub fn settled(&mut self) -> StoredFlow<'static> {
        StoredFlow {
            key: self.key,
            parts: std::mem::take(&mut self.parts),
            bytes: Cow::Owned(std::mem::take(&mut self.bytes).whole()),
            packets: self.packets,
            several_files: self.several_files,
        }
    }
}

/// Bytes that are appended, in pieces: none is moved once it is written.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunks {
    full: Vec<Vec<u8>>,
    last: Vec<u8>,
    /// Bytes of the full ones.
    before: usize,
}

/// Bytes of a chunk: as many as are there already, within these bounds.
const MIN_CHUNK: usize = 64;
const MAX_CHUNK: usize = 64 << 10;

impl Chunks {
    pub fn len(&self) -> usize {
        self.before + self.last.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.full.iter().chain([&self.last]).map(Vec::as_slice)
    }

    /// Where so many bytes can be appended at once, and how much memory that takes more.
    #[inline]
    pub fn room(&mut self, bytes: usize) -> (&mut Vec<u8>, usize) {
        let more = if self.last.capacity() - self.last.len() < bytes { self.grow(bytes) } else { 0 };
        (&mut self.last, more)
    }

    fn grow(&mut self, bytes: usize) -> usize {
        let next = Vec::with_capacity(self.len().clamp(MIN_CHUNK, MAX_CHUNK).max(bytes));
        let more = next.capacity();
        let full = std::mem::replace(&mut self.last, next);
        if full.is_empty() {
            return more.saturating_sub(full.capacity());
        }
        self.before += full.len();
        self.full.push(full);
        more
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// All of them, one behind the other.
    fn whole(self) -> Vec<u8> {
        if self.full.is_empty() {
            return self.last;
        }
        let mut whole = Vec::with_capacity(self.len());
        // Each goes when it has been copied.
        self.full.into_iter().chain([self.last]).for_each(|chunk| whole.extend_from_slice(&chunk));
        whole
    }
}
