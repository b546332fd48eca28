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
    HostMessages, ObservedPart, PartObserver, Parts, Run, Unsuited, WindowedRun, WindowsWanted,
};
use crate::network::{HostIndex, NetworkFigures};
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
    pub fn into_parts<O: PartObserver, M: HostMessages>(
        self,
        observer: O,
        mut messages: impl FnMut(&[HostIndex]) -> M,
        mut ends: impl FnMut(SimTime) -> Option<FlowEnds>,
    ) -> impl WindowedRun<O> {
        let link = self.link_time();
        let Self { config, topology, router, parts: Parts { count: number_of_parts, part_of, window_ps } } = self;
        let ends_in: Vec<u16> = topology.links().iter().map(|link| part_of[link.to.0 as usize]).collect();
        let begins_in = topology.links().iter().map(|link| part_of[link.from.0 as usize]).collect();
        let part_of_host: Vec<u16> =
            (0..topology.hosts()).map(|host| part_of[topology.host_node(host).0 as usize]).collect();
        let ends_in = Arc::new(ends_in);
        let mut parts = Vec::with_capacity(usize::from(number_of_parts));
        for number in 0..number_of_parts {
            let border = Border::new(Arc::clone(&ends_in), number, number_of_parts);
            let network = Ethernet::on(&config, Arc::clone(&topology), router.clone(), Some(border));
            let hosts = (0u32..).zip(&part_of_host).filter(|(_, part)| **part == number);
            let hosts: Vec<HostIndex> = hosts.map(|(host, _)| HostIndex(host)).collect();
            let messages = messages(&hosts);
            parts.push(Part::new(number, network, observer.for_part(), messages, hosts));
        }
        let shared = Shared { window_ps, part_of_host, begins_in, flows: HashMap::new(), link };
        let number_flows = move |shared: &mut Shared, until| {
            while let Some(ends) = ends(until) {
                let next = count(shared.flows.len());
                shared.flows.entry(ends).or_insert(next);
            }
        };
        Run::new(shared, parts, observer, number_flows)
    }
}

impl<O: PartObserver, M: HostMessages> Part<O, M> {
    /// What the part in which each link begins knows of it.
    fn of_links<T>(parts: &[Self], shared: &Shared, of: impl Fn(&Ethernet, u32) -> T) -> Vec<T> {
        let links = (0u32..).zip(&shared.begins_in);
        links.map(|(link, part)| of(&parts[usize::from(*part)].network, link)).collect()
    }
}

impl<O: PartObserver, M: HostMessages> ObservedPart for Part<O, M> {
    type Observer = O;

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

    fn lane_bytes(parts: &[Self], shared: &Shared, now: SimTime) -> (Vec<u64>, f64) {
        (Self::of_links(parts, shared, |network, link| network.ports[link].begun_bytes(now)), 0.0)
    }

    fn take_figures(parts: &mut [Self], shared: &Shared, events: u64) -> (NetworkFigures, f64) {
        let mut counters = [0; super::COUNTERS.len()];
        for part in parts.iter() {
            counters.iter_mut().zip(part.network.counters()).for_each(|(sum, counted)| *sum += counted);
        }
        let links = Self::of_links(parts, shared, Ethernet::link_figures);
        let figures = NetworkFigures {
            events,
            retransmissions: parts.iter().map(|part| part.network.resent).sum(),
            ..parts.first().map(|part| part.network.figures_of(links, counters)).unwrap_or_default()
        };
        (figures, 0.0)
    }
}
