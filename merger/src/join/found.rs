//! Connections as they stand in the packets, before times are moved and before it is known who opened them.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use trace::packet::flag;

use super::split::{Part, pair, split};
use super::stream::window_shift;
use crate::capture::observed::Observed;
use crate::capture::settled::FlowPackets;
use crate::spilled::{Reader, Record, SharedSorter, Writer};

/// What a host saw of a connection, without its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sighting {
    pub host: u32,
    /// Which of the flow's packets: the first one, and the first behind them. Each takes two bytes at least of the 4 GiB that a flow may have.
    pub packets: (u32, u32),
    /// First and last, on the host's clock.
    pub range_ns: (u64, u64),
    /// SYN and SYN-ACK, on the host's clock.
    pub handshake_ns: Option<(u64, u64)>,
    /// Packets with payload of the higher and of the lower address, as room is made for them: resets may be among them.
    pub data: [u32; 2],
}

impl Sighting {
    /// Of a host's packets of a connection, and which of its ends were seen to end: the higher and the lower address.
    fn of(host: usize, part: &Part, packets: &[Observed]) -> (Self, [bool; 2]) {
        let (mut first, mut last) = (u64::MAX, 0);
        let (mut data, mut ended, mut has_syn) = ([0u32; 2], [false; 2], false);
        for packet in packets {
            first = first.min(packet.time_ns);
            last = last.max(packet.time_ns);
            data[usize::from(packet.forward)] += u32::from(packet.payload_length > 0);
            if packet.flags & (flag::SYN | flag::FIN | flag::RST) != 0 {
                has_syn |= packet.has(flag::SYN);
                if packet.has(flag::RST) {
                    ended = [true; 2];
                } else if packet.has(flag::FIN) {
                    ended[usize::from(packet.forward)] = true;
                }
            }
        }
        let range_ns = if packets.is_empty() { (0, 0) } else { (first, last) };
        let handshake_ns = if has_syn { handshake(packets) } else { None };
        let packets = (in_32_bits(part.packets.start), in_32_bits(part.packets.end));
        (Self { host: in_32_bits(host), packets, range_ns, handshake_ns, data }, ended)
    }
}

/// What all hosts together saw of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct About {
    /// Of the lower and of the higher address.
    pub isn: [Option<u32>; 2],
    pub opened_by_low: Option<bool>,
    pub syn_ack_from_low: Option<bool>,
    pub ended: bool,
    /// Of the lower and of the higher address.
    pub window_shifts: [Option<u32>; 2],
}

/// A connection as it stands in the packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(super) about: About,
    pub(super) sightings: Vec<Sighting>,
}

/// The connections of a flow, by what each host saw of it.
pub(crate) fn find(views: &[(usize, FlowPackets)]) -> Vec<Found> {
    let parts = views.iter().map(|(host, view)| (*host, split(&view.packets))).collect();
    let packets_of = |host: usize, part: &Part| -> &[Observed] {
        let view = views.iter().find(|(other, _)| *other == host);
        view.and_then(|(_, view)| view.packets.get(part.packets.clone())).unwrap_or(&[])
    };
    pair(parts)
        .into_iter()
        .map(|parts| {
            let seen: Vec<(usize, &Part, &[Observed])> =
                parts.iter().map(|(host, part)| (*host, part, packets_of(*host, part))).collect();
            Found::new(&seen)
        })
        .collect()
}

impl Found {
    fn new(seen: &[(usize, &Part, &[Observed])]) -> Self {
        let mut isn = [None; 2];
        let mut opened_by_low = None;
        let mut ended = [false; 2];
        let mut sightings = Vec::with_capacity(seen.len());
        for (host, part, packets) in seen {
            isn[0] = isn[0].or(part.isn[0]);
            isn[1] = isn[1].or(part.isn[1]);
            opened_by_low = opened_by_low.or(part.opened_by_low);
            let (sighting, ended_here) = Sighting::of(*host, part, packets);
            ended = [ended[0] | ended_here[0], ended[1] | ended_here[1]];
            sightings.push(sighting);
        }
        let learn = |forward: bool| seen.iter().find_map(|(_, _, packets)| window_shift(packets.iter(), forward));
        let answer =
            || seen.iter().flat_map(|(_, _, packets)| *packets).find(|packet| packet.has(flag::SYN | flag::ACK));
        let has_syn = isn.iter().any(Option::is_some);
        let about = About {
            isn,
            opened_by_low,
            syn_ack_from_low: if has_syn { answer().map(|answer| answer.forward) } else { None },
            ended: ended == [true; 2],
            window_shifts: if has_syn { [learn(true), learn(false)] } else { [None; 2] },
        };
        Self { about, sightings }
    }
}

/// Connections of all flows, in a temporary file where they are many.
#[derive(Debug, Default)]
pub(crate) struct FoundConnections {
    sightings: SharedSorter<FoundSighting>,
    count: AtomicUsize,
}

/// A sighting of a connection, with what all hosts saw of it. Their order is that of flows, connections and sightings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FoundSighting {
    flow: u32,
    /// Which of the flow's connections, and which of its sightings.
    place: (u32, u32),
    about: About,
    sighting: Sighting,
}

impl FoundConnections {
    /// Takes in what was found in a flow.
    ///
    /// # Errors
    /// If a temporary file cannot be written.
    pub fn extend(&self, flow: usize, found: &[Found]) -> io::Result<()> {
        self.count.fetch_add(found.len(), Ordering::Relaxed);
        self.sightings.extend((0..).zip(found).flat_map(|(number, found)| {
            let sightings = (0..).zip(&found.sightings);
            sightings.map(move |(place, sighting)| FoundSighting {
                flow: in_32_bits(flow),
                place: (number, place),
                about: found.about,
                sighting: *sighting,
            })
        }))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Hands over all of them with the numbers of their flows, in the order of these.
    ///
    /// # Errors
    /// If a temporary file cannot be read.
    pub fn for_each(self, mut take: impl FnMut(usize, Found)) -> io::Result<()> {
        let sorted = self.sightings.sorted();
        let mut sightings = sorted.iter().peekable();
        while let Some(first) = sightings.next() {
            let is_of_it = |next: &FoundSighting| (next.flow, next.place.0) == (first.flow, first.place.0);
            let mut found = Found { about: first.about, sightings: vec![first.sighting] };
            found.sightings.extend(std::iter::from_fn(|| sightings.next_if(is_of_it)).map(|next| next.sighting));
            take(first.flow as usize, found);
        }
        sorted.check()
    }
}

impl FoundSighting {
    /// A bit each of what may be missing, and of what is yes or no.
    fn flags(&self) -> u16 {
        let About { isn, opened_by_low, syn_ack_from_low, ended, window_shifts } = self.about;
        let bits = [
            isn[0].is_some(),
            isn[1].is_some(),
            opened_by_low.is_some(),
            opened_by_low == Some(true),
            syn_ack_from_low.is_some(),
            syn_ack_from_low == Some(true),
            ended,
            window_shifts[0].is_some(),
            window_shifts[1].is_some(),
            self.sighting.handshake_ns.is_some(),
        ];
        (0..).zip(bits).fold(0, |flags, (number, bit)| flags | (u16::from(bit) << number))
    }
}

impl Record for FoundSighting {
    const BLANK: Self = Self {
        flow: 0,
        place: (0, 0),
        about: About {
            isn: [None; 2],
            opened_by_low: None,
            syn_ack_from_low: None,
            ended: false,
            window_shifts: [None; 2],
        },
        sighting: Sighting { host: 0, packets: (0, 0), range_ns: (0, 0), handshake_ns: None, data: [0; 2] },
    };
    const BYTES: usize = 3 * 4 + 2 + 2 * 4 + 2 + 3 * 4 + 2 * 8 + 2 * 8 + 2 * 4;

    fn write(&self, out: &mut Writer<'_>) {
        let Self { flow, place, about, sighting } = self;
        [*flow, place.0, place.1].iter().for_each(|number| number.write(out));
        out.bytes(self.flags().to_le_bytes());
        about.isn.iter().for_each(|isn| isn.unwrap_or(0).write(out));
        out.bytes(about.window_shifts.map(|shift| shift.unwrap_or(0) as u8));
        [sighting.host, sighting.packets.0, sighting.packets.1].iter().for_each(|number| number.write(out));
        let (asked, answered) = sighting.handshake_ns.unwrap_or((0, 0));
        [sighting.range_ns.0, sighting.range_ns.1, asked, answered].iter().for_each(|time| time.write(out));
        sighting.data.iter().for_each(|count| count.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Self {
        let (flow, place, flags) = (input.u32(), (input.u32(), input.u32()), input.u16());
        let is = |number: u32| flags & (1 << number) != 0;
        let isn = [0, 1].map(|end| Some(input.u32()).filter(|_| is(end)));
        let window_shifts = [7, 8].map(|end| Some(u32::from(input.u8())).filter(|_| is(end)));
        let (host, packets) = (input.u32(), (input.u32(), input.u32()));
        let (range_ns, handshake_ns) = ((input.u64(), input.u64()), (input.u64(), input.u64()));
        let about = About {
            isn,
            opened_by_low: is(2).then(|| is(3)),
            syn_ack_from_low: is(4).then(|| is(5)),
            ended: is(6),
            window_shifts,
        };
        let handshake_ns = is(9).then_some(handshake_ns);
        let data = [input.u32(), input.u32()];
        Self { flow, place, about, sighting: Sighting { host, packets, range_ns, handshake_ns, data } }
    }
}

fn in_32_bits(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The last SYN before the answer, and the answer.
pub(super) fn handshake(packets: &[Observed]) -> Option<(u64, u64)> {
    let answer = packets.iter().find(|packet| packet.has(flag::SYN | flag::ACK))?;
    let asked = packets
        .iter()
        .rfind(|packet| packet.has(flag::SYN) && !packet.has(flag::ACK) && packet.time_ns <= answer.time_ns)?;
    Some((asked.time_ns, answer.time_ns))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    fn about() -> impl Strategy<Value = About> {
        let shift = || prop::option::of(0u32..15);
        let fields = (any::<[Option<u32>; 2]>(), any::<[Option<bool>; 2]>(), any::<bool>(), [shift(), shift()]);
        fields.prop_map(|(isn, [opened_by_low, syn_ack_from_low], ended, window_shifts)| About {
            isn,
            opened_by_low,
            syn_ack_from_low,
            ended,
            window_shifts,
        })
    }

    fn sighting() -> impl Strategy<Value = Sighting> {
        let fields =
            (any::<u32>(), any::<(u32, u32)>(), any::<(u64, u64)>(), any::<Option<(u64, u64)>>(), any::<[u32; 2]>());
        fields.prop_map(|(host, packets, range_ns, handshake_ns, data)| Sighting {
            host,
            packets,
            range_ns,
            handshake_ns,
            data,
        })
    }

    proptest! {
        #[test]
        fn what_was_found_is_handed_over_flow_by_flow(
            flows in prop::collection::vec(
                prop::collection::vec((about(), prop::collection::vec(sighting(), 1..4)), 0..4), 0..30,
            ),
            max_bytes in 0usize..2000,
        ) {
            let found: Vec<Vec<Found>> = flows
                .into_iter()
                .map(|found| found.into_iter().map(|(about, sightings)| Found { about, sightings }).collect())
                .collect();
            let all = FoundConnections { sightings: SharedSorter::within(max_bytes), count: AtomicUsize::new(0) };
            for (flow, found) in found.iter().enumerate().rev() {
                all.extend(flow, found).unwrap();
            }
            prop_assert_eq!(all.len(), found.iter().map(Vec::len).sum::<usize>());
            let mut handed_over = vec![Vec::new(); found.len()];
            let mut last = 0;
            all.for_each(|flow, found| {
                assert!(flow >= last);
                last = flow;
                handed_over[flow].push(found);
            })
            .unwrap();
            prop_assert_eq!(handed_over, found);
        }
    }
}
