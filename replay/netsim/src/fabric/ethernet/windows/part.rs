//! One part of the network, with its hosts and what they send, window by window.

use super::super::Ethernet;
use super::super::border::{Announcement, FlowEnds, Mail};
use crate::fabric::flow_packets::{FlowFabric, Sent};
use crate::fabric::ids::MessageId;
use crate::fabric::packet::{HostLinksDiffer, LinkTime, Message};
use crate::fabric::slab::Slab;
use crate::fabric::windows::{self, HostMessages, PartObserver};
use crate::kernel::{EventQueue, Phase, Place};
use crate::network::{Delivery, FlowId, HostIndex, Network, Simulation, Token};
use crate::time::SimTime;
use std::collections::HashMap;

/// Most hosts hand their next message over within so long, picoseconds.
const HORIZON_PS: u64 = 10_000_000;

/// What all parts read, and none changes while they run.
pub(super) struct Shared {
    /// The width of a window: nothing that one part does shows sooner in another.
    pub window_ps: u64,
    pub part_of_host: Vec<u16>,
    /// The part in which each link begins.
    pub begins_in: Vec<u16>,
    /// The numbers of all flows that are opened until then.
    pub flows: HashMap<FlowEnds, u32>,
    pub link: Result<LinkTime, HostLinksDiffer>,
}

/// Switches, hosts, and the links that begin there.
pub(super) struct Part<O, M> {
    number: u16,
    pub network: Ethernet,
    pub observer: O,
    messages: M,
    /// Hosts, by when they hand over their next message.
    due: EventQueue<HostIndex>,
    /// Messages to hosts of this part.
    sent: Slab<MessageId, Sent>,
    /// How many messages each host has sent, those of other parts none.
    numbers: Vec<u64>,
    arrived: Vec<Delivery>,
    /// Whether there is mail for another part.
    has_mail: bool,
}

impl<O: PartObserver, M: HostMessages> Part<O, M> {
    /// Part `number`, which is `network`, with `hosts` that send `messages`.
    pub fn new(number: u16, network: Ethernet, observer: O, messages: M, hosts: Vec<HostIndex>) -> Self {
        let mut part = Self {
            number,
            observer,
            messages,
            due: EventQueue::new(HORIZON_PS),
            sent: Slab::default(),
            numbers: vec![0; network.hosts() as usize],
            arrived: Vec::new(),
            has_mail: false,
            network,
        };
        hosts.into_iter().for_each(|host| part.wait_for(host));
        part
    }

    /// Forgets what is on the way.
    pub fn forget_packets(&mut self) {
        self.network.forget_packets();
        self.due.forget();
        self.sent = Slab::default();
    }

    fn wait_for(&mut self, host: HostIndex) {
        if let Some(at) = self.messages.next_time(host) {
            self.due.schedule(at, Phase::Arrive, Place(host.0), host);
        }
    }

    /// `host` hands over its message of this instant.
    fn hand_over(&mut self, shared: &Shared, host: HostIndex, now: SimTime) {
        if let Some(message) = self.messages.take(host) {
            self.observer.handed_over(now, &message);
            self.send(shared, now, &message);
        }
        self.wait_for(host);
    }

    fn send(&mut self, shared: &Shared, now: SimTime, message: &Message) {
        let Message { source, destination, bytes, token, .. } = *message;
        let ends = (source, destination);
        let flow = shared.flows[&ends];
        self.network.open_numbered(flow, ends);
        let switches = self.network.switches(FlowId(flow));
        let number = &mut self.numbers[source.0 as usize];
        let wire_bytes = shared.link.as_ref().map_or(bytes, |link| link.message(bytes).1);
        let sent = Sent { handed_over: now, source, destination, number: *number, wire_bytes, switches, token };
        *number += 1;
        let part = shared.part_of_host[destination.0 as usize];
        if part == self.number {
            let id = self.sent.insert(sent);
            self.network.send(now, FlowId(flow), bytes, Token(id.0.into()));
        } else {
            let end = self.network.send_to_part(now, flow, bytes);
            self.network.mail_mut()[usize::from(part)].announcements.push(Announcement { flow, ends, end, sent });
        }
    }

    /// All events before `until`, that instant not included.
    fn run_network(&mut self, shared: &Shared, until: SimTime) {
        self.network.run_all_before(until, &mut self.arrived);
        let flit = shared.link.as_ref().map_or(1, |link| link.flit.into());
        for delivery in self.arrived.drain(..) {
            let Ok(id) = u32::try_from(delivery.token.0) else { continue };
            self.observer.delivered(&self.sent.remove(MessageId(id)).record(delivery.at, flit));
        }
    }
}

impl<O: PartObserver, M: HostMessages> windows::Part for Part<O, M> {
    type Shared = Shared;
    type Mail = Mail;

    fn width(shared: &Shared) -> u64 {
        shared.window_ps
    }

    fn next_window(&self, shared: &Shared, from: u64) -> Option<u64> {
        if self.has_mail {
            return Some(from);
        }
        let next = [self.network.next_event(), self.due.next_time()].into_iter().flatten().min()?;
        Some((next.0 / shared.window_ps).max(from))
    }

    fn run_window(&mut self, shared: &Shared, window: u64, limit: SimTime) {
        let end = SimTime(window.saturating_add(1).saturating_mul(shared.window_ps)).min(limit);
        while let Some(at) = self.due.next_time().filter(|at| *at < end) {
            self.run_network(shared, at);
            // What a host hands over at one instant is there before anything of that instant happens.
            while let Some((_, host)) = self.due.pop_until(at) {
                self.hand_over(shared, host, at);
            }
        }
        self.run_network(shared, end);
        self.has_mail = !self.network.mail().iter().all(Mail::is_empty);
    }

    fn mail(&mut self) -> &mut [Mail] {
        self.network.mail_mut()
    }

    fn is_empty(mail: &Mail) -> bool {
        mail.is_empty()
    }

    fn events_of(mail: &Mail) -> usize {
        mail.packets.len()
    }

    fn take_in(&mut self, _shared: &Shared, border: SimTime, mail: &mut Mail) {
        debug_assert!(mail.packets.iter().all(|crossing| crossing.arrives >= border), "a part is told too late");
        for Announcement { flow, ends, end, sent } in mail.announcements.drain(..) {
            let id = self.sent.insert(sent);
            self.network.announce(flow, ends, end, Token(id.0.into()));
        }
        self.network.take_in(&mut mail.packets);
    }

    fn events(&self) -> u64 {
        self.network.events()
    }
}
