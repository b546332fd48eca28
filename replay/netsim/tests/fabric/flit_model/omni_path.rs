//! `omni-path`, cycle by cycle and flit by flit, to be checked against `docs/omni-path.md`: in each cycle every input, central link,
//! output and link of every switch is looked at, and every flit that moves moves by itself.

use super::counting::Counting;
use super::cut;
use super::routing::{Labels, rule};
use super::traffic::{Seen, Sending, When, answers};
use netsim::fabric::omni_path::{CentralChoice, FlitBuffers, OmniPathConfig, Retry};
use netsim::fabric::packet::PacketRecord;
use netsim::kernel::random::draw;
use netsim::network::{Delivery, HostIndex, Token};
use netsim::routing::Routes;
use netsim::time::SimTime;
use netsim::topology::{LinkId, NodeId, Topology};
use std::collections::{BTreeMap, VecDeque};

/// A mistake of this model, to show that the comparison finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// What was not granted asks again in the next cycle.
    RetryAtOnce,
    /// What was not granted keeps the turn among its unit's VLs.
    TurnOnlyWhenGranted,
    /// Central links take any packet.
    CentralUnlimited,
    /// Central links pass as slowly as inputs.
    CentralAsSlow,
    /// An input's room is free as soon as its packet begins to pass.
    RoomTooEarly,
    /// Any lane may take all that is shared.
    MaxForgotten,
    /// Lanes have nothing for themselves.
    ExclusiveForgotten,
    /// The lowest of the units that ask is granted.
    LowestUnit,
    /// Room is counted in flits.
    NoCredits,
    /// All packets of a VL that find no room in a cycle are lost.
    LosesAll,
    /// That of the highest VL is lost.
    LosesHighest,
    /// A packet is lost while the one before leaves, too.
    LosesWhileSending,
}

/// A place where packets lie: at the end of a link, in front of a central link (switch, number), in front of an output's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Input(LinkId),
    Central(u32, u32),
    Output(LinkId),
}

#[derive(Clone, Debug)]
struct Packet {
    record: PacketRecord,
    destination: NodeId,
    key: u64,
    flow: u64,
    base: u8,
    /// Its VL in each place where it lies.
    out: LinkId,
    out_vl: u8,
    /// From when on it may ask, or leave an output.
    ready: u64,
}

/// A flit that is in a buffer from a cycle on.
#[derive(Clone, Copy, Debug)]
struct Flit {
    packet: usize,
    index: u32,
    from: u64,
}

/// A packet that passes from one place to another, so many flits a cycle.
#[derive(Clone, Debug)]
struct Passing {
    from: Place,
    from_vl: u8,
    to: Place,
    to_vl: u8,
    packet: usize,
    passed: u32,
    speed: u32,
}

struct Model<'a> {
    config: &'a OmniPathConfig,
    topology: &'a Topology,
    routes: Routes,
    mistake: Option<Mistake>,
    bits: u128,
    bps: u128,
    packets: Vec<Packet>,
    /// Flits in each place and VL, in order.
    flits: BTreeMap<(Place, u8), VecDeque<Flit>>,
    /// What each VL of a place holds, as its sender knows it, in flits (whole credits).
    held: BTreeMap<Place, Vec<u64>>,
    /// Room that becomes free.
    frees: BTreeMap<u64, Vec<(Place, u8, u64)>>,
    /// Flits on links.
    wires: BTreeMap<u64, Vec<(LinkId, u8, Flit)>>,
    passing: Vec<Passing>,
    /// The VL, or the unit, at which a round robin begins: of places that ask, of those that are asked, of links.
    asks: BTreeMap<Place, u8>,
    asked: BTreeMap<Place, u32>,
    links: BTreeMap<LinkId, u8>,
    /// The VL and the packet that a link has, and how many of its flits have left.
    leaving: BTreeMap<LinkId, (u8, usize, u32)>,
    /// Messages that wait at hosts, by link and VL: packets that are cut.
    hosts: BTreeMap<(LinkId, u8), VecDeque<usize>>,
    numbers: Vec<u64>,
    counting: Counting,
}

impl Model<'_> {
    fn begins(&self, cycle: u64) -> SimTime {
        SimTime(u64::try_from(u128::from(cycle) * self.bits / self.bps).unwrap())
    }

    /// The first cycle that does not begin before `time`.
    fn cycle_from(&self, time: u64) -> u64 {
        let mut cycle = u64::try_from(u128::from(time) * self.bps / self.bits).unwrap().saturating_sub(2);
        while self.begins(cycle).0 < time {
            cycle += 1;
        }
        cycle
    }

    fn delay(&self, link: LinkId) -> u64 {
        self.cycle_from(self.topology.link(link).delay_ps) + u64::from(self.config.latency.link)
    }

    fn port(&self, link: LinkId) -> u32 {
        let out = self.topology.out(self.topology.link(link).from);
        u32::try_from(out.iter().position(|other| *other == link).unwrap()).unwrap()
    }

    fn centrals(&self) -> u32 {
        self.config.ports / self.config.group * self.config.central_links
    }

    /// The number of an asking place among those of its switch: central links first, then inputs.
    fn unit(&self, place: Place) -> u32 {
        match place {
            Place::Central(_, number) => number,
            Place::Input(link) => self.centrals() + self.port(LinkId(link.0 ^ 1)),
            Place::Output(_) => panic!("outputs ask for nothing"),
        }
    }

    fn size(&self, packet: usize) -> u64 {
        let flits = u64::from(self.packets[packet].record.flits);
        let unit = if self.mistake == Some(Mistake::NoCredits) { 1 } else { u64::from(self.config.flits_per_credit) };
        flits.div_ceil(unit) * unit
    }

    fn has_room(&self, place: Place, vl: u8, packet: usize) -> bool {
        let central = matches!(place, Place::Central(..));
        if central && self.mistake == Some(Mistake::CentralUnlimited) {
            return true;
        }
        let buffers = if central { self.config.central() } else { self.config.buffers };
        let FlitBuffers { size, exclusive, max } = buffers;
        let [size, mut exclusive, mut max] = [size, exclusive, max].map(u64::from);
        if self.mistake == Some(Mistake::MaxForgotten) {
            max = size;
        }
        if self.mistake == Some(Mistake::ExclusiveForgotten) {
            exclusive = 0;
        }
        let mut held = self.held.get(&place).cloned().unwrap_or_else(|| vec![0; self.config.vls.into()]);
        held[usize::from(vl)] += self.size(packet);
        // What is nobody's alone holds what lanes have beyond their own.
        let beyond: u64 = held.iter().map(|flits| flits.saturating_sub(exclusive)).sum();
        held[usize::from(vl)] <= max && beyond <= size - u64::from(self.config.vls) * exclusive
    }

    fn take(&mut self, place: Place, vl: u8, packet: usize) {
        let size = self.size(packet);
        let held = self.held.entry(place).or_insert_with(|| vec![0; self.config.vls.into()]);
        held[usize::from(vl)] += size;
        if self.mistake.is_none() {
            let buffers = if matches!(place, Place::Central(..)) { self.config.central() } else { self.config.buffers };
            assert!(held.iter().sum::<u64>() <= u64::from(buffers.size), "more is held than there is room for");
            assert!(held[usize::from(vl)] <= u64::from(buffers.max), "a lane holds more than its maximum");
        }
    }

    fn free(&mut self, at: u64, place: Place, vl: u8, packet: usize) {
        let size = self.size(packet);
        self.frees.entry(at).or_default().push((place, vl, size));
    }

    /// The header of a packet has come to a switch.
    fn route(&mut self, packet: usize, link: LinkId, now: u64) {
        let at = self.topology.link(link).to;
        let p = &self.packets[packet];
        let source = self.topology.host_node(p.record.source.0);
        let next = self.routes.next(at, link, p.destination);
        let labels = Labels { key: p.key, flow: p.flow, source, destination: p.destination };
        let out = rule(&self.config.routing, &self.routes, self.config.seed, at, next.links, &labels);
        let stages = self.config.latency;
        let stages = stages.input + stages.routing + stages.allocation;
        let come = (0..p.record.flits).map(|flit| now + u64::from(flit)).collect::<Vec<_>>();
        let dry = self.not_before(&come, self.config.group_speedup);
        let (base, class) = (p.base, next.class);
        let p = &mut self.packets[packet];
        p.out = out;
        p.out_vl = base + class;
        p.record.switches += 1;
        p.ready = (now + u64::from(stages)).max(dry);
    }

    /// The first cycle in which a packet may begin to pass whose flits come in these cycles, so that none passes before it has come.
    fn not_before(&self, come: &[u64], speed: u32) -> u64 {
        let passes = |flit: usize| flit as u64 / u64::from(speed);
        let mut first = come[0];
        while come.iter().enumerate().any(|(flit, come)| first + passes(flit) < *come) {
            first += 1;
        }
        first
    }

    /// The head of a VL of a place that may ask.
    fn head(&self, place: Place, vl: u8, now: u64) -> Option<usize> {
        let flit = self.flits.get(&(place, vl))?.front()?;
        // What is left of a packet that passes is no head.
        (flit.index == 0 && self.packets[flit.packet].ready <= now).then_some(flit.packet)
    }

    /// Whom a place asks, of those of `switch`.
    fn request(&mut self, place: Place, switch: u32, now: u64) -> Option<(Place, u8, usize)> {
        if self.passing.iter().any(|passing| passing.from == place) {
            return None;
        }
        let turn = self.asks.get(&place).copied().unwrap_or(0);
        let vls = self.config.vls;
        let (vl, packet) =
            (0..vls).map(|n| (turn + n) % vls).find_map(|vl| self.head(place, vl, now).map(|head| (vl, head)))?;
        if self.mistake != Some(Mistake::TurnOnlyWhenGranted) {
            self.asks.insert(place, (vl + 1) % vls);
        }
        let out = self.packets[packet].out;
        let Place::Input(link) = place else { return Some((Place::Output(out), vl, packet)) };
        let (from, to) = (self.port(LinkId(link.0 ^ 1)), self.port(out));
        let (group, links) = (self.config.group, self.config.central_links);
        if from / group == to / group {
            return Some((Place::Output(out), vl, packet));
        }
        let central = |number: u32| Place::Central(switch, from / group * links + number);
        let number = match self.config.central_choice {
            CentralChoice::Output => to % links,
            CentralChoice::Input => from % links,
            CentralChoice::Drawn => {
                let bits = draw(self.config.seed, (1 << 62) + u64::from(switch), self.packets[packet].key);
                u32::try_from((u128::from(bits) * u128::from(links)) >> 64).unwrap()
            }
            CentralChoice::Free => {
                let out_vl = self.packets[packet].out_vl;
                let idle = |place: Place| self.passing.iter().all(|passing| passing.to != place);
                let free = (0..links).find(|n| idle(central(*n)) && self.has_room(central(*n), out_vl, packet));
                free.unwrap_or(to % links)
            }
        };
        Some((central(number), vl, packet))
    }

    /// All requests of a switch, and those that are granted.
    fn allocate(&mut self, switch: NodeId, now: u64) {
        let number = switch.0 - self.topology.hosts();
        let mut places: Vec<Place> = (0..self.centrals()).map(|n| Place::Central(number, n)).collect();
        places.extend(self.topology.out(switch).iter().map(|out| Place::Input(LinkId(out.0 ^ 1))));
        let mut requests: BTreeMap<Place, Vec<(Place, u8, usize)>> = BTreeMap::new();
        let asked: Vec<_> = places.iter().map(|place| (*place, self.request(*place, number, now))).collect();
        for (place, request) in asked {
            if let Some((target, vl, packet)) = request {
                requests.entry(target).or_default().push((place, vl, packet));
            }
        }
        let units = self.centrals() + self.config.ports;
        let mut granted = Vec::new();
        for (target, requests) in requests {
            let idle = self.passing.iter().all(|passing| passing.to != target);
            let turn = match self.mistake {
                Some(Mistake::LowestUnit) => 0,
                _ => self.asked.get(&target).copied().unwrap_or(0),
            };
            let may = requests
                .iter()
                .filter(|(_, _, packet)| idle && self.has_room(target, self.packets[*packet].out_vl, *packet));
            let won = may.min_by_key(|(place, _, _)| (self.unit(*place) + units - turn) % units).copied();
            for (_, _, packet) in requests.iter().filter(|request| Some(request.2) != won.map(|won| won.2)) {
                let again = match self.config.retry {
                    Retry::Allocation if self.mistake != Some(Mistake::RetryAtOnce) => self.config.latency.allocation,
                    _ => 1,
                };
                self.packets[*packet].ready = now + u64::from(again);
            }
            if let Some((from, from_vl, packet)) = won {
                granted.push((from, from_vl, target, packet));
                self.asked.insert(target, (self.unit(from) + 1) % units);
            }
        }
        for (from, from_vl, to, packet) in granted {
            self.start(from, from_vl, to, packet, now);
        }
    }

    fn start(&mut self, from: Place, from_vl: u8, to: Place, packet: usize, now: u64) {
        if self.mistake == Some(Mistake::TurnOnlyWhenGranted) {
            self.asks.insert(from, (from_vl + 1) % self.config.vls);
        }
        let to_vl = self.packets[packet].out_vl;
        let as_input = matches!(from, Place::Input(_)) || self.mistake == Some(Mistake::CentralAsSlow);
        let speed = if as_input { self.config.group_speedup } else { self.config.central_speedup };
        self.take(to, to_vl, packet);
        if self.mistake == Some(Mistake::RoomTooEarly)
            && let Place::Input(link) = from
        {
            self.free(now + 1 + self.delay(LinkId(link.0 ^ 1)), from, from_vl, packet);
        }
        let first = now + u64::from(self.config.latency.crossbar);
        let flits = self.packets[packet].record.flits;
        self.packets[packet].ready = if matches!(to, Place::Output(_)) {
            first + u64::from(self.config.latency.output)
        } else {
            let come: Vec<_> = (0..flits).map(|flit| first + u64::from(flit / speed)).collect();
            (first + u64::from(self.config.latency.allocation)).max(self.not_before(&come, self.config.central_speedup))
        };
        self.passing.push(Passing { from, from_vl, to, to_vl, packet, passed: 0, speed });
    }

    /// All that pass move on by a cycle.
    fn pass(&mut self, now: u64) {
        let mut passing = std::mem::take(&mut self.passing);
        for passing in &mut passing {
            let flits = self.packets[passing.packet].record.flits;
            for _ in 0..passing.speed.min(flits - passing.passed) {
                let flit = self.flits.get_mut(&(passing.from, passing.from_vl)).unwrap().pop_front().unwrap();
                assert_eq!((flit.packet, flit.index), (passing.packet, passing.passed));
                assert!(flit.from <= now, "a flit passes before it has come");
                let from = now + u64::from(self.config.latency.crossbar);
                self.flits.entry((passing.to, passing.to_vl)).or_default().push_back(Flit { from, ..flit });
                passing.passed += 1;
            }
            if passing.passed == flits {
                match passing.from {
                    Place::Input(_) if self.mistake == Some(Mistake::RoomTooEarly) => {}
                    Place::Input(link) => {
                        let at = now + 1 + self.delay(LinkId(link.0 ^ 1));
                        self.free(at, passing.from, passing.from_vl, passing.packet);
                    }
                    _ => self.free(now + 1, passing.from, passing.from_vl, passing.packet),
                }
            }
        }
        passing.retain(|passing| passing.passed < self.packets[passing.packet].record.flits);
        self.passing = passing;
    }

    /// A link that is free takes the next packet; a flit of the one that it has leaves.
    fn send(&mut self, link: LinkId, now: u64) {
        let from_host = self.topology.is_host(self.topology.link(link).from);
        let is_free = !self.leaving.contains_key(&link);
        if is_free {
            self.choose(link, from_host, now);
        }
        let blocked = is_free && !self.leaving.contains_key(&link);
        if from_host && (blocked || (!is_free && self.mistake == Some(Mistake::LosesWhileSending))) {
            self.lose(link);
        }
        let Some((vl, packet, index)) = self.leaving.get(&link).copied() else { return };
        let flits = self.packets[packet].record.flits;
        if !from_host {
            let flit = self.flits.get_mut(&(Place::Output(link), vl)).unwrap().pop_front().expect("an output runs dry");
            assert_eq!((flit.packet, flit.index), (packet, index));
            assert!(flit.from <= now, "a flit leaves before it has come");
        }
        let from = now + self.delay(link);
        self.wires.entry(from).or_default().push((link, vl, Flit { packet, index, from }));
        if index + 1 < flits {
            self.leaving.insert(link, (vl, packet, index + 1));
            return;
        }
        self.leaving.remove(&link);
        if !from_host {
            self.free(now + 1, Place::Output(link), vl, packet);
        }
    }

    /// The first packet on the lowest VL of a host is lost, if there is one and hosts lose what finds no room.
    fn lose(&mut self, link: LinkId) {
        if !self.counting.loses_heads {
            return;
        }
        let mut mine: Vec<&mut VecDeque<usize>> =
            self.hosts.range_mut((link, 0)..=(link, u8::MAX)).map(|(_, queue)| queue).collect();
        mine.retain(|queue| !queue.is_empty());
        if self.mistake == Some(Mistake::LosesHighest) {
            mine.reverse();
        }
        if let Some(queue) = mine.first_mut() {
            let packets = if self.mistake == Some(Mistake::LosesAll) { queue.len() } else { 1 };
            self.counting.lost.extend(queue.drain(..packets));
        }
    }

    /// The packet that a free link takes.
    fn choose(&mut self, link: LinkId, from_host: bool, now: u64) {
        let (turn, vls) = (self.links.get(&link).copied().unwrap_or(0), self.config.vls);
        for vl in (0..vls).map(|n| (turn + n) % vls) {
            let head = if from_host {
                self.hosts.get(&(link, vl)).and_then(|waiting| waiting.front()).copied()
            } else {
                self.head(Place::Output(link), vl, now)
            };
            let Some(packet) = head.filter(|packet| self.has_room(Place::Input(link), vl, *packet)) else { continue };
            self.links.insert(link, (vl + 1) % vls);
            self.take(Place::Input(link), vl, packet);
            if from_host {
                self.hosts.get_mut(&(link, vl)).unwrap().pop_front();
                self.packets[packet].record.left = self.begins(now);
            }
            self.leaving.insert(link, (vl, packet, 0));
            return;
        }
    }
}

/// What happens to `traffic`, all of it or until nothing moves any more.
pub fn play(config: &OmniPathConfig, topology: &Topology, traffic: &[Sending], mistake: Option<Mistake>) -> Seen {
    play_losing(config, topology, traffic, mistake, false)
}

/// The same; `loses_heads`: whether hosts lose what finds no room.
pub fn play_losing(
    config: &OmniPathConfig,
    topology: &Topology,
    traffic: &[Sending],
    mistake: Option<Mistake>,
    loses_heads: bool,
) -> Seen {
    let routes = Routes::new(&config.routing, topology, config.seed).unwrap();
    let classes = routes.classes();
    let rate = topology.link(LinkId(0)).rate;
    let mut model = Model {
        config,
        topology,
        routes,
        mistake,
        bits: super::bits(config.flit.get()),
        bps: super::bps(rate),
        packets: Vec::new(),
        flits: BTreeMap::new(),
        held: BTreeMap::new(),
        frees: BTreeMap::new(),
        wires: BTreeMap::new(),
        passing: Vec::new(),
        asks: BTreeMap::new(),
        asked: BTreeMap::new(),
        links: BTreeMap::new(),
        leaving: BTreeMap::new(),
        hosts: BTreeMap::new(),
        numbers: vec![0; topology.hosts() as usize],
        counting: Counting::new(loses_heads),
    };
    let mut pending: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (number, sending) in traffic.iter().enumerate() {
        if let When::At(time) = sending.when {
            pending.entry(time).or_default().push(number);
        }
    }
    let mut seen = Seen::default();
    let mut open: BTreeMap<u64, u64> = BTreeMap::new();
    let mut idle = 0;
    let mut now = 0;
    while idle < 200 || !pending.is_empty() || !model.wires.is_empty() {
        let moves = model.packets.len() + seen.packets.len() + seen.dropped.len();
        let frees = model.frees.remove(&now).unwrap_or_default();
        for (place, vl, size) in frees {
            model.held.get_mut(&place).unwrap()[usize::from(vl)] -= size;
        }
        let mut delivered = Vec::new();
        for (link, vl, flit) in model.wires.remove(&now).unwrap_or_default() {
            if topology.is_host(topology.link(link).to) {
                if flit.index + 1 == model.packets[flit.packet].record.flits {
                    // It has come when the cycle is over.
                    let back = now + 1 + model.delay(LinkId(link.0 ^ 1));
                    model.free(back, Place::Input(link), vl, flit.packet);
                    let at = model.begins(now + 1);
                    model.packets[flit.packet].record.arrived = at;
                    let record = model.packets[flit.packet].record;
                    seen.packets.push(record);
                    let left = open.get_mut(&record.token.0).unwrap();
                    *left -= 1;
                    if *left == 0 && model.counting.is_whole(record.token.0) {
                        delivered.push((record.token, at));
                    }
                }
                continue;
            }
            if flit.index == 0 {
                model.route(flit.packet, link, now);
            }
            model.flits.entry((Place::Input(link), vl)).or_default().push_back(flit);
        }
        // What is answered to a delivery of the cycle's end comes behind it.
        delivered.sort();
        for (token, at) in delivered {
            seen.deliveries.push(Delivery { token, at });
            for (answer, think) in answers(traffic, usize::try_from(token.0).unwrap()) {
                pending.entry(at.0 + think).or_default().push(answer);
            }
        }
        while let Some(entry) = pending.first_entry()
            && model.cycle_from(*entry.key()) <= now
        {
            let (time, numbers) = entry.remove_entry();
            for number in numbers {
                let sending = &traffic[number];
                let groups = config.vls / classes;
                let level = config.sl_to_vl.get(usize::from(sending.level)).copied();
                let base = level.unwrap_or(sending.level % groups) * classes;
                let lengths = cut(sending.bytes, config.mtu.get(), config.headers.get());
                open.insert(number as u64, lengths.len() as u64);
                for bytes in lengths {
                    let count = &mut model.numbers[sending.source as usize];
                    let key = (u64::from(sending.source) << 40) + *count;
                    let record = PacketRecord {
                        handed_over: SimTime(time),
                        left: SimTime::ZERO,
                        arrived: SimTime::ZERO,
                        source: HostIndex(sending.source),
                        destination: HostIndex(sending.destination),
                        number: *count,
                        bytes,
                        flits: u32::try_from(u64::from(bytes).div_ceil(config.flit.get())).unwrap(),
                        switches: 0,
                        token: Token(number as u64),
                    };
                    *count += 1;
                    let uplink = topology.uplink(topology.host_node(sending.source));
                    model.hosts.entry((uplink, base)).or_default().push_back(model.packets.len());
                    model.packets.push(Packet {
                        record,
                        destination: topology.host_node(sending.destination),
                        key,
                        flow: sending.flow,
                        base,
                        out: uplink,
                        out_vl: base,
                        ready: 0,
                    });
                }
            }
        }
        for switch in (topology.hosts()..topology.nodes()).map(NodeId) {
            model.allocate(switch, now);
        }
        model.pass(now);
        for link in 0..u32::try_from(topology.links().len()).unwrap() {
            model.send(LinkId(link), now);
        }
        for packet in std::mem::take(&mut model.counting.lost) {
            let (record, at) = (model.packets[packet].record, model.begins(now));
            model.counting.loses(&record, at, &mut open, &mut seen);
        }
        let busy = !model.passing.is_empty() || !model.leaving.is_empty() || !model.frees.is_empty();
        let moved = moves != model.packets.len() + seen.packets.len() + seen.dropped.len() || !model.wires.is_empty();
        idle = if moved || busy { 0 } else { idle + 1 };
        now += 1;
        if idle >= 200
            && let Some((next, _)) = pending.first_key_value()
        {
            // Nothing moves until then.
            now = now.max(model.cycle_from(*next));
        }
    }
    seen.sorted()
}
