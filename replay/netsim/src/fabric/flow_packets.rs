//! Synthetic traffic over networks of flows: what a message of the traffic is to them is a message on the flow of its pair of
//! hosts, whatever the hosts' protocol cuts it into.
//!
//! So a packet of the figures is a whole message here, and the time that it waits at its source is not told apart from the
//! time that it is in the network.

use super::ids::MessageId;
use super::packet::{HostLinksDiffer, LinkTime, Loss, LostPacket, Message, Observer, PacketFabric, PacketRecord};
use super::slab::Slab;
use crate::network::{Delivery, FlowId, HostIndex, Network, NetworkFigures, Simulation, Token};
use crate::time::SimTime;
use std::collections::HashMap;

/// What synthetic traffic has to know of a network of flows.
pub trait FlowFabric: Network {
    /// How the links of its hosts and the packets of its protocol are made.
    ///
    /// # Errors
    /// If the links differ.
    fn link_time(&self) -> Result<LinkTime, HostLinksDiffer>;

    /// How many switches what a flow carries passes.
    fn switches(&self, flow: FlowId) -> u32;

    /// Bytes that have begun to cross each link before `now`, in the order of its figures.
    fn link_bytes(&self, now: SimTime) -> Vec<u64>;

    /// Messages that will never be delivered, each with when that was known; each is told once.
    fn take_lost(&mut self) -> Vec<(SimTime, Token)> {
        Vec::new()
    }
}

/// A message under way.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub handed_over: SimTime,
    pub source: HostIndex,
    pub destination: HostIndex,
    /// Number among the messages of its source.
    pub number: u64,
    pub wire_bytes: u64,
    /// Switches that it passes.
    pub switches: u32,
    pub token: Token,
}

impl Sent {
    /// What an observer is told when all of it has arrived; a flit has so many bytes.
    pub fn record(&self, arrived: SimTime, flit: u64) -> PacketRecord {
        let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        PacketRecord {
            handed_over: self.handed_over,
            left: self.handed_over,
            arrived,
            source: self.source,
            destination: self.destination,
            number: self.number,
            bytes: number(self.wire_bytes),
            flits: number(self.wire_bytes.div_ceil(flit.max(1))),
            switches: self.switches,
            token: self.token,
        }
    }
}

/// A network of flows as one of packets.
pub struct FlowPackets<N, O> {
    network: N,
    observer: O,
    link: Result<LinkTime, HostLinksDiffer>,
    /// By pair of hosts: the flow, and the switches that it passes.
    flows: HashMap<(HostIndex, HostIndex), (FlowId, u32)>,
    sent: Slab<MessageId, Sent>,
    /// How many messages each host has sent.
    numbers: Vec<u64>,
    arrived: Vec<Delivery>,
}

impl<N: FlowFabric, O: Observer> FlowPackets<N, O> {
    /// `network`, seen by `observer`.
    #[must_use]
    pub fn new(network: N, observer: O) -> Self {
        Self {
            observer,
            link: network.link_time(),
            flows: HashMap::new(),
            sent: Slab::default(),
            numbers: vec![0; network.hosts() as usize],
            arrived: Vec::new(),
            network,
        }
    }

    /// Tells the observer of what has arrived, and appends it to `deliveries` by the traffic's own tokens.
    fn tell(&mut self, deliveries: &mut Vec<Delivery>) {
        for delivery in self.arrived.drain(..) {
            let Ok(id) = u32::try_from(delivery.token.0) else { continue };
            let sent = self.sent.remove(MessageId(id));
            let flit = self.link.as_ref().map_or(1, |link| link.flit.into());
            self.observer.delivered(&sent.record(delivery.at, flit));
            deliveries.push(Delivery { token: sent.token, at: delivery.at });
        }
        for (at, token) in self.network.take_lost() {
            let Ok(id) = u32::try_from(token.0) else { continue };
            let Sent { handed_over, source, number, token, .. } = self.sent.remove(MessageId(id));
            self.observer.dropped(&LostPacket { at, handed_over, source, number, token, reason: Loss::InNetwork });
        }
    }
}

impl<N: FlowFabric, O: Observer> Simulation for FlowPackets<N, O> {
    fn hosts(&self) -> u32 {
        self.network.hosts()
    }

    fn next_event(&self) -> Option<SimTime> {
        self.network.next_event()
    }

    fn advance(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> SimTime {
        let before = deliveries.len();
        let reached = self.network.advance(until, &mut self.arrived);
        self.tell(deliveries);
        deliveries[before..].sort_by_key(|delivery| delivery.token.0);
        reached
    }

    fn events(&self) -> u64 {
        self.network.events()
    }

    fn figures(&self) -> NetworkFigures {
        self.network.figures()
    }
}

impl<N: FlowFabric, O: Observer> PacketFabric<O> for FlowPackets<N, O> {
    fn send(&mut self, now: SimTime, message: &Message) {
        let Message { source, destination, bytes, token, .. } = *message;
        let network = &mut self.network;
        let (flow, switches) = *self.flows.entry((source, destination)).or_insert_with(|| {
            let flow = network.open_flow(source, destination);
            (flow, network.switches(flow))
        });
        let number = &mut self.numbers[source.0 as usize];
        let wire_bytes = self.link.as_ref().map_or(bytes, |link| link.message(bytes).1);
        let sent = Sent { handed_over: now, source, destination, number: *number, wire_bytes, switches, token };
        *number += 1;
        let id = self.sent.insert(sent);
        network.send(now, flow, bytes, Token(id.0.into()));
    }

    fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    fn link_time(&self) -> Result<LinkTime, HostLinksDiffer> {
        self.link.clone()
    }

    fn lane_bytes(&self, now: SimTime) -> Vec<u64> {
        self.network.link_bytes(now)
    }
}
