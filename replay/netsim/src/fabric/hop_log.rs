//! A log of the ways of some packets: when they, or their flits, leave hosts and switches, and when they come to the next one.

use super::hop_records::{HopEvent, HopRecords, LogWanted, LoggedHop};
use super::messages::NUMBER;
use crate::count::count;
use crate::time::SimTime;
use crate::topology::{LinkId, NodeId, Topology};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Rows of a log at most.
const MAX_ROWS: usize = 1 << 20;

/// Of a row that is a whole packet's.
const ALL: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Row {
    at: SimTime,
    key: u64,
    flit: u32,
    event: HopEvent,
    link: LinkId,
    vl: u32,
}

/// A log that is being written.
pub(super) struct HopLog {
    wanted: LogWanted,
    /// The keys of the packets that are logged.
    chosen: BTreeSet<u64>,
    /// Flits of these that have crossed links one by one.
    crossed: HashMap<(u64, LinkId), u32>,
    rows: Vec<Row>,
    is_full: bool,
}

impl HopLog {
    pub fn new(wanted: LogWanted) -> Self {
        Self { wanted, chosen: BTreeSet::new(), crossed: HashMap::new(), rows: Vec::new(), is_full: false }
    }

    /// The packet with `key` leaves its host at `at`.
    pub fn begins(&mut self, key: u64, at: SimTime) {
        let LogWanted { packets, from, hosts, numbers, .. } = &self.wanted;
        let is_wanted = at >= *from
            && (hosts.is_empty() || hosts.contains(&source(key)))
            && (numbers.is_empty() || numbers.contains(&(key & NUMBER)));
        if is_wanted && self.chosen.len() < *packets as usize {
            self.chosen.insert(key);
        }
    }

    fn push(&mut self, row: Row) {
        if self.rows.len() < MAX_ROWS { self.rows.push(row) } else { self.is_full = true }
    }

    /// The packet with `key`, of `flits` flits, crosses `link` on `vl`: `times` says of each of them when it begins to leave and when it has
    /// come to the end. It has come as a `whole`, with its last flit, or with its first.
    pub fn packet_crosses(
        &mut self,
        key: u64,
        (link, vl): (LinkId, u32),
        (flits, whole): (u32, bool),
        times: impl Fn(u32) -> (SimTime, SimTime),
    ) {
        if !self.chosen.contains(&key) {
            return;
        }
        if self.wanted.flits {
            for flit in 0..flits {
                if self.is_full {
                    return;
                }
                self.crosses(key, (link, vl), flit, times(flit));
            }
        } else {
            let arrives = times(if whole { flits.saturating_sub(1) } else { 0 }).1;
            self.crosses(key, (link, vl), ALL, (times(0).0, arrives));
        }
    }

    fn crosses(&mut self, key: u64, (link, vl): (LinkId, u32), flit: u32, (leaves, arrives): (SimTime, SimTime)) {
        self.push(Row { at: leaves, key, flit, event: HopEvent::Leaves, link, vl });
        self.push(Row { at: arrives, key, flit, event: HopEvent::Arrives, link, vl });
    }

    /// The next flit of the packet with `key`, its first one if `head` and its last one if `tail`, crosses `link` on `vl`.
    pub fn flit_crosses(
        &mut self,
        key: u64,
        (link, vl): (LinkId, u32),
        (head, tail, to_host): (bool, bool, bool),
        (leaves, arrives): (SimTime, SimTime),
    ) {
        if !self.chosen.contains(&key) {
            return;
        }
        if self.wanted.flits {
            let crossed = self.crossed.entry((key, link)).or_default();
            let flit = *crossed;
            *crossed += 1;
            if tail {
                self.crossed.remove(&(key, link));
            }
            return self.crosses(key, (link, vl), flit, (leaves, arrives));
        }
        if head {
            self.push(Row { at: leaves, key, flit: ALL, event: HopEvent::Leaves, link, vl });
        }
        if if to_host { tail } else { head } {
            self.push(Row { at: arrives, key, flit: ALL, event: HopEvent::Arrives, link, vl });
        }
    }

    /// The packet with `key` is lost in front of `link`.
    pub fn lost(&mut self, key: u64, link: LinkId, at: SimTime) {
        if self.chosen.contains(&key) {
            self.push(Row { at, key, flit: ALL, event: HopEvent::Lost, link, vl: 0 });
        }
    }

    /// What happened until `end`.
    pub fn finish(mut self, topology: &Topology, end: SimTime) -> HopRecords {
        self.rows.retain(|row| row.at <= end);
        self.rows.sort_by_key(|row| (row.at, row.key, row.flit));
        let (mut nodes, mut links) = (Names::default(), Names::default());
        let hop = |row: &Row| {
            let link = topology.link(row.link);
            let (node, own) = match row.event {
                HopEvent::Leaves | HopEvent::Lost => (link.from, row.link),
                HopEvent::Arrives => (link.to, row.link.back()),
            };
            LoggedHop {
                at_ps: row.at.0,
                source: source(row.key),
                number: row.key & NUMBER,
                flit: (row.flit != ALL).then_some(row.flit),
                event: row.event,
                node: nodes.place(node.0, || topology.name(node).to_owned()),
                link: links.place(row.link.0, || topology.link_name(row.link).into_string()),
                port: port(topology, node, own),
                vl: row.vl,
            }
        };
        let hops = self.rows.iter().map(hop).collect();
        HopRecords {
            nodes: nodes.names,
            links: links.names,
            hops,
            packets: count(self.chosen.len()),
            is_full: self.is_full,
        }
    }
}

/// The host with whose number the key of a packet begins.
fn source(key: u64) -> u32 {
    // Hosts have numbers of 24 bits there.
    (key >> 40) as u32
}

/// The number of `link` among those that leave `node`.
fn port(topology: &Topology, node: NodeId, link: LinkId) -> u32 {
    let place = topology.out(node).iter().position(|other| *other == link);
    place.map_or(0, count)
}

/// Names, each once.
#[derive(Default)]
struct Names {
    places: BTreeMap<u32, u32>,
    names: Vec<String>,
}

impl Names {
    /// The place of the name of what has the number `id`.
    fn place(&mut self, id: u32, name: impl FnOnce() -> String) -> u32 {
        *self.places.entry(id).or_insert_with(|| {
            self.names.push(name());
            count(self.names.len() - 1)
        })
    }
}
