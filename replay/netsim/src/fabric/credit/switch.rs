//! What happens in an instant behind the choices: links arbitrate, packets start and arrive.

use super::arbiter::Given;
use super::lanes::Return;
use super::{Credit, Event, NO_MASKS, Packet};
use crate::fabric::ids::{LaneId, PacketId};
use crate::fabric::messages::{NUMBER, key};
use crate::fabric::packet::{Observer, PacketRecord};
use crate::network::Delivery;
use crate::time::SimTime;
use crate::topology::{LinkId, NodeId};

impl<O: Observer> Credit<O> {
    /// The head of `queue` is ready: its link has to look, as soon as it is free.
    pub(super) fn ask(&mut self, queue: LaneId, now: SimTime) {
        let lane = self.lanes.lanes[queue].chosen;
        let (link, vl) = (self.number.link(lane), self.number.vl(lane));
        let slot = self.links[self.number.link(queue)].slot;
        let bit = if self.classes == 1 { slot } else { slot * self.classes + self.number.vl(queue) % self.classes };
        let state = &mut self.links[link];
        state.asking |= 1 << vl;
        if state.masks == NO_MASKS {
            self.lanes.lanes[lane].mask |= 1 << bit;
        } else {
            self.masks[(state.masks + vl * u32::from(state.words) + bit / 64) as usize] |= 1 << (bit % 64);
        }
        let free_at = state.free_at;
        if free_at > now.0 {
            self.wake(link, free_at);
        } else {
            self.look(link);
        }
    }

    /// The queue whose bit is `bit` in the masks of VL `vl` of a link whose sender's inputs begin at `inputs`.
    fn queue_of(&self, inputs: u32, vl: u32, bit: u32) -> LaneId {
        if self.classes == 1 {
            return self.number.lane(self.inputs[(inputs + bit) as usize], vl);
        }
        let input = self.inputs[(inputs + bit / self.classes) as usize];
        self.number.lane(input, vl / self.classes * self.classes + bit % self.classes)
    }

    /// How many credits the packet must find that host `node` sends next on VL `vl`.
    fn host_need(&self, node: u32, vl: u32) -> u32 {
        let next = self.messages.peek(self.number.queue(NodeId(node), vl));
        next.map_or(u32::MAX, |(bytes, _)| self.sizes.of(bytes).1.into())
    }

    /// The credits that the packet must find whose queue has bit `bit` of those that ask for `id` and `vl`.
    #[inline]
    fn need(&self, id: LinkId, vl: u32, bit: u32) -> u32 {
        let link = &self.links[id];
        if link.from_host {
            return self.host_need(link.inputs, vl);
        }
        self.lanes.lanes[self.queue_of(link.inputs, vl, bit)].need
    }

    /// The bit of the first queue, in the order of arbitration, that asks for `id` and `vl` and finds its credits; or
    /// how many credits have to be there until one of them does.
    #[inline]
    fn first_asking(&mut self, id: LinkId, vl: u32, now: SimTime) -> Result<u32, u32> {
        let lane = self.number.lane(id, vl);
        let state = &self.lanes.lanes[lane];
        let mask = state.mask;
        if mask == 0 {
            return self.first_of_many(id, vl, now);
        }
        let mut least = u32::MAX;
        let later = mask & (u64::MAX << state.begin);
        for mut bits in [later, mask & !later] {
            while bits != 0 {
                let bit = bits.trailing_zeros();
                let need = self.need(id, vl, bit);
                // What is not there for one is not there for another that needs as much.
                if need < least {
                    if self.lanes.has(lane, need, now.0) {
                        return Ok(bit);
                    }
                    least = need;
                }
                bits &= bits - 1;
            }
        }
        Err(least)
    }

    /// The same where a mask has several words.
    fn first_of_many(&mut self, id: LinkId, vl: u32, now: SimTime) -> Result<u32, u32> {
        let lane = self.number.lane(id, vl);
        let (base, words) = (self.links[id].masks, u32::from(self.links[id].words));
        let begin = u32::from(self.lanes.lanes[lane].begin);
        let mut word = begin / 64;
        let mut least = u32::MAX;
        // Once around, and the first word again for what lies before the begin.
        for round in 0..=words {
            let mut bits = self.masks[(base + vl * words + word) as usize];
            if round == 0 {
                bits &= u64::MAX << (begin % 64);
            } else if round == words {
                bits &= !(u64::MAX << (begin % 64));
            }
            while bits != 0 {
                let bit = word * 64 + bits.trailing_zeros();
                let need = self.need(id, vl, bit);
                if need < least {
                    if self.lanes.has(lane, need, now.0) {
                        return Ok(bit);
                    }
                    least = need;
                }
                bits &= bits - 1;
            }
            word = if word + 1 == words { 0 } else { word + 1 };
        }
        Err(least)
    }

    /// Starts one of the packets that ask for `link`, if it is free and credits are there; else has it look again when
    /// that may be.
    pub(super) fn arbitrate(&mut self, link: LinkId, now: SimTime) {
        let state = &self.links[link];
        let (asking, free_at) = (state.asking, state.free_at);
        if asking == 0 {
            return;
        }
        if free_at > now.0 {
            self.wake(link, free_at);
            return;
        }
        if asking & (asking - 1) == 0 {
            // One VL only: there is nothing to choose, but the tables have to know.
            let vl = asking.trailing_zeros();
            match self.first_asking(link, vl, now) {
                Ok(bit) => self.take(link, asking, bit, now),
                Err(least) => self.wait_for(self.number.lane(link, vl), least),
            }
            return;
        }
        let mut may = 0u16;
        let mut found = [0u32; 16];
        let mut vls = asking;
        while vls != 0 {
            let vl = vls.trailing_zeros();
            vls &= vls - 1;
            match self.first_asking(link, vl, now) {
                Ok(bit) => {
                    may |= 1 << vl;
                    found[vl as usize] = bit;
                }
                Err(least) => found[vl as usize] = least,
            }
        }
        if may == 0 {
            let mut vls = asking;
            while vls != 0 {
                let vl = vls.trailing_zeros();
                vls &= vls - 1;
                self.wait_for(self.number.lane(link, vl), found[vl as usize]);
            }
            return;
        }
        let state = &mut self.links[link];
        let given = self.tables.give(&mut state.turns, may, free_at < now.0);
        self.begin(link, given, found[usize::from(given.vl)], now);
    }

    /// Starts the packet with bit `bit` on `link`, the only one of the VLs of `may`.
    #[inline]
    fn take(&mut self, link: LinkId, may: u16, bit: u32, now: SimTime) {
        let state = &mut self.links[link];
        let given = self.tables.give(&mut state.turns, may, state.free_at < now.0);
        self.begin(link, given, bit, now);
    }

    /// Starts the packet with bit `bit` of the VL that was given the turn.
    fn begin(&mut self, link: LinkId, given: Given, bit: u32, now: SimTime) {
        let vl = u32::from(given.vl);
        let started = if self.links[link].from_host {
            self.leave_host(link, vl, now)
        } else {
            self.leave_queue(link, vl, bit, now)
        };
        let Some((flits, credits)) = started else { return };
        let bytes = u32::try_from(u64::from(flits) * self.flit).unwrap_or(u32::MAX);
        self.tables.started(&mut self.links[link].turns, given, credits.into(), bytes);
    }

    /// Has `link` look again at `at`, unless it will earlier.
    pub(super) fn wake(&mut self, link: LinkId, at: u64) {
        let state = &mut self.links[link];
        if at < state.wake {
            state.wake = at;
            self.events.schedule(at, Event::Link(link));
        }
    }

    /// Has the link of `lane` look again when `need` credits will be there, or when that is decided.
    fn wait_for(&mut self, lane: LaneId, need: u32) {
        let at = self.lanes.when(lane, need);
        self.lanes.lanes[lane].wanted = if at.is_some() { 0 } else { need };
        if let Some(at) = at {
            self.wake(self.number.link(lane), at);
        }
    }

    /// The first packet of a host's queue starts on the host's link. Returns its flits and credits.
    fn leave_host(&mut self, link: LinkId, vl: u32, now: SimTime) -> Option<(u16, u16)> {
        let node = self.links[link].inputs;
        let queue = self.number.queue(NodeId(node), vl);
        let cut = self.messages.cut(queue)?;
        if self.messages.is_empty(queue) {
            self.links[link].asking &= !(1 << vl);
            self.lanes.lanes[self.number.lane(link, vl)].mask = 0;
        }
        let message = self.messages.get(cut.message);
        let (flits, credits) = self.sizes.of(cut.bytes);
        let packet = Packet {
            next: PacketId::NONE,
            message: cut.message,
            destination: self.topology.host_node(message.destination.0),
            flits,
            credits,
            first: 0,
            last: 0,
            left: now.0,
            key: key(message.source, cut.number),
            flow: message.flow,
            bytes: cut.bytes,
            switches: 0,
            base: u8::try_from(vl).unwrap_or(0),
        };
        let id = self.packets.insert(packet);
        self.start(id, link, vl, now);
        let state = &self.links[link];
        if state.asking != 0 {
            self.wake(link, state.free_at);
        }
        Some((flits, credits))
    }

    /// The head of a switch's queue, the one whose bit is `bit`, starts on `link`. Returns its flits and credits.
    fn leave_queue(&mut self, link: LinkId, vl: u32, bit: u32, now: SimTime) -> Option<(u16, u16)> {
        let lane = self.number.lane(link, vl);
        let state = &mut self.links[link];
        let out = &mut self.lanes.lanes[lane];
        let words = u32::from(state.words);
        let nobody = if state.masks == NO_MASKS {
            out.mask &= !(1 << bit);
            out.mask == 0
        } else {
            let base = (state.masks + vl * words) as usize;
            self.masks[base + bit as usize / 64] &= !(1 << (bit % 64));
            self.masks[base..base + words as usize].iter().all(|word| *word == 0)
        };
        if nobody {
            state.asking &= !(1 << vl);
        }
        // One behind the last of all is no bit of the mask: the search then begins at the first.
        out.begin = if bit + 1 < words * 64 { u16::try_from(bit + 1).unwrap_or(0) } else { 0 };
        let inputs = state.inputs;
        let queue = self.queue_of(inputs, vl, bit);
        let id = self.lanes.lanes[queue].first;
        let packet = self.packets.get_mut(id);
        packet.switches += 1;
        let (next, flits, credits) = (packet.next, packet.flits, packet.credits);
        packet.next = PacketId::NONE;
        if self.adaptive {
            self.lanes.disclaim(lane, credits.into());
        }
        let (rest, ended) = self.start(id, link, vl, now);

        let waiting = &mut self.lanes.lanes[queue];
        waiting.drained = ended;
        waiting.held -= u32::from(credits);
        waiting.first = next;
        let state = &mut self.links[link];
        let (asking, free_at) = (state.asking, state.free_at);
        if next == PacketId::NONE {
            waiting.last = PacketId::NONE;
            if asking != 0 {
                self.wake(link, free_at);
            }
        } else {
            let at = self.head_at(next).max(ended);
            // One event is enough for both: the next packet is there already, and the link goes on at once.
            if asking != 0 && at == free_at && at < self.links[link].wake {
                self.links[link].wake = at;
                self.events.schedule(at, Event::HeadAndLink(queue));
            } else {
                self.events.schedule(at, Event::Head(queue));
                if asking != 0 {
                    self.wake(link, free_at);
                }
            }
        }
        let timing = self.lanes.wire_of[link];
        self.gives_back(queue, Return::new(timing, now.0, ended, rest, flits, credits), now);
        Some((flits, credits))
    }

    /// A packet starts to leave the buffer of `lane`; whoever waits for its credits is told when they will be there.
    fn gives_back(&mut self, lane: LaneId, leaving: Return, now: SimTime) {
        self.lanes.give_back(lane, leaving);
        let wanted = self.lanes.lanes[lane].wanted;
        if wanted > 0 {
            if self.undecided.is_some() {
                self.lanes.lanes[lane].wanted = 0;
                self.wait_for_room(lane, wanted);
                return;
            }
            // A link that is busy looks anyway when it is free.
            if self.links[self.number.link(lane)].free_at <= now.0 {
                self.wait_for(lane, wanted);
            } else {
                self.lanes.lanes[lane].wanted = 0;
            }
        }
    }

    /// The earliest instant at which a packet at the head of its queue goes on.
    fn head_at(&self, packet: PacketId) -> u64 {
        let packet = self.packets.get(packet);
        let arrived = if self.whole && !self.adaptive { packet.last } else { packet.first };
        arrived + self.switch_delay
    }

    /// Packet `id` starts on `link` and `vl`. Returns the remainder with which the link started, and when its last flit
    /// will have left.
    fn start(&mut self, id: PacketId, link: LinkId, vl: u32, now: SimTime) -> (u64, u64) {
        let lane = self.number.lane(link, vl);
        let number = self.lanes.wire_of[link];
        let timing = &self.lanes.timings[usize::from(number)];
        let state = &mut self.links[link];
        let rest = if state.free_at == now.0 { state.remainder } else { 0 };
        let packet = self.packets.get_mut(id);
        let (flits, credits, bytes) = (packet.flits, packet.credits, packet.bytes);
        let (time, remainder) = timing.packet(flits.into(), rest);
        let (ended, delay) = (now.0 + time, timing.delay);
        packet.first = now.0 + timing.first(rest) + delay;
        packet.last = ended + delay;
        let at = if self.whole && !self.adaptive { packet.last } else { packet.first } + self.switch_delay;
        state.free_at = ended + self.packet_gap;
        state.remainder = remainder;
        let to_host = state.to_host;
        self.traffic[link].crossed(now, bytes, self.interval_ps, &mut self.meters, link);
        let queue = &mut self.lanes.lanes[lane];
        queue.free -= u32::from(credits);
        let sum = queue.flits.overflowing_add(flits.into());
        queue.flits = sum.0;
        if sum.1 {
            self.lanes.overflows[lane] += 1;
        }
        let queue = &mut self.lanes.lanes[lane];
        if to_host {
            self.events.schedule(ended + delay, Event::Deliver(id));
            let leaving = Return::new(number, now.0 + delay, ended + delay, rest, flits, credits);
            self.gives_back(lane, leaving, now);
            return (rest, ended);
        }
        queue.held += u32::from(credits);
        queue.held_most = queue.held_most.max(queue.held);
        if queue.first == PacketId::NONE {
            queue.first = id;
            queue.last = id;
            let at = at.max(queue.drained);
            self.events.schedule(at, Event::Head(lane));
        } else {
            let last = queue.last;
            queue.last = id;
            self.packets.get_mut(last).next = id;
        }
        (rest, ended)
    }

    /// A packet has arrived at its host.
    pub(super) fn deliver(&mut self, id: PacketId, now: SimTime, deliveries: &mut Vec<Delivery>) {
        let packet = self.packets.remove(id);
        let message = self.messages.get(packet.message);
        let record = PacketRecord {
            handed_over: message.handed_over,
            left: SimTime(packet.left),
            arrived: now,
            source: message.source,
            destination: message.destination,
            number: packet.key & NUMBER,
            bytes: packet.bytes,
            flits: packet.flits.into(),
            switches: packet.switches.into(),
            token: message.token,
        };
        self.delivered += 1;
        self.observer.delivered(&record);
        if let Some(token) = self.messages.arrived(packet.message) {
            deliveries.push(Delivery { token, at: now });
        }
    }
}
