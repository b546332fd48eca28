//! A connection before it is read, and what comes of reading it.

use trace::jvm::JvmRecord;

use super::draft::Draft;
use crate::join::Direction;
use crate::maps::HashMap;
use crate::words::Words;

/// Sizes of map outputs as reduces fetched them. Of a large job there are millions.
#[derive(Clone, Debug, Default)]
pub struct Fetches {
    maps: Words,
    /// By map attempt and reduce.
    sizes: HashMap<(u32, u32), FetchedSize>,
}

/// The size of a map's output for a reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchedSize {
    /// As it goes over the network, bytes.
    pub bytes: u64,
    /// Before it is compressed, bytes.
    pub raw: u64,
}

impl Fetches {
    /// Adds what a reduce fetched of a map attempt.
    pub fn insert(&mut self, map: &str, reduce: u32, size: FetchedSize) {
        let map = self.maps.number_of(map);
        self.sizes.insert((map, reduce), size);
    }

    /// What a reduce fetched of a map attempt, if that is known.
    #[must_use]
    pub fn get(&self, map: &str, reduce: u32) -> Option<FetchedSize> {
        self.sizes.get(&(self.maps.known(map)?, reduce)).copied()
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
