//! What JVMs say of production and consumption is joined with the messages whose bytes they mean, and with no others.

use crate::world::wire::{ack, data_packets, read_block, read_response, write_block, write_response};
use crate::world::{Talk, World, at};
use trace::jvm::JvmRecord;
use trace::rows::{MessageKind, StepKind, StepRow};

const CLIENT: &str = "DFSClient_attempt_1700000000000_0001_r_000000_0_-1_1";

/// A step of a megabyte, as the end of a connection tells it.
fn step(talk: &Talk, by_client: bool, op: &str, block: u64, offset: u64, t: u64) -> JvmRecord {
    let ends = [talk.client.to_string(), talk.server.to_string()];
    let [local, remote] = if by_client { ends } else { [ends[1].clone(), ends[0].clone()] };
    JvmRecord::Step {
        t0: t,
        t1: t + 5_000_000,
        th: 8,
        op: op.into(),
        block,
        offset,
        bytes: 1 << 20,
        work_ns: 4_000_000,
        read_wait: u64::from(op == "read" || op == "receive") * 1_000,
        write_wait: u64::from(op == "write") * 2_000,
        disk_ns: 3,
        sync_ns: 2,
        checksum_ns: 1,
        cpu_ns: u64::from(op != "send") * 700_000,
        ready_ns: 0,
        local,
        remote,
    }
}

/// A block is written, and read on another connection; the client also tells of `extra`.
fn steps(extra: impl Fn(&Talk) -> Vec<JvmRecord>) -> (Vec<StepRow>, Vec<(MessageKind, bool)>) {
    let mut world = World::new(&["w1", "w2"]);
    world.keep = (256, 64);
    let mut talk = world.connect((0, 40_000), (1, 9866), [100, 200], at(0));
    world.say(&mut talk, true, at(1), &write_block(7, CLIENT, 0, 1));
    world.say(&mut talk, false, at(2), &write_response());
    let end = world.say(&mut talk, true, at(3), &data_packets(0, 3 << 20, 64_512));
    world.say(&mut talk, false, end + 1_000_000, &ack(0));
    let mut reads = world.connect((0, 40_001), (1, 9866), [300, 400], at(190));
    world.say(&mut reads, true, at(200), &read_block(7, CLIENT, 0, 2 << 20));
    world.say(&mut reads, false, at(201), &[read_response(), data_packets(0, 2 << 20, 65_536)].concat());
    let mut client = vec![
        step(&talk, true, "write", 7, 64_512, at(2)),
        step(&talk, true, "write", 7, 64_512 + (1 << 20), at(8)),
        step(&reads, true, "read", 7, 0, at(203)),
    ];
    client.extend(extra(&talk));
    let server = vec![step(&talk, false, "receive", 7, 0, at(5)), step(&reads, false, "send", 7, 0, at(202))];
    world.jvm(0, 50, "YarnChild", client);
    world.jvm(1, 60, "DataNode", server);
    let joined = world.merged().joined;
    let of = |row: &StepRow| joined.message(row.message);
    let kinds = joined.steps.iter().map(|row| (of(row).kind, of(row).from_client)).collect();
    (joined.steps, kinds)
}

#[test]
fn each_step_is_of_the_data_that_its_thread_made_or_took() {
    let (rows, messages) = steps(|_| Vec::new());
    let stated: Vec<_> =
        rows.iter().map(|row| (row.kind, row.first_byte, row.read_wait_ns, row.write_wait_ns)).collect();
    let wanted = [
        (StepKind::Produce, 64_512, 0, 2_000),
        (StepKind::Produce, 64_512 + (1 << 20), 0, 2_000),
        (StepKind::Receive, 0, 1_000, 0),
        (StepKind::Consume, 0, 1_000, 0),
        (StepKind::Send, 0, 0, 0),
    ];
    assert_eq!(stated, wanted);
    let from_client = [true, true, true, false, false];
    assert_eq!(messages, from_client.map(|from_client| (MessageKind::BlockData, from_client)));
    assert!(rows.iter().all(|row| row.work_ns == 4_000_000 && row.thread == 8 && row.disk_ns == 3));
    let cpu: Vec<_> = rows.iter().map(|row| row.cpu_ns).collect();
    assert_eq!(cpu[3..], [Some(700_000), None], "0 is not known");
}

#[test]
fn claims_that_fit_nothing_are_left_out() {
    let (honest, _) = steps(|_| Vec::new());
    let (rows, _) = steps(|talk| {
        let mut of_another_block = step(talk, true, "write", 8, 0, at(3));
        let unknown = step(talk, true, "dream", 7, 0, at(3));
        let mut immense = step(talk, true, "write", 7, 0, at(3));
        if let JvmRecord::Step { work_ns, .. } = &mut immense {
            *work_ns = u64::MAX;
        }
        if let JvmRecord::Step { remote, .. } = &mut of_another_block {
            remote.push('x');
        }
        vec![of_another_block, step(talk, true, "write", 9, 0, at(3)), unknown, immense]
    });
    assert_eq!(rows, honest);
}
