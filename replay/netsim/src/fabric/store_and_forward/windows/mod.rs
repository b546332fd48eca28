//! `store-and-forward` in windows, on several threads: the same packets at the same picoseconds as by events, and faster.
//!
//! Whatever leaves a node arrives no sooner than the shortest time of a link. So within a window of that length, what happens at
//! one port is independent of all others: the packets that arrive in it are sorted by output port, each port takes its own in
//! the order of time, and what leaves goes into a later window. Parts of the network run on threads, several on one if there are more of them than cores, and
//! exchange packets between two windows. There is no queue of events, and ties are broken by time and place alone, so that neither the number of
//! parts nor the order of work shows in a result.

mod ahead;
mod calendar;
mod due;
mod hop;
mod hosts;
mod layout;
mod optimistic;
mod order;
mod part;
mod port;
mod ranks;
mod shared;
mod waits;

use std::ops::RangeInclusive;

use super::StoreAndForwardConfig;
use crate::count::count;
use crate::fabric::FabricError;
use crate::fabric::packet::{HostLinksDiffer, LinkTime, host_rate};
use crate::fabric::windows::{
    self, HOSTS_OF_A_THREAD, HostMessages, PartObserver, Threads, WindowProgress, WindowedRun, WindowsCost,
};
use crate::network::{HostIndex, LinkFigures, NetworkFigures};
use crate::routing::Routes;
use crate::time::SimTime;
use crate::topology::{HostPlace, LinkId, NodeId, Topology};
use layout::PartLayout;
pub use optimistic::Optimistic;
use part::Part;
use port::{PortCounts, Ports, link_figures};
pub use ranks::{Head, Rank};
use shared::{PortPlace, Shared};

/// A network of switches that store and forward, to be run in windows.
pub struct Windowed {
    config: StoreAndForwardConfig,
    topology: Topology,
    routes: Routes,
}

impl Windowed {
    /// The network of `config` for `hosts`.
    ///
    /// # Errors
    /// As [`StoreAndForward::new`](super::StoreAndForward::new).
    pub fn new(config: &StoreAndForwardConfig, hosts: &[HostPlace]) -> Result<Self, FabricError> {
        let topology = config.topology.build(hosts)?;
        let routes = Routes::new(&config.routing, &topology, config.seed)?;
        config.check(&topology, routes.config())?;
        Ok(Self { config: config.clone(), topology, routes })
    }

    /// How many hosts it has.
    #[must_use]
    pub const fn hosts(&self) -> u32 {
        self.topology.hosts()
    }

    /// How its hosts' links and its packets are made.
    ///
    /// # Errors
    /// If the links of its hosts differ.
    pub fn link_time(&self) -> Result<LinkTime, HostLinksDiffer> {
        Ok(LinkTime::new(host_rate(&self.topology)?, self.config.flit, self.config.mtu, self.config.headers))
    }

    /// Makes `parts` parts of it (fewer if it is small), all of whose packets are as long as `packet_bytes` says. `messages` gives those of the hosts
    /// of each part, whose indexes it is told.
    pub fn into_parts<O: PartObserver, M: HostMessages>(
        self,
        parts: u16,
        packet_bytes: &RangeInclusive<u64>,
        observer: O,
        messages: impl Fn(&[HostIndex]) -> M + Sync,
    ) -> Windows<O, M> {
        let shared = Shared::new(&self.config, self.topology, self.routes, parts, packet_bytes);
        let mut threads = Threads::default();
        let part = |(number, layout): (u16, &PartLayout)| {
            let hosts: Vec<_> = layout.hosts.clone().map(|node| shared.host_of(NodeId(node))).collect();
            Part::new(&shared, number, observer.for_part(), messages(&hosts))
        };
        let (parts, others_cpu_s) = windows::in_shares(shared.layout.parts.len(), shares(&shared), |numbers| {
            (0..).zip(&shared.layout.parts).skip(numbers.start).take(numbers.len()).map(part).collect()
        });
        threads.cost.others_cpu_s += others_cpu_s;
        Windows { parts, threads, observer, shared }
    }
}

/// What `of` makes of each link and its port; and what other threads computed for it, in seconds.
fn of_links<R: Send>(shared: &Shared, of: impl Fn(LinkId, PortPlace) -> R + Sync) -> (Vec<R>, f64) {
    windows::in_shares(shared.topology.links().len(), shares(shared), |ids| {
        ids.map(|id| LinkId(count(id))).map(|link| of(link, shared.port(link))).collect()
    })
}

/// Bytes of packets that have begun to cross each link before `now`, the time up to which it has run, link by link, by the ports of hosts and of
/// switches of each part; and what other threads computed for it, in seconds.
fn lane_bytes(shared: &Shared, ports: &[[&Ports; 2]], now: SimTime) -> (Vec<u64>, f64) {
    of_links(shared, |_, port| ports[port.part][port.kind].begun_bytes(port.number, now))
}

/// What was counted of all packets.
struct Totals {
    events: u64,
    dropped: u64,
    delivered: u64,
}

impl Totals {
    /// The figures of a network with `links`.
    fn figures(self, links: Vec<LinkFigures>) -> NetworkFigures {
        NetworkFigures {
            circuits: Vec::new(),
            circuit_totals: None,
            events: self.events,
            drops: self.dropped,
            retransmissions: 0,
            interval_ps: 0,
            links,
            counters: vec![("packets delivered".to_owned(), self.delivered)],
        }
    }
}

/// What was counted, at the ports of hosts and of switches of each part and in all; and what other threads computed for it, in seconds. The traffic of
/// links over time is not counted.
fn figures(shared: &Shared, counts: Vec<[PortCounts; 2]>, totals: Totals) -> (NetworkFigures, f64) {
    let topology = &shared.topology;
    let (links, others_cpu_s) = of_links(shared, |link, port| {
        let rate = topology.link(link).used_rate();
        link_figures(topology.link_name(link), rate, counts[port.part][port.kind].of(port.number))
    });
    (totals.figures(links), others_cpu_s)
}

/// Threads that set up what there is for each host and link, and count it in the end.
fn shares(shared: &Shared) -> usize {
    shared.layout.parts.len().min(shared.topology.hosts() as usize / HOSTS_OF_A_THREAD)
}

/// A run in windows.
pub struct Windows<O, M> {
    shared: Shared,
    parts: Vec<Part<O, M>>,
    threads: Threads,
    observer: O,
}

impl<O: PartObserver, M: HostMessages> WindowedRun<O> for Windows<O, M> {
    fn run_before(&mut self, until: SimTime, look: impl FnMut(WindowProgress) -> bool) -> bool {
        self.threads.run_before(&mut self.parts, &self.shared, until, look)
    }

    fn on_threads(&mut self, threads: usize) {
        self.threads.most = threads;
    }

    fn parts(&self) -> usize {
        self.parts.len()
    }

    fn window_ps(&self) -> u64 {
        self.shared.width
    }

    fn cost(&self) -> WindowsCost {
        self.threads.cost
    }

    fn events(&self) -> u64 {
        self.parts.iter().map(windows::Part::events).sum()
    }

    fn observers<'a>(&'a self) -> impl Iterator<Item = &'a O>
    where
        O: 'a,
    {
        self.parts.iter().map(|part| &part.observer)
    }

    fn observers_mut<'a>(&'a mut self) -> impl Iterator<Item = &'a mut O>
    where
        O: 'a,
    {
        self.parts.iter_mut().map(|part| &mut part.observer)
    }

    fn into_observer(self) -> O {
        let mut all = self.observer;
        self.parts.into_iter().for_each(|part| all.merge(part.observer));
        all
    }

    fn lanes(&self) -> u32 {
        1
    }

    fn lane_bytes(&mut self, now: SimTime) -> Vec<u64> {
        let ports: Vec<_> = self.parts.iter().map(|part| [&part.hosts.ports, &part.ports]).collect();
        let (bytes, others_cpu_s) = lane_bytes(&self.shared, &ports, now);
        self.threads.cost.others_cpu_s += others_cpu_s;
        bytes
    }

    fn forget_packets(&mut self) {
        self.parts.iter_mut().for_each(Part::forget_packets);
    }

    /// The traffic of links over time is not counted.
    fn take_figures(&mut self) -> NetworkFigures {
        let totals = Totals {
            events: self.events(),
            dropped: self.parts.iter().map(|part| part.dropped).sum(),
            delivered: self.parts.iter().map(|part| part.delivered).sum(),
        };
        let parts = self.parts.iter_mut();
        let counts = parts.map(|part| [&mut part.hosts.ports, &mut part.ports].map(Ports::take_counts)).collect();
        let (figures, others_cpu_s) = figures(&self.shared, counts, totals);
        self.threads.cost.others_cpu_s += others_cpu_s;
        figures
    }
}
