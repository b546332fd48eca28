//! How long bytes waited on their way, beyond the least time between two hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rayon::prelude::*;

use super::windows::{Ends, WINDOW_NS, ends};
use crate::capture::observed::Observed;
use crate::join::{AddressBook, ObservedFlow};
use crate::survey::Views;

/// The longest waits between two hosts, by window of their arrival.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// The least time under way, by the clocks.
    least_ns: BTreeMap<Ends, i64>,
    /// The longest time of each window.
    longest_ns: BTreeMap<(Ends, u64), i64>,
    /// Windows in which a packet left that had to be sent again.
    lost: BTreeSet<(Ends, u64)>,
}

impl Waits {
    /// Of packets with payload that both hosts saw once, between the ends that are asked for.
    pub fn new(
        flows: &[ObservedFlow],
        book: &AddressBook,
        wanted: impl Fn(&Ends) -> bool + Sync,
        packets: impl Fn(&ObservedFlow) -> io::Result<Views> + Sync,
    ) -> io::Result<Self> {
        let of_flows = flows.par_iter().with_max_len(1).filter_map(|flow| {
            let both = [false, true].map(|forward| ends(&flow.key, forward, book).filter(&wanted));
            both.iter().any(Option::is_some).then_some((flow, both))
        });
        let transit =
            of_flows.map(|(flow, both)| Ok::<TransitTimes, io::Error>(TransitTimes::of_flow(both, &packets(flow)?)));
        let transit = transit.try_reduce(TransitTimes::default, |all, other| Ok(all.and(other)))?;
        Ok(Self { least_ns: transit.least_ns, longest_ns: transit.longest_ns, lost: transit.lost })
    }

    /// The longest wait of what arrived in a window.
    pub fn longest(&self, ends: Ends, window: u64) -> Option<u64> {
        let least_ns = self.least_ns.get(&ends).copied().unwrap_or(0);
        self.longest_ns.get(&(ends, window)).map(|took| took.abs_diff(least_ns))
    }

    /// Whether packets that left in a window were sent again.
    pub fn lost(&self, ends: Ends, window: u64) -> bool {
        self.lost.contains(&(ends, window))
    }
}

/// How long packets were under way, nanoseconds by their clocks.
#[derive(Debug, Default)]
struct TransitTimes {
    least_ns: BTreeMap<Ends, i64>,
    longest_ns: BTreeMap<(Ends, u64), i64>,
    lost: BTreeSet<(Ends, u64)>,
}

impl TransitTimes {
    /// Of a flow's two directions, where they are asked for and both hosts saw them.
    fn of_flow(both: [Option<Ends>; 2], views: &Views) -> Self {
        let view = |host: usize| views.iter().find(|(other, _)| *other == host).map(|(_, view)| &view.packets[..]);
        let mut transit = Self::default();
        for (forward, ends) in [false, true].into_iter().zip(both) {
            let Some(ends) = ends else { continue };
            let (Some(sender), Some(receiver)) = (view(ends.from), view(ends.to)) else { continue };
            let (both, again) = both_saw(sender, receiver, forward);
            if let Some(took) = both.iter().map(|(_, took)| *took).min() {
                transit.least_ns.entry(ends).and_modify(|least| *least = took.min(*least)).or_insert(took);
            }
            for of_window in both.chunk_by(|(a, _), (b, _)| a / WINDOW_NS == b / WINDOW_NS) {
                let window = (ends, of_window[0].0 / WINDOW_NS);
                let took = of_window.iter().map(|(_, took)| *took).max().unwrap_or(i64::MIN);
                transit.longest_ns.entry(window).and_modify(|longest| *longest = took.max(*longest)).or_insert(took);
            }
            transit.lost.extend(again.into_iter().map(|left| (ends, left / WINDOW_NS)));
        }
        transit
    }

    /// With what is known of other flows.
    fn and(mut self, other: Self) -> Self {
        for (ends, took) in other.least_ns {
            self.least_ns.entry(ends).and_modify(|least| *least = took.min(*least)).or_insert(took);
        }
        for (window, took) in other.longest_ns {
            self.longest_ns.entry(window).and_modify(|longest| *longest = took.max(*longest)).or_insert(took);
        }
        self.lost.extend(other.lost);
        self
    }
}

/// When packets arrived and how long they were under way, nanoseconds; without those that the sender's host saw twice: when these left
/// first.
fn both_saw(sender: &[Observed], receiver: &[Observed], forward: bool) -> (Vec<(u64, i64)>, Vec<u64>) {
    match both_saw_in_order(sender, receiver, forward) {
        Some(both) => (both, Vec::new()),
        None => both_saw_in_any_order(sender, receiver, forward),
    }
}

fn is_data(packet: &Observed, forward: bool) -> bool {
    packet.forward == forward && packet.payload_length > 0
}

/// When a packet arrived and how long it was under way.
fn took(arrived_ns: u64, left_ns: u64) -> Option<(u64, i64)> {
    Some((arrived_ns, i64::try_from(arrived_ns).ok()? - i64::try_from(left_ns).ok()?))
}

/// As [`both_saw`] where nothing was sent twice, and both hosts saw all in the order of its sequence numbers, which did not come
/// round; `None` elsewhere.
fn both_saw_in_order(sender: &[Observed], receiver: &[Observed], forward: bool) -> Option<Vec<(u64, i64)>> {
    let data = |packets| Data { packets, forward };
    let base = data(sender).next().map_or(0, |first| first.sequence);
    let offset = |packet: &Observed| packet.sequence.wrapping_sub(base) as i32;
    let is_in_order = |packets| data(packets).map(offset).is_sorted_by(|a, b| a < b);
    if !is_in_order(sender) || !is_in_order(receiver) {
        return None;
    }
    let mut sent = data(sender).peekable();
    let mut both = Vec::with_capacity(sender.len().min(receiver.len()));
    for got in data(receiver) {
        while sent.next_if(|sent| offset(sent) < offset(got)).is_some() {}
        if let Some(left) =
            sent.next_if(|sent| (sent.sequence, sent.payload_length) == (got.sequence, got.payload_length))
        {
            both.extend(took(got.time_ns, left.time_ns));
        }
    }
    Some(both)
}

/// The packets with payload that went one way.
struct Data<'p> {
    packets: &'p [Observed],
    forward: bool,
}

impl<'p> Iterator for Data<'p> {
    type Item = &'p Observed;

    fn next(&mut self) -> Option<&'p Observed> {
        let at = self.packets.iter().position(|packet| is_data(packet, self.forward))?;
        let packet = &self.packets[at];
        self.packets = &self.packets[at + 1..];
        Some(packet)
    }
}

/// By sequence number and length: few are out of their order, so that sorting them is little.
fn both_saw_in_any_order(sender: &[Observed], receiver: &[Observed], forward: bool) -> (Vec<(u64, i64)>, Vec<u64>) {
    let base = Data { packets: sender, forward }.next().map_or(0, |first| first.sequence);
    let sorted = |packets: &[Observed]| -> Vec<((u32, u32), u64)> {
        let mut sorted = Vec::with_capacity(packets.len());
        sorted.extend(
            packets
                .iter()
                .filter(|packet| is_data(packet, forward))
                .map(|packet| ((packet.sequence.wrapping_sub(base), packet.payload_length), packet.time_ns)),
        );
        // Those of one key stay as they came.
        sorted.sort_by_key(|(key, _)| *key);
        sorted
    };
    let (sent, arrived) = (sorted(sender), sorted(receiver));
    let (mut both, mut again) = (Vec::with_capacity(sent.len().min(arrived.len())), Vec::new());
    let mut got = arrived.chunk_by(|a, b| a.0 == b.0).map(|same| same[0]).peekable();
    for same in sent.chunk_by(|a, b| a.0 == b.0) {
        let (key, left_ns) = same[0];
        if same.len() > 1 {
            again.push(left_ns);
            continue;
        }
        while got.next_if(|got| got.0 < key).is_some() {}
        // The first that arrived; what came again is not looked at.
        both.extend(got.next_if(|got| got.0 == key).and_then(|(_, arrived_ns)| took(arrived_ns, left_ns)));
    }
    (both, again)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;
    use crate::maps::HashMap;

    /// As the definition says it.
    fn plainly(sender: &[Observed], receiver: &[Observed]) -> (Vec<(u64, i64)>, Vec<u64>) {
        let key = |packet: &Observed| (packet.sequence, packet.payload_length);
        let mut sent: HashMap<(u32, u32), Option<u64>> = HashMap::default();
        let mut again = Vec::new();
        for packet in sender.iter().filter(|packet| is_data(packet, true)) {
            let first = sent.entry(key(packet)).and_modify(|time| again.extend(time.take()));
            first.or_insert(Some(packet.time_ns));
        }
        let taken = |packet: &Observed| took(packet.time_ns, sent.remove(&key(packet)).flatten()?);
        (receiver.iter().filter(|packet| is_data(packet, true)).filter_map(taken).collect(), again)
    }

    fn packets() -> impl Strategy<Value = Vec<Observed>> {
        let packet = (0u32..12, 0u32..3, prop::bool::weighted(0.8), 0u64..40);
        prop::collection::vec(packet, 0..40).prop_map(|packets| {
            let mut packets: Vec<Observed> = packets
                .into_iter()
                .map(|(sequence, payload_length, forward, time_ns)| Observed {
                    sequence: sequence.wrapping_sub(6),
                    payload_length,
                    forward,
                    time_ns,
                    ..Observed::default()
                })
                .collect();
            packets.sort_by_key(|packet| packet.time_ns);
            packets
        })
    }

    proptest! {
        #[test]
        fn what_is_in_any_order_is_matched_as_the_definition_says(sender in packets(), receiver in packets()) {
            let sorted = |(mut both, mut again): (Vec<(u64, i64)>, Vec<u64>)| {
                both.sort_unstable();
                again.sort_unstable();
                (both, again)
            };
            let found = both_saw_in_any_order(&sender, &receiver, true);
            prop_assert_eq!(sorted(found), sorted(plainly(&sender, &receiver)));
        }

        #[test]
        fn what_is_in_order_is_matched_as_what_is_in_any(
            base in prop_oneof![any::<u32>(), Just(u32::MAX - 20)],
            segments in prop::collection::vec((1u32..9, prop_oneof![Just(0u32), Just(0), 0u32..3], 0u8..10), 0..12),
            far in prop_oneof![Just(0u32), any::<u32>()],
        ) {
            let (mut sender, mut receiver, mut next) = (Vec::new(), Vec::new(), base);
            for (number, (length, gap, fate)) in segments.into_iter().enumerate() {
                next = next.wrapping_add(gap);
                let packet = Observed {
                    sequence: next, payload_length: length, forward: fate != 9, time_ns: number as u64 * 10, ..Observed::default()
                };
                next = next.wrapping_add(length);
                if fate == 7 {
                    next = next.wrapping_add(far);
                }
                if fate != 0 {
                    sender.push(packet);
                }
                if fate == 1 {
                    sender.push(packet);
                }
                if fate != 2 {
                    let payload_length = if fate == 3 { length + 1 } else { length };
                    receiver.push(Observed { time_ns: packet.time_ns + 7, payload_length, ..packet });
                }
            }
            for forward in [true, false] {
                if let Some(both) = both_saw_in_order(&sender, &receiver, forward) {
                    prop_assert_eq!((both, Vec::new()), both_saw_in_any_order(&sender, &receiver, forward));
                }
            }
        }

        #[test]
        fn plain_streams_are_in_order(base in any::<u32>(), lengths in prop::collection::vec(1u32..2000, 1..40)) {
            let mut next = base;
            let packets: Vec<Observed> = lengths.iter().map(|&payload_length| {
                let packet = Observed { sequence: next, payload_length, forward: true, ..Observed::default() };
                next = next.wrapping_add(payload_length);
                packet
            }).collect();
            prop_assert_eq!(both_saw_in_order(&packets, &packets, true).map(|both| both.len()), Some(packets.len()));
        }
    }
}
