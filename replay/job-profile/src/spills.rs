//! How full sort buffers held maps up: what a map does while its records are sorted is no computing on its input.
//!
//! A map whose buffer is full stands still until the spill is done that began when 80% of it were full
//! (`mapreduce.map.sort.spill.percent`, whose default is taken here). In what it took of its block, megabyte by megabyte, that is a step far longer
//! than the others.

use std::collections::BTreeMap;

use trace::ids::{MessageId, ProcessId};
use trace::rows::{StepKind, StepRow, TaskRow};

/// A step in which a map stood still takes more than so many times as much work as its median step,
const STANDSTILL: u64 = 8;
/// and longer than a collection of garbage does, nanoseconds.
const PAUSE_NS: u64 = 500_000_000;
/// Of the buffer, when a spill begins.
const SPILL_PERCENT: f64 = 0.8;

/// What maps took of their blocks, by process: of the message that had most of it, in the order of its bytes.
pub(super) struct Consumption<'a> {
    by_process: BTreeMap<ProcessId, Vec<&'a StepRow>>,
    /// Input whose records fill the buffer, bytes: the median over the maps that stood still; `None` if fewer than half of those
    /// that read as much did.
    pub(super) buffer_full: Option<u64>,
}

impl<'a> Consumption<'a> {
    pub(super) fn new(steps: &'a [StepRow], maps: &[&TaskRow]) -> Self {
        let mut by_process: BTreeMap<ProcessId, Vec<&StepRow>> = BTreeMap::new();
        for step in steps.iter().filter(|step| step.kind == StepKind::Consume) {
            by_process.entry(step.process).or_default().push(step);
        }
        for steps in by_process.values_mut() {
            keep_largest(steps);
        }
        let mut consumption = Self { by_process, buffer_full: None };
        consumption.buffer_full = consumption.find_buffer_full(maps);
        consumption
    }

    fn find_buffer_full(&self, maps: &[&TaskRow]) -> Option<u64> {
        let steps = maps.iter().map(|map| self.of(map));
        let full = steps.clone().filter_map(|steps| {
            let stood = standstills(steps);
            // The nth time after 1.8, 2.6, ... buffers: the last one tells most exactly.
            let fillings = 1.0 + SPILL_PERCENT * stood.len().checked_sub(1)? as f64;
            Some((middle_of(stood.last()?) as f64 / fillings) as u64)
        });
        let mut first: Vec<u64> = full.collect();
        first.sort_unstable();
        let full = *first.get(first.len() / 2)?;
        let read_as_much = steps.filter(|steps| all_bytes(steps) > full).count();
        (first.len() * 2 >= read_as_much).then_some(full)
    }

    /// The steps of a map.
    fn of(&self, map: &TaskRow) -> &[&'a StepRow] {
        map.process.and_then(|process| self.by_process.get(&process)).map_or(&[], Vec::as_slice)
    }
}

/// Of a split that ends within a line the next block is read as well, and of some maps other files.
fn keep_largest(steps: &mut Vec<&StepRow>) {
    let mut by_message: BTreeMap<MessageId, u64> = BTreeMap::new();
    for step in steps.iter() {
        let bytes = by_message.entry(step.message).or_default();
        *bytes = bytes.saturating_add(step.bytes);
    }
    let largest = by_message.into_iter().max_by_key(|(_, bytes)| *bytes).map(|(message, _)| message);
    steps.retain(|step| Some(step.message) == largest);
    steps.sort_by_key(|step| step.first_byte);
}

fn all_bytes(steps: &[&StepRow]) -> u64 {
    steps.iter().map(|step| step.bytes).fold(0, u64::saturating_add)
}

/// The steps in which a map stood still.
fn standstills<'a>(steps: &[&'a StepRow]) -> Vec<&'a StepRow> {
    let median = median_work(steps);
    let is_long = |step: &&StepRow| step.work_ns > median.saturating_mul(STANDSTILL).max(PAUSE_NS);
    steps.iter().copied().filter(is_long).collect()
}

fn median_work(steps: &[&StepRow]) -> u64 {
    let mut works: Vec<u64> = steps.iter().map(|step| step.work_ns).collect();
    works.sort_unstable();
    works.get(works.len() / 2).copied().unwrap_or(0)
}

fn middle_of(step: &&StepRow) -> u64 {
    step.first_byte.saturating_add(step.bytes / 2)
}

/// When a map had taken so much of its input: within a step, evenly.
fn taken_ns(steps: &[&StepRow], byte: u64) -> Option<u64> {
    let step =
        steps.iter().find(|step| step.first_byte <= byte && byte < step.first_byte.saturating_add(step.bytes))?;
    let length = step.end_ns.saturating_sub(step.begin_ns);
    let part = u128::from(length) * u128::from(byte - step.first_byte) / u128::from(step.bytes.max(1));
    Some(step.begin_ns + u64::try_from(part).unwrap_or(length))
}

impl Consumption<'_> {
    /// What a map computed of its input where it did not stand still, for all of its input, nanoseconds; `None` where no buffer was
    /// seen to be full, or no agent told of the map. `alone` says how long what lies between two times takes with a processor of
    /// one's own.
    pub(super) fn computing_ns(&self, map: &TaskRow, alone: impl Fn(u64, u64) -> u64) -> Option<u64> {
        self.buffer_full?;
        let steps = self.of(map);
        let stood = standstills(steps);
        let (mut worked_ns, mut bytes) = (0u64, 0u64);
        for step in steps {
            if !is_among(&stood, step) {
                let alone_ns = alone(step.end_ns.saturating_sub(step.work_ns), step.end_ns);
                worked_ns = worked_ns.saturating_add(alone_ns);
                bytes = bytes.saturating_add(step.bytes);
            }
        }
        let all = u128::from(worked_ns) * u128::from(all_bytes(steps)) / u128::from(bytes.max(1));
        (bytes > 0).then(|| u64::try_from(all).unwrap_or(u64::MAX))
    }

    /// Nanoseconds of a map's spills up to its last standstill, and when the spill began that came next, if that was before the
    /// end of its input. What the map's other thread had meanwhile of contended processors is no part of them.
    pub(super) fn spilling_ns(&self, map: &TaskRow, alone: impl Fn(u64, u64) -> u64) -> (u64, Option<u64>) {
        let Some(full) = self.buffer_full else { return (0, None) };
        let steps = self.of(map);
        let begin = |number: usize| taken_ns(steps, (full as f64 * SPILL_PERCENT * number as f64) as u64);
        let stood = standstills(steps);
        let spills = (1..).zip(&stood).map(|(number, step)| {
            let began = begin(number).filter(|began| *began < step.end_ns).unwrap_or(step.begin_ns);
            alone(began, step.end_ns).saturating_sub(self.contended_ns(map, (began, step.end_ns), &alone))
        });
        let spent = spills.fold(0, u64::saturating_add);
        let next = begin(stood.len() + 1).filter(|next| stood.last().is_none_or(|last| *next >= last.end_ns));
        (spent, next)
    }

    /// What a map computed of its input between two times while tasks competed for processors, but for standstills: `alone` counts a
    /// task once, whatever threads it has, so what one of them had another one lacked.
    pub(super) fn contended_ns(
        &self,
        map: &TaskRow,
        (from_ns, to_ns): (u64, u64),
        alone: impl Fn(u64, u64) -> u64,
    ) -> u64 {
        let steps = self.of(map);
        let stood = standstills(steps);
        let computed = steps.iter().filter(|step| !is_among(&stood, step)).map(|step| {
            let begin_ns = step.end_ns.saturating_sub(step.work_ns).max(from_ns);
            let end_ns = step.end_ns.min(to_ns);
            let alone_ns = if begin_ns < end_ns { alone(begin_ns, end_ns) } else { 0 };
            if alone_ns < end_ns.saturating_sub(begin_ns) { alone_ns } else { 0 }
        });
        computed.fold(0, u64::saturating_add)
    }
}

fn is_among(stood: &[&StepRow], step: &StepRow) -> bool {
    stood.iter().any(|still| still.first_byte == step.first_byte && still.begin_ns == step.begin_ns)
}

#[cfg(test)]
mod tests {
    use trace::ids::{JobId, TaskId};
    use trace::rows::TaskKind;

    use super::*;

    const MS: u64 = 1_000_000;

    /// A map that works 100 ms on each megabyte, and longer on some.
    fn steps(process: u32, megabytes: u64, longer: &[(u64, u64)]) -> Vec<StepRow> {
        let work = |number: u64| longer.iter().find(|(at, _)| *at == number).map_or(100 * MS, |(_, ms)| ms * MS);
        let mut now = 0;
        let step = |number: u64| {
            now += work(number);
            StepRow {
                message: MessageId(process),
                process: ProcessId(process),
                thread: 1,
                kind: StepKind::Consume,
                first_byte: number * 1_000_000,
                bytes: 1_000_000,
                begin_ns: now - work(number),
                end_ns: now,
                work_ns: work(number),
                read_wait_ns: 0,
                write_wait_ns: 0,
                disk_ns: 0,
                sync_ns: 0,
                checksum_ns: 0,
                cpu_ns: None,
                ready_ns: None,
            }
        };
        (0..megabytes).map(step).collect()
    }

    fn map(process: u32) -> TaskRow {
        TaskRow {
            task: TaskId(process),
            job: JobId(0),
            attempt: String::new(),
            kind: TaskKind::Map,
            host: None,
            process: Some(ProcessId(process)),
            start_ns: 0,
            shuffle_end_ns: None,
            sort_end_ns: None,
            finish_ns: 0,
            succeeded: true,
        }
    }

    fn buffer_full(maps: &[Vec<StepRow>]) -> Option<u64> {
        let tasks: Vec<TaskRow> = (0..).zip(maps).map(|(process, _)| map(process)).collect();
        Consumption::new(&maps.concat(), &tasks.iter().collect::<Vec<_>>()).buffer_full
    }

    #[test]
    fn standstills_tell_when_the_buffer_is_full() {
        assert_eq!(buffer_full(&[steps(0, 20, &[(10, 4_000)])]), Some(10_500_000));
        // Full at 10.5 MB, and again each 8.4 MB.
        let often = steps(0, 40, &[(10, 4_000), (18, 4_000), (27, 4_000), (35, 4_000)]);
        let full = buffer_full(&[often]).unwrap_or(0);
        assert!(full.abs_diff(10_441_176) < 2, "{full}: 35.5 MB are 3.4 buffers");
    }

    #[test]
    fn one_pause_among_several_maps_is_no_full_buffer() {
        let (paused, steady) = (steps(0, 40, &[(10, 4_000)]), |process| steps(process, 40, &[]));
        assert_eq!(buffer_full(&[paused, steady(1), steady(2)]), None);
        // Collections of garbage, and maps that are slow throughout.
        assert_eq!(buffer_full(&[steps(0, 20, &[(3, 400), (9, 300)])]), None);
        assert_eq!(buffer_full(&[steps(0, 4, &[(0, 4_000), (1, 4_000), (2, 4_000)])]), None);
        assert_eq!(buffer_full(&[]), None);
    }

    #[test]
    fn what_a_map_reads_beside_its_block_says_nothing() {
        let mut map = steps(0, 20, &[(10, 4_000)]);
        let beside = steps(0, 2, &[(0, 9_000)]);
        map.extend(beside.into_iter().map(|step| StepRow { message: MessageId(7), ..step }));
        assert_eq!(buffer_full(&[map]), Some(10_500_000));
    }

    #[test]
    fn threads_of_a_map_share_what_it_has_of_contended_processors() {
        // Full at 10.5 MB; the spill began at 8.4 MB, after 840 ms, and ended with the standstill, after 5 s.
        let steps = steps(0, 20, &[(10, 4_000)]);
        let map = map(0);
        let consumption = Consumption::new(&steps, &[&map]);
        let (spill, _) = consumption.spilling_ns(&map, |from, to| to - from);
        assert_eq!(spill, 4_160 * MS);
        // Of twice as many tasks as processors each has half: 2.08 s, of which the other thread had 80 ms.
        let (spill, _) = consumption.spilling_ns(&map, |from, to| (to - from) / 2);
        assert_eq!(spill, 2_000 * MS);
    }

    #[test]
    fn damaged_steps_are_no_reason_to_stop() {
        let mut map = steps(0, 20, &[(10, 4_000)]);
        for step in &mut map {
            (step.bytes, step.first_byte, step.begin_ns) = (u64::MAX, u64::MAX, u64::MAX);
        }
        assert!(buffer_full(&[map]).is_some());
    }
}
