//! `ethernet` in windows, on several threads: the same frames at the same picoseconds as by events alone.
//!
//! A frame that begins to cross a link is at its other end when it was sent whole, at the earliest. So parts of the network run by
//! themselves for as long as the shortest frame takes on the links between them, each with a queue of events of its own; then they
//! exchange frames, and word of the messages that hosts were handed. Events of one instant have the same order in any part as in one
//! queue of all: it goes by places, which are numbered as in the whole network.

mod part;

use super::border::{Border, FlowEnds};
use super::{Ethernet, EthernetConfig, link_time, port};
use crate::count::count;
use crate::fabric::FabricError;
use crate::fabric::packet::{HostLinksDiffer, LinkTime};
use crate::fabric::windows::{
    HostMessages, PartObserver, Parts, Threads, Unsuited, WindowProgress, WindowedRun, WindowsCost, WindowsWanted,
};
use crate::network::{HostIndex, NetworkFigures, Simulation};
use crate::routing::Router;
use crate::time::SimTime;
use crate::topology::{HostPlace, LinkId, Topology};
use part::{Part, Shared};
use std::collections::HashMap;
use std::sync::Arc;

/// A switched Ethernet, to be run in windows.
pub struct Windowed {
    config: EthernetConfig,
    topology: Arc<Topology>,
    router: Router,
    parts: Parts,
}

impl Windowed {
    /// The network of `config` for `hosts`, unless it is better run by events.
    ///
    /// # Errors
    /// As [`Ethernet::new`].
    pub fn new(
        config: &EthernetConfig,
        hosts: &[HostPlace],
        wanted: WindowsWanted,
    ) -> Result<Result<Self, Unsuited>, FabricError> {
        config.check()?;
        if wanted.threads < 2 && !wanted.always {
            return Ok(Err(Unsuited(None)));
        }
        if let Some(reason) = wanted.by_events() {
            return Ok(Err(Unsuited(Some(reason))));
        }
        let topology = config.topology.build(hosts)?;
        let wanted_parts = wanted.parts(topology.hosts() as usize);
        if wanted_parts < 2 && !wanted.always {
            return Ok(Err(Unsuited(None)));
        }
        let idle_ps = |link, bytes| port(config, &topology, topology.link(link)).idle_ps(bytes);
        // Frames one after the other may take a picosecond less.
        let alone_ps = |link| idle_ps(link, config.wire_bytes(0)).saturating_sub(1);
        let Some(parts) = Parts::new(&topology, wanted_parts, alone_ps) else {
            let reason = "a frame takes no time between its switches";
            return Ok(Err(Unsuited(Some(reason.to_owned()))));
        };
        let frame_ps =
            |link: LinkId| topology.link(link).rate.time_ps(config.wire_bytes(config.segment_bytes()).into());
        if let Some(reason) = parts.too_short(&topology, frame_ps).filter(|_| !wanted.always) {
            return Ok(Err(Unsuited(Some(reason))));
        }
        let router = Router::of(&config.routing, &topology, config.seed)?;
        Ok(Ok(Self { config: config.clone(), topology: Arc::new(topology), router, parts }))
    }

    /// How many hosts it has.
    #[must_use]
    pub fn hosts(&self) -> u32 {
        self.topology.hosts()
    }

    /// How its hosts' links and its packets are made.
    ///
    /// # Errors
    /// If the links of its hosts differ.
    pub fn link_time(&self) -> Result<LinkTime, HostLinksDiffer> {
        link_time(&self.config, &self.topology)
    }

    /// Makes its parts, each of which `observer` sees by one of its own. `messages` gives those of the hosts of each part, whose indexes
    /// it is told; `ends` the source and the destination of one message of all hosts after the other that is handed over before a
    /// time, in the order in which they are: flows are numbered by it.
    pub fn into_parts<O: PartObserver, M: HostMessages, F: FnMut(SimTime) -> Option<FlowEnds>>(
        self,
        observer: O,
        mut messages: impl FnMut(&[HostIndex]) -> M,
        ends: F,
    ) -> Windows<O, M, F> {
        let link = self.link_time();
        let Self { config, topology, router, parts: Parts { count, part_of, window_ps } } = self;
        let ends_in: Vec<u16> = topology.links().iter().map(|link| part_of[link.to.0 as usize]).collect();
        let begins_in = topology.links().iter().map(|link| part_of[link.from.0 as usize]).collect();
        let part_of_host: Vec<u16> =
            (0..topology.hosts()).map(|host| part_of[topology.host_node(host).0 as usize]).collect();
        let ends_in = Arc::new(ends_in);
        let mut parts = Vec::with_capacity(usize::from(count));
        for number in 0..count {
            let border = Border::new(Arc::clone(&ends_in), number, count);
            let network = Ethernet::on(&config, Arc::clone(&topology), router.clone(), Some(border));
            let hosts = (0u32..).zip(&part_of_host).filter(|(_, part)| **part == number);
            let hosts: Vec<HostIndex> = hosts.map(|(host, _)| HostIndex(host)).collect();
            let messages = messages(&hosts);
            parts.push(Part::new(number, network, observer.for_part(), messages, hosts));
        }
        let shared = Shared { window_ps, part_of_host, flows: HashMap::new(), link };
        Windows { shared, parts, begins_in, threads: Threads::default(), observer, ends }
    }
}

/// A run in windows.
pub struct Windows<O, M, F> {
    shared: Shared,
    parts: Vec<Part<O, M>>,
    /// The part in which each link begins.
    begins_in: Vec<u16>,
    threads: Threads,
    observer: O,
    ends: F,
}

impl<O, M, F> Windows<O, M, F> {
    /// What the part in which each link begins knows of it.
    fn of_links<T>(&self, of: impl Fn(&Ethernet, u32) -> T) -> Vec<T> {
        let links = (0u32..).zip(&self.begins_in);
        links.map(|(link, part)| of(&self.parts[usize::from(*part)].network, link)).collect()
    }
}

impl<O: PartObserver, M: HostMessages, F: FnMut(SimTime) -> Option<FlowEnds>> WindowedRun<O> for Windows<O, M, F> {
    fn run_before(&mut self, until: SimTime, look: impl FnMut(WindowProgress) -> bool) -> bool {
        while let Some(ends) = (self.ends)(until) {
            let next = count(self.shared.flows.len());
            self.shared.flows.entry(ends).or_insert(next);
        }
        self.threads.run_before(&mut self.parts, &self.shared, until, look)
    }

    fn on_threads(&mut self, threads: usize) {
        self.threads.most = threads;
    }

    fn parts(&self) -> usize {
        self.parts.len()
    }

    fn window_ps(&self) -> u64 {
        self.shared.window_ps
    }

    fn cost(&self) -> WindowsCost {
        self.threads.cost
    }

    fn events(&self) -> u64 {
        self.parts.iter().map(|part| part.network.events()).sum()
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
        self.of_links(|network, link| network.ports[link].begun_bytes(now))
    }

    fn forget_packets(&mut self) {
        self.parts.iter_mut().for_each(Part::forget_packets);
    }

    fn take_figures(&mut self) -> NetworkFigures {
        let mut counters = [0; super::COUNTERS.len()];
        for part in &self.parts {
            counters.iter_mut().zip(part.network.counters()).for_each(|(sum, counted)| *sum += counted);
        }
        let links = self.of_links(Ethernet::link_figures);
        NetworkFigures {
            events: self.events(),
            retransmissions: self.parts.iter().map(|part| part.network.resent).sum(),
            ..self.parts.first().map(|part| part.network.figures_of(links, counters)).unwrap_or_default()
        }
    }
}
