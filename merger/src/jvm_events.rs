//! What all JVMs said of work, in the order of time, packed.

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
        let mut keyed: Vec<(u64, ProcessId, Place)> = Vec::new();
        for (number, file) in (0..).zip(&files) {
            let of_work = file.records.placed().filter(|(_, record)| records::is_of_work(record));
            let place = |at| Place { file: number, at };
            keyed.extend(of_work.map(|(at, record)| (records::begin_of(&record), file.process, place(at))));
        }
        keyed.sort_by_key(|(begin, process, _)| (*begin, *process));
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
