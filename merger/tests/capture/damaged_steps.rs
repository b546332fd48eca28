//! What a JVM says of the steps of a copy is a claim, and its file may be damaged: a copy is merged whatever it says, each record that
//! cannot be is counted, and the graph of causes yields the recording.

use std::fs::OpenOptions;
use std::io::Write as _;

use crate::world::wire::{data_packets, read_block, read_response, write_block, write_response};
use crate::world::{Talk, World, at};
use merger::build::merge;
use merger::causality;
use merger::loss::{Loss, LossKind};
use merger::progress::Silent;
use proptest::collection::vec;
use proptest::prelude::*;
use trace::jvm::JvmRecord;

const CLIENT: &str = "DFSClient_attempt_1700000000000_0001_m_000000_0_-1_1";
/// Blocks that are read and written, and the bytes of a step.
const BLOCKS: [u64; 2] = [7, 8];
const STEP: u64 = 1 << 18;
const STEPS: u64 = 4;
/// What the merger believes at most: times, and sizes and durations.
const LATEST_NS: u64 = 4_000_000_000_000_000_000;
const MAX_COUNT: u64 = 1 << 50;

/// A thread that reads a block and writes another one by turns, and what it says of that.
fn copy() -> (World, Vec<JvmRecord>) {
    let mut world = World::new(&["w1", "w2"]);
    world.keep = (256, 64);
    let mut reads = world.connect((0, 40_000), (1, 9866), [100, 200], at(0));
    world.say(&mut reads, true, at(1), &read_block(BLOCKS[0], CLIENT, 0, STEPS * STEP));
    world.say(&mut reads, false, at(2), &[read_response(), data_packets(0, (STEPS * STEP) as usize, 65_536)].concat());
    let mut writes = world.connect((0, 40_001), (1, 9866), [300, 400], at(3));
    world.say(&mut writes, true, at(4), &write_block(BLOCKS[1], CLIENT, 0, 1));
    world.say(&mut writes, false, at(5), &write_response());
    world.say(&mut writes, true, at(6), &data_packets(0, (STEPS * STEP) as usize, 64_512));
    let step = |number: u64| {
        let turn = [(&reads, "read", BLOCKS[0]), (&writes, "write", BLOCKS[1])][(number % 2) as usize];
        step(turn, number / 2 * STEP, at(7 + 5 * number))
    };
    let steps = (0..2 * STEPS).map(step).collect();
    (world, steps)
}

fn step((talk, op, block): (&Talk, &str, u64), offset: u64, t: u64) -> JvmRecord {
    JvmRecord::Step {
        t0: t,
        t1: t + 7_000_000,
        th: 8,
        op: op.into(),
        block,
        offset,
        bytes: STEP,
        work_ns: 4_000_000,
        read_wait: u64::from(op == "read") * 1_000_000,
        write_wait: u64::from(op == "write") * 2_000_000,
        disk_ns: 0,
        sync_ns: 0,
        checksum_ns: 0,
        cpu_ns: 700_000,
        ready_ns: 0,
        local: talk.client.to_string(),
        remote: talk.server.to_string(),
    }
}

/// Puts `value` in place of a number of a step.
fn damage(record: &mut JvmRecord, field: usize, value: u64) {
    let JvmRecord::Step { t0, t1, th, block, offset, bytes, work_ns, read_wait, write_wait, cpu_ns, ready_ns, .. } =
        record
    else {
        return;
    };
    let numbers = [t0, t1, th, block, offset, bytes, work_ns, read_wait, write_wait, cpu_ns, ready_ns];
    if let Some(number) = numbers.into_iter().nth(field) {
        *number = value;
    }
}

/// Whether a step can be, as far as its numbers go.
fn can_be(record: &JvmRecord) -> bool {
    let JvmRecord::Step { t0, t1, offset, bytes, work_ns, read_wait, write_wait, cpu_ns, ready_ns, .. } = record else {
        return true;
    };
    let counts = [offset, bytes, work_ns, read_wait, write_wait, cpu_ns, ready_ns];
    counts.into_iter().all(|count| *count <= MAX_COUNT) && *t0.max(t1) <= LATEST_NS
}

/// Numbers where arithmetic breaks, and such as might be true.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        Just(MAX_COUNT),
        Just(MAX_COUNT + 1),
        Just(LATEST_NS),
        Just(LATEST_NS + 1),
        0..8 * STEP,
        (0..60u64).prop_map(at),
        any::<u64>(),
    ]
}

fn lost(losses: &[Loss], is_kind: fn(&LossKind) -> bool) -> u64 {
    losses.iter().filter(|loss| is_kind(&loss.kind)).map(|loss| loss.count).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_a_copy_says_of_its_steps_is_merged_or_counted_as_lost(
        damages in vec((0..2 * STEPS, 0..11usize, number()), 0..12),
        cuts in vec(1..100usize, 0..3),
    ) {
        let (mut world, mut steps) = copy();
        for (step, field, value) in damages {
            damage(&mut steps[step as usize], field, value);
        }
        let cannot_be = steps.iter().filter(|step| !can_be(step)).count() as u64;
        let believed = steps.len() as u64 - cannot_be;
        let line = serde_json::to_string(&steps[0]).unwrap();
        world.jvm(0, 50, "YarnChild", steps);
        let folder = tempfile::tempdir().unwrap();
        world.write(folder.path());
        let mut file = OpenOptions::new().append(true).open(folder.path().join("w1/jvm-50-500.jsonl")).unwrap();
        for cut in &cuts {
            // A line that lost its end.
            writeln!(file, "{}", &line[..*cut]).unwrap();
        }
        drop(file);
        let merged = merge(&[folder.path().to_owned()], &Silent).unwrap();
        let losses = merged.losses();
        prop_assert_eq!(lost(&losses, |kind| *kind == LossKind::SenselessJvmRecords), cannot_be);
        prop_assert_eq!(lost(&losses, |kind| matches!(kind, LossKind::MalformedLines { .. })), cuts.len() as u64);
        prop_assert!(merged.joined.steps.len() as u64 <= believed);
        prop_assert!(merged.joined.steps.iter().all(|step| step.begin_ns <= step.end_ns && step.work_ns <= MAX_COUNT));
        let report = causality::build(&merged.joined).unwrap().findings.report;
        prop_assert_eq!((report.dangling, report.backward, report.off), (0, 0, 0));
    }
}

#[test]
fn an_undamaged_copy_works_less_than_it_says_and_loses_nothing() {
    let (mut world, steps) = copy();
    world.jvm(0, 50, "YarnChild", steps);
    let merged = world.merged();
    assert_eq!(merged.joined.steps.len() as u64, 2 * STEPS);
    // What it waits for in one stream is no work in the other.
    assert!(merged.joined.steps.iter().filter(|step| step.work_ns < 4_000_000).count() as u64 > STEPS);
    assert_eq!(lost(&merged.losses(), |kind| *kind == LossKind::SenselessJvmRecords), 0);
}
