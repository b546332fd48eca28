//! What a part of the network sends others, and takes in from them.

use super::border::{Crossing, FlowEnds, Mail, Ways};
use super::flow::{NONE, Packet, TcpFlow};
use super::numbered::Numbered;
use super::{Ethernet, Event};
use crate::fabric::slab::Slab;
use crate::kernel::{Phase, Place};
use crate::network::{Delivery, Token};
use crate::time::SimTime;

impl Ethernet {
    /// A new packet has begun to cross `link`, at whose end it is at `arrives`.
    pub(super) fn cross(&mut self, link: u32, arrives: SimTime, packet: Packet) {
        if !self.send_away(link, arrives, &packet) {
            let id = self.packets.insert(packet);
            self.queue.schedule(arrives, Phase::Arrive, Place(link), Event::Arrive(id));
        }
    }

    /// Sends a packet away if `link` ends in another part. Returns whether it does.
    #[inline]
    pub(super) fn send_away(&mut self, link: u32, arrives: SimTime, packet: &Packet) -> bool {
        self.border.as_mut().is_some_and(|border| border.send_away(link, arrives, packet))
    }

    /// Takes in what comes from another part.
    pub(super) fn take_in(&mut self, packets: &mut Vec<Crossing>) {
        for Crossing { arrives, link, hop, ends, packet } in packets.drain(..) {
            let (flow, is_ack) = packet.flow();
            let Some(ways) = self.ways_of(flow, ends) else { continue };
            let start = if is_ack { ways.back } else { ways.there };
            let id = self.packets.insert(Packet { at: start + hop, ..packet });
            self.queue.schedule(arrives, Phase::Arrive, Place(link), Event::Arrive(id));
        }
    }

    /// The ways of a flow, which are looked up if they are not known here.
    fn ways_of(&mut self, flow: u32, ends: FlowEnds) -> Option<Ways> {
        if let Some(ways) = self.border.as_ref()?.ways(flow) {
            return Some(ways);
        }
        let (source, destination) = ends;
        let there = self.add_path(source.0, destination.0, flow.into());
        let back = self.add_path(destination.0, source.0, flow.into());
        let ways = Ways { ends, there, back };
        self.border.as_mut()?.know(flow, ways);
        Some(ways)
    }

    /// Opens a flow of which an end is here by the number that it has in the whole network, unless it is open.
    pub(super) fn open_numbered(&mut self, flow: u32, ends: FlowEnds) {
        if self.flows.get(flow).is_some() {
            return;
        }
        let ways = if ends.0 == ends.1 { None } else { self.ways_of(flow, ends) };
        let (path, ack_path) = ways.map_or((0, NONE), |ways| (ways.there, ways.back));
        let opened = TcpFlow { ack_path, ..self.new_flow(path, ends.0 == ends.1) };
        self.flows.insert(flow, opened);
    }

    /// A message to a host of this part is under way, handed over in another one, that ends there in its flow.
    pub(super) fn announce(&mut self, flow: u32, ends: FlowEnds, end: u64, token: Token) {
        self.open_numbered(flow, ends);
        self.flows[flow].receiver.marks.push_back((end, token));
    }

    /// All events before `until`, that instant not included.
    pub(super) fn run_all_before(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) {
        let Some(last) = until.0.checked_sub(1).map(SimTime) else { return };
        while let Some((now, event)) = self.queue.pop_until(last) {
            self.process(now, event, deliveries);
        }
    }

    /// What there is for each part.
    pub(super) fn mail(&self) -> &[Mail] {
        self.border.as_ref().map_or(&[], |border| border.mail.as_slice())
    }

    pub(super) fn mail_mut(&mut self) -> &mut [Mail] {
        self.border.as_mut().map_or(&mut [], |border| border.mail.as_mut_slice())
    }

    /// Forgets what is under way. What was counted stays.
    pub(super) fn forget_packets(&mut self) {
        self.queue.forget();
        self.packets = Slab::default();
        self.looped = Slab::default();
        self.flows = Numbered::of_part();
        self.paths = Vec::new();
    }

    /// Hands over bytes of a flow to another part. Returns where they end in it.
    pub(super) fn send_to_part(&mut self, now: SimTime, flow: u32, bytes: u64) -> u64 {
        let end = self.write(flow, bytes);
        self.try_send(now, flow);
        end
    }
}
