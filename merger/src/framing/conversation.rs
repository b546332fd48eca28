//! A connection before it is read, and what comes of reading it.

use std::hash::BuildHasher as _;
use std::io;

use foldhash::quality::RandomState;
use trace::jvm::JvmRecord;

use super::draft::Draft;
use crate::join::Direction;
use crate::spilled::{Reader, Record, SharedList, Sorter, Writer};

/// Memory that sizes of map outputs take at most, bytes.
const MAX_FETCHED_BYTES: usize = 2 << 20;

/// Sizes of map outputs as reduces fetched them. Of a large job there are millions.
#[derive(Debug, Default)]
pub struct Fetches {
    sizes: SharedList<Fetched>,
    hashes: RandomState,
}

/// The size of a map's output for a reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FetchedSize {
    /// As it goes over the network, bytes.
    pub bytes: u64,
    /// Before it is compressed, bytes.
    pub raw: u64,
}

impl Fetches {
    /// What a reduce fetched of a map attempt, if that is known.
    #[must_use]
    pub fn get(&self, map: &str, reduce: u32) -> Option<FetchedSize> {
        let output = (reduce, self.hashes.hash_one(map));
        // The last of several: the one in front of all behind it.
        let place = self.sizes.partition_point(|fetched| fetched.output <= output).checked_sub(1)?;
        let found = self.sizes.get(place);
        (found.output == output).then_some(found.size)
    }

    /// Whether all could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.sizes.check()
    }
}

/// Takes in what reduces fetched.
#[derive(Debug, Default)]
pub(crate) struct FetchSorter {
    sorter: Sorter<Fetched>,
    hashes: RandomState,
    taken: u64,
}

impl FetchSorter {
    /// Adds what a reduce fetched of a map attempt.
    ///
    /// # Errors
    /// If a temporary file cannot be written.
    pub fn push(&mut self, map: &str, reduce: u32, size: FetchedSize) -> io::Result<()> {
        let fetched = Fetched { output: (reduce, self.hashes.hash_one(map)), place: self.taken, size };
        self.taken += 1;
        self.sorter.push(fetched)
    }

    /// All that was taken in.
    ///
    /// # Errors
    /// If a temporary file fails.
    pub fn sorted(self) -> io::Result<Fetches> {
        let sizes = self.sorter.sorted()?.into_list(MAX_FETCHED_BYTES)?.into();
        Ok(Fetches { sizes, hashes: self.hashes })
    }
}

/// What a reduce fetched of a map attempt. Their order is that of outputs, and of one output that in which they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fetched {
    /// The reduce, and the map attempt, hashed with a key of this run: two of one hash among millions are not to be expected.
    output: (u32, u64),
    place: u64,
    size: FetchedSize,
}

impl Record for Fetched {
    const BLANK: Self = Self { output: (0, 0), place: 0, size: FetchedSize { bytes: 0, raw: 0 } };
    const BYTES: usize = 4 + 4 * 8;

    fn write(&self, out: &mut Writer<'_>) {
        self.output.write(out);
        [self.place, self.size.bytes, self.size.raw].into_iter().for_each(|number| number.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Self {
        let output = (input.u32(), input.u64());
        let [place, bytes, raw] = std::array::from_fn(|_| input.u64());
        Self { output, place, size: FetchedSize { bytes, raw } }
    }
}

/// A connection, ready to be read.
pub struct Conversation<'a> {
    /// From client to server.
    pub client: &'a Direction,
    /// From server to client.
    pub server: &'a Direction,
    /// What JVMs said of it, by time; true = the client's JVM.
    pub records: Vec<(&'a JvmRecord, bool)>,
    /// Sizes of map outputs as all reduces know them.
    pub fetches: &'a Fetches,
    /// Whether it was recorded from its first byte on.
    pub from_begin: bool,
    /// Whether the JVMs at both ends have an agent that spoke of it, and the server's one speaks of what it serves
    /// elsewhere.
    pub agents: bool,
    /// The protocol of other connections to the same listener, as JVMs tell it.
    pub neighbours: Option<&'static str>,
}

impl Conversation<'_> {
    /// One of its directions.
    #[must_use]
    pub fn direction(&self, from_client: bool) -> &Direction {
        if from_client { self.client } else { self.server }
    }
}

/// What became of a connection.
#[derive(Clone, Debug, Default)]
pub struct Framed {
    /// "rpc", "data-transfer", "shuffle", "http", "" = unknown.
    pub protocol: &'static str,
    /// Messages of both directions, in any order; bytes between them are unknown.
    pub drafts: Vec<Draft>,
}
