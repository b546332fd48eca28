//! One part of the network, window by window. No other part is read or written while a window runs.

use super::calendar::{Bucket, Calendar};
use super::hop::Hop;
use super::hosts::{HostOutput, Hosts};
use super::layout::{Block, NodePlace};
use super::order::Order;
use super::port::{OutPort, Ports};
use super::shared::Shared;
use crate::count::count;
use crate::fabric::windows::{self, HostMessages, Letter, PartObserver, put};
use crate::network::Token;
use crate::time::SimTime;
use crate::topology::NodeId;

/// No simulation has as many windows.
const MAX_WINDOWS: u64 = 1 << 62;

/// Ports that are read ahead of their packets: fewer are in the cache anyway.
const PORTS_OF_A_CACHE: usize = 1 << 13;

/// For so many packets under way there is room from the start; for more it is made.
const PACKETS_OF_A_HOST: usize = 8;

/// What one part sends another in a window.
#[derive(Default)]
pub(super) struct Mail {
    hops: Vec<Hop>,
    /// Of each of `hops`, when and where it arrives.
    arrivals: Vec<Arrival>,
    /// Messages of several packets that are under way.
    opened: Vec<(Token, u64)>,
}

impl Mail {
    /// How many packets there are.
    pub const fn packets(&self) -> usize {
        self.hops.len()
    }

    /// Empties it into a letter behind two numbers; without anything in it the letter ends there.
    pub fn write(&mut self, numbers: [u64; 2]) -> Vec<u8> {
        let mut letter = Vec::new();
        put(&mut letter, &numbers, &[]);
        if self.hops.is_empty() && self.opened.is_empty() {
            return letter;
        }
        letter.reserve(16 + self.hops.len() * (8 + 4 + Hop::BYTES) + self.opened.len() * 16);
        put(&mut letter, &[self.hops.len() as u64, self.opened.len() as u64], &[]);
        for (Arrival { window, block }, hop) in self.arrivals.drain(..).zip(self.hops.drain(..)) {
            put(&mut letter, &[window], &[block]);
            hop.write(&mut letter);
        }
        self.opened.drain(..).for_each(|(token, packets)| put(&mut letter, &[token.0, packets], &[]));
        letter
    }
}

/// The window in which a packet arrives, and the block of the part that it goes to.
#[derive(Clone, Copy)]
struct Arrival {
    window: u64,
    block: u32,
}

/// Where packets go that have left.
pub(super) struct Outbox {
    part: u16,
    /// The window that runs, and its begin.
    window: u64,
    begin: SimTime,
    arrivals: Calendar<Hop>,
    /// What goes to each other part.
    pub mail: Vec<Mail>,
    /// The first window of what was put into `mail`.
    first: u64,
    /// Messages that end in this part.
    opened: Vec<(Token, u64)>,
}

impl Outbox {
    /// The packet with a number goes on by `port`, and `arrives` at the other end of its link.
    #[inline(always)]
    fn goes_on(&mut self, shared: &Shared, port: &OutPort, arrives: SimTime, number: usize) {
        let (window, offset) = shared.window_after(self.window, self.begin, arrives);
        if port.part == self.part {
            self.arrivals.push_again(number, window, port.block.into(), |hop| {
                hop.offset = offset;
                hop.goes_on(port.link, port.to);
            });
            return;
        }
        let mut hop = *self.arrivals.get(number);
        hop.goes_on(port.link, port.to);
        self.leaves(shared, port, arrives, hop);
    }
}

impl HostOutput for Outbox {
    #[inline(always)]
    fn leaves(&mut self, shared: &Shared, port: &OutPort, arrives: SimTime, hop: Hop) {
        let (window, offset) = shared.window_after(self.window, self.begin, arrives);
        let hop = Hop { offset, ..hop };
        if port.part == self.part {
            self.arrivals.push(window, port.block.into(), hop);
        } else {
            self.first = self.first.min(window);
            let mail = &mut self.mail[usize::from(port.part)];
            mail.hops.push(hop);
            mail.arrivals.push(Arrival { window, block: port.block.into() });
        }
    }

    fn opened(&mut self, shared: &Shared, destination: NodeId, token: Token, packets: u64) {
        let part = shared.place(destination).part;
        let opened = if part == self.part { &mut self.opened } else { &mut self.mail[usize::from(part)].opened };
        opened.push((token, packets));
    }
}

/// Hosts, switches and their links, and what is on the way to them.
pub(super) struct Part<O, M> {
    pub hosts: Hosts<M>,
    pub ports: Ports,
    /// The blocks of its switches.
    blocks: Vec<Block>,
    pub outbox: Outbox,
    pub observer: O,
    pub arrived: u64,
    pub delivered: u64,
    pub dropped: u64,
    /// The packets of the block at work.
    order: Order,
    /// Those of its packets that arrive behind the end of the run.
    late: Vec<Hop>,
}

impl<O: PartObserver, M: HostMessages> Part<O, M> {
    pub fn new(shared: &Shared, part: u16, observer: O, messages: M) -> Self {
        let layout = &shared.layout.parts[usize::from(part)];
        let blocks = layout.blocks.clone();
        Self {
            hosts: Hosts::new(shared, layout.hosts.clone(), messages),
            ports: Ports::new(shared, layout.links.iter().copied()),
            outbox: Outbox {
                part,
                window: 0,
                begin: SimTime::ZERO,
                arrivals: Calendar::new(blocks.len() + 1, layout.hosts.len() * PACKETS_OF_A_HOST),
                mail: shared.layout.parts.iter().map(|_| Mail::default()).collect(),
                first: u64::MAX,
                opened: Vec::new(),
            },
            blocks,
            observer,
            arrived: 0,
            delivered: 0,
            dropped: 0,
            order: Order::default(),
            late: Vec::new(),
        }
    }

    /// Takes in what another part has written in the window that is over; `None` if that is no mail for this part, of which some may have been taken in.
    pub fn read_mail(&mut self, shared: &Shared, mut letter: Letter<'_>) -> Option<()> {
        if letter.is_empty() {
            return Some(());
        }
        let (hops, opened) = (letter.long()?, letter.long()?);
        for _ in 0..hops {
            let (window, block) = (letter.long()?, letter.short()?);
            let hop = Hop::read(&mut letter)?;
            let later = window > self.outbox.window && window < MAX_WINDOWS;
            let place = NodePlace { part: self.outbox.part, block: u16::try_from(block).ok()? };
            if !(later && shared.can_arrive(&hop, window, place)) {
                return None;
            }
            self.outbox.arrivals.push(window, block, hop);
        }
        for _ in 0..opened {
            let (token, packets) = (Token(letter.long()?), letter.long()?);
            if packets == 0 {
                return None;
            }
            self.outbox.opened.push((token, packets));
        }
        letter.is_empty().then_some(())
    }

    /// Forgets what is on the way and what hosts have still to send.
    pub fn forget_packets(&mut self) {
        self.outbox.arrivals = Calendar::new(0, 0);
        self.outbox.mail = Vec::new();
        self.hosts.forget_messages();
    }

    /// Whether a packet that was handed over when it `counts` arrives behind `window` only, wherever its link ends.
    pub fn outlasts(&self, window: u64, counts: &impl Fn(SimTime) -> bool) -> bool {
        self.outbox.arrivals.behind(window).any(|hop| counts(hop.handed_over))
    }

    /// A block is done with the packets of its list in this window: those that are late stay.
    fn give_back(&mut self, window: u64, block: usize, bucket: Bucket) {
        self.outbox.arrivals.give_back(bucket);
        for hop in self.late.drain(..) {
            self.outbox.arrivals.push(window, count(block), hop);
        }
    }

    /// The packets that arrive at hosts.
    fn deliver(&mut self, shared: &Shared, window: u64, end: SimTime) {
        let block = self.blocks.len();
        let bucket = self.outbox.arrivals.take(window, block);
        let mut delivered = 0;
        for numbers in self.outbox.arrivals.numbers(bucket) {
            for hop in self.outbox.arrivals.items(numbers) {
                let at = self.outbox.begin.plus_ps(hop.offset.into());
                if at >= end {
                    self.late.push(*hop);
                    continue;
                }
                delivered += 1;
                self.observer.delivered(&shared.record(hop, at));
            }
        }
        self.delivered += delivered;
        self.arrived += delivered;
        self.give_back(window, block, bucket);
    }

    /// The packets that arrive at the switches of a block: sorted by output port, then, at each port, in the order of time.
    fn run_block(&mut self, shared: &Shared, window: u64, number: usize, end: SimTime) {
        let bucket = self.outbox.arrivals.take(window, number);
        if bucket.is_empty() {
            return;
        }
        let block = &self.blocks[number];
        let (first, begin) = (block.ports.start, self.outbox.begin);
        let limit = end.since_ps(begin);
        let arrivals = &self.outbox.arrivals;
        let packets = arrivals.numbers(bucket).map(|numbers| numbers.len()).sum();
        self.order.begin(block.ports.len(), packets);
        // One loop a step, so that the loads of many packets are under way together.
        for numbers in arrivals.numbers(bucket) {
            for (number, hop) in numbers.clone().zip(arrivals.items(numbers)) {
                if u64::from(hop.offset) >= limit {
                    self.late.push(*hop);
                    continue;
                }
                if let Some(port) = shared.route_in(block, hop) {
                    self.order.put(port, hop.offset, number);
                }
            }
        }
        self.arrived += (packets - self.late.len()) as u64;
        if self.ports.len() > PORTS_OF_A_CACHE {
            self.ports.prefetch(self.order.ports().map(|port| first as usize + port));
        }
        let arrivals = &self.outbox.arrivals;
        self.order.sort(|number| {
            let hop = arrivals.get(number);
            (begin.plus_ps(hop.offset.into()), hop.link)
        });
        for place in 0..self.order.len() {
            let (port, packet) = self.order.packet(place);
            self.offer(shared, first as usize + port, packet);
        }
        self.give_back(window, number, bucket);
    }

    #[inline]
    fn offer(&mut self, shared: &Shared, port: usize, number: usize) {
        let hop = self.outbox.arrivals.get(number);
        let at = self.outbox.begin.plus_ps(hop.offset.into());
        match self.ports.offer(port, at, hop.bytes) {
            Some((arrives, port)) => self.outbox.goes_on(shared, port, arrives, number),
            None => {
                self.dropped += 1;
                self.observer.dropped(&hop.lost(at));
            }
        }
    }
}

impl<O: PartObserver, M: HostMessages> windows::Part for Part<O, M> {
    type Shared = Shared;
    type Mail = Mail;

    fn width(shared: &Shared) -> u64 {
        shared.width
    }

    fn next_window(&self, _shared: &Shared, from: u64) -> Option<u64> {
        let sent = Some(self.outbox.first).filter(|window| *window != u64::MAX);
        [self.outbox.arrivals.next_window(from), self.hosts.next_window(from), sent].into_iter().flatten().min()
    }

    fn run_window(&mut self, shared: &Shared, window: u64, limit: SimTime) {
        let end = shared.begin(window + 1).min(limit);
        self.outbox.window = window;
        self.outbox.begin = shared.begin(window);
        self.outbox.first = u64::MAX;
        self.outbox.arrivals.turn_to(window);
        for (token, packets) in self.outbox.opened.drain(..) {
            self.observer.opened(token, packets);
        }
        self.deliver(shared, window, end);
        for block in 0..self.blocks.len() {
            self.run_block(shared, window, block, end);
        }
        self.hosts.run(shared, window, end, &mut self.observer, &mut self.outbox);
    }

    fn mail(&mut self) -> &mut [Mail] {
        &mut self.outbox.mail
    }

    fn is_empty(mail: &Mail) -> bool {
        mail.hops.is_empty() && mail.opened.is_empty()
    }

    fn events_of(mail: &Mail) -> usize {
        mail.hops.len()
    }

    fn take_in(&mut self, _shared: &Shared, _border: SimTime, mail: &mut Mail) {
        for (Arrival { window, block }, hop) in mail.arrivals.iter().zip(&mail.hops) {
            self.outbox.arrivals.push_copy(*window, *block, hop);
        }
        mail.arrivals.clear();
        mail.hops.clear();
        self.outbox.opened.append(&mut mail.opened);
    }

    fn events(&self) -> u64 {
        self.arrived + self.hosts.waited
    }
}
