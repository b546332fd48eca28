//! From the packets between two addresses to connections: ports are used again.

use std::ops::Range;

use trace::packet::flag;

use crate::capture::observed::Observed;

/// The packets of one connection as one host saw them.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// Which of the flow's packets, in the order of time.
    pub packets: Range<usize>,
    first: Observed,
    /// Initial sequence numbers: of the lower address, of the higher one.
    pub isn: [Option<u32>; 2],
    /// Who sent the first SYN: true = the lower address.
    pub opened_by_low: Option<bool>,
    ended: [bool; 2],
    last: [Option<u32>; 2],
}

/// Farther than any window reaches: a sequence number so far from the last one belongs to another connection, if this
/// one was seen to end.
const FAR: u32 = 1 << 26;

impl Part {
    fn push(&mut self, packet: &Observed) {
        let from = usize::from(!packet.forward);
        if packet.has(flag::SYN) {
            self.isn[from] = Some(packet.sequence);
            if !packet.has(flag::ACK) {
                self.opened_by_low.get_or_insert(packet.forward);
            }
        }
        if packet.has(flag::FIN) {
            self.ended[from] = true;
        }
        if packet.has(flag::RST) {
            self.ended = [true, true];
        } else {
            self.last[from] = Some(packet.sequence);
        }
        if self.packets.is_empty() {
            self.first = *packet;
        }
        self.packets.end += 1;
    }

    /// Whether a packet begins another connection.
    fn ends_before(&self, packet: &Observed) -> bool {
        let from = usize::from(!packet.forward);
        if packet.has(flag::SYN) && !packet.has(flag::RST) {
            return match self.isn[from] {
                Some(isn) => isn != packet.sequence,
                // Time stamps of two processors can put an answer before its SYN: the answer names it.
                None => match self.isn[1 - from] {
                    Some(_) if self.packets.len() == 1 => {
                        self.first.acknowledgement != packet.sequence.wrapping_add(1)
                            && packet.acknowledgement != self.first.sequence.wrapping_add(1)
                    }
                    Some(isn) => packet.acknowledgement != isn.wrapping_add(1),
                    None => true,
                },
            };
        }
        let over = self.ended == [true, true];
        over && !packet.has(flag::RST)
            && self.last[from].is_some_and(|last| {
                let distance = packet.sequence.wrapping_sub(last);
                distance.min(distance.wrapping_neg()) > FAR
            })
    }

    /// Whether two hosts' parts can be the same connection.
    fn agrees(&self, other: &Self) -> bool {
        let mut same = false;
        for side in 0..2 {
            match (self.isn[side], other.isn[side]) {
                (Some(a), Some(b)) if a != b => return false,
                (Some(_), Some(_)) => same = true,
                _ => {}
            }
        }
        same || (0..2).all(|side| match (self.reach(side), other.reach(side)) {
            (Some(a), Some(b)) => {
                let distance = a.wrapping_sub(b);
                distance.min(distance.wrapping_neg()) < 1 << 30
            }
            _ => true,
        })
    }

    /// A sequence number of one side.
    fn reach(&self, side: usize) -> Option<u32> {
        self.last[side].or(self.isn[side])
    }
}

/// Cuts the packets of a flow, ordered by time, where another connection begins.
pub(super) fn split(packets: &[Observed]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (number, packet) in packets.iter().enumerate() {
        match parts.last_mut() {
            Some(part) if !part.ends_before(packet) => part.push(packet),
            _ => {
                let mut part = Part { packets: number..number, ..Part::default() };
                part.push(packet);
                parts.push(part);
            }
        }
    }
    parts
}

/// Brings together what several hosts saw of the same connections, in the order of the host that saw most of them.
pub(super) fn pair(mut by_host: Vec<(usize, Vec<Part>)>) -> Vec<Vec<(usize, Part)>> {
    by_host.sort_by_key(|(host, parts)| (std::cmp::Reverse(parts.len()), *host));
    let mut joined: Vec<Vec<(usize, Part)>> = Vec::new();
    for (host, parts) in by_host {
        // Those behind are of this host itself.
        let (mut from, behind) = (0, joined.len());
        for part in parts {
            let found = (from..behind)
                .find(|&at| joined[at].iter().all(|(other_host, other)| *other_host != host && other.agrees(&part)));
            match found {
                Some(at) => {
                    joined[at].push((host, part));
                    from = at + 1;
                }
                None => joined.push(vec![(host, part)]),
            }
        }
    }
    joined
}
