//! The receiving end: what has arrived, and when an ACK leaves.

use super::{Data, Mistake, Packet, PlainEthernet};
use netsim::fabric::ethernet::EthernetConfig;
use netsim::network::{Delivery, Token};
use netsim::time::SimTime;

const DELAYED_ACK_PS: u64 = 40_000_000_000;
/// After a pause of this length ACKs are sent at once again.
const PAUSE_PS: u64 = 200_000_000_000;

#[derive(Clone, Copy)]
pub struct Ack {
    /// All bytes below have arrived.
    pub next: u64,
    /// A block beyond has arrived.
    pub block: Option<(u64, u64)>,
    pub window: u64,
    /// When the segment that caused it was sent.
    pub echo: SimTime,
}

pub struct Receiver {
    /// Each segment that has arrived, in the order of arrival.
    arrived: Vec<(u64, u64)>,
    reported: u64,
    quick: u32,
    interactive: bool,
    last_arrival: SimTime,
    pub ack_by: Option<SimTime>,
    echo: SimTime,
    window: u64,
    round_start: SimTime,
    round_from: u64,
    /// Where messages end.
    pub marks: Vec<(u64, Token)>,
}

impl Receiver {
    pub fn new(config: &EthernetConfig) -> Self {
        Self {
            arrived: Vec::new(),
            reported: 0,
            quick: config.quick_acks,
            interactive: false,
            last_arrival: SimTime::ZERO,
            ack_by: None,
            echo: SimTime::ZERO,
            window: config.receive_window.get(),
            round_start: SimTime::ZERO,
            round_from: 0,
            marks: Vec::new(),
        }
    }

    /// What has arrived, as ranges in order that do not touch.
    fn ranges(&self) -> Vec<(u64, u64)> {
        let mut sorted = self.arrived.clone();
        sorted.sort_unstable();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (start, end) in sorted {
            match ranges.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => ranges.push((start, end)),
            }
        }
        ranges
    }

    /// All bytes below have arrived.
    fn next(&self) -> u64 {
        self.ranges().first().filter(|range| range.0 == 0).map_or(0, |range| range.1)
    }

    /// What has arrived behind a gap.
    fn beyond(&self) -> Vec<(u64, u64)> {
        self.ranges().into_iter().filter(|range| range.0 > 0).collect()
    }

    fn bytes(&self) -> u64 {
        self.ranges().iter().map(|(start, end)| end - start).sum()
    }

    /// What there is to say; with that it is said.
    fn report(&mut self) -> Ack {
        self.quick = self.quick.saturating_sub(1);
        self.reported = self.next();
        self.ack_by = None;
        let newest = self.arrived.last().map_or(0, |segment| segment.0);
        let beyond = self.beyond();
        let block = beyond.iter().find(|range| range.0 <= newest && newest < range.1).or(beyond.last()).copied();
        Ack { next: self.next(), block, window: self.window, echo: self.echo }
    }
}

impl PlainEthernet {
    pub(super) fn take_data(&mut self, now: SimTime, sent_at: SimTime, data: &Data, deliveries: &mut Vec<Delivery>) {
        let segment_bytes = self.segment_bytes();
        let makes = |mistake| self.mistake == Some(mistake);
        let receiver = &mut self.flows[data.flow].receiver;
        let (had_gap, before, bytes) = (!receiver.beyond().is_empty(), receiver.next(), receiver.bytes());
        receiver.arrived.push((data.start, data.start + data.len));
        let next = receiver.next();
        let is_news = receiver.bytes() > bytes;
        if now.since_ps(receiver.last_arrival) > PAUSE_PS && !makes(Mistake::QuickAcksNeverAgain) {
            receiver.quick = receiver.quick.max(self.config.quick_acks);
        }
        receiver.last_arrival = now;
        if receiver.reported == before || !is_news || had_gap || makes(Mistake::EchoOfLast) {
            receiver.echo = sent_at;
        }
        let in_order = next > before;
        if in_order {
            if now.since_ps(receiver.round_start) >= data.round_trip.max(1) && !makes(Mistake::WindowFixed) {
                let wanted = 2 * (next - receiver.round_from) + 16 * segment_bytes;
                receiver.window = receiver.window.max(wanted.min(self.config.receive_window_max.get()));
                (receiver.round_start, receiver.round_from) = (now, next);
            }
            let whole = receiver.marks.iter().filter(|(end, _)| *end <= next);
            deliveries.extend(whole.map(|(_, token)| Delivery { token: *token, at: now }));
            receiver.marks.retain(|(end, _)| *end > next);
        }
        let at_once = !in_order
            || had_gap
            || next - receiver.reported > segment_bytes
            || receiver.quick > 0
            || (data.push && !receiver.interactive);
        if at_once {
            self.send_ack(now, data.flow);
        } else if receiver.ack_by.is_none() {
            receiver.ack_by = Some(now.plus_ps(DELAYED_ACK_PS));
        }
    }

    pub(super) fn delayed_ack(&mut self, now: SimTime, flow: usize) {
        self.flows[flow].receiver.interactive = false;
        self.counters.delayed_acks += 1;
        self.send_ack(now, flow);
    }

    fn send_ack(&mut self, now: SimTime, flow: usize) {
        let ack = self.flows[flow].receiver.report();
        let packet = Packet { wire: self.wire(0), sent_at: now, data: None, ack: Some((flow, ack)), hops: 0 };
        if self.launch(now, packet).is_none() {
            self.counters.refused_acks += 1;
            if let Some(peer) = self.flows[flow].peer {
                self.flows[peer].sender.slow_down();
            }
        }
    }

    /// The ACK that data of the other direction carry.
    pub(super) fn ack_to_carry(&mut self, now: SimTime, flow: Option<usize>) -> Option<(usize, Ack)> {
        let flow = flow.filter(|_| !self.makes(Mistake::NothingCarried))?;
        let receiver = &mut self.flows[flow].receiver;
        if receiver.last_arrival > SimTime::ZERO && now.since_ps(receiver.last_arrival) < DELAYED_ACK_PS {
            receiver.interactive = true;
        }
        (receiver.next() > receiver.reported).then(|| (flow, receiver.report()))
    }
}
