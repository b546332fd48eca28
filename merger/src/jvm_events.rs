//! What all JVMs said of work, in the order of time, packed.

use rayon::prelude::*;
use trace::ids::ProcessId;
use trace::jvm::JvmRecord;

use crate::capture::packed_records::PackedRecords;
use crate::joined::JvmEvent;
use crate::records;

/// Records of JVMs on one clock, of which each has a number.
#[derive(Debug, Default)]
pub struct JvmEvents {
    files: Vec<File>,
    events: Vec<Place>,
}

#[derive(Debug)]
struct File {
    /// Number of the host.
    host: usize,
    process: ProcessId,
    records: PackedRecords,
}

/// Records of which what was seen is held before it is taken.
const LOOKED_AT_ONCE: usize = 1 << 14;

/// Where a record lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    file: u32,
    at: usize,
}

impl JvmEvents {
    /// Of the records of JVMs with the numbers of their hosts; times are on one clock.
    pub(crate) fn of(jvms: impl Iterator<Item = (usize, ProcessId, PackedRecords)>) -> Self {
        let files: Vec<File> = jvms.map(|(host, process, records)| File { host, process, records }).collect();
        let of_files = files.par_iter().enumerate().map(|(number, file)| {
            let of_work = file.records.placed().filter(|(_, record)| records::is_of_work(record));
            let place = |at| Place { file: number as u32, at };
            of_work.map(|(at, record)| (records::begin_of(&record), file.process, place(at))).collect()
        });
        let mut keyed: Vec<(u64, ProcessId, Place)> = of_files.collect::<Vec<Vec<_>>>().concat();
        // Those of one time and process stay as they stand in their files.
        keyed.par_sort_by_key(|(begin, process, _)| (*begin, *process));
        Self { files, events: keyed.into_iter().map(|(_, _, place)| place).collect() }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// All of them, with the numbers of their hosts.
    pub fn iter(&self) -> impl Iterator<Item = (usize, JvmEvent)> {
        (0..self.len()).filter_map(|number| self.get(number))
    }

    /// Looks at all of them in parallel, by their numbers and those of their hosts; what was seen is taken in their order.
    pub(crate) fn look<T: Send>(&self, at: impl Fn(usize, usize, JvmEvent) -> T + Sync, mut take: impl FnMut(T)) {
        for first in (0..self.len()).step_by(LOOKED_AT_ONCE) {
            let numbers = first..self.len().min(first + LOOKED_AT_ONCE);
            let seen = numbers.into_par_iter().map(|number| {
                let (host, event) = self.get(number)?;
                Some(at(number, host, event))
            });
            seen.collect::<Vec<Option<T>>>().into_iter().flatten().for_each(&mut take);
        }
    }

    /// A record by its number, with the number of its host.
    #[must_use]
    pub fn get(&self, number: usize) -> Option<(usize, JvmEvent)> {
        let place = self.events.get(number)?;
        let file = self.file(*place);
        Some((file.host, JvmEvent { process: file.process, record: file.records.at(place.at)? }))
    }

    /// A record by its number.
    #[must_use]
    pub fn record(&self, number: usize) -> Option<JvmRecord> {
        self.get(number).map(|(_, event)| event.record)
    }

    /// The process of a record.
    #[must_use]
    pub fn process(&self, number: usize) -> ProcessId {
        self.file(self.events[number]).process
    }

    fn file(&self, place: Place) -> &File {
        &self.files[place.file as usize]
    }
}
