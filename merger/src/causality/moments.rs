//! What reached threads and processes, and when.

use std::io;
use std::ops::Range;

use trace::ids::ProcessId;
use trace::rows::{Evidence, On};

use super::draft::{Cause, number};
use crate::maps::HashMap;
use crate::spilled::{Reader, Record, RecordList, Sorter, Writer, variant};

/// A thread of a process.
pub type Thread = (ProcessId, u64);

/// Something reached a thread.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// When, as the process itself saw it.
    pub at: u64,
    /// What it was. Its news never comes by a timer.
    pub cause: Cause,
}

/// A [`Moment`] in half of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PackedMoment {
    at: u64,
    event: u32,
    on: On,
    evidence: Evidence,
}

impl From<Moment> for PackedMoment {
    fn from(Moment { at, cause }: Moment) -> Self {
        Self { at, event: number(cause.event), on: cause.on, evidence: cause.evidence }
    }
}

impl From<PackedMoment> for Moment {
    fn from(kept: PackedMoment) -> Self {
        let cause = Cause { event: kept.event as usize, on: kept.on, by: None, evidence: kept.evidence };
        Self { at: kept.at, cause }
    }
}

impl Record for PackedMoment {
    const BLANK: Self = Self { at: 0, event: 0, on: On::Sent, evidence: Evidence::Heuristic };
    const BYTES: usize = 8 + 4 + 2;

    fn write(&self, out: &mut Writer<'_>) {
        self.at.write(out);
        self.event.write(out);
        out.bytes([self.on as u8, self.evidence as u8]);
    }

    fn read(input: &mut Reader<'_>) -> Self {
        Self {
            at: input.u64(),
            event: input.u32(),
            on: variant(On::ALL, input.u8()).unwrap_or(On::Sent),
            evidence: variant(Evidence::ALL, input.u8()).unwrap_or(Evidence::Heuristic),
        }
    }
}

/// A moment and whom it reached, in order: those of one time as they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KeyedMoment {
    process: u32,
    thread: u64,
    at: u64,
    place: u64,
    kept: PackedMoment,
}

impl Record for KeyedMoment {
    const BLANK: Self = Self { process: 0, thread: 0, at: 0, place: 0, kept: PackedMoment::BLANK };
    const BYTES: usize = 4 + 2 * 8 + PackedMoment::BYTES;

    fn write(&self, out: &mut Writer<'_>) {
        self.process.write(out);
        self.thread.write(out);
        self.place.write(out);
        self.kept.write(out);
    }

    fn read(input: &mut Reader<'_>) -> Self {
        let (process, thread, place, kept) = (input.u32(), input.u64(), input.u64(), PackedMoment::read(input));
        Self { process, thread, at: kept.at, place, kept }
    }
}

/// Memory that lists of moments take at most, and sorting them, bytes.
const MAX_BYTES: usize = 1 << 20;

/// Moments as they are told, in any order.
#[derive(Debug)]
pub struct Unsorted {
    sorter: Sorter<KeyedMoment>,
    count: u64,
}

impl Default for Unsorted {
    fn default() -> Self {
        Self { sorter: Sorter::within(MAX_BYTES), count: 0 }
    }
}

impl Unsorted {
    /// Adds one that reached a thread.
    ///
    /// # Errors
    /// If a temporary file cannot be written.
    pub fn add(&mut self, (process, thread): Thread, moment: Moment) -> io::Result<()> {
        let (process, place) = (process.0, self.count);
        self.count += 1;
        self.sorter.push(KeyedMoment { process, thread, at: moment.at, place, kept: moment.into() })
    }
}

/// A process and a thread of it, and where the moments of that begin.
type Begin = ((u32, u64), u32);

/// What reached each thread, in the order of time.
#[derive(Debug, Default)]
pub struct Moments {
    all: RecordList<PackedMoment>,
    /// The threads in order, and where those of each begin: they end where those of the next one do.
    begins: RecordList<Begin>,
    /// All of threads of which more was told later.
    changed: HashMap<Thread, Vec<PackedMoment>>,
}

impl Moments {
    /// Puts moments into order.
    ///
    /// # Errors
    /// If a temporary file fails.
    pub fn of(unsorted: Unsorted) -> io::Result<Self> {
        let sorted = unsorted.sorter.sorted()?;
        let mut moments = Self {
            all: RecordList::within(MAX_BYTES),
            begins: RecordList::within(MAX_BYTES),
            changed: HashMap::default(),
        };
        let mut last = None;
        for told in sorted.iter() {
            let thread = (told.process, told.thread);
            if last.replace(thread) != Some(thread) {
                moments.begins.push((thread, number(moments.all.len())));
            }
            moments.all.push(told.kept);
        }
        sorted.check()?;
        moments.check()?;
        Ok(moments)
    }

    /// Adds one, behind those of its time.
    pub fn insert(&mut self, thread: Thread, moment: Moment) {
        let known = self.part(thread);
        let mut all: Vec<PackedMoment> = (0..known.len()).map(|place| known.get(place)).collect();
        all.insert(all.partition_point(|known| known.at <= moment.at), moment.into());
        self.changed.insert(thread, all);
    }

    /// The last that reached a thread until a time.
    pub fn last_until(&self, thread: Thread, until: u64) -> Option<Moment> {
        let part = self.part(thread);
        let behind = part.first_behind(until.checked_add(1));
        Some(part.get(behind.checked_sub(1)?).into())
    }

    /// The last that ever reached a thread.
    pub fn last(&self, thread: Thread) -> Option<Moment> {
        let part = self.part(thread);
        Some(part.get(part.len().checked_sub(1)?).into())
    }

    /// Those that reached a thread from a time on and until another.
    pub fn between(&self, thread: Thread, from: u64, until: u64) -> impl DoubleEndedIterator<Item = Moment> + '_ {
        let part = self.part(thread);
        let (first, behind) = (part.first_behind(Some(from)), part.first_behind(until.checked_add(1)));
        (first.min(behind)..behind).map(move |place| Moment::from(part.get(place)))
    }

    /// Whether all could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn check(&self) -> io::Result<()> {
        self.all.check().and(self.begins.check())
    }

    fn part(&self, thread: Thread) -> Part<'_> {
        if let Some(all) = self.changed.get(&thread) {
            return Part::Changed(all);
        }
        let key = (thread.0.0, thread.1);
        let place = self.begins.partition_point(|(known, _)| *known < key);
        let begin = |place: usize| (place < self.begins.len()).then(|| self.begins.get(place));
        let places = match begin(place) {
            Some((known, first)) if known == key => {
                first as usize..begin(place + 1).map_or(self.all.len(), |(_, behind)| behind as usize)
            }
            _ => 0..0,
        };
        Part::Listed(&self.all, places)
    }
}

/// The moments of one thread.
enum Part<'m> {
    Listed(&'m RecordList<PackedMoment>, Range<usize>),
    Changed(&'m [PackedMoment]),
}

impl Part<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Listed(_, places) => places.len(),
            Self::Changed(all) => all.len(),
        }
    }

    fn get(&self, place: usize) -> PackedMoment {
        match self {
            Self::Listed(list, places) => list.get(places.start + place),
            Self::Changed(all) => all[place],
        }
    }

    /// The place of the first at a time or later; `None` = at none.
    fn first_behind(&self, at: Option<u64>) -> usize {
        let (mut first, mut behind) = (0, self.len());
        let Some(at) = at else { return behind };
        while first < behind {
            let middle = first + (behind - first) / 2;
            if self.get(middle).at < at { first = middle + 1 } else { behind = middle }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    fn moment(at: u64, event: usize) -> Moment {
        Moment { at, cause: Cause::delivered(event, Evidence::Thread) }
    }

    proptest! {
        #[test]
        fn moments_are_found_as_in_sorted_lists(
            told in prop::collection::vec((0u32..3, 0u64..3, 0u64..20), 0..200),
            later in prop::collection::vec((0u32..3, 0u64..3, 0u64..20), 0..5),
            from in 0u64..22, until in prop_oneof![0u64..22, Just(u64::MAX)],
        ) {
            let mut unsorted = Unsorted::default();
            let mut plain: HashMap<Thread, Vec<(u64, usize)>> = HashMap::default();
            for (event, (process, thread, at)) in told.into_iter().enumerate() {
                let thread = (ProcessId(process), thread);
                unsorted.add(thread, moment(at, event)).unwrap();
                plain.entry(thread).or_default().push((at, event));
            }
            plain.values_mut().for_each(|all| all.sort_by_key(|(at, _)| *at));
            let mut moments = Moments::of(unsorted).unwrap();
            for (event, (process, thread, at)) in (1000..).zip(later) {
                let thread = (ProcessId(process), thread);
                moments.insert(thread, moment(at, event));
                let all = plain.entry(thread).or_default();
                all.insert(all.partition_point(|(known, _)| *known <= at), (at, event));
            }
            for thread in (0..3).flat_map(|process| (0..3).map(move |thread| (ProcessId(process), thread))) {
                let all = plain.remove(&thread).unwrap_or_default();
                let told = |moment: Moment| (moment.at, moment.cause.event);
                prop_assert_eq!(moments.last(thread).map(told), all.last().copied());
                let last = all.iter().rfind(|(at, _)| *at <= until).copied();
                prop_assert_eq!(moments.last_until(thread, until).map(told), last);
                let between: Vec<_> = all.iter().filter(|(at, _)| (from..=until).contains(at)).copied().collect();
                prop_assert_eq!(moments.between(thread, from, until).map(told).collect::<Vec<_>>(), between);
            }
            prop_assert!(moments.check().is_ok());
        }
    }
}
