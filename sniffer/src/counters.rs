//! What became of the packets of an interface; shared between its thread and whoever reports.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use trace::manifest::{CountedInterval, PacketCounts};

/// Intervals that a manifest lists at most; when there are more, each two become one.
const INTERVALS: usize = 240;
/// The first intervals are so long, nanoseconds.
const FIRST_INTERVAL_NS: u64 = 1_000_000_000;

/// Counts since the start of the run.
#[derive(Debug, Default)]
pub struct Counters {
    counts: Mutex<PacketCounts>,
    problems: Mutex<Vec<String>>,
    ended: AtomicBool,
}

impl Counters {
    /// Notes a problem, once.
    pub fn note(&self, problem: String) {
        if let Ok(mut problems) = self.problems.lock()
            && !problems.contains(&problem)
        {
            problems.push(problem);
        }
    }

    /// Says that the recording of this interface has ended.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Whether it has.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// The problems so far.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        self.problems.lock().map(|problems| problems.clone()).unwrap_or_default()
    }

    /// Shows new counts.
    pub fn publish(&self, counts: PacketCounts) {
        if let Ok(mut current) = self.counts.lock() {
            *current = counts;
        }
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> PacketCounts {
        self.counts.lock().map(|counts| *counts).unwrap_or_default()
    }
}

/// Counts by interval.
#[derive(Debug)]
pub struct Intervals {
    length_ns: u64,
    begun_ns: u64,
    at_begin: PacketCounts,
    done: Vec<CountedInterval>,
}

impl Intervals {
    /// The first one begins now.
    #[must_use]
    pub fn begin(now_ns: u64) -> Self {
        let at_begin = PacketCounts::default();
        Self { length_ns: FIRST_INTERVAL_NS, begun_ns: now_ns, at_begin, done: Vec::new() }
    }

    /// Takes the counts that are reached at `now_ns`; so many intervals at `most` are left, if that is fewer than usual.
    pub fn update(&mut self, now_ns: u64, counts: PacketCounts, most: usize) {
        // A clock that was put back ends the interval as well: it would last as long as the step.
        if now_ns >= self.begun_ns && now_ns - self.begun_ns < self.length_ns {
            return;
        }
        self.end(now_ns, counts);
        while self.done.len() > most.clamp(2, INTERVALS) {
            let pairs = self.done.chunks(2).map(|pair| match pair {
                [a, b] => {
                    let counts = a.counts.plus(&b.counts).with_filtered();
                    CountedInterval { from_ns: a.from_ns, to_ns: b.to_ns, counts }
                }
                other => other.first().copied().unwrap_or_default(),
            });
            self.done = pairs.collect();
            self.length_ns *= 2;
        }
    }

    /// All intervals, the one that is not over included.
    #[must_use]
    pub fn all(&self, now_ns: u64, counts: PacketCounts) -> Vec<CountedInterval> {
        let last = CountedInterval {
            from_ns: self.begun_ns,
            to_ns: now_ns,
            counts: counts.since(&self.at_begin).with_filtered(),
        };
        self.done.iter().copied().chain([last]).collect()
    }

    fn end(&mut self, now_ns: u64, counts: PacketCounts) {
        let over = CountedInterval {
            from_ns: self.begun_ns,
            to_ns: now_ns,
            counts: counts.since(&self.at_begin).with_filtered(),
        };
        self.done.push(over);
        (self.begun_ns, self.at_begin) = (now_ns, counts);
    }
}

/// Bytes of the kernel's text taken at once: it hands over no more than a page.
const PAGE_BYTES: usize = 4096;
/// The text is not longer (some 10,000 interfaces).
const MAX_TEXT_BYTES: usize = 2 << 20;

/// The packets that an interface counts itself, in both directions, in this network namespace. The file stays open: that
/// it was opened and closed for each look took more time than what stands in it.
#[derive(Debug)]
pub struct InterfaceCounter {
    name: String,
    loopback: bool,
    file: Option<File>,
    before: Option<u64>,
}

impl InterfaceCounter {
    /// Begins to count.
    #[must_use]
    pub fn begin(name: &str, loopback: bool) -> Self {
        let file = File::open("/proc/thread-self/net/dev").ok();
        let mut counter = Self { name: name.to_owned(), loopback, file, before: None };
        counter.before = counter.read();
        counter
    }

    /// Packets since the begin; 0 = the kernel does not tell (any more).
    #[must_use]
    pub fn count(&self) -> Option<u64> {
        Some(self.read()?.wrapping_sub(self.before?))
    }

    /// Reads as far as the line of this interface.
    fn read(&self) -> Option<u64> {
        let file = self.file.as_ref()?;
        let mut text = Vec::with_capacity(PAGE_BYTES);
        while text.len() < MAX_TEXT_BYTES {
            let length = text.len();
            text.resize(length + PAGE_BYTES, 0);
            let got = file.read_at(&mut text[length..], length as u64).ok()?;
            text.truncate(length + got);
            let lines = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
            let found = str::from_utf8(&text[..lines]).ok().and_then(|lines| total(lines, &self.name, self.loopback));
            if found.is_some() || got == 0 {
                return found;
            }
        }
        None
    }
}

/// Packets of an interface in the text of `/proc/net/dev`; on loopback each is received and sent, and counts once.
#[must_use]
pub fn total(text: &str, name: &str, loopback: bool) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    let mut numbers = line.split_whitespace().map(str::parse::<u64>);
    let received = numbers.nth(1)?.ok()?;
    let sent = numbers.nth(7)?.ok()?;
    Some(if loopback { received } else { received.wrapping_add(sent) })
}
