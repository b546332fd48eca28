//! The clocks of two hosts, from the packets that both saw.

use std::collections::BTreeMap;
use std::collections::HashMap;

use rayon::prelude::*;

use super::hull::{line_above, line_below};
use super::map::ClockMap;
use crate::capture::HostCapture;
use crate::capture::flows::{FlowKey, Observed};

/// Two hosts and how the clock of the second stands to that of the first.
#[derive(Clone, Debug)]
pub struct PairFit {
    /// First host, by number.
    pub a: usize,
    /// Second host; greater than `a`.
    pub b: usize,
    /// From the clock of `a` to that of `b`.
    pub map: ClockMap,
    /// First and last time of a packet that both saw, on the clock of `a`.
    pub range_ns: (i64, i64),
    /// First and last packet of `a`, on its clock.
    pub whole_ns: (i64, i64),
    /// Half of the room between the two lines, at both ends of `range_ns`: half of the least round trip.
    pub room_ns: (f64, f64),
    /// The largest such room while host `a` saw any packets: what the truth can be off, for lines that were drawn through
    /// little and have to be prolonged.
    pub uncertainty_ns: f64,
    /// Packets that both saw, from `a` to `b`.
    pub forward: Vec<(i64, i64)>,
    /// Packets that both saw, from `b` to `a`; as in `forward`, (time at `a`, time at `b` less time at `a`).
    pub backward: Vec<(i64, i64)>,
}

impl PairFit {
    /// How much the fit is worth: packets in the direction that has fewer.
    #[must_use]
    pub fn weight(&self) -> f64 {
        self.forward.len().min(self.backward.len()) as f64
    }

    /// Of what two hosts saw of each other, as in `forward` and `backward`; `whole` is when host `a` saw any packets.
    pub(super) fn of(
        a: usize,
        b: usize,
        mut forward: Vec<(i64, i64)>,
        mut backward: Vec<(i64, i64)>,
        whole: (i64, i64),
    ) -> Option<Self> {
        forward.sort_unstable();
        backward.sort_unstable();
        let below = line_below(&forward)?;
        let above = line_above(&backward)?;
        let first = forward[0].0.min(backward[0].0);
        let last = forward[forward.len() - 1].0.max(backward[backward.len() - 1].0);
        let middle = first + (last - first) / 2;
        let base = below.y;
        let (high, low) = (below.height_at(middle, base), above.height_at(middle, base));
        let room = |x: i64| ((below.height_at(x, base) - above.height_at(x, base)) / 2.0).abs();
        Some(Self {
            a,
            b,
            map: ClockMap {
                at_ns: middle,
                offset_ns: base as f64 + (high + low) / 2.0,
                rate: (below.slope + above.slope) / 2.0,
            },
            range_ns: (first, last),
            whole_ns: whole,
            room_ns: (room(first), room(last)),
            uncertainty_ns: room(whole.0.min(first)).max(room(whole.1.max(last))),
            forward,
            backward,
        })
    }
}

/// Points (time, difference of the clocks) from packets one way and the other way.
type BothWays = [Vec<(i64, i64)>; 2];

/// Fits each pair of hosts between which packets were seen at both ends.
pub(super) fn fit(hosts: &[HostCapture]) -> Vec<PairFit> {
    let mut shared: BTreeMap<FlowKey, (usize, usize)> = BTreeMap::new();
    for host in hosts {
        for key in host.packets.flows.keys().filter(|key| key.host.is_none()) {
            let low = hosts.iter().position(|host| host.addresses.contains(&key.low.ip()));
            let high = hosts.iter().position(|host| host.addresses.contains(&key.high.ip()));
            if let (Some(low), Some(high)) = (low, high) {
                // A third host may have seen it as well, and one of the two not at all.
                let seen = |host: usize| hosts[host].packets.flows.contains_key(key);
                if low != high && seen(low) && seen(high) {
                    shared.insert(*key, (low, high));
                }
            }
        }
    }
    let flows: Vec<(FlowKey, (usize, usize))> = shared.into_iter().collect();
    let points: Vec<(usize, usize, BothWays)> = flows
        .par_iter()
        .map(|(key, (low, high))| {
            let (at_low, at_high) = (&hosts[*low].packets.flows[key], &hosts[*high].packets.flows[key]);
            // To (time at the first host, difference), whichever of the two sent.
            let there = both_saw(at_low, at_high, true);
            let back = both_saw(at_high, at_low, false);
            let (a, b) = (*low.min(high), *low.max(high));
            if low < high {
                let there = there.iter().map(|&(sent, got)| (sent, got - sent)).collect();
                let back = back.iter().map(|&(sent, got)| (got, sent - got)).collect();
                (a, b, [there, back])
            } else {
                let there = there.iter().map(|&(sent, got)| (got, sent - got)).collect();
                let back = back.iter().map(|&(sent, got)| (sent, got - sent)).collect();
                (a, b, [back, there])
            }
        })
        .collect();
    let mut by_pair: BTreeMap<(usize, usize), BothWays> = BTreeMap::new();
    for (a, b, [forward, backward]) in points {
        let entry = by_pair.entry((a, b)).or_default();
        entry[0].extend(forward);
        entry[1].extend(backward);
    }
    by_pair
        .into_par_iter()
        .filter_map(|((a, b), [forward, backward])| PairFit::of(a, b, forward, backward, whole_range(&hosts[a])))
        .collect()
}

/// First and last packet of a host, on its clock.
fn whole_range(host: &HostCapture) -> (i64, i64) {
    let times = host.packets.flows.values().flatten().map(|packet| packet.time_ns);
    let (first, last) = times.fold((u64::MAX, 0), |(first, last), t| (first.min(t), last.max(t)));
    (i64::try_from(first).unwrap_or(0), i64::try_from(last).unwrap_or(0))
}

/// Times (sent, arrived) of the packets of one direction that both hosts saw once.
///
/// Packets are the same if header and length are; where offloads cut segments differently at the two ends, those that
/// begin with the same byte: the first byte left no later than its segment, and arrived no earlier than it.
fn both_saw(sender: &[Observed], receiver: &[Observed], forward: bool) -> Vec<(i64, i64)> {
    type Key = (u32, u32, u32, u8);
    let whole =
        |packet: &Observed| -> Key { (packet.sequence, packet.payload_length, packet.acknowledgement, packet.flags) };
    let begin = |packet: &Observed| -> Key { (packet.sequence, u32::MAX, 0, 0) };
    let mut sent: HashMap<Key, Option<u64>> = HashMap::with_capacity(sender.len());
    let mut got: HashMap<Key, Option<u64>> = HashMap::with_capacity(receiver.len());
    for (packets, times) in [(sender, &mut sent), (receiver, &mut got)] {
        for packet in packets.iter().filter(|packet| packet.forward == forward) {
            let mut note = |key: Key| {
                times.entry(key).and_modify(|time| *time = None).or_insert(Some(packet.time_ns));
            };
            note(whole(packet));
            if packet.payload_length > 0 {
                note(begin(packet));
            }
        }
    }
    let pair = |key: Key| -> Option<(i64, i64)> {
        let (sent, got) = (sent.get(&key).copied().flatten()?, got.get(&key).copied().flatten()?);
        Some((i64::try_from(sent).ok()?, i64::try_from(got).ok()?))
    };
    receiver
        .iter()
        .filter(|packet| packet.forward == forward)
        .filter_map(|packet| {
            pair(whole(packet)).or_else(|| if packet.payload_length > 0 { pair(begin(packet)) } else { None })
        })
        .collect()
}
