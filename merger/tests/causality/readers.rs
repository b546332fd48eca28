//! Readers of blocks: how long they work on what they get, which a slow network hides.

use crate::scenario::{MS, Scenario};
use merger::causality::check::verify;
use merger::joined::Segment;
use trace::ids::{HostId, ProcessId};
use trace::jvm::JvmRecord;
use trace::rows::{MessageKind, StepKind};

const COUNT: u64 = 100;
const BYTES: u32 = 65_536;
/// What the local map works on a part, and what the remote one was seen to work on one.
const LOCAL_WORK: u64 = 6 * MS;
const OWN_WORK: u64 = 2 * MS;

fn map(s: &mut Scenario, host: HostId, number: u32) -> ProcessId {
    let map = s.process(host, "YarnChild", (0, 90_000 * MS));
    s.joined.processes[map.index()].attempt = Some(format!("attempt_1_0001_m_{number:06}_0"));
    map
}

/// Reads a block whose parts come with a pause, and closes the stream after the last.
fn read(s: &mut Scenario, reader: ProcessId, node: ProcessId, pause: u64, window_bytes: u64) -> usize {
    let line = s.connect(reader, node, "data-transfer");
    let asked = s.message(line, true, MessageKind::BlockRequest, "read", 0, 100, 0);
    let segments: Vec<Segment> = (0..COUNT)
        .map(|number| {
            let sent_ns = MS + number * pause;
            let delivered_ns = if s.joined.connections[line].loopback { sent_ns } else { sent_ns + MS };
            Segment { bytes: BYTES, sent_ns, delivered_ns, window_bytes, ..Segment::default() }
        })
        .collect();
    let data = s.stream(line, false, MessageKind::BlockData, "read", 0, &segments);
    // It closes the stream a millisecond after the last bytes.
    s.span(reader, 1, "block-read", "read", (0, (COUNT - 1) * pause + 3 * MS), Some(asked), None);
    data
}

/// The work of a map that reads over the network, which waited for its bytes as long as said, beside one that reads from its own host,
/// or alone.
fn remote_work(read_wait_ns: u64, has_peer: bool) -> u64 {
    let mut s = Scenario::default();
    let (a, b) = (s.host("a"), s.host("b"));
    let (local, remote) = (map(&mut s, a, 0), map(&mut s, b, 1));
    let node = s.process(a, "DataNode", (0, 90_000 * MS));
    if has_peer {
        read(&mut s, local, node, LOCAL_WORK, 90_000);
    }
    // One spill while it reads, and one after it has closed its stream.
    for (t0, t1) in [(100 * MS, 200 * MS), (8_000 * MS, 9_000 * MS)] {
        s.jvm(remote, JvmRecord::Work { t0, t1, th: 9, attempt: String::new(), work: "spill".into() });
    }
    let data = read(&mut s, remote, node, 40 * MS, 3_000_000);
    s.steps(data, remote, StepKind::Consume, BYTES.into(), OWN_WORK);
    s.waits(data, read_wait_ns);
    let inferred = s.build();
    let report = verify(&inferred.causal.events, &inferred.causal.dependencies).unwrap();
    assert_eq!((report.dangling, report.backward, report.off), (0, 0, 0), "{report:?}");
    let marks: Vec<_> = inferred.causal.events.iter().filter(|event| event.name == "block.consumed").collect();
    assert!(marks.iter().all(|event| event.process != Some(node)), "the reader works, and not who sends");
    marks.iter().filter(|event| event.process == Some(remote)).map(|event| event.delay_ns).sum()
}

#[test]
fn a_reader_that_did_not_wait_works_as_long_as_it_did() {
    let work = remote_work(0, true);
    assert!(work.abs_diff(COUNT * OWN_WORK) <= COUNT * OWN_WORK / 20, "{work}");
}

/// Other threads of it, such as the one that sorts, worked while it waited.
#[test]
fn a_starved_reader_works_as_long_as_those_that_read_from_their_own_host() {
    let work = remote_work(30 * MS, true);
    let expected = COUNT * LOCAL_WORK;
    assert!(work.abs_diff(expected) < expected / 20, "{work} for {expected}");
}

/// Its own work comes in lumps: a part on which it waited for its own sorting does not make the whole longer.
#[test]
fn work_in_lumps_is_no_more_work() {
    let mut s = Scenario::default();
    let (a, b) = (s.host("a"), s.host("b"));
    let (local, remote) = (map(&mut s, a, 0), map(&mut s, b, 1));
    let node = s.process(a, "DataNode", (0, 90_000 * MS));
    read(&mut s, local, node, LOCAL_WORK, 90_000);
    let data = read(&mut s, remote, node, 40 * MS, 3_000_000);
    s.steps(data, remote, StepKind::Consume, BYTES.into(), 0);
    s.waits(data, 30 * MS);
    // Twice what the local map worked on a part, on every fourth part.
    for (number, (step, _)) in s.steps.iter_mut().enumerate() {
        step.work_ns = if number % 4 == 0 { 2 * LOCAL_WORK } else { 0 };
    }
    let inferred = s.build();
    let marks = inferred.causal.events.iter().filter(|event| event.name == "block.consumed");
    let work: u64 = marks.filter(|event| event.process == Some(remote)).map(|event| event.delay_ns).sum();
    let expected = COUNT * LOCAL_WORK;
    assert!(work.abs_diff(expected) < expected / 20, "{work} for {expected}");
}

#[test]
fn where_all_readers_starved_each_works_as_long_as_it_did_and_as_its_spills_took() {
    let work = remote_work(30 * MS, false);
    let expected = COUNT * OWN_WORK + 100 * MS;
    assert!(work.abs_diff(expected) < expected / 20, "{work} for {expected}");
}

/// What a map worked that reads from its own host, and what its DataNode paused, nanoseconds. `measured` is its work on a part.
fn local_work(measured: Option<u64>) -> (u64, u64) {
    let mut s = Scenario::default();
    let a = s.host("a");
    let reader = map(&mut s, a, 0);
    let node = s.process(a, "DataNode", (0, 90_000 * MS));
    let data = read(&mut s, reader, node, LOCAL_WORK, 90_000);
    if let Some(work) = measured {
        s.steps(data, reader, StepKind::Consume, BYTES.into(), work);
    }
    let inferred = s.build();
    let report = verify(&inferred.causal.events, &inferred.causal.dependencies).unwrap();
    assert_eq!((report.dangling, report.backward, report.off), (0, 0, 0), "{report:?}");
    let marks = inferred.causal.events.iter().filter(|event| event.name == "block.consumed");
    let pieces = inferred.pieces(data);
    (marks.map(|event| event.delay_ns).sum(), pieces[1..].iter().map(|piece| piece.delay_ns).sum())
}

#[test]
fn what_comes_from_its_own_host_comes_at_the_readers_pace() {
    for measured in [None, Some(LOCAL_WORK), Some(LOCAL_WORK * 3 / 4)] {
        let (work, paused) = local_work(measured);
        // The last part is worked on until the stream is closed, 2 ms later.
        assert!(work.abs_diff((COUNT - 1) * LOCAL_WORK + 2 * MS) < COUNT, "{work} {measured:?}");
        assert_eq!(paused, 0, "{measured:?}");
    }
}

#[test]
fn a_reader_that_worked_little_waited_for_the_disk() {
    let (work, paused) = local_work(Some(LOCAL_WORK / 4));
    assert_eq!(work, 0);
    assert!(paused.abs_diff((COUNT - 1) * LOCAL_WORK) < COUNT, "{paused}");
}
