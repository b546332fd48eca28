//! The protocols of Hadoop 1.x: RPC 4, whose responses have no length, data transfer 17, and map outputs one by one.

use crate::world::wire::vlong;
use crate::world::{MS, Talk, World, assert_bytes_are_conserved, at, connections, messages};
use trace::jvm::JvmRecord;
use trace::rows::MessageKind::{
    BlockAck, BlockData, BlockRequest, BlockResponse, BlockStatus, RpcConnect, RpcPing, RpcRequest, RpcResponse,
    ShuffleRequest, ShuffleResponse,
};

const ATTEMPT: &str = "attempt_202611211537_0001_m_000003_0";
const CLIENT: &str = "DFSClient_attempt_202611211537_0001_m_000003_0_-1234567_1";

fn utf8(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_be_bytes()[..], text.as_bytes()].concat()
}

fn text(text: &str) -> Vec<u8> {
    [vlong(text.len() as i64), text.as_bytes().to_vec()].concat()
}

fn preamble() -> Vec<u8> {
    let header = text("org.apache.hadoop.mapred.InterTrackerProtocol");
    [&b"hrpc\x04\x50"[..], &(header.len() as u32).to_be_bytes(), &header].concat()
}

fn request(call: i32, method: &str, extra: usize) -> Vec<u8> {
    let body = [&call.to_be_bytes()[..], &utf8(method), &2u32.to_be_bytes(), &vec![0x33; extra]].concat();
    [&(body.len() as u32).to_be_bytes()[..], &body].concat()
}

fn response(call: i32, extra: usize) -> Vec<u8> {
    let class = utf8("org.apache.hadoop.mapred.HeartbeatResponse");
    [&call.to_be_bytes()[..], &[0; 4], &class, &vec![0x44; extra]].concat()
}

fn opened(port: u16) -> (World, Talk) {
    let mut world = World::new(&["w1", "m1"]);
    world.keep = (256, 64);
    let talk = world.connect((0, 40_000), (1, port), [100, 200], at(0));
    (world, talk)
}

#[test]
fn responses_end_where_the_next_one_begins() {
    let (mut world, mut talk) = opened(8021);
    world.say(&mut talk, true, at(1), &[preamble(), request(3, "getProtocolVersion", 20)].concat());
    world.say(&mut talk, false, at(2), &response(3, 8));
    world.say(&mut talk, true, at(3), &request(7, "heartbeat", 5_000));
    world.say(&mut talk, true, at(4), &[0xff; 4]);
    world.say(&mut talk, true, at(5), &request(9, "getBuildVersion", 10));
    // Of a long response, and of two that were written at once.
    world.say(&mut talk, false, at(6), &response(7, 4_000));
    world.say(&mut talk, true, at(20), &request(10, "ping", 10));
    world.say(&mut talk, false, at(30), &[response(9, 30), response(10, 5)].concat());
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    assert_eq!(connections(&merged)[0].protocol, "rpc");
    let asked: Vec<_> = messages(&merged, true).iter().map(|m| (m.kind, m.call, m.name)).collect();
    let wanted = [
        (RpcConnect, 0, ""),
        (RpcRequest, 3, "getProtocolVersion"),
        (RpcRequest, 7, "heartbeat"),
        (RpcPing, 0, ""),
        (RpcRequest, 9, "getBuildVersion"),
        (RpcRequest, 10, "ping"),
    ];
    assert_eq!(asked, wanted);
    let answered: Vec<_> = messages(&merged, false).iter().map(|m| (m.kind, m.call, m.name, m.bytes)).collect();
    let bytes = |extra: usize| response(0, extra).len() as u64;
    let wanted = [
        (RpcResponse, 3, "getProtocolVersion", bytes(8)),
        (RpcResponse, 7, "heartbeat", bytes(4_000)),
        (RpcResponse, 9, "getBuildVersion", bytes(30)),
        (RpcResponse, 10, "ping", bytes(5)),
    ];
    assert_eq!(answered, wanted);
}

#[test]
fn an_answer_to_a_call_that_was_not_made_is_none() {
    let (mut world, mut talk) = opened(8021);
    world.say(&mut talk, true, at(1), &[preamble(), request(3, "getTask", 20)].concat());
    // Inside of the one response there is what looks like another, to call 4.
    world.say(&mut talk, false, at(2), &[response(3, 8), response(4, 8)].concat());
    let merged = world.merged();
    let answered: Vec<_> = messages(&merged, false).iter().map(|m| (m.kind, m.call)).collect();
    assert_eq!(answered, [(RpcResponse, 3)]);
}

fn packets(from: u64, data: usize, full: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, start) in (0..data).step_by(full).enumerate() {
        let here = full.min(data - start);
        let checksums = here.div_ceil(512) * 4;
        bytes.extend((here as u32 + checksums as u32 + 4).to_be_bytes());
        bytes.extend((from + start as u64).to_be_bytes());
        bytes.extend((number as u64).to_be_bytes());
        bytes.push(u8::from(start + here == data));
        bytes.extend((here as u32).to_be_bytes());
        bytes.extend(vec![0x5c; checksums]);
        bytes.extend(vec![0x5d; here]);
    }
    bytes.extend([0; 4]);
    bytes
}

#[test]
fn a_read_is_measured_to_the_byte() {
    for (offset, length) in [(0u64, 1_000_000usize), (1_000, 5_000), (70_000, 65_536 * 3), (0, 65_536)] {
        let (mut world, mut talk) = opened(50_010);
        let block = -4_321_i64;
        let long = |n: i64| n.to_be_bytes().to_vec();
        let asked = [
            vec![0, 17, 81],
            long(block),
            long(1_001),
            long(offset as i64),
            long(length as i64),
            text(CLIENT),
            vec![0; 4],
        ];
        world.say(&mut talk, true, at(1), &asked.concat());
        let from = offset / 512 * 512;
        let until = (offset + length as u64).div_ceil(512) * 512;
        let mut answer = [&[0, 0][..], &[1], &512u32.to_be_bytes(), &from.to_be_bytes()].concat();
        answer.extend(packets(from, (until - from) as usize, 65_536));
        let arrived = world.say(&mut talk, false, at(2), &answer);
        world.say(&mut talk, true, arrived + MS, &[0, 6]);
        let merged = world.merged();
        assert_bytes_are_conserved(&merged);
        let asked: Vec<_> = messages(&merged, true).iter().map(|m| (m.kind, m.block)).collect();
        let id = Some(block.cast_unsigned());
        assert_eq!(asked, [(BlockRequest, id), (BlockStatus, id)]);
        let answered: Vec<_> =
            messages(&merged, false).iter().map(|m| (m.kind, m.bytes, m.app_bytes, m.attempt)).collect();
        let data = answer.len() as u64 - 15;
        assert_eq!(
            answered,
            [(BlockResponse, 15, 0, Some(ATTEMPT)), (BlockData, data, until - from, Some(ATTEMPT))],
            "{offset} {length}"
        );
    }
}

#[test]
fn a_write_is_told_apart_from_its_acknowledgements() {
    let (mut world, mut talk) = opened(50_010);
    let long = |n: i64| n.to_be_bytes().to_vec();
    let int = |n: i32| n.to_be_bytes().to_vec();
    let target = [utf8("10.0.0.3:50010"), vec![0x20; 120]].concat();
    let asked = [
        vec![0, 17, 80],
        long(77),
        long(1_002),
        int(2),
        vec![0],
        text(CLIENT),
        vec![0],
        int(1),
        target,
        vec![0; 4],
        vec![1],
        int(512),
    ];
    world.say(&mut talk, true, at(1), &asked.concat());
    world.say(&mut talk, false, at(2), &[0, 0, 0]);
    let data = packets(0, 300_000, 65_024);
    let arrived = world.say(&mut talk, true, at(3), &data);
    let acks: Vec<u8> = (0..5i64).flat_map(|number| [long(number), vec![0, 2, 0, 0, 0, 0]].concat()).collect();
    world.say(&mut talk, false, arrived + MS, &acks);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let sent: Vec<_> = messages(&merged, true).iter().map(|m| (m.kind, m.app_bytes, m.attempt)).collect();
    assert_eq!(sent, [(BlockRequest, 0, Some(ATTEMPT)), (BlockData, 300_000, Some(ATTEMPT))]);
    let got: Vec<_> = messages(&merged, false).iter().map(|m| (m.kind, m.bytes)).collect();
    assert_eq!(got, [(BlockResponse, 3), (BlockAck, acks.len() as u64)]);
}

/// Serves two outputs, of which `kept` bytes of a full segment are kept; both JVMs tell of them if `stated`.
fn shuffle(kept: usize, stated: bool) -> merger::merged::Merged {
    let (mut world, mut talk) = opened(50_060);
    world.keep = (256, kept);
    let mut fetched = Vec::new();
    for (number, bytes) in SIZES {
        let map = format!("attempt_202611211537_0001_m_{number:06}_0");
        let t = at(10 + 100 * number);
        let asked = format!("GET /mapOutput?job=job_202611211537_0001&map={map}&reduce=2 HTTP/1.1\r\nHost: w1\r\n\r\n");
        world.say(&mut talk, true, t, asked.as_bytes());
        let head = format!(
            "HTTP/1.1 200 OK\r\nfrom-map-task: {map}\r\nRaw-Map-Output-Length: {}\r\nMap-Output-Length: {bytes}\r\n\
             for-reduce-task: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
            bytes - 4
        );
        let mut body = format!("{bytes:x}\r\n").into_bytes();
        body.extend(vec![0x61; bytes as usize]);
        body.extend(b"\r\n0\r\n\r\n");
        let arrived = world.say(&mut talk, false, t + 2 * MS, &[head.into_bytes(), body].concat());
        let (raw, host) = (bytes - 4, "m1".to_owned());
        fetched.push(JvmRecord::Fetch { t0: t, t1: arrived, th: 4, map, reduce: 2, bytes, raw, host, read_wait: 0 });
    }
    if stated {
        world.jvm(0, 77, "Child", fetched);
    }
    world.merged()
}

const SIZES: [(u64, u64); 2] = [(0, 90_000), (1, 64)];

#[test]
fn map_outputs_are_sized_by_the_head_of_the_answer() {
    let merged = shuffle(256, false);
    assert_bytes_are_conserved(&merged);
    assert_eq!(connections(&merged)[0].protocol, "shuffle");
    let asked: Vec<_> = messages(&merged, true).iter().map(|m| (m.kind, m.reduce)).collect();
    assert_eq!(asked, [(ShuffleRequest, Some(2)), (ShuffleRequest, Some(2))]);
    let answered: Vec<_> =
        messages(&merged, false).iter().map(|m| (m.kind, m.app_bytes, m.map.map(str::to_owned))).collect();
    let wanted = SIZES
        .map(|(number, bytes)| (ShuffleResponse, bytes, Some(format!("attempt_202611211537_0001_m_{number:06}_0"))));
    assert_eq!(answered, wanted);
}

#[test]
fn where_the_head_was_not_kept_the_jvm_knows_the_size() {
    let merged = shuffle(20, true);
    assert_bytes_are_conserved(&merged);
    let answered: Vec<_> = messages(&merged, false).iter().map(|m| (m.app_bytes, m.evidence)).collect();
    assert_eq!(answered, [(90_000, "jvm"), (64, "framing")]);
}
