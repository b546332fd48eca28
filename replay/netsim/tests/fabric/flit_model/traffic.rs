//! What is sent, and what was seen of it.

use netsim::fabric::packet::{LostPacket, Message, Observer, PacketRecord, ServiceLevel};
use netsim::fabric::windows::PartObserver;
use netsim::network::{Delivery, HostIndex, Token};
use netsim::time::SimTime;

/// When a message is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At a time in picoseconds.
    At(u64),
    /// So many picoseconds after another message of this number was delivered.
    After(usize, u64),
}

/// A message and when it is handed over. Its token is its number in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    pub when: When,
    pub source: u32,
    pub destination: u32,
    pub bytes: u64,
    pub level: u8,
    pub flow: u64,
}

impl Sending {
    /// The message with its token `number`.
    pub fn message(&self, number: usize) -> Message {
        Message {
            source: HostIndex(self.source),
            destination: HostIndex(self.destination),
            bytes: self.bytes,
            level: ServiceLevel(self.level),
            flow: self.flow,
            token: Token(number as u64),
        }
    }
}

/// The messages that are handed over after the delivery of message `number`, and how long after.
pub fn answers(traffic: &[Sending], number: usize) -> Vec<(usize, u64)> {
    let mut answers = Vec::new();
    for (answer, sending) in traffic.iter().enumerate() {
        if let When::After(message, think) = sending.when
            && message == number
        {
            answers.push((answer, think));
        }
    }
    answers
}

/// A packet that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dropped {
    pub source: HostIndex,
    pub number: u64,
    pub at: SimTime,
    pub token: u64,
}

/// All that a run shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// The packets that were delivered.
    pub packets: Vec<PacketRecord>,
    /// The packets that were lost.
    pub dropped: Vec<Dropped>,
    /// The messages that were delivered.
    pub deliveries: Vec<Delivery>,
}

impl Seen {
    /// The same, packets ordered by source and number: the order in which packets of one instant are told is nobody's
    /// business.
    pub fn sorted(mut self) -> Self {
        self.packets.sort_by_key(|packet| (packet.source, packet.number));
        self.dropped.sort_by_key(|dropped| (dropped.source, dropped.number));
        self
    }
}

impl Observer for Seen {
    fn delivered(&mut self, packet: &PacketRecord) {
        self.packets.push(*packet);
    }

    fn dropped(&mut self, packet: &LostPacket) {
        let LostPacket { at, source, number, token, .. } = *packet;
        self.dropped.push(Dropped { source, number, at, token: token.0 });
    }
}

impl PartObserver for Seen {
    fn for_part(&self) -> Self {
        Self::default()
    }

    fn handed_over(&mut self, _at: SimTime, _message: &Message) {}

    fn opened(&mut self, _token: Token, packets: u64) {
        assert!(packets > 1);
    }

    fn merge(&mut self, other: Self) {
        self.packets.extend(other.packets);
        self.dropped.extend(other.dropped);
    }
}
