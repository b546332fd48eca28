//! `input-queued`: routers with queues and virtual channels at their inputs, as `BookSim2`'s `iq_router` has them; defined in
//! `docs/input-queued.md`.
//!
//! They are clocked, and flits move one by one. In each cycle first all arrivals are seen; then hosts send (`hosts`) and switches with flits
//! work (`router`), each by what there was when the cycle began, so that their order does not matter: whatever passes between them takes a
//! cycle at least. A switch looks only at what can go on: heads for which a VC may be free, first flits with a credit. Who waits for a VC or a credit is
//! told when it comes (`arrivals`); flits behind others, and credits that nobody waits for, just lie there (`links`).

mod arrivals;
mod config;
mod crossbar;
mod hosts;
mod layout;
mod links;
mod plain;
mod requests;
mod router;
mod slot;
mod state;
mod vcs;

pub use super::clocked::separable::{Arbiter, Order, SeparableAllocator};
pub use config::{FlowControl, InputQueuedConfig, PipelineLatencies};

use super::FabricError;
use super::clocked::calendar::Calendar;
use super::clocked::matching::{Matcher, Request};
use super::clocked::network::{ClockedNetwork, Parts};
use super::clocked::packet::Packet;
use super::clocked::ports::{NONE, Ports};
use super::clocked::ways::Ways;
use super::clocked::{clock, delays};
use super::cycle::Cycle;
use super::figures::LinkMeter;
use super::hop_log::HopLog;
use super::ids::PacketId;
use super::messages::Messages;
use super::occupancy::Occupancy;
use super::packet::{LinkTime, Message, Observer};
use super::slab::Slab;
use crate::count::count;
use crate::network::Delivery;
use crate::routing::Routes;
use crate::time::SimTime;
use crate::topology::{HostPlace, LinkId, NodeId, Topology};
use layout::{ahead, first_vcs, links, output_vcs, switches};
use requests::{COPIED_AT_ONCE, CrossbarRequests, MAX_PORTS_OF_SWITCH};
use slot::{RENEWED_EVERY, Slot};
use state::{ActiveInputs, Crossbar, Crossing, Host, Input, InputVc, Offer, Output, OutputVc, PortVc, Switch};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use typed_index_collections::TiVec;

/// Bytes of a cache line, and places for flits there.
const CACHE_LINE: usize = 64;
const SLOTS_OF_LINE: usize = CACHE_LINE / size_of::<Slot>();

/// A network of input-queued routers.
pub struct InputQueued<O> {
    observer: O,
    config: InputQueuedConfig,
    topology: Topology,
    routes: Routes,
    /// Whether a packet's way depends on more than place and destination; where they go on, if that is known.
    by_packet: bool,
    ways: Ways,
    /// Whether heads wait for VCs with room for their whole packet.
    cut_through: bool,
    /// Whether VCs, and the crossbar, are given by the shortest of all rules: inputs choose first, once, by round robin, in one cycle.
    plain_vcs: bool,
    plain_crossbar: bool,
    /// Whether switches have more inputs or outputs than bits of a word.
    is_wide: bool,
    ports: Ports,
    clock: LinkTime,
    /// Bytes and flits of the largest packet.
    largest: (u32, u32),
    /// A cycle, if it is a whole number of picoseconds: dividing takes long.
    whole_cycle_ps: Option<u64>,
    /// When a cycle begins: the one that was asked for last.
    begun: (u64, SimTime),
    vcs: u32,
    vcs_of_class: u8,
    /// All VCs, and those of the first class, a bit each.
    vcs_of_classes: (u16, u16),
    /// Whether each credit is told, as somebody may wait for several; whether only those are that somebody has asked for.
    all_credits: bool,
    plain_links: bool,
    switches: Vec<Switch>,
    inputs: Vec<Input>,
    /// By input: VCs, a bit each, whose first flit may ask for the crossbar: it has a VC and a credit; or has been given it.
    ready: Vec<u16>,
    /// By bit of an input, 64 a word.
    marks: Vec<ActiveInputs>,
    /// By input, then VC; the latter only where the crossbar is not given by the shortest of all rules.
    input_vcs: Vec<InputVc>,
    crossbars: Vec<Crossbar>,
    /// By end of a link (the inputs of switches, then the ends at hosts), then VC: a ring of flits. And, where the head of a packet lies in that of
    /// an input, the packet.
    slots: Vec<Slot>,
    heads: Vec<PacketId>,
    /// Where the first ring begins, and the first of the ends at hosts; and when the cycles of all were brought up to date.
    first_ring: usize,
    rings_of_hosts: usize,
    renewed: u64,
    outputs: Vec<Output>,
    /// By output, then VC.
    output_vcs: Vec<OutputVc>,
    /// By output: heads that wait for one of its VCs.
    waiting: Vec<Vec<PortVc>>,
    /// Where round robins begin: of VCs of inputs, over VCs of outputs; of those, over VCs of inputs; of ways from inputs, over ways to outputs; of
    /// those, over ways from inputs; of ways from inputs, over VCs. The last three not where the crossbar is given by the shortest of all rules.
    vc_turns: Vec<u32>,
    given_turns: Vec<u32>,
    input_turns: Vec<u32>,
    way_turns: Vec<u32>,
    in_turn: Vec<u8>,
    /// By way from an input: the way to an output that it holds, and for which VC; by way to an output: by which one it is held.
    held_inputs: Vec<u32>,
    held_vcs: Vec<u8>,
    held_ways: Vec<u32>,
    /// Switches that can do something in this cycle, as far as is known; by switch: whether it is among them.
    working: Vec<u32>,
    listed: Vec<bool>,
    hosts: Vec<Host>,
    sending: Vec<u32>,
    packets: Slab<PacketId, Packet>,
    messages: Messages,
    /// VCs of inputs to which a flit comes in which no other one lies.
    arrivals: Calendar<PortVc>,
    /// VCs of inputs whose head has been routed, and asks for a VC.
    routed: Calendar<PortVc>,
    /// Packets that have arrived at their hosts.
    arriving: Calendar<PacketId>,
    /// VCs of outputs that get a credit somebody waits for.
    credits: Calendar<PortVc>,
    /// Hosts that have something to send from a cycle on.
    wakes: BinaryHeap<Reverse<(u64, u32)>>,
    /// The first cycle that has not been worked off.
    now: u64,
    /// Whether its arrivals have been seen.
    open: bool,
    matcher: Matcher,
    /// What is used within one cycle of one switch.
    requests: Vec<Request>,
    asking: Vec<PortVc>,
    asked: Vec<PortVc>,
    candidates: Vec<u32>,
    given: Vec<PortVc>,
    crossing: Vec<Crossing>,
    released: Vec<u32>,
    /// What inputs have chosen that crosses, those of a switch from its first input on; by switch: how many these are, if the same VCs are ready as
    /// then and all that was chosen crossed, else [`NONE`].
    chosen: Vec<PortVc>,
    /// Those that cross in this cycle, there.
    crossing_vcs: Vec<PortVc>,
    steady: Vec<u32>,
    /// What first flits ask for where the crossbar is given by the shortest of all rules: the former at switches of few ports, the latter if some have
    /// more.
    narrow: CrossbarRequests<u64>,
    wide: CrossbarRequests<u128>,
    /// By number of a VC of outputs at its switch: nothing between two allocations; and those of this one.
    offers: Vec<Offer>,
    offered: Vec<u32>,
    meters: TiVec<LinkId, LinkMeter>,
    delivered: u64,
    /// Whether hosts lose the first packet of their queue where it finds no room.
    loses_heads: bool,
    /// What lies in its queues, if that is counted.
    occupancy: Option<Box<Occupancy>>,
    /// The ways of packets, if they are logged.
    log: Option<Box<HopLog>>,
    moved: u64,
}

impl<O: Observer> InputQueued<O> {
    /// The network of `config` for `hosts`; `observer` sees its packets.
    ///
    /// # Errors
    /// When the hosts do not fit into the topology, or a value makes no sense.
    pub fn new(config: &InputQueuedConfig, hosts: &[HostPlace], observer: O) -> Result<Self, FabricError> {
        config.check()?;
        let topology = config.topology.build(hosts)?;
        let routes = Routes::new(&config.routing, &topology, config.seed)?;
        Self::on(config, topology, routes, observer)
    }

    /// The network of `config` on a topology and a routing that were made elsewhere, in place of its own.
    ///
    /// # Errors
    /// When a value makes no sense, or packets may wait for each other for ever.
    pub fn on(
        config: &InputQueuedConfig,
        topology: Topology,
        routes: Routes,
        observer: O,
    ) -> Result<Self, FabricError> {
        config.check()?;
        config.check_routes(&routes)?;
        routes.deadlock_freedom(&topology)?;
        let clock = clock(config.flit, config.mtu, config.headers, &topology)?;
        let delays = delays(config.latency.link, &topology, &clock)?;
        let ahead = ahead(config, &delays)?;
        let ports = Ports::new(&topology);
        let (mut inputs_of, outputs) = links(config, &topology, &ports, &delays)?;
        let (switches, words) = switches(&ports, &mut inputs_of, topology.switches());
        let inputs = inputs_of.len();
        let ends = inputs + outputs.iter().filter(|output| output.to_host).count();
        let (vcs, buffer) = (usize::from(config.vcs), config.buffer as usize);
        let (input_ways, output_ways) =
            (inputs * usize::from(config.input_speedup), outputs.len() * usize::from(config.output_speedup));
        let in_turn = (0..input_ways).map(|way| (way % usize::from(config.input_speedup)) as u8 % config.vcs);
        let uplinks = (0..topology.hosts()).map(|host| ports.output_of(topology.uplink(NodeId(host))));
        let idle = |output| Host {
            output,
            flits: 0,
            packet: PacketId::NONE,
            vc: config.vcs - 1,
            begun: false,
            listed: false,
            waits: false,
        };
        let hosts: Vec<Host> = uplinks.map(idle).collect();
        let most_outputs = (0..topology.switches()).map(|switch| ports.outputs_of(switch).1).max().unwrap_or(0);
        let most_inputs = (0..topology.switches()).map(|switch| ports.inputs_of(switch).1).max().unwrap_or(0);
        let most_ports = most_inputs.max(most_outputs);
        let is_plain = |allocator: &SeparableAllocator, latency: u32| {
            let plain = SeparableAllocator { order: Order::InputFirst, iterations: 1, arbiter: Arbiter::RoundRobin };
            *allocator == plain && latency == 1 && !config.speculative
        };
        let speedups = (config.input_speedup, config.output_speedup);
        let plain_crossbar = is_plain(&config.switch_allocator, config.latency.switch_allocation)
            && speedups == (1, 1)
            && !config.hold_switch
            && most_ports as usize <= MAX_PORTS_OF_SWITCH;
        let is_wide = most_ports > u64::BITS;
        let ports_with = |is_so: bool| if plain_crossbar && is_so { (inputs, outputs.len()) } else { (0, 0) };
        let (narrow_ports, wide_ports) = (ports_with(!is_wide), ports_with(is_wide));
        // Rings of 16 flits fill a cache line each.
        let slots = vec![Slot::EMPTY; ends * vcs * buffer + SLOTS_OF_LINE];
        let first_ring = slots.as_ptr().align_offset(CACHE_LINE).min(SLOTS_OF_LINE);
        let output_vcs = outputs.iter().flat_map(|output| output_vcs(config, output, first_ring)).collect();
        Ok(Self {
            observer,
            by_packet: routes.looks_at_packets(),
            ways: Ways::new(&routes, &topology),
            cut_through: config.flow_control == FlowControl::VirtualCutThrough,
            plain_vcs: is_plain(&config.vc_allocator, config.latency.vc_allocation),
            plain_crossbar,
            is_wide,
            all_credits: config.flow_control == FlowControl::VirtualCutThrough,
            plain_links: config.flow_control == FlowControl::Wormhole && !config.wait_for_tail_credit,
            vcs_of_class: config.vcs / routes.classes(),
            vcs_of_classes: (first_vcs(config.vcs), first_vcs(config.vcs / routes.classes())),
            routes,
            largest: (
                u32::try_from(config.mtu.get() + config.headers.get()).unwrap_or(u32::MAX),
                u32::try_from(config.largest_flits()).unwrap_or(u32::MAX),
            ),
            whole_cycle_ps: clock.whole_cycle_ps(),
            clock,
            begun: (0, SimTime::ZERO),
            vcs: config.vcs.into(),
            switches,
            inputs: inputs_of,
            ready: vec![0; inputs],
            marks: vec![ActiveInputs::default(); words],
            input_vcs: vec![InputVc::IDLE; inputs * vcs],
            crossbars: vec![Crossbar { at: 0, way: NONE }; if plain_crossbar { 0 } else { inputs * vcs }],
            slots,
            heads: vec![PacketId::NONE; first_ring + inputs * vcs * buffer],
            first_ring,
            rings_of_hosts: first_ring + inputs * vcs * buffer,
            renewed: 0,
            output_vcs,
            waiting: vec![Vec::new(); outputs.len()],
            vc_turns: vec![0; inputs * vcs],
            given_turns: vec![0; outputs.len() * vcs],
            input_turns: vec![0; input_ways],
            way_turns: vec![0; output_ways],
            in_turn: in_turn.collect(),
            held_inputs: vec![NONE; input_ways],
            held_vcs: vec![0; input_ways],
            held_ways: vec![NONE; output_ways],
            working: Vec::new(),
            listed: vec![false; topology.switches() as usize],
            sending: Vec::new(),
            packets: Slab::default(),
            messages: Messages::new(topology.hosts(), hosts.len(), config.mtu, config.headers),
            hosts,
            arrivals: Calendar::new(ahead),
            routed: Calendar::new(config.latency.routing as usize + 1),
            arriving: Calendar::new(ahead),
            // A credit of a flit that is still on its way to a host.
            credits: Calendar::new(2 * ahead),
            wakes: BinaryHeap::new(),
            now: 0,
            open: false,
            matcher: Matcher::default(),
            requests: Vec::new(),
            asking: Vec::new(),
            asked: Vec::new(),
            candidates: Vec::new(),
            given: Vec::new(),
            crossing: Vec::new(),
            crossing_vcs: vec![PortVc::NONE; inputs + COPIED_AT_ONCE],
            released: Vec::new(),
            chosen: vec![PortVc::NONE; inputs + COPIED_AT_ONCE],
            steady: vec![NONE; topology.switches() as usize],
            narrow: CrossbarRequests::new(narrow_ports.0, narrow_ports.1),
            wide: CrossbarRequests::new(wide_ports.0, wide_ports.1),
            offers: vec![Offer::NONE; most_outputs as usize * vcs],
            offered: Vec::new(),
            meters: vec![LinkMeter::default(); topology.links().len()].into(),
            delivered: 0,
            loses_heads: false,
            occupancy: None,
            log: None,
            moved: 0,
            outputs,
            ports,
            config: config.clone(),
            topology,
        })
    }

    /// What it is built of.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The place of a VC among those of all ends of links, or of all outputs.
    #[inline]
    const fn index(&self, vc: PortVc) -> usize {
        vc.port().wrapping_mul(self.vcs).wrapping_add(vc.vc()) as usize
    }

    /// Where the ring of a VC of an input begins that lies at `index` among these.
    #[inline]
    const fn ring(&self, index: usize) -> usize {
        self.first_ring.wrapping_add(index.wrapping_mul(self.config.buffer as usize))
    }

    /// When `cycle` begins.
    fn begins(&mut self, cycle: u64) -> SimTime {
        if self.begun.0 != cycle {
            self.begun = (cycle, Cycle(cycle).begins(&self.clock));
        }
        self.begun.1
    }

    fn deliver(&mut self, id: PacketId, now: u64, deliveries: &mut Vec<Delivery>) {
        let packet = self.packets.remove(id);
        let arrived = self.begins(now);
        let whole = self.whole_cycle_ps.map(|cycle_ps| SimTime(packet.left * cycle_ps));
        let left = whole.unwrap_or_else(|| Cycle(packet.left).begins(&self.clock));
        let record = packet.record(self.messages.get(packet.message), left, arrived);
        self.delivered += 1;
        self.observer.delivered(&record);
        if let Some(token) = self.messages.arrived(packet.message) {
            deliveries.push(Delivery { token, at: record.arrived });
        }
    }
}

impl<O: Observer> ClockedNetwork for InputQueued<O> {
    type Observer = O;

    fn parts(&self) -> Parts<'_> {
        Parts {
            topology: &self.topology,
            clock: &self.clock,
            messages: &self.messages,
            queues: 1,
            lanes: self.vcs,
            meters: &self.meters,
            interval: self.config.interval,
            delivered: self.delivered,
            events: self.moved,
            occupancy: self.occupancy.as_deref(),
        }
    }

    fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    fn next_cycle(&self) -> Option<u64> {
        if self.open || !self.working.is_empty() || !self.sending.is_empty() {
            return Some(self.now);
        }
        let woken = self.wakes.peek().map(|Reverse((cycle, _))| *cycle);
        let calendars = [&self.arrivals, &self.routed, &self.credits].map(|calendar| calendar.next(self.now));
        calendars.into_iter().chain([self.arriving.next(self.now), woken]).flatten().min()
    }

    fn arrive(&mut self, until: u64, deliveries: &mut Vec<Delivery>) -> Option<u64> {
        let now = self.next_cycle().filter(|cycle| *cycle <= until)?;
        if std::mem::replace(&mut self.open, true) {
            return Some(now);
        }
        if now - self.renewed >= RENEWED_EVERY {
            self.renew(self.now, now);
        }
        self.now = now;
        let arrivals = self.arrivals.take(now);
        arrivals.iter().for_each(|at| self.first_comes(*at, now));
        self.arrivals.keep(now, arrivals);
        let routed = self.routed.take(now);
        routed.iter().for_each(|at| self.asks(*at));
        self.routed.keep(now, routed);
        let arriving = self.arriving.take(now);
        arriving.iter().for_each(|packet| self.deliver(*packet, now, deliveries));
        self.arriving.keep(now, arriving);
        let credits = self.credits.take(now);
        credits.iter().for_each(|vc| self.credit_comes(*vc, now));
        self.credits.keep(now, credits);
        while let Some(Reverse((cycle, host))) = self.wakes.peek().copied()
            && cycle <= now
        {
            self.wakes.pop();
            self.wake_host(host);
        }
        Some(now)
    }

    fn work(&mut self) {
        if !std::mem::replace(&mut self.open, false) {
            return;
        }
        let now = self.now;
        let mut sending = std::mem::take(&mut self.sending);
        sending.retain(|host| {
            let more = self.host_sends(*host, now);
            self.hosts[*host as usize].listed = more;
            more
        });
        self.sending = sending;
        let mut working = std::mem::take(&mut self.working);
        if self.plain_crossbar {
            self.work_plainly(&mut working, now);
        } else {
            working.retain(|switch| {
                let more = self.switch_works(*switch, now);
                self.listed[*switch as usize] = more;
                more
            });
        }
        self.working = working;
        self.now += 1;
    }

    fn open_cycle(&self) -> Option<u64> {
        self.open.then_some(self.now)
    }

    fn hand_over(&mut self, now: SimTime, message: &Message, host: NodeId, cycle: u64) {
        self.messages.hand_over(now, message, host.0 as usize);
        if self.open || cycle <= self.now {
            self.wake_host(host.0);
        } else {
            self.wakes.push(Reverse((cycle, host.0)));
        }
    }

    fn lose_heads(&mut self) -> bool {
        self.loses_heads = true;
        true
    }

    fn bytes_of_lanes(&self) -> Vec<u64> {
        let mut bytes = Vec::with_capacity(self.topology.links().len() * self.vcs as usize);
        for link in 0..count(self.topology.links().len()) {
            let output = self.ports.output_of(LinkId(link));
            let sent = |vc| match output {
                NONE => 0,
                _ => self.output_vcs[self.index(PortVc::new(output, vc))].sent,
            };
            bytes.extend((0..self.vcs).map(sent).map(|flits| flits * self.config.flit.get()));
        }
        bytes
    }

    fn hop_log_slot(&mut self) -> Option<&mut Option<Box<HopLog>>> {
        Some(&mut self.log)
    }

    fn occupancy_slot(&mut self) -> Option<&mut Option<Box<Occupancy>>> {
        Some(&mut self.occupancy)
    }
}

super::kinds::packet_kind! { InputQueuedConfig => InputQueued }
