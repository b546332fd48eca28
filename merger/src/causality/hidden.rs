//! Work that the recording hides behind the network: what a process did while its bytes waited anyway.
//!
//! A writer whose pipeline is held up by a later hop, and a task that computes while its input trickles in, work and
//! wait at once. On a faster network the work is what remains. How long it takes JVMs measure (`measured`); where they
//! did not, it is read where nothing hides it: from the pieces that writers of the same kind made before their pipelines were full, and from the tasks of the same kind that read
//! their input from their own host.

use std::collections::BTreeMap;

use trace::ids::{MessageId, ProcessId};
use trace::jvm::JvmRecord;
use trace::rows::{Evidence, StepKind};

use super::consumed::Consumed;
use super::draft::{Cause, Draft, Graph};
use super::held_back;
use super::index::{Index, receiver, sender, sender_host};
use super::measured::{Made, Measured};
use super::pieces::Pieces;
use super::turns::Taken;
use crate::capture::sense::MAX_COUNT;
use crate::compact::Message;
use crate::joined::Joined;
use crate::maps::HashMap;

/// Streams below this tell nothing of a reader's pace.
const MIN_STREAM_BYTES: u64 = 1 << 20;
/// Less that was written until the buffers of a pipeline were half full tells nothing of a writer's pace.
const MIN_PRODUCED_BYTES: u64 = 1_000_000;

/// A reader that works for less of the time in which it reads from its own host waits for the disk.
const MIN_WORKING: f64 = 0.5;
/// Share of a reader's work that may be cut for it to be done when it closed its stream: it closes right after its last bytes.
const MAX_CUT: f64 = 0.05;
/// Parts of work that are tried, the most first.
const PARTS: [f64; 4] = [1.0, 0.75, 0.5, 0.25];

/// Nanoseconds of work a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct NsPerByte(f64);

impl NsPerByte {
    fn of(ns: u64, bytes: u64) -> Self {
        Self(if bytes == 0 { 0.0 } else { ns as f64 / bytes as f64 })
    }

    fn time(self, bytes: u64) -> u64 {
        ((self.0 * bytes as f64) as u64).min(MAX_COUNT)
    }
}

/// A piece of a write (not the first), and what the next hop did meanwhile.
struct Step {
    previous: Draft,
    piece: Draft,
    /// The last piece of the next hop that had arrived when this one left.
    got: Option<Draft>,
    /// Time since the piece before.
    took: u64,
    /// Whether the next hop was transferring for most of that time, or its link was full: then it was in the way.
    held_up: bool,
    /// Bytes that had left here and not yet come to the next hop's end.
    between: u64,
}

/// Goes through a write and its next hop side by side.
fn steps(joined: &Joined, graph: &Graph, pieces: &Pieces, message: &Message<'_>, next_hop: &Message<'_>) -> Vec<Step> {
    // What waits for the link of the next hop's sender is not seen on its way yet.
    let forwards = sender_host(joined, next_hop);
    let full_uplink = joined.full_uplinks.get(forwards.index());
    let is_full = |at: u64| full_uplink.is_some_and(|full| full.holds(at));
    let next: Vec<Draft> = pieces.all(next_hop.message).collect();
    let busy = Busy::new(graph, &next);
    let mut arrived = 0;
    let all: Vec<Draft> = pieces.all(message.message).collect();
    all.windows(2)
        .map(|pair| {
            let (from, to) = (graph.happened(pair[0]), graph.happened(pair[1]));
            while arrived < next.len() && graph.arrived(next[arrived]) <= to {
                arrived += 1;
            }
            let took = to.saturating_sub(from);
            let held_up = busy.within(from, to) * 2 > took || (is_full(from) && is_full(to));
            let got = arrived.checked_sub(1).map(|last| next[last]);
            let passed = got.map_or(0, |got| pieces.offset(got) - next_hop.offset + graph.bytes(got));
            let between = (pieces.offset(pair[1]) - message.offset).saturating_sub(passed);
            Step { previous: pair[0], piece: pair[1], got, took, held_up, between }
        })
        .collect()
}

/// When a stream was on its way: intervals without overlap, and the time in all that precede each.
struct Busy {
    intervals: Vec<(u64, u64, u64)>,
}

impl Busy {
    fn new(graph: &Graph, pieces: &[Draft]) -> Self {
        let mut intervals: Vec<(u64, u64, u64)> = Vec::new();
        for piece in pieces {
            let (from, to) = (graph.happened(*piece), graph.arrived(*piece));
            match intervals.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                last => {
                    let before = last.map_or(0, |last| last.2 + (last.1 - last.0));
                    intervals.push((from, to, before));
                }
            }
        }
        Self { intervals }
    }

    fn within(&self, from: u64, to: u64) -> u64 {
        self.until(to).saturating_sub(self.until(from))
    }

    fn until(&self, at: u64) -> u64 {
        let after = self.intervals.partition_point(|(from, ..)| *from <= at);
        let last = after.checked_sub(1).map(|last| self.intervals[last]);
        last.map_or(0, |(from, to, before)| before + to.min(at) - from)
    }
}

/// How fast the writers of each kind of task make what they write: until the buffers of their pipelines were half as
/// full as they ever got. Until then little was in their way, however slow the next hop; nothing was in that of the
/// fastest, which counts for all.
#[derive(Clone, Debug, Default)]
pub struct Production {
    fastest: BTreeMap<Kind, NsPerByte>,
}

impl Production {
    /// Looks at a write and its next hop.
    pub fn look(
        &mut self,
        joined: &Joined,
        graph: &Graph,
        pieces: &Pieces,
        message: &Message<'_>,
        next_hop: &Message<'_>,
    ) {
        let Some(kind) = kind_of(joined, sender(joined, message)) else { return };
        let steps = steps(joined, graph, pieces, message, next_hop);
        let half = steps.iter().map(|step| step.between).max().unwrap_or(0) / 2;
        let filling = steps.iter().take_while(|step| step.between < half);
        let (time, bytes) =
            filling.fold((0, 0), |(time, bytes), step| (time + step.took, bytes + graph.bytes(step.previous)));
        if bytes >= MIN_PRODUCED_BYTES {
            let pace = NsPerByte::of(time, bytes);
            let fastest = self.fastest.entry(kind).or_insert(pace);
            if pace.0 < fastest.0 {
                *fastest = pace;
            }
        }
    }

    fn of(&self, kind: Option<Kind>) -> NsPerByte {
        kind.and_then(|kind| self.fastest.get(&kind).copied()).unwrap_or_default()
    }
}

/// Lets the pieces of a write wait for the next hop where that held them up, and for their production.
///
/// While the next hop is busy it does not matter when exactly a piece joins what waits for it. Such a piece leaves at
/// once when it is made and the next hop has got what it had got when the piece left in the recording. `measured` are the
/// marks of its production, by piece, where its JVM told of it.
pub fn throttle(
    joined: &Joined,
    graph: &mut Graph,
    pieces: &Pieces,
    production: &Production,
    measured: Option<&Made>,
    (message, next_hop): (&Message<'_>, &Message<'_>),
) {
    let pace = production.of(kind_of(joined, sender(joined, message)));
    // Production goes on while pieces are held up: it is a chain of its own, from the last piece that was not.
    let mut produced: Option<Draft> = None;
    for step in steps(joined, graph, pieces, message, next_hop) {
        let made = measured.and_then(|made| made.mark(step.piece));
        let lay_ready = measured.is_some_and(|made| made.lay_ready(graph, step.piece, step.took));
        let (true, Some(got)) = (step.held_up || lay_ready, step.got) else {
            produced = None;
            if let Some(made) = made {
                graph.wait(step.piece, Cause::sent(made, Evidence::Stream));
            }
            continue;
        };
        let made = made.unwrap_or_else(|| {
            let work = pace.time(graph.bytes(step.previous));
            let before = Cause::sent(produced.unwrap_or(step.previous), Evidence::Stream);
            graph.work("block.produced", step.piece, &[before], work)
        });
        produced = Some(made);
        graph.forget_causes(step.piece);
        let waits = graph.wait(step.piece, Cause::sent(made, Evidence::Stream));
        graph.wait(step.piece, Cause::sent(step.previous, Evidence::Stream));
        graph.wait(step.piece, Cause::delivered(got, Evidence::Pipeline));
        graph.set_paced(step.piece, waits);
    }
}

/// Marks of what tasks have computed of what they had read, by piece: a task goes on when it has computed its last. And what threads had taken that
/// write by turns.
pub fn consume(
    joined: &Joined,
    index: &Index<'_>,
    pieces: &Pieces,
    measured: &Measured,
    graph: &mut Graph,
) -> (Consumed, Taken) {
    let mut paces: BTreeMap<Kind, Vec<NsPerByte>> = BTreeMap::new();
    let mut remote: Vec<(Kind, MessageId, u64)> = Vec::new();
    let mut by_readers: Vec<(MessageId, held_back::Taken)> = Vec::new();
    let (mut consumed, mut taken) = (Consumed::of(pieces), Taken::default());
    let mut local: Vec<MessageId> = Vec::new();
    for message in &index.block_data {
        let message = &joined.message(*message);
        if message.from_client || message.bytes < MIN_STREAM_BYTES {
            continue;
        }
        let Some(kind) = kind_of(joined, receiver(joined, message)) else { continue };
        let by_turns = measured.timeline(message.message).zip(measured.curve(message.message, StepKind::Consume));
        if let Some((timeline, curve)) = by_turns {
            let ends = curve.ends_of_pieces(graph, pieces, message);
            let works = curve.of_pieces(graph, pieces, message);
            let latest = held_back::Taken::of(graph, pieces, message.message);
            let latest = latest.map_or_else(|| vec![u64::MAX; works.len()], |known| known.latest(works.len()));
            taken.take(graph, pieces, (message.message, timeline), (&ends, &works, &latest), &mut consumed);
            let loopback = joined.connections[message.connection].loopback;
            Taken::wait_for_reader(graph, pieces, message.message, loopback, &consumed);
            continue;
        }
        let loopback = joined.connections[message.connection].loopback;
        if loopback {
            let last = pieces.last(message.message);
            let took = graph.happened(last).saturating_sub(message.sent_ns);
            let bytes = message.bytes.saturating_sub(graph.bytes(last));
            paces.entry(kind.clone()).or_default().push(NsPerByte::of(took, bytes));
        }
        if let Some(taken) = held_back::Taken::of(graph, pieces, message.message) {
            by_readers.push((message.message, taken));
        } else if loopback {
            if is_readers_pace(graph, pieces, measured, message) {
                local.push(message.message);
            }
        } else if let Some(closed) = closed_ns(joined, index, message) {
            remote.push((kind, message.message, closed));
        }
    }
    let spills = Spills::of(joined);
    for (message, taken) in by_readers {
        let row = &joined.message(message);
        let works = taken.works(graph, pieces, message, closed_ns(joined, index, row));
        let latest = taken.latest(works.len());
        mark_consumed(graph, pieces, (message, receiver(joined, row)), (&works, &latest), &mut consumed);
        held_back::wait_for_room(graph, pieces, message, &consumed);
    }
    for message in local {
        let row = &joined.message(message);
        let (reader, closed) = (receiver(joined, row), closed_ns(joined, index, row));
        held_back::go_at_readers_pace(graph, pieces, (message, reader), closed, &mut consumed);
    }
    for (kind, message, closed) in remote {
        let row = &joined.message(message);
        let peers = paces.get(&kind).and_then(|paces| median(paces));
        let at =
            |pace: NsPerByte| -> Vec<u64> { pieces.all(message).map(|piece| pace.time(graph.bytes(piece))).collect() };
        let works = match (measured.curve(message, StepKind::Consume), peers) {
            (Some(curve), _) => {
                let own = curve.of_pieces(graph, pieces, row);
                let most = match peers {
                    _ if !curve.starved() => own.clone(),
                    Some(pace) => at(pace),
                    None => {
                        let spilled = spills.within(receiver(joined, row), row.sent_ns, closed);
                        let whole = own.iter().fold(spilled, |sum, work| sum.saturating_add(*work));
                        at(NsPerByte::of(whole, row.bytes))
                    }
                };
                fitting(graph, pieces, message, closed, &own, &most)
            }
            (None, Some(pace)) => fitting(graph, pieces, message, closed, &[], &at(pace)),
            (None, None) => None,
        };
        if let Some(works) = works {
            let reader = receiver(joined, row);
            let latest = vec![u64::MAX; works.len()];
            mark_consumed(graph, pieces, (message, reader), (&works, &latest), &mut consumed);
        }
    }
    taken.sort(graph);
    (consumed, taken)
}

/// Whether a stream on one host went at its reader's pace: it does, unless the reader was measured to work for a small part of it.
fn is_readers_pace(graph: &Graph, pieces: &Pieces, measured: &Measured, message: &Message<'_>) -> bool {
    let took = graph.happened(pieces.last(message.message)).saturating_sub(message.sent_ns);
    measured.curve(message.message, StepKind::Consume).is_none_or(|curve| {
        let works = curve.of_pieces(graph, pieces, message);
        let work = works.iter().fold(0u64, |sum, work| sum.saturating_add(*work));
        work as f64 >= took as f64 * MIN_WORKING
    })
}

/// When the maps of each process sorted what they had collected and wrote it to the disk: begin and end.
struct Spills(HashMap<ProcessId, Vec<(u64, u64)>>);

impl Spills {
    fn of(joined: &Joined) -> Self {
        let mut spills: HashMap<ProcessId, Vec<(u64, u64)>> = HashMap::default();
        for event in joined.jvm.iter() {
            if let JvmRecord::Work { t0, t1, work, .. } = &event.record
                && work == "spill"
            {
                spills.entry(event.process).or_default().push((*t0, *t1));
            }
        }
        Self(spills)
    }

    /// How long a process spilled between two times.
    fn within(&self, process: Option<ProcessId>, from: u64, until: u64) -> u64 {
        let spills = process.and_then(|process| self.0.get(&process)).map(Vec::as_slice).unwrap_or_default();
        spills.iter().map(|(begin, end)| end.min(&until).saturating_sub(*begin.max(&from))).sum()
    }
}

/// Job and kind of task ("m", "r") that a task attempt's id names.
type Kind = (String, String);

fn kind_of(joined: &Joined, process: Option<ProcessId>) -> Option<Kind> {
    let attempt = joined.processes[process?.index()].attempt.as_deref()?;
    let job = crate::history::job_of(attempt)?;
    Some((job, attempt.split('_').nth(3)?.to_owned()))
}

/// When the reader closed its stream.
fn closed_ns(joined: &Joined, index: &Index<'_>, message: &Message<'_>) -> Option<u64> {
    let request = index.exchange(message)?.requests().first()?;
    Some(index.made_in(joined, *request)?.end_ns)
}

fn median(paces: &[NsPerByte]) -> Option<NsPerByte> {
    let mut paces = paces.to_vec();
    paces.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Of two the faster one: what tasks cost each other on shared processors is in both.
    paces.get(paces.len().checked_sub(1)? / 2).copied()
}

/// The work on each piece with which the reader can have been done when it closed its stream, but for what is cut at the end. What it
/// did itself is `least`; where it waited for its bytes it may have done as much as others of its kind (`most`), or something between.
fn fitting(
    graph: &Graph,
    pieces: &Pieces,
    message: MessageId,
    closed: u64,
    least: &[u64],
    most: &[u64],
) -> Option<Vec<u64>> {
    let scaled = |work: u64, part: f64| (work as f64 * part) as u64;
    let sum = |works: &[u64]| works.iter().fold(0u64, |sum, work| sum.saturating_add(*work));
    // What it has done altogether counts, and not when: its own work comes in lumps.
    let (all, more) = (sum(most), sum(most).saturating_sub(sum(least)));
    let share = more as f64 / all.max(1) as f64;
    let between = |part: f64| -> Vec<u64> {
        let least = least.iter().copied().chain(std::iter::repeat(0));
        most.iter().zip(least).map(|(most, least)| least + scaled(*most, share * part)).collect()
    };
    let parts_of_least = |part: f64| -> Vec<u64> { least.iter().map(|work| scaled(*work, part)).collect() };
    let upper = PARTS.iter().map(|part| between(*part));
    let lower = std::iter::once(least.to_vec()).chain(PARTS[1..].iter().map(|part| parts_of_least(*part)));
    let tried = upper.chain(lower).filter(|works| !works.is_empty());
    tried
        .map(|works| cut(graph, pieces, message, closed, works))
        .find(|(_, lost)| *lost <= MAX_CUT)
        .map(|(works, _)| works)
}

/// Work on pieces as it ends until `closed`, and the share that is cut for it.
fn cut(graph: &Graph, pieces: &Pieces, message: MessageId, closed: u64, mut works: Vec<u64>) -> (Vec<u64>, f64) {
    let (mut done, mut whole, mut lost) = (0u64, 0u64, 0u64);
    for (piece, work) in pieces.all(message).zip(&mut works) {
        let begin = graph.arrived(piece).max(done);
        let possible = (*work).min(closed.saturating_sub(begin));
        (whole, lost) = (whole.saturating_add(*work), lost.saturating_add(*work - possible));
        (*work, done) = (possible, begin.saturating_add(possible));
    }
    (works, lost as f64 / whole.max(1) as f64)
}

fn mark_consumed(
    graph: &mut Graph,
    pieces: &Pieces,
    (message, reader): (MessageId, Option<ProcessId>),
    (works, latest): (&[u64], &[u64]),
    consumed: &mut Consumed,
) {
    let mut before: Option<Draft> = None;
    for ((piece, work), latest) in pieces.all(message).zip(works).zip(latest) {
        let mut causes = vec![Cause::delivered(piece, Evidence::Stream)];
        causes.extend(before.map(|before| Cause::sent(before, Evidence::Stream)));
        let begin = graph.arrived(piece).max(before.map_or(0, |before| graph.happened(before)));
        let at = begin.saturating_add(*work).min(*latest).max(begin);
        let mark = graph.work_until("block.consumed", reader, &causes, at - begin, at);
        consumed.insert(piece, mark);
        before = Some(mark);
    }
}
