//! The fabric `rotor` with detours (`two-hop`, `expander`) beside a slow, plain model: a host a rack, any uplinks. The model looks at every
//! uplink at every instant at which anything happens; every packet leaves and arrives at the same picosecond, over as many switches.

use crate::common::{message, packets};
use crate::rotor::rotor;
use netsim::fabric::packet::PacketFabric;
use netsim::fabric::rotor::{Change, RotorConfig, RotorRouting};
use netsim::kernel::random::{below, draw};
use netsim::kernel::{Place, tie};
use netsim::network::Simulation;
use netsim::time::SimTime;
use proptest::prelude::*;
use std::collections::VecDeque;

/// All packets have one length, so that what does not fit never fits later.
const PAYLOAD: u64 = 1_436;
const PACKET: u64 = 1_500;

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: u64,
    from: usize,
    to: usize,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    from: usize,
    to: usize,
    number: u64,
    left: u64,
    rack: usize,
    towards: usize,
    switches: u32,
    hurries: bool,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    AtTor,
    Crossed,
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Period {
    begin: u64,
    end: u64,
}

struct Uplink {
    free: u64,
    queue: VecDeque<Packet>,
    queue_period: Option<Period>,
    period: Option<Period>,
    sent: u64,
}

struct Plain<'a> {
    config: &'a RotorConfig,
    /// Switch, rack, instant: the other rack.
    joined: &'a dyn Fn(usize, usize, u64) -> Option<usize>,
    racks: usize,
    now: u64,
    events: Vec<(u64, u64, u64, Event, Packet)>,
    scheduled: u64,
    bulk: Vec<Vec<VecDeque<Packet>>>,
    hurrying: Vec<VecDeque<Packet>>,
    numbers: Vec<u64>,
    rack_turn: Vec<usize>,
    up_free: Vec<u64>,
    down_free: Vec<u64>,
    transit: Vec<Vec<VecDeque<Packet>>>,
    uplinks: Vec<Uplink>,
    arrived: Vec<(u64, u64, usize, u64, u32)>,
}

enum Found {
    Queue,
    Transit,
    Host(usize),
}

impl Plain<'_> {
    fn host_time(&self) -> u64 {
        self.config.host_rate.time_ps(PACKET)
    }

    fn lead(&self) -> u64 {
        self.host_time() + self.config.host_delay.ps()
    }

    fn switches(&self) -> usize {
        self.config.uplinks as usize
    }

    /// Switch `j` of `k` changes at slices j, j + k, ...: looked for slice by slice.
    fn period(&self, switch: usize, at: u64) -> Period {
        let slice = self.config.slice.ps();
        let in_turn = self.config.change == Change::InTurn;
        let changes = |number: u64| !in_turn || number % self.switches() as u64 == switch as u64;
        let begin = (0..=at / slice).rev().find(|number| changes(*number)).unwrap_or(0) * slice;
        let end = (at / slice + 1..).find(|number| changes(*number)).unwrap() * slice;
        Period { begin, end }
    }

    /// Until when the last bit of what is sent in it has to leave.
    fn close(&self, period: Period) -> u64 {
        (period.end - self.config.margin.ps()).saturating_sub(self.config.cable_delay.ps())
    }

    /// From when on the first bit may leave.
    fn open(&self, period: Period) -> u64 {
        (period.begin + self.config.guard.ps() + self.config.margin.ps()).saturating_sub(self.config.cable_delay.ps())
    }

    fn current(&self, switch: usize) -> Period {
        let mut period = self.period(switch, self.now);
        while self.close(period) <= self.now {
            period = self.period(switch, period.end);
        }
        period
    }

    fn schedule(&mut self, at: u64, place: usize, event: Event, packet: Packet) {
        let order = tie(SimTime(at), Place(u32::try_from(place).unwrap()));
        self.events.push((at, order, self.scheduled, event, packet));
        self.scheduled += 1;
    }

    fn hand_over(&mut self, sent: &Sent) {
        self.now = sent.at;
        let threshold = match self.config.routing {
            RotorRouting::Expander => self.config.bulk_threshold.unwrap().get(),
            _ => 0,
        };
        for _ in 0..sent.bytes / PAYLOAD {
            let packet = Packet {
                from: sent.from,
                to: sent.to,
                number: self.numbers[sent.from],
                left: 0,
                rack: sent.from,
                towards: sent.from,
                switches: 0,
                hurries: sent.bytes < threshold,
            };
            self.numbers[sent.from] += 1;
            let queues = (&mut self.hurrying[sent.from], &mut self.bulk[sent.from][sent.to]);
            if packet.hurries { queues.0.push_back(packet) } else { queues.1.push_back(packet) }
        }
        self.push(sent.from);
    }

    fn push(&mut self, host: usize) {
        if self.up_free[host] > self.now {
            return;
        }
        if let Some(mut packet) = self.hurrying[host].pop_front() {
            packet.left = self.now;
            self.up_free[host] = self.now + self.host_time();
            self.schedule(self.up_free[host] + self.config.host_delay.ps(), host, Event::AtTor, packet);
        }
    }

    fn at_tor(&mut self, mut packet: Packet) {
        packet.switches += 1;
        if packet.to != packet.rack {
            self.route(packet);
            return;
        }
        let free = &mut self.down_free[packet.to];
        *free = (*free).max(self.now) + self.config.host_rate.time_ps(PACKET);
        let at = *free + self.config.host_delay.ps();
        self.arrived.push((packet.left, at, packet.from, packet.number, packet.switches));
    }

    /// The circuits of a slice: by switch, where it leads from each rack.
    fn circuits(&self, slice: u64) -> Vec<(usize, Vec<Option<usize>>)> {
        let at = slice * self.config.slice.ps();
        let leaves = |switch: usize| {
            let in_turn = self.config.change == Change::InTurn && self.switches() > 1;
            in_turn && self.period(switch, at).end == at + self.config.slice.ps()
        };
        let of = |switch: usize| (0..self.racks).map(|rack| (self.joined)(switch, rack, at)).collect();
        (0..self.switches()).filter(|switch| !leaves(*switch)).map(|switch| (switch, of(switch))).collect()
    }

    fn way(&self, packet: &Packet) -> Option<(usize, Period)> {
        let slice = match self.config.change {
            Change::InTurn => self.now,
            Change::Together => self.current(0).begin,
        } / self.config.slice.ps();
        let circuits = self.circuits(slice);
        // Circuits to the rack, by as many rounds as there are racks.
        let mut far = vec![usize::MAX; self.racks];
        far[packet.to] = 0;
        for _ in 0..self.racks {
            for rack in 0..self.racks {
                for (_, to) in &circuits {
                    let other = to[rack].map_or(usize::MAX, |other| far[other]);
                    far[rack] = far[rack].min(other.saturating_add(1));
                }
            }
        }
        let here = far[packet.rack];
        if here == usize::MAX {
            return None;
        }
        let nearer: Vec<usize> = circuits
            .iter()
            .filter(|(_, to)| to[packet.rack].is_some_and(|other| far[other] < here))
            .map(|(switch, _)| *switch)
            .collect();
        let key = ((packet.from as u64) << 40) + packet.number;
        let drawn = below(draw(self.config.seed, (1 << 33) + packet.rack as u64, key), nearer.len() as u64);
        let switch = nearer[usize::try_from(drawn).unwrap()];
        Some((switch, self.current(switch)))
    }

    fn route(&mut self, packet: Packet) {
        let way = if packet.hurries && packet.switches < 64 { self.way(&packet) } else { None };
        let Some((switch, period)) = way else {
            self.transit[packet.rack][packet.to].push_back(packet);
            return;
        };
        let index = packet.rack * self.switches() + switch;
        if self.uplinks[index].queue_period != Some(period) {
            self.uplinks[index].queue_period = Some(period);
            for over in std::mem::take(&mut self.uplinks[index].queue) {
                self.route(over);
            }
        }
        if self.uplinks[index].queue.len() >= self.config.uplink_queue.map_or(usize::MAX, |limit| limit as usize) {
            self.transit[packet.rack][packet.to].push_back(packet);
        } else {
            self.uplinks[index].queue.push_back(packet);
        }
    }

    fn happen(&mut self, event: Event, mut packet: Packet) {
        match event {
            Event::AtTor => self.at_tor(packet),
            Event::Lost if packet.hurries => self.route(packet),
            Event::Lost => self.transit[packet.rack][packet.to].push_front(packet),
            Event::Crossed => {
                let waits = packet.towards != packet.to && (!packet.hurries || packet.switches >= 64);
                let limit = self.config.transit_queue.map_or(usize::MAX, |limit| limit as usize);
                if waits && self.transit[packet.towards][packet.to].len() >= limit {
                    let at = self.now + 2 * self.config.cable_delay.ps();
                    self.schedule(at, 2 * self.racks + self.uplinks.len() + packet.towards, Event::Lost, packet);
                    return;
                }
                packet.rack = packet.towards;
                packet.switches += 1;
                self.at_tor(packet);
            }
        }
    }

    fn find(&self, rack: usize, uplink: usize, other: usize) -> Option<Found> {
        if !self.uplinks[uplink].queue.is_empty() {
            return Some(Found::Queue);
        }
        if !self.transit[rack][other].is_empty() {
            return Some(Found::Transit);
        }
        if !self.bulk[rack][other].is_empty() {
            return Some(Found::Host(other));
        }
        if self.config.routing != RotorRouting::TwoHop {
            return None;
        }
        let turn = self.rack_turn[rack];
        (0..self.racks)
            .map(|step| (turn + step) % self.racks)
            .find(|to| !self.bulk[rack][*to].is_empty())
            .map(Found::Host)
    }

    /// Has an uplink do what it can at this instant. Returns whether it did something.
    fn act(&mut self, uplink: usize) -> bool {
        let (rack, switch) = (uplink / self.switches(), uplink % self.switches());
        let period = self.current(switch);
        if !self.uplinks[uplink].queue.is_empty() && self.uplinks[uplink].queue_period != Some(period) {
            for over in std::mem::take(&mut self.uplinks[uplink].queue) {
                self.route(over);
            }
            return true;
        }
        let (open, close) = (self.open(period), self.close(period));
        let free = self.uplinks[uplink].free;
        if self.now < open.saturating_sub(self.lead()) || self.now < free.saturating_sub(self.lead()) {
            return false;
        }
        let Some(other) = (self.joined)(switch, rack, period.begin) else { return false };
        let Some(found) = self.find(rack, uplink, other) else { return false };
        let ready = match found {
            Found::Queue | Found::Transit => self.now,
            Found::Host(_) => self.up_free[rack].max(self.now) + self.lead(),
        };
        let starts = ready.max(free).max(open);
        let ends = starts + self.config.uplink_rate.time_ps(PACKET);
        let sent = if self.uplinks[uplink].period == Some(period) { self.uplinks[uplink].sent } else { 0 };
        if ends > close || self.config.budget.is_some_and(|budget| sent + PACKET > budget.get()) {
            return false;
        }
        let state = &mut self.uplinks[uplink];
        (state.period, state.sent, state.free) = (Some(period), sent + PACKET, ends);
        let mut packet = match found {
            Found::Queue => state.queue.pop_front().unwrap(),
            Found::Transit => self.transit[rack][other].pop_front().unwrap(),
            Found::Host(to) => {
                let mut packet = self.bulk[rack][to].pop_front().unwrap();
                if to != other {
                    self.rack_turn[rack] = (to + 1) % self.racks;
                }
                packet.left = self.up_free[rack].max(self.now);
                self.up_free[rack] = packet.left + self.host_time();
                packet.switches = 1;
                packet
            }
        };
        packet.towards = other;
        let cable = self.config.cable_delay.ps();
        // The delay is constant: what comes to the switch before it is over is lost.
        let lost = starts + cable < period.begin + self.config.reconfiguration_delay.draw_ps(0);
        let event = if lost { Event::Lost } else { Event::Crossed };
        self.schedule(ends + 2 * cable, 2 * self.racks + uplink, event, packet);
        true
    }

    /// The first instant from `self.now` on, but for `now` itself, at which something could be different.
    fn next(&self, sends: Option<&Sent>) -> Option<u64> {
        let mut times: Vec<u64> = self.events.iter().map(|event| event.0).collect();
        times.extend(sends.map(|sent| sent.at));
        let waits = |host: &usize| !self.hurrying[*host].is_empty();
        times.extend((0..self.racks).filter(waits).map(|host| self.up_free[host]));
        let any = |queues: &Vec<Vec<VecDeque<Packet>>>| queues.iter().flatten().any(|queue| !queue.is_empty());
        if any(&self.bulk) || any(&self.transit) || self.uplinks.iter().any(|uplink| !uplink.queue.is_empty()) {
            for (index, uplink) in self.uplinks.iter().enumerate() {
                let switch = index % self.switches();
                let period = self.current(switch);
                let behind = self.period(switch, period.end);
                times.push(uplink.free.saturating_sub(self.lead()));
                for one in [period, behind] {
                    times.push(self.open(one).saturating_sub(self.lead()));
                    times.push(self.close(one));
                }
            }
        }
        times.into_iter().filter(|at| *at > self.now).min()
    }

    fn run(mut self, sends: &[Sent]) -> Vec<(u64, u64, usize, u64, u32)> {
        let mut left = sends.iter().peekable();
        loop {
            while let Some(sent) = left.next_if(|sent| sent.at <= self.now) {
                self.hand_over(sent);
            }
            // What arrives, in the kernel's order of places, then those who send without waiting, then uplinks.
            while let Some(first) = (0..self.events.len())
                .filter(|index| self.events[*index].0 == self.now)
                .min_by_key(|index| (self.events[*index].1, self.events[*index].2))
            {
                let (_, _, _, event, packet) = self.events.remove(first);
                self.happen(event, packet);
            }
            (0..self.racks).for_each(|host| self.push(host));
            let mut order: Vec<usize> = (0..self.uplinks.len()).collect();
            let place = |uplink: usize| Place(u32::try_from(2 * self.racks + uplink).unwrap());
            order.sort_by_key(|uplink| tie(SimTime(self.now), place(*uplink)));
            while order.iter().any(|uplink| self.act(*uplink)) {}
            let Some(next) = self.next(left.peek().copied()) else { return self.arrived };
            self.now = next;
        }
    }
}

fn plain(
    config: &RotorConfig,
    joined: &dyn Fn(usize, usize, u64) -> Option<usize>,
    racks: usize,
    sends: &[Sent],
) -> Vec<(u64, u64, usize, u64, u32)> {
    let uplink = || Uplink { free: 0, queue: VecDeque::new(), queue_period: None, period: None, sent: 0 };
    let model = Plain {
        config,
        joined,
        racks,
        now: 0,
        events: Vec::new(),
        scheduled: 0,
        bulk: vec![vec![VecDeque::new(); racks]; racks],
        hurrying: vec![VecDeque::new(); racks],
        numbers: vec![0; racks],
        rack_turn: vec![0; racks],
        up_free: vec![0; racks],
        down_free: vec![0; racks],
        transit: vec![vec![VecDeque::new(); racks]; racks],
        uplinks: (0..racks * config.uplinks as usize).map(|_| uplink()).collect(),
        arrived: Vec::new(),
    };
    model.run(sends)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn packets_on_detours_leave_and_arrive_when_the_plain_model_says(
        shape in (2..8usize, 1..4u32, any::<bool>(), 0..3usize),
        times in (20..60u64, 0..4u64, 0..4u64, 0..2u64, 0..300u64, 0..2_000u64),
        rates in (4..40u64, 4..40u64),
        limits in (prop::option::of(1..5u32), prop::option::of(2..12u64)),
        seed in any::<u64>(),
        sends in prop::collection::vec((0..8usize, 0..8usize, 1..12u64, 0..60_000u64), 1..20),
    ) {
        let (racks, uplinks, in_turn, routing) = shape;
        let (slice, guard, slower, margin, cable, host_delay) = times;
        let name = ["direct", "two-hop", "expander"][routing];
        let mut text = format!(
            "slice = \"{slice}us\"\nguard = \"{guard}us\"\nreconfiguration_delay = \"{}us\"\nmargin = \"{margin}us\"\n\
             cable_delay = \"{cable}ns\"\nhost_delay = \"{host_delay}ns\"\nhost_rate = \"{}Gbps\"\nuplink_rate = \"{}Gbps\"\n\
             seed = {}\nuplinks = {uplinks}\nchange = \"{}\"\nrouting = \"{name}\"\n",
            guard + slower, rates.0, rates.1, seed >> 1, if in_turn { "in-turn" } else { "together" },
        );
        let (queue, budget) = limits;
        if let Some(limit) = queue {
            text += &[String::new(), format!("transit_queue = {limit}\n"), format!("uplink_queue = {limit}\n")][routing];
        }
        if name == "expander" {
            text += "bulk_threshold = \"6kB\"\n";
        }
        if let Some(packets) = budget {
            text += &format!("budget = \"{}B\"\n", packets * PACKET);
        }
        let config: RotorConfig = text.parse().unwrap();
        let hosts = crate::common::lab(racks, 1);
        let fits = netsim::fabric::rotor::Rotor::new(&config, &hosts, ()).is_ok();
        prop_assume!(fits);
        let mut network = rotor(&config, racks, 1);
        let mut list = Vec::new();
        let mut at = 0;
        for (from, step, number, gap_ns) in sends {
            at += gap_ns * 1_000 + 1;
            let from = from % racks;
            let to = (from + 1 + step % (racks - 1)) % racks;
            let bytes = number * PAYLOAD;
            network.run_before(SimTime(at));
            let [from32, to32] = [from, to].map(|host| u32::try_from(host).unwrap());
            network.send(SimTime(at), &message(from32, to32, bytes, 0));
            list.push(Sent { at, from, to, bytes });
        }
        let mut got: Vec<_> = packets(&mut network)
            .iter()
            .map(|packet| (packet.left.0, packet.arrived.0, packet.source.0 as usize, packet.number, packet.switches))
            .collect();
        let joined = |switch: usize, rack: usize, at: u64| {
            let [switch, rack] = [switch, rack].map(|index| u32::try_from(index).unwrap());
            network.joined(switch, rack, SimTime(at)).map(|other| other as usize)
        };
        let mut wanted = plain(&config, &joined, racks, &list);
        got.sort_unstable();
        wanted.sort_unstable();
        prop_assert_eq!(got, wanted);
    }
}
