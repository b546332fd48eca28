//! What a switch or host sends next: choosing, arbitrating, sending, and the credits that come back.

use super::{Choice, Happening, Model, Packet, Sent, Step};
use crate::flit_model::fault::Fault;
use crate::flit_model::routing::rule;
use crate::flit_model::traffic::Dropped;
use crate::flit_model::{bits, bps, t};
use netsim::fabric::credit::{InjectionLength, InputArbitration, LaneAllocation, SharedBuffersConfig, Start};
use netsim::kernel::random::{draw, unit};
use netsim::network::HostIndex;
use netsim::routing::{BusyPolicy, CreditRequirement, Hop, Lane, Pick, Ranks, RoutingConfig};
use netsim::time::SimTime;
use netsim::topology::{LinkId, NodeId};
use std::cmp::Reverse;
use std::collections::BTreeMap;

impl Model<'_> {
    // Choosing

    pub(super) fn choices(&mut self) {
        self.note_heads();
        for node in 0..self.at_node.len() {
            let queues = self.at_node[node].clone();
            if !queues.clone().any(|queue| self.has_to_choose(queue)) {
                continue;
            }
            if self.config.lane_allocation == LaneAllocation::Exclusive && node >= self.topology.hosts() as usize {
                self.give_lanes(node);
                continue;
            }
            let first = match self.fault {
                Some(Fault::ChoicesFromFirst) => queues.len() as u64 - 1,
                _ => draw(self.config.seed, node as u64, (1 << 63) + self.now.0) % queues.len() as u64,
            };
            for behind in 1..=queues.len() {
                let queue = queues.start + (usize::try_from(first).unwrap() + behind) % queues.len();
                if self.has_to_choose(queue) {
                    let choice = match self.routes.commits_to_room() && self.queues[queue].input.is_some() {
                        true => self.with_room(queue),
                        false => Some(self.choose(queue)),
                    };
                    self.queues[queue].waiting[0].choice = choice;
                }
            }
        }
    }

    /// Notes of the heads of queues since when they are there.
    fn note_heads(&mut self) {
        let now = self.now;
        for head in self.queues.iter_mut().filter_map(|queue| queue.waiting.front_mut()) {
            if head.first_flit_waited {
                head.head_since.get_or_insert(now);
            }
        }
    }

    /// Heads of a switch ask for lanes that have one packet at a time, and each lane takes one of those that ask for it, as often as one is
    /// given away.
    fn give_lanes(&mut self, node: usize) {
        loop {
            let mut rivals: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
            for queue in self.at_node[node].clone().filter(|queue| self.has_to_choose(*queue)) {
                if let Some(Choice { link, vl, .. }) = self.with_room(queue) {
                    rivals.entry((link, vl)).or_default().push(queue);
                }
            }
            let mut is_given = false;
            for ((link, vl), queues) in rivals {
                let taken = self.input(link, vl, &queues);
                // Another lane, given away before this one, may have taken its room.
                let choice = self.with_room(taken).filter(|choice| (choice.link, choice.vl) == (link, vl));
                self.queues[taken].waiting[0].choice = choice;
                is_given |= choice.is_some();
            }
            if !is_given || self.fault == Some(Fault::LosersWait) {
                break;
            }
        }
    }

    fn has_to_choose(&self, queue: usize) -> bool {
        let head = self.queues[queue].waiting.front();
        head.is_some_and(|head| head.choice.is_none() && head.first_flit_waited)
    }

    fn choose(&self, queue: usize) -> Choice {
        let node = self.queues[queue].node;
        let packet = &self.packets[self.queues[queue].waiting[0].packet];
        let destination = self.topology.host_node(packet.destination);
        let Some(input) = self.queues[queue].input else {
            let link = self.topology.out(node)[0].0 as usize;
            let vl = if self.config.injection.is_some() { self.queues[queue].vl } else { self.vl(packet.level, 0) };
            return Choice { link, vl, enters_ring: false };
        };
        if self.routes.looks_at_packets() {
            let (lane, enters_ring) = self.routes.lane(&self.hop(queue)).expect("there is a way");
            let class = if self.fault == Some(Fault::DatelineForgotten) { 0 } else { lane.class };
            return Choice { link: lane.link.0 as usize, vl: self.vl(packet.level, class), enters_ring };
        }
        let next = self.routes.next(node, LinkId(u32::try_from(input).unwrap()), destination);
        let class = if self.fault == Some(Fault::DatelineForgotten) { 0 } else { next.class };
        let vl = self.vl(packet.level, class);
        let link = match self.config.routing {
            _ if next.links.len() == 1 => next.links[0],
            RoutingConfig::Adaptive => self.most_free(node, next.links, vl, packet.key()),
            _ => rule(
                &self.config.routing,
                &self.routes,
                self.config.seed,
                node,
                next.links,
                &packet.labels(self.topology),
            ),
        };
        Choice { link: link.0 as usize, vl, enters_ring: next.enters_ring }
    }

    /// What the routing has to know of the head of a switch's queue.
    fn hop(&self, queue: usize) -> Hop {
        let packet = &self.packets[self.queues[queue].waiting[0].packet];
        let input = self.queues[queue].input.unwrap();
        // Queues of hosts are no classes.
        let vl = if self.is_injected(input) { 0 } else { self.queues[queue].vl };
        Hop {
            at: self.queues[queue].node,
            input_link: LinkId(u32::try_from(input).unwrap()),
            class: u8::try_from(vl % usize::from(self.routes.classes())).unwrap(),
            to: self.topology.host_node(packet.destination),
            key: packet.key(),
        }
    }

    /// The rule of routings that commit packets to lanes with room only: a lane of the first rank that has one with room, the one
    /// with most of it or any; nothing where none has room.
    fn with_room(&self, queue: usize) -> Option<Choice> {
        let node = self.queues[queue].node;
        let packet = &self.packets[self.queues[queue].waiting[0].packet];
        let mut ranks = Ranks::default();
        self.routes.ranks(&self.hop(queue), &mut ranks);
        let choice = |lane: &Lane| Choice {
            link: lane.link.0 as usize,
            vl: self.vl(packet.level, lane.class),
            enters_ring: false,
        };
        let (_, largest) = self.flits_and_credits((self.config.mtu.get() + self.config.headers.get()).max(1));
        let number = ranks.iter().count();
        for (rank, offer) in ranks.iter().enumerate() {
            if self.fault == Some(Fault::EscapeForgotten) && rank > 0 && rank + 1 == number {
                break;
            }
            let enough = match offer.required {
                _ if self.fault == Some(Fault::RoomForAnything) => 1,
                CreditRequirement::Bubble if self.fault != Some(Fault::BubbleForgotten) => 2 * largest,
                CreditRequirement::BubbleIn(_) | CreditRequirement::Bubble => packet.credits,
                CreditRequirement::Packet => {
                    let reserved = offer.lanes.iter().any(|lane| self.is_reserved(queue, lane));
                    let packets = if reserved { u64::from(self.config.injection_reserve) } else { 0 };
                    match self.fault {
                        Some(Fault::ReserveForgotten) => packet.credits,
                        // The program's: so much room before the packet has come.
                        Some(Fault::ReserveHoldsPacket) => packet.credits.max(packets * largest),
                        _ => packet.credits + packets * largest,
                    }
                }
            };
            if let CreditRequirement::BubbleIn(here) = offer.required {
                let before = self.topology.link(here.link).from;
                let room = self.unclaimed(before, choice(&here));
                if room < i64::try_from(2 * largest).unwrap() && self.fault != Some(Fault::BubbleForgotten) {
                    continue;
                }
            }
            let lanes = offer.lanes.iter().map(choice);
            let enough = i64::try_from(enough).unwrap();
            let mut found: Vec<(i64, Choice)> = if offer.pick.by_flits() {
                let flits = i64::try_from(packet.flits).unwrap();
                let rooms = lanes.map(|lane| (self.room_in_flits(lane), lane));
                let has_room = |(room, lane): &(i64, Choice)| match self.is_exclusive() && self.is_held(node, *lane) {
                    true if self.fault != Some(Fault::HeldLanesByCredits) => *room >= flits,
                    _ => self.unclaimed(node, *lane) >= enough,
                };
                rooms.filter(has_room).collect()
            } else {
                lanes.map(|lane| (self.unclaimed(node, lane), lane)).filter(|(room, _)| *room >= enough).collect()
            };
            if offer.pick != Pick::Drawn || self.fault == Some(Fault::MostRoomAlways) {
                let most = found.iter().map(|(room, _)| *room).max();
                found.retain(|(room, _)| Some(*room) == most);
            }
            if matches!(offer.pick, Pick::FirstOfMost | Pick::FirstOfMostFlits) {
                found.truncate(1);
            }
            let nobody_had_room = found.is_empty();
            if self.is_exclusive() {
                found.retain(|(_, lane)| !self.is_held(node, *lane));
            }
            if found.is_empty()
                && !nobody_had_room
                && offer.when_busy == BusyPolicy::Wait
                && self.fault != Some(Fault::HeldLanesPassed)
            {
                return None;
            }
            if !found.is_empty() {
                let position = draw(self.config.seed, u64::from(node.0), packet.key()) % found.len() as u64;
                return Some(found[usize::try_from(position).unwrap()].1);
            }
        }
        None
    }

    /// Whether the head of `queue` has to leave room in `lane`: it came from a host, and the lane is none of the escape's and leads on.
    fn is_reserved(&self, queue: usize, lane: &Lane) -> bool {
        let hosts = self.topology.hosts();
        let from = self.queues[queue].input.map(|input| self.topology.link(LinkId::from(input)).from.0);
        let leads_on = self.topology.link(lane.link).to.0 >= hosts;
        from.is_some_and(|from| from < hosts) && leads_on && lane.class >= self.routes.escape_classes()
    }

    /// Whether a lane is another packet's: one that has chosen it and has not started, or one that is sent on it.
    fn is_held(&self, node: NodeId, lane: Choice) -> bool {
        if self.needs_no_credits(lane.link) {
            return false;
        }
        let chose = |choice: Choice| (choice.link, choice.vl) == (lane.link, lane.vl);
        let mut heads = self.at_node[node.0 as usize].clone().filter_map(|queue| self.queues[queue].waiting.front());
        let sent = self.links[lane.link].sent.iter().any(|sent| sent.vl == lane.vl);
        let chosen = heads.any(|head| !head.started && head.choice.is_some_and(chose));
        chosen || sent && self.fault != Some(Fault::LaneFreeAtStart)
    }

    /// The classes among which the head of a host's queue chooses when it may start.
    fn at_host(&self, queue: usize, choice: Choice) -> Option<Choice> {
        let packet = &self.packets[self.queues[queue].waiting[0].packet];
        let classes = usize::from(self.routes.classes_at_hosts());
        let lanes = (0..classes).map(|class| Choice { vl: choice.vl + class, ..choice });
        let mut found: Vec<(u64, Choice)> = lanes.map(|lane| (self.free(lane.link, lane.vl), lane)).collect();
        let most = found.iter().map(|(room, _)| *room).max().filter(|most| *most >= packet.credits)?;
        found.retain(|(room, _)| *room == most);
        let position = draw(self.config.seed, u64::from(self.queues[queue].node.0), packet.key()) % found.len() as u64;
        Some(found[usize::try_from(position).unwrap()].1)
    }

    /// Credits that are free for a VL of a link.
    fn free(&self, link: usize, vl: usize) -> u64 {
        if self.needs_no_credits(link) {
            return 1 << 30;
        }
        let taken: Vec<u64> = self.links[link].lanes.iter().map(|lane| lane.taken).collect();
        let Some(SharedBuffersConfig { size, exclusive, max }) = self.config.shared_buffers else {
            return u64::from(self.config.credits) - taken[vl];
        };
        let (size, mut exclusive, mut max) = (u64::from(size), u64::from(exclusive), u64::from(max));
        match self.fault {
            Some(Fault::ExclusiveForgotten) => exclusive = 0,
            Some(Fault::MaximumForgotten) => max = u64::MAX,
            _ => {}
        }
        // Credits that a VL has taken of what is shared.
        let beyond = |taken: u64| match self.fault {
            Some(Fault::ExclusiveCountsAsShared) => taken,
            _ => taken.saturating_sub(exclusive),
        };
        let shared = size - exclusive * u64::from(self.config.vls);
        let left = shared.saturating_sub(taken.iter().copied().map(beyond).sum());
        // What it has for itself and has not taken, and what is left for all.
        let free = exclusive.saturating_sub(taken[vl]) + left;
        free.min(max - taken[vl].min(max))
    }

    /// Credits of a lane, less those that heads of `node` need that have chosen it and have not started.
    fn unclaimed(&self, node: NodeId, lane: Choice) -> i64 {
        let chose = |choice: Choice| (choice.link, choice.vl) == (lane.link, lane.vl);
        let heads = self.at_node[node.0 as usize].clone().filter_map(|queue| self.queues[queue].waiting.front());
        let claims = heads.filter(|head| !head.started && head.choice.is_some_and(chose));
        let claimed: u64 = claims.map(|head| self.packets[head.packet].credits).sum();
        i64::try_from(self.free(lane.link, lane.vl)).unwrap() - i64::try_from(claimed).unwrap()
    }

    /// Whether lanes or queues of hosts are compared by flits.
    fn counts_flits(&self) -> bool {
        let by_queues = self.config.injection.is_some_and(|injection| injection.length == InjectionLength::Switch);
        by_queues || self.routes.compares_flits()
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.config.lane_allocation == LaneAllocation::Exclusive
    }

    /// Flits that fit into the buffer of a lane beside those that have left for it and not left it, as its sender knows.
    fn room_in_flits(&self, Choice { link, vl, .. }: Choice) -> i64 {
        let lane = &self.links[link].lanes[vl];
        let on_link = self.links[link].sent.iter().filter(|sent| sent.vl == vl);
        let not_sent = on_link.map(|sent| self.packets[sent.packet].flits - self.queues[sent.queue].waiting[0].left);
        let early = if self.fault == Some(Fault::FlitsComeAtOnce) { not_sent.sum() } else { 0 };
        let all = u64::from(self.config.credits) * 64 / self.flit();
        i64::try_from(all).unwrap() - i64::try_from(lane.sent_flits + early - lane.told_flits).unwrap()
    }

    /// The rule of the routing `adaptive`: the link with the most free credits, less those that are asked for already.
    fn most_free(&self, node: NodeId, links: &[LinkId], vl: usize, key: u64) -> LinkId {
        let chosen = |choice: Choice, link: LinkId| match self.fault {
            Some(Fault::ChoicesUnseen) => false,
            Some(Fault::ChoicesOfAllLanesSeen) => choice.link == link.0 as usize,
            _ => choice.link == link.0 as usize && choice.vl == vl,
        };
        let free = |link: LinkId| {
            let asked: u64 = self.at_node[node.0 as usize]
                .clone()
                .filter_map(|queue| self.queues[queue].waiting.front())
                .filter(|head| !head.started && head.choice.is_some_and(|choice| chosen(choice, link)))
                .map(|head| self.packets[head.packet].credits)
                .sum();
            i64::try_from(self.free(link.0 as usize, vl)).unwrap() - i64::try_from(asked).unwrap()
        };
        let most = links.iter().map(|link| free(*link)).max().expect("there is a way");
        let best: Vec<LinkId> = links.iter().copied().filter(|link| free(*link) == most).collect();
        let position = draw(self.config.seed, u64::from(node.0), key) % best.len() as u64;
        best[if self.fault == Some(Fault::FirstOfTheMostFree) { 0 } else { usize::try_from(position).unwrap() }]
    }

    // Arbitrating

    pub(super) fn arbitrations(&mut self) {
        self.note_who_asks();
        // The queues whose heads may start, by the link that they have chosen, and their VL there.
        let mut asking = vec![Vec::new(); self.links.len()];
        for queue in 0..self.queues.len() {
            if let Some(choice) = self.may_start(queue) {
                asking[choice.link].push((queue, choice.vl));
            }
        }
        for (link, asking) in asking.iter().enumerate() {
            let from_host = self.topology.link(LinkId::from(link)).from.0 < self.topology.hosts();
            if self.needs_no_credits(link) || self.is_injected(link) {
                asking.iter().for_each(|(queue, vl)| self.start(link, *vl, *queue));
            } else if self.links[link].free && (from_host || self.config.allocation.is_none()) {
                self.arbitrate(link, asking);
                if from_host && asking.is_empty() && self.loses_heads {
                    self.lose_head(link);
                }
            }
        }
        self.allocations();
    }

    /// The first packet of a host's lowest VL that has one is lost, and the host's link is busy for a flit's time.
    fn lose_head(&mut self, link: usize) {
        let host = self.topology.link(LinkId::from(link)).from.0 as usize;
        let queues = self.at_node[host].clone();
        let Some(queue) = queues.into_iter().find(|queue| !self.queues[*queue].waiting.is_empty()) else { return };
        let lost = self.queues[queue].waiting.pop_front().expect("one waits").packet;
        let Packet { source, number, message, .. } = self.packets[lost];
        let token = message as u64;
        self.seen.dropped.push(Dropped { source: HostIndex(source), number, at: self.now, token });
        self.missing[message] -= 1;
        self.broken.push(message);
        let state = &mut self.links[link];
        (state.free, state.remainder) = (false, 0);
        let busy = t(1, bits(self.flit()), 0, bps(self.topology.link(LinkId::from(link)).rate), 0);
        let busy = if self.fault == Some(Fault::LossTakesNoTime) { 1 } else { busy };
        self.note(self.now.plus_ps(busy), Step::Move, Happening::LinkFree { link });
    }

    /// Notes of the heads of queues since when they ask.
    fn note_who_asks(&mut self) {
        for queue in 0..self.queues.len() {
            let Some(head) = self.queues[queue].waiting.front() else { continue };
            let asks = head.choice.is_some_and(|choice| self.ready(queue, choice.link));
            let now = self.now;
            let head = &mut self.queues[queue].waiting[0];
            if asks {
                head.asks_since.get_or_insert(now);
            }
        }
    }

    /// Whether the head of a queue is ready to go on by `link`.
    fn ready(&self, queue: usize, link: usize) -> bool {
        let head = &self.queues[queue].waiting[0];
        let Some(input) = self.queues[queue].input else { return true };
        let rate = |link: usize| bps(self.topology.link(LinkId::from(link)).rate);
        let or_equal = self.fault == Some(Fault::HeldBackAtEqualRates);
        let runs_dry = rate(link) > rate(input) || or_equal && rate(link) == rate(input);
        if self.config.start == Start::WholePacket || runs_dry { head.last_flit_waited } else { head.first_flit_waited }
    }

    /// Where the head of a queue may start, if its link is free.
    pub(super) fn may_start(&self, queue: usize) -> Option<Choice> {
        let head = self.queues[queue].waiting.front()?;
        let choice = head.choice.filter(|_| !head.started)?;
        let mut needed = self.packets[head.packet].credits;
        if choice.enters_ring && self.fault != Some(Fault::BubbleForgotten) {
            let (_, largest) = self.flits_and_credits((self.config.mtu.get() + self.config.headers.get()).max(1));
            needed = 2 * largest;
        }
        if self.queues[queue].input.is_none() && self.routes.classes_at_hosts() > 1 {
            return self.at_host(queue, choice);
        }
        let credits = self.free(choice.link, choice.vl);
        (self.ready(queue, choice.link) && credits >= needed).then_some(choice)
    }

    /// Takes one of the packets that may start on `link`, by queue in order of queues, with the VL.
    fn arbitrate(&mut self, link: usize, asking: &[(usize, usize)]) {
        let mut vls = vec![false; usize::from(self.config.vls)];
        // At a host whose packets choose among classes, the tables know them by class 0, that of their queue.
        let spread = |queue: usize| self.queues[queue].input.is_none() && self.routes.classes_at_hosts() > 1;
        let known = |(queue, vl): &(usize, usize)| if spread(*queue) { self.queues[*queue].vl } else { *vl };
        asking.iter().for_each(|asks| vls[known(asks)] = true);
        let Some(turn) = self.links[link].arbiter.turn(&vls) else { return };
        let vl = usize::from(turn.vl);
        let on_vl: Vec<usize> = asking.iter().filter(|asks| known(asks) == vl).map(|(queue, _)| *queue).collect();
        let taken = self.input(link, vl, &on_vl);
        let vl = asking.iter().find(|(queue, _)| *queue == taken).map_or(vl, |(_, vl)| *vl);
        let packet = &self.packets[self.queues[taken].waiting[0].packet];
        let (credits, bytes) = (packet.credits, packet.flits * self.flit());
        self.links[link].lanes[vl].last_taken = taken;
        self.links[link].arbiter.start(&turn, credits, bytes);
        self.start(link, vl, taken);
    }

    /// Which of `queues`, in order of queues, is taken whose heads may start on `vl` of `link`.
    pub(super) fn input(&self, link: usize, vl: usize, queues: &[usize]) -> usize {
        let last = match self.fault {
            Some(Fault::InputsFromFirst) => usize::MAX,
            _ => self.links[link].lanes[vl].last_taken,
        };
        let hosts = self.topology.hosts();
        let in_transit = |queue: &usize| {
            let input = self.queues[*queue].input;
            input.is_some_and(|input| self.topology.link(LinkId::from(input)).from.0 >= hosts)
        };
        let transit: Vec<usize> = queues.iter().copied().filter(in_transit).collect();
        let first = !transit.is_empty() && self.transit_first(link, vl);
        self.by_rule(self.config.input_arbitration, last, if first { &transit } else { queues })
    }

    /// Whether packets from other switches go first at this arbitration.
    fn transit_first(&self, link: usize, vl: usize) -> bool {
        let place = (1 << 61) + 16 * link as u64 + vl as u64;
        let drawn = match self.fault {
            Some(Fault::TransitAlwaysFirst) => 0.0,
            Some(Fault::TransitDrawnWithoutTime) => unit(draw(self.config.seed, place, 0)),
            _ => unit(draw(self.config.seed, place, self.now.0)),
        };
        drawn < self.config.transit_priority
    }

    /// Which of `queues`, in order of queues, `rule` takes; in turn that is the first behind `last`.
    pub(super) fn by_rule(&self, rule: InputArbitration, last: usize, queues: &[usize]) -> usize {
        let head = |queue: usize| &self.queues[queue].waiting[0];
        let in_turn = |queue: usize| (queue <= last, queue);
        let taken = match rule {
            InputArbitration::RoundRobin => queues.iter().min_by_key(|queue| in_turn(**queue)),
            InputArbitration::Random => queues.iter().min_by_key(|queue| {
                let input = self.queues[**queue].input.map_or(0, |input| input as u64);
                let place = (1 << 62) + 16 * input + self.queues[**queue].vl as u64;
                let time = if self.fault == Some(Fault::DrawnWithoutTime) { 0 } else { self.now.0 };
                draw(self.config.seed, place, time)
            }),
            InputArbitration::Fifo => queues.iter().min_by_key(|queue| {
                let since = match self.fault {
                    Some(Fault::FifoSinceArrival) => Some(head(**queue).arrival),
                    Some(Fault::FifoSinceHead) => head(**queue).head_since,
                    // Who asks for a lane has no link yet.
                    _ if head(**queue).choice.is_none() => head(**queue).head_since,
                    _ => head(**queue).asks_since,
                };
                (since, **queue)
            }),
            InputArbitration::Longest => queues.iter().max_by_key(|queue| {
                let waiting = self.queues[**queue].waiting.iter().map(|waiting| self.packets[waiting.packet].flits);
                let flits =
                    if self.fault == Some(Fault::LongestInPackets) { waiting.len() as u64 } else { waiting.sum() };
                let in_order = self.fault == Some(Fault::LongestTiesToFirst);
                (flits, Reverse(if in_order { (false, **queue) } else { in_turn(**queue) }))
            }),
            InputArbitration::Age => queues.iter().min_by_key(|queue| {
                let packet = &self.packets[head(**queue).packet];
                let since = if self.fault == Some(Fault::AgeSinceHandOver) { packet.handed_over } else { packet.left };
                (since, **queue)
            }),
        };
        *taken.expect("a packet of this VL may start")
    }

    // Sending

    /// The head of `queue` starts on `link`.
    pub(super) fn start(&mut self, link: usize, vl: usize, queue: usize) {
        let head = &mut self.queues[queue].waiting[0];
        head.started = true;
        self.started += 1;
        let packet = head.packet;
        if self.queues[queue].input.is_none() {
            self.packets[packet].left = self.now;
        }
        let alone = !self.needs_no_credits(link) && !self.is_injected(link);
        let needs_credits = !self.needs_no_credits(link);
        let state = &mut self.links[link];
        if needs_credits {
            state.lanes[vl].taken += self.packets[packet].credits;
        }
        // A link that starts at the very instant at which it becomes free goes on with its remainder.
        let goes_on = match self.fault {
            Some(Fault::RemainderDropped) => false,
            Some(Fault::RemainderKept) => true,
            _ => state.free_since == Some(self.now),
        };
        let remainder = if goes_on && alone { state.remainder } else { 0 };
        state.free = !alone;
        state.sent.push(Sent { packet, queue, vl, start: self.now, remainder });
        self.note_flit(link, queue, 1);
    }

    fn flit_gap(&self) -> u64 {
        if self.fault == Some(Fault::FlitGapForgotten) { 0 } else { self.config.flit_gap.ps() }
    }

    /// What is sent on `link` from `queue`.
    fn sent(&self, link: usize, queue: usize) -> Sent {
        *self.links[link].sent.iter().find(|sent| sent.queue == queue).expect("a packet is sent")
    }

    /// Notes when flit `flit` of the packet that is sent on `link` from `queue` has left.
    fn note_flit(&mut self, link: usize, queue: usize, flit: u64) {
        let sent = self.sent(link, queue);
        let rate = bps(self.topology.link(LinkId::from(link)).rate);
        let after = t(flit, bits(self.flit()), sent.remainder, rate, self.flit_gap());
        self.note(sent.start.plus_ps(after), Step::Move, Happening::FlitLeaves { link, queue, flit });
    }

    pub(super) fn flit_leaves(&mut self, link: usize, queue: usize, flit: u64) {
        let Sent { packet, vl, remainder, .. } = self.sent(link, queue);
        let flits = self.packets[packet].flits;
        let delay = self.topology.link(LinkId::from(link)).delay_ps;
        self.note(self.now.plus_ps(delay), Step::Move, Happening::FlitArrives { link, vl, packet, flit });
        self.links[link].lanes[vl].sent_flits += 1;
        self.flit_left_queue(queue, packet);
        if flit < flits {
            self.note_flit(link, queue, flit + 1);
            return;
        }
        let rate = bps(self.topology.link(LinkId::from(link)).rate);
        let gap = if self.fault == Some(Fault::PacketGapForgotten) { 0 } else { self.config.packet_gap.ps() };
        self.links[link].sent.retain(|sent| sent.queue != queue);
        if !self.needs_no_credits(link) && !self.is_injected(link) {
            self.links[link].remainder = (u128::from(flits) * bits(self.flit()) + remainder) % rate;
            self.note(self.now.plus_ps(gap), Step::Move, Happening::LinkFree { link });
        }
        let head_left = if self.fault == Some(Fault::HeadAfterGap) { gap } else { 0 };
        self.note(self.now.plus_ps(head_left), Step::Move, Happening::HeadLeft { queue });
    }

    // Credits come back

    /// The next flit of the head of `queue` has left it.
    fn flit_left_queue(&mut self, queue: usize, packet: usize) {
        let (flits, credits) = (self.packets[packet].flits, self.packets[packet].credits);
        let head = self.in_queue(queue, packet);
        head.left += 1;
        let (left, freed) = (head.left, head.freed);
        assert!(self.fault.is_some() || left <= self.in_queue(queue, packet).arrived, "a flit left before it came");
        let Some(input) = self.queues[queue].input else { return };
        let reported_units = if self.fault == Some(Fault::CreditOneFlitLate) { left - 1 } else { left };
        let free = if left == flits { credits } else { self.credits_of(reported_units) };
        self.in_queue(queue, packet).freed = free;
        let vl = self.queues[queue].vl;
        self.flit_left_buffer(input, vl, free - freed);
        if !self.counts_flits() {
            return;
        }
        // The cable's other direction has the same number but for the last bit.
        let told = self.now.plus_ps(self.topology.link(LinkId::from(input ^ 1)).delay_ps);
        let flits = match self.fault {
            Some(Fault::FlitsGoWithPacket) if left < flits => 0,
            Some(Fault::FlitsGoWithPacket) => flits,
            _ => 1,
        };
        self.note(told, Step::Told, Happening::FlitsTold { link: input, vl, flits });
    }

    /// A flit has left the buffer at the end of (link, VL), which frees `credits` credits.
    pub(super) fn flit_left_buffer(&mut self, link: usize, vl: usize, credits: u64) {
        let now = self.now;
        let lane = &mut self.links[link].lanes[vl];
        lane.buffered -= 1;
        lane.freed += credits;
        if lane.freed == 0 || lane.update_noted {
            return;
        }
        let least = match self.fault {
            Some(Fault::UpdateTooEarly) => 0,
            _ => self.config.credit_min_time.ps(),
        };
        let earliest = lane.last_update.map_or(SimTime::ZERO, |last| last.plus_ps(least));
        lane.update_noted = true;
        self.note(now.max(earliest), Step::Tell, Happening::UpdateLeaves { link, vl });
    }

    pub(super) fn update_leaves(&mut self, link: usize, vl: usize) {
        let now = self.now;
        let lane = &mut self.links[link].lanes[vl];
        lane.update_noted = false;
        lane.last_update = Some(now);
        let credits = std::mem::take(&mut lane.freed);
        // The cable's other direction has the same number but for the last bit.
        let delay = self.topology.link(LinkId::from(link ^ 1)).delay_ps;
        self.note(now.plus_ps(delay), Step::Told, Happening::UpdateArrives { link, vl, credits });
    }
}
