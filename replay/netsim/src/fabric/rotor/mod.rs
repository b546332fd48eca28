//! `rotor`: racks that circuit switches join in turn, whatever waits (`RotorNet`, Opera); defined in `docs/rotor.md`.
//!
//! What waits for a circuit waits at its host, which is asked for it when the circuit is there; a `ToR` holds only what comes from other racks. What
//! becomes of a packet at a switch is known when it is sent, as the schedule is.

mod circuit_log;
mod config;
mod counters;
mod paths;
mod schedule;
mod seams;
mod state;

pub use config::{Change, HostShare, Reconfiguration, RotorConfig, RotorRouting, RotorScheduler};

use super::FabricError;
use super::figures::LinkMeter;
use super::ids::PacketId;
use super::messages::{Cut, Messages, NUMBER, key, packets_of};
use super::packet::{Message, Observer, PacketRecord};
use super::slab::Slab;
use crate::circuits::{CircuitScheduler, Control};
use crate::count::count;
use crate::kernel::{EventQueue, Phase, Place};
use crate::network::Delivery;
use crate::time::SimTime;
use crate::topology::{HostPlace, Placing};
use circuit_log::{Carried, CircuitLog};
use counters::Counters;
use paths::Paths;
use schedule::{Period, Rack, Schedule, Transit};
use state::{Host, Packet, Tor, Uplink};
use std::collections::VecDeque;

/// A packet that has passed so many switches waits for the circuit to its rack.
const MAX_SWITCHES: u32 = 64;

/// What happens, and where.
#[derive(Clone, Copy)]
enum Event {
    /// The link of a host is free for a packet that waits for no circuit.
    Push(u32),
    /// Such a packet is at its `ToR`.
    AtTor(PacketId),
    /// An uplink, by rack x uplinks + switch, looks for a packet; of events with an older number nothing comes.
    Serve(u32, u32),
    /// A packet has passed a circuit.
    Crossed(PacketId),
    /// A `ToR` learns that a packet that it sent was lost.
    Lost(PacketId),
    /// A packet is at its host.
    Arrived(PacketId),
    /// The controller learns what waits.
    Look,
    /// It plans circuits from what it has learned.
    Plan,
}

/// Where an uplink's next packet is.
#[derive(Clone, Copy)]
enum Source {
    Queue,
    Transit,
    /// At a host, in the queue for that one.
    Host(u32, u32),
}

/// A packet at a circuit switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The rack that sent it, and the one to which the circuit leads.
    pub from: u32,
    /// As `from`.
    pub to: u32,
    /// The switch, counted from 0.
    pub switch: u32,
    /// When its first bit comes to the switch, and its last one.
    pub first: SimTime,
    /// As `first`.
    pub last: SimTime,
    /// Its length.
    pub bytes: u32,
    /// Whether it passes; else it is lost.
    pub passes: bool,
}

/// A network of circuits that come in turn.
pub struct Rotor<O> {
    observer: O,
    config: RotorConfig,
    schedule: Schedule,
    control: Option<Control>,
    circuits: CircuitLog,
    /// When something happened last.
    now: SimTime,
    paths: Paths,
    names: Vec<String>,
    racks: Vec<String>,
    rack_of: Vec<Rack>,
    hosts: Vec<Host>,
    tors: Vec<Tor>,
    uplinks: Vec<Uplink>,
    packets: Slab<PacketId, Packet>,
    /// Queues: source host x hosts + destination, then one a host for what waits for no circuit.
    messages: Messages,
    events: EventQueue<Event>,
    /// How long before its circuit an uplink asks a host: its packet is there when the circuit is.
    lead_ps: u64,
    up: Vec<LinkMeter>,
    down: Vec<LinkMeter>,
    over: Vec<LinkMeter>,
    counters: Counters,
    passages: Option<Vec<Passage>>,
}

impl<O: Observer> Rotor<O> {
    /// The network of `config` for `hosts`; `observer` sees its packets.
    ///
    /// # Errors
    /// When two hosts have one name, or a value makes no sense.
    pub fn new(config: &RotorConfig, hosts: &[HostPlace], observer: O) -> Result<Self, FabricError> {
        Self::controlled(config, hosts, observer, None)
    }

    /// As [`Rotor::new`], with circuits that `scheduler` decides about. The configuration's keys are those of a scheduler by demand.
    ///
    /// # Errors
    /// As [`Rotor::new`], and when the configuration's scheduler is none by demand.
    pub fn with(
        config: &RotorConfig,
        hosts: &[HostPlace],
        observer: O,
        scheduler: Box<dyn CircuitScheduler + Send>,
    ) -> Result<Self, FabricError> {
        if config.scheduler == RotorScheduler::Rotor {
            let (key, allowed) = ("scheduler", "one by demand, in whose place another one decides");
            return Err(FabricError::Value { key, value: "rotor".to_owned(), allowed });
        }
        Self::controlled(config, hosts, observer, Some(scheduler))
    }

    fn controlled(
        config: &RotorConfig,
        hosts: &[HostPlace],
        observer: O,
        scheduler: Option<Box<dyn CircuitScheduler + Send>>,
    ) -> Result<Self, FabricError> {
        let placing = Placing::of(hosts)?;
        config.check(hosts.len(), placing.racks.len())?;
        let racks = placing.racks.len();
        let rack_of: Vec<Rack> = (0..hosts.len()).map(|host| count(placing.rack(host))).collect();
        let mut tors = vec![Tor::default(); racks];
        for (host, rack) in rack_of.iter().enumerate() {
            tors[*rack as usize].hosts.push(count(host));
        }
        config.check_share(tors.iter().map(|tor| tor.hosts.len()).max().unwrap_or(0))?;
        for tor in &mut tors {
            tor.transit = vec![VecDeque::new(); racks];
            tor.pending = vec![0; racks];
        }
        let host = Host { waiting: vec![0; racks], turn: vec![0; racks], ..Host::default() };
        let schedule = Schedule::new(config, count(racks));
        let uplinks = racks * config.uplinks as usize;
        let largest = config.mtu.get() + config.headers.get();
        let number = hosts.len();
        let scheduler = scheduler.or_else(|| config.by_demand());
        let control = scheduler.map(|scheduler| Control::new(config.control_times(), racks, scheduler));
        Ok(Self {
            observer,
            control,
            circuits: CircuitLog::new(uplinks),
            now: SimTime::ZERO,
            paths: Paths::new(count(racks), schedule.cycle(), config.seed),
            schedule,
            names: hosts.iter().map(|host| host.name.clone()).collect(),
            racks: placing.racks,
            rack_of,
            hosts: vec![host; number],
            tors,
            uplinks: vec![Uplink::default(); uplinks],
            packets: Slab::default(),
            messages: Messages::new(count(number), number * number + number, config.mtu, config.headers),
            events: EventQueue::new((config.slice.ps() * 2).clamp(1 << 24, 1 << 36)),
            lead_ps: config.host_rate.time_ps(largest) + config.host_delay.ps(),
            up: vec![LinkMeter::default(); number],
            down: vec![LinkMeter::default(); number],
            over: vec![LinkMeter::default(); uplinks],
            counters: Counters::default(),
            passages: None,
            config: config.clone(),
        })
    }

    /// Keeps each packet that comes to a switch from now on, in the order in which they are sent, for [`Rotor::passages`].
    pub fn keep_passages(&mut self) {
        self.passages.get_or_insert_default();
    }

    /// The packets that were kept.
    #[must_use]
    pub fn passages(&self) -> &[Passage] {
        self.passages.as_deref().unwrap_or_default()
    }

    /// The rack with which `switch` joins `rack` at `at`, or is about to when its change is over; none if the port is dark.
    #[must_use]
    pub fn joined(&self, switch: u32, rack: u32, at: SimTime) -> Option<u32> {
        self.schedule.joined(switch, &self.schedule.at(switch, rack, at.0)?, rack)
    }

    fn hand_over(&mut self, now: SimTime, message: &Message, of_bytes: u64) {
        let (source, destination) = (message.source.0, message.destination.0);
        let (rack, to) = (self.rack_of[source as usize], self.rack_of[destination as usize]);
        let hosts = self.hosts.len();
        if rack == to || of_bytes < self.config.bulk_from() {
            self.messages.hand_over(now, message, hosts * hosts + source as usize);
            self.push(now, source);
        } else {
            let headers = packets_of(message.bytes, self.config.mtu.get()) * self.config.headers.get();
            self.more_waits(now, rack, to, (message.bytes + headers).max(1));
            if self.messages.hand_over(now, message, source as usize * hosts + destination as usize) {
                self.hosts[source as usize].waiting[to as usize] += 1;
                self.more_pending(now, rack, to);
            }
        }
    }

    /// Has a host send the next packet that waits for no circuit, if its link is free; else there is an event for it.
    fn push(&mut self, now: SimTime, host: u32) {
        let queue = self.hosts.len() * self.hosts.len() + host as usize;
        let state = &mut self.hosts[host as usize];
        if state.pushes || self.messages.is_empty(queue) {
            return;
        }
        if state.up_free > now {
            state.pushes = true;
            self.events.schedule(state.up_free, Phase::Arrive, self.host_place(host), Event::Push(host));
            return;
        }
        let Some(cut) = self.messages.cut(queue) else { return };
        let (packet, arrives) = self.leave(now, host, cut, true);
        self.events.schedule(arrives, Phase::Arrive, self.host_place(host), Event::AtTor(packet));
        self.push(now, host);
    }

    /// A packet leaves its host as soon as its link is free. Returns it, and when it is at the `ToR`.
    fn leave(&mut self, now: SimTime, host: u32, cut: Cut, hurries: bool) -> (PacketId, SimTime) {
        let state = &mut self.hosts[host as usize];
        let left = state.up_free.max(now);
        state.up_free = left.plus_ps(self.config.host_rate.time_ps(cut.bytes.into()));
        let arrives = state.up_free.plus_ps(self.config.host_delay.ps());
        self.up[host as usize].crossed(left, cut.bytes.into(), self.config.interval.ps());
        let message = self.messages.get(cut.message);
        let rack = self.rack_of[host as usize];
        let packet = Packet {
            message: cut.message,
            destination: message.destination.0,
            bytes: cut.bytes,
            left,
            key: key(message.source, cut.number),
            rack,
            towards: rack,
            switches: 0,
            hurries,
        };
        (self.packets.insert(packet), arrives)
    }

    fn happen(&mut self, now: SimTime, event: Event, deliveries: &mut Vec<Delivery>) {
        self.now = now;
        match event {
            Event::Look => self.look(now),
            Event::Plan => self.plan(now),
            Event::Push(host) => {
                self.hosts[host as usize].pushes = false;
                self.push(now, host);
            }
            Event::AtTor(id) => self.at_tor(now, id),
            Event::Serve(uplink, generation) => {
                let state = &mut self.uplinks[uplink as usize];
                if state.generation == generation {
                    state.next = None;
                    let switches = self.schedule.switches();
                    self.serve(now, uplink / switches, uplink % switches);
                }
            }
            Event::Crossed(id) => self.crossed(now, id),
            Event::Lost(id) => self.lost(now, id),
            Event::Arrived(id) => self.arrived(now, id, deliveries),
        }
    }

    /// A packet is at a `ToR`, which sends it on.
    fn at_tor(&mut self, now: SimTime, id: PacketId) {
        let packet = self.packets.get_mut(id);
        packet.switches += 1;
        let (rack, destination, bytes) = (packet.rack, packet.destination as usize, packet.bytes);
        if self.rack_of[destination] != rack {
            self.route(now, id);
            return;
        }
        let host = &mut self.hosts[destination];
        let starts = host.down_free.max(now);
        host.down_free = starts.plus_ps(self.config.host_rate.time_ps(bytes.into()));
        let arrives = host.down_free.plus_ps(self.config.host_delay.ps());
        self.down[destination].crossed(starts, bytes.into(), self.config.interval.ps());
        self.events.schedule(arrives, Phase::Arrive, self.down_place(count(destination)), Event::Arrived(id));
    }

    /// Puts a packet into the queue of an uplink, or into that for the circuit to its rack.
    fn route(&mut self, now: SimTime, id: PacketId) {
        let Packet { rack, destination, switches, hurries, key, .. } = *self.packets.get(id);
        let to = self.rack_of[destination as usize];
        let way = if hurries && switches < MAX_SWITCHES { self.way(now, rack, to, key) } else { None };
        let Some((switch, period)) = way else {
            self.wait(now, id, rack, to, false);
            return;
        };
        let index = self.uplink(rack, switch);
        if self.uplinks[index].queue_period != period.number {
            let over = std::mem::take(&mut self.uplinks[index].queue);
            self.uplinks[index].queue_period = period.number;
            self.route_anew(now, over);
        }
        let limit = self.config.uplink_queue.map_or(usize::MAX, |limit| limit as usize);
        if self.uplinks[index].queue.len() >= limit {
            self.counters.from_uplink_queue += 1;
            self.wait(now, id, rack, to, false);
            return;
        }
        self.uplinks[index].queue.push_back(id);
        self.wake(now, rack, switch);
    }

    /// The uplink on a short way, and the period in which its circuit is there.
    fn way(&mut self, now: SimTime, rack: Rack, to: Rack, key: u64) -> Option<(u32, Period)> {
        let slice = match self.config.change {
            Change::InTurn => self.schedule.slice_of(rack, now.0),
            Change::Together => self.schedule.current(0, rack, now.0)?.begin / self.config.slice.ps(),
        };
        let switch = self.paths.next(&self.schedule, slice, rack, to, key)?;
        Some((switch, self.schedule.current(switch, rack, now.0)?))
    }

    fn route_anew(&mut self, now: SimTime, packets: VecDeque<PacketId>) {
        self.counters.rerouted += packets.len() as u64;
        for id in packets {
            self.route(now, id);
        }
    }

    /// A packet waits at the `ToR` of `rack` for the circuit to rack `to`; one that was lost is the first.
    fn wait(&mut self, now: SimTime, id: PacketId, rack: Rack, to: Rack, first: bool) {
        self.more_waits(now, rack, to, self.packets.get(id).bytes.into());
        let queue = &mut self.tors[rack as usize].transit[to as usize];
        if first {
            queue.push_front(id);
        } else {
            queue.push_back(id);
        }
        self.counters.longest_transit = self.counters.longest_transit.max(queue.len() as u64);
        self.more_pending(now, rack, to);
    }

    /// More bytes wait for a circuit: the controller looks at them if it would not otherwise.
    fn more_waits(&mut self, now: SimTime, rack: Rack, to: Rack, bytes: u64) {
        if let Some(at) = self.control.as_mut().and_then(|control| control.more(now, rack, to, bytes.into())) {
            self.events.schedule(at, Phase::Decide, self.control_place(), Event::Look);
        }
    }

    fn look(&mut self, now: SimTime) {
        let rate = self.config.uplink_rate;
        if let Some(control) = &mut self.control {
            let plans = control.look(now, |bytes| rate.time_ps(u64::try_from(bytes).unwrap_or(u64::MAX)));
            self.events.schedule(plans, Phase::Decide, self.control_place(), Event::Plan);
        }
    }

    /// Circuits are planned, and those uplinks look for packets that have some.
    fn plan(&mut self, now: SimTime) {
        let Some(control) = &mut self.control else { return };
        let (circuits, looks) = control.plan(now);
        self.counters.planned += circuits.len() as u64;
        for (number, circuit) in &circuits {
            self.schedule.add(now, *number, circuit);
        }
        for at in looks {
            self.events.schedule(at, Phase::Decide, self.control_place(), Event::Look);
        }
        let mut racks: Vec<Rack> = circuits.iter().map(|(_, circuit)| count(circuit.from)).collect();
        racks.sort_unstable();
        racks.dedup();
        racks.into_iter().for_each(|rack| self.wake(now, rack, 0));
    }

    fn control_place(&self) -> Place {
        Place(2 * count(self.hosts.len()) + count(self.uplinks.len()) + count(self.tors.len()))
    }

    /// One queue or packet more waits at `rack` for rack `to`.
    fn more_pending(&mut self, now: SimTime, rack: Rack, to: Rack) {
        let tor = &mut self.tors[rack as usize];
        tor.pending[to as usize] += 1;
        tor.pending_all += 1;
        // With shares, or over two hops, an uplink may have nothing to take of those that wait already; a packet at the ToR may fit where those
        // whose host is busy do not.
        let may_sleep = self.config.host_share == HostShare::Equal || self.config.routing == RotorRouting::TwoHop;
        if tor.pending[to as usize] == 1 || may_sleep || !tor.transit[to as usize].is_empty() {
            (0..self.schedule.switches()).for_each(|switch| self.wake(now, rack, switch));
        }
    }

    fn less_pending(&mut self, rack: Rack, to: Rack) {
        let tor = &mut self.tors[rack as usize];
        tor.pending[to as usize] -= 1;
        tor.pending_all -= 1;
    }

    fn uplink(&self, rack: Rack, switch: u32) -> usize {
        (rack * self.schedule.switches() + switch) as usize
    }

    /// Has an uplink look for a packet as soon as it may need one.
    fn wake(&mut self, now: SimTime, rack: Rack, switch: u32) {
        let free = self.uplinks[self.uplink(rack, switch)].free;
        self.serve_at(now.max(SimTime(free.0.saturating_sub(self.lead_ps))), rack, switch);
    }

    /// Has an uplink look for a packet at `at`, if it does not look before.
    fn serve_at(&mut self, at: SimTime, rack: Rack, switch: u32) {
        let index = self.uplink(rack, switch);
        let place = Place(2 * count(self.hosts.len()) + count(index));
        let uplink = &mut self.uplinks[index];
        if uplink.next.is_none_or(|next| at < next) {
            uplink.next = Some(at);
            uplink.generation = uplink.generation.wrapping_add(1);
            self.events.schedule(at, Phase::Decide, place, Event::Serve(count(index), uplink.generation));
        }
    }

    /// An uplink sends what it has for the rack with which it is joined, if it still has the time for it.
    fn serve(&mut self, now: SimTime, rack: Rack, switch: u32) {
        let index = self.uplink(rack, switch);
        let Some(period) = self.schedule.current(switch, rack, now.0) else { return };
        if self.uplinks[index].queue_period != period.number {
            let over = std::mem::take(&mut self.uplinks[index].queue);
            self.route_anew(now, over);
        }
        // Packets that were routed anew have it look again at once; but it asks no host sooner than it must.
        let asks = self.uplinks[index].free.0.saturating_sub(self.lead_ps);
        if now.0 < asks {
            self.serve_at(SimTime(asks), rack, switch);
            return;
        }
        let (open, close) = self.schedule.window(rack, &period);
        let looks = open.saturating_sub(self.lead_ps);
        let joined = self.schedule.joined(switch, &period, rack);
        if looks > now.0 && joined.is_some_and(|other| self.has_any(rack, index, other)) {
            self.serve_at(SimTime(looks), rack, switch);
            return;
        }
        let found = joined
            .filter(|_| looks <= now.0)
            .and_then(|other| Some((other, self.find(now, rack, index, other, &period)?)));
        let Some((other, source)) = found else {
            self.sleep(rack, switch, &period, close);
            return;
        };
        let (bytes, ready) = self.ready(now, rack, other, index, source);
        let starts = ready.max(self.uplinks[index].free).max(SimTime(open));
        let ends = starts.plus_ps(self.config.uplink_rate.time_ps(bytes.into()));
        let sent = if self.uplinks[index].period == period.number { self.uplinks[index].sent } else { 0 };
        let over_budget = self.config.budget.is_some_and(|budget| sent + u64::from(bytes) > budget.get());
        if ends.0 > close || over_budget {
            self.sleep(rack, switch, &period, close);
            return;
        }
        let uplink = &mut self.uplinks[index];
        if uplink.period != period.number {
            uplink.sent_of.clear();
        }
        (uplink.period, uplink.sent, uplink.free) = (period.number, sent + u64::from(bytes), ends);
        if let Source::Host(host, _) = source {
            let hosts = &self.tors[rack as usize].hosts;
            uplink.sent_of.resize(hosts.len(), 0);
            uplink.sent_of[hosts.binary_search(&host).unwrap_or(0)] += u64::from(bytes);
        }
        let id = self.take(now, rack, other, index, source);
        self.send_over(id, switch, &period, other, starts, ends);
        self.wake(now, rack, switch);
    }

    /// Whether anything here goes over a circuit to `other`.
    fn has_any(&self, rack: Rack, uplink: usize, other: Rack) -> bool {
        let tor = &self.tors[rack as usize];
        let any = self.config.routing == RotorRouting::TwoHop && tor.pending_all > 0;
        any || tor.pending[other as usize] > 0 || !self.uplinks[uplink].queue.is_empty()
    }

    /// Nothing is left for the period: the uplink looks again in the next one that has something to do. Its packets on short ways find other ones.
    fn sleep(&mut self, rack: Rack, switch: u32, period: &Period, close: u64) {
        let index = self.uplink(rack, switch);
        if !self.uplinks[index].queue.is_empty() {
            self.serve_at(SimTime(close), rack, switch);
            return;
        }
        let (mut next, mut after) = (*period, close);
        for _ in 0..self.schedule.cycle() {
            let Some(behind) = self.schedule.next(switch, rack, &next) else { return };
            next = behind;
            let (open, close) = self.schedule.window(rack, &next);
            let joined = self.schedule.joined(switch, &next, rack);
            if joined.is_some_and(|other| self.has_any(rack, index, other)) {
                self.serve_at(SimTime(open.saturating_sub(self.lead_ps).max(after)), rack, switch);
                return;
            }
            after = close;
        }
    }

    /// The next packet for the circuit of `period` to `other`.
    fn find(&mut self, now: SimTime, rack: Rack, uplink: usize, other: Rack, period: &Period) -> Option<Source> {
        if !self.uplinks[uplink].queue.is_empty() {
            return Some(Source::Queue);
        }
        let tor = &self.tors[rack as usize];
        if !tor.transit[other as usize].is_empty() {
            return Some(Source::Transit);
        }
        if tor.pending[other as usize] > 0 {
            let host = self.free_host(now, rack, uplink, period, |host| host.waiting[other as usize] > 0)?;
            return self.at_host(host, other);
        }
        if self.config.routing != RotorRouting::TwoHop || tor.pending_all == 0 {
            return None;
        }
        let host = self.free_host(now, rack, uplink, period, |host| host.waiting.iter().any(|waiting| *waiting > 0))?;
        let state = &self.hosts[host as usize];
        let racks = count(state.waiting.len());
        let to = (0..racks).map(|step| (state.rack_turn + step) % racks).find(|to| state.waiting[*to as usize] > 0)?;
        self.at_host(host, to)
    }

    /// Of the hosts of `rack` that have something, and a share left that holds the largest packet, the one whose link is free
    /// first; of several the one whose turn it is.
    fn free_host(
        &mut self,
        now: SimTime,
        rack: Rack,
        uplink: usize,
        period: &Period,
        has: impl Fn(&Host) -> bool,
    ) -> Option<u32> {
        let hosts = &self.tors[rack as usize].hosts;
        let turn = self.uplinks[uplink].turn;
        let in_turn = (0..hosts.len()).map(|step| (turn + step) % hosts.len());
        let with = in_turn
            .filter(|place| has(&self.hosts[hosts[*place] as usize]))
            .filter(|place| self.has_share(rack, uplink, period, *place));
        let first = with.min_by_key(|place| self.hosts[hosts[*place] as usize].up_free.max(now))?;
        self.uplinks[uplink].turn = (first + 1) % hosts.len();
        Some(hosts[first])
    }

    /// Whether the host at a place of `rack` may send another packet over the circuit of `period`.
    fn has_share(&self, rack: Rack, uplink: usize, period: &Period, place: usize) -> bool {
        if self.config.host_share == HostShare::Any {
            return true;
        }
        let (open, close) = self.schedule.window(rack, period);
        let share = self.config.share(close.saturating_sub(open), self.tors[rack as usize].hosts.len());
        let state = &self.uplinks[uplink];
        let is_now = state.period == period.number;
        let sent = state.sent_of.get(place).copied().filter(|_| is_now).unwrap_or(0);
        sent + self.config.mtu.get() + self.config.headers.get() <= share
    }

    /// The queue at `host` whose turn it is, of those for hosts of `rack`.
    fn at_host(&self, host: u32, rack: Rack) -> Option<Source> {
        let there = &self.tors[rack as usize].hosts;
        let turn = self.hosts[host as usize].turn[rack as usize] as usize;
        let queue = |to: u32| host as usize * self.hosts.len() + to as usize;
        let in_turn = (0..there.len()).map(|step| there[(turn + step) % there.len()]);
        let to = in_turn.into_iter().find(|to| !self.messages.is_empty(queue(*to)))?;
        Some(Source::Host(host, to))
    }

    /// The length of the packet, and when it is at the uplink.
    fn ready(&self, now: SimTime, rack: Rack, other: Rack, uplink: usize, source: Source) -> (u32, SimTime) {
        let of = |id: Option<&PacketId>| id.map_or(0, |id| self.packets.get(*id).bytes);
        match source {
            Source::Queue => (of(self.uplinks[uplink].queue.front()), now),
            Source::Transit => (of(self.tors[rack as usize].transit[other as usize].front()), now),
            Source::Host(host, to) => {
                let queue = host as usize * self.hosts.len() + to as usize;
                let bytes = self.messages.peek(queue).map_or(0, |(bytes, _)| bytes);
                let time = self.config.host_rate.time_ps(bytes.into()) + self.config.host_delay.ps();
                (bytes, self.hosts[host as usize].up_free.max(now).plus_ps(time))
            }
        }
    }

    /// Takes the packet out.
    fn take(&mut self, now: SimTime, rack: Rack, other: Rack, uplink: usize, source: Source) -> Option<PacketId> {
        match source {
            Source::Queue => self.uplinks[uplink].queue.pop_front(),
            Source::Transit => {
                self.less_pending(rack, other);
                let id = self.tors[rack as usize].transit[other as usize].pop_front();
                if let (Some(control), Some(id)) = (&mut self.control, id) {
                    control.less(rack, other, self.packets.get(id).bytes.into());
                }
                id
            }
            Source::Host(host, to) => {
                let queue = host as usize * self.hosts.len() + to as usize;
                let cut = self.messages.cut(queue)?;
                let there = self.rack_of[to as usize];
                if let Some(control) = &mut self.control {
                    control.less(rack, there, cut.bytes.into());
                }
                let hosts = &self.tors[there as usize].hosts;
                let place = hosts.binary_search(&to).unwrap_or(0);
                let state = &mut self.hosts[host as usize];
                state.turn[there as usize] = count((place + 1) % hosts.len());
                if there != other {
                    state.rack_turn = (there + 1) % count(state.waiting.len());
                }
                if self.messages.is_empty(queue) {
                    state.waiting[there as usize] -= 1;
                    self.less_pending(rack, there);
                }
                let (id, _) = self.leave(now, host, cut, false);
                self.packets.get_mut(id).switches = 1;
                Some(id)
            }
        }
    }

    /// A packet crosses a circuit from `starts` to `ends`, or is lost there.
    fn send_over(
        &mut self,
        id: Option<PacketId>,
        switch: u32,
        period: &Period,
        other: Rack,
        starts: SimTime,
        ends: SimTime,
    ) {
        let Some(id) = id else { return };
        let packet = self.packets.get_mut(id);
        packet.towards = other;
        let bytes = u64::from(packet.bytes);
        let index = (packet.rack * self.schedule.switches() + switch) as usize;
        self.over[index].crossed(starts, bytes, self.config.interval.ps());
        self.counters.sent += 1;
        self.counters.sent_bytes += bytes;
        self.counters.on_short_ways += u64::from(packet.hurries);
        let cable = self.config.cable_delay.ps();
        let last = ends.plus_ps(cable);
        let carried = Carried {
            from: packet.rack,
            to: other,
            switch,
            begin: SimTime(period.begin),
            up: SimTime(self.schedule.up(switch, period)),
            end: SimTime(period.end),
            last_used: ends,
            packets: 1,
            bytes,
        };
        self.circuits.sent(index, carried);
        let fate = self.schedule.fate(switch, period, starts.plus_ps(cable).0, last.0);
        match fate {
            Transit::Passes => {}
            Transit::GuardBand => self.counters.guard_band += 1,
            Transit::Reconfiguring => self.counters.reconfiguring += 1,
        }
        if let Some(passages) = &mut self.passages {
            let (from, passes) = (packet.rack, fate == Transit::Passes);
            let (first, bytes) = (starts.plus_ps(cable), packet.bytes);
            passages.push(Passage { from, to: other, switch, first, last, bytes, passes });
        }
        let event = if fate == Transit::Passes { Event::Crossed(id) } else { Event::Lost(id) };
        if fate != Transit::Passes {
            self.counters.lost_bytes += bytes;
            self.over[index].dropped(last, self.config.interval.ps());
        }
        let place = Place(2 * count(self.hosts.len()) + count(index));
        self.events.schedule(last.plus_ps(cable), Phase::Arrive, place, event);
    }

    /// A packet has passed a circuit: it is at a `ToR`, if there is a place for it.
    fn crossed(&mut self, now: SimTime, id: PacketId) {
        let Packet { towards, destination, hurries, bytes, switches, .. } = *self.packets.get(id);
        let to = self.rack_of[destination as usize];
        let waits = towards != to && (!hurries || switches >= MAX_SWITCHES);
        let limit = self.config.transit_queue.map_or(usize::MAX, |limit| limit as usize);
        if waits && self.tors[towards as usize].transit[to as usize].len() >= limit {
            self.counters.no_place += 1;
            self.counters.lost_bytes += u64::from(bytes);
            let host_places = 2 * count(self.hosts.len());
            let place = Place(host_places + count(self.uplinks.len()) + towards);
            let known_at = now.plus_ps(2 * self.config.cable_delay.ps());
            self.events.schedule(known_at, Phase::Arrive, place, Event::Lost(id));
            return;
        }
        self.counters.passed += 1;
        self.counters.passed_bytes += u64::from(bytes);
        let packet = self.packets.get_mut(id);
        packet.rack = towards;
        packet.switches += 1;
        self.at_tor(now, id);
    }

    /// A `ToR` sends a packet again: by a short way, or the first of those that wait for the circuit to its rack.
    fn lost(&mut self, now: SimTime, id: PacketId) {
        let Packet { rack, destination, hurries, .. } = *self.packets.get(id);
        if hurries {
            self.route(now, id);
        } else {
            self.wait(now, id, rack, self.rack_of[destination as usize], true);
        }
    }

    fn arrived(&mut self, now: SimTime, id: PacketId, deliveries: &mut Vec<Delivery>) {
        let packet = self.packets.remove(id);
        let message = self.messages.get(packet.message);
        let record = PacketRecord {
            handed_over: message.handed_over,
            left: packet.left,
            arrived: now,
            source: message.source,
            destination: message.destination,
            number: packet.key & NUMBER,
            bytes: packet.bytes,
            flits: u32::try_from(u64::from(packet.bytes).div_ceil(self.config.flit.get())).unwrap_or(u32::MAX),
            switches: packet.switches,
            token: message.token,
        };
        self.counters.delivered += 1;
        self.counters.within_racks += u64::from(packet.switches == 1);
        self.observer.delivered(&record);
        if let Some(token) = self.messages.arrived(packet.message) {
            deliveries.push(Delivery { token, at: now });
        }
    }

    fn host_place(&self, host: u32) -> Place {
        Place(host)
    }

    fn down_place(&self, host: u32) -> Place {
        Place(count(self.hosts.len()) + host)
    }
}
