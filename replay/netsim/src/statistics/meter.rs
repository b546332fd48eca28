//! Sees the packets of a run and counts those that count.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use strength_reduce::StrengthReducedU64;

use super::histogram::{Sample, SmallCounts};
use super::levels::Levels;
use super::{Histogram, LevelCount, Losses, Series};
use crate::fabric::packet::{Loss, LostPacket, Message, Observer, PacketRecord};
use crate::fabric::windows::PartObserver;
use crate::network::Token;
use crate::time::SimTime;
use crate::topology::HostDistances;
use crate::traffic::{Plan, is_background};
use std::sync::Arc;

/// Parts of the measurement, for standard errors.
const BATCHES: u64 = 20;

/// What happened in a part of the measurement. Loads are bytes on the hosts' links; times are picoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Handed over in it.
    pub offered: u64,
    /// Arrived in it, whenever it was handed over.
    pub accepted: u64,
    /// Packets handed over in it.
    pub sent: u64,
    /// The sum of the times when they were.
    pub sent_at: u128,
    /// Those of them that have arrived.
    pub delivered: u64,
    /// The sum of the times when these were handed over.
    pub delivered_at: u128,
    /// The sum of their latencies.
    pub latency: u128,
    /// Whether packets that count were lost, in whatever batch.
    pub lossy: bool,
}

impl Batch {
    /// Adds what another meter has seen of the same part of the measurement.
    fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.accepted += other.accepted;
        self.sent += other.sent;
        self.sent_at += other.sent_at;
        self.delivered += other.delivered;
        self.delivered_at += other.delivered_at;
        self.latency += other.latency;
        self.lossy |= other.lossy;
    }
}

/// A message of several packets that is under way.
#[derive(Clone, Copy, Debug)]
struct Open {
    packets: u64,
    lost: bool,
}

/// What one host has sent another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairCount {
    /// Packets handed over.
    pub offered: u64,
    /// Packets that arrived.
    pub accepted: u64,
    /// Bytes of these, headers included.
    pub accepted_bytes: u64,
}

/// What is counted only where it is wanted.
#[derive(Clone, Debug, Default)]
struct Extras {
    /// The whole run in intervals.
    evolution: Option<Series>,
    /// The intervals by which it is told whether the network has settled, then those of the measurement.
    steps: Option<Series>,
    /// By source and destination.
    pairs: Option<BTreeMap<(u32, u32), PairCount>>,
    /// Switches on the shortest ways, and on those of the packets that count, as they were handed over.
    offered_hops: Option<(Arc<HostDistances>, Histogram)>,
    /// Messages of which packets were lost, where somebody asks for them.
    lost: Option<Vec<Token>>,
    /// By service level.
    levels: Option<Levels>,
}

impl Extras {
    fn series(&mut self) -> impl Iterator<Item = &mut Series> {
        [&mut self.evolution, &mut self.steps].into_iter().flatten()
    }

    fn emptied(&self) -> Self {
        Self {
            evolution: self.evolution.as_ref().map(Series::emptied),
            steps: self.steps.as_ref().map(Series::emptied),
            pairs: self.pairs.as_ref().map(|_| BTreeMap::new()),
            offered_hops: self.offered_hops.as_ref().map(|(distances, _)| (distances.clone(), Histogram::default())),
            lost: self.lost.as_ref().map(|_| Vec::new()),
            levels: self.levels.as_ref().map(Levels::emptied),
        }
    }

    fn add(&mut self, other: &Self) {
        for (mine, theirs) in [(&mut self.evolution, &other.evolution), (&mut self.steps, &other.steps)] {
            if let (Some(mine), Some(theirs)) = (mine, theirs) {
                mine.add(theirs);
            }
        }
        if let (Some((_, mine)), Some((_, theirs))) = (&mut self.offered_hops, &other.offered_hops) {
            mine.add(theirs);
        }
        if let (Some(mine), Some(theirs)) = (&mut self.lost, &other.lost) {
            mine.extend(theirs);
        }
        if let (Some(mine), Some(theirs)) = (&mut self.levels, &other.levels) {
            mine.add(theirs);
        }
        if let (Some(mine), Some(theirs)) = (&mut self.pairs, &other.pairs) {
            for (pair, count) in theirs {
                let mine = mine.entry(*pair).or_default();
                mine.offered += count.offered;
                mine.accepted += count.accepted;
                mine.accepted_bytes += count.accepted_bytes;
            }
        }
    }
}

/// Counts the packets of a run.
#[derive(Clone, Debug)]
pub struct Meter {
    plan: Plan,
    /// Picoseconds of the measurement.
    length: StrengthReducedU64,
    /// When each part of the measurement begins, and when the last one ends.
    borders: Vec<u64>,
    /// The part of the measurement that was looked for last: from when, until when, and its number.
    batch: (u64, u64, usize),
    /// Bytes of the packet that was delivered last, and what they take on a link.
    wire: (u32, u64),
    /// Messages of several packets that are under way, by token.
    open: HashMap<u64, Open>,
    batches: Vec<Batch>,
    /// Every packet that was delivered, if it is wanted.
    records: Option<Vec<PacketRecord>>,
    extras: Option<Box<Extras>>,
    /// From hand-over to arrival, and from leaving the source host to arrival, of the packets that count; of those that are counted by levels
    /// only there.
    packet: Histogram,
    network: Histogram,
    /// From hand-over to the last packet's arrival, of the messages that count; not kept while none has had more than one packet, which is
    /// `packet` then.
    message: Option<Histogram>,
    /// Switches on the way, of the packets that count.
    hops: SmallCounts,
    /// From the hand-over of a question to the arrival of its answer, of those that count.
    pub round_trip: Histogram,
    /// Packets that count, and those of them that have arrived or were lost.
    counted: u64,
    ended: u64,
    /// When the last packet arrived or was lost.
    last_end: SimTime,
    /// Packets that count and were lost.
    pub lost: u64,
    /// All messages handed over.
    pub all_messages: u64,
    /// All packets delivered.
    pub all_packets: u64,
    /// All packets lost.
    pub losses: Losses,
    /// Packets of the background that have arrived.
    pub background: u64,
    /// Switches that all packets delivered have passed.
    pub packet_hops: u64,
    /// Flits x switches of all packets delivered.
    pub flit_hops: u64,
    /// Picoseconds within the measurement that packets waited at their sources, added up.
    pub waiting: u128,
    /// Picoseconds within the measurement that packets were in the network, added up.
    pub travelling: u128,
}

impl Meter {
    /// A meter for a run of `plan`; `keep` keeps the record of every packet.
    #[must_use]
    pub fn new(plan: &Plan, keep: bool) -> Self {
        Self {
            plan: plan.clone(),
            length: StrengthReducedU64::new((plan.until_ps - plan.from_ps).max(1)),
            borders: borders(plan.from_ps, plan.until_ps),
            batch: (0, 0, 0),
            wire: (0, plan.link.on_wire(0)),
            open: HashMap::new(),
            batches: vec![Batch::default(); usize::try_from(BATCHES).unwrap_or(1)],
            records: keep.then(Vec::new),
            extras: None,
            last_end: SimTime::ZERO,
            packet: Histogram::default(),
            network: Histogram::default(),
            message: None,
            hops: SmallCounts::default(),
            round_trip: Histogram::default(),
            counted: 0,
            ended: 0,
            lost: 0,
            all_messages: 0,
            all_packets: 0,
            losses: Losses::default(),
            background: 0,
            packet_hops: 0,
            flit_hops: 0,
            waiting: 0,
            travelling: 0,
        }
    }

    /// A meter that waits for its plan: it must not see a packet.
    #[must_use]
    pub fn unplanned() -> Self {
        Self::new(&Plan::none(), false)
    }

    /// Counts what happens in intervals of `length_ps` picoseconds, too, from the start on.
    pub fn count_evolution(&mut self, length_ps: u64) {
        self.extras.get_or_insert_default().evolution = Some(Series::new(SimTime::ZERO, length_ps));
    }

    /// Counts what each host sends each other one, too.
    pub fn count_pairs(&mut self) {
        self.extras.get_or_insert_default().pairs = Some(BTreeMap::new());
    }

    /// Counts how far apart the hosts of the packets are that are handed over and count, too.
    pub fn count_offered_hops(&mut self, distances: Arc<HostDistances>) {
        self.extras.get_or_insert_default().offered_hops = Some((distances, Histogram::default()));
    }

    /// Counts by the service levels of the plan, too, which were drawn with `seed`.
    pub fn count_levels(&mut self, seed: u64) {
        let levels = Levels::new(&self.plan.levels, seed);
        self.extras.get_or_insert_default().levels = Some(levels);
    }

    /// What was counted by service levels; empty without [`Meter::count_levels`].
    #[must_use]
    pub fn levels(&self) -> &[LevelCount] {
        self.extras.as_ref().and_then(|extras| extras.levels.as_ref()).map_or(&[], Levels::counts)
    }

    /// What is counted of the service level of `token`, if that is wanted.
    #[inline]
    fn level_of(&mut self, token: Token) -> Option<&mut LevelCount> {
        Some(self.extras.as_mut()?.levels.as_mut()?.of(token))
    }

    /// Keeps the messages of which packets are lost, for [`Meter::take_lost`].
    pub fn keep_lost(&mut self) {
        self.extras.get_or_insert_default().lost = Some(Vec::new());
    }

    /// The messages of which packets were lost since the last call, if that was wanted; one may be there several times.
    pub fn take_lost(&mut self) -> Vec<Token> {
        self.extras.as_mut().and_then(|extras| extras.lost.as_mut()).map(std::mem::take).unwrap_or_default()
    }

    /// Switches on the shortest ways of the packets that count, as they were handed over, if that was wanted.
    #[must_use]
    pub fn offered_hops(&self) -> Option<&Histogram> {
        Some(&self.extras.as_ref()?.offered_hops.as_ref()?.1)
    }

    /// A question that was handed over at `from` has its answer at `until`.
    pub fn round_trip(&mut self, from: SimTime, until: SimTime) {
        if self.counts(from) {
            self.round_trip.record(until.since_ps(from));
        }
    }

    /// From `start` on, counts what happens in steps of `length_ps` picoseconds.
    pub fn count_steps(&mut self, start: SimTime, length_ps: u64) {
        self.extras.get_or_insert_default().steps = Some(Series::new(start, length_ps));
    }

    /// What happened in the intervals of the whole run, if that was wanted.
    #[must_use]
    pub fn evolution(&self) -> Option<&Series> {
        self.extras.as_ref()?.evolution.as_ref()
    }

    /// What happened in steps, if that was wanted.
    #[must_use]
    pub fn steps(&self) -> Option<&Series> {
        self.extras.as_ref()?.steps.as_ref()
    }

    /// What each host has sent each other one, by source and destination, if that was wanted.
    #[must_use]
    pub fn pairs(&self) -> Option<&BTreeMap<(u32, u32), PairCount>> {
        self.extras.as_ref()?.pairs.as_ref()
    }

    /// When the last packet so far arrived or was lost.
    #[must_use]
    pub const fn last_end(&self) -> SimTime {
        self.last_end
    }

    /// Measures from `from` until `until`, neither of them past: what is handed over before does not count.
    pub fn measure(&mut self, from: SimTime, until: SimTime) {
        (self.plan.from_ps, self.plan.until_ps) = (from.0, until.0);
        self.length = StrengthReducedU64::new(until.since_ps(from).max(1));
        self.borders = borders(from.0, until.0);
        self.batch = (0, 0, 0);
    }

    /// Whether what is handed over at `at` counts.
    #[inline]
    const fn counts(&self, at: SimTime) -> bool {
        at.0 >= self.plan.from_ps && at.0 < self.plan.until_ps
    }

    /// The part of the measurement in which `at` lies.
    #[inline]
    fn batch(&mut self, at: SimTime) -> Option<&mut Batch> {
        // Mostly it is the same as before.
        if at.0 < self.batch.0 || at.0 >= self.batch.1 {
            self.find_batch(at)?;
        }
        self.batches.get_mut(self.batch.2)
    }

    /// Looks for the part of the measurement in which `at` lies.
    fn find_batch(&mut self, at: SimTime) -> Option<()> {
        if !self.counts(at) {
            return None;
        }
        // A day in picoseconds, and no run is longer, leaves room for the factor.
        let index = (at.0 - self.plan.from_ps).saturating_mul(BATCHES) / self.length;
        let index = usize::try_from(index).ok()?;
        self.batch = (*self.borders.get(index)?, *self.borders.get(index + 1)?, index);
        Some(())
    }

    /// A message is handed over at `now`.
    #[inline]
    pub fn handed_over(&mut self, now: SimTime, message: &Message) {
        let packets = self.sent(now, message);
        if packets > 1 {
            self.opened(message.token, packets);
        }
    }

    /// A message finds its host's queue full at `now`, and is lost as it is handed over.
    pub fn refused(&mut self, now: SimTime, message: &Message) {
        let packets = self.sent(now, message);
        self.lose(Loss::FullQueue, packets, now, (now, message.token));
    }

    /// `packets` packets of a message that was handed over at a time with a token are lost at `at`.
    fn lose(&mut self, reason: Loss, packets: u64, at: SimTime, (handed_over, token): (SimTime, Token)) {
        self.losses.count(reason, packets);
        self.last_end = self.last_end.max(at);
        if let Some(extras) = &mut self.extras {
            extras.series().for_each(|series| series.lost(at, packets));
        }
        if self.counts(handed_over) {
            self.lost += packets;
            self.ended += packets;
            if let Some(level) = self.level_of(token) {
                level.lost += packets;
            }
            // Which part it was handed over in is not told; that packets were lost is known to all.
            self.batches.iter_mut().for_each(|batch| batch.lossy = true);
        }
    }

    /// A message of several packets is under way.
    pub fn opened(&mut self, token: Token, packets: u64) {
        if self.message.is_none() {
            self.message = Some(self.packet());
        }
        self.open.insert(token.0, Open { packets, lost: false });
    }

    /// Counts what a message brings. Returns its packets.
    #[inline]
    fn sent(&mut self, now: SimTime, message: &Message) -> u64 {
        let (packets, wire) = if message.bytes == self.plan.bytes {
            (self.plan.packets, self.plan.wire_bytes)
        } else {
            self.plan.link.message(message.bytes)
        };
        self.all_messages += 1;
        if let Some(extras) = &mut self.extras {
            extras.series().for_each(|series| series.offered(now, packets, wire));
            if let Some(pairs) = &mut extras.pairs {
                pairs.entry((message.source.0, message.destination.0)).or_default().offered += packets;
            }
        }
        if self.counts(now)
            && let Some((distances, hops)) = self.extras.as_mut().and_then(|extras| extras.offered_hops.as_mut())
        {
            let switches = distances.between(message.source.0, message.destination.0);
            (0..packets).for_each(|_| hops.record(switches));
        }
        if self.counts(now)
            && let Some(level) = self.level_of(message.token)
        {
            level.offered_bytes += wire;
        }
        if let Some(batch) = self.batch(now) {
            batch.offered += wire;
            batch.sent += packets;
            batch.sent_at += u128::from(now.0) * u128::from(packets);
            self.counted += packets;
        }
        packets
    }

    /// Adds what another meter of the same plan has seen.
    pub fn merge(&mut self, other: Self) {
        if self.message.is_some() || other.message.is_some() {
            let mut both = self.message();
            both.add(&other.message());
            self.message = Some(both);
        }
        for (mine, theirs) in self.batches.iter_mut().zip(other.batches) {
            mine.add(&theirs);
        }
        if let (Some(mine), Some(theirs)) = (&mut self.records, other.records) {
            mine.extend(theirs);
        }
        self.open.extend(other.open);
        if let (Some(mine), Some(theirs)) = (&mut self.extras, &other.extras) {
            mine.add(theirs);
        }
        self.last_end = self.last_end.max(other.last_end);
        for (mine, theirs) in [
            (&mut self.packet, other.packet),
            (&mut self.network, other.network),
            (&mut self.round_trip, other.round_trip),
        ] {
            mine.add(&theirs);
        }
        self.hops.add(&other.hops);
        for (mine, theirs) in [
            (&mut self.counted, other.counted),
            (&mut self.ended, other.ended),
            (&mut self.lost, other.lost),
            (&mut self.all_messages, other.all_messages),
            (&mut self.all_packets, other.all_packets),
            (&mut self.background, other.background),
            (&mut self.packet_hops, other.packet_hops),
            (&mut self.flit_hops, other.flit_hops),
        ] {
            *mine += theirs;
        }
        self.losses.add(&other.losses);
        self.waiting += other.waiting;
        self.travelling += other.travelling;
    }

    /// Packets that count: handed over, and arrived or lost.
    #[must_use]
    pub const fn counted(&self) -> (u64, u64) {
        (self.counted, self.ended)
    }

    /// A packet of a message is through, or lost: whether the message is complete now.
    #[inline]
    fn completes(&mut self, token: Token, lost: bool) -> bool {
        if self.plan.packets == 1 && self.open.is_empty() {
            return !lost;
        }
        let Some(open) = self.open.get_mut(&token.0) else { return !lost };
        open.packets -= 1;
        open.lost |= lost;
        let done = *open;
        if done.packets == 0 {
            self.open.remove(&token.0);
        }
        done.packets == 0 && !done.lost
    }

    /// Packets that count and are under way.
    #[must_use]
    pub const fn outstanding(&self) -> u64 {
        self.counted.saturating_sub(self.ended)
    }

    /// The parts of the measurement that have ended at `end_ps`.
    #[must_use]
    pub fn batches(&self, end_ps: u64) -> &[Batch] {
        let length = u128::from(self.plan.until_ps - self.plan.from_ps);
        let done = u128::from(end_ps.min(self.plan.until_ps).saturating_sub(self.plan.from_ps));
        let whole = usize::try_from(done * u128::from(BATCHES) / length.max(1)).unwrap_or(0);
        &self.batches[..whole.min(self.batches.len())]
    }

    /// Bytes handed over in the measurement, and bytes that arrived in it, on the hosts' links.
    #[must_use]
    pub fn loads(&self) -> (u64, u64) {
        self.batches
            .iter()
            .fold((0, 0), |(offered, accepted), batch| (offered + batch.offered, accepted + batch.accepted))
    }

    /// The packets that were delivered, in order of arrival, if they were kept.
    pub fn take_records(&mut self) -> Vec<PacketRecord> {
        self.records.take().unwrap_or_default()
    }

    /// Switches on the way, of the packets that count.
    #[must_use]
    pub fn hops(&self) -> Histogram {
        self.hops.histogram()
    }

    /// From hand-over to arrival, of the packets that count.
    #[must_use]
    pub fn packet(&self) -> Histogram {
        let mut all = self.packet.clone();
        self.levels().iter().for_each(|level| all.add(&level.packet));
        all
    }

    /// From leaving the source host to arrival, of the packets that count.
    #[must_use]
    pub fn network(&self) -> Histogram {
        let mut all = self.network.clone();
        self.levels().iter().for_each(|level| all.add(&level.network));
        all
    }

    /// From hand-over to the last packet's arrival, of the messages that count.
    #[must_use]
    pub fn message(&self) -> Histogram {
        self.message.clone().unwrap_or_else(|| self.packet())
    }

    /// Counts a packet that was delivered and takes `wire` bytes on a link, by its service level. Returns whether levels are counted.
    #[inline]
    fn count_level(&mut self, packet: &PacketRecord, wire: u64, latency: &Sample, network: &Sample) -> bool {
        let (arrived, counts) = (self.counts(packet.arrived), self.counts(packet.handed_over));
        let Some(level) = self.level_of(packet.token) else { return false };
        if arrived {
            level.accepted_bytes += wire;
        }
        if counts {
            level.packet.take(latency);
            level.network.take(network);
        }
        true
    }

    /// What of `at` lies within the measurement: its begin for what is before, its end for what is behind.
    #[inline]
    fn within(&self, at: SimTime) -> u64 {
        at.0.max(self.plan.from_ps).min(self.plan.until_ps)
    }
}

/// When each part of a measurement begins, and when the last one ends.
fn borders(from_ps: u64, until_ps: u64) -> Vec<u64> {
    let length = u128::from(until_ps.saturating_sub(from_ps));
    let border = |index: u64| {
        let border = (u128::from(index) * length).div_ceil(u128::from(BATCHES)) + u128::from(from_ps);
        u64::try_from(border).unwrap_or(u64::MAX)
    };
    (0..=BATCHES).map(border).collect()
}

impl PartObserver for Meter {
    fn for_part(&self) -> Self {
        let extras = self.extras.as_ref().map(|extras| Box::new(extras.emptied()));
        Self { extras, ..Self::new(&self.plan, self.records.is_some()) }
    }

    #[inline]
    fn handed_over(&mut self, at: SimTime, message: &Message) {
        self.sent(at, message);
    }

    fn opened(&mut self, token: Token, packets: u64) {
        Self::opened(self, token, packets);
    }

    fn merge(&mut self, other: Self) {
        Self::merge(self, other);
    }
}

impl Observer for Meter {
    #[inline]
    fn delivered(&mut self, packet: &PacketRecord) {
        if self.plan.has_background && is_background(packet.token) {
            self.background += 1;
            return;
        }
        self.all_packets += 1;
        self.packet_hops += u64::from(packet.switches);
        self.flit_hops += u64::from(packet.flits) * u64::from(packet.switches);
        if let Some(records) = &mut self.records {
            records.push(*packet);
        }
        self.last_end = self.last_end.max(packet.arrived);
        if packet.bytes != self.wire.0 {
            self.wire = (packet.bytes, self.plan.link.on_wire(packet.bytes.into()));
        }
        let wire = self.wire.1;
        if let Some(extras) = &mut self.extras {
            extras.series().for_each(|series| series.accepted(packet, wire));
            if let Some(pairs) = &mut extras.pairs {
                let pair = pairs.entry((packet.source.0, packet.destination.0)).or_default();
                pair.accepted += 1;
                pair.accepted_bytes += u64::from(packet.bytes);
            }
        }
        if let Some(batch) = self.batch(packet.arrived) {
            batch.accepted += wire;
        }
        let latency = packet.arrived.since_ps(packet.handed_over);
        let [of_packet, of_network] = [latency, packet.arrived.since_ps(packet.left)].map(Sample::new);
        let has_level = self.count_level(packet, wire, &of_packet, &of_network);
        let [from, left, until] = [packet.handed_over, packet.left, packet.arrived].map(|at| self.within(at));
        self.waiting = self.waiting.wrapping_add(left.saturating_sub(from).into());
        self.travelling = self.travelling.wrapping_add(until.saturating_sub(left).into());
        let complete = self.completes(packet.token, false);
        if let Some(batch) = self.batch(packet.handed_over) {
            batch.delivered += 1;
            batch.delivered_at = batch.delivered_at.wrapping_add(packet.handed_over.0.into());
            batch.latency = batch.latency.wrapping_add(latency.into());
            self.ended += 1;
            if !has_level {
                self.packet.take(&of_packet);
                self.network.take(&of_network);
            }
            self.hops.record(packet.switches);
            if let Some(message) = self.message.as_mut().filter(|_| complete) {
                message.take(&of_packet);
            }
        }
    }

    fn dropped(&mut self, packet: &LostPacket) {
        if self.plan.has_background && is_background(packet.token) {
            return;
        }
        self.completes(packet.token, true);
        if let Some(lost) = self.extras.as_mut().and_then(|extras| extras.lost.as_mut()) {
            lost.push(packet.token);
        }
        self.lose(packet.reason, 1, packet.at, (packet.handed_over, packet.token));
    }
}
