//! Readers whose window is full: the stream tells when they had taken what.

use crate::scenario::{MS, Scenario};
use merger::causality::check::verify;
use merger::joined::Segment;
use trace::ids::{HostId, ProcessId};
use trace::rows::{EventRow, MessageKind, On};

const COUNT: u64 = 60;
const BYTES: u32 = 65_536;
/// Room for eight parts.
const WINDOW: u64 = 8 * BYTES as u64;
/// What the reader works on a part, and on the part before which it sorts.
const WORK: u64 = 5 * MS;
const SORT: u64 = 400 * MS;
const SORTS_AT: u64 = 30;

/// A map on one host that reads a block of a DataNode; parts leave when there is room.
fn read(same_host: bool) -> (Vec<EventRow>, Vec<(usize, usize, On)>, ProcessId) {
    let mut s = Scenario::default();
    let hosts: [HostId; 2] = [s.host("a"), s.host("b")];
    let map = s.process(hosts[0], "YarnChild", (0, 90_000 * MS));
    s.joined.processes[map.index()].attempt = Some("attempt_1_0001_m_000000_0".to_owned());
    let node = s.process(hosts[usize::from(!same_host)], "DataNode", (0, 90_000 * MS));
    let line = s.connect(map, node, "data-transfer");
    let asked = s.message(line, true, MessageKind::BlockRequest, "read", 0, 100, 0);
    let way = if same_host { 0 } else { MS / 10 };
    let mut taken: Vec<u64> = Vec::new();
    let mut segments: Vec<Segment> = Vec::new();
    for number in 0..COUNT {
        let room = number.checked_sub(8).map_or(0, |before| taken[before as usize] + way);
        let sent_ns = segments.last().map_or(MS, |last: &Segment| last.sent_ns + MS / 20).max(room);
        let delivered_ns = sent_ns + way;
        let in_flight_bytes = if room == sent_ns { WINDOW - u64::from(BYTES) } else { 0 };
        segments.push(Segment {
            bytes: BYTES,
            sent_ns,
            delivered_ns,
            in_flight_bytes,
            window_bytes: WINDOW,
            ..Segment::default()
        });
        let work = WORK + if number == SORTS_AT { SORT } else { 0 };
        taken.push(taken.last().copied().unwrap_or(0).max(delivered_ns) + work);
    }
    s.stream(line, false, MessageKind::BlockData, "read", 0, &segments);
    s.span(map, 1, "block-read", "read", (0, taken[COUNT as usize - 1]), Some(asked), None);
    let causal = s.build().causal;
    let report = verify(&causal.events, &causal.dependencies).unwrap();
    assert_eq!((report.dangling, report.backward, report.off), (0, 0, 0), "{report:?}");
    let waits = causal.dependencies.iter().map(|row| (row.event.index(), row.on_event.index(), row.on)).collect();
    (causal.events, waits, map)
}

#[test]
fn the_readers_work_is_what_made_room() {
    for same_host in [true, false] {
        let (events, waits, map) = read(same_host);
        let marks: Vec<&EventRow> = events.iter().filter(|event| event.name == "block.consumed").collect();
        assert_eq!(marks.len() as u64, COUNT);
        assert!(marks.iter().all(|mark| mark.process == Some(map)));
        let work: u64 = marks.iter().map(|mark| mark.delay_ns).sum();
        let expected = COUNT * WORK + SORT;
        assert!(work.abs_diff(expected) < expected / 20, "{work} for {expected}");
        // Parts wait for marks, and for nothing that they would have to think of themselves.
        let is_mark = |event: usize| events[event].name == "block.consumed";
        let held: Vec<usize> = waits.iter().filter(|(_, on, _)| is_mark(*on)).map(|(event, ..)| *event).collect();
        let parts = held.iter().filter(|event| events[**event].bytes > 0);
        let delays: Vec<u64> = parts.map(|event| events[*event].delay_ns).collect();
        assert!(delays.len() as u64 > COUNT / 2, "{delays:?}");
        assert!(delays.iter().all(|delay| *delay < MS), "{delays:?}");
    }
}
