//! The network below the ToRs, packet by packet and flit by flit: another fabric, to which each ToR is a host more.
//!
//! Without it servers have links of their own that carry whole packets. With it (`[fabric.rack]`) whatever leaves a server
//! crosses that fabric's links and rack switch: to another server of the rack, or to the ToR, which has a photonic packet
//! when its last flit is there. The other way the ToR sends each packet as a message to its server. Racks are
//! never joined by it.

use super::Lightness;
use super::state::rack::{InFlight, RackFlow};
use super::state::server::Packet;
use crate::fabric::ids::PacketId;
use crate::network::{Delivery, Simulation, Token};
use crate::time::SimTime;

impl Lightness {
    /// A message to another server of the rack leaves.
    pub(super) fn send_within(&mut self, now: SimTime, below: RackFlow, bytes: u64, token: Token) {
        if let Some(rack) = &mut self.rack_network {
            rack.send(now, below.first, bytes, InFlight::Message(token));
        }
    }

    /// A packet leaves its server for the ToR.
    pub(super) fn send_up(&mut self, now: SimTime, below: RackFlow, id: PacketId) {
        let bytes = self.packets.get(id).payload;
        if let Some(rack) = &mut self.rack_network {
            rack.send(now, below.first, bytes.into(), InFlight::Up(id));
        }
    }

    /// A packet leaves its destination's ToR, if there is such a network. Returns whether there is.
    pub(super) fn send_below(&mut self, now: SimTime, id: PacketId) -> bool {
        let Packet { flow, payload, .. } = *self.packets.get(id);
        let last = self.flows[flow as usize].below.and_then(|below| below.last);
        let (Some(rack), Some(last)) = (&mut self.rack_network, last) else { return false };
        rack.send(now, last, payload.into(), InFlight::Down(id));
        true
    }

    /// Lets the networks below the ToRs go on up to `now`.
    pub(super) fn advance_racks(&mut self, now: SimTime, deliveries: &mut Vec<Delivery>) {
        let mut arrived = Vec::new();
        loop {
            let Some(rack) = &mut self.rack_network else { return };
            if rack.network.next_event().is_none_or(|at| at > now) {
                return;
            }
            rack.network.advance(now, &mut arrived);
            let things: Vec<InFlight> =
                arrived.drain(..).filter_map(|delivery| rack.in_flight.remove(&delivery.token.0)).collect();
            for thing in things {
                match thing {
                    InFlight::Message(token) => deliveries.push(Delivery { token, at: now }),
                    InFlight::Up(id) => self.at_tor(now, id),
                    InFlight::Down(id) => self.received(now, id, deliveries),
                }
            }
        }
    }
}
