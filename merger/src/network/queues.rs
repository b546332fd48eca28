//! How long bytes waited on their way, beyond the least time between two hosts.

use super::windows::{Ends, Seen, WINDOW_NS, What, ends};
use crate::capture::flows::FlowKey;
use crate::capture::observed::Observed;
use crate::join::AddressBook;
use crate::survey::Views;

/// How long packets with payload that both hosts saw once were under way, in each window, and which had to be sent again; `least` is told
/// the least time, nanoseconds by the clocks of both.
pub(super) fn transit_times(
    key: &FlowKey,
    views: &Views,
    book: &AddressBook,
    mut least: impl FnMut(Ends, i64),
) -> Vec<Seen> {
    let view = |host: usize| views.iter().find(|(other, _)| *other == host).map(|(_, view)| &view.packets[..]);
    let mut seen = Vec::new();
    for forward in [false, true] {
        let Some(ends) = ends(key, forward, book) else { continue };
        let (Some(sender), Some(receiver)) = (view(ends.from), view(ends.to)) else { continue };
        let (both, again) = both_saw(sender, receiver, forward);
        both.iter().map(|(_, took)| *took).min().into_iter().for_each(|took| least(ends, took));
        for of_window in both.chunk_by(|(a, _), (b, _)| a / WINDOW_NS == b / WINDOW_NS) {
            let took = of_window.iter().map(|(_, took)| *took).max().unwrap_or(i64::MIN);
            seen.push(Seen { window: of_window[0].0 / WINDOW_NS, ends, what: What::Took(took) });
        }
        let lost = again.into_iter().map(|left| Seen { window: left / WINDOW_NS, ends, what: What::Lost });
        seen.extend(lost);
    }
    seen
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

/// The packets with payload that went one way, as long as they come in the order of their sequence numbers.
struct Data<'p> {
    packets: std::slice::Iter<'p, Observed>,
    forward: bool,
    base: u32,
    last: Option<i32>,
    fell: bool,
}

impl<'p> Data<'p> {
    fn new(packets: &'p [Observed], forward: bool) -> Self {
        let base = packets.iter().find(|packet| is_data(packet, forward)).map_or(0, |first| first.sequence);
        Self { packets: packets.iter(), forward, base, last: None, fell: false }
    }

    /// Against another base.
    fn since(self, base: u32) -> Self {
        Self { base, ..self }
    }

    /// The next one and its offset.
    #[inline]
    fn advance(&mut self) -> Option<(i32, &'p Observed)> {
        let forward = self.forward;
        let packet = self.packets.find(|packet| is_data(packet, forward))?;
        let offset = packet.sequence.wrapping_sub(self.base) as i32;
        self.fell |= self.last.is_some_and(|last| last >= offset);
        self.last = Some(offset);
        Some((offset, packet))
    }
}

/// As [`both_saw`] where nothing was sent twice, and both hosts saw all in the order of its sequence numbers, which did not come
/// round; `None` elsewhere.
fn both_saw_in_order(sender: &[Observed], receiver: &[Observed], forward: bool) -> Option<Vec<(u64, i64)>> {
    let mut sent = Data::new(sender, forward);
    let mut got = Data::new(receiver, forward).since(sent.base);
    let mut both = Vec::with_capacity(sender.len().min(receiver.len()) / 2);
    let mut left = sent.advance();
    while let Some((offset, arrived)) = got.advance() {
        while left.is_some_and(|(before, _)| before < offset) && !sent.fell {
            left = sent.advance();
        }
        if sent.fell || got.fell {
            return None;
        }
        if let Some((_, packet)) =
            left.filter(|(same, packet)| *same == offset && packet.payload_length == arrived.payload_length)
        {
            both.extend(took(arrived.time_ns, packet.time_ns));
            left = sent.advance();
        }
    }
    while sent.advance().is_some() {}
    (!sent.fell).then_some(both)
}

/// By sequence number and length: few are out of their order, so that sorting them is little.
fn both_saw_in_any_order(sender: &[Observed], receiver: &[Observed], forward: bool) -> (Vec<(u64, i64)>, Vec<u64>) {
    let base = Data::new(sender, forward).base;
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
