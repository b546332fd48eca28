//! The seam between a workload (what is sent, and because of what) and a fabric (how long it takes).
//!
//! A workload opens flows and hands bytes to them; the network answers with deliveries. The two take turns
//! ([`crate::engine`]). A network knows hosts, flows and bytes; it does not know Hadoop.

use crate::time::SimTime;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

/// A host of the network, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostIndex(pub u32);

/// One direction of a connection: bytes are delivered in the order in which they were handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// What a flow is for, as far as its workload knows: a hint, of which a network may make use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowKind {
    /// Calls of procedures, and their answers.
    Calls,
    /// What files are read and written by.
    Storage,
    /// What tasks exchange with tasks.
    Shuffle,
    /// Something else, or nothing is known of it.
    #[default]
    Other,
}

/// What the workload calls the bytes of one [`Network::send`]; given back with their delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// All bytes of one [`Network::send`] have arrived, in order, at the flow's destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The bytes' name.
    pub token: Token,
    /// When the last of them arrived.
    pub at: SimTime,
}

/// Figures of one link or port over a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkFigures {
    /// The name of the link, for people: "w1->r0", "r0->core".
    pub name: CompactString,
    /// Its rate in bits per second; 0 where it has none (an ideal network).
    pub rate_bps: u64,
    /// Bytes that crossed it, headers included.
    pub bytes: u64,
    /// Packets that crossed it.
    pub packets: u64,
    /// Packets that were lost at its queue.
    pub drops: u64,
    /// Longest queue before it, in bytes.
    pub queue_max_bytes: u64,
    /// What it did over time; `None` where the fabric does not tell.
    pub intervals: Option<Box<LinkIntervals>>,
}

/// What a link did in each interval of [`NetworkFigures::interval_ps`], or that so often made twice as long, from time 0 on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkIntervals {
    /// Bytes that crossed it.
    pub bytes: Vec<u64>,
    /// Packets that were lost at its queue, up to the last interval with a loss. Fabrics that do not tell, as those without
    /// losses: empty.
    pub drops: Vec<u64>,
    /// Longest queue before it, in bytes; empty where a fabric does not tell.
    pub queue: Vec<u64>,
    /// How often the intervals were made twice as long: a link keeps 65,536 of them at most.
    pub doublings: u32,
}

impl LinkFigures {
    /// Bytes that crossed it in each interval.
    #[must_use]
    pub fn bytes_by_interval(&self) -> &[u64] {
        self.intervals.as_ref().map_or(&[], |intervals| &intervals.bytes)
    }

    /// Packets that were lost at its queue in each interval.
    #[must_use]
    pub fn drops_by_interval(&self) -> &[u64] {
        self.intervals.as_ref().map_or(&[], |intervals| &intervals.drops)
    }

    /// Longest queue before it in each interval, in bytes.
    #[must_use]
    pub fn queue_by_interval(&self) -> &[u64] {
        self.intervals.as_ref().map_or(&[], |intervals| &intervals.queue)
    }
}

/// An optical circuit from its grant to its release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CircuitFigures {
    /// Name of the rack from which it leads.
    pub from: String,
    /// Name of the rack to which it leads.
    pub to: String,
    /// Its input port at the switch, counted from 0 at each rack.
    pub input: u32,
    /// Its output port, counted the same way.
    pub output: u32,
    /// The wavelength of its input port, counted from 0 on each fibre.
    pub wavelength: u32,
    /// When its rack first asked for it.
    pub asked: SimTime,
    /// When the switch granted it.
    pub granted: SimTime,
    /// When it could be used; `None`: not before the end.
    pub up: Option<SimTime>,
    /// When the last packet that it was given has left its rack; `None`: it was given none.
    pub last_used: Option<SimTime>,
    /// When it was released; `None`: not before the end.
    pub released: Option<SimTime>,
    /// Whether it was given up for another request.
    pub evicted: bool,
    /// Whether its end was known when it began, as those of a schedule are.
    pub scheduled: bool,
    /// Packets that crossed it.
    pub packets: u64,
    /// Their bytes on the fibre.
    pub bytes: u64,
}

/// All circuits of a run together, also those beyond the ones that are told one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CircuitTotals {
    /// Input ports of the switch.
    pub ports: u64,
    /// Requests, those that were refused and repeated among them.
    pub requests: u64,
    /// Requests that were granted: circuits that were set up.
    pub granted: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Circuits that were released after they had been idle.
    pub idle: u64,
    /// Circuits that were given up for another request.
    pub evicted: u64,
    /// Packets that crossed circuits.
    pub packets: u64,
    /// Their bytes on the fibre.
    pub bytes: u64,
    /// Picoseconds from grant to release of those that were released, added up, and of these the picoseconds of set-up.
    held_ps: u128,
    set_up_ps: u128,
    /// Those that were not released: when each was granted and up.
    open: Vec<(SimTime, Option<SimTime>)>,
}

impl CircuitTotals {
    /// A circuit was released.
    pub fn released(&mut self, granted: SimTime, up: SimTime, released: SimTime) {
        self.held_ps += u128::from(released.since_ps(granted));
        self.set_up_ps += u128::from(up.since_ps(granted));
    }

    /// A circuit is not released.
    pub fn still_open(&mut self, granted: SimTime, up: Option<SimTime>) {
        self.open.push((granted, up));
    }

    /// Picoseconds for which input ports were held until `end`, added up over all ports, and of these the picoseconds in which
    /// circuits were set up and nothing could pass.
    #[must_use]
    pub fn held_and_set_up_ps(&self, end: SimTime) -> (u128, u128) {
        self.open.iter().fold((self.held_ps, self.set_up_ps), |(held, set_up), (granted, up)| {
            let up = up.map_or(end, |up| up.min(end));
            (held + u128::from(end.since_ps(*granted)), set_up + u128::from(up.since_ps(*granted)))
        })
    }
}

/// Figures of a network over a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkFigures {
    /// Events that the network's kernel processed.
    pub events: u64,
    /// Packets lost in queues or in optical contention, all links together.
    pub drops: u64,
    /// Packets sent again.
    pub retransmissions: u64,
    /// Width of the intervals of [`LinkIntervals`], in picoseconds.
    pub interval_ps: u64,
    /// Each link's figures, in a fixed order.
    pub links: Vec<LinkFigures>,
    /// Counters of the fabric's own, by name ("circuits set up", "NACKs").
    pub counters: Vec<(String, u64)>,
    /// Optical circuits in the order of their grants, the first 65,536 of them; empty where the fabric has none.
    pub circuits: Vec<CircuitFigures>,
    /// All circuits together; `None` where none was ever asked for.
    pub circuit_totals: Option<CircuitTotals>,
}

impl NetworkFigures {
    /// Makes the intervals of all links as long as the longest, where some have longer ones ([`LinkIntervals::doublings`]).
    pub fn equalise_intervals(&mut self) {
        let of = |link: &LinkFigures| link.intervals.as_ref().map_or(0, |intervals| intervals.doublings);
        let most = self.links.iter().map(of).max().unwrap_or(0);
        self.interval_ps <<= most;
        for intervals in self.links.iter_mut().filter_map(|link| link.intervals.as_mut()) {
            for _ in std::mem::take(&mut intervals.doublings)..most {
                double(&mut intervals.bytes, |first, second| first + second);
                double(&mut intervals.drops, |first, second| first + second);
                double(&mut intervals.queue, u64::max);
            }
        }
    }
}

/// Makes intervals twice as long.
pub(crate) fn double(list: &mut Vec<u64>, both: impl Fn(u64, u64) -> u64) {
    let pairs = list.chunks(2).map(|pair| pair.iter().copied().reduce(&both).unwrap_or(0));
    *list = pairs.collect();
}

/// What has events of its own in simulated time: a network, as the [engine](crate::engine) drives it.
///
/// Deterministic: the same calls give the same deliveries, bit for bit.
pub trait Simulation {
    /// How many hosts it has.
    fn hosts(&self) -> u32;

    /// When it will next process an event; `None` when nothing is under way.
    fn next_event(&self) -> Option<SimTime>;

    /// Processes events up to the first instant, not later than `until`, at which something is delivered, and appends
    /// all deliveries of that instant to `deliveries`, ordered by token. Returns the time that has been reached: that
    /// instant, or `until` if nothing was delivered.
    fn advance(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> SimTime;

    /// Processes all instants before `until`, that one not included, whatever is delivered meanwhile.
    fn run_before(&mut self, until: SimTime) {
        let Some(last) = until.0.checked_sub(1).map(SimTime) else { return };
        let mut deliveries = Vec::new();
        while self.next_event().is_some_and(|at| at <= last) {
            self.advance(last, &mut deliveries);
            deliveries.clear();
        }
    }

    /// Events that its kernel processed so far; cheaper than the figures where it says so.
    fn events(&self) -> u64 {
        self.figures().events
    }

    /// What was counted so far.
    fn figures(&self) -> NetworkFigures;
}

/// A network of flows: bytes are handed to a flow at its source, and delivered at its destination in their order.
pub trait Network: Simulation {
    /// Opens a flow. `source` and `destination` may be the same host: then it goes over that host's loopback.
    fn open_flow(&mut self, source: HostIndex, destination: HostIndex) -> FlowId;

    /// Opens the two flows of a TCP-like connection, which share round-trip state; by default two plain flows.
    fn open_connection(&mut self, client: HostIndex, server: HostIndex) -> (FlowId, FlowId) {
        (self.open_flow(client, server), self.open_flow(server, client))
    }

    /// Says what a flow is for, before anything is sent on it.
    fn describe(&mut self, flow: FlowId, kind: FlowKind) {
        let _ = (flow, kind);
    }

    /// Hands `bytes` to `flow` at `now`, which is never earlier than the last time given to this network.
    ///
    /// `bytes` = 0 is allowed and is delivered behind what was handed over before it.
    fn send(&mut self, now: SimTime, flow: FlowId, bytes: u64, token: Token);

    /// As [`Network::send`], of `bytes` that are a part of a message of the application with `of_bytes` in all: what a fabric
    /// that decides by a message's size goes by.
    fn send_part(&mut self, now: SimTime, flow: FlowId, bytes: u64, of_bytes: u64, token: Token) {
        let _ = of_bytes;
        self.send(now, flow, bytes, token);
    }
}
