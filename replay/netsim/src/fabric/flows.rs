//! Flows over a fabric that simulates packets: what the replay of a trace sees of it.
//!
//! Each hand-over is a message; a flow's messages are delivered in the order in which they were handed over, for a
//! message that is complete waits for those before it. A host's traffic to itself goes over its loopback.

use super::ids::MessageId;
use super::packet::{Message, PacketFabric, ServiceLevel};
use super::pipe::{Pipe, PipeConfig};
use super::slab::Slab;
use crate::count::count;
use crate::kernel::{EventQueue, Phase, Place};
use crate::network::{Delivery, FlowId, HostIndex, Network, NetworkFigures, Simulation, Token};
use crate::time::SimTime;
use std::collections::VecDeque;

/// One direction of a connection.
struct MessageFlow {
    source: HostIndex,
    destination: HostIndex,
    loopback: Option<Pipe>,
    /// Its messages that are not delivered, in the order of their hand-over.
    under_way: VecDeque<MessageId>,
}

/// A message that is not delivered.
#[derive(Clone, Copy)]
struct Sent {
    flow: u32,
    token: Token,
    complete: bool,
}

/// A packet fabric as a network of flows.
pub struct Flows<F> {
    fabric: F,
    pipe: PipeConfig,
    flows: Vec<MessageFlow>,
    sent: Slab<MessageId, Sent>,
    looping: EventQueue<Token>,
    looped_bytes: u64,
    complete: Vec<Delivery>,
}

impl<F: PacketFabric<()>> Flows<F> {
    /// Flows over `fabric`, with a loopback of `pipe` at each host.
    #[must_use]
    pub fn new(fabric: F, pipe: PipeConfig) -> Self {
        Self {
            fabric,
            pipe,
            flows: Vec::new(),
            sent: Slab::default(),
            looping: EventQueue::new(1 << 34),
            looped_bytes: 0,
            complete: Vec::new(),
        }
    }

    /// A message is complete: delivers it, and those that waited for it, unless it must wait itself.
    fn completed(&mut self, delivery: Delivery, deliveries: &mut Vec<Delivery>) {
        let Ok(id) = u32::try_from(delivery.token.0) else { return };
        let sent = self.sent.get_mut(MessageId(id));
        sent.complete = true;
        let flow = &mut self.flows[sent.flow as usize];
        while let Some(first) = flow.under_way.front().copied() {
            if !self.sent.get(first).complete {
                break;
            }
            flow.under_way.pop_front();
            deliveries.push(Delivery { token: self.sent.remove(first).token, at: delivery.at });
        }
    }
}

impl<F: PacketFabric<()>> Simulation for Flows<F> {
    fn hosts(&self) -> u32 {
        self.fabric.hosts()
    }

    fn next_event(&self) -> Option<SimTime> {
        match (self.fabric.next_event(), self.looping.next_time()) {
            (Some(fabric), Some(looping)) => Some(fabric.min(looping)),
            (fabric, looping) => fabric.or(looping),
        }
    }

    fn advance(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> SimTime {
        let before = deliveries.len();
        loop {
            let target = self.looping.next_time().map_or(until, |at| at.min(until));
            let mut complete = std::mem::take(&mut self.complete);
            let at = self.fabric.advance(target, &mut complete);
            let nothing = complete.is_empty();
            for delivery in complete.drain(..) {
                self.completed(delivery, deliveries);
            }
            self.complete = complete;
            while let Some((at, token)) = self.looping.pop_until(at) {
                deliveries.push(Delivery { token, at });
            }
            if deliveries.len() > before {
                deliveries[before..].sort_by_key(|delivery| delivery.token.0);
                return at;
            }
            if nothing && at >= until {
                return until;
            }
        }
    }

    fn figures(&self) -> NetworkFigures {
        let mut figures = self.fabric.figures();
        figures.events += self.looping.processed();
        figures.counters.push(("loopback bytes".to_owned(), self.looped_bytes));
        figures
    }
}

impl<F: PacketFabric<()>> Network for Flows<F> {
    fn open_flow(&mut self, source: HostIndex, destination: HostIndex) -> FlowId {
        let loopback = (source == destination).then(Pipe::default);
        self.flows.push(MessageFlow { source, destination, loopback, under_way: VecDeque::new() });
        FlowId(count(self.flows.len() - 1))
    }

    fn send(&mut self, now: SimTime, flow: FlowId, bytes: u64, token: Token) {
        self.send_part(now, flow, bytes, bytes, token);
    }

    fn send_part(&mut self, now: SimTime, flow: FlowId, bytes: u64, of_bytes: u64, token: Token) {
        let entry = &mut self.flows[flow.0 as usize];
        if let Some(pipe) = &mut entry.loopback {
            let at = pipe.hand_over(now, bytes, &self.pipe);
            self.looped_bytes += bytes;
            self.looping.schedule(at, Phase::Arrive, Place(flow.0), token);
            return;
        }
        let id = self.sent.insert(Sent { flow: flow.0, token, complete: false });
        entry.under_way.push_back(id);
        let message = Message {
            source: entry.source,
            destination: entry.destination,
            bytes,
            level: ServiceLevel(0),
            flow: flow.0.into(),
            token: Token(id.0.into()),
        };
        self.fabric.send_part(now, &message, of_bytes);
    }
}
