//! Block transfers are measured to the byte, though most of their packet headers were not kept.

use crate::world::wire::{ack, data_packets, read_block, read_response, read_status, write_block, write_response};
use crate::world::{Talk, World, assert_bytes_are_conserved, at, connections, messages};
use merger::compact::Message;
use merger::merged::Merged;
use trace::jvm::JvmRecord;
use trace::rows::MessageKind::{BlockAck, BlockData, BlockRequest, BlockResponse, BlockStatus};

const MAP: &str = "DFSClient_attempt_1700000000000_0001_m_000003_0_-1234567_1";
const ATTEMPT: &str = "attempt_1700000000000_0001_m_000003_0";

fn opened() -> (World, Talk) {
    let mut world = World::new(&["w1", "w2", "w3"]);
    world.keep = (256, 64);
    let talk = world.connect((0, 40_000), (1, 9866), [100, 200], at(0));
    (world, talk)
}

fn read(world: &mut World, talk: &mut Talk, t: u64, id: u64, offset: u64, data: usize) {
    world.say(talk, true, t, &read_block(id, MAP, offset, data as u64));
    // The DataNode begins at the checksum chunk in which the first byte lies, and ends with a whole one.
    let from = offset / 512 * 512;
    let until = (offset + data as u64).div_ceil(512) * 512;
    let mut answer = read_response();
    answer.extend(data_packets(from, (until - from) as usize, 65_536));
    let arrived = world.say(talk, false, t + 1_000_000, &answer);
    world.say(talk, true, arrived + 100_000, &read_status());
}

fn data(merged: &Merged) -> Vec<Message<'_>> {
    merged.joined.messages.iter().filter(|m| m.kind == BlockData).collect()
}

#[test]
fn several_reads_on_one_connection_are_told_apart() {
    let (mut world, mut talk) = opened();
    read(&mut world, &mut talk, at(10), 7, 0, 1_000_000);
    read(&mut world, &mut talk, at(200), 8, 1000, 5_000);
    read(&mut world, &mut talk, at(300), 7, 300_000, 200_000);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    assert_eq!(connections(&merged)[0].protocol, "data-transfer");
    let asked: Vec<_> = messages(&merged, true).iter().map(|m| (m.kind, m.call, m.block)).collect();
    let wanted = [7, 8, 7]
        .iter()
        .enumerate()
        .flat_map(|(number, block)| [BlockRequest, BlockStatus].map(|kind| (kind, number as i64, Some(*block))));
    assert_eq!(asked, wanted.collect::<Vec<_>>());
    let answered: Vec<_> = messages(&merged, false).iter().map(|m| (m.kind, m.call, m.app_bytes, m.attempt)).collect();
    let whole = |offset: u64, data: u64| (offset + data).div_ceil(512) * 512 - offset / 512 * 512;
    let wanted =
        [(0, 1_000_000), (1000, 5000), (300_000, 200_000)].into_iter().enumerate().flat_map(|(number, (o, d))| {
            [(BlockResponse, number as i64, 0, Some(ATTEMPT)), (BlockData, number as i64, whole(o, d), Some(ATTEMPT))]
        });
    assert_eq!(answered, wanted.collect::<Vec<_>>());
}

#[test]
fn what_a_reader_did_not_take_is_counted_apart() {
    let (mut world, mut talk) = opened();
    world.say(&mut talk, true, at(10), &read_block(9, MAP, 0, 10_000_000));
    let mut answer = read_response();
    answer.extend(data_packets(0, 10_000_000, 65_536));
    // The reader closes after 300 segments.
    let sent = 300 * crate::world::FULL;
    world.say(&mut talk, false, at(11), &answer[..sent]);
    world.close(&mut talk, at(50));
    let used = JvmRecord::BlockRead {
        t0: at(11),
        t1: at(50),
        th: 3,
        block: 9,
        offset: 0,
        length: 10_000_000,
        consumed: 100_000,
        local: "10.0.0.1:40000".into(),
        remote: "10.0.0.2:9866".into(),
        read_wait: 0,
    };
    world.jvm(0, 50, "YarnChild", vec![used]);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let [data] = data(&merged)[..] else { panic!() };
    // What is cut off lies inside a packet: its header and checksums came, and a part of its data.
    let body = (sent - read_response().len()) as u64;
    let packet = 31 + 512 + 65_536;
    let expected = body / packet * 65_536 + (body % packet).saturating_sub(31 + 512);
    assert_eq!((data.app_bytes, data.unread_bytes), (expected, Some(expected - 100_000)));
}

#[test]
fn a_pipeline_has_hops() {
    let (mut world, mut talk) = opened();
    let mut behind = world.connect((1, 41_000), (2, 9866), [300, 400], at(1));
    world.own(&talk, at(0), (50, "YarnChild"), (60, "DataNode"));
    world.own(&behind, at(1), (60, "DataNode"), (70, "DataNode"));
    let body = data_packets(0, 500_000, 64_512);
    world.say(&mut talk, true, at(10), &write_block(11, MAP, 1, 2));
    world.say(&mut behind, true, at(11), &write_block(11, MAP, 0, 2));
    world.say(&mut behind, false, at(12), &write_response());
    world.say(&mut talk, false, at(13), &write_response());
    world.say(&mut talk, true, at(20), &body);
    world.say(&mut behind, true, at(21), &body);
    for sequence in 0..9 {
        world.say(&mut behind, false, at(30 + sequence), &ack(sequence as i64));
        world.say(&mut talk, false, at(50 + sequence), &ack(sequence as i64));
    }
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let written: Vec<_> =
        data(&merged).iter().map(|m| (m.hop, m.app_bytes, m.block, m.attempt, m.from_client)).collect();
    let wanted = |hop| (Some(hop), 500_000, Some(11), Some(ATTEMPT), true);
    assert_eq!(written, [wanted(1), wanted(2)]);
    let acks: Vec<_> = merged.joined.messages.iter().filter(|m| m.kind == BlockAck).collect();
    assert_eq!(acks.len(), 2);
    assert!(acks.iter().all(|m| m.bytes == 9 * ack(1).len() as u64 && !m.from_client));
}

#[test]
fn packets_that_were_flushed_early_count_too() {
    let (mut world, mut talk) = opened();
    world.own(&talk, at(0), (50, "MRAppMaster"), (60, "DataNode"));
    world.say(&mut talk, true, at(10), &write_block(12, "DFSClient_NONMAPREDUCE_1_1", 0, 1));
    world.say(&mut talk, false, at(11), &write_response());
    let (mut offset, mut t) = (0u64, at(20));
    for (sequence, size) in [3000usize, 64_512, 64_512, 700, 20_000].into_iter().enumerate() {
        t = world.say(
            &mut talk,
            true,
            t + 5_000_000,
            &crate::world::wire::data_packet(offset, sequence as i64, size, false),
        );
        offset += size as u64;
    }
    world.say(&mut talk, true, t + 5_000_000, &crate::world::wire::data_packet(offset, 5, 0, true));
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let [data] = data(&merged)[..] else { panic!() };
    assert_eq!((data.app_bytes, data.attempt, data.hop), (offset, None, Some(1)));
}

#[test]
fn the_middle_of_a_transfer_is_known_by_its_packets() {
    let mut world = World::new(&["w1", "w2"]);
    world.keep = (256, 64);
    let mut talk = world.talk((0, 40_000), (1, 9866), [100, 200]);
    let body = data_packets(0, 2_000_000, 65_536);
    // The capture began a while after the block.
    world.say(&mut talk, false, at(10), &body[66_079 * 3..]);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let [data] = data(&merged)[..] else { panic!("{:?}", merged.joined.messages) };
    assert_eq!((data.app_bytes, data.from_client), (2_000_000 - 3 * 65_536, false));
}
