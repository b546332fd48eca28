//! What the slow models of clocked switches count beside what becomes of packets: which lie in queues, cycle by cycle; and packets that hosts lose.

use super::traffic::{Dropped, Seen};
use netsim::fabric::packet::PacketRecord;
use netsim::time::SimTime;
use netsim::topology::LinkId;
use std::collections::{BTreeMap, BTreeSet};

type Vc = (LinkId, u8);

/// A flit of a packet crosses a link: its number there, the VC, and the cycles in which it leaves and in which it has arrived.
#[derive(Clone, Copy, Debug)]
pub struct FlitMove {
    pub packet: usize,
    pub flit: u32,
    pub vc: Vc,
    pub leaves: u64,
    pub arrives: u64,
}

/// Source, number and flit of what crosses a link, link and VL, and when it leaves and has arrived.
pub type Crossed = (u32, u64, u32, u32, u32, u64, u64);

/// What a model counts.
#[derive(Clone, Debug, Default)]
pub struct Counting {
    /// Whether hosts lose the first packet of their queue where it finds no room.
    pub loses_heads: bool,
    /// Packets that were lost in this cycle.
    pub lost: Vec<usize>,
    /// Messages of which packets were lost.
    broken: BTreeSet<u64>,
    /// Packets in each queue.
    inside: BTreeMap<Vc, BTreeSet<usize>>,
    /// In how many cycles 0, 1, ... were.
    cycles: BTreeMap<Vc, Vec<u64>>,
    /// Flits that crossed links.
    pub moves: Vec<FlitMove>,
}

impl Counting {
    pub fn new(loses_heads: bool) -> Self {
        Self { loses_heads, ..Self::default() }
    }

    pub fn comes(&mut self, vc: Vc, packet: usize) {
        self.inside.entry(vc).or_default().insert(packet);
    }

    pub fn leaves(&mut self, vc: Vc, packet: usize) {
        self.inside.entry(vc).or_default().remove(&packet);
    }

    /// Looks into all queues in a cycle.
    pub fn look(&mut self) {
        for (vc, packets) in &self.inside {
            let cycles = self.cycles.entry(*vc).or_default();
            if packets.len() >= cycles.len() {
                cycles.resize(packets.len() + 1, 0);
            }
            cycles[packets.len()] += 1;
        }
    }

    /// A packet was lost at `at`.
    pub fn loses(&mut self, record: &PacketRecord, at: SimTime, open: &mut BTreeMap<u64, u64>, seen: &mut Seen) {
        let PacketRecord { source, number, token, .. } = *record;
        seen.dropped.push(Dropped { source, number, at, token: token.0 });
        *open.get_mut(&token.0).unwrap() -= 1;
        self.broken.insert(token.0);
    }

    /// Whether no packet of a message was lost.
    pub fn is_whole(&self, token: u64) -> bool {
        !self.broken.contains(&token)
    }

    /// Of each VC of each link, in how many cycles 1, 2, ... packets lay in its queue.
    pub fn queues(&self, links: usize, vcs: u8) -> Vec<Vec<u64>> {
        let of = |vc: Vc| behind_first(self.cycles.get(&vc).cloned().unwrap_or_default());
        (0..links).flat_map(|link| (0..vcs).map(move |vc| (LinkId::from(link), vc))).map(of).collect()
    }
}

/// `times` without the first, and without zeros at the end.
pub fn behind_first(mut times: Vec<u64>) -> Vec<u64> {
    while times.last() == Some(&0) {
        times.pop();
    }
    times.into_iter().skip(1).collect()
}

/// All that a run shows, and what was counted until its end.
pub struct Counted {
    pub seen: Seen,
    pub queues: Vec<Vec<u64>>,
    /// Flits that crossed links, where the model tells them.
    pub crossed: Vec<Crossed>,
    pub end: SimTime,
}
