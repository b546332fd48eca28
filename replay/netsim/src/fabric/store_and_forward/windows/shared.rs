//! What all parts read and none changes.

use std::ops::RangeInclusive;

use super::layout::{Block, Layout, NodePlace};
use crate::count::count;
use crate::fabric::messages::NUMBER;
use crate::fabric::packet::PacketRecord;
use crate::fabric::store_and_forward::StoreAndForwardConfig;
use crate::kernel::Divisor;
use crate::network::HostIndex;
use crate::routing::{Choice, Routes};
use crate::time::SimTime;
use crate::topology::{LinkId, NodeId, Topology};

use super::hop::Hop;

/// Where a port is simulated.
#[derive(Clone, Copy)]
pub(super) struct PortPlace {
    pub part: usize,
    /// 0: among the ports of hosts; 1: among those of switches.
    pub kind: usize,
    pub number: usize,
}

/// The network, and how it is cut up.
pub(super) struct Shared {
    pub topology: Topology,
    pub routes: Routes,
    pub layout: Layout,
    /// The workload's host of each host node.
    hosts: Vec<HostIndex>,
    /// Whether that is the host of the same number, so that nothing needs to be looked up.
    in_order: bool,
    /// Bytes of the largest packet.
    pub largest: u32,
    /// Bytes of a flit, and the same to divide by.
    flit: u64,
    by_flit: Divisor,
    pub mtu: u64,
    pub headers: u64,
    pub switch_delay: u64,
    /// Threads that set up what there is for each host and link, and count it in the end, at most.
    pub threads: usize,
    /// The width of a window in picoseconds: nothing that leaves in one arrives in the same.
    pub width: u64,
    by_width: Divisor,
}

impl Shared {
    /// `packet_bytes`: the bytes of the smallest packet that there will be, and of the largest one.
    pub fn new(
        config: &StoreAndForwardConfig,
        topology: Topology,
        routes: Routes,
        parts: u16,
        packet_bytes: &RangeInclusive<u64>,
    ) -> Self {
        let mut hosts = vec![HostIndex(u32::MAX); topology.hosts() as usize];
        (0..topology.hosts()).for_each(|host| hosts[topology.host_node(host).0 as usize] = HostIndex(host));
        let layout = Layout::new(&topology, parts);
        let width = lookahead(config, &topology, *packet_bytes.start()).clamp(1, u32::MAX.into());
        let in_order = hosts.iter().zip(0..).all(|(host, node)| host.0 == node);
        Self {
            hosts,
            in_order,
            threads: layout.parts.len(),
            layout,
            largest: u32::try_from(*packet_bytes.end()).unwrap_or(u32::MAX),
            flit: config.flit.get(),
            by_flit: Divisor::new(config.flit.get()),
            mtu: config.mtu.get(),
            headers: config.headers.get(),
            switch_delay: config.switch_delay.ps(),
            width,
            by_width: Divisor::new(width),
            topology,
            routes,
        }
    }

    #[inline]
    pub fn host_of(&self, node: NodeId) -> HostIndex {
        if self.in_order { HostIndex(node.0) } else { self.hosts[node.0 as usize] }
    }

    #[inline]
    pub fn node_of(&self, host: HostIndex) -> NodeId {
        if self.in_order { NodeId(host.0) } else { self.topology.host_node(host.0) }
    }

    #[inline]
    pub fn place(&self, node: NodeId) -> NodePlace {
        self.layout.places[node.0 as usize]
    }

    /// Where the port in front of a link is simulated.
    pub fn port(&self, id: LinkId) -> PortPlace {
        let from = self.topology.link(id).from;
        let part = usize::from(self.place(from).part);
        if self.topology.is_host(from) {
            let first = self.layout.parts[part].hosts.start;
            PortPlace { part, kind: 0, number: (from.0 - first) as usize }
        } else {
            PortPlace { part, kind: 1, number: self.layout.ports[id.0 as usize] as usize }
        }
    }

    /// The length of a packet that takes what it can of `rest` bytes of payload.
    #[inline]
    pub fn packet_bytes(&self, rest: u64) -> u32 {
        u32::try_from((rest.min(self.mtu) + self.headers).max(1)).unwrap_or(u32::MAX)
    }

    /// The window in which `at` lies, and how long after its begin.
    #[inline]
    pub fn window_of(&self, at: SimTime) -> (u64, u32) {
        self.window_after(0, SimTime::ZERO, at)
    }

    /// The same for what comes after `window`, which begins at `begin`; cheap if it comes soon.
    #[inline]
    pub fn window_after(&self, window: u64, begin: SimTime, at: SimTime) -> (u64, u32) {
        let ahead = at.since_ps(begin);
        let windows = self.by_width.quotient(ahead);
        // A part of a window is shorter than 2^32 ps.
        (window + windows, (ahead.wrapping_sub(windows.wrapping_mul(self.width))) as u32)
    }

    /// When `window` begins.
    #[inline]
    pub const fn begin(&self, window: u64) -> SimTime {
        SimTime(window.saturating_mul(self.width))
    }

    /// A packet that arrives at its destination at `at`.
    #[inline]
    pub fn record(&self, hop: &Hop, at: SimTime) -> PacketRecord {
        PacketRecord {
            handed_over: hop.handed_over,
            left: hop.left,
            arrived: at,
            source: hop.source(),
            destination: self.host_of(hop.destination),
            number: hop.key & NUMBER,
            bytes: hop.bytes,
            flits: u32::try_from(self.by_flit.quotient(u64::from(hop.bytes) + self.flit - 1)).unwrap_or(u32::MAX),
            switches: hop.switches,
            token: hop.token,
        }
    }

    /// Whether a packet can arrive at `place` in `window` that is as `hop` says, which another process has written.
    pub fn can_arrive(&self, hop: &Hop, window: u64, place: NodePlace) -> bool {
        let hosts = self.topology.hosts();
        let link = self.topology.links().get(hop.link.0 as usize);
        let there = link.is_some_and(|link| link.to == hop.node) && self.place(hop.node) == place;
        let known = hop.destination.0 < hosts && hop.source().0 < hosts;
        let meant = !self.topology.is_host(hop.node) || hop.destination == hop.node;
        let left = hop.handed_over <= hop.left && hop.left <= self.begin(window).plus_ps(hop.offset.into());
        let counted = (1..=self.largest).contains(&hop.bytes) && hop.switches < u32::MAX / 2;
        there && known && meant && left && counted && u64::from(hop.offset) < self.width
    }

    /// The link by which a packet goes on that has come to a switch.
    #[inline]
    pub fn route(&self, hop: &Hop) -> Option<LinkId> {
        let next = self.routes.next(hop.node, hop.link, hop.destination);
        next.links.get(self.choose(next.links.len(), hop)).copied()
    }

    /// The port by which a packet goes on that has come to a switch of `block`: its number there.
    #[inline(always)]
    pub fn route_in(&self, block: &Block, hop: &Hop) -> Option<u32> {
        if let Some(positions) = self.routes.positions(hop.node, hop.destination) {
            let ways = positions.end.wrapping_sub(positions.start);
            let chosen = count(self.choose(ways as usize, hop));
            return (chosen < ways).then(|| positions.start.wrapping_add(chosen).wrapping_sub(block.position));
        }
        Some(self.layout.ports[self.route(hop)?.0 as usize].wrapping_sub(block.ports.start))
    }

    /// Which of `ways` links a packet takes that has come to a switch.
    #[inline]
    fn choose(&self, ways: usize, hop: &Hop) -> usize {
        if ways <= 1 {
            return 0;
        }
        let source = self.node_of(hop.source());
        match self.routes.choose(ways, hop.node, hop.key, hop.flow, source, hop.destination) {
            Choice::Index(index) => index,
            Choice::ByCredits => 0,
        }
    }
}

/// How long at least it takes from a packet's begin at one end of a link until its arrival at the other.
fn lookahead(config: &StoreAndForwardConfig, topology: &Topology, smallest: u64) -> u64 {
    let times = topology.links().iter().map(|link| {
        let switch = if topology.is_host(link.to) { 0 } else { config.switch_delay.ps() };
        link.rate.time_ps(smallest).saturating_add(link.delay_ps).saturating_add(switch)
    });
    times.min().unwrap_or(1)
}
