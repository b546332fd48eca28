//! Writes to HDFS: later hops forward what came, acknowledgements come back, and a slow hop holds up the ones before.

use crate::scenario::{Inferred, MS, Scenario};
use merger::causality::check::verify;
use merger::joined::Segment;
use merger::network::FullTimes;
use trace::ids::ProcessId;
use trace::rows::{EventRow, Evidence, MessageKind, On, StepKind};

const PACKET: u32 = 65_536;
const PACKETS: u64 = 100;
/// What a packet takes on the link between the DataNodes.
const ON_LINK: u64 = 20 * MS;
/// The writer makes a packet in this time; its own host takes `AHEAD` of them before the link is in the way.
const MADE: u64 = 2 * MS;
const AHEAD: u64 = 40;

struct Write {
    inferred: Inferred,
    request: [usize; 2],
    response: [usize; 2],
    data: [usize; 2],
    acks: [usize; 2],
}

/// A reduce on w1 writes over w1's DataNode to w2's: the second hop is the bottleneck.
fn write() -> Write {
    stated(None, None)
}

/// The same, where JVMs tell how long a packet was made by the writer, and handled by the first DataNode.
fn stated(made: Option<u64>, received: Option<u64>) -> Write {
    over(ON_LINK, FullTimes::default(), made, received)
}

/// The same, where a packet is seen on its way for the last `seen` of what the link takes, and the link is full at some times.
fn over(seen: u64, full_uplink: FullTimes, made: Option<u64>, received: Option<u64>) -> Write {
    written(seen, full_uplink, made, received, |_, _, _| ())
}

/// The same, with more that is told of the writer, its DataNode and when packets leave.
fn written(
    seen: u64,
    full_uplink: FullTimes,
    made: Option<u64>,
    received: Option<u64>,
    more: impl FnOnce(&mut Scenario, [ProcessId; 2], (usize, &dyn Fn(u64) -> u64)),
) -> Write {
    let mut s = Scenario::default();
    s.joined.full_uplinks = vec![full_uplink, FullTimes::default()];
    let (w1, w2) = (s.host("w1"), s.host("w2"));
    let whole = (0, 9_000 * MS);
    let task = s.process(w1, "YarnChild", whole);
    s.joined.processes[task.index()].attempt = Some("attempt_1_0001_r_000000_0".into());
    let nodes = [s.process(w1, "DataNode", whole), s.process(w2, "DataNode", whole)];
    let hops = [s.connect(task, nodes[0], "data-transfer"), s.connect(nodes[0], nodes[1], "data-transfer")];
    let mut add = |hop: usize, from_client: bool, kind: MessageKind, segments: &[Segment]| {
        let message = s.stream(hops[hop], from_client, kind, "write", 0, segments);
        s.edit(message).block = Some(7);
        s.edit(message).hop = Some(hop as u32 + 1);
        message
    };
    let at = |sent_ns: u64, way: u64, bytes: u32| Segment {
        bytes,
        sent_ns,
        delivered_ns: sent_ns + way,
        ..Segment::default()
    };
    let request = [
        add(0, true, MessageKind::BlockRequest, &[at(MS, 0, 300)]),
        add(1, true, MessageKind::BlockRequest, &[at(2 * MS, MS, 200)]),
    ];
    let second = add(1, false, MessageKind::BlockResponse, &[at(4 * MS, MS, 5)]);
    let response = [add(0, false, MessageKind::BlockResponse, &[at(6 * MS, 0, 5)]), second];
    // The link takes one packet after the other; the writer is ahead of it by `AHEAD` packets at most.
    let arrives = |packet: u64| 10 * MS + (packet + 1) * ON_LINK;
    let leaves = |packet: u64| {
        let made = 8 * MS + packet * MADE;
        packet.checked_sub(AHEAD).map_or(made, |held| made.max(arrives(held) + MS / 10))
    };
    let first: Vec<Segment> = (0..PACKETS).map(|packet| at(leaves(packet), 0, PACKET)).collect();
    let second: Vec<Segment> = (0..PACKETS)
        .map(|packet| {
            let sent_ns = leaves(packet).max(arrives(packet) - seen) + 1_000;
            let delivered_ns = arrives(packet);
            Segment {
                bytes: PACKET,
                sent_ns,
                delivered_ns,
                in_flight_bytes: 65_536,
                window_bytes: 3_000_000,
                ..Segment::default()
            }
        })
        .collect();
    let data = [add(0, true, MessageKind::BlockData, &first), add(1, true, MessageKind::BlockData, &second)];
    let acks: Vec<Segment> = (0..PACKETS).map(|packet| at(arrives(packet) + MS, MS, 10)).collect();
    let back: Vec<Segment> = (0..PACKETS).map(|packet| at(arrives(packet) + 3 * MS, 0, 15)).collect();
    let second = add(1, false, MessageKind::BlockAck, &acks);
    let acks = [add(0, false, MessageKind::BlockAck, &back), second];
    let step = 16 * u64::from(PACKET);
    if let Some(made) = made {
        s.steps(data[0], task, StepKind::Produce, step, 16 * made);
    }
    if let Some(received) = received {
        s.steps(data[0], nodes[0], StepKind::Receive, step, 16 * received);
    }
    more(&mut s, [task, nodes[0]], (data[0], &leaves));
    Write { inferred: s.build(), request, response, data, acks }
}

/// The writer copies: it reads what it writes from its own host, by turns with writing. Its copying takes an eighth of `MADE` a packet; what is read is
/// numbered.
fn copied() -> (Write, usize) {
    let mut read = 0;
    let write = written(ON_LINK, FullTimes::default(), Some(0), None, |s, [task, node], (data, leaves)| {
        // A packet is read by turns with writing it: half of `MADE` before it leaves.
        let taken = |packet: u64| leaves(packet) - MADE / 2;
        let line = s.connect(task, node, "data-transfer");
        let parts: Vec<Segment> = (0..PACKETS)
            .map(|packet| {
                let sent_ns = taken(packet.saturating_sub(10)) + 1_000 * packet;
                Segment { bytes: PACKET, sent_ns, delivered_ns: sent_ns, ..Segment::default() }
            })
            .collect();
        read = s.stream(line, false, MessageKind::BlockData, "read", 0, &parts);
        s.steps(read, task, StepKind::Consume, 16 * u64::from(PACKET), 16 * MADE / 8);
        for (step, of) in s.steps.iter_mut().filter(|(_, of)| *of == read || *of == data) {
            let first = step.first_byte / u64::from(PACKET);
            let time = |packet: u64| if *of == read { taken(packet) } else { leaves(packet) };
            let last = (first + 15).min(PACKETS - 1);
            (step.begin_ns, step.end_ns) = (first.checked_sub(1).map_or(time(0) - MADE / 4, time), time(last));
        }
    });
    (write, read)
}

#[test]
fn a_copy_writes_what_it_has_read_and_reads_on_when_it_has_written() {
    let (write, read) = copied();
    let Write { inferred, .. } = &write;
    let report = verify(&inferred.causal.events, &inferred.causal.dependencies).unwrap();
    assert_eq!((report.dangling, report.backward, report.off), (0, 0, 0), "{report:?}");
    let of = |name: &str| -> Vec<_> { inferred.causal.events.iter().filter(|event| event.name == name).collect() };
    let (consumed, produced) = (of("block.consumed"), of("block.produced"));
    assert_eq!((consumed.len() as u64, produced.len() as u64), (PACKETS, PACKETS - 1));
    let waits = |event: &EventRow, on: &[&EventRow]| {
        let ids: Vec<_> = on.iter().map(|event| event.event).collect();
        inferred.causes(event.event).iter().any(|row| ids.contains(&row.on_event))
    };
    assert!(produced.iter().all(|made| waits(made, &consumed)), "what is written had been read");
    let held_up = consumed.iter().filter(|taken| waits(taken, &produced)).count() as u64;
    assert!(held_up >= PACKETS * 4 / 5, "what is read next waits until that is written: {held_up}");
    // The network held the writer up, and so the reader, and so who sends to it: none of them works or thinks meanwhile.
    let works: u64 = consumed.iter().chain(&produced).map(|event| event.delay_ns).sum();
    assert!(works <= PACKETS.next_multiple_of(16) * MADE / 8, "{works}");
    let thinks: u64 = inferred.pieces(read)[1..].iter().map(|piece| piece.delay_ns).sum();
    assert!(thinks <= PACKETS * ON_LINK / 20, "{thinks}");
}

#[test]
fn the_pipeline_is_set_up_hop_by_hop_and_answers_from_its_end() {
    let write = write();
    let forwarded = write.inferred.edge(write.request[1], write.request[0]).expect("forwarded");
    assert_eq!(forwarded.evidence, Evidence::Pipeline);
    assert!(write.inferred.edge(write.response[1], write.request[1]).is_some());
    let back = write.inferred.edge(write.response[0], write.response[1]).expect("answered after the next");
    assert_eq!(back.evidence, Evidence::Pipeline);
    assert!(write.inferred.edge(write.data[0], write.response[0]).is_some());
}

#[test]
fn each_packet_is_forwarded_when_it_has_come() {
    let write = write();
    let upstream = write.inferred.pieces(write.data[0]);
    for (place, piece) in write.inferred.pieces(write.data[1]).iter().enumerate() {
        let causes = write.inferred.causes(piece.event);
        let from = causes.iter().find(|row| row.evidence == Evidence::Pipeline).expect("a cause on the first hop");
        assert_eq!((from.on_event, from.on), (upstream[place].event, On::Delivered));
        assert!(place == 0 || piece.delay_ns <= MADE, "the link's time is no thinking: {}", piece.delay_ns);
    }
}

#[test]
fn a_writer_that_the_next_hop_held_up_waits_for_that_and_for_its_own_work() {
    let write = write();
    let pieces = write.inferred.pieces(write.data[0]);
    let held_up: Vec<_> = pieces
        .iter()
        .filter(|piece| write.inferred.causes(piece.event).iter().any(|row| row.evidence == Evidence::Pipeline))
        .collect();
    assert!(held_up.len() > 50, "{} of {} pieces", held_up.len(), pieces.len());
    assert!(held_up.iter().all(|piece| piece.delay_ns == 0));
    let work: u64 =
        write.inferred.causal.events.iter().filter(|e| e.name == "block.produced").map(|e| e.delay_ns).sum();
    let expected = held_up.len() as u64 * MADE;
    assert!(
        work > expected / 2 && work < expected * 2,
        "{work} of about {expected} ns of work remain on a fast network"
    );
}

/// A link's queue may lie before the capture: what waits in it is not seen on its way.
#[test]
fn a_full_link_holds_up_a_writer_though_little_is_seen_on_its_way() {
    let held_up = |full_uplink: FullTimes| {
        let write = over(MS, full_uplink, None, None);
        let pieces = write.inferred.pieces(write.data[0]);
        let waits = pieces
            .iter()
            .filter(|piece| write.inferred.causes(piece.event).iter().any(|row| row.evidence == Evidence::Pipeline));
        let (count, thinking) = (waits.count(), pieces.iter().map(|piece| piece.delay_ns).sum::<u64>());
        let report = verify(&write.inferred.causal.events, &write.inferred.causal.dependencies).unwrap();
        assert_eq!((report.dangling, report.backward, report.off), (0, 0, 0), "{report:?}");
        (count, thinking)
    };
    let (all, ahead) = (held_up(FullTimes::between(0, 9_000 * MS)), held_up(FullTimes::default()));
    assert!(all.0 > 50, "{all:?}");
    assert_eq!(ahead.0, 0, "nothing tells of the link");
    // The link takes 20 ms a packet, of which the writer is ahead by 40.
    let on_link = (PACKETS - AHEAD) * (ON_LINK - MADE);
    assert!(ahead.1 > on_link * 9 / 10 && all.1 < on_link / 10, "{all:?} {ahead:?} {on_link}");
}

/// Marks of that name: how many, and their work in all.
fn marks(write: &Write, name: &str) -> (u64, u64) {
    let marks = write.inferred.causal.events.iter().filter(|event| event.name == name);
    marks.fold((0, 0), |(count, work), event| (count + 1, work + event.delay_ns))
}

#[test]
fn what_a_writers_jvm_measured_takes_the_place_of_what_was_guessed() {
    // Less than the guess, which is MADE a packet; the last step is of four packets, and has as much work as the others.
    let write = stated(Some(MADE / 8), None);
    let (count, work) = marks(&write, "block.produced");
    assert_eq!(count, PACKETS - 1, "all but the first, which may have been made before");
    let expected = (PACKETS - 1 - 4) * MADE / 8 + 16 * MADE / 8;
    assert!(work.abs_diff(expected) < PACKETS, "{work} for {expected}");
    let report = verify(&write.inferred.causal.events, &write.inferred.causal.dependencies).unwrap();
    assert_eq!((report.dangling, report.backward, report.off), (0, 0, 0), "{report:?}");
    // What the network held up leaves when it is made and there is room.
    let pieces = write.inferred.pieces(write.data[0]);
    let made =
        |event| write.inferred.causal.events.iter().any(|row| row.event == event && row.name == "block.produced");
    let held_up = pieces.iter().filter(|piece| {
        let causes = write.inferred.causes(piece.event);
        piece.delay_ns == 0
            && causes.iter().any(|row| row.evidence == Evidence::Pipeline)
            && causes.iter().any(|row| made(row.on_event))
    });
    assert!(held_up.count() > 50);
}

#[test]
fn production_waits_for_room_in_the_queue_of_packets() {
    let write = stated(Some(MADE / 8), None);
    let acks: Vec<_> = write.inferred.pieces(write.acks[0]).iter().map(|piece| piece.event).collect();
    let waits = write.inferred.causal.events.iter().filter(|event| {
        event.name == "block.produced"
            && write.inferred.causes(event.event).iter().any(|row| acks.contains(&row.on_event))
    });
    // 81 packets of 64,512 bytes are 79 of these, which are of 65,536.
    assert_eq!(waits.count() as u64, PACKETS - 1 - 79);
}

#[test]
fn a_packet_is_forwarded_when_those_before_it_have_been_handled() {
    let write = stated(None, Some(MS / 4));
    let (count, work) = marks(&write, "block.received");
    assert_eq!(count, PACKETS);
    let expected = (PACKETS - 4) * MS / 4 + 16 * MS / 4;
    assert!(work.abs_diff(expected) < PACKETS, "{work} for {expected}");
    let received: Vec<_> = write
        .inferred
        .causal
        .events
        .iter()
        .filter(|event| event.name == "block.received")
        .map(|row| row.event)
        .collect();
    let second = write.inferred.pieces(write.data[1]);
    for (place, piece) in second.iter().enumerate().skip(1) {
        let causes = write.inferred.causes(piece.event);
        assert!(causes.iter().any(|row| received.contains(&row.on_event)), "piece {place}");
    }
    let last = write.inferred.pieces(write.acks[0]).last().unwrap().event;
    assert!(
        write.inferred.causes(last).iter().any(|row| received.contains(&row.on_event)),
        "the end waits for the disk"
    );
    let report = verify(&write.inferred.causal.events, &write.inferred.causal.dependencies).unwrap();
    assert_eq!((report.dangling, report.backward, report.off), (0, 0, 0), "{report:?}");
}

#[test]
fn claims_of_more_work_than_there_was_time_move_nothing_on_the_recorded_network() {
    let write = stated(Some(1 << 45), Some(1 << 45));
    let report = verify(&write.inferred.causal.events, &write.inferred.causal.dependencies).unwrap();
    assert_eq!((report.dangling, report.backward, report.off), (0, 0, 0), "{report:?}");
}

#[test]
fn the_last_acknowledgement_waits_for_all_data_and_takes_the_nodes_time() {
    let write = write();
    let (last_data, acks) = (write.inferred.pieces(write.data[1]), write.inferred.pieces(write.acks[1]));
    let last = acks.last().unwrap();
    let causes = write.inferred.causes(last.event);
    assert!(causes.iter().any(|row| row.on_event == last_data.last().unwrap().event && row.on == On::Delivered));
    assert_eq!(last.delay_ns, MS);
    let first_hop = write.inferred.pieces(write.acks[0]);
    let causes = write.inferred.causes(first_hop.last().unwrap().event);
    assert!(causes.iter().any(|row| row.on_event == last.event && row.evidence == Evidence::Pipeline));
}

#[test]
fn nothing_comes_later_than_recorded_on_the_recorded_network() {
    let write = write();
    let report = verify(&write.inferred.causal.events, &write.inferred.causal.dependencies).unwrap();
    assert_eq!((report.dangling, report.backward, report.off), (0, 0, 0), "{report:?}");
}

#[test]
fn a_master_that_logs_what_it_hears_does_not_think_in_between() {
    let mut s = Scenario::default();
    let (w1, w2) = (s.host("w1"), s.host("w2"));
    let whole = (0, 30_000 * MS);
    let master = s.process(w1, "MRAppMaster", whole);
    let (node, task) = (s.process(w2, "DataNode", whole), s.process(w2, "YarnChild", whole));
    let umbilical = s.connect(task, master, "rpc");
    // It hears something 4, 9 and 16 s after its start, and flushes a piece 3 ms after each.
    let heard = [4_000, 9_000, 16_000];
    let stated = heard.map(|at| s.rpc(umbilical, "done", at as i64, at * MS, MS, Some(1)).0);
    let line = s.connect(master, node, "data-transfer");
    let at = |sent_ns: u64, bytes: u32| Segment { bytes, sent_ns, delivered_ns: sent_ns + MS, ..Segment::default() };
    s.stream(line, true, MessageKind::BlockRequest, "write", 0, &[at(3_000 * MS, 300)]);
    let pieces: Vec<Segment> = [3_100].into_iter().chain(heard.map(|ms| ms + 3)).map(|ms| at(ms * MS, 900)).collect();
    let acks: Vec<Segment> = pieces.iter().map(|piece| at(piece.delivered_ns + MS, 20)).collect();
    let data = s.stream(line, true, MessageKind::BlockData, "write", 0, &pieces);
    let acks = s.stream(line, false, MessageKind::BlockAck, "write", 0, &acks);
    for message in [data, acks] {
        s.edit(message).block = Some(7);
        s.edit(message).hop = Some(1);
    }
    let inferred = s.build();
    let flushed = inferred.pieces(data);
    assert_eq!(flushed.len(), 4, "{flushed:?}");
    for (piece, stated) in flushed[1..].iter().zip(stated) {
        let causes = inferred.causes(piece.event);
        let heard = inferred.first(stated).event;
        assert!(causes.iter().any(|cause| cause.on_event == heard && cause.on == On::Delivered), "{causes:?}");
        assert!(piece.delay_ns <= 3 * MS, "{} ns of thinking", piece.delay_ns);
    }
}
