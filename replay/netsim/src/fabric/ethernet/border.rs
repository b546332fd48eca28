//! The edge of a part of the network: what one part sends another, and what it knows of flows that cross it.

use super::flow::Packet;
use crate::fabric::flow_packets::Sent;
use crate::network::HostIndex;
use crate::time::SimTime;
use std::sync::Arc;

/// Source and destination of a flow.
pub type FlowEnds = (HostIndex, HostIndex);

/// A packet on a link that ends in another part.
pub struct Crossing {
    /// When it is at the link's end.
    pub arrives: SimTime,
    pub link: u32,
    /// How many links it has behind it.
    pub hop: u32,
    pub ends: FlowEnds,
    pub packet: Packet,
}

/// Word of a message to a host of another part.
pub struct Announcement {
    /// The flow that carries it.
    pub flow: u32,
    /// Where that begins and ends.
    pub ends: FlowEnds,
    /// Where the message ends in the flow.
    pub end: u64,
    /// What the receiving part has to know of it.
    pub sent: Sent,
}

/// What one part sends another in a window.
#[derive(Default)]
pub struct Mail {
    /// In the order in which each link has taken them.
    pub packets: Vec<Crossing>,
    /// In each flow's order.
    pub announcements: Vec<Announcement>,
}

impl Mail {
    pub const fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.announcements.is_empty()
    }
}

/// Where the ways of a flow's data and of its ACKs begin in the table of paths.
#[derive(Clone, Copy)]
pub struct Ways {
    pub ends: FlowEnds,
    pub there: u32,
    pub back: u32,
}

/// What a part knows of the others.
pub struct Border {
    /// The part at the end of each link.
    ends_in: Arc<Vec<u16>>,
    part: u16,
    /// For each part.
    pub mail: Vec<Mail>,
    /// By flow, those that are known here.
    ways: Vec<Option<Ways>>,
}

impl Border {
    /// The border of `part`, one of `parts`; `ends_in` has the part at the end of each link.
    pub fn new(ends_in: Arc<Vec<u16>>, part: u16, parts: u16) -> Self {
        Self { ends_in, part, mail: (0..parts).map(|_| Mail::default()).collect(), ways: Vec::new() }
    }

    /// Whether a link begins here whose way back is `back`.
    pub fn begins_here(&self, back: u32) -> bool {
        self.ends_in[back as usize] == self.part
    }

    /// Whether `link` ends in another part.
    #[inline]
    pub fn ends_elsewhere(&self, link: u32) -> bool {
        self.ends_in[link as usize] != self.part
    }

    /// Puts a packet, which begins to cross `link`, into the mail if that ends elsewhere. Returns whether it does.
    pub fn send_away(&mut self, link: u32, arrives: SimTime, packet: &Packet) -> bool {
        if !self.ends_elsewhere(link) {
            return false;
        }
        let (flow, is_ack) = packet.flow();
        let known = self.ways(flow);
        debug_assert!(known.is_some(), "flow {flow} has come here by its ways");
        if let Some(ways) = known {
            let start = if is_ack { ways.back } else { ways.there };
            let crossing = Crossing { arrives, link, hop: packet.at - start, ends: ways.ends, packet: *packet };
            self.mail[usize::from(self.ends_in[link as usize])].packets.push(crossing);
        }
        true
    }

    /// The ways of a flow, if they are known here.
    pub fn ways(&self, flow: u32) -> Option<Ways> {
        self.ways.get(flow as usize).copied().flatten()
    }

    /// From now on the ways of a flow are known here.
    pub fn know(&mut self, flow: u32, ways: Ways) {
        let index = flow as usize;
        if index >= self.ways.len() {
            self.ways.resize(index + 1, None);
        }
        self.ways[index] = Some(ways);
    }
}
