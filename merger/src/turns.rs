//! Threads that read and write by turns, as a copy does. Their JVM counts the time between two reads as work, though the thread waited
//! for room in what it writes, and the time between two writes, though it waited for bytes.

use trace::ids::ProcessId;
use trace::rows::{StepKind, StepRow};

use crate::maps::HashMap;

/// Takes out of the work of such threads what they waited for in their other streams, in proportion to the time that steps have in common.
/// What is left of a write's work is not that of reading: the same time is not work twice.
pub fn leave_out_other_waits(steps: &mut [StepRow]) {
    for places in by_thread(steps).into_values() {
        let of = |kind: StepKind| places.iter().copied().filter(|place| steps[*place].kind == kind).collect();
        let (reads, writes): (Vec<usize>, Vec<usize>) = (of(StepKind::Consume), of(StepKind::Produce));
        if reads.is_empty() || writes.is_empty() {
            continue;
        }
        let room = Spent::new(writes.iter().map(|place| &steps[*place]), |step| step.write_wait_ns);
        reads.iter().for_each(|place| room.leave_out(&mut steps[*place]));
        let reading = |step: &StepRow| step.read_wait_ns.saturating_add(step.work_ns);
        let reading = Spent::new(reads.iter().map(|place| &steps[*place]), reading);
        writes.iter().for_each(|place| reading.leave_out(&mut steps[*place]));
    }
}

/// The places of steps by their thread, where that is told.
fn by_thread(steps: &[StepRow]) -> HashMap<(ProcessId, u64), Vec<usize>> {
    let mut places: HashMap<(ProcessId, u64), Vec<usize>> = HashMap::default();
    for (place, step) in steps.iter().enumerate().filter(|(_, step)| step.thread != 0) {
        places.entry((step.process, step.thread)).or_default().push(place);
    }
    places
}

/// Time that steps spent on something, evenly from begin to end.
struct Spent {
    /// From when on how much of each nanosecond is spent, and how much was spent before.
    rates: Vec<(u64, f64, f64)>,
}

impl Spent {
    fn new<'a>(steps: impl Iterator<Item = &'a StepRow>, spent: impl Fn(&StepRow) -> u64) -> Self {
        let mut changes: Vec<(u64, f64)> = Vec::new();
        for step in steps {
            let took = step.end_ns.saturating_sub(step.begin_ns);
            if took > 0 {
                let rate = spent(step).min(took) as f64 / took as f64;
                changes.extend([(step.begin_ns, rate), (step.end_ns, -rate)]);
            }
        }
        changes.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let (mut rates, mut last, mut rate, mut before) = (Vec::new(), 0, 0.0, 0.0);
        for (at, change) in changes {
            before += rate * at.saturating_sub(last) as f64;
            rate += change;
            last = at;
            rates.push((at, rate, before));
        }
        Self { rates }
    }

    fn until(&self, at: u64) -> f64 {
        let last = self.rates.partition_point(|(from, ..)| *from <= at).checked_sub(1);
        last.map_or(0.0, |last| {
            let (from, rate, before) = self.rates[last];
            before + rate * (at - from) as f64
        })
    }

    fn leave_out(&self, step: &mut StepRow) {
        let spent = self.until(step.end_ns) - self.until(step.begin_ns);
        step.work_ns = step.work_ns.saturating_sub(spent.round().max(0.0) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use trace::ids::MessageId;

    const MS: u64 = 1_000_000;

    fn step(kind: StepKind, thread: u64, (begin, end): (u64, u64), (work, read, write): (u64, u64, u64)) -> StepRow {
        StepRow {
            message: MessageId(0),
            process: ProcessId(1),
            thread,
            kind,
            first_byte: 0,
            bytes: 1,
            begin_ns: begin * MS,
            end_ns: end * MS,
            work_ns: work * MS,
            read_wait_ns: read * MS,
            write_wait_ns: write * MS,
            disk_ns: 0,
            sync_ns: 0,
            checksum_ns: 0,
            cpu_ns: None,
            ready_ns: None,
        }
    }

    fn works(mut steps: Vec<StepRow>) -> Vec<u64> {
        leave_out_other_waits(&mut steps);
        steps.iter().map(|step| step.work_ns / MS).collect()
    }

    #[test]
    fn a_copy_that_waits_for_room_does_not_work_meanwhile() {
        // 100 ms: 70 it waits for room, 20 for bytes, and 10 it copies.
        let read = step(StepKind::Consume, 1, (0, 100), (80, 20, 0));
        let write = step(StepKind::Produce, 1, (0, 100), (30, 0, 70));
        assert_eq!(works(vec![read, write]), [10, 0]);
    }

    #[test]
    fn what_steps_have_in_common_counts_in_proportion() {
        let read = step(StepKind::Consume, 1, (0, 100), (100, 0, 0));
        // Half of it before the read's end.
        let write = step(StepKind::Produce, 1, (50, 150), (20, 0, 80));
        assert_eq!(works(vec![read, write]), [60, 0]);
        // A write before the read, and one after it.
        let others =
            [step(StepKind::Produce, 1, (0, 50), (40, 0, 10)), step(StepKind::Produce, 1, (160, 170), (5, 0, 5))];
        let read = step(StepKind::Consume, 1, (50, 150), (70, 30, 0));
        assert_eq!(works([&[read][..], &others].concat()), [70, 40, 5]);
    }

    #[test]
    fn other_threads_and_threads_that_only_read_stay_as_they_are() {
        let steps = vec![
            step(StepKind::Consume, 1, (0, 100), (80, 20, 0)),
            step(StepKind::Produce, 2, (0, 100), (30, 0, 70)),
            step(StepKind::Receive, 1, (0, 100), (50, 10, 40)),
        ];
        assert_eq!(works(steps), [80, 30, 50]);
        // Threads that nobody told are not one thread.
        let untold = vec![step(StepKind::Consume, 0, (0, 9), (9, 0, 0)), step(StepKind::Produce, 0, (0, 9), (0, 0, 9))];
        assert_eq!(works(untold), [9, 0]);
    }

    /// Steps with times and counts below `limit`, which need not fit together.
    fn any_step(limit: u64) -> impl Strategy<Value = StepRow> {
        let kind = prop_oneof![
            Just(StepKind::Consume),
            Just(StepKind::Produce),
            Just(StepKind::Receive),
            Just(StepKind::Send),
            Just(StepKind::Fetch)
        ];
        (kind, 0..3u64, (0..limit, 0..limit), (0..limit, 0..limit, 0..limit)).prop_map(
            move |(kind, thread, (a, b), spent)| {
                let ns = step(kind, thread, (0, 0), (0, 0, 0));
                let (work_ns, read_wait_ns, write_wait_ns) = spent;
                StepRow { begin_ns: a.min(b), end_ns: a.max(b), work_ns, read_wait_ns, write_wait_ns, ..ns }
            },
        )
    }

    /// What `step` has in common with what others spent on something, pair by pair.
    fn in_common(step: &StepRow, others: &[StepRow], kind: StepKind, spent: impl Fn(&StepRow) -> u64) -> f64 {
        let of_thread =
            |other: &&StepRow| other.kind == kind && (other.process, other.thread) == (step.process, step.thread);
        let of_pair = |other: &StepRow| {
            let took = other.end_ns - other.begin_ns;
            let common = other.end_ns.min(step.end_ns).saturating_sub(other.begin_ns.max(step.begin_ns));
            if took == 0 { 0.0 } else { spent(other).min(took) as f64 * common as f64 / took as f64 }
        };
        others.iter().filter(of_thread).map(of_pair).sum()
    }

    proptest! {
        #[test]
        fn each_step_loses_what_it_has_in_common_with_the_others(before in vec(any_step(1 << 30), 0..30)) {
            let mut steps = before.clone();
            leave_out_other_waits(&mut steps);
            let is_read_or_write = |step: &&StepRow| matches!(step.kind, StepKind::Consume | StepKind::Produce);
            for (was, is) in before.iter().zip(&steps).filter(|(was, _)| was.thread != 0 && is_read_or_write(was)) {
                let waits = |step: &StepRow| step.write_wait_ns;
                // What is left of the reads' work, which writes do not do once more.
                let reading = |step: &StepRow| step.read_wait_ns.saturating_add(step.work_ns);
                let common = match was.kind {
                    StepKind::Consume => in_common(was, &before, StepKind::Produce, waits),
                    _ => in_common(was, &steps, StepKind::Consume, reading),
                };
                let (left, expected) = (is.work_ns as f64, (was.work_ns as f64 - common).max(0.0));
                prop_assert!((left - expected).abs() <= 2.0, "{left} of {expected}: {was:?}");
            }
        }

        /// Of damaged records.
        #[test]
        fn whatever_steps_say_their_work_gets_less_and_nothing_else_changes(before in vec(any_step(u64::MAX), 0..30)) {
            let mut steps = before.clone();
            leave_out_other_waits(&mut steps);
            for (was, is) in before.iter().zip(&steps) {
                prop_assert!(is.work_ns <= was.work_ns);
                prop_assert_eq!(&StepRow { work_ns: was.work_ns, ..is.clone() }, was);
            }
        }
    }
}
