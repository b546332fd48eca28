//! The receiving end of TCP: reassembly, delivery, and when an ACK leaves.

use super::flow::{Ack, NONE, Packet};
use super::{Ethernet, Event};
use crate::kernel::Phase;
use crate::network::Delivery;
use crate::time::SimTime;

/// The longest and usual delay of an ACK (Linux: 40 ms).
const DELAY_PS: u64 = 40_000_000_000;

impl Ethernet {
    /// A packet's last bit (and the host's own time for it) is in.
    pub(super) fn arrived(&mut self, now: SimTime, packet: &Packet, deliveries: &mut Vec<Delivery>) {
        if packet.ack_flow != NONE {
            self.acknowledged(now, packet.ack_flow, &packet.ack);
        }
        if packet.data_flow != NONE {
            self.take_data(now, packet, deliveries);
        }
    }

    fn take_data(&mut self, now: SimTime, packet: &Packet, deliveries: &mut Vec<Delivery>) {
        let flow = packet.data_flow;
        let quick_acks = self.config.quick_acks;
        let largest_window = self.config.receive_window_max.get();
        let segment = self.segment_bytes;
        let receiver = &mut self.flows[flow].receiver;
        let had_gap = !receiver.beyond.is_empty();
        let before = receiver.next;
        let news = receiver.take(packet.start, packet.start + u64::from(packet.len));
        if now.since_ps(receiver.last_arrival) > super::sender::TIMEOUT_MIN_PS {
            receiver.quick = receiver.quick.max(quick_acks);
        }
        receiver.last_arrival = now;
        receiver.newest = packet.start;
        if receiver.reported == before || !news || had_gap {
            receiver.echo = packet.sent_at;
        }
        let in_order = news && receiver.next > before;
        if in_order {
            grow_window(receiver, now, packet.round_trip, segment, largest_window);
            while let Some((end, token)) = receiver.marks.front() {
                if *end > receiver.next {
                    break;
                }
                deliveries.push(Delivery { token: *token, at: now });
                receiver.marks.pop_front();
            }
        }
        let at_once = !in_order
            || had_gap
            || receiver.next - receiver.reported > segment
            || receiver.quick > 0
            || (packet.push && !receiver.interactive);
        if at_once {
            self.send_ack(now, flow);
        } else {
            self.delay_ack(now, flow);
        }
    }

    fn delay_ack(&mut self, now: SimTime, flow: u32) {
        let place = self.flow_place(flow);
        let receiver = &mut self.flows[flow].receiver;
        let by = *receiver.ack_by.get_or_insert(now.plus_ps(DELAY_PS));
        if receiver.ack_event.is_none() {
            receiver.ack_event = Some(by);
            self.queue.schedule(by, Phase::Arrive, place, Event::DelayedAck(flow));
        }
    }

    /// An event looks whether an ACK is overdue.
    pub(super) fn delayed_ack(&mut self, now: SimTime, flow: u32) {
        let place = self.flow_place(flow);
        let receiver = &mut self.flows[flow].receiver;
        receiver.ack_event = None;
        match receiver.ack_by {
            Some(by) if by <= now => {
                receiver.interactive = false;
                self.delayed_acks += 1;
                self.send_ack(now, flow);
            }
            Some(by) => {
                receiver.ack_event = Some(by);
                self.queue.schedule(by, Phase::Arrive, place, Event::DelayedAck(flow));
            }
            None => {}
        }
    }

    /// Sends a packet that carries nothing but the ACK of `flow`.
    fn send_ack(&mut self, now: SimTime, flow: u32) {
        let ack = self.report(flow);
        let packet = Packet {
            at: self.flows[flow].ack_path,
            wire: self.wire_bytes(0),
            data_flow: NONE,
            len: 0,
            start: 0,
            sent_at: now,
            round_trip: 0,
            push: false,
            ack_flow: flow,
            ack,
        };
        self.enqueue_ack(now, packet);
    }

    /// What the receiver of `flow` has to say; with that it is said.
    fn report(&mut self, flow: u32) -> Ack {
        let receiver = &mut self.flows[flow].receiver;
        receiver.quick = receiver.quick.saturating_sub(1);
        receiver.reported = receiver.next;
        receiver.ack_by = None;
        let block = receiver.block_with(receiver.newest).or_else(|| receiver.beyond.last().copied());
        let (sack_start, sack_end) = block.unwrap_or((0, 0));
        Ack { next: receiver.next, sack_start, sack_end, window: receiver.window, echo: receiver.echo }
    }

    /// Data of the other direction leave: they carry the ACK of `flow`, if there is one to be sent.
    pub(super) fn ack_to_carry(&mut self, now: SimTime, flow: u32) -> (u32, Ack) {
        if flow == NONE {
            return (NONE, Ack::default());
        }
        let receiver = &mut self.flows[flow].receiver;
        if receiver.last_arrival > SimTime::ZERO && now.since_ps(receiver.last_arrival) < DELAY_PS {
            receiver.interactive = true;
        }
        if receiver.next == receiver.reported {
            return (NONE, Ack::default());
        }
        (flow, self.report(flow))
    }
}

/// Dynamic right-sizing: the window is twice what came in a round trip (as the sender knew it when it sent), and some; it never shrinks.
fn grow_window(receiver: &mut super::flow::Receiver, now: SimTime, round_trip: u64, segment: u64, largest: u64) {
    if now.since_ps(receiver.round_start) < round_trip.max(1) {
        return;
    }
    let copied = receiver.next - receiver.round_from;
    let wanted = 2 * copied + 16 * segment;
    receiver.window = receiver.window.max(wanted.min(largest));
    receiver.round_start = now;
    receiver.round_from = receiver.next;
}
