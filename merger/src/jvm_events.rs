//! What all JVMs said of work, in the order of time, packed.

use std::borrow::Cow;
use std::io;

use rayon::prelude::*;
use trace::ids::ProcessId;
use trace::jvm::JvmRecord;

use crate::capture::packed_records::PackedRecords;
use crate::joined::JvmEvent;
use crate::records;
use crate::spilled::{Reader, Record, SharedList, SharedSorter, Writer};

/// Records of JVMs on one clock, of which each has a number.
#[derive(Debug, Default)]
pub struct JvmEvents {
    files: Vec<File>,
    places: SharedList<Place>,
}

#[derive(Debug)]
struct File {
    /// Number of the host.
    host: usize,
    process: ProcessId,
    records: PackedRecords,
}

/// Records of which what was seen is held before it is taken.
const LOOKED_AT_ONCE: usize = 1 << 12;

/// Of these, those that one thread reads one behind the other, and the bytes of a file that it reads at once.
const READ_BY_ONE: usize = 1 << 8;
const READ_AHEAD: usize = 8 << 10;

/// Records of a file that are placed before others' are.
const PLACED_AT_ONCE: usize = 1 << 12;

/// Memory that places take at most, bytes.
const MAX_PLACES_BYTES: usize = 1 << 20;

/// A part of a file of records, for those that lie near to each other.
pub(crate) struct Near<'a> {
    file: u32,
    /// Where it begins.
    part: (usize, Cow<'a, [u8]>),
    /// Bytes that are read at once.
    ahead: usize,
}

impl Near<'_> {
    /// Without a part; of those that come so many bytes are read at once.
    pub fn within(ahead: usize) -> Self {
        Self { file: u32::MAX, part: (0, Cow::Borrowed(&[][..])), ahead }
    }
}

/// Where a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    file: u32,
    at: u64,
}

impl Record for Place {
    const BLANK: Self = Self { file: u32::MAX, at: 0 };
    const BYTES: usize = 4 + 8;

    fn write(&self, out: &mut Writer<'_>) {
        self.file.write(out);
        self.at.write(out);
    }

    fn read(input: &mut Reader<'_>) -> Self {
        Self { file: input.u32(), at: input.u64() }
    }
}

/// When a record begins, whose it is, and where it lies: those of one time and process stay as they stand in their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Placed {
    begin_ns: u64,
    process: u32,
    place: Place,
}

impl Record for Placed {
    const BLANK: Self = Self { begin_ns: 0, process: 0, place: Place::BLANK };
    const BYTES: usize = 8 + 4 + Place::BYTES;

    fn write(&self, out: &mut Writer<'_>) {
        self.begin_ns.write(out);
        self.process.write(out);
        self.place.write(out);
    }

    fn read(input: &mut Reader<'_>) -> Self {
        Self { begin_ns: input.u64(), process: input.u32(), place: Place::read(input) }
    }
}

impl JvmEvents {
    /// Of the records of JVMs with the numbers of their hosts; times are on one clock.
    ///
    /// # Errors
    /// If a temporary file fails.
    pub(crate) fn of(jvms: impl Iterator<Item = (usize, ProcessId, PackedRecords)>) -> io::Result<Self> {
        let files: Vec<File> = jvms.map(|(host, process, records)| File { host, process, records }).collect();
        let sorter: SharedSorter<Placed> = SharedSorter::default();
        files.par_iter().enumerate().try_for_each(|(number, file)| {
            let of_work = file.records.placed().filter(|(_, record)| records::is_of_work(record));
            let mut placed = of_work.map(|(at, record)| Placed {
                begin_ns: records::begin_of(&record),
                process: file.process.0,
                place: Place { file: number as u32, at: at as u64 },
            });
            loop {
                // Read before the sorter is asked for: others wait for it.
                let some: Vec<Placed> = placed.by_ref().take(PLACED_AT_ONCE).collect();
                if some.is_empty() {
                    return io::Result::Ok(());
                }
                sorter.extend(some)?;
            }
        })?;
        let sorted = sorter.sorted();
        let mut places = SharedList::within(MAX_PLACES_BYTES);
        sorted.iter().for_each(|placed| places.push(placed.place));
        sorted.check()?;
        Ok(Self { files, places })
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them, with the numbers of their hosts.
    pub fn iter(&self) -> impl Iterator<Item = (usize, JvmEvent)> {
        self.places.iter().filter_map(|place| self.at(place))
    }

    /// Looks at all of them in parallel, by their numbers and those of their hosts; what was seen is taken in their order.
    pub(crate) fn look<T: Send>(&self, at: impl Fn(usize, usize, JvmEvent) -> T + Sync, mut take: impl FnMut(T)) {
        let mut places = self.places.iter().enumerate();
        loop {
            let mut some: Vec<(Place, usize)> =
                places.by_ref().take(LOOKED_AT_ONCE).map(|(number, place)| (place, number)).collect();
            let Some(first) = some.first().map(|(_, number)| *number) else { return };
            // Those of one file lie near to each other.
            some.sort_unstable();
            let parts = some.par_chunks(READ_BY_ONE).map(|part| {
                let mut near = Near::within(READ_AHEAD);
                let seen = part.iter().map(|&(place, number)| {
                    let (host, event) = self.near(place, &mut near)?;
                    Some((number, at(number, host, event)))
                });
                seen.collect::<Vec<Option<(usize, T)>>>()
            });
            let parts: Vec<Vec<Option<(usize, T)>>> = parts.collect();
            let mut in_order: Vec<Option<T>> = some.iter().map(|_| None).collect();
            for (number, seen) in parts.into_iter().flatten().flatten() {
                in_order[number - first] = Some(seen);
            }
            in_order.into_iter().flatten().for_each(&mut take);
        }
    }

    /// The record of a number, of which others that lie near to it have been or will be asked for.
    pub(crate) fn record_near<'a>(&'a self, number: usize, near: &mut Near<'a>) -> Option<JvmRecord> {
        self.near(self.places.get(number), near).map(|(_, event)| event.record)
    }

    /// A record by its number, with the number of its host.
    #[must_use]
    pub fn get(&self, number: usize) -> Option<(usize, JvmEvent)> {
        self.at(self.places.get(number))
    }

    /// A record by its number.
    #[must_use]
    pub fn record(&self, number: usize) -> Option<JvmRecord> {
        self.get(number).map(|(_, event)| event.record)
    }

    /// The process of a record; `None` = where it lies could not be read.
    #[must_use]
    pub fn process(&self, number: usize) -> Option<ProcessId> {
        self.file(self.places.get(number)).map(|file| file.process)
    }

    /// Whether all that was asked for could be read.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.files.iter().try_for_each(|file| file.records.check())?;
        self.places.check()
    }

    fn near<'a>(&'a self, place: Place, near: &mut Near<'a>) -> Option<(usize, JvmEvent)> {
        let file = self.file(place)?;
        if near.file != place.file {
            (near.file, near.part) = (place.file, (0, Cow::Borrowed(&[][..])));
        }
        let record = file.records.near(usize::try_from(place.at).ok()?, &mut near.part, near.ahead)?;
        Some((file.host, JvmEvent { process: file.process, record }))
    }

    fn at(&self, place: Place) -> Option<(usize, JvmEvent)> {
        let file = self.file(place)?;
        let record = file.records.at(usize::try_from(place.at).ok()?)?;
        Some((file.host, JvmEvent { process: file.process, record }))
    }

    fn file(&self, place: Place) -> Option<&File> {
        self.files.get(place.file as usize)
    }
}
