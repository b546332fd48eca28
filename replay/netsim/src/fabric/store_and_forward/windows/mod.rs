//! `store-and-forward` in windows, on several threads: the same packets at the same picoseconds as by events, and faster.
//!
//! Whatever leaves a node arrives no sooner than the shortest time of a link. So within a window of that length, what happens at
//! one port is independent of all others: the packets that arrive in it are sorted by output port, each port takes its own in
//! the order of time, and what leaves goes into a later window. Parts of the network run on threads, several on one if there are more of them than cores, and
//! exchange packets between two windows. There is no queue of events, and ties are broken by time and place alone, so that neither the number of
//! parts nor the order of work shows in a result.

mod calendar;
mod hop;
mod hosts;
mod layout;
mod part;
mod port;
mod shared;

use super::StoreAndForwardConfig;
use crate::count::count;
use crate::fabric::FabricError;
use crate::fabric::packet::{HostLinksDiffer, LinkTime, host_rate};
use crate::fabric::windows::{self, HostMessages, PartObserver, Threads, WindowProgress, WindowedRun};
use crate::network::{HostIndex, NetworkFigures};
use crate::routing::Routes;
use crate::time::SimTime;
use crate::topology::{HostPlace, LinkId, NodeId, Topology};
use part::Part;
use port::{PortCounts, Ports};
use shared::Shared;

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

    /// Makes `parts` parts of it (fewer if it is small), none of whose packets is shorter than `smallest` bytes. `messages` gives those of the
    /// hosts of each part, whose indexes it is told.
    pub fn into_parts<O: PartObserver, M: HostMessages>(
        self,
        parts: u16,
        smallest: u64,
        observer: O,
        mut messages: impl FnMut(&[HostIndex]) -> M,
    ) -> Windows<O, M> {
        let shared = Shared::new(&self.config, self.topology, self.routes, parts, smallest);
        let made = shared.layout.parts.iter().zip(0..).map(|(layout, part)| {
            let hosts: Vec<_> = layout.hosts.clone().map(|node| shared.host_of(NodeId(node))).collect();
            Part::new(&shared, part, observer.for_part(), messages(&hosts))
        });
        Windows { parts: made.collect(), threads: Threads::default(), observer, shared }
    }
}

/// A run in windows.
pub struct Windows<O, M> {
    shared: Shared,
    parts: Vec<Part<O, M>>,
    threads: Threads,
    observer: O,
}

impl<O: PartObserver, M: HostMessages> Windows<O, M> {
    /// The part in front of which a link lies, whether a host is in front of it, and the number of its port there.
    fn port(&self, id: usize) -> (usize, bool, usize) {
        let from = self.shared.topology.links()[id].from;
        let part = usize::from(self.shared.place(from).part);
        if self.shared.topology.is_host(from) {
            let first = self.shared.layout.parts[part].hosts.start;
            (part, true, (from.0 - first) as usize)
        } else {
            (part, false, self.shared.layout.ports[id] as usize)
        }
    }
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

    fn others_cpu_s(&self) -> f64 {
        self.threads.others_cpu_s
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

    fn lane_bytes(&self, now: SimTime) -> Vec<u64> {
        let begun = |id: usize| {
            let (part, of_host, number) = self.port(id);
            let part = &self.parts[part];
            if of_host { &part.hosts.ports } else { &part.ports }.begun_bytes(number, now)
        };
        (0..self.shared.topology.links().len()).map(begun).collect()
    }

    fn forget_packets(&mut self) {
        self.parts.iter_mut().for_each(Part::forget_packets);
    }

    /// The traffic of links over time is not counted.
    fn take_figures(&mut self) -> NetworkFigures {
        let counts = |part: &mut Part<O, M>| {
            [std::mem::take(&mut part.hosts.ports), std::mem::take(&mut part.ports)].map(Ports::into_counts)
        };
        let counts: Vec<[PortCounts; 2]> = self.parts.iter_mut().map(counts).collect();
        let links = (0..self.shared.topology.links().len()).map(|id| {
            let (part, of_host, number) = self.port(id);
            let link = LinkId(count(id));
            let [hosts, switches] = &counts[part];
            let rate = self.shared.topology.link(link).used_rate();
            if of_host { hosts } else { switches }.figures(number, self.shared.topology.link_name(link), rate)
        });
        NetworkFigures {
            circuits: Vec::new(),
            circuit_totals: None,
            events: self.events(),
            drops: self.parts.iter().map(|part| part.dropped).sum(),
            retransmissions: 0,
            interval_ps: 0,
            links: links.collect(),
            counters: vec![("packets delivered".to_owned(), self.parts.iter().map(|part| part.delivered).sum())],
        }
    }
}
