//! Records of JVMs in a fifth of the memory, or less: one after the other, the first texts once.
//!
//! ```text
//! record = u8 variant, its fields in their order
//! number = LEB128 of: 2 * itself, or 2 * (zigzag of its distance from the record's first time) + 1, where that is small;
//!          [`WIDE`] and eight bytes where it has more than 62 bits
//! text   = LEB128 of one more than its place among those that are held, or 0, its length and itself;
//!          what may be missing: 0, or 1 and the text; several: how many, and these
//! ```

use std::borrow::Cow;
use std::io;

use trace::jvm::JvmRecord;

use crate::maps::HashMap;
use crate::spilled::ByteLog;
use crate::varint::{MAX_BYTES, get, put, unzigzag, zigzag};

/// Memory that the records of one JVM take at most, texts apart, bytes.
const MAX_HELD: usize = 32 << 10;
/// The same of its texts: who writes such a file may give each record one of its own.
const MAX_TEXTS: usize = 64 << 10;
/// Bytes that hold most records.
const USUAL_RECORD: usize = 256;

/// Records of JVMs.
#[derive(Clone, Debug)]
pub struct PackedRecords {
    bytes: ByteLog,
    count: usize,
    texts: Texts,
    /// Places of texts, while records come.
    places: HashMap<Box<str>, u32>,
}

/// Texts, one behind the other.
#[derive(Clone, Debug, Default)]
struct Texts {
    all: String,
    /// Where each ends.
    ends: Vec<u32>,
}

impl Texts {
    fn push(&mut self, text: &str) {
        self.all.push_str(text);
        self.ends.push(self.all.len() as u32);
    }

    /// What they take, bytes.
    fn taken(&self) -> usize {
        self.all.len() + self.ends.len() * size_of::<u32>()
    }

    fn get(&self, place: usize) -> Option<&str> {
        let begin = place.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.all.get(begin as usize..*self.ends.get(place)? as usize)
    }
}

/// Stands for a number that is told in full; no near one has so many bits.
const WIDE: u64 = (1 << 60) | 1;
/// How far a number may be from the record's first time for that to be told instead.
const NEAR: u64 = 1 << 40;
/// Numbers above are times.
const TIME: u64 = 1 << 50;

impl Default for PackedRecords {
    fn default() -> Self {
        let bytes = ByteLog::within(MAX_HELD);
        Self { bytes, count: 0, texts: Texts::default(), places: HashMap::default() }
    }
}

impl PackedRecords {
    /// Appends a record.
    pub fn push(&mut self, record: &JvmRecord) {
        write(record, &mut Writer { all: self, time: 0 });
        self.bytes.end_record();
        self.count += 1;
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = JvmRecord> {
        self.placed().map(|(_, record)| record)
    }

    /// All of them, with their places for [`PackedRecords::at`].
    pub fn placed(&self) -> impl Iterator<Item = (usize, JvmRecord)> {
        self.bytes.parts().flat_map(move |(begin, part)| {
            let mut at = 0;
            std::iter::from_fn(move || {
                let mut reader = Reader { rest: part.get(at..)?, texts: &self.texts, time: 0 };
                let record = read(&mut reader)?;
                let place = begin + at;
                at = part.len() - reader.rest.len();
                Some((place, record))
            })
        })
    }

    /// The record at a place.
    #[must_use]
    pub fn at(&self, place: usize) -> Option<JvmRecord> {
        let mut length = USUAL_RECORD;
        loop {
            let bytes = self.bytes.window(place, length)?;
            let record = read(&mut Reader { rest: &bytes, texts: &self.texts, time: 0 });
            if record.is_some() || bytes.len() < length {
                return record;
            }
            length = length.saturating_mul(16);
        }
    }

    /// As [`PackedRecords::at`], where the record may lie in a part of the bytes that was read (where that begins, and it): else a
    /// part of so many bytes is read.
    pub(crate) fn near<'a>(
        &'a self,
        place: usize,
        part: &mut (usize, Cow<'a, [u8]>),
        ahead: usize,
    ) -> Option<JvmRecord> {
        let in_part = |(begin, bytes): &(usize, Cow<'_, [u8]>)| {
            let rest = bytes.get(place.checked_sub(*begin)?..)?;
            read(&mut Reader { rest, texts: &self.texts, time: 0 })
        };
        if let Some(record) = in_part(part) {
            return Some(record);
        }
        *part = (place, self.bytes.window(place, ahead)?);
        in_part(part).or_else(|| self.at(place))
    }

    /// Whether all could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.bytes.check()
    }

    /// The same records, changed.
    #[must_use]
    pub fn changed(&self, change: impl Fn(&mut JvmRecord)) -> Self {
        let mut changed = Self::default();
        for mut record in self.iter() {
            change(&mut record);
            changed.push(&record);
        }
        changed.settle();
        changed
    }

    /// Gives back what only helps to append.
    pub fn settle(&mut self) {
        self.places = HashMap::default();
        self.bytes.settle();
        self.texts.all.shrink_to_fit();
        self.texts.ends.shrink_to_fit();
    }

    /// The place of a text, which gets one where it is new; `None` = there are too many already.
    fn place_of(&mut self, text: &str) -> Option<u32> {
        let known = self.texts.ends.len();
        if self.places.len() < known {
            let texts = (0..known).filter_map(|place| Some(self.texts.get(place)?.into()));
            self.places = texts.zip(0..).collect();
        }
        if let Some(place) = self.places.get(text) {
            return Some(*place);
        }
        if self.texts.taken() + text.len() + size_of::<u32>() > MAX_TEXTS {
            return None;
        }
        let place = u32::try_from(known).ok()?;
        self.texts.push(text);
        self.places.insert(text.into(), place);
        Some(place)
    }
}

struct Writer<'a> {
    all: &'a mut PackedRecords,
    time: u64,
}

impl Writer<'_> {
    fn raw(&mut self, number: u64) {
        let mut bytes = [0; MAX_BYTES];
        let length = put(&mut bytes, number);
        self.all.bytes.tail().extend_from_slice(&bytes[..length]);
    }

    fn number(&mut self, number: u64) {
        let distance = number.wrapping_sub(self.time) as i64;
        if self.time > 0 && distance.unsigned_abs() < NEAR {
            self.raw((zigzag(distance) << 1) | 1);
        } else if number < 1 << 62 {
            self.raw(number << 1);
        } else {
            self.raw(WIDE);
            self.all.bytes.tail().extend_from_slice(&number.to_le_bytes());
        }
        if self.time == 0 && number > TIME {
            self.time = number;
        }
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    texts: &'a Texts,
    time: u64,
}

impl Reader<'_> {
    fn raw(&mut self) -> Option<u64> {
        get(&mut self.rest)
    }

    fn number(&mut self) -> Option<u64> {
        let number = match self.raw()? {
            WIDE => {
                let (bytes, behind) = self.rest.split_first_chunk()?;
                self.rest = behind;
                u64::from_le_bytes(*bytes)
            }
            near if near & 1 == 1 => self.time.wrapping_add(unzigzag(near >> 1) as u64),
            double => double >> 1,
        };
        if self.time == 0 && number > TIME {
            self.time = number;
        }
        Some(number)
    }
}

/// A field of a record.
trait Field: Sized {
    fn write(&self, out: &mut Writer<'_>);
    fn read(input: &mut Reader<'_>) -> Option<Self>;
}

impl Field for u64 {
    fn write(&self, out: &mut Writer<'_>) {
        out.number(*self);
    }

    fn read(input: &mut Reader<'_>) -> Option<Self> {
        input.number()
    }
}

impl Field for u32 {
    fn write(&self, out: &mut Writer<'_>) {
        out.number((*self).into());
    }

    fn read(input: &mut Reader<'_>) -> Option<Self> {
        input.number()?.try_into().ok()
    }
}

impl Field for i64 {
    fn write(&self, out: &mut Writer<'_>) {
        out.number(zigzag(*self));
    }

    fn read(input: &mut Reader<'_>) -> Option<Self> {
        input.number().map(unzigzag)
    }
}

impl Field for String {
    fn write(&self, out: &mut Writer<'_>) {
        if let Some(place) = out.all.place_of(self) {
            return out.raw(u64::from(place) + 1);
        }
        out.raw(0);
        out.raw(self.len() as u64);
        out.all.bytes.tail().extend_from_slice(self.as_bytes());
    }

    fn read(input: &mut Reader<'_>) -> Option<Self> {
        if let Some(place) = input.raw()?.checked_sub(1) {
            return input.texts.get(usize::try_from(place).ok()?).map(str::to_owned);
        }
        let length = usize::try_from(input.raw()?).ok()?;
        let (text, behind) = input.rest.split_at_checked(length)?;
        input.rest = behind;
        Self::from_utf8(text.to_vec()).ok()
    }
}

impl<T: Field> Field for Option<T> {
    fn write(&self, out: &mut Writer<'_>) {
        out.raw(self.is_some().into());
        self.iter().for_each(|field| field.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Option<Self> {
        if input.raw()? == 0 { Some(None) } else { T::read(input).map(Some) }
    }
}

impl<T: Field> Field for Vec<T> {
    fn write(&self, out: &mut Writer<'_>) {
        out.raw(self.len() as u64);
        self.iter().for_each(|field| field.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Option<Self> {
        (0..input.raw()?).map(|_| T::read(input)).collect()
    }
}

macro_rules! variants {
    ($($number:literal $variant:ident { $($field:ident),* })*) => {
        fn write(record: &JvmRecord, out: &mut Writer<'_>) {
            match record {
                $(JvmRecord::$variant { $($field),* } => {
                    out.all.bytes.tail().push($number);
                    $($field.write(out);)*
                })*
            }
        }

        fn read(input: &mut Reader<'_>) -> Option<JvmRecord> {
            let (variant, behind) = input.rest.split_first()?;
            input.rest = behind;
            Some(match variant {
                $($number => JvmRecord::$variant { $($field: Field::read(input)?),* },)*
                _ => return None,
            })
        }
    };
}

variants! {
    0 Header { t, version, pid, ns_pid, start_ticks, netns, host, addresses, main, role, hadoop, java, container }
    1 Clock { t, mono, dropped, unwritten, cpu_ns, agent_ns }
    2 Attempt { t, attempt, container }
    3 Open { t, th, local, remote }
    4 Accept { t, th, local, remote }
    5 Listen { t, local, purpose }
    6 Use { t, local, remote, purpose, side, protocol }
    7 Wait { t0, t1, local, remote, read_ns, write_ns, reads, writes }
    8 Rpc {
        received, begin, end, responded, th, call, client, method, local, remote, context, queued, completed, assigned
    }
    9 Call { t, sent, received, th, call, client, method, local, remote }
    10 Block { t0, t1, th, op, block, offset, length, bytes, client, local, remote, mirror, read_wait, write_wait }
    11 BlockRead { t0, t1, th, block, offset, length, consumed, local, remote, read_wait }
    12 BlockWrite { t0, t1, th, block, bytes, local, remote, pipeline, write_wait }
    13 Step {
        t0, t1, th, op, block, offset, bytes, work_ns, read_wait, write_wait, disk_ns, sync_ns, checksum_ns, cpu_ns, ready_ns,
        local, remote
    }
    14 ShuffleServed { t0, t1, job, map, reduce, bytes, read_ns, local, remote }
    15 Fetch { t0, t1, th, map, reduce, bytes, raw, host, read_wait }
    16 Phase { t, th, attempt, phase }
    17 Work { t0, t1, th, attempt, work }
    18 Thread { t, th, child, name }
    19 Drift { t, class, method }
    20 End {
        t, dropped, unwritten, hook_ns, stall_ns, premain_ns, premain_cpu_ns, patch_ns, patched, prepared, writer_ns, cpu_ns,
        ran_ns, waited_ns
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![0..200u64, 1_795_000_000_000_000_000..1_795_000_900_000_000_000u64, any::<u64>(), Just(u64::MAX)]
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof!["", "[a-c]{1,2}", "10\\.0\\.0\\.[1-3]:[0-9]{1,5}"]
    }

    prop_compose! {
        fn fields()(numbers in prop::array::uniform12(number()), texts in prop::array::uniform5(text()),
            list in prop::collection::vec(text(), 0..3), call in any::<i64>(), container in prop::option::of(text()))
        -> ([u64; 12], [String; 5], Vec<String>, i64, Option<String>) {
            (numbers, texts, list, call, container)
        }
    }

    fn record() -> impl Strategy<Value = JvmRecord> {
        (0..5, fields()).prop_map(|(variant, (n, [a, b, c, d, e], list, call, container))| match variant {
            0 => JvmRecord::Rpc {
                received: n[0],
                begin: n[1],
                end: n[2],
                responded: n[3],
                th: n[4],
                call,
                client: a,
                method: b,
                local: c,
                remote: d,
                context: e,
                queued: n[5],
                completed: list.clone(),
                assigned: list,
            },
            1 => JvmRecord::Header {
                t: n[0],
                version: 1,
                pid: n[1] as u32,
                ns_pid: vec![n[2] as u32; list.len()],
                start_ticks: n[3],
                netns: n[4],
                host: a,
                addresses: list,
                main: b,
                role: c,
                hadoop: d,
                java: e,
                container,
            },
            2 => JvmRecord::Clock { t: n[0], mono: call, dropped: n[1], unwritten: n[2], cpu_ns: n[3], agent_ns: n[4] },
            3 => JvmRecord::Block {
                t0: n[0],
                t1: n[1],
                th: n[2],
                op: a,
                block: n[3],
                offset: n[4],
                length: n[5],
                bytes: n[6],
                client: b,
                local: c,
                remote: d,
                mirror: e,
                read_wait: n[7],
                write_wait: n[8],
            },
            _ => JvmRecord::Fetch {
                t0: n[0],
                t1: n[1],
                th: n[2],
                map: a,
                reduce: n[3] as u32,
                bytes: n[4],
                raw: n[5],
                host: b,
                read_wait: n[6],
            },
        })
    }

    proptest! {
        #[test]
        fn records_are_as_they_were(records in prop::collection::vec(record(), 0..20), settles in 0..20usize) {
            let mut packed = PackedRecords::default();
            for (number, record) in records.iter().enumerate() {
                packed.push(record);
                if number == settles {
                    packed.settle();
                }
            }
            prop_assert_eq!(packed.len(), records.len());
            prop_assert_eq!(packed.iter().collect::<Vec<_>>(), &records[..]);
            let mut part = (0, Cow::Borrowed(&[][..]));
            for (at, record) in packed.placed() {
                prop_assert_eq!(packed.near(at, &mut part, 40), Some(record.clone()));
                prop_assert_eq!(packed.at(at), Some(record));
            }
            let twice = packed.changed(|record| if let JvmRecord::Clock { t, .. } = record { *t /= 2 });
            for (before, after) in records.iter().zip(twice.iter()) {
                match (before, &after) {
                    (JvmRecord::Clock { t, .. }, JvmRecord::Clock { t: half, .. }) => prop_assert_eq!(t / 2, *half),
                    _ => prop_assert_eq!(before, &after),
                }
            }
        }
    }

    #[test]
    fn texts_beyond_those_that_are_held_are_read_as_they_were() {
        let record = |number: u64| JvmRecord::Phase {
            t: TIME + number,
            th: 1,
            attempt: "x".repeat(number as usize % 300) + &number.to_string(),
            phase: "map".into(),
        };
        let mut packed = PackedRecords::default();
        (0..3000).for_each(|number| packed.push(&record(number)));
        packed.settle();
        assert!(packed.texts.taken() <= MAX_TEXTS && packed.bytes.len() > 3000 * 100);
        assert!(packed.iter().eq((0..3000).map(record)));
        assert!(packed.placed().all(|(place, record)| packed.at(place) == Some(record)));
    }

    #[test]
    fn records_of_a_capture_take_a_fifth() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/terasort/m1/jvm-9391-565795.jsonl.zst");
        let mut records: Vec<JvmRecord> = Vec::new();
        trace::files::json_lines(trace::files::open(path.as_ref()).unwrap(), 1 << 20, |record| records.push(record))
            .unwrap();
        let mut packed = PackedRecords::default();
        records.iter().for_each(|record| packed.push(record));
        packed.settle();
        assert!(packed.iter().eq(records.iter().cloned()) && records.len() > 500);
        let taken = packed.bytes.len() + packed.texts.taken();
        assert!(5 * taken < records.len() * size_of::<JvmRecord>(), "{taken} bytes of {} records", records.len());
    }
}
