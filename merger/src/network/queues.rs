//! How long bytes waited on their way, beyond the least time between two hosts.

use super::windows::{Ends, Sample, WINDOW_NS, WindowSample, ends};
use crate::capture::flows::FlowKey;
use crate::capture::observed::Observed;
use crate::join::AddressBook;
use crate::nearly_sorted::{NearlySorted, Timed, late};
use crate::survey::Views;

/// How long packets with payload that both hosts saw once were under way, in each window, and which had to be sent again; `least` is told
/// the least time, nanoseconds by the clocks of both.
pub(super) fn transit_times(
    key: &FlowKey,
    views: &Views,
    book: &AddressBook,
    mut least: impl FnMut(Ends, i64),
) -> Vec<WindowSample> {
    let view = |host: usize| views.iter().find(|(other, _)| *other == host).map(|(_, view)| &view.packets[..]);
    let mut seen = Vec::new();
    for forward in [false, true] {
        let Some(ends) = ends(key, forward, book) else { continue };
        let (Some(sender), Some(receiver)) = (view(ends.from), view(ends.to)) else { continue };
        let (both, again) = both_saw(sender, receiver, forward);
        both.iter().map(|(_, took)| *took).min().into_iter().for_each(|took| least(ends, took));
        for of_window in both.chunk_by(|(a, _), (b, _)| a / WINDOW_NS == b / WINDOW_NS) {
            let took = of_window.iter().map(|(_, took)| *took).max().unwrap_or(i64::MIN);
            seen.push(WindowSample { window: of_window[0].0 / WINDOW_NS, ends, what: Sample::Took(took) });
        }
        let lost = again.into_iter().map(|left| WindowSample { window: left / WINDOW_NS, ends, what: Sample::Lost });
        seen.extend(lost);
    }
    seen
}

fn is_data(packet: &Observed, forward: bool) -> bool {
    packet.forward == forward && packet.payload_length > 0
}

/// When a packet arrived and how long it was under way.
fn took(arrived_ns: u64, left_ns: u64) -> Option<(u64, i64)> {
    Some((arrived_ns, i64::try_from(arrived_ns).ok()? - i64::try_from(left_ns).ok()?))
}

/// When packets arrived and how long they were under way, nanoseconds; without those that the sender's host saw twice: when these left
/// first. Packets are the same if their sequence number and length are; of one that came again the first counts.
fn both_saw(sender: &[Observed], receiver: &[Observed], forward: bool) -> (Vec<(u64, i64)>, Vec<u64>) {
    let base = sender.iter().find(|packet| is_data(packet, forward)).map_or(0, |first| first.sequence);
    let data = |packets| data(packets, forward, base);
    let (late_sent, late_got) = (late(data(sender)), late(data(receiver)));
    let mut sent = NearlySorted::new(data(sender), &late_sent);
    let mut got = NearlySorted::new(data(receiver), &late_got);
    let (mut both, mut again) = (Vec::with_capacity(sender.len().min(receiver.len()) / 2), Vec::new());
    while let Some((key, left_ns)) = sent.next() {
        if sent.next_of(key).is_some() {
            while sent.next_of(key).is_some() {}
            again.push(left_ns);
            continue;
        }
        while got.peek().is_some_and(|got| got.0 < key) {
            got.next();
        }
        both.extend(got.next_of(key).and_then(|(_, arrived_ns)| took(arrived_ns, left_ns)));
    }
    (both, again)
}

/// The packets with payload that went one way: offset from a sequence number, with their length, and time.
fn data(packets: &[Observed], forward: bool, base: u32) -> impl Iterator<Item = Timed<u64>> + Clone {
    let of_way = packets.iter().filter(move |packet| is_data(packet, forward));
    of_way.map(move |packet| {
        let offset = packet.sequence.wrapping_sub(base);
        (u64::from(offset) << 32 | u64::from(packet.payload_length), packet.time_ns)
    })
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
        fn packets_are_matched_as_the_definition_says(sender in packets(), receiver in packets()) {
            let sorted = |(mut both, mut again): (Vec<(u64, i64)>, Vec<u64>)| {
                both.sort_unstable();
                again.sort_unstable();
                (both, again)
            };
            let found = both_saw(&sender, &receiver, true);
            prop_assert_eq!(sorted(found), sorted(plainly(&sender, &receiver)));
        }

        #[test]
        fn packets_of_a_stream_are_matched_in_its_order(
            base in prop_oneof![any::<u32>(), Just(u32::MAX - 20)],
            segments in prop::collection::vec((1u32..9, prop_oneof![Just(0u32), Just(0), 0u32..3], 0u8..10), 0..12),
        ) {
            let (mut sender, mut receiver, mut next) = (Vec::new(), Vec::new(), base);
            for (number, (length, gap, fate)) in segments.into_iter().enumerate() {
                next = next.wrapping_add(gap);
                let packet = Observed {
                    sequence: next, payload_length: length, forward: fate != 9, time_ns: number as u64 * 10, ..Observed::default()
                };
                next = next.wrapping_add(length);
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
                let (both, _) = both_saw(&sender, &receiver, forward);
                prop_assert!(both.is_sorted() && both.iter().all(|(_, took)| *took == 7));
            }
        }
    }
}
