//! Packets and credits that cross the border of a part of the network. What is taken in is as if it had been sent within the part, for
//! nothing of it shows before the window ends in which it was sent.

use super::Credit;
use super::border::{Mail, SentPacket};
use super::packet::Packet;
use super::returns::Return;
use super::strategies::Strategies;
use crate::fabric::ids::{LaneId, PacketId};
use crate::fabric::packet::Observer;
use crate::time::SimTime;

impl<O: Observer, S: Strategies> Credit<O, S> {
    /// Packet `id` has started on `lane`, whose link ends in `part`.
    pub(super) fn send_packet_away(&mut self, part: u16, lane: LaneId, id: PacketId, times: (SimTime, SimTime)) {
        let packet = self.packets.remove(id);
        let message = self.messages.carry_away(packet.message);
        let link = self.link_numbers.global(self.number.link(lane));
        let (Some(border), Some(cut)) = (&mut self.border, self.link_numbers.cut()) else { return };
        let lane = self.number.lane(cut.input(link), self.number.vl(lane));
        border.mail[usize::from(part)].packets.push(SentPacket { lane, times, packet, message });
    }

    /// A packet starts to leave the buffer of `lane`, which begins in another part.
    pub(super) fn send_credits_away(&mut self, lane: LaneId, leaving: Return) {
        let link = self.link_numbers.global(self.number.link(lane));
        let (Some(border), Some(cut)) = (&mut self.border, self.link_numbers.cut()) else { return };
        let part = cut.part(self.topology.link(link).from);
        border.left(lane, &leaving);
        let lane = self.number.lane(cut.output(link), self.number.vl(lane));
        border.mail[usize::from(part)].credits.push((lane, leaving));
    }

    /// What another part has sent in the window that ended at `border`, but for word of messages.
    pub(super) fn take_in(&mut self, border: SimTime, mail: &mut Mail) {
        for SentPacket { lane, times: (started, head_at), packet, message } in mail.packets.drain(..) {
            let leaving = self.border.as_mut().map_or(0, |border| border.leaving(lane, started));
            let buffer = &mut self.lanes.ends[lane].buffer;
            buffer.held += u32::from(packet.credits);
            buffer.held_most = buffer.held_most.max(buffer.held + leaving);
            let message = self.messages.carry_in(message);
            let id = self.packets.insert(Packet { message, next: PacketId::NONE, ..packet });
            self.queue_packet(lane, id, head_at);
        }
        let last = SimTime(border.0.saturating_sub(1));
        for (lane, leaving) in mail.credits.drain(..) {
            self.receive_credits(lane, leaving, last);
        }
    }
}
