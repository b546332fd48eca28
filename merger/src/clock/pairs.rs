//! The clocks of two hosts, from the packets that both saw.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::hull::{line_above, line_below, lower_hull, mirrored};
use super::map::ClockMap;
use crate::capture::observed::Observed;
use crate::nearly_sorted::{NearlySorted, late};

/// A packet that both hosts saw: its time at the first one, and what the second one's clock showed more then.
pub(crate) type Point = (i64, i64);

/// Packets that both hosts saw in one direction: all of them, or as many as tell where the clocks' difference must lie.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cloud {
    /// Ordered.
    pub points: Vec<Point>,
    /// How many there were.
    pub count: u64,
    /// The times of all of them, added.
    sum: i128,
    first: i64,
    last: i64,
}

/// Points of a cloud's edge that are gathered before those within it are left out.
const GATHERED: usize = 4096;

impl Cloud {
    /// All points.
    pub fn whole(mut points: Vec<Point>) -> Self {
        // Nearly ordered already.
        points.sort();
        Self {
            count: points.len() as u64,
            sum: points.iter().map(|point| i128::from(point.0)).sum(),
            first: points.first().map_or(0, |point| point.0),
            last: points.last().map_or(0, |point| point.0),
            points,
        }
    }

    /// Their edge only: the upper one or the lower one.
    fn edge(points: Vec<Point>, upper: bool) -> Self {
        let mut cloud = Self::whole(points);
        cloud.points = edge(&cloud.points, upper);
        cloud
    }

    fn add(&mut self, other: Self, upper: bool) {
        if other.count == 0 {
            return;
        }
        (self.first, self.last) = if self.count == 0 {
            (other.first, other.last)
        } else {
            (self.first.min(other.first), self.last.max(other.last))
        };
        self.count += other.count;
        self.sum += other.sum;
        self.points.extend(other.points);
        if self.points.len() > GATHERED {
            self.reduce(upper);
        }
    }

    fn reduce(&mut self, upper: bool) {
        self.points.sort_unstable();
        self.points = edge(&self.points, upper);
    }

    /// The mean of all times.
    pub fn mean(&self) -> i128 {
        self.sum / i128::from(self.count.max(1))
    }
}

/// The corners of the upper or the lower hull of ordered points; of all their lines of support no other points tell.
fn edge(points: &[Point], upper: bool) -> Vec<Point> {
    if upper { mirrored(&lower_hull(&mirrored(points))) } else { lower_hull(points) }
}

/// Two hosts and how the clock of the second stands to that of the first.
#[derive(Clone, Debug)]
pub(crate) struct PairFit {
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
    /// Packets that both saw, from `a` to `b`: the difference lies below them.
    pub forward: Cloud,
    /// Packets that both saw, from `b` to `a`: the difference lies above them.
    pub backward: Cloud,
}

impl PairFit {
    /// How much the fit is worth: packets in the direction that has fewer.
    pub fn weight(&self) -> u64 {
        self.forward.count.min(self.backward.count)
    }

    /// Of what two hosts saw of each other; `whole` is when host `a` saw any packets.
    pub(super) fn of(a: usize, b: usize, forward: Cloud, backward: Cloud, whole: (i64, i64)) -> Option<Self> {
        let below = line_below(&forward.points, forward.mean())?;
        let above = line_above(&backward.points, backward.mean())?;
        let first = forward.first.min(backward.first);
        let last = forward.last.max(backward.last);
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

/// What two hosts saw of a flow between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct BothSaw {
    /// First host, by number.
    pub a: usize,
    /// Second host; greater than `a`.
    pub b: usize,
    /// Packets from `a` to `b`.
    pub forward: Vec<Point>,
    /// Packets from `b` to `a`.
    pub backward: Vec<Point>,
}

impl BothSaw {
    /// Of the packets of a flow as the hosts of its lower and of its higher address saw them, by number.
    pub fn of((low, at_low): (usize, &[Observed]), (high, at_high): (usize, &[Observed])) -> Self {
        // To (time at the first host, difference), whichever of the two sent.
        let from_first = |(sent, got): Point| (sent, got - sent);
        let from_second = |(sent, got): Point| (got, sent - got);
        let there = both_saw(at_low, at_high, true);
        let back = both_saw(at_high, at_low, false);
        let (forward, backward) = if low < high { (there, back) } else { (back, there) };
        Self {
            a: low.min(high),
            b: low.max(high),
            forward: forward.into_iter().map(from_first).collect(),
            backward: backward.into_iter().map(from_second).collect(),
        }
    }

    /// As clouds: whole ones, or their edges.
    pub fn clouds(self, keeps_all: bool) -> PairClouds {
        let Self { a, b, forward, backward } = self;
        let clouds = if keeps_all {
            [Cloud::whole(forward), Cloud::whole(backward)]
        } else {
            [Cloud::edge(forward, false), Cloud::edge(backward, true)]
        };
        PairClouds { a, b, clouds }
    }
}

/// What two hosts saw of one flow between them.
#[derive(Clone, Debug)]
pub(crate) struct PairClouds {
    a: usize,
    b: usize,
    clouds: [Cloud; 2],
}

/// What all pairs of hosts saw of each other, of flows in any order: all of it, or its edges.
#[derive(Debug, Default)]
pub(crate) struct PairsSaw {
    keeps_all: bool,
    by_pair: BTreeMap<(usize, usize), [Cloud; 2]>,
}

impl PairsSaw {
    /// Nothing yet.
    pub fn new(keeps_all: bool) -> Self {
        Self { keeps_all, by_pair: BTreeMap::new() }
    }

    /// With what two hosts saw of another flow.
    pub fn add(&mut self, PairClouds { a, b, clouds: [forward, backward] }: PairClouds) {
        let entry = self.by_pair.entry((a, b)).or_default();
        if self.keeps_all {
            entry[0].points.extend(forward.points);
            entry[1].points.extend(backward.points);
        } else {
            entry[0].add(forward, false);
            entry[1].add(backward, true);
        }
    }

    /// Fits each pair of hosts between which packets were seen at both ends. `whole_ns` tells of each host when it saw any packets.
    pub fn fit(self, whole_ns: &[(i64, i64)]) -> Vec<PairFit> {
        let Self { keeps_all, by_pair } = self;
        by_pair
            .into_par_iter()
            .filter_map(|((a, b), [mut forward, mut backward])| {
                if keeps_all {
                    (forward, backward) = (Cloud::whole(forward.points), Cloud::whole(backward.points));
                } else {
                    forward.reduce(false);
                    backward.reduce(true);
                }
                PairFit::of(a, b, forward, backward, whole_ns[a])
            })
            .collect()
    }
}

/// What tells a packet from others of its direction (sequence number, length, acknowledgement number, flags), and when it was
/// seen.
type Stamp = (u128, u64);

const SEQUENCE_AT: u32 = 72;
const LENGTH_AT: u32 = 40;

fn key(packet: &Observed) -> u128 {
    u128::from(packet.sequence) << SEQUENCE_AT
        | u128::from(packet.payload_length) << LENGTH_AT
        | u128::from(packet.acknowledgement) << 8
        | u128::from(packet.flags)
}

/// The stamps of the packets of one direction, as they came.
fn stamps(packets: &[Observed], forward: bool) -> impl Iterator<Item = Stamp> + Clone {
    let of_way = packets.iter().filter(move |packet| packet.forward == forward);
    of_way.map(|packet| (key(packet), packet.time_ns))
}

fn sequence(stamp: &Stamp) -> u32 {
    (stamp.0 >> SEQUENCE_AT) as u32
}

fn has_payload(stamp: &Stamp) -> bool {
    (stamp.0 >> LENGTH_AT) as u32 > 0
}

/// Times (sent, arrived) of the packets of one direction that both hosts saw once.
///
/// Packets are the same if header and length are; where offloads cut segments differently at the two ends, those that
/// begin with the same byte: the first byte left no later than its segment, and arrived no earlier than it.
fn both_saw(sender: &[Observed], receiver: &[Observed], forward: bool) -> Vec<Point> {
    let (late_sent, late_got) = (late(stamps(sender, forward)), late(stamps(receiver, forward)));
    let mut sent = NearlySorted::new(stamps(sender, forward), &late_sent);
    let mut got = NearlySorted::new(stamps(receiver, forward), &late_got);
    // Whether the next one has payload and a sequence number.
    let goes_on = |next: Option<Stamp>, begin: u32| next.filter(|next| has_payload(next) && sequence(next) == begin);
    let mut pairs = Vec::with_capacity(receiver.len().min(sender.len()) / 2);
    let mut pair = |sent: u64, got: u64| {
        if let (Ok(sent), Ok(got)) = (i64::try_from(sent), i64::try_from(got)) {
            pairs.push((sent, got));
        }
    };
    // The last data that was sent and that came: sequence number, and of the former the first one's time and how many there were.
    let (mut data_sent, mut data_got): (Option<(u32, u64, usize)>, Option<u32>) = (None, None);
    let note = |stamp: &Stamp, data_sent: &mut Option<(u32, u64, usize)>| {
        if has_payload(stamp) {
            match data_sent {
                Some((known, _, count)) if *known == sequence(stamp) => *count += 1,
                _ => *data_sent = Some((sequence(stamp), stamp.1, 1)),
            }
        }
    };
    while let Some(seen) = got.next() {
        let mut times_got = 1;
        while got.next_of(seen.0).is_some() {
            times_got += 1;
        }
        while let Some(before) = sent.peek().filter(|next| next.0 < seen.0) {
            note(&before, &mut data_sent);
            sent.next();
        }
        let (mut times_sent, mut left) = (0, 0);
        while let Some(same) = sent.next_of(seen.0) {
            note(&same, &mut data_sent);
            left = if times_sent == 0 { same.1 } else { left };
            times_sent += 1;
        }
        if (times_sent, times_got) == (1, 1) {
            pair(left, seen.1);
        } else if (times_sent, times_got) == (0, 1) && has_payload(&seen) {
            let begin = sequence(&seen);
            let is_alone = data_got != Some(begin) && goes_on(got.peek(), begin).is_none();
            let before = data_sent.filter(|(known, ..)| *known == begin).map(|(_, left, count)| (left, count));
            match (is_alone, before, goes_on(sent.peek(), begin)) {
                (true, Some((left, 1)), None) => pair(left, seen.1),
                (true, None, Some((_, left))) => {
                    let mut behind = sent.clone();
                    behind.next();
                    if goes_on(behind.peek(), begin).is_none() {
                        pair(left, seen.1);
                    }
                }
                _ => {}
            }
        }
        if has_payload(&seen) {
            data_got = Some(sequence(&seen));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// The definition, word by word: packets that are told by header and length, or else by their first byte, once at each end.
    fn plainly(sender: &[Observed], receiver: &[Observed], forward: bool) -> Vec<Point> {
        type Key = (u32, Option<(u32, u32, u8)>);
        let whole = |p: &Observed| -> Key { (p.sequence, Some((p.payload_length, p.acknowledgement, p.flags))) };
        let begin = |p: &Observed| -> Key { (p.sequence, None) };
        let times = |packets: &[Observed]| {
            let mut times: HashMap<Key, Vec<u64>> = HashMap::new();
            for packet in packets.iter().filter(|packet| packet.forward == forward) {
                times.entry(whole(packet)).or_default().push(packet.time_ns);
                if packet.payload_length > 0 {
                    times.entry(begin(packet)).or_default().push(packet.time_ns);
                }
            }
            times
        };
        let (sent, got) = (times(sender), times(receiver));
        let pair = |key: Key| match (sent.get(&key).map(Vec::as_slice), got.get(&key).map(Vec::as_slice)) {
            (Some(&[sent]), Some(&[got])) => Some((sent as i64, got as i64)),
            _ => None,
        };
        let of_way = receiver.iter().filter(|packet| packet.forward == forward);
        of_way
            .filter_map(|p| pair(whole(p)).or_else(|| if p.payload_length > 0 { pair(begin(p)) } else { None }))
            .collect()
    }

    fn packets() -> impl Strategy<Value = Vec<Observed>> {
        let packet = (0u64..1000, 0u32..12, 0u32..3, 0u32..3, 0u8..2, any::<bool>());
        let packet = packet.prop_map(|(time_ns, sequence, payload_length, acknowledgement, flags, forward)| Observed {
            time_ns,
            sequence: sequence.wrapping_sub(6),
            payload_length,
            acknowledgement,
            flags,
            forward,
            ..Observed::default()
        });
        prop::collection::vec(packet, 0..40)
    }

    proptest! {
        #[test]
        fn pairs_are_those_of_the_definition(
            mut sender in packets(), mut receiver in packets(), forward in any::<bool>(), is_sorted in any::<bool>(),
        ) {
            if is_sorted {
                sender.sort_by_key(key);
                receiver.sort_by_key(key);
            }
            let mut found = both_saw(&sender, &receiver, forward);
            let mut expected = plainly(&sender, &receiver, forward);
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn an_edge_gives_the_same_fit_as_all_points(
            flows in prop::collection::vec(
                (prop::collection::vec((0i64..500, -50i64..50), 0..60), prop::collection::vec((0i64..500, -250i64..-150), 0..60)),
                0..8,
            ),
        ) {
            let clouds = |keeps_all: bool| {
                let flows = flows.iter().map(|(forward, backward)| {
                    let both = BothSaw { a: 0, b: 1, forward: forward.clone(), backward: backward.clone() };
                    both.clouds(keeps_all)
                });
                let mut pairs = PairsSaw::new(keeps_all);
                flows.for_each(|flow| pairs.add(flow));
                pairs.fit(&[(-10, 600), (0, 0)])
            };
            let outcome = |fits: Vec<PairFit>| fits.first().map(|fit| {
                let edges = [edge(&fit.forward.points, false), edge(&fit.backward.points, true)];
                (fit.map, fit.range_ns, fit.room_ns, fit.uncertainty_ns, fit.weight(), edges)
            });
            prop_assert_eq!(outcome(clouds(false)), outcome(clouds(true)));
        }
    }
}
