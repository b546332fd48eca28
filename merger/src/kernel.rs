//! What the kernel counted of a connection, beside what was captured.

use std::io;

use trace::socket::TcpCounters;

use crate::joined::Stream;
use crate::spilled::ByteLog;
use crate::varint::{MAX_BYTES, get, put};

/// What the kernel counted of one end of a connection: of all scans those that matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The first and the last scan of the living socket.
    scans: Option<(Scan, Scan)>,
    /// When it had died, first.
    died: Option<(Scan, KernelLimits)>,
}

/// What a socket had sent when the kernel was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scan {
    at_ns: u64,
    /// bytes_sent - bytes_retrans.
    once_bytes: u64,
}

/// How long a socket was busy, and held up by its receiver and by its own buffer, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelLimits {
    /// With data in flight or to send.
    pub busy_us: u64,
    /// The receiver's window was full.
    pub rwnd_limited_us: u64,
    /// The send buffer was.
    pub sndbuf_limited_us: u64,
}

impl Counted {
    /// Adds counters of a time; `died` = the last ones, from when the socket died. In any order.
    pub fn add(&mut self, at_ns: u64, died: bool, tcp: &TcpCounters) {
        let scan = Scan { at_ns, once_bytes: tcp.bytes_sent.saturating_sub(tcp.bytes_retrans) };
        if died {
            let TcpCounters { busy_us, rwnd_limited_us, sndbuf_limited_us, .. } = *tcp;
            if self.died.is_none_or(|(known, _)| at_ns < known.at_ns) {
                self.died = Some((scan, KernelLimits { busy_us, rwnd_limited_us, sndbuf_limited_us }));
            }
            return;
        }
        let (first, last) = self.scans.get_or_insert((scan, scan));
        if at_ns < first.at_ns {
            *first = scan;
        }
        if at_ns >= last.at_ns {
            *last = scan;
        }
    }

    /// bytes_sent - bytes_retrans of the socket within the capture.
    ///
    /// A socket that died left its last counters. Of one that is still open, the last scan counts, and what was captured
    /// after it is added; of one that was open before the capture, the first scan is subtracted, and what was captured
    /// before it is added. `None` if there are no counters, or no last ones of a socket that closed.
    #[must_use]
    pub fn bytes(&self, stream: &Stream, opened_in_capture: bool, ended_in_capture: bool) -> Option<u64> {
        let sent_by = |t: u64| -> u64 {
            stream.segments.iter().filter(|segment| segment.sent_ns <= t).map(|segment| u64::from(segment.bytes)).sum()
        };
        let total = sent_by(u64::MAX);
        let last_of_all = self.died.map(|(scan, _)| scan);
        // What a scan saw of a socket that has closed since is a moment in the middle of its life.
        let open = self.scans.filter(|_| !ended_in_capture).map(|(_, last)| last);
        let last = last_of_all.or(open)?;
        let up_to_last = if last_of_all.is_some() { total } else { sent_by(last.at_ns) };
        let until_last = last.once_bytes + (total - up_to_last);
        if opened_in_capture {
            return Some(until_last);
        }
        let (first, _) = self.scans?;
        Some(until_last.saturating_sub(first.once_bytes) + sent_by(first.at_ns))
    }

    /// The last counters of a socket that was opened and died within the capture: its times are those of its whole life.
    #[must_use]
    pub fn limits(&self, opened_in_capture: bool) -> Option<KernelLimits> {
        let (_, limits) = self.died.filter(|_| opened_in_capture)?;
        // Kernels before 4.10 do not count them.
        (limits.busy_us > 0).then_some(limits)
    }
}

/// What the kernel counted of ends of connections, by their numbers, while scans come. Of most short connections no scan tells: their ends
/// take four bytes.
#[derive(Debug, Default)]
pub struct Counts {
    /// One more than the place in `counted` of each end of which something was counted, or 0.
    places: Vec<u32>,
    counted: Vec<Counted>,
}

impl Counts {
    /// Of so many ends: two of each connection, the client's first.
    #[must_use]
    pub fn of(ends: usize) -> Self {
        Self { places: vec![0; ends], counted: Vec::new() }
    }

    /// As [`Counted::add`], of an end.
    pub fn add(&mut self, end: usize, at_ns: u64, died: bool, tcp: &TcpCounters) {
        if self.places[end] == 0 {
            if self.counted.len() == self.counted.capacity() {
                // Twice as much would not be needed, mostly.
                self.counted.reserve_exact(self.counted.len() / 8 + 64);
            }
            self.counted.push(Counted::default());
            self.places[end] = u32::try_from(self.counted.len()).unwrap_or(u32::MAX);
        }
        if let Some(counted) = self.counted.get_mut(self.places[end] as usize - 1) {
            counted.add(at_ns, died, tcp);
        }
    }

    /// Of an end.
    #[must_use]
    pub fn get(&self, end: usize) -> Counted {
        let place = self.places.get(end).and_then(|place| place.checked_sub(1));
        place.and_then(|place| self.counted.get(place as usize).copied()).unwrap_or_default()
    }
}

/// What the kernel counted of both ends of connections, by their numbers, packed: there are many, and of most a part is known.
#[derive(Clone, Debug)]
pub(crate) struct PackedCounts {
    bytes: ByteLog,
    /// Where what is known of each connection begins.
    begins: Vec<usize>,
}

/// Memory that packed counts take at most, but for where they begin, bytes.
const MAX_HELD: usize = 256 << 10;
/// What is known of an end takes no more bytes: ten numbers.
const MAX_END: usize = 10 * MAX_BYTES;

/// What is known of an end: [`Counted::scans`], [`Counted::died`].
const SCANS: u64 = 1;
const DIED: u64 = 2;

impl PackedCounts {
    /// Of both ends of these connections, which get new numbers in their order.
    pub fn of(counts: &Counts, connections: impl Iterator<Item = usize>) -> Self {
        let mut packed = Self { bytes: ByteLog::within(MAX_HELD), begins: Vec::new() };
        for connection in connections {
            packed.begins.push(packed.bytes.len());
            [2 * connection, 2 * connection + 1].iter().for_each(|end| packed.write(&counts.get(*end)));
            packed.bytes.end_record();
        }
        packed.begins.shrink_to_fit();
        packed
    }

    /// Of both ends of a connection.
    pub fn get(&self, connection: usize) -> [Counted; 2] {
        let known = self.begins.get(connection).and_then(|begin| self.bytes.window(*begin, 2 * MAX_END));
        let mut rest = known.as_deref().unwrap_or_default();
        std::array::from_fn(|_| read(&mut rest).unwrap_or_default())
    }

    /// Whether all could be kept, and looked at.
    pub fn check(&self) -> io::Result<()> {
        self.bytes.check()
    }

    fn write(&mut self, Counted { scans, died }: &Counted) {
        let what = (u64::from(scans.is_some()) * SCANS) | (u64::from(died.is_some()) * DIED);
        let of_scans = scans.iter().flat_map(|(first, last)| {
            [first.at_ns, first.once_bytes, last.at_ns.wrapping_sub(first.at_ns), last.once_bytes]
        });
        let of_death = died.iter().flat_map(|(scan, limits)| {
            [scan.at_ns, scan.once_bytes, limits.busy_us, limits.rwnd_limited_us, limits.sndbuf_limited_us]
        });
        for number in [what].into_iter().chain(of_scans).chain(of_death) {
            let mut bytes = [0; MAX_BYTES];
            let length = put(&mut bytes, number);
            self.bytes.tail().extend_from_slice(&bytes[..length]);
        }
    }
}

fn read(rest: &mut &[u8]) -> Option<Counted> {
    let what = get(rest)?;
    let mut counted = Counted::default();
    if what & SCANS != 0 {
        let first = Scan { at_ns: get(rest)?, once_bytes: get(rest)? };
        let last = Scan { at_ns: first.at_ns.wrapping_add(get(rest)?), once_bytes: get(rest)? };
        counted.scans = Some((first, last));
    }
    if what & DIED != 0 {
        let scan = Scan { at_ns: get(rest)?, once_bytes: get(rest)? };
        let (busy_us, rwnd_limited_us, sndbuf_limited_us) = (get(rest)?, get(rest)?, get(rest)?);
        counted.died = Some((scan, KernelLimits { busy_us, rwnd_limited_us, sndbuf_limited_us }));
    }
    Some(counted)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;
    use crate::joined::Segment;

    type All = [(u64, bool, TcpCounters)];

    /// By all counters, in the order of time.
    fn bytes(counters: &All, stream: &Stream, opened: bool, ended: bool) -> Option<u64> {
        let once = |counters: &TcpCounters| counters.bytes_sent.saturating_sub(counters.bytes_retrans);
        let sent_by = |t: u64| -> u64 {
            stream.segments.iter().filter(|segment| segment.sent_ns <= t).map(|segment| u64::from(segment.bytes)).sum()
        };
        let last_of_all = counters.iter().find(|(_, died, _)| *died);
        let last = last_of_all.or(if ended { None } else { counters.last() })?;
        let up_to_last = if last_of_all.is_some() { sent_by(u64::MAX) } else { sent_by(last.0) };
        let until_last = once(&last.2) + (sent_by(u64::MAX) - up_to_last);
        if opened {
            return Some(until_last);
        }
        let first = counters.iter().find(|(_, died, _)| !*died)?;
        Some(until_last.saturating_sub(once(&first.2)) + sent_by(first.0))
    }

    fn limits(counters: &All, opened: bool) -> Option<KernelLimits> {
        let (_, _, last) = counters.iter().find(|(_, died, _)| *died && opened)?;
        let TcpCounters { busy_us, rwnd_limited_us, sndbuf_limited_us, .. } = *last;
        (busy_us > 0).then_some(KernelLimits { busy_us, rwnd_limited_us, sndbuf_limited_us })
    }

    proptest! {
        #[test]
        fn what_is_kept_says_what_all_scans_say(
            counted in prop::collection::vec((0u64..6, any::<bool>(), 0u64..100, 0u64..20, 0u64..3), 0..8),
            sent in prop::collection::vec((0u64..6, 1u32..50), 0..6),
            opened in any::<bool>(), ended in any::<bool>(),
        ) {
            let mut kept = Counted::default();
            let mut all: Vec<(u64, bool, TcpCounters)> = Vec::new();
            for (t, died, bytes_sent, bytes_retrans, busy_us) in counted {
                let tcp = TcpCounters { bytes_sent, bytes_retrans, busy_us, rwnd_limited_us: bytes_sent, ..TcpCounters::default() };
                kept.add(t, died, &tcp);
                all.push((t, died, tcp));
            }
            all.sort_by_key(|(t, died, _)| (*t, *died));
            let segments = sent.into_iter().map(|(sent_ns, bytes)| Segment { sent_ns, bytes, ..Segment::default() });
            let stream = Stream { segments: segments.collect() };
            prop_assert_eq!(kept.bytes(&stream, opened, ended), bytes(&all, &stream, opened, ended));
            prop_assert_eq!(kept.limits(opened), limits(&all, opened));
        }

        #[test]
        fn packed_counts_are_as_they_were(
            counted in prop::collection::vec(prop::collection::vec(any::<(bool, u64, bool, [u64; 5])>(), 0..4), 0..10),
        ) {
            let end = |counters: &Vec<(bool, u64, bool, [u64; 5])>, end: usize, counts: &mut Counts| {
                let mut counted = Counted::default();
                for (_, t, died, [bytes_sent, bytes_retrans, busy_us, rwnd_limited_us, sndbuf_limited_us]) in counters {
                    let (bytes_sent, bytes_retrans) = (*bytes_sent, *bytes_retrans);
                    let tcp = TcpCounters {
                        bytes_sent, bytes_retrans, busy_us: *busy_us, rwnd_limited_us: *rwnd_limited_us,
                        sndbuf_limited_us: *sndbuf_limited_us, ..TcpCounters::default()
                    };
                    counted.add(*t, *died, &tcp);
                    counts.add(end, *t, *died, &tcp);
                }
                counted
            };
            let mut counts = Counts::of(2 * counted.len());
            let mut part = |counters: &Vec<(bool, u64, bool, [u64; 5])>, number: usize, at_client: bool| -> Counted {
                let of_end = counters.iter().filter(|(of, ..)| *of == at_client).copied().collect();
                end(&of_end, 2 * number + usize::from(!at_client), &mut counts)
            };
            let numbered = counted.iter().enumerate();
            let all: Vec<[Counted; 2]> =
                numbered.map(|(number, counters)| [part(counters, number, true), part(counters, number, false)]).collect();
            // All of them, and each second one.
            for step in [1, 2] {
                let packed = PackedCounts::of(&counts, (0..all.len()).step_by(step));
                for (number, ends) in all.iter().step_by(step).enumerate() {
                    prop_assert_eq!(&packed.get(number), ends);
                }
                prop_assert_eq!(packed.get(all.len()), <[Counted; 2]>::default());
            }
        }
    }
}
