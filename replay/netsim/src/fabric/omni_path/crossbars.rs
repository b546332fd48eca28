//! The two crossbars of a switch: what asks, who is granted, and the packets that pass.

use super::OmniPath;
use super::config::Retry;
use super::state::{Event, Request, Target, WritePort};
use crate::fabric::cycle::Cycle;
use crate::fabric::ids::{PacketId, UnitId};
use crate::fabric::packet::Observer;
use crate::routing::Choice;
use crate::topology::LinkId;

/// How many cycles behind its first flit's coming a packet passes at the earliest, so that none of its flits passes before it has
/// come: so many of them come in a cycle, and so many pass.
fn lag(flits: u32, come: u32, pass: u32) -> u32 {
    // Where fewer come than pass, the most lies among the last that pass together.
    let last = flits.saturating_sub(pass)..flits;
    last.map(|flit| (flit / come).saturating_sub(flit / pass)).max().unwrap_or(0)
}

impl<O: Observer> OmniPath<O> {
    /// The header of a packet begins to arrive at a switch, over `link`.
    pub(super) fn header(&mut self, id: PacketId, link: LinkId, now: Cycle) {
        let at = self.topology.link(link).to;
        let packet = *self.packets.get(id);
        let next = self.routes.next(at, link, packet.destination);
        let source = self.topology.host_node((packet.key >> 40) as u32);
        let choice = self.routes.choose(next.links.len(), at, packet.key, packet.flow, source, packet.destination);
        // Routings that choose by credits are refused.
        let index = if let Choice::Index(index) = choice { index } else { 0 };
        let Some(out) = next.links.get(index).or_else(|| next.links.first()).copied() else { return };
        let stages = self.config.latency;
        let stages = stages.input + stages.routing + stages.allocation;
        let lag = lag(packet.flits, 1, self.config.group_speedup);
        let unit = self.layout.input(link);
        let state = self.packets.get_mut(id);
        state.out = out;
        state.out_vl = packet.base + next.class;
        state.switches += 1;
        state.ready = now.plus(stages.max(lag));
        let ready = state.ready;
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.enters(usize::from(link) * self.vls + usize::from(packet.vl), now.0, now.0);
        }
        let lane = self.lane(unit, packet.vl);
        if self.asking[lane].push(id, &mut self.packets) {
            self.wake_unit(unit, ready);
        }
    }

    fn lane(&self, unit: UnitId, vl: u8) -> usize {
        usize::from(unit) * self.vls + usize::from(vl)
    }

    /// Has `unit` ask at `at`, when it is free, unless it does so earlier.
    fn wake_unit(&mut self, unit: UnitId, at: Cycle) {
        let state = &mut self.units[unit];
        let at = at.max(state.free_at);
        if at < state.wake {
            state.wake = at;
            self.schedule(at, Event::Ask(unit));
        }
    }

    /// The event for which `unit` waited, unless it has found out since that it should wait for another one.
    pub(super) fn woken(&mut self, unit: UnitId, now: Cycle) {
        let state = &mut self.units[unit];
        if state.wake == now {
            state.wake = Cycle::NEVER;
            match state.free_at {
                // A packet has passed since.
                free_at if free_at > now => self.wake_unit(unit, free_at),
                _ => self.asked.push(unit),
            }
        }
    }

    /// Makes the requests of the cycle and grants them.
    pub(super) fn allocate(&mut self, now: Cycle) {
        if self.asked.is_empty() {
            return;
        }
        let mut asked = std::mem::take(&mut self.asked);
        let mut requests = std::mem::take(&mut self.requests);
        requests.extend(asked.iter().filter_map(|unit| self.request(*unit, now)));
        requests.sort_unstable_by_key(|request| (request.target, request.unit));
        for same in requests.chunk_by(|one, other| one.target == other.target) {
            let granted = self.grant(same, now);
            for request in same {
                if Some(request.unit) == granted {
                    self.pass(request, now);
                } else {
                    let wait = match self.config.retry {
                        Retry::Allocation => self.config.latency.allocation,
                        Retry::Cycle => 1,
                    };
                    self.packets.get_mut(request.packet).ready = now.plus(wait);
                }
            }
        }
        requests.clear();
        self.requests = requests;
        for unit in asked.drain(..) {
            let lanes = self.lane(unit, 0)..self.lane(unit, 0) + self.vls;
            let heads = self.asking[lanes].iter().filter(|queue| queue.first != PacketId::NONE);
            if let Some(ready) = heads.map(|queue| self.packets.get(queue.first).ready).min() {
                self.wake_unit(unit, ready.max(now.plus(1)));
            }
        }
        self.asked = asked;
    }

    /// What `unit` asks for: for the next of its VLs whose head may ask.
    fn request(&mut self, unit: UnitId, now: Cycle) -> Option<Request> {
        let (vls, turn) = (self.config.vls, self.units[unit].turn);
        let (queue_vl, id) = (0..vls).map(|step| (turn + step) % vls).find_map(|vl| {
            let id = self.asking[self.lane(unit, vl)].first;
            (id != PacketId::NONE && self.packets.get(id).ready <= now).then_some((vl, id))
        })?;
        self.units[unit].turn = (queue_vl + 1) % vls;
        let packet = *self.packets.get(id);
        let target = match self.layout.input_port(unit) {
            Some(port) if !self.layout.same_group(port, packet.out) => {
                let first = self.layout.first_central(unit);
                let number = self.layout.central(unit, packet.out, packet.key).unwrap_or_else(|| {
                    let free = (0..self.layout.central_links).find(|number| {
                        let link = UnitId(first.0 + number);
                        let room = self.central_spaces.has_room(link.into(), packet.out_vl, packet.credits);
                        room && self.central_ports[link].free_at <= now
                    });
                    free.unwrap_or_else(|| self.layout.by_output(packet.out))
                });
                Target::Central(UnitId(first.0 + number))
            }
            _ => Target::Output(packet.out),
        };
        Some(Request { target, unit, queue_vl, packet: id })
    }

    /// Which of the units that ask for one target is granted it.
    fn grant(&self, requests: &[Request], now: Cycle) -> Option<UnitId> {
        let (port, space, place) = match requests.first()?.target {
            Target::Central(unit) => (self.central_ports[unit], &self.central_spaces, usize::from(unit)),
            Target::Output(link) => (self.output_ports[link], &self.output_spaces, usize::from(link)),
        };
        if port.free_at > now {
            return None;
        }
        let units = self.layout.units_of_switch();
        let may = requests.iter().filter(|request| {
            let packet = self.packets.get(request.packet);
            space.has_room(place, packet.out_vl, packet.credits)
        });
        may.map(|request| request.unit).min_by_key(|unit| (self.layout.local(*unit) + units - port.turn) % units)
    }

    /// A packet passes from its unit to its target.
    fn pass(&mut self, request: &Request, now: Cycle) {
        let Request { target, unit, queue_vl, packet: id } = *request;
        let lane = self.lane(unit, queue_vl);
        self.asking[lane].pop(&self.packets);
        let packet = *self.packets.get(id);
        let is_input = self.layout.input_port(unit).is_some();
        let speedup = if is_input { self.config.group_speedup } else { self.config.central_speedup };
        let until = now.plus(packet.flits.div_ceil(speedup));
        self.units[unit].free_at = until;
        if is_input {
            let link = self.layout.link_into(unit);
            if let Some(occupancy) = &mut self.occupancy {
                occupancy.leaves(usize::from(link) * self.vls + usize::from(packet.vl), now.0, until.0);
            }
            let back = self.delays[LinkId(link.0 ^ 1)];
            self.schedule(until.plus(back), Event::Credits(link, packet.vl, packet.credits));
        } else {
            self.schedule(until, Event::FromCentral(unit, packet.out_vl, packet.credits));
        }
        let turn = (self.layout.local(unit) + 1) % self.layout.units_of_switch();
        let written = WritePort { free_at: until, turn };
        let first = now.plus(self.config.latency.crossbar);
        match target {
            Target::Central(central) => {
                self.central_ports[central] = written;
                self.central_spaces.take(central.into(), packet.out_vl, packet.credits);
                let lag = lag(packet.flits, speedup, self.config.central_speedup);
                let ready = first.plus(self.config.latency.allocation.max(lag));
                self.packets.get_mut(id).ready = ready;
                let lane = self.lane(central, packet.out_vl);
                if self.asking[lane].push(id, &mut self.packets) {
                    self.wake_unit(central, ready);
                }
            }
            Target::Output(link) => {
                self.output_ports[link] = written;
                self.output_spaces.take(link.into(), packet.out_vl, packet.credits);
                self.queued(link, now);
                let ready = first.plus(self.config.latency.output);
                self.packets.get_mut(id).ready = ready;
                let lane = usize::from(link) * self.vls + usize::from(packet.out_vl);
                if self.outputs[lane].push(id, &mut self.packets) {
                    self.wake(link, ready);
                }
            }
        }
    }
}
