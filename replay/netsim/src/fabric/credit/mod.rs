//! `credit`: InfiniBand. Virtual cut-through, virtual lanes, credits; defined in `docs/fabric.md`.
//!
//! An event exists only where something is decided: a packet is at the head of its queue and ready, a link may take the
//! next packet, a packet is delivered. Flits have no events; credits come back by schedule (`lanes`). Whatever
//! happens in one instant is seen before anything is arbitrated: arrivals only note which links have to look.

mod ahead;
mod allocation;
mod allocator;
mod arbiter;
mod arbitration;
mod border;
mod buffer_policy;
mod buffers;
mod check;
mod choice;
mod choosers;
mod clocked;
mod config;
mod crossing;
mod cycles;
mod flit_counts;
mod hosts;
mod injection;
mod injectors;
mod input_arbiter;
mod kind;
mod lane_asks;
mod lane_grants;
mod lanes;
mod link_numbers;
mod link_timing;
mod most_room;
mod packet;
mod pending;
mod read_ahead;
mod receiving;
mod returns;
mod sending;
mod strategies;
mod switches;
mod traffic;
mod undecided;
pub mod windows;

pub use allocator::{AllocationOrder, Allocator, LinkByLink, Request, Requests, SeparableConfig};
pub use buffer_policy::{BufferPolicy, ConfiguredBuffers, SharedBuffers, StaticBuffers};
pub use config::{
    Consumption, CreditConfig, InjectionChoice, InjectionConfig, InjectionDirection, InjectionEquals, InjectionLength,
    InjectionRecord, LaneAllocation, SharedBuffersConfig, Speed, Start, VlArbitration, VlWeight,
};

pub use input_arbiter::{Age, Contender, Contest, Fifo, InputArbiter, InputArbitration, Longest, Random, RoundRobin};
pub use strategies::{Configured, Strategies};

use super::FabricError;
use super::figures::LinkMeter;
use super::hop_log::HopLog;
use super::hop_records::{HopRecords, LogWanted};
use super::ids::{LaneId, PacketId};
use super::messages::Messages;
use super::occupancy::Occupancy;
use super::packet::{HostLinksDiffer, LinkTime, Message, Observer, PacketFabric, host_rate};
use super::slab::Slab;
use crate::count::count;
use crate::csr::Csr;
use crate::network::{Delivery, HostIndex, LinkFigures, NetworkFigures, Simulation};
use crate::routing::{Lane, Ranks, Routes};
use crate::time::SimTime;
use crate::topology::{HostPlace, LinkId, NodeId, Topology};
use crate::units::{Bytes, DurationPs};
use ahead::{AHEAD, MIN_LANES};
use arbiter::{Tables, Turns};
use border::Border;
use choosers::Choosers;
use clocked::Clocked;
use injectors::Injectors;
use lane_asks::Grants;
use lanes::{Lanes, Numbering};
use link_numbers::LinkNumbers;
use link_timing::LinkTimings;
use packet::Packet;
use pending::PendingEvents;
use std::sync::Arc;
use switches::Switches;
use traffic::Traffic;
use typed_index_collections::TiVec;
use undecided::Undecided;

/// What a packet or a link waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The head of a queue goes on: it chooses a link.
    Head(LaneId),
    /// The same, at the instant at which the link is free that the packet before took: it looks, too.
    HeadAndLink(LaneId),
    /// The head of a queue has chosen, and is ready.
    Ask(LaneId),
    /// A link may take a packet: it is free, or credits have come.
    Link(LinkId),
    /// A packet has arrived at its host.
    Deliver(PacketId),
    /// A switch may allocate: an input is free, or its next cycle begins.
    Switch(NodeId),
}

/// Of a link whose lanes have its masks.
const NO_MASKS: u32 = u32::MAX;

/// Of a link that begins and ends in one part of the network.
const HERE: u16 = u16::MAX;

/// One direction of a cable, as its sender uses it. It fits into one line of a cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct OutputLink {
    free_at: SimTime,
    remainder: u64,
    /// The earliest event that is on the way for this link.
    wake: SimTime,
    turns: Turns,
    /// The node where it ends.
    to: NodeId,
    /// Its own number among the links that end there.
    slot: u32,
    /// Where the links that end at its sender begin in `inputs`; if that is a host, its node.
    inputs: u32,
    /// Where its masks begin, one for each VL; [`NO_MASKS`] if its lanes have them.
    masks: u32,
    /// Words of a mask of its sender's queues (those of one class group).
    words: u16,
    /// VLs for which a packet has chosen this link and is ready.
    asking: u16,
    /// Whether it is in the list of links that have to look.
    listed: bool,
    from_host: bool,
    to_host: bool,
    /// Whether it takes a packet of each queue at a time: that to a host with `consumption = "multiple"`, which needs no credits, and that
    /// of a host with several queues.
    parallel: bool,
    /// The part of the network where it ends, if that is another one than where it begins; else [`HERE`].
    to_part: u16,
}

/// A network of InfiniBand.
pub struct Credit<O, S: Strategies = Configured> {
    observer: O,
    topology: Arc<Topology>,
    routes: Arc<Routes>,
    /// How its links are numbered here.
    link_numbers: LinkNumbers,
    /// What other parts of the network get, if it is one of several.
    border: Option<Box<Border>>,
    adaptive: bool,
    /// Whether a packet's one lane depends on the packet.
    by_packet: bool,
    /// Classes of virtual lanes on the link of a host.
    classes_at_hosts: u32,
    /// Heads that wait for room, where the routing has them commit themselves to room only.
    undecided: Option<Undecided>,
    /// What the head that chooses may take: filled anew for each.
    ranks: Ranks,
    seed: u64,
    classes: u32,
    /// Queues of an input that may ask for one VL of a link: the classes of its service level's lanes, or all.
    stride: u32,
    /// Lanes of a link.
    vls: u32,
    number: Numbering,
    flit: u64,
    mtu: Bytes,
    headers: Bytes,
    sizes: Sizes,
    switch_delay: DurationPs,
    packet_gap: DurationPs,
    whole: bool,
    interval: DurationPs,
    /// The VL of class 0 of each service level.
    bases: [u8; 16],
    tables: Tables,
    input_arbiter: S::Inputs,
    allocator: S::Allocator,
    /// The share of arbitrations in which heads from other switches go first.
    transit_priority: f64,
    /// Credits that a packet from a host leaves free in a lane that is not the escape's.
    injection_reserve: u32,
    /// The queues of hosts, if they have several.
    injectors: Option<Injectors>,
    /// What switches know that allocate, if they do.
    switches: Option<Switches>,
    links: TiVec<LinkId, OutputLink>,
    /// The links that end at each switch, in order.
    inputs: Vec<LinkId>,
    /// Which queues ask, for each link and VL of switches with so many inputs that a lane has no room for that.
    masks: Vec<u64>,
    lanes: Lanes<S::Buffers>,
    packets: Slab<PacketId, Packet>,
    messages: Messages,
    events: PendingEvents<Event>,
    /// The instant whose arrivals have been seen, while choices and arbitrations are still to be made.
    open: Option<SimTime>,
    choosing: Vec<LaneId>,
    /// The same, put in order, and the lanes that one finds: nothing between two instants.
    choosers: Choosers,
    found: Vec<Lane>,
    grants: Grants,
    looking: Vec<LinkId>,
    /// Whether it is so large that what an instant looks at is read ahead.
    reads_ahead: bool,
    traffic: TiVec<LinkId, Traffic>,
    meters: TiVec<LinkId, LinkMeter>,
    delivered: u64,
    /// Whether hosts lose the first packet of a queue where none may start.
    loses_heads: bool,
    /// What lies in its queues, by lane, if that is counted.
    occupancy: Option<Box<Occupancy>>,
    /// The ways of packets, if they are logged.
    log: Option<Box<HopLog>>,
    /// What it knows of lanes, queues and links, if it runs in cycles: nothing of that is in `lanes`, `links` and `events` then.
    clocked: Option<Box<Clocked>>,
    /// Events at which a link or a switch looked: how many there are depends on the order within an instant, which is nobody's business.
    looks: u64,
    /// Credits of a VL's buffer, or of all of a link where they share it.
    room: u32,
    /// Credits of all VLs of a link together.
    link_credits: u64,
}

impl<O: Observer> Credit<O> {
    /// The network of `config` for `hosts`; `observer` sees its packets.
    ///
    /// # Errors
    /// When the hosts do not fit into the topology, or a value makes no sense.
    pub fn new(config: &CreditConfig, hosts: &[HostPlace], observer: O) -> Result<Self, FabricError> {
        let config = &config.checked()?;
        let topology = config.topology.build(hosts)?;
        let routes = Routes::new(&config.routing, &topology, config.seed)?;
        Self::on(config, topology, routes, observer)
    }

    /// The network of `config` on a topology and a routing that were made elsewhere, in place of its own.
    ///
    /// # Errors
    /// When a value makes no sense, or the routing can deadlock.
    pub fn on(config: &CreditConfig, topology: Topology, routes: Routes, observer: O) -> Result<Self, FabricError> {
        let checked = config.checked()?;
        let strategies = (checked.input_arbitration, ConfiguredBuffers::new(&checked), checked.allocation);
        Self::with(config, topology, routes, strategies, observer)
    }
}

impl<O: Observer, S: Strategies> Credit<O, S> {
    /// The network of `config` on a topology and a routing that were made elsewhere, put together from `strategies` in place of
    /// those that it names.
    ///
    /// # Errors
    /// When a value makes no sense, or the routing can deadlock.
    pub fn with(
        config: &CreditConfig,
        mut topology: Topology,
        routes: Routes,
        strategies: (S::Inputs, S::Buffers, S::Allocator),
        observer: O,
    ) -> Result<Self, FabricError> {
        let config = &config.checked()?;
        config.set_rates(&mut topology)?;
        config.check_routes(&routes, strategies.1.min(), &topology)?;
        let timings = config.timings(&topology)?;
        let numbers = LinkNumbers::whole(topology.links().len());
        Self::of_links(config, (Arc::new(topology), Arc::new(routes)), timings, numbers, strategies, observer)
    }

    /// The part of a network that has the links of `numbers`, whose times are `timings`, all of which was checked.
    fn of_links(
        config: &CreditConfig,
        (topology, routes): (Arc<Topology>, Arc<Routes>),
        timings: LinkTimings,
        numbers: LinkNumbers,
        strategies: (S::Inputs, S::Buffers, S::Allocator),
        observer: O,
    ) -> Result<Self, FabricError> {
        let (input_arbiter, buffers, allocator) = strategies;
        let classes = routes.classes();
        let tables = Tables::new(&config.arbitration, config.vls);
        let bases = config.bases(classes)?;
        let sizes = Sizes::new(config.mtu.get() + config.headers.get(), config.flit.get());
        let vls = config.lanes_of_a_link();
        let number = Numbering::new(vls);
        config.check_directions(routes.directions(), classes, routes.classes_at_hosts())?;
        // Queues of a switch's input that may ask for one VL of a link.
        let stride = if config.injection.is_some() { vls } else { u32::from(classes) };

        // The links that end at each node, in order.
        let ends = numbers.all().map(|(id, global)| (id, topology.link(global)));
        let ends = ends.filter(|(_, link)| !link.absent).map(|(id, link)| (link.to.0 as usize, id));
        let inputs = Csr::grouped(topology.nodes() as usize, ends);
        let mut slots = vec![0; numbers.count()];
        for node in 0..topology.nodes() as usize {
            (0..).zip(inputs.row(node)).for_each(|(slot, link)| slots[usize::from(*link)] = slot);
        }

        let mut words = 0u32;
        let mut links: TiVec<LinkId, OutputLink> = TiVec::with_capacity(numbers.count());
        for (id, global) in numbers.all() {
            let link = topology.link(global);
            let from = link.from.0 as usize;
            let from_host = link.from.0 < topology.hosts();
            let asking = if from_host { 1 } else { count(inputs.row(from).len()) * stride };
            if asking > u16::MAX.into() {
                let value = format!("{asking} queues for a link of {}", topology.name(link.from));
                return Err(FabricError::Value {
                    key: "topology",
                    value,
                    allowed: "switches with at most 65535 queues",
                });
            }
            let own = if numbers.begins_here(&topology, global) { asking.div_ceil(64).max(1) } else { 1 };
            links.push(OutputLink {
                free_at: SimTime::ZERO,
                remainder: 0,
                wake: SimTime::MAX,
                asking: 0,
                listed: false,
                from_host,
                to_host: link.to.0 < topology.hosts(),
                parallel: match from_host {
                    true => config.injection.is_some(),
                    false => config.consumption == Consumption::Multiple && link.to.0 < topology.hosts(),
                },
                to: link.to,
                words: u16::try_from(own).unwrap_or(u16::MAX),
                masks: if own > 1 { words } else { NO_MASKS },
                inputs: if from_host { link.from.0 } else { inputs.begin(from) },
                slot: slots[usize::from(id)],
                to_part: numbers.part_of_end(&topology, global).unwrap_or(HERE),
                turns: tables.start(),
            });
            if own > 1 {
                words += own * vls;
            }
        }
        let adaptive = routes.chooses_by_room();
        let undecided =
            routes.commits_to_room().then(|| Undecided::new(numbers.count(), number.count(numbers.count())));
        config.check_injection(undecided.is_some() && routes.escape_classes() > 0, buffers.min())?;
        let horizon = config.horizon(&timings);
        let counts_flits =
            routes.compares_flits() || config.injection.is_some_and(|injection| injection.counts_switch());
        let mut lanes = Lanes::new(timings, number, config, (adaptive, counts_flits), buffers);
        for (id, _) in links.iter_enumerated().filter(|(_, link)| link.parallel && link.to_host) {
            lanes.unlimit(id);
        }
        for (id, _) in numbers.all().filter(|(_, global)| !numbers.begins_here(&topology, *global)) {
            lanes.begin_elsewhere(id);
        }
        let injectors = config.injection.map(|injection| Injectors::new(injection, number, topology.hosts()));
        let switches = allocator.cycle().map(|cycle| Switches::new(cycle, topology.nodes() as usize, links.len()));
        Ok(Self {
            observer,
            by_packet: routes.looks_at_packets(),
            classes_at_hosts: routes.classes_at_hosts().into(),
            routes,
            border: numbers.parts().map(|parts| Box::new(Border::new(parts))),
            link_numbers: numbers,
            adaptive,
            undecided,
            ranks: Ranks::default(),
            seed: config.seed,
            classes: u32::from(classes),
            stride,
            vls,
            number,
            flit: config.flit.get(),
            mtu: config.mtu,
            headers: config.headers,
            sizes,
            switch_delay: config.switch_delay,
            packet_gap: config.packet_gap,
            whole: config.start == Start::WholePacket,
            interval: config.interval,
            bases,
            tables,
            input_arbiter,
            allocator,
            injectors,
            transit_priority: config.transit_priority,
            injection_reserve: config.injection_reserve.saturating_mul(sizes.largest.1.into()),
            switches,
            inputs: inputs.items().to_vec(),
            masks: vec![0; words as usize],
            lanes,
            packets: Slab::default(),
            messages: Messages::new(
                topology.hosts(),
                number.count(topology.hosts() as usize),
                config.mtu,
                config.headers,
            ),
            events: PendingEvents::new(horizon),
            open: None,
            choosing: Vec::new(),
            choosers: Choosers::default(),
            found: Vec::new(),
            grants: Grants::default(),
            looking: Vec::new(),
            reads_ahead: number.count(links.len()) >= MIN_LANES,
            traffic: vec![Traffic::default(); links.len()].into(),
            meters: vec![LinkMeter::default(); links.len()].into(),
            delivered: 0,
            loses_heads: false,
            occupancy: None,
            log: None,
            clocked: None,
            looks: 0,
            room: config.shared_buffers.map_or(config.credits, |shared| shared.size),
            link_credits: match config.shared_buffers {
                Some(shared) => shared.size.into(),
                None => u64::from(config.credits) * u64::from(config.vls),
            },
            links,
            topology,
        })
    }

    /// What it is built of.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Whether it runs in cycles, as it was told that it can ([`PacketFabric::expect_whole_cycles`]).
    #[must_use]
    pub const fn runs_in_cycles(&self) -> bool {
        self.clocked.is_some()
    }

    /// Works off the arrivals of the next instant, if it is not later than `until`. Returns it.
    fn arrivals(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> Option<SimTime> {
        if self.clocked.is_some() {
            return self.arrivals_of_cycle(until, deliveries);
        }
        let at = match self.open {
            Some(at) => at,
            None => self.events.next_time()?,
        };
        if at > until {
            return None;
        }
        let mut events = 0usize;
        while let Some(event) = self.events.pop(at) {
            if self.reads_ahead && events.is_multiple_of(AHEAD) {
                self.read_events();
            }
            events += 1;
            if let Event::HeadAndLink(queue) = event {
                let link = self.number.link(self.lanes.ends[queue].buffer.chosen);
                self.woken(link, at);
            }
            match event {
                Event::Head(queue) | Event::HeadAndLink(queue) => self.head(queue, at),
                Event::Ask(queue) => self.ask(queue, at),
                Event::Link(link) => {
                    self.looks += 1;
                    self.woken(link, at);
                }
                Event::Deliver(packet) => self.deliver(packet, at, deliveries),
                Event::Switch(switch) => {
                    self.looks += 1;
                    self.switch_woken(switch, at);
                }
            }
        }
        let looks = !self.looking.is_empty() || self.switches.as_ref().is_some_and(Switches::look);
        self.open = (looks || !self.choosing.is_empty()).then_some(at);
        Some(at)
    }

    /// Makes the choices and arbitrations of the instant whose arrivals have been seen.
    fn decide(&mut self) {
        let Some(at) = self.open.take() else { return };
        if self.clocked.is_some() {
            return self.decide_cycle(at);
        }
        if !self.choosing.is_empty() {
            self.choose_all(at);
        }
        let mut looking = std::mem::take(&mut self.looking);
        if self.reads_ahead {
            // Those of a switch one behind the other.
            looking.sort_unstable();
        }
        for links in looking.chunks(AHEAD) {
            if self.reads_ahead {
                self.read_links(links);
            }
            for link in links {
                self.look_at(*link, at);
            }
        }
        looking.clear();
        self.looking = looking;
        self.allocate_all(at);
    }

    /// `link` takes a packet, or its switch allocates.
    #[inline(always)]
    fn look_at(&mut self, link: LinkId, at: SimTime) {
        let state = &mut self.links[link];
        state.listed = false;
        match &mut self.switches {
            Some(switches) if !state.from_host => {
                switches.look_at(self.topology.link(self.link_numbers.global(link)).from);
            }
            _ => self.arbitrate(link, at),
        }
    }

    /// The most credits that the packets of a VL held at the end of `link`: no more than there are, though a packet that leaves counts whole.
    fn most_held(&self, link: LinkId) -> u32 {
        let of_vl = |vl: u32| match &self.clocked {
            Some(clocked) => clocked.held_most(link, vl),
            None => self.lanes.ends[self.number.lane(link, vl)].buffer.held_most,
        };
        let held = (0..self.vls).map(of_vl).max().unwrap_or(0);
        let is_unlimited = self.links[link].parallel && self.links[link].to_host;
        if is_unlimited { held } else { held.min(self.room) }
    }

    /// The figures of `link`, whose number in the whole network is `global`; `most_held` is what the packets of a VL held at its end.
    fn link_figures(&self, link: LinkId, global: LinkId, most_held: u32) -> LinkFigures {
        let mut meter = self.meters[link].clone();
        let traffic = self.clocked.as_ref().map_or(self.traffic[link], |clocked| clocked.traffic(link));
        traffic.put_into(&mut meter, self.interval);
        let rate = self.topology.link(global).used_rate();
        let figures = meter.figures(&self.topology.link_name(global), rate);
        LinkFigures { queue_max_bytes: u64::from(most_held) * lanes::CREDIT, ..figures }
    }

    /// Forgets what is on the way, which is most of the memory. What was counted stays; nothing can happen after it.
    fn forget_packets(&mut self) {
        self.packets = Slab::default();
        self.messages = Messages::new(0, 0, self.mtu, self.headers);
        self.events.forget();
    }

    /// Has `link` look for a packet to start, once all arrivals of the instant are seen.
    fn look(&mut self, link: LinkId) {
        let state = &mut self.links[link];
        if !state.listed {
            state.listed = true;
            self.looking.push(link);
        }
    }

    /// The event for which `link` waited, unless it has found out since that it should wait for another one.
    fn woken(&mut self, link: LinkId, at: SimTime) {
        let state = &mut self.links[link];
        if state.wake == at {
            state.wake = SimTime::MAX;
            self.look(link);
            if self.undecided.as_ref().is_some_and(|undecided| undecided.any(link)) {
                self.look_again(link, at);
            }
        }
    }
}

impl<O: Observer, S: Strategies> Simulation for Credit<O, S> {
    fn hosts(&self) -> u32 {
        self.topology.hosts()
    }

    fn next_event(&self) -> Option<SimTime> {
        self.open.or_else(|| match &self.clocked {
            Some(clocked) => clocked.next_time(),
            None => self.events.next_time(),
        })
    }

    fn run_before(&mut self, until: SimTime) {
        let Some(last) = until.0.checked_sub(1) else { return };
        let mut deliveries = Vec::new();
        while self.arrivals(SimTime(last), &mut deliveries).is_some() {
            self.decide();
            deliveries.clear();
        }
    }

    fn advance(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> SimTime {
        let before = deliveries.len();
        while let Some(at) = self.arrivals(until, deliveries) {
            if deliveries.len() > before {
                deliveries[before..].sort_by_key(|delivery| delivery.token.0);
                return at;
            }
            self.decide();
        }
        until
    }

    fn events(&self) -> u64 {
        self.clocked.as_ref().map_or_else(|| self.events.processed() - self.looks, |clocked| clocked.events)
    }

    fn figures(&self) -> NetworkFigures {
        let links = self.link_numbers.all().map(|(id, global)| self.link_figures(id, global, self.most_held(id)));
        let links = links.collect();
        NetworkFigures {
            circuits: Vec::new(),
            events: self.events(),
            interval_ps: self.interval.ps(),
            links,
            counters: vec![("packets delivered".to_owned(), self.delivered)],
            ..NetworkFigures::default()
        }
    }
}

impl<O: Observer, S: Strategies> PacketFabric<O> for Credit<O, S> {
    fn send(&mut self, now: SimTime, message: &Message) {
        if self.open.is_some_and(|open| open < now) {
            self.decide();
        }
        let node = self.topology.host_node(message.source.0);
        let Some(link) = self.topology.out(node).first().map(|link| self.link_numbers.output(*link)) else { return };
        let vl = match &self.injectors {
            None => self.bases[usize::from(message.level.0 & 15)],
            Some(_) => self.injector_of(message, now),
        };
        let queue = self.number.queue(node, vl.into());
        self.enqueued(queue, message.bytes);
        if self.messages.hand_over(now, message, queue) {
            self.open = Some(now);
            if let Some(clocked) = &mut self.clocked {
                return clocked.host_asks(link, vl, clocked.cycle(now));
            }
            let state = &mut self.links[link];
            state.asking |= 1 << vl;
            self.lanes.ends[self.number.lane(link, vl.into())].sender.mask = 1;
            self.look(link);
        }
    }

    fn expect_whole_cycles(&mut self) {
        self.begin_cycles();
    }

    fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    fn link_time(&self) -> Result<LinkTime, HostLinksDiffer> {
        link_time(&self.topology, Bytes(self.flit), self.mtu, self.headers)
    }

    fn waits_more_than(&self, host: HostIndex, most: u64) -> Option<bool> {
        let node = self.topology.host_node(host.0);
        let queues = (0..self.vls).map(|vl| self.number.queue(node, vl));
        let mut waiting = 0u64;
        for queue in queues {
            waiting = waiting.saturating_add(self.messages.waiting(queue));
        }
        Some(waiting > most)
    }

    fn is_full(&self, message: &Message, most: u64, in_any: bool) -> Option<bool> {
        match self.injectors {
            None => self.waits_more_than(message.source, most),
            Some(_) => Some(self.injector_is_full(message, most, in_any)),
        }
    }

    fn occupancy(&self) -> Option<(u64, u64)> {
        let begun = self.messages.begun();
        let between = self.topology.links().iter().zip(&self.links);
        let between = between.filter(|(link, state)| !link.absent && !state.from_host && !state.to_host).count();
        let largest = u64::from(self.sizes.largest.1).max(1);
        Some((begun - self.delivered, between as u64 * self.link_credits / largest))
    }

    fn lose_blocked_heads(&mut self) -> bool {
        // Several queues of a host are taken from side by side.
        self.loses_heads = self.injectors.is_none();
        self.loses_heads
    }

    fn count_occupancy(&mut self) -> bool {
        self.occupancy = Some(Box::new(Occupancy::new(self.lanes.ends.len())));
        true
    }

    fn occupancy_times(&self, now: SimTime) -> Vec<Vec<u64>> {
        let Some(occupancy) = &self.occupancy else { return Vec::new() };
        let mut times = occupancy.times(now.0);
        let lanes = (0..self.links.len()).flat_map(|link| self.number.all(LinkId::from(link), self.vls));
        lanes.map(|lane| std::mem::take(&mut times[usize::from(lane)])).collect()
    }

    fn log_hops(&mut self, wanted: &LogWanted) -> bool {
        self.log = Some(Box::new(HopLog::new(wanted.clone())));
        true
    }

    fn take_hop_log(&mut self, end: SimTime) -> Option<HopRecords> {
        Some(self.log.take()?.finish(&self.topology, end))
    }

    fn lanes(&self) -> u32 {
        self.vls
    }

    fn lane_bytes(&self, _now: SimTime) -> Vec<u64> {
        match &self.clocked {
            Some(clocked) => clocked.flits(self.vls).map(|flits| flits * self.flit).collect(),
            None => self.lanes.bytes(),
        }
    }
}

/// How links of hosts and packets are made.
fn link_time(topology: &Topology, flit: Bytes, mtu: Bytes, headers: Bytes) -> Result<LinkTime, HostLinksDiffer> {
    Ok(LinkTime { whole_flits: true, ..LinkTime::new(host_rate(topology)?, flit, mtu, headers) })
}

/// Flits and credits of packets.
#[derive(Clone, Copy)]
struct Sizes {
    flit: u64,
    largest_bytes: u64,
    largest: (u16, u16),
}

impl Sizes {
    /// For packets of `largest` bytes at most.
    fn new(largest: u64, flit: u64) -> Self {
        let sizes = Self { flit, largest_bytes: 0, largest: (0, 0) };
        Self { largest_bytes: largest, largest: sizes.reckoned(largest), ..sizes }
    }

    /// Those of a packet of `bytes`, which mostly is one of the largest: dividing takes long.
    #[inline]
    fn of(&self, bytes: u32) -> (u16, u16) {
        if u64::from(bytes) == self.largest_bytes { self.largest } else { self.reckoned(bytes.into()) }
    }

    fn reckoned(&self, bytes: u64) -> (u16, u16) {
        let flits = bytes.div_ceil(self.flit);
        let credits = (flits * self.flit).div_ceil(lanes::CREDIT);
        let number = |n: u64| u16::try_from(n).unwrap_or(u16::MAX);
        (number(flits), number(credits))
    }
}
