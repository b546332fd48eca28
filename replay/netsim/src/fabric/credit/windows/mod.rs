//! `credit` in windows, on several threads: the same packets at the same picoseconds as by events alone.
//!
//! A packet that starts on a link shows at its other end when its first flit has arrived; a credit shows at the sender when a first flit
//! has left, and word of it has come back. So parts of a network run by themselves for the least such time of
//! the links between them, each with a queue of events of its own; then they exchange packets and credits. What happens in one
//! instant comes to the same in any order, so that neither the number of parts nor that of threads shows in a result.

mod part;

use super::config::CreditConfig;
use super::link_numbers::{Cut, LinkNumbers};
use super::link_timing::LinkTimings;
use super::{BufferPolicy, ConfiguredBuffers, Credit, link_time};
use crate::count::count;
use crate::fabric::FabricError;
use crate::fabric::packet::{HostLinksDiffer, LinkTime};
use crate::fabric::windows::{
    HostMessages, ObservedPart, PartObserver, Parts, Run, Unsuited, WindowedRun, WindowsWanted,
};
use crate::network::{HostIndex, LinkFigures, NetworkFigures};
use crate::routing::{BubbleAt, BubbleConfig, Routes, RoutingConfig};
use crate::time::SimTime;
use crate::topology::{HostPlace, LinkId, Topology};
use part::{Part, Shared};
use std::sync::Arc;

/// A network of InfiniBand, to be run in windows.
pub struct Windowed {
    config: CreditConfig,
    topology: Arc<Topology>,
    routes: Arc<Routes>,
    timings: LinkTimings,
    parts: Parts,
}

impl Windowed {
    /// The network of `config` for `hosts`, unless it is better run by events.
    ///
    /// # Errors
    /// As [`Credit::new`].
    pub fn new(
        config: &CreditConfig,
        hosts: &[HostPlace],
        wanted: WindowsWanted,
    ) -> Result<Result<Self, Unsuited>, FabricError> {
        let config = config.checked()?;
        if wanted.threads < 2 && !wanted.always {
            return Ok(Err(Unsuited(None)));
        }
        if let Some(reason) = wanted.by_events().or_else(|| by_events(&config)) {
            return Ok(Err(Unsuited(Some(reason))));
        }
        let mut topology = config.topology.build(hosts)?;
        config.set_rates(&mut topology)?;
        let timings = config.timings(&topology)?;
        let wanted_parts = wanted.parts(topology.hosts() as usize);
        if wanted_parts < 2 && !wanted.always {
            return Ok(Err(Unsuited(None)));
        }
        let Some(parts) = Parts::new(&topology, wanted_parts, |link| alone_ps(&timings, link)) else {
            return Ok(Err(Unsuited(None)));
        };
        let flits = u32::try_from(config.largest_flits()).unwrap_or(u32::MAX);
        let packet_ps = |link| timings.get(link).time(flits, 0).ps();
        if let Some(reason) = parts.too_short(&topology, packet_ps).filter(|_| !wanted.always) {
            return Ok(Err(Unsuited(Some(reason))));
        }
        let routes = Routes::new(&config.routing, &topology, config.seed)?;
        config.check_routes(&routes, ConfiguredBuffers::new(&config).min(), &topology)?;
        let (topology, routes) = (Arc::new(topology), Arc::new(routes));
        Ok(Ok(Self { config, topology, routes, timings, parts }))
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
        link_time(&self.topology, self.config.flit, self.config.mtu, self.config.headers)
    }

    /// Makes its parts, each of which `observer` sees by one of its own. `messages` gives those of the hosts of each part, whose indexes
    /// it is told.
    ///
    /// # Errors
    /// When a value makes no sense that only a network shows.
    pub fn into_parts<O: PartObserver, M: HostMessages>(
        self,
        observer: O,
        mut messages: impl FnMut(&[HostIndex]) -> M,
    ) -> Result<impl WindowedRun<O>, FabricError> {
        let Self { config, topology, routes, timings, parts: Parts { count, part_of, window_ps } } = self;
        let cut = Arc::new(Cut::new(&topology, part_of, count));
        let mut hosts: Vec<Vec<HostIndex>> = vec![Vec::new(); usize::from(count)];
        for host in 0..topology.hosts() {
            hosts[usize::from(cut.part(topology.host_node(host)))].push(HostIndex(host));
        }
        let mut parts = Vec::with_capacity(hosts.len());
        for (number, hosts) in (0..count).zip(hosts) {
            let links = LinkNumbers::of_part(&topology, &cut, number);
            let timings = timings.of(links.all().map(|(_, link)| link));
            let strategies = (config.input_arbitration, ConfiguredBuffers::new(&config), config.allocation);
            let network = (Arc::clone(&topology), Arc::clone(&routes));
            let network = Credit::of_links(&config, network, timings, links, strategies, observer.for_part())?;
            let messages = messages(&hosts);
            parts.push(Part::new(number, network, messages, hosts));
        }
        let shared = Shared { topology, cut, window_ps };
        Ok(Run::new(shared, parts, observer, |_, _| {}))
    }
}

/// How long what the beginning of a link does does not show at its end, and the other way round.
fn alone_ps(timings: &LinkTimings, link: LinkId) -> u64 {
    // A credit is free at the earliest when a flit has left, by the fastest of all links: small packets have no more.
    let credit = timings.timings.iter().map(|timing| timing.first(0).ps()).min().unwrap_or(0);
    let timing = timings.get(link);
    let packet = timing.first(0).ps().saturating_add(timing.delay.ps());
    packet.min(credit.saturating_add(timing.back.ps())).max(1)
}

/// Why a network of `config` is run by events only, if it is.
fn by_events(config: &CreditConfig) -> Option<String> {
    if let RoutingConfig::BubbleVls(BubbleConfig { bubble_at: BubbleAt::Here, .. }) = config.routing {
        let reason =
            "with bubble_at = \"here\" a switch reads at each instant what the one before it in the ring knows";
        return Some(reason.to_owned());
    }
    let compares_flits = matches!(config.routing, RoutingConfig::BubbleVls(bubble) if bubble.compares_flits());
    let keys = [
        ("routing.room", compares_flits),
        ("injection", config.injection.is_some()),
        ("injection_reserve", config.injection_reserve > 0),
        ("transit_priority", config.transit_priority > 0.0),
    ];
    let (key, _) = keys.into_iter().find(|(_, is_set)| *is_set)?;
    Some(format!("{key} is simulated by events only"))
}

impl<O: PartObserver, M: HostMessages> ObservedPart for Part<O, M> {
    type Observer = O;

    fn observer(&self) -> &O {
        &self.network.observer
    }

    fn observer_mut(&mut self) -> &mut O {
        &mut self.network.observer
    }

    fn into_observer(self) -> O {
        self.network.observer
    }

    fn forget_packets(&mut self) {
        Self::forget_packets(self);
    }

    fn lanes(parts: &[Self]) -> u32 {
        parts.first().map_or(1, |part| part.network.vls)
    }

    fn lane_bytes(parts: &[Self], shared: &Shared, _now: SimTime) -> (Vec<u64>, f64) {
        let lanes = Self::lanes(parts) as usize;
        let of_parts: Vec<Vec<u64>> = parts.iter().map(|part| part.network.lanes.bytes()).collect();
        let mut bytes = Vec::with_capacity(shared.topology.links().len() * lanes);
        for (id, link) in shared.topology.links().iter().enumerate() {
            let part = usize::from(shared.cut.part(link.from));
            let place = usize::from(shared.cut.output(LinkId(count(id)))) * lanes;
            bytes.extend_from_slice(&of_parts[part][place..place + lanes]);
        }
        (bytes, 0.0)
    }

    fn take_figures(parts: &mut [Self], shared: &Shared, events: u64) -> (NetworkFigures, f64) {
        let Shared { topology, cut, .. } = shared;
        let figures = |(id, link): (usize, crate::topology::Link)| -> LinkFigures {
            let global = LinkId(count(id));
            let [sender, receiver] = [link.from, link.to].map(|node| &parts[usize::from(cut.part(node))].network);
            sender.link_figures(cut.output(global), global, receiver.most_held(cut.input(global)))
        };
        let interval_ps = parts.first().map_or(0, |part| part.network.interval.ps());
        let delivered = parts.iter().map(|part| part.network.delivered).sum();
        let figures = NetworkFigures {
            events,
            interval_ps,
            links: topology.links().iter().enumerate().map(figures).collect(),
            counters: vec![("packets delivered".to_owned(), delivered)],
            ..NetworkFigures::default()
        };
        (figures, 0.0)
    }
}
