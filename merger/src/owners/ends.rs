//! Ends of connections by number: twice that of the connection, and one more at the server. Which one it is, and who claims it.

use std::net::SocketAddr;

use trace::ids::ProcessId;
use trace::rows::OwnerEvidence;

use crate::chains::Chains;
use crate::join::{AddressBook, ObservedConnection};
use crate::maps::HashMap;

/// A record may be this much earlier or later than all packets of the connection that it is about: scans come once a
/// second, and records are stamped on other threads than packets.
pub(super) const SLACK_NS: u64 = 5_000_000_000;

/// The number of an end.
pub(super) fn end_of(link: usize, at_client: bool) -> usize {
    2 * link + usize::from(!at_client)
}

/// Ends by host, address there, address of the other end.
pub(super) struct Index<'a> {
    links: &'a [ObservedConnection],
    book: &'a AddressBook,
    ends: Chains,
}

impl<'a> Index<'a> {
    pub fn new(links: &'a [ObservedConnection], book: &'a AddressBook) -> Self {
        let key_of = |end: usize| {
            let link = &links[end / 2];
            let (local, remote) = ends_of_link(link, end.is_multiple_of(2));
            Some((book.host_of(local.ip(), link.host())?, local, remote))
        };
        Self { links, book, ends: Chains::new(2 * links.len(), key_of) }
    }

    /// The connection whose packets are nearest to a span of time.
    pub fn find(
        &self,
        host: usize,
        local: SocketAddr,
        remote: SocketAddr,
        from: u64,
        to: u64,
    ) -> Option<(usize, bool)> {
        let candidates = self.ends.of(&(host, local, remote)).map(|end| (end / 2, end.is_multiple_of(2)));
        candidates
            .filter(|&(link, at_client)| {
                let link = &self.links[link];
                ends_of_link(link, at_client) == (local, remote)
                    && self.book.host_of(local.ip(), link.host()) == Some(host)
            })
            .map(|(link, at_client)| (self.distance(link, from, to), link, at_client))
            .filter(|(distance, ..)| *distance <= SLACK_NS)
            .min()
            .map(|(_, link, at_client)| (link, at_client))
    }

    /// Nanoseconds between a span of time and the packets of a connection.
    pub fn distance(&self, link: usize, from: u64, to: u64) -> u64 {
        let link = &self.links[link];
        if to < link.first_ns { link.first_ns - to } else { from.saturating_sub(link.last_ns) }
    }
}

/// The address at one end of a connection, and that at the other.
fn ends_of_link(link: &ObservedConnection, at_client: bool) -> (SocketAddr, SocketAddr) {
    if at_client { (link.client(), link.server()) } else { (link.server(), link.client()) }
}

/// Strength of evidence, the surest first.
fn rank(evidence: OwnerEvidence) -> u8 {
    match evidence {
        OwnerEvidence::Jvm => 0,
        OwnerEvidence::Scan => 1,
        OwnerEvidence::Listener => 2,
        OwnerEvidence::Manifest => 3,
        OwnerEvidence::Inferred => 4,
        OwnerEvidence::Unknown => 5,
    }
}

/// The strongest claim to an end of a connection.
#[derive(Clone, Copy)]
pub(super) struct Claim {
    rank: u8,
    pub evidence: OwnerEvidence,
    pub process: ProcessId,
    /// Nanoseconds between what it tells of and the packets.
    distance: u64,
}

impl Claim {
    pub const NONE: Self =
        Self { rank: u8::MAX, evidence: OwnerEvidence::Unknown, process: ProcessId(u32::MAX), distance: u64::MAX };

    /// The stronger one of this and another; of two that are alike the process with the lower number.
    pub fn or(self, evidence: OwnerEvidence, distance: u64, process: ProcessId) -> Self {
        let rank = rank(evidence);
        let is_stronger = (rank, distance, process) < (self.rank, self.distance, self.process);
        if is_stronger { Self { rank, evidence, process, distance } } else { self }
    }

    /// Whether there is any.
    pub fn is_any(&self) -> bool {
        self.rank != Self::NONE.rank
    }
}

/// By number of an end: whose it was while it lived, as the kernel said. Nearly all have one.
pub(super) struct ScannedOwners {
    first: Vec<ProcessId>,
    others: HashMap<usize, Vec<ProcessId>>,
}

impl ScannedOwners {
    const NOBODY: ProcessId = ProcessId(u32::MAX);

    pub fn of(ends: usize) -> Self {
        Self { first: vec![Self::NOBODY; ends], others: HashMap::default() }
    }

    pub fn add(&mut self, end: usize, process: ProcessId) {
        if self.first[end] == Self::NOBODY {
            self.first[end] = process;
        } else if !self.has(end, process) {
            self.others.entry(end).or_default().push(process);
        }
    }

    pub fn has(&self, end: usize, process: ProcessId) -> bool {
        self.first[end] == process || self.others.get(&end).is_some_and(|others| others.contains(&process))
    }

    /// The first one.
    pub fn owner(&self, end: usize) -> Option<ProcessId> {
        Some(self.first[end]).filter(|process| *process != Self::NOBODY)
    }
}
