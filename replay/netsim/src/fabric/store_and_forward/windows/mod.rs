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
use crate::fabric::windows::{self, HOSTS_OF_A_THREAD, HostMessages, ObservedPart, PartObserver, Run, WindowedRun};
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
    /// See [`Self::on_threads`].
    threads: usize,
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
        Ok(Self { config: config.clone(), topology, routes, threads: usize::MAX })
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

    /// Its parts are set up and run by `threads` threads at most. Without it they are set up by one for each part, and run by as many as there are cores.
    #[must_use]
    pub fn on_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Makes `parts` parts of it (fewer if it is small), all of whose packets are as long as `packet_bytes` says. `messages` gives those of the hosts
    /// of each part, whose indexes it is told.
    pub fn into_parts<O: PartObserver, M: HostMessages, F: Fn(&[HostIndex]) -> M + Sync>(
        self,
        parts: u16,
        packet_bytes: &RangeInclusive<u64>,
        observer: O,
        messages: F,
    ) -> impl WindowedRun<O> + use<O, M, F> {
        let mut shared = Shared::new(&self.config, self.topology, self.routes, parts, packet_bytes);
        shared.threads = shared.threads.min(self.threads);
        let part = |(number, layout): (u16, &PartLayout)| {
            let hosts: Vec<_> = layout.hosts.clone().map(|node| shared.host_of(NodeId(node))).collect();
            Part::new(&shared, number, observer.for_part(), messages(&hosts))
        };
        let (parts, others_cpu_s) = windows::in_shares(shared.layout.parts.len(), shares(&shared), |numbers| {
            (0..).zip(&shared.layout.parts).skip(numbers.start).take(numbers.len()).map(part)
        });
        Run::new(shared, parts, observer, |_, _| {}).on_at_most(self.threads).with_cpu_of_others(others_cpu_s)
    }
}

/// What `of` makes of each link and its port; and what other threads computed for it, in seconds.
fn of_links<R: Send>(shared: &Shared, of: impl Fn(LinkId, PortPlace) -> R + Sync) -> (Vec<R>, f64) {
    windows::in_shares(shared.topology.links().len(), shares(shared), |ids| {
        ids.map(|id| LinkId(count(id))).map(|link| of(link, shared.port(link)))
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
    shared.threads.min(shared.topology.hosts() as usize / HOSTS_OF_A_THREAD)
}

impl<O: PartObserver, M: HostMessages> ObservedPart for Part<O, M> {
    type Observer = O;

    const IS_READY: bool = true;

    fn observer(&self) -> &O {
        &self.observer
    }

    fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    fn into_observer(self) -> O {
        self.observer
    }

    fn forget_packets(&mut self) {
        Self::forget_packets(self);
    }

    fn outlasts(&self, window: u64, counts: &impl Fn(SimTime) -> bool) -> bool {
        Self::outlasts(self, window, counts)
    }

    fn lane_bytes(parts: &[Self], shared: &Shared, now: SimTime) -> (Vec<u64>, f64) {
        let ports: Vec<_> = parts.iter().map(|part| [&part.hosts.ports, &part.ports]).collect();
        lane_bytes(shared, &ports, now)
    }

    /// The traffic of links over time is not counted.
    fn take_figures(parts: &mut [Self], shared: &Shared, events: u64) -> (NetworkFigures, f64) {
        let totals = Totals {
            events,
            dropped: parts.iter().map(|part| part.dropped).sum(),
            delivered: parts.iter().map(|part| part.delivered).sum(),
        };
        let parts = parts.iter_mut();
        let counts = parts.map(|part| [&mut part.hosts.ports, &mut part.ports].map(Ports::take_counts)).collect();
        figures(shared, counts, totals)
    }
}
