//! Hosts with several queues: which of them a message takes, and how their link takes packets of all of them side by side.

use super::config::{InjectionChoice, InjectionDirection, InjectionEquals, InjectionRecord};
use super::injectors::Injectors;
use super::strategies::Strategies;
use super::{Credit, Sizes};
use crate::count::count;
use crate::fabric::messages::key;
use crate::fabric::packet::{Message, Observer};
use crate::kernel::random::draw;
use crate::time::SimTime;
use crate::topology::{LinkId, NodeId};

/// Where it is drawn at which queue a message begins to look: behind the places of nodes and links.
const QUEUES: u64 = 1 << 60;

/// Where the way is drawn by which it chooses: behind those.
const RECORDS: u64 = (1 << 60) + (1 << 32);

impl Sizes {
    /// The flits of all packets of a message of `bytes` bytes.
    fn of_message(&self, bytes: u64, mtu: u64, headers: u64) -> u64 {
        let flits = |payload: u64| (payload + headers).max(1).div_ceil(self.flit);
        let (full, rest) = (bytes / mtu, bytes % mtu);
        full * flits(mtu) + if rest > 0 || full == 0 { flits(rest) } else { 0 }
    }
}

impl<O: Observer, S: Strategies> Credit<O, S> {
    /// A message of `bytes` bytes waits in `queue` from now on.
    pub(super) fn enqueued(&mut self, queue: usize, bytes: u64) {
        if let Some(injectors) = &mut self.injectors {
            injectors.flits[queue] += self.sizes.of_message(bytes, self.mtu.get(), self.headers.get());
        }
    }

    /// A packet of `bytes` bytes begins to leave `queue`.
    pub(super) fn dequeued(&mut self, queue: usize, bytes: u32) {
        if let Some(injectors) = &mut self.injectors {
            injectors.flits[queue] -= u64::from(self.sizes.of(bytes).0);
        }
    }

    /// The queue that `message` takes at its host, by what waits there at `now`.
    pub(super) fn injector_of(&self, message: &Message, now: SimTime) -> u8 {
        let Some(injectors) = &self.injectors else { return 0 };
        let candidates = self.candidates(injectors, message);
        let passes_by = matches!(injectors.config.choice, InjectionChoice::DorShortest);
        let queue = match candidates {
            Candidates::One(queue) if passes_by && self.has_more(message, queue, injectors.full()) => {
                self.shortest(injectors, message, u32::MAX, now)
            }
            Candidates::One(queue) => queue,
            Candidates::Any(queues) => self.shortest(injectors, message, queues, now),
        };
        u8::try_from(queue).unwrap_or(0)
    }

    /// Whether more than `most` packets wait in each queue that `message` could take, or, `in_any`, in one of its host's.
    pub(super) fn injector_is_full(&self, message: &Message, most: u64, in_any: bool) -> bool {
        let Some(injectors) = &self.injectors else { return false };
        if in_any {
            return injectors.among(u32::MAX).any(|queue| self.has_more(message, queue, most));
        }
        let queues = match self.candidates(injectors, message) {
            Candidates::One(_) if matches!(injectors.config.choice, InjectionChoice::DorShortest) => u32::MAX,
            Candidates::One(queue) => 1 << queue,
            Candidates::Any(queues) => queues,
        };
        injectors.among(queues).all(|queue| self.has_more(message, queue, most))
    }

    /// Which queues `message` could take.
    fn candidates(&self, injectors: &Injectors, message: &Message) -> Candidates {
        let (from, to) = (self.topology.host_node(message.source.0), self.topology.host_node(message.destination.0));
        let packet = key(message.source, self.messages.next_number(message.source));
        let way = match injectors.config.record {
            InjectionRecord::Packet => packet,
            InjectionRecord::Anew => draw(self.seed, RECORDS + u64::from(from.0), packet),
        };
        let one = |direction: Option<usize>| match direction {
            Some(direction) => Candidates::One(count(direction)),
            // Another host of the same switch lies in no direction.
            None => Candidates::Any(u32::MAX),
        };
        match injectors.config.choice {
            InjectionChoice::Shortest => Candidates::Any(u32::MAX),
            InjectionChoice::Dor | InjectionChoice::DorShortest => one(match injectors.config.direction {
                InjectionDirection::First => self.routes.first_direction(from, to, way),
                InjectionDirection::Last => self.routes.last_direction(from, to, way),
            }),
            InjectionChoice::LongestPath => one(self.routes.longest_direction(from, to, way)),
            InjectionChoice::ShortestProfitable => {
                let directions = match injectors.config.record {
                    InjectionRecord::Packet => self.routes.nearer_directions(from, to),
                    InjectionRecord::Anew => self.routes.way_directions(from, to, way),
                };
                Candidates::Any(if directions == 0 { u32::MAX } else { directions })
            }
        }
    }

    /// Whether more than `most` packets wait in queue `queue` of the host of `message`.
    fn has_more(&self, message: &Message, queue: u32, most: u64) -> bool {
        let queue = self.number.queue(self.topology.host_node(message.source.0), queue);
        self.messages.waiting(queue) > most
    }

    /// Of `queues` (a bit each) the one with the fewest flits; of several the first from a drawn one on, or the first of all.
    fn shortest(&self, injectors: &Injectors, message: &Message, queues: u32, now: SimTime) -> u32 {
        let host = self.topology.host_node(message.source.0);
        let packet = key(message.source, self.messages.next_number(message.source));
        let number = u32::from(injectors.config.queues);
        let first = match injectors.config.equals {
            InjectionEquals::Draw => draw(self.seed, QUEUES + u64::from(host.0), packet) % u64::from(number),
            InjectionEquals::First => 0,
        };
        let first = u32::try_from(first).unwrap_or(0);
        let turned = |queue: u32| (queue + number - first) % number;
        let link = self.topology.out(host).first().map(|link| self.link_numbers.output(*link));
        let behind = |queue: u32| match link {
            Some(link) if injectors.config.counts_switch() => {
                self.lanes.not_gone_before(self.number.lane(link, queue), now)
            }
            _ => 0,
        };
        let flits = |queue: u32| injectors.flits[self.number.queue(host, queue)] + behind(queue);
        injectors.among(queues).min_by_key(|queue| (flits(*queue), turned(*queue))).unwrap_or(0)
    }

    /// Starts a packet of each queue of a host whose last one has left and that finds its credits.
    pub(super) fn inject_all(&mut self, link: LinkId, now: SimTime) {
        let host = NodeId(self.links[link].inputs);
        let mut asking = self.links[link].asking;
        while asking != 0 {
            let vl = asking.trailing_zeros();
            asking &= asking - 1;
            let (queue, lane) = (self.number.queue(host, vl), self.number.lane(link, vl));
            let free_at = self.injectors.as_ref().map_or(now, |injectors| injectors.leaving_until[queue]);
            if free_at > now {
                self.wake(link, free_at);
                continue;
            }
            let need = self.host_need(host.0, vl);
            if !self.lanes.has(lane, need, now) {
                self.wait_for(lane, need);
                continue;
            }
            let Some((_, _, ended)) = self.leave_host(link, vl, 0, now) else { continue };
            if let Some(injectors) = &mut self.injectors {
                injectors.leaving_until[queue] = ended;
            }
            if !self.messages.is_empty(queue) {
                self.wake(link, ended);
            }
        }
    }
}

/// The queues that a message could take.
enum Candidates {
    /// This one.
    One(u32),
    /// Any of these, a bit each.
    Any(u32),
}
