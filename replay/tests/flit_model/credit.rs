//! The fabric `credit`, flit by flit.

use super::arbiter::VlArbiter;
use super::fault::Fault;
use super::routing::{Labels, rule};
use super::timeline::Timeline;
use super::traffic::{Seen, Sending, When, answers};
use super::{bits, bps, cut, t};
use replay::fabric::credit::{CreditConfig, Start};
use replay::fabric::packet::{Observer, PacketRecord};
use replay::kernel::random::draw;
use replay::network::{Delivery, HostIndex, SimTime, Token};
use replay::routing::{Routes, RoutingConfig};
use replay::topology::{LinkId, NodeId, Topology};
use std::collections::VecDeque;
use std::ops::Range;

/// The steps of an instant in which arrivals happen; choices and arbitrations follow when none is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Messages that are handed over at a time.
    HandOver,
    /// Flits leave and arrive, links become free, switches' delays pass.
    Move,
    /// Messages of which all packets were delivered in this instant, and the answers to them.
    Deliver,
    /// Credit updates leave, with all credits that the flits of this instant freed.
    Tell,
    /// Credit updates arrive.
    Told,
}

/// One entry of the list of what is going to happen.
#[derive(Clone, Copy, Debug)]
enum Happening {
    /// A message is handed over to its source host.
    HandOver { message: usize },
    /// Flit `flit` (1, 2, ...) of the packet that is sent on `link` has left.
    FlitLeaves { link: usize, flit: u64 },
    /// That flit has arrived at the end of the link.
    FlitArrives { link: usize, vl: usize, packet: usize, flit: u64 },
    /// The switch's delay behind the first flit has passed.
    FirstFlitWaited { queue: usize, packet: usize },
    /// The switch's delay behind the last flit has passed.
    LastFlitWaited { queue: usize, packet: usize },
    /// The last flit of a queue's head has left.
    HeadLeft { queue: usize },
    /// The pause behind a packet is over.
    LinkFree { link: usize },
    /// Messages were delivered.
    Deliver,
    /// A credit update leaves the receiver of (link, VL).
    UpdateLeaves { link: usize, vl: usize },
    /// It arrives at the sender.
    UpdateArrives { link: usize, vl: usize, credits: u64 },
}

/// A packet, from the hand-over of its message on.
struct Packet {
    message: usize,
    source: u32,
    destination: u32,
    number: u64,
    level: u8,
    flow: u64,
    bytes: u32,
    flits: u64,
    credits: u64,
    handed_over: SimTime,
    left: SimTime,
    switches: u32,
}

impl Packet {
    fn key(&self) -> u64 {
        (u64::from(self.source) << 40) + self.number
    }

    fn labels(&self, topology: &Topology) -> Labels {
        Labels {
            key: self.key(),
            flow: self.flow,
            source: topology.host_node(self.source),
            destination: topology.host_node(self.destination),
        }
    }
}

/// A packet in a queue.
struct Waiting {
    packet: usize,
    /// How many of its flits have arrived, and how many have left again.
    arrived: u64,
    left: u64,
    first_flit_waited: bool,
    last_flit_waited: bool,
    /// Where it goes on, once that is chosen.
    choice: Option<Choice>,
    started: bool,
    /// How many of its credits are free again.
    freed: u64,
}

#[derive(Clone, Copy)]
struct Choice {
    link: usize,
    vl: usize,
    enters_ring: bool,
}

/// A first-in first-out queue: of one VL of a switch's input, or of a host.
struct Queue {
    node: NodeId,
    /// The link by which packets come; none at hosts.
    input: Option<usize>,
    vl: usize,
    waiting: VecDeque<Waiting>,
}

/// One virtual lane of a link.
struct Lane {
    /// Credits that the sender has.
    credits: u64,
    /// Flits in the buffer at the link's end.
    buffered: u64,
    /// Credits that are free there, and not told yet.
    freed: u64,
    /// When the last update left.
    last_update: Option<SimTime>,
    /// Whether the next one is noted already.
    update_noted: bool,
    /// The queue that was last taken for this link and VL.
    last_taken: usize,
}

/// The packet that is being sent on a link.
#[derive(Clone, Copy)]
struct Sent {
    packet: usize,
    queue: usize,
    vl: usize,
    start: SimTime,
    remainder: u128,
}

struct Link {
    sent: Option<Sent>,
    free: bool,
    /// When it last became free.
    free_since: Option<SimTime>,
    remainder: u128,
    arbiter: VlArbiter,
    lanes: Vec<Lane>,
}

/// The model.
struct Model<'a> {
    config: &'a CreditConfig,
    topology: &'a Topology,
    routes: Routes,
    traffic: &'a [Sending],
    fault: Option<Fault>,
    now: SimTime,
    timeline: Timeline<Step, Happening>,
    links: Vec<Link>,
    /// All queues, ordered by node, input link and VL.
    queues: Vec<Queue>,
    /// Each node's queues.
    at_node: Vec<Range<usize>>,
    packets: Vec<Packet>,
    /// Each host's number of packets so far.
    numbers: Vec<u64>,
    /// Each message's packets that have not arrived.
    missing: Vec<u64>,
    /// Messages of which all packets arrived in this instant.
    complete: Vec<usize>,
    seen: Seen,
}

/// What happens to `traffic`.
pub fn play(config: &CreditConfig, topology: &Topology, traffic: &[Sending], fault: Option<Fault>) -> Seen {
    let mut model = Model::new(config, topology, traffic, fault);
    while let Some(now) = model.timeline.next_instant() {
        model.now = now;
        while let Some(happening) = model.timeline.take(now) {
            model.happen(happening);
        }
        model.choices();
        model.arbitrations();
    }
    model.seen.sorted()
}

impl<'a> Model<'a> {
    fn new(config: &'a CreditConfig, topology: &'a Topology, traffic: &'a [Sending], fault: Option<Fault>) -> Self {
        let vls = usize::from(config.vls);
        let mut queues = Vec::new();
        let mut at_node = Vec::new();
        for node in (0..topology.nodes()).map(NodeId) {
            let first = queues.len();
            let inputs: Vec<Option<usize>> = if node.0 < topology.hosts() {
                vec![None]
            } else {
                (0..topology.links().len()).filter(|link| topology.links()[*link].to == node).map(Some).collect()
            };
            for input in inputs {
                queues.extend((0..vls).map(|vl| Queue { node, input, vl, waiting: VecDeque::new() }));
            }
            at_node.push(first..queues.len());
        }
        let lane = |from: NodeId| Lane {
            credits: u64::from(config.credits),
            buffered: 0,
            freed: 0,
            last_update: None,
            update_noted: false,
            // At the start: behind the last queue.
            last_taken: at_node[from.0 as usize].end - 1,
        };
        let link = |from: NodeId| Link {
            sent: None,
            free: true,
            free_since: None,
            remainder: 0,
            arbiter: VlArbiter::new(&config.arbitration, config.vls, fault),
            lanes: (0..vls).map(|_| lane(from)).collect(),
        };
        let links = topology.links().iter().map(|l| link(l.from)).collect();
        let mut timeline = Timeline::new();
        for (message, sending) in traffic.iter().enumerate() {
            if let When::At(time) = sending.when {
                timeline.note(SimTime(time), Step::HandOver, Happening::HandOver { message });
            }
        }
        Self {
            config,
            topology,
            routes: Routes::new(&config.routing, topology, config.seed).expect("the routing fits"),
            traffic,
            fault,
            now: SimTime::ZERO,
            timeline,
            links,
            queues,
            at_node,
            packets: Vec::new(),
            numbers: vec![0; topology.hosts() as usize],
            missing: vec![0; traffic.len()],
            complete: Vec::new(),
            seen: Seen::default(),
        }
    }

    fn note(&mut self, time: SimTime, step: Step, happening: Happening) {
        self.timeline.note(time, step, happening);
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::HandOver { message } => self.hand_over(message),
            Happening::FlitLeaves { link, flit } => self.flit_leaves(link, flit),
            Happening::FlitArrives { link, vl, packet, flit } => self.flit_arrives(link, vl, packet, flit),
            Happening::FirstFlitWaited { queue, packet } => self.in_queue(queue, packet).first_flit_waited = true,
            Happening::LastFlitWaited { queue, packet } => self.in_queue(queue, packet).last_flit_waited = true,
            // The packet whose last flit has left; the next one becomes the head.
            Happening::HeadLeft { queue } => drop(self.queues[queue].waiting.pop_front()),
            Happening::LinkFree { link } => {
                self.links[link].free = true;
                self.links[link].free_since = Some(self.now);
            }
            Happening::Deliver => self.deliver(),
            Happening::UpdateLeaves { link, vl } => self.update_leaves(link, vl),
            Happening::UpdateArrives { link, vl, credits } => self.links[link].lanes[vl].credits += credits,
        }
    }

    // Words and numbers

    fn flit(&self) -> u64 {
        self.config.flit.get()
    }

    /// How many credits `flits` flits are; only whole ones count.
    fn credits_of(&self, flits: u64) -> u64 {
        flits * self.flit() / 64
    }

    /// F and c of a packet of `bytes`.
    fn flits_and_credits(&self, bytes: u64) -> (u64, u64) {
        let flits = bytes.div_ceil(self.flit());
        let credits = if self.fault == Some(Fault::CreditsRoundedDown) {
            self.credits_of(flits)
        } else {
            (flits * self.flit()).div_ceil(64)
        };
        (flits, credits)
    }

    /// The VL of a packet of service level `level`, where its routing asks for `class`.
    fn vl(&self, level: u8, class: u8) -> usize {
        let classes = self.routes.classes();
        let by_default = level % (self.config.vls / classes);
        let vl = self.config.sl_to_vl.get(usize::from(level)).copied().unwrap_or(by_default);
        usize::from(vl * classes + class)
    }

    // Hosts

    fn hand_over(&mut self, message: usize) {
        let sending = self.traffic[message];
        let node = self.topology.host_node(sending.source);
        // On the link of its source host a packet's class is 0.
        let vl = self.vl(sending.level, 0);
        let queue = self.at_node[node.0 as usize].start + vl;
        let lengths = cut(sending.bytes, self.config.mtu.get(), self.config.headers.get());
        self.missing[message] = lengths.len() as u64;
        for bytes in lengths {
            let (flits, credits) = self.flits_and_credits(bytes.into());
            let number = &mut self.numbers[sending.source as usize];
            self.packets.push(Packet {
                message,
                source: sending.source,
                destination: sending.destination,
                number: *number,
                level: sending.level,
                flow: sending.flow,
                bytes,
                flits,
                credits,
                handed_over: self.now,
                left: SimTime::ZERO,
                switches: 0,
            });
            *number += 1;
            self.queues[queue].waiting.push_back(Waiting {
                packet: self.packets.len() - 1,
                arrived: flits,
                left: 0,
                first_flit_waited: true,
                last_flit_waited: true,
                choice: None,
                started: false,
                freed: 0,
            });
        }
    }

    /// The last flit of a packet has arrived at its destination.
    fn packet_delivered(&mut self, packet: usize) {
        let delivered = &self.packets[packet];
        self.seen.delivered(&PacketRecord {
            handed_over: delivered.handed_over,
            left: delivered.left,
            arrived: self.now,
            source: HostIndex(delivered.source),
            destination: HostIndex(delivered.destination),
            number: delivered.number,
            bytes: delivered.bytes,
            flits: u32::try_from(delivered.flits).unwrap(),
            switches: delivered.switches,
            token: Token(delivered.message as u64),
        });
        let message = delivered.message;
        self.missing[message] -= 1;
        if self.missing[message] == 0 {
            self.complete.push(message);
            self.note(self.now, Step::Deliver, Happening::Deliver);
        }
    }

    /// The messages of an instant, in the order of their tokens, and what is handed over because of them.
    fn deliver(&mut self) {
        self.complete.sort_unstable();
        for message in std::mem::take(&mut self.complete) {
            self.seen.deliveries.push(Delivery { token: Token(message as u64), at: self.now });
            for (answer, think) in answers(self.traffic, message) {
                let step = if think == 0 { Step::Deliver } else { Step::HandOver };
                self.note(self.now.plus_ps(think), step, Happening::HandOver { message: answer });
            }
        }
    }

    // Receiving

    fn in_queue(&mut self, queue: usize, packet: usize) -> &mut Waiting {
        let waiting = &mut self.queues[queue].waiting;
        waiting.iter_mut().find(|waiting| waiting.packet == packet).expect("the packet waits in this queue")
    }

    /// The queue at the end of a link; none at hosts.
    fn queue_behind(&self, link: usize, vl: usize) -> Option<usize> {
        let at_end = self.at_node[self.topology.links()[link].to.0 as usize].clone();
        at_end.into_iter().find(|queue| self.queues[*queue].input == Some(link) && self.queues[*queue].vl == vl)
    }

    fn flit_arrives(&mut self, link: usize, vl: usize, packet: usize, flit: u64) {
        let flits = self.packets[packet].flits;
        let credits = self.packets[packet].credits;
        self.links[link].lanes[vl].buffered += 1;
        let Some(queue) = self.queue_behind(link, vl) else {
            // A host reads each flit as it arrives.
            let before = self.credits_of(flit - 1);
            let free = if flit == flits { credits } else { self.credits_of(flit) };
            self.flit_left_buffer(link, vl, free - before);
            if flit == flits {
                self.packet_delivered(packet);
            }
            return;
        };
        let buffered = self.links[link].lanes[vl].buffered * self.flit();
        let room = u64::from(self.config.credits) * 64;
        assert!(self.fault.is_some() || buffered <= room, "{buffered} bytes in a buffer of {room}");
        if flit == 1 {
            self.packets[packet].switches += 1;
            self.queues[queue].waiting.push_back(Waiting {
                packet,
                arrived: 0,
                left: 0,
                first_flit_waited: false,
                last_flit_waited: false,
                choice: None,
                started: false,
                freed: 0,
            });
        }
        self.in_queue(queue, packet).arrived += 1;
        let delay = self.config.switch_delay.ps();
        let behind_others = self.queues[queue].waiting.len() > 1;
        let forgotten = match self.fault {
            Some(Fault::SwitchDelayForgotten) => true,
            Some(Fault::DelayOnlyAtEmptyQueue) => behind_others,
            _ => false,
        };
        let waited = self.now.plus_ps(if forgotten { 0 } else { delay });
        if flit == 1 {
            self.note(waited, Step::Move, Happening::FirstFlitWaited { queue, packet });
        }
        if flit == flits {
            self.note(waited, Step::Move, Happening::LastFlitWaited { queue, packet });
        }
    }

    /// Whether the head of a queue is ready to go on by `link`.
    fn ready(&self, queue: usize, link: usize) -> bool {
        let head = &self.queues[queue].waiting[0];
        let Some(input) = self.queues[queue].input else { return true };
        let rate = |link: usize| bps(self.topology.links()[link].rate);
        let or_equal = self.fault == Some(Fault::HeldBackAtEqualRates);
        let runs_dry = rate(link) > rate(input) || or_equal && rate(link) == rate(input);
        if self.config.start == Start::WholePacket || runs_dry { head.last_flit_waited } else { head.first_flit_waited }
    }

    // Choosing

    fn choices(&mut self) {
        for node in 0..self.at_node.len() {
            let queues = self.at_node[node].clone();
            if !queues.clone().any(|queue| self.has_to_choose(queue)) {
                continue;
            }
            let first = match self.fault {
                Some(Fault::ChoicesFromFirst) => queues.len() as u64 - 1,
                _ => draw(self.config.seed, node as u64, (1 << 63) + self.now.0) % queues.len() as u64,
            };
            for behind in 1..=queues.len() {
                let queue = queues.start + (usize::try_from(first).unwrap() + behind) % queues.len();
                if self.has_to_choose(queue) {
                    let choice = self.choose(queue);
                    self.queues[queue].waiting[0].choice = Some(choice);
                }
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
            return Choice { link, vl: self.vl(packet.level, 0), enters_ring: false };
        };
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
            i64::try_from(self.links[link.0 as usize].lanes[vl].credits).unwrap() - i64::try_from(asked).unwrap()
        };
        let most = links.iter().map(|link| free(*link)).max().expect("there is a way");
        let best: Vec<LinkId> = links.iter().copied().filter(|link| free(*link) == most).collect();
        let position = draw(self.config.seed, u64::from(node.0), key) % best.len() as u64;
        best[if self.fault == Some(Fault::FirstOfTheMostFree) { 0 } else { usize::try_from(position).unwrap() }]
    }

    // Arbitrating

    fn arbitrations(&mut self) {
        // The queues whose heads may start, by the link that they have chosen, and their VL there.
        let mut asking = vec![Vec::new(); self.links.len()];
        for queue in 0..self.queues.len() {
            if let Some(choice) = self.may_start(queue) {
                asking[choice.link].push((queue, choice.vl));
            }
        }
        for (link, asking) in asking.iter().enumerate() {
            if self.links[link].free {
                self.arbitrate(link, asking);
            }
        }
    }

    /// Where the head of a queue may start, if its link is free.
    fn may_start(&self, queue: usize) -> Option<Choice> {
        let head = self.queues[queue].waiting.front()?;
        let choice = head.choice.filter(|_| !head.started)?;
        let mut needed = self.packets[head.packet].credits;
        if choice.enters_ring && self.fault != Some(Fault::BubbleForgotten) {
            let (_, largest) = self.flits_and_credits((self.config.mtu.get() + self.config.headers.get()).max(1));
            needed = 2 * largest;
        }
        let credits = self.links[choice.link].lanes[choice.vl].credits;
        (self.ready(queue, choice.link) && credits >= needed).then_some(choice)
    }

    /// Takes one of the packets that may start on `link`, by queue in order of queues, with the VL.
    fn arbitrate(&mut self, link: usize, asking: &[(usize, usize)]) {
        let mut vls = vec![false; usize::from(self.config.vls)];
        asking.iter().for_each(|(_, vl)| vls[*vl] = true);
        let Some(turn) = self.links[link].arbiter.turn(&vls) else { return };
        let vl = usize::from(turn.vl);
        let last = match self.fault {
            Some(Fault::InputsFromFirst) => usize::MAX,
            _ => self.links[link].lanes[vl].last_taken,
        };
        let mut on_vl = asking.iter().filter(|(_, its)| *its == vl).map(|(queue, _)| *queue);
        let first = on_vl.clone().next().expect("a packet of this VL may start");
        let taken = on_vl.find(|queue| *queue > last).unwrap_or(first);
        let packet = &self.packets[self.queues[taken].waiting[0].packet];
        let (credits, bytes) = (packet.credits, packet.flits * self.flit());
        self.links[link].lanes[vl].last_taken = taken;
        self.links[link].arbiter.start(&turn, credits, bytes);
        self.start(link, vl, taken);
    }

    // Sending

    /// The head of `queue` starts on `link`.
    fn start(&mut self, link: usize, vl: usize, queue: usize) {
        let head = &mut self.queues[queue].waiting[0];
        head.started = true;
        let packet = head.packet;
        if self.queues[queue].input.is_none() {
            self.packets[packet].left = self.now;
        }
        let state = &mut self.links[link];
        state.lanes[vl].credits -= self.packets[packet].credits;
        // A link that starts at the very instant at which it becomes free goes on with its remainder.
        let goes_on = match self.fault {
            Some(Fault::RemainderDropped) => false,
            Some(Fault::RemainderKept) => true,
            _ => state.free_since == Some(self.now),
        };
        let remainder = if goes_on { state.remainder } else { 0 };
        state.free = false;
        state.sent = Some(Sent { packet, queue, vl, start: self.now, remainder });
        self.note_flit(link, 1);
    }

    fn flit_gap(&self) -> u64 {
        if self.fault == Some(Fault::FlitGapForgotten) { 0 } else { self.config.flit_gap.ps() }
    }

    /// Notes when flit `flit` of the packet that is sent on `link` has left.
    fn note_flit(&mut self, link: usize, flit: u64) {
        let sent = self.links[link].sent.expect("a packet is sent");
        let rate = bps(self.topology.links()[link].rate);
        let after = t(flit, bits(self.flit()), sent.remainder, rate, self.flit_gap());
        self.note(sent.start.plus_ps(after), Step::Move, Happening::FlitLeaves { link, flit });
    }

    fn flit_leaves(&mut self, link: usize, flit: u64) {
        let Sent { packet, queue, vl, remainder, .. } = self.links[link].sent.expect("a packet is sent");
        let flits = self.packets[packet].flits;
        let delay = self.topology.links()[link].delay_ps;
        self.note(self.now.plus_ps(delay), Step::Move, Happening::FlitArrives { link, vl, packet, flit });
        self.flit_left_queue(queue, packet);
        if flit < flits {
            self.note_flit(link, flit + 1);
            return;
        }
        let rate = bps(self.topology.links()[link].rate);
        let gap = if self.fault == Some(Fault::PacketGapForgotten) { 0 } else { self.config.packet_gap.ps() };
        self.links[link].remainder = (u128::from(flits) * bits(self.flit()) + remainder) % rate;
        self.links[link].sent = None;
        self.note(self.now.plus_ps(gap), Step::Move, Happening::LinkFree { link });
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
        let told_of = if self.fault == Some(Fault::CreditOneFlitLate) { left - 1 } else { left };
        let free = if left == flits { credits } else { self.credits_of(told_of) };
        self.in_queue(queue, packet).freed = free;
        let vl = self.queues[queue].vl;
        self.flit_left_buffer(input, vl, free - freed);
    }

    /// A flit has left the buffer at the end of (link, VL), which frees `credits` credits.
    fn flit_left_buffer(&mut self, link: usize, vl: usize, credits: u64) {
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

    fn update_leaves(&mut self, link: usize, vl: usize) {
        let now = self.now;
        let lane = &mut self.links[link].lanes[vl];
        lane.update_noted = false;
        lane.last_update = Some(now);
        let credits = std::mem::take(&mut lane.freed);
        // The cable's other direction has the same number but for the last bit.
        let delay = self.topology.links()[link ^ 1].delay_ps;
        self.note(now.plus_ps(delay), Step::Told, Happening::UpdateArrives { link, vl, credits });
    }
}
