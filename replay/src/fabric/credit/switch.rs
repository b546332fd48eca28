//! What happens in an instant: heads choose, links arbitrate, packets start and arrive.

use super::credits::Credits;
use super::{Credit, Event, Packet, sizes};
use crate::fabric::messages::{NONE, NUMBER, key};
use crate::fabric::packet::{Observer, PacketRecord};
use crate::network::{Delivery, SimTime};
use crate::routing::Choice;
use crate::topology::{LinkId, NodeId};

impl<O: Observer> Credit<O> {
    /// The head of `queue` goes on: a link is chosen.
    pub(super) fn head(&mut self, queue: u32, now: SimTime) {
        if self.adaptive {
            self.choosing.push(queue);
            return;
        }
        let came = queue / self.vls;
        let at = self.topology.link(LinkId(came)).to;
        let packet = self.packets.get(self.queues[queue as usize].first);
        let destination = NodeId(packet.destination);
        let next = self.routes.next(at, LinkId(came), destination);
        let mut position = 0;
        if next.links.len() > 1 {
            let source = self.topology.host_node((packet.key >> 40) as u32);
            match self.routes.choose(next.links.len(), at, packet.key, packet.flow, source, destination) {
                Choice::Index(index) => position = index,
                // Only `adaptive` leaves it to the switch.
                Choice::ByCredits => {}
            }
        }
        let Some(link) = next.links.get(position).copied() else { return };
        let (class, enters_ring) = (next.class, next.enters_ring);
        self.chosen(queue, link.0, class, enters_ring, now);
    }

    /// The heads of an instant choose, those of a switch one after the other.
    pub(super) fn choose_all(&mut self, now: SimTime) {
        let mut choosing = std::mem::take(&mut self.choosing);
        choosing.sort_by_cached_key(|queue| self.place_in_choice(*queue, now));
        for queue in choosing.drain(..) {
            self.choose(queue, now);
        }
        self.choosing = choosing;
    }

    /// A switch, and a queue's place in the order in which its heads choose at `now`.
    fn place_in_choice(&self, queue: u32, now: SimTime) -> (u32, u64) {
        let (came, vl) = (queue / self.vls, queue % self.vls);
        let at = self.topology.link(LinkId(came)).to;
        // A switch has as many links that end as links that begin.
        let queues = self.topology.out(at).len() as u64 * u64::from(self.vls);
        let number = u64::from(self.links[came as usize].slot * self.vls + vl);
        let start = crate::kernel::random::draw(self.seed, u64::from(at.0), (1 << 63) + now.0) % queues;
        (at.0, (number + queues - start - 1) % queues)
    }

    /// The head of `queue` chooses the link with the most credits that nobody has in mind.
    fn choose(&mut self, queue: u32, now: SimTime) {
        let came = queue / self.vls;
        let at = self.topology.link(LinkId(came)).to;
        let packet = self.packets.get(self.queues[queue as usize].first);
        let next = self.routes.next(at, LinkId(came), NodeId(packet.destination));
        let vl = u32::from(packet.base) + u32::from(next.class);
        let mut most = i64::MIN;
        let mut several = 0u64;
        for link in next.links {
            let free = self.credits.unclaimed(link.0 * self.vls + vl, now.0);
            if free > most {
                (most, several) = (free, 1);
            } else if free == most {
                several += 1;
            }
        }
        let Some(first) = next.links.first() else { return };
        let mut link = *first;
        if next.links.len() > 1 {
            let mut position = 0;
            if several > 1 {
                position = crate::kernel::random::draw(self.seed, u64::from(at.0), packet.key) % several;
            }
            for candidate in next.links {
                if self.credits.unclaimed(candidate.0 * self.vls + vl, now.0) == most {
                    if position == 0 {
                        link = *candidate;
                        break;
                    }
                    position -= 1;
                }
            }
        }
        let (class, enters_ring, credits) = (next.class, next.enters_ring, u32::from(packet.credits));
        self.credits.accounts[(link.0 * self.vls + vl) as usize].chosen += credits;
        self.chosen(queue, link.0, class, enters_ring, now);
    }

    /// The head of `queue` has chosen `link`: it asks for it when it is ready.
    fn chosen(&mut self, queue: u32, link: u32, class: u8, enters_ring: bool, now: SimTime) {
        let came = queue / self.vls;
        let state = &mut self.queues[queue as usize];
        let packet = self.packets.get(state.first);
        state.lane = link * self.vls + u32::from(packet.base) + u32::from(class);
        state.need = if enters_ring { 2 * self.mtu_credits } else { packet.credits.into() };
        let wires = &self.credits.wires;
        if self.whole || wires[link as usize].faster_than(&wires[came as usize]) {
            let ready = packet.last + self.switch_delay;
            if ready > now.0 {
                self.schedule(ready, came, Event::Ask(queue));
                return;
            }
        }
        self.ask(queue);
    }

    /// The head of `queue` is ready: its link has to look.
    pub(super) fn ask(&mut self, queue: u32) {
        let lane = self.queues[queue as usize].lane;
        let (link, vl) = (lane / self.vls, lane % self.vls);
        let bit = self.links[(queue / self.vls) as usize].slot * self.classes + (queue % self.vls) % self.classes;
        let state = &mut self.links[link as usize];
        state.asking |= 1 << vl;
        self.masks[(state.masks + vl * u32::from(state.words) + bit / 64) as usize] |= 1 << (bit % 64);
        self.look(link);
    }

    /// The queue whose bit is `bit` in the masks of VL `vl` of a link whose sender's inputs begin at `inputs`.
    fn queue_of(&self, inputs: u32, vl: u32, bit: u32) -> u32 {
        if self.classes == 1 {
            return self.inputs[(inputs + bit) as usize] * self.vls + vl;
        }
        let input = self.inputs[(inputs + bit / self.classes) as usize];
        input * self.vls + vl / self.classes * self.classes + bit % self.classes
    }

    /// How many credits the packet must find that host `node` sends next on VL `vl`.
    fn host_need(&self, node: u32, vl: u32) -> u32 {
        let next = self.messages.peek((node * self.vls + vl) as usize);
        next.map_or(u32::MAX, |(bytes, _)| u32::from(sizes(bytes.into(), self.flit).1))
    }

    /// Visits the queues that ask for `link` and `vl`, in the order of arbitration, until `visit` returns true: the bit
    /// of that queue.
    fn find_asking(&mut self, link: u32, vl: u32, mut visit: impl FnMut(&mut Self, u32) -> bool) -> Option<u32> {
        let state = &self.links[link as usize];
        let (inputs, from_host) = (state.inputs, state.from_host);
        let words = u32::from(state.words);
        let base = state.masks + vl * words;
        let from = self.taken[(link * self.vls + vl) as usize];
        let mut word = from / 64;
        let mut bits = self.masks[(base + word) as usize] & (u64::MAX << (from % 64));
        // Once around, and the first word again for what lies before the start.
        for round in 0..=words {
            while bits != 0 {
                let bit = word * 64 + bits.trailing_zeros();
                let need = if from_host {
                    self.host_need(self.topology.link(LinkId(link)).from.0, vl)
                } else {
                    self.queues[self.queue_of(inputs, vl, bit) as usize].need
                };
                if visit(self, need) {
                    return Some(bit);
                }
                bits &= bits - 1;
            }
            word = if word + 1 == words { 0 } else { word + 1 };
            bits = self.masks[(base + word) as usize];
            if round + 1 == words {
                bits &= !(u64::MAX << (from % 64));
            }
        }
        None
    }

    /// Starts one of the packets that ask for `link`, if it is free and credits are there; else has it look again when
    /// that may be.
    pub(super) fn arbitrate(&mut self, link: u32, now: SimTime) {
        let state = &self.links[link as usize];
        let asking = state.asking;
        if asking == 0 {
            return;
        }
        if state.free_at > now.0 {
            let at = state.free_at;
            self.wake(link, at);
            return;
        }
        let mut may = 0u16;
        let mut bits = [0u32; 16];
        let mut vls = asking;
        while vls != 0 {
            let vl = vls.trailing_zeros();
            vls &= vls - 1;
            let lane = link * self.vls + vl;
            if let Some(bit) = self.find_asking(link, vl, |net, need| net.credits.has(lane, need, now.0)) {
                may |= 1 << vl;
                bits[vl as usize] = bit;
            }
        }
        if may == 0 {
            self.wait(link);
            return;
        }
        let state = &mut self.links[link as usize];
        let given = self.tables.give(&mut state.turns, may, state.free_at < now.0);
        let bit = bits[usize::from(given.vl)];
        let vl = u32::from(given.vl);
        let packet =
            if state.from_host { self.leave_host(link, vl, now) } else { self.leave_queue(link, vl, bit, now) };
        let Some(packet) = packet else { return };
        let Packet { flits, credits, .. } = *self.packets.get(packet);
        let bytes = u32::try_from(u64::from(flits) * self.flit).unwrap_or(u32::MAX);
        self.tables.started(&mut self.links[link as usize].turns, given, credits.into(), bytes);
    }

    /// Has `link` look again at `at`, unless it will earlier.
    fn wake(&mut self, link: u32, at: u64) {
        let state = &mut self.links[link as usize];
        if at < state.wake {
            state.wake = at;
            self.schedule(at, link, Event::Link(link));
        }
    }

    /// `link` is free, but no credits are there for those that ask: it looks again when they will be.
    fn wait(&mut self, link: u32) {
        let mut vls = self.links[link as usize].asking;
        while vls != 0 {
            let vl = vls.trailing_zeros();
            vls &= vls - 1;
            let mut least = u32::MAX;
            self.find_asking(link, vl, |_, need| {
                least = least.min(need);
                false
            });
            self.wait_for(link * self.vls + vl, least);
        }
    }

    /// Has the link of `lane` look again when `need` credits will be there, or when that is decided.
    fn wait_for(&mut self, lane: u32, need: u32) {
        match self.credits.when(lane, need) {
            Some(at) => {
                self.credits.accounts[lane as usize].wanted = 0;
                self.wake(lane / self.vls, at);
            }
            None => self.credits.accounts[lane as usize].wanted = need,
        }
    }

    /// The first packet of a host's queue starts on the host's link.
    fn leave_host(&mut self, link: u32, vl: u32, now: SimTime) -> Option<u32> {
        let node = self.topology.link(LinkId(link)).from.0;
        let queue = (node * self.vls + vl) as usize;
        let cut = self.messages.cut(queue)?;
        if self.messages.is_empty(queue) {
            let state = &mut self.links[link as usize];
            state.asking &= !(1 << vl);
            self.masks[(state.masks + vl * u32::from(state.words)) as usize] = 0;
        }
        let message = self.messages.get(cut.message);
        let (flits, credits) = sizes(cut.bytes.into(), self.flit);
        let packet = Packet {
            next: NONE,
            message: cut.message,
            destination: self.topology.host_node(message.destination.0).0,
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
        Some(id)
    }

    /// The head of a switch's queue starts on `link`: the queue whose bit is `bit`.
    fn leave_queue(&mut self, link: u32, vl: u32, bit: u32, now: SimTime) -> Option<u32> {
        let state = &mut self.links[link as usize];
        let words = u32::from(state.words);
        let base = (state.masks + vl * words) as usize;
        self.masks[base + bit as usize / 64] &= !(1 << (bit % 64));
        if self.masks[base..base + words as usize].iter().all(|word| *word == 0) {
            state.asking &= !(1 << vl);
        }
        let inputs = state.inputs;
        let queue = self.queue_of(inputs, vl, bit);
        // One behind the last of all is no bit of the mask: the search then begins at the first.
        self.taken[(link * self.vls + vl) as usize] = if (bit + 1) / 64 < words { bit + 1 } else { 0 };
        let id = self.queues[queue as usize].first;
        let packet = self.packets.get_mut(id);
        packet.switches += 1;
        let (next, flits, credits) = (packet.next, packet.flits, packet.credits);
        packet.next = NONE;
        let rest = self.start(id, link, vl, now);
        let ended = now.0 + self.credits.wires[link as usize].time(flits.into(), rest);

        let state = &mut self.queues[queue as usize];
        state.drained = ended;
        state.held -= u32::from(credits);
        state.first = next;
        if next == NONE {
            state.last = NONE;
        } else {
            let at = self.head_at(next).max(ended);
            self.schedule(at, queue / self.vls, Event::Head(queue));
        }
        self.gives_back(queue, Credits::leaving(link, now.0, ended, rest, flits, credits), now);
        Some(id)
    }

    /// A packet starts to leave the buffer of `lane`; whoever waits for its credits is told when they will be there.
    fn gives_back(&mut self, lane: u32, leaving: super::credits::Return, now: SimTime) {
        self.credits.give_back(lane, leaving);
        let wanted = self.credits.accounts[lane as usize].wanted;
        if wanted > 0 {
            // A link that is busy looks anyway when it is free.
            if self.links[(lane / self.vls) as usize].free_at <= now.0 {
                self.wait_for(lane, wanted);
            } else {
                self.credits.accounts[lane as usize].wanted = 0;
            }
        }
    }

    /// The earliest instant at which a packet at the head of its queue goes on.
    fn head_at(&self, packet: u32) -> u64 {
        let packet = self.packets.get(packet);
        let arrived = if self.whole && !self.adaptive { packet.last } else { packet.first };
        arrived + self.switch_delay
    }

    /// Packet `id` starts on `link` and `vl`. Returns the remainder with which the link started.
    fn start(&mut self, id: u32, link: u32, vl: u32, now: SimTime) -> u64 {
        let lane = link * self.vls + vl;
        let wire = self.credits.wires[link as usize];
        let state = &mut self.links[link as usize];
        let rest = if state.free_at == now.0 { state.remainder } else { 0 };
        let packet = self.packets.get_mut(id);
        let (flits, credits) = (packet.flits, packet.credits);
        let (time, remainder) = wire.packet(flits.into(), rest);
        packet.first = now.0 + wire.time(1, rest) + wire.delay;
        packet.last = now.0 + time + wire.delay;
        let (last, bytes) = (packet.last, packet.bytes);
        state.free_at = now.0 + time + self.packet_gap;
        state.remainder = remainder;
        let (free_at, asking, to_host) = (state.free_at, state.asking, state.to_host);
        if asking != 0 {
            self.wake(link, free_at);
        }
        let had_chosen = self.adaptive && !self.links[link as usize].from_host;
        let account = &mut self.credits.accounts[lane as usize];
        account.free -= u32::from(credits);
        if had_chosen {
            account.chosen -= u32::from(credits);
        }
        self.meters[link as usize].crossed(now, bytes.into(), self.interval_ps);
        self.lane_bytes[lane as usize] += u64::from(flits) * self.flit;
        if to_host {
            self.schedule(last, link, Event::Deliver(id));
            let leaving = Credits::leaving(link, now.0 + wire.delay, last, rest, flits, credits);
            self.gives_back(lane, leaving, now);
            return rest;
        }
        let queue = &mut self.queues[lane as usize];
        queue.held += u32::from(credits);
        queue.held_most = queue.held_most.max(queue.held);
        if queue.first == NONE {
            queue.first = id;
            queue.last = id;
            let at = self.head_at(id).max(self.queues[lane as usize].drained);
            self.schedule(at, link, Event::Head(lane));
        } else {
            self.packets.get_mut(queue.last).next = id;
            queue.last = id;
        }
        rest
    }

    /// A packet has arrived at its host.
    pub(super) fn deliver(&mut self, id: u32, now: SimTime, deliveries: &mut Vec<Delivery>) {
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
