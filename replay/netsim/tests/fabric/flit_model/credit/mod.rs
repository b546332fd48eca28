//! The fabric `credit`, flit by flit.

mod allocating;
mod injecting;
mod sending;

use super::arbiter::VlArbiter;
use super::cut;
use super::fault::Fault;
use super::routing::Labels;
use super::timeline::Timeline;
use super::traffic::{Seen, Sending, When, answers};
use netsim::fabric::credit::{Consumption, CreditConfig};
use netsim::fabric::packet::{Observer, PacketRecord};
use netsim::network::{Delivery, HostIndex, Token};
use netsim::routing::Routes;
use netsim::time::SimTime;
use netsim::topology::{NodeId, Topology};
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
    /// Flit `flit` (1, 2, ...) of the packet that is sent on `link` has left, the head of `queue`.
    FlitLeaves { link: usize, queue: usize, flit: u64 },
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
    /// Switches allocate, for which heads wait.
    Cycle,
    /// Messages were delivered.
    Deliver,
    /// A credit update leaves the receiver of (link, VL).
    UpdateLeaves { link: usize, vl: usize },
    /// It arrives at the sender.
    UpdateArrives { link: usize, vl: usize, credits: u64 },
    /// The sender of (link, VL) is told that so many flits have left the buffer.
    FlitsTold { link: usize, vl: usize, flits: u64 },
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
    /// When its first flit arrived, when it became the head with that flit ready, and since when it has asked for its link.
    arrival: SimTime,
    head_since: Option<SimTime>,
    asks_since: Option<SimTime>,
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
    /// Credits that the sender knows to be taken.
    taken: u64,
    /// Flits in the buffer at the link's end.
    buffered: u64,
    /// Flits that have left for it, and those of which the sender was told that they have left it, where somebody compares by them.
    sent_flits: u64,
    told_flits: u64,
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
    /// One at a time, but to hosts with `consumption = "multiple"`.
    sent: Vec<Sent>,
    free: bool,
    /// When it last became free.
    free_since: Option<SimTime>,
    remainder: u128,
    arbiter: VlArbiter,
    /// The input of the packet that was last matched with it.
    last_input: Option<usize>,
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
    /// For each link, as the input where it ends, the VL of the queue that was last matched.
    last_matched: Vec<Option<usize>>,
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
    stays: Vec<Stay>,
    /// Whether hosts lose the first packet of a queue where none may start; messages of which they have.
    loses_heads: bool,
    broken: Vec<usize>,
    /// Packets that have started on links.
    started: usize,
    seen: Seen,
}

/// A packet lay in the queue at the end of a link.
#[derive(Clone, Copy, Debug)]
pub struct Stay {
    pub link: usize,
    pub vl: usize,
    /// From when its first flit had arrived until its last one had left.
    pub from: SimTime,
    pub until: SimTime,
}

/// What happens to `traffic`.
pub fn play(config: &CreditConfig, topology: &Topology, traffic: &[Sending], fault: Option<Fault>) -> Seen {
    observe(config, topology, traffic, fault, false).0
}

/// The same, and when packets lay in queues; `loses_heads`: whether hosts lose what finds no room.
pub fn observe(
    config: &CreditConfig,
    topology: &Topology,
    traffic: &[Sending],
    fault: Option<Fault>,
    loses_heads: bool,
) -> (Seen, Vec<Stay>) {
    let mut model = Model { loses_heads, ..Model::new(config, topology, traffic, fault) };
    while let Some(now) = model.timeline.next_instant() {
        model.now = now;
        while let Some(happening) = model.timeline.take(now) {
            model.happen(happening);
        }
        loop {
            let started = model.started;
            model.choices();
            model.arbitrations();
            // A packet that starts may take room of other VLs, for whose lanes heads wait: they judge again.
            let takes_from_others = model.is_exclusive() && config.shared_buffers.is_some();
            if model.started == started || !takes_from_others {
                break;
            }
        }
    }
    (model.seen.sorted(), model.stays)
}

impl<'a> Model<'a> {
    fn new(config: &'a CreditConfig, topology: &'a Topology, traffic: &'a [Sending], fault: Option<Fault>) -> Self {
        let vls = usize::from(config.vls.max(config.injection.map_or(0, |injection| injection.queues)));
        let mut queues = Vec::new();
        let mut at_node = Vec::new();
        for node in (0..topology.nodes()).map(NodeId) {
            let first = queues.len();
            let inputs: Vec<Option<usize>> = if node.0 < topology.hosts() {
                vec![None]
            } else {
                let links = topology.links().iter().enumerate().filter(|(_, link)| !link.absent && link.to == node);
                links.map(|(link, _)| Some(link)).collect()
            };
            for input in inputs {
                queues.extend((0..vls).map(|vl| Queue { node, input, vl, waiting: VecDeque::new() }));
            }
            at_node.push(first..queues.len());
        }
        let lane = |from: NodeId| Lane {
            taken: 0,
            buffered: 0,
            sent_flits: 0,
            told_flits: 0,
            freed: 0,
            last_update: None,
            update_noted: false,
            // At the start: behind the last queue.
            last_taken: at_node[from.0 as usize].end - 1,
        };
        let link = |from: NodeId| Link {
            sent: Vec::new(),
            free: true,
            free_since: None,
            remainder: 0,
            arbiter: VlArbiter::new(&config.arbitration, config.vls, fault),
            last_input: None,
            lanes: (0..vls).map(|_| lane(from)).collect(),
        };
        let links: Vec<Link> = topology.links().iter().map(|l| link(l.from)).collect();
        let mut timeline = Timeline::new();
        for (message, sending) in traffic.iter().enumerate() {
            if let When::At(time) = sending.when {
                timeline.note(SimTime(time), Step::HandOver, Happening::HandOver { message });
            }
        }
        Self {
            config,
            topology,
            routes: Routes::new(&config.routing.with_vls(config.vls), topology, config.seed).expect("the routing fits"),
            traffic,
            fault,
            now: SimTime::ZERO,
            timeline,
            last_matched: vec![None; links.len()],
            links,
            queues,
            at_node,
            packets: Vec::new(),
            numbers: vec![0; topology.hosts() as usize],
            missing: vec![0; traffic.len()],
            complete: Vec::new(),
            stays: Vec::new(),
            loses_heads: false,
            broken: Vec::new(),
            started: 0,
            seen: Seen::default(),
        }
    }

    fn note(&mut self, time: SimTime, step: Step, happening: Happening) {
        self.timeline.note(time, step, happening);
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::HandOver { message } => self.hand_over(message),
            Happening::FlitLeaves { link, queue, flit } => self.flit_leaves(link, queue, flit),
            Happening::FlitArrives { link, vl, packet, flit } => self.flit_arrives(link, vl, packet, flit),
            Happening::FirstFlitWaited { queue, packet } => self.in_queue(queue, packet).first_flit_waited = true,
            Happening::LastFlitWaited { queue, packet } => self.in_queue(queue, packet).last_flit_waited = true,
            // The packet whose last flit has left; the next one becomes the head.
            Happening::HeadLeft { queue } => self.head_left(queue),
            Happening::LinkFree { link } => {
                self.links[link].free = true;
                self.links[link].free_since = Some(self.now);
            }
            // The allocations follow when all of the instant has happened.
            Happening::Cycle => {}
            Happening::Deliver => self.deliver(),
            Happening::UpdateLeaves { link, vl } => self.update_leaves(link, vl),
            Happening::UpdateArrives { link, vl, credits } => self.links[link].lanes[vl].taken -= credits,
            Happening::FlitsTold { link, vl, flits } => self.links[link].lanes[vl].told_flits += flits,
        }
    }

    fn head_left(&mut self, queue: usize) {
        let Queue { input, vl, waiting, .. } = &mut self.queues[queue];
        let left = waiting.pop_front().expect("a packet has left");
        if let Some(link) = *input {
            self.stays.push(Stay { link, vl: *vl, from: left.arrival, until: self.now });
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
        let vl = if self.config.injection.is_some() { self.injector(&sending) } else { self.vl(sending.level, 0) };
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
                arrival: self.now,
                head_since: None,
                asks_since: None,
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
        if self.missing[message] == 0 && !self.broken.contains(&message) {
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

    /// Whether a link takes a packet of each queue at a time, and no credits.
    fn needs_no_credits(&self, link: usize) -> bool {
        let (from, to) = (self.topology.link(link.into()).from.0, self.topology.link(link.into()).to.0);
        let hosts = self.topology.hosts();
        self.config.consumption == Consumption::Multiple && from >= hosts && to < hosts
    }

    /// The queue at the end of a link; none at hosts.
    fn queue_behind(&self, link: usize, vl: usize) -> Option<usize> {
        let at_end = self.at_node[self.topology.link(link.into()).to.0 as usize].clone();
        at_end.into_iter().find(|queue| self.queues[*queue].input == Some(link) && self.queues[*queue].vl == vl)
    }

    /// What lies in a link's buffers fits.
    fn check_room(&self, link: usize, vl: usize) {
        let lanes = &self.links[link].lanes;
        let buffered = lanes[vl].buffered * self.flit();
        let all: u64 = lanes.iter().map(|lane| lane.buffered * self.flit()).sum();
        let (room, room_of_all) = match self.config.shared_buffers {
            None => (u64::from(self.config.credits) * 64, u64::MAX),
            Some(shared) => (u64::from(shared.max) * 64, u64::from(shared.size) * 64),
        };
        assert!(self.fault.is_some() || buffered <= room, "{buffered} bytes in a buffer of {room}");
        assert!(self.fault.is_some() || all <= room_of_all, "{all} bytes in shared buffers of {room_of_all}");
    }

    fn flit_arrives(&mut self, link: usize, vl: usize, packet: usize, flit: u64) {
        let flits = self.packets[packet].flits;
        let credits = self.packets[packet].credits;
        self.links[link].lanes[vl].buffered += 1;
        let Some(queue) = self.queue_behind(link, vl) else {
            // A host reads each flit as it arrives.
            if self.needs_no_credits(link) {
                self.links[link].lanes[vl].buffered -= 1;
                if flit == flits {
                    self.packet_delivered(packet);
                }
                return;
            }
            let before = self.credits_of(flit - 1);
            let free = if flit == flits { credits } else { self.credits_of(flit) };
            self.flit_left_buffer(link, vl, free - before);
            if flit == flits {
                self.packet_delivered(packet);
            }
            return;
        };
        self.check_room(link, vl);
        if flit == 1 {
            self.packets[packet].switches += 1;
            self.queues[queue].waiting.push_back(Waiting {
                packet,
                arrived: 0,
                left: 0,
                first_flit_waited: false,
                last_flit_waited: false,
                choice: None,
                arrival: self.now,
                head_since: None,
                asks_since: None,
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
}
