//! What hosts sent each other, in windows of time.

use crate::capture::flows::FlowKey;
use crate::capture::observed::Observed;
use crate::join::AddressBook;
use crate::spilled::{Reader, Record, Writer};
use crate::survey::Views;

/// 50 ms: 82 full frames at 20 Mbit/s.
pub(super) const WINDOW_NS: u64 = 50_000_000;
/// A window's parts of 10 ms, which a full link fills evenly.
pub(super) const PARTS: usize = 5;
/// A part of a window has at least so large a share of the mean part, where a link was full.
const EVEN: f64 = 0.5;
/// Headers of a frame: Ethernet 14, IP 20, TCP 20, time stamps 12.
const HEADERS: u64 = 66;
/// Payload of a full frame on Ethernet.
const FULL_PAYLOAD: u64 = 1_448;

/// Two hosts, by number, between which bytes went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ends {
    /// The sender.
    pub from: usize,
    /// The receiver.
    pub to: usize,
}

/// Bytes of frames by part of a window: of 10 ms, 4 GiB at most.
pub(super) type Parts = [u32; PARTS];

/// What was seen in a window (number since the epoch) of what one host sent another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WindowSample {
    pub window: u64,
    pub ends: Ends,
    pub what: Sample,
}

/// What can be seen in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sample {
    /// Frames, as the sender saw them.
    Sent(Parts),
    /// Frames, as the receiver saw them.
    Arrived(Parts),
    /// How long packets were under way that arrived, at most, nanoseconds by the clocks of both.
    Took(i64),
    /// A packet left that had to be sent again.
    Lost,
}

impl WindowSample {
    /// Adds what another one of the same kind, window and ends says; `false` if it is none.
    pub fn join(&mut self, other: &Self) -> bool {
        if (self.window, self.ends) != (other.window, other.ends) {
            return false;
        }
        match (&mut self.what, &other.what) {
            (Sample::Sent(sums), Sample::Sent(parts)) | (Sample::Arrived(sums), Sample::Arrived(parts)) => {
                sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum = sum.saturating_add(*part));
            }
            (Sample::Took(longest), Sample::Took(took)) => *longest = (*took).max(*longest),
            (Sample::Lost, Sample::Lost) => {}
            _ => return false,
        }
        true
    }
}

impl Record for WindowSample {
    const BLANK: Self = Self { window: 0, ends: Ends { from: 0, to: 0 }, what: Sample::Lost };
    const BYTES: usize = 8 + 2 * 4 + 1 + 4 * PARTS;

    fn write(&self, out: &mut Writer<'_>) {
        self.window.write(out);
        [self.ends.from, self.ends.to].into_iter().for_each(|host| (host as u32).write(out));
        let (kind, parts) = match self.what {
            Sample::Sent(parts) => (0, parts),
            Sample::Arrived(parts) => (1, parts),
            Sample::Took(ns) => (2, [ns as u32, (ns >> 32) as u32, 0, 0, 0]),
            Sample::Lost => (3, [0; PARTS]),
        };
        out.bytes([kind]);
        parts.into_iter().for_each(|part| part.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Self {
        let window = input.u64();
        let ends = Ends { from: input.u32() as usize, to: input.u32() as usize };
        let kind = input.u8();
        let parts: Parts = std::array::from_fn(|_| input.u32());
        let what = match kind {
            0 => Sample::Sent(parts),
            1 => Sample::Arrived(parts),
            2 => Sample::Took((u64::from(parts[0]) | u64::from(parts[1]) << 32) as i64),
            _ => Sample::Lost,
        };
        Self { window, ends, what }
    }
}

/// What a link carried in a window.
#[derive(Clone, Debug, Default)]
pub(super) struct Load {
    /// By the hosts between which it went, ordered: a few.
    by_ends: Vec<(Ends, u64)>,
    parts: [u64; PARTS],
}

impl Load {
    pub fn add(&mut self, ends: Ends, parts: &Parts) {
        let bytes = parts.iter().map(|part| u64::from(*part)).sum::<u64>();
        match self.by_ends.binary_search_by_key(&ends, |(known, _)| *known) {
            Ok(at) => self.by_ends[at].1 += bytes,
            Err(at) => {
                self.by_ends.reserve_exact(1);
                self.by_ends.insert(at, (ends, bytes));
            }
        }
        self.parts.iter_mut().zip(parts).for_each(|(sum, part)| *sum += u64::from(*part));
    }

    /// The hosts between which bytes went.
    pub fn ends(&self) -> impl Iterator<Item = Ends> {
        self.by_ends.iter().map(|(ends, _)| *ends)
    }

    /// Bytes between hosts between which the other carried something too.
    pub fn common_bytes(&self, other: &Self) -> u64 {
        let is_there = |ends: &Ends| other.by_ends.binary_search_by_key(ends, |(known, _)| *known).is_ok();
        self.by_ends.iter().filter(|(ends, _)| is_there(ends)).map(|(_, bytes)| bytes).sum()
    }

    pub fn bytes(&self) -> u64 {
        self.parts.iter().sum()
    }

    /// How much it is, of a window.
    pub fn carried(&self, window: u64) -> Carried {
        Carried::of(window, &self.parts)
    }
}

/// How much a link carried in a window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Carried {
    pub window: u64,
    pub bytes: u64,
    /// Whether bytes came all the time, as over a full link, and not at once.
    pub is_even: bool,
}

impl Carried {
    pub fn of(window: u64, parts: &[u64; PARTS]) -> Self {
        let bytes = parts.iter().sum();
        let least = bytes as f64 / PARTS as f64 * EVEN;
        Self { window, bytes, is_even: parts.iter().all(|part| *part as f64 >= least) }
    }
}

impl Record for Carried {
    const BLANK: Self = Self { window: 0, bytes: 0, is_even: false };
    const BYTES: usize = 2 * 8 + 1;

    fn write(&self, out: &mut Writer<'_>) {
        self.window.write(out);
        self.bytes.write(out);
        out.bytes([self.is_even.into()]);
    }

    fn read(input: &mut Reader<'_>) -> Self {
        Self { window: input.u64(), bytes: input.u64(), is_even: input.u8() != 0 }
    }
}

/// What a flow carried, as the hosts between which it went saw it. The packets' times are on one clock.
pub(super) fn carried(key: &FlowKey, views: &Views, book: &AddressBook) -> Vec<WindowSample> {
    let mut carried = Vec::new();
    let ways = [false, true].map(|forward| ends(key, forward, book));
    for (host, view) in views {
        let kinds = ways.map(|ends| {
            let ends = ends?;
            let kind: fn(Parts) -> Sample = match *host {
                host if host == ends.from => Sample::Sent,
                host if host == ends.to => Sample::Arrived,
                _ => return None,
            };
            Some((ends, kind))
        });
        if kinds.iter().all(Option::is_none) {
            continue;
        }
        let mut take = |way: usize, summed: &Summed| {
            carried.extend(kinds[way].and_then(|(ends, kind)| {
                Some(WindowSample { window: summed.begin_ns / WINDOW_NS, ends, what: kind(summed.parts()?) })
            }));
        };
        // Both directions at once: of a long flow most is not in the processor's cache when it is looked at again.
        let mut of_ways = [Summed::default(); 2];
        for packet in &view.packets {
            let way = usize::from(packet.forward);
            let summed = &mut of_ways[way];
            // Nearly each is in the window of the one before.
            if packet.time_ns.wrapping_sub(summed.begin_ns) >= WINDOW_NS {
                take(way, summed);
                *summed = Summed::of_window(packet.time_ns);
            }
            summed.add(packet);
        }
        of_ways.iter().enumerate().for_each(|(way, summed)| take(way, summed));
    }
    carried
}

/// The ends of a flow's direction; `None` for what stays on a host, or whose ends were not both captured.
pub(super) fn ends(key: &FlowKey, forward: bool, book: &AddressBook) -> Option<Ends> {
    let (low, high) = (book.host_of(key.low().ip(), key.host())?, book.host_of(key.high().ip(), key.host())?);
    let (from, to) = if forward { (low, high) } else { (high, low) };
    (from != to).then_some(Ends { from, to })
}

/// Bytes of a packet's frames on the wire. Where a host's card cuts segments, one packet of a capture is several frames.
fn frame_bytes(packet: &Observed) -> u64 {
    let payload = u64::from(packet.payload_length);
    payload + HEADERS * payload.div_ceil(FULL_PAYLOAD).max(1)
}

/// Frames of a window, added up.
#[derive(Clone, Copy, Debug, Default)]
struct Summed {
    begin_ns: u64,
    parts: [u64; PARTS],
}

impl Summed {
    /// None yet, of the window of a time.
    fn of_window(time_ns: u64) -> Self {
        Self { begin_ns: time_ns / WINDOW_NS * WINDOW_NS, parts: [0; PARTS] }
    }

    /// Adds the frames of a packet of the window.
    #[inline]
    fn add(&mut self, packet: &Observed) {
        let part = (packet.time_ns - self.begin_ns) / (WINDOW_NS / PARTS as u64);
        self.parts[part as usize] += frame_bytes(packet);
    }

    /// The bytes of each part; `None` if there are none.
    fn parts(&self) -> Option<Parts> {
        let any = self.parts.iter().any(|part| *part > 0);
        any.then(|| self.parts.map(|part| u32::try_from(part).unwrap_or(u32::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spilled::read_back;

    #[test]
    fn what_was_seen_is_read_as_it_was_written() {
        for what in [Sample::Sent([1, 2, 3, 4, u32::MAX]), Sample::Arrived([7; PARTS]), Sample::Took(-3), Sample::Lost]
        {
            let seen = WindowSample { window: 1 << 40, ends: Ends { from: 3, to: 2 }, what };
            assert_eq!(read_back(&seen), seen);
        }
    }

    #[test]
    fn what_was_seen_of_one_kind_at_one_time_is_joined() {
        let seen = |window, what| WindowSample { window, ends: Ends { from: 0, to: 1 }, what };
        let mut sent = seen(1, Sample::Sent([u32::MAX - 1, 0, 0, 0, 5]));
        assert!(sent.join(&seen(1, Sample::Sent([2, 1, 0, 0, 5]))));
        assert_eq!(sent.what, Sample::Sent([u32::MAX, 1, 0, 0, 10]));
        assert!(!sent.join(&seen(1, Sample::Arrived([1; PARTS]))) && !sent.join(&seen(2, Sample::Sent([1; PARTS]))));
        let mut took = seen(1, Sample::Took(-5));
        assert!(took.join(&seen(1, Sample::Took(-7))) && took.what == Sample::Took(-5));
    }
}
