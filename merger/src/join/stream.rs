//! One direction of a connection, from what the hosts at its two ends saw.

use trace::packet::flag;

use super::content::Content;
use super::ranges::Ranges;
use crate::capture::observed::Observed;
use crate::capture::settled::FlowPackets;
use crate::joined::{Segment, Stream};

/// Payload of a full segment over Ethernet without options (1,500 bytes less IPv4 and TCP headers).
const MAX_SEGMENT_BYTES: u64 = 1_460;

/// What one host saw of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    /// Its packets, ordered by time, on the reference clock.
    pub packets: &'a [Observed],
    /// Where their payload is.
    pub flow: &'a FlowPackets,
    /// How many of the higher and of the lower address have payload, resets among them.
    pub data: [u32; 2],
}

impl View<'_> {
    /// Whether another is of the same packets, as of what stays on a host.
    fn is(&self, other: &View<'_>) -> bool {
        std::ptr::eq(self.packets, other.packets)
    }
}

/// One direction: which packets belong to it, and who saw them.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirectionBuilder<'a> {
    /// Whether it goes from the flow's lower to its higher address.
    pub forward: bool,
    /// Initial sequence number, if the SYN was seen.
    pub isn: Option<u32>,
    /// What the sender's host saw.
    pub sender: Option<View<'a>>,
    /// What the receiver's host saw.
    pub receiver: Option<View<'a>>,
    /// By how many bits the receiver's windows have to be shifted; `None` = unknown.
    pub window_shift: Option<u32>,
    /// Half of the handshake's round trip, nanoseconds: the way's delay if only the sender was captured.
    pub half_round_trip_ns: u64,
    /// How far off the two hosts' clocks may be, nanoseconds.
    pub tolerance_ns: u64,
}

/// A direction as it was put together.
#[derive(Clone, Debug, Default)]
pub(super) struct Built {
    /// Segments.
    pub stream: Stream,
    /// Kept payload.
    pub content: Content,
    /// Offset behind the last byte that was seen or acknowledged.
    pub end: u64,
    /// Bytes seen, each once.
    pub seen: u64,
    /// Bytes sent more than once.
    pub retransmitted: u64,
    /// Segments that by the aligned clocks arrived before they left.
    pub early: Early,
    /// What held the sender up; `None` if its host was not captured.
    pub limits: Option<Limits>,
}

/// How long a sender waited for others, as its host's packets tell it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes were sent and not acknowledged, nanoseconds.
    pub busy_ns: u64,
    /// The receiver's window had no room for a full segment beside them, nanoseconds; `None` = windows are not known.
    pub window_limited_ns: Option<u64>,
}

/// Reckons [`Limits`] from packet to packet.
#[derive(Debug, Default)]
struct LimitClock {
    limits: Limits,
    at_ns: Option<u64>,
    /// The largest payload so far: with segmentation offload more than a segment.
    largest: u64,
}

impl LimitClock {
    /// Time goes on to the next packet, with so much on its way since the last one.
    fn advance(&mut self, to_ns: u64, in_flight: u64, window_bytes: Option<u64>) {
        let passed_ns = self.at_ns.map_or(0, |at_ns| to_ns.saturating_sub(at_ns));
        self.at_ns = Some(self.at_ns.map_or(to_ns, |at_ns| at_ns.max(to_ns)));
        // A closed window lets nothing be sent, though all that was is acknowledged.
        let segment = self.largest.min(MAX_SEGMENT_BYTES);
        let is_full = window_bytes.is_some_and(|window_bytes| in_flight + segment > window_bytes);
        if in_flight == 0 && !is_full {
            return;
        }
        self.limits.busy_ns += passed_ns;
        if window_bytes.is_some() {
            *self.limits.window_limited_ns.get_or_insert(0) += if is_full { passed_ns } else { 0 };
        }
    }
}

/// Segments that by the aligned clocks arrived before they left; their delivery was moved to when they left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Early {
    /// By no more than the clocks' uncertainty.
    pub within_uncertainty: u64,
    /// By more.
    pub beyond_uncertainty: u64,
    /// The largest of all, nanoseconds.
    pub largest_ns: u64,
}

impl Early {
    fn note(&mut self, early_ns: u64, tolerance_ns: u64) {
        if early_ns > 0 {
            self.largest_ns = self.largest_ns.max(early_ns);
            if early_ns <= tolerance_ns {
                self.within_uncertainty += 1;
            } else {
                self.beyond_uncertainty += 1;
            }
        }
    }

    /// Adds those of another direction.
    pub fn add(&mut self, other: &Self) {
        self.within_uncertainty += other.within_uncertainty;
        self.beyond_uncertainty += other.beyond_uncertainty;
        self.largest_ns = self.largest_ns.max(other.largest_ns);
    }
}

/// Sequence numbers to offsets, over wraps.
#[derive(Clone, Copy, Debug)]
struct Unwrap {
    base: u32,
    last: i64,
}

impl Unwrap {
    fn new(base: u32) -> Self {
        Self { base, last: 0 }
    }

    /// Offset of a sequence number: the one nearest to the highest so far.
    fn offset(&mut self, sequence: u32) -> i64 {
        let expected = self.base.wrapping_add(self.last as u32);
        let offset = self.last + i64::from(sequence.wrapping_sub(expected) as i32);
        self.last = self.last.max(offset);
        offset
    }
}

/// Up to where one host's packets tell that a direction went.
#[derive(Debug)]
struct StreamProgress {
    heard: Unwrap,
    sent: Unwrap,
    acknowledged: i64,
    fin: Option<i64>,
}

impl StreamProgress {
    fn new(base: u32) -> Self {
        Self { heard: Unwrap::new(base), sent: Unwrap::new(base), acknowledged: 0, fin: None }
    }

    /// The other side acknowledges.
    #[inline]
    fn acknowledge(&mut self, packet: &Observed) {
        if !packet.has(flag::RST) {
            self.acknowledged = self.acknowledged.max(self.heard.offset(packet.acknowledgement));
        }
    }

    /// A packet of the direction, with or without data.
    #[inline]
    fn sends(&mut self, packet: &Observed, is_data: bool) {
        if packet.has(flag::FIN) {
            let behind = self.sent.offset(data_sequence(packet)) + i64::from(packet.payload_length);
            self.fin.get_or_insert(behind);
        } else if is_data {
            self.sent.offset(data_sequence(packet));
        }
    }

    /// Behind the last byte that the other side acknowledged, where all that was seen ends at `seen_end`.
    fn end(&self, seen_end: u64) -> u64 {
        let payload = match self.fin {
            Some(fin) => self.acknowledged.min(fin),
            // The acknowledgement of a FIN that was not seen counts one more.
            None if self.acknowledged.max(0) as u64 == seen_end + 1 => self.acknowledged - 1,
            None => self.acknowledged,
        };
        payload.max(0) as u64
    }
}

/// What is gathered of one direction, packet by packet, until it is put together.
struct Reassembly<'a> {
    /// The offset of the first byte.
    base: u32,
    seen: Ranges,
    /// Kept payload by offset.
    pieces: Vec<(u64, &'a [u8])>,
    /// What each host's packets tell.
    progress: Vec<StreamProgress>,
    /// Up to where the receiver had everything, and since when.
    arrivals: Vec<(u64, u64)>,
}

impl<'a> Reassembly<'a> {
    #[inline]
    fn keep(&mut self, view: View<'a>, packet: &Observed, start: i64) {
        if packet.kept_length == 0 {
            return;
        }
        let skip = usize::try_from((-start).max(0)).unwrap_or(usize::MAX);
        self.pieces.push((start.max(0) as u64, view.flow.payload(packet).get(skip..).unwrap_or(&[])));
    }
}

fn data_sequence(packet: &Observed) -> u32 {
    // SYN takes one sequence number; data with it (TCP fast open) comes behind.
    packet.sequence.wrapping_add(u32::from(packet.has(flag::SYN)))
}

impl<'a> DirectionBuilder<'a> {
    fn views(&self) -> impl Iterator<Item = View<'a>> {
        self.sender.into_iter().chain(self.receiver)
    }

    fn is_data(&self, packet: &Observed) -> bool {
        packet.forward == self.forward && packet.payload_length > 0 && !packet.has(flag::RST)
    }

    /// How many packets of a view have payload at most.
    fn data_of(&self, view: View<'_>) -> usize {
        view.data[usize::from(self.forward)] as usize
    }

    fn is_ack(&self, packet: &Observed) -> bool {
        packet.forward != self.forward && packet.has(flag::ACK)
    }

    /// Sequence number of the byte at offset 0.
    fn base(&self) -> Option<u32> {
        if let Some(isn) = self.isn {
            return Some(isn.wrapping_add(1));
        }
        let earlier = |a: u32, b: u32| if (b.wrapping_sub(a) as i32) < 0 { b } else { a };
        self.views().filter_map(|view| self.base_of(view)).reduce(earlier)
    }

    /// The first data that a host saw; what had been acknowledged before it is older than the capture.
    fn base_of(&self, view: View<'_>) -> Option<u32> {
        let mut acknowledged: Option<u32> = None;
        for packet in view.packets {
            if self.is_data(packet) {
                let first = data_sequence(packet);
                return Some(match acknowledged {
                    Some(ack) if (ack.wrapping_sub(first) as i32) > 0 => ack,
                    _ => first,
                });
            }
            if self.is_ack(packet) {
                acknowledged = Some(packet.acknowledgement);
            }
        }
        acknowledged
    }

    /// Puts the direction together.
    pub fn build(&self) -> Built {
        let Some(base) = self.base() else { return Built::default() };
        let mut built = Built::default();
        let mut reassembly = Reassembly {
            base,
            seen: Ranges::default(),
            pieces: Vec::new(),
            progress: Vec::with_capacity(2),
            arrivals: Vec::new(),
        };
        if let Some(view) = self.sender {
            self.send(view, &mut built, &mut reassembly);
        }
        if let Some(view) = self.receiver {
            self.receive(view, &mut built, &mut reassembly);
        }
        let Reassembly { seen, pieces, progress, arrivals, .. } = reassembly;
        built.seen = seen.total();
        let seen_end = seen.end();
        built.end = progress.iter().map(|of_host| of_host.end(seen_end)).fold(seen_end, u64::max);
        if !built.stream.segments.is_sorted_by_key(|segment| segment.offset) {
            built.stream.segments.sort_by_key(|segment| segment.offset);
        }
        match (self.receiver, self.sender) {
            (Some(_), _) => self.deliver(&arrivals, &mut built),
            (None, Some(view)) => self.estimate(view, base, &mut built),
            (None, None) => {}
        }
        built.content = Content::new(pieces);
        built
    }

    /// What left, as the sender's host saw it.
    fn send(&self, view: View<'a>, built: &mut Built, reassembly: &mut Reassembly<'a>) {
        let base = reassembly.base;
        let (mut sent, mut heard, mut reach) = (Unwrap::new(base), Unwrap::new(base), StreamProgress::new(base));
        let (mut highest, mut acknowledged, mut window_bytes) = (0u64, 0u64, 0u64);
        let mut clock = LimitClock::default();
        let mut has_heard = false;
        let mut again: Vec<(u64, u64)> = Vec::new();
        built.stream.segments.reserve(self.data_of(view));
        for packet in view.packets {
            let known_window = self.window_shift.filter(|_| has_heard).map(|_| window_bytes);
            clock.advance(packet.time_ns, highest.saturating_sub(acknowledged), known_window);
            if packet.forward != self.forward {
                if !packet.has(flag::ACK) {
                    continue;
                }
                acknowledged = acknowledged.max(heard.offset(packet.acknowledgement).max(0) as u64);
                has_heard = true;
                window_bytes = match self.window_shift {
                    _ if packet.has(flag::SYN) => u64::from(packet.window),
                    Some(shift) => u64::from(packet.window) << shift,
                    None => 0,
                };
                reach.acknowledge(packet);
                continue;
            }
            let is_data = self.is_data(packet);
            reach.sends(packet, is_data);
            if !is_data {
                continue;
            }
            let start = sent.offset(data_sequence(packet));
            let end = start + i64::from(packet.payload_length);
            sent.last = sent.last.max(end);
            reassembly.keep(view, packet, start);
            let (start, end) = (start.max(0) as u64, end.max(0) as u64);
            let mut fresh = 0;
            reassembly.seen.insert(start, end, |from, to| {
                fresh += to - from;
                built.stream.segments.push(Segment {
                    offset: from,
                    bytes: u32::try_from(to - from).unwrap_or(u32::MAX),
                    sent_ns: packet.time_ns,
                    delivered_ns: 0,
                    in_flight_bytes: highest.saturating_sub(acknowledged),
                    window_bytes,
                    retransmitted: false,
                });
            });
            let repeated = u64::from(packet.payload_length) - fresh;
            // A keep-alive probe repeats the byte before the next one, though nothing is on its way.
            let probe = packet.payload_length <= 1 && end == highest && acknowledged >= end;
            if repeated > 0 && !probe {
                built.retransmitted += repeated;
                again.push((start, end));
            }
            highest = highest.max(end);
            clock.largest = clock.largest.max(u64::from(packet.payload_length));
        }
        reassembly.progress.push(reach);
        built.limits = Some(clock.limits);
        if !again.is_empty() {
            mark_retransmitted(&mut built.stream.segments, &again);
        }
    }

    /// What arrived, and what of it the sender's host was not asked or did not see. The receiver had everything up to where it has
    /// arrived in order, and what it acknowledged (which it must have received, even if the capture lost it).
    fn receive(&self, view: View<'a>, built: &mut Built, reassembly: &mut Reassembly<'a>) {
        let base = reassembly.base;
        let (mut got, mut said, mut tells) = (Unwrap::new(base), Unwrap::new(base), StreamProgress::new(base));
        // The sender's host and the receiver's are one: all of that is known.
        let is_known = self.sender.is_some_and(|sender| sender.is(&view));
        let mut have = Ranges::default();
        let mut reach = 0u64;
        reassembly.arrivals.reserve(self.data_of(view));
        for packet in view.packets {
            let is_data = self.is_data(packet);
            let is_ack = self.is_ack(packet);
            if !is_known {
                if is_ack {
                    tells.acknowledge(packet);
                } else if packet.forward == self.forward {
                    tells.sends(packet, is_data);
                }
            }
            let reached = if is_data {
                let start = got.offset(data_sequence(packet));
                let end = start + i64::from(packet.payload_length);
                got.last = got.last.max(end);
                let (from, to) = (start.max(0) as u64, end.max(0) as u64);
                have.insert(from, to, |_, _| {});
                if !is_known {
                    reassembly.keep(view, packet, start);
                    self.fill(packet, (start, end), built, &mut reassembly.seen);
                }
                have.reaches(reach)
            } else if is_ack {
                let acknowledged = said.offset(packet.acknowledgement).max(0) as u64;
                have.reaches(reach.max(acknowledged))
            } else {
                continue;
            };
            if reached > reach {
                reach = reached;
                reassembly.arrivals.push((reach, packet.time_ns));
            }
        }
        if !is_known {
            reassembly.progress.push(tells);
        }
    }

    /// Adds what of a segment the sender's host was not asked or did not see, as it arrived.
    #[inline]
    fn fill(&self, packet: &Observed, (start, end): (i64, i64), built: &mut Built, seen: &mut Ranges) {
        seen.insert(start.max(0) as u64, end.max(0) as u64, |from, to| {
            built.stream.segments.push(Segment {
                offset: from,
                bytes: u32::try_from(to - from).unwrap_or(u32::MAX),
                sent_ns: packet.time_ns,
                ..Segment::default()
            });
        });
        if self.sender.is_none() && start.max(0) < end {
            let length = u64::from(packet.payload_length);
            let fresh = length.min((end.max(0) as u64).saturating_sub(start.max(0) as u64));
            built.retransmitted += length - fresh;
        }
    }

    /// When the bytes had arrived in order at the receiver.
    fn deliver(&self, arrivals: &[(u64, u64)], built: &mut Built) {
        let last = arrivals.last().map(|&(_, time)| time);
        // Both are ordered: nothing is looked for twice.
        let mut at = 0;
        for segment in &mut built.stream.segments {
            let end = segment.offset + u64::from(segment.bytes);
            at += arrivals[at..].iter().take_while(|&&(reach, _)| reach < end).count();
            // What the capture ended before is taken to have arrived with the last thing that did.
            let arrived = arrivals.get(at).map(|&(_, time)| time).or(last).unwrap_or(segment.sent_ns);
            if at < arrivals.len() {
                built.early.note(segment.sent_ns.saturating_sub(arrived), self.tolerance_ns);
            }
            segment.delivered_ns = arrived.max(segment.sent_ns);
        }
    }

    /// Without the receiver's host: half a round trip after it left, and what was sent again half a round trip before
    /// its acknowledgement came.
    fn estimate(&self, view: View<'_>, base: u32, built: &mut Built) {
        let mut heard = Unwrap::new(base);
        let mut acknowledged: Vec<(u64, u64)> = Vec::new();
        for packet in view.packets.iter().filter(|packet| self.is_ack(packet)) {
            let reach = heard.offset(packet.acknowledgement).max(0) as u64;
            if acknowledged.last().is_none_or(|last| reach > last.0) {
                acknowledged.push((reach, packet.time_ns));
            }
        }
        let mut latest = 0;
        for segment in &mut built.stream.segments {
            let end = segment.offset + u64::from(segment.bytes);
            let at = acknowledged.partition_point(|&(reach, _)| reach < end);
            let estimate = match acknowledged.get(at) {
                Some(&(_, time)) if segment.retransmitted => time.saturating_sub(self.half_round_trip_ns),
                Some(&(_, time)) => time.min(segment.sent_ns + self.half_round_trip_ns),
                None => segment.sent_ns + self.half_round_trip_ns,
            };
            latest = estimate.max(segment.sent_ns).max(latest);
            segment.delivered_ns = latest;
        }
    }
}

fn mark_retransmitted(segments: &mut [Segment], again: &[(u64, u64)]) {
    let mut ranges = Ranges::default();
    for &(start, end) in again {
        ranges.insert(start, end, |_, _| {});
    }
    for segment in segments.iter_mut() {
        segment.retransmitted = ranges.reaches(segment.offset) > segment.offset;
    }
}

/// The window scale of an end, learnt from its windows around the handshake: the one in its SYN is not shifted, the one
/// in its next packet is, and nothing was received between.
pub(super) fn window_shift<'a>(packets: impl Iterator<Item = &'a Observed>, forward: bool) -> Option<u32> {
    let mut in_syn = None;
    for packet in packets.filter(|packet| packet.forward == forward && !packet.has(flag::RST)) {
        if packet.has(flag::SYN) {
            in_syn = Some(packet.window);
        } else {
            let (unscaled, scaled) = (f64::from(in_syn?), f64::from(packet.window));
            if scaled == 0.0 {
                return None;
            }
            let shift = libm::log2(unscaled / scaled).round();
            let off = (scaled * libm::exp2(shift) / unscaled - 1.0).abs();
            return (off < 0.25 && (0.0..=14.0).contains(&shift)).then_some(shift as u32);
        }
    }
    None
}
