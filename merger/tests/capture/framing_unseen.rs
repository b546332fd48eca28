//! Connections whose payload was not kept, or is encrypted, are understood by what the JVMs say of them.

use crate::world::wire::{
    data_packets, map_output, read_response, read_status, rpc_preamble, rpc_request, rpc_response, shuffle_head,
    shuffle_request, varint,
};
use crate::world::{DELAY_NS, MS, Talk, World, assert_bytes_are_conserved, at, connections, messages};
use merger::merged::Merged;
use trace::jvm::JvmRecord;
use trace::rows::MessageKind::{
    self, BlockAck, BlockData, BlockRequest, BlockResponse, BlockStatus, HttpRequest, HttpResponse, RpcConnect,
    RpcPing, RpcRequest, RpcResponse, Sasl, ShuffleRequest, ShuffleResponse,
};

/// Long before and after what is written, as stamps are: a fifth of a millisecond.
const STAMP_NS: u64 = 200_000;

/// Hosts of which no payload is kept.
fn private(names: &[&str]) -> World {
    let mut world = World::new(names);
    world.keep = (0, 0);
    world
}

fn cuts(merged: &Merged, from_client: bool) -> Vec<(MessageKind, i64, u64, String)> {
    messages(merged, from_client).iter().map(|m| (m.kind, m.call, m.bytes, m.evidence.to_string())).collect()
}

fn wanted(cuts: &[(MessageKind, i64, usize, &str)]) -> Vec<(MessageKind, i64, u64, String)> {
    cuts.iter().map(|(kind, call, bytes, evidence)| (*kind, *call, *bytes as u64, (*evidence).to_owned())).collect()
}

/// A call on a connection as its two JVMs record it.
struct Call {
    number: i64,
    method: &'static str,
    asked: u64,
    answered: u64,
}

/// Says a request and its response, and records both sides.
fn records(talk: &Talk, calls: &[Call]) -> (Vec<JvmRecord>, Vec<JvmRecord>) {
    let (client, server) = (talk.client.to_string(), talk.server.to_string());
    calls
        .iter()
        .map(|call| {
            let asked = JvmRecord::Call {
                t: call.asked - 2 * STAMP_NS,
                sent: call.asked - STAMP_NS,
                received: call.answered + DELAY_NS + STAMP_NS,
                th: 3,
                call: call.number,
                client: "07".repeat(16),
                method: call.method.into(),
                local: client.clone(),
                remote: server.clone(),
            };
            let served = JvmRecord::Rpc {
                received: call.asked + DELAY_NS + STAMP_NS,
                begin: call.asked + DELAY_NS + 2 * STAMP_NS,
                end: call.answered - 2 * STAMP_NS,
                responded: call.answered - STAMP_NS,
                th: 7,
                call: call.number,
                client: "07".repeat(16),
                method: call.method.into(),
                local: server.clone(),
                remote: client.clone(),
                context: "mr_attempt_1700000000000_0001_m_000002_0".into(),
                queued: 0,
                completed: Vec::new(),
                assigned: Vec::new(),
            };
            (asked, served)
        })
        .unzip()
}

fn jvms(
    world: &mut World,
    talk: &Talk,
    client: (u32, &str),
    server: (u32, &str),
    (a, b): (Vec<JvmRecord>, Vec<JvmRecord>),
) {
    world.own(talk, at(0), client, server);
    for (pid, records) in [(client.0, a), (server.0, b)] {
        let jvm = world.hosts.iter_mut().flat_map(|host| &mut host.jvms).find(|jvm| jvm.0.0 == pid).unwrap();
        jvm.1.extend(records);
    }
}

#[test]
fn calls_are_what_went_between_the_stamps_of_both_sides() {
    let mut world = private(&["w1", "m1"]);
    let mut talk = world.connect((0, 40_000), (1, 8020), [100, 200], at(0));
    let (first, long, answer) =
        (rpc_request(0, "create", 100), rpc_request(1, "blockReport", 50_000), rpc_response(1, 9_000));
    // Preamble, connection context and the first call leave at once; of the context only the length can be guessed.
    let context = 32 + 2 + 2 + 6 + 46 + 44;
    let opening = [rpc_preamble(), vec![0; context], first.clone()].concat();
    world.say(&mut talk, true, at(10), &opening);
    world.say(&mut talk, false, at(12), &rpc_response(0, 30));
    world.say(&mut talk, true, at(20), &long);
    world.say(&mut talk, false, at(30), &answer);
    world.say(&mut talk, true, at(90), &rpc_request(-4, "", 0));
    world.say(&mut talk, true, at(100), &rpc_request(2, "create", 60));
    world.say(&mut talk, false, at(102), &rpc_response(2, 40));
    let call = |number, method, asked, answered| Call { number, method, asked: at(asked), answered: at(answered) };
    let mut calls = [call(0, "create", 10, 12), call(1, "blockReports", 20, 30), call(2, "create", 100, 102)];
    // The long ones take their time.
    calls[1].answered += 0;
    let mut both = records(&talk, &calls);
    if let JvmRecord::Rpc { received, .. } = &mut both.1[1] {
        *received += MS;
    }
    if let JvmRecord::Call { received, .. } = &mut both.0[1] {
        *received += MS;
    }
    jvms(&mut world, &talk, (50, "YarnChild"), (60, "NameNode"), both);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    assert_eq!(connections(&merged)[0].protocol, "rpc");
    let asked = wanted(&[
        (RpcConnect, 0, 7, "headers"),
        (RpcConnect, -3, context, "shared"),
        (RpcRequest, 0, first.len(), "shared"),
        (RpcRequest, 1, long.len(), "jvm"),
        (RpcPing, -4, rpc_request(-4, "", 0).len(), "headers"),
        (RpcRequest, 2, rpc_request(2, "create", 60).len(), "jvm"),
    ]);
    assert_eq!(cuts(&merged, true), asked);
    let answered = wanted(&[
        (RpcResponse, 0, rpc_response(0, 30).len(), "jvm"),
        (RpcResponse, 1, answer.len(), "jvm"),
        (RpcResponse, 2, rpc_response(2, 40).len(), "jvm"),
    ]);
    assert_eq!(cuts(&merged, false), answered);
    let attempt = "attempt_1700000000000_0001_m_000002_0";
    assert!(messages(&merged, true).iter().all(|message| message.attempt == Some(attempt)));
    assert_eq!(merged.joined.processes.iter().filter_map(|row| row.attempt.as_deref()).next(), Some(attempt));
    assert!(merged.joined.spans.iter().all(|span| span.request.is_some() && span.response.is_some()));
}

#[test]
fn a_connection_that_was_there_before_begins_with_what_nobody_can_know() {
    let mut world = private(&["w1", "m1"]);
    let mut talk = world.talk((0, 40_000), (1, 8020), [100, 200]);
    world.say(&mut talk, true, at(1), &rpc_request(4, "getFileInfo", 700));
    world.say(&mut talk, false, at(2), &rpc_response(4, 30));
    let known = rpc_request(5, "getFileInfo", 10);
    world.say(&mut talk, true, at(20), &known);
    world.say(&mut talk, false, at(22), &rpc_response(5, 40));
    let both = records(&talk, &[Call { number: 5, method: "getFileInfo", asked: at(20), answered: at(22) }]);
    jvms(&mut world, &talk, (50, "Client"), (60, "NameNode"), both);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let kinds: Vec<_> = cuts(&merged, true).into_iter().map(|cut| (cut.0, cut.2)).collect();
    assert_eq!(
        kinds,
        [(MessageKind::Unknown, rpc_request(4, "getFileInfo", 700).len() as u64), (RpcRequest, known.len() as u64)]
    );
}

#[test]
fn what_came_before_an_agent_was_loaded_is_no_negotiation() {
    let mut world = private(&["w1", "m1"]);
    let mut talk = world.connect((0, 40_000), (1, 8020), [100, 200], at(0));
    for call in 0..40 {
        world.say(&mut talk, true, at(10 + 10 * call), &rpc_request(call as i64, "fsync", 60));
        world.say(&mut talk, false, at(12 + 10 * call), &rpc_response(call as i64, 30));
    }
    let late = [Call { number: 39, method: "fsync", asked: at(400), answered: at(402) }];
    let both = records(&talk, &late);
    jvms(&mut world, &talk, (50, "Client"), (60, "NameNode"), both);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    assert!(messages(&merged, true).iter().chain(&messages(&merged, false)).all(|message| message.kind != Sasl));
    let last = messages(&merged, true).last().map(|message| (message.kind, message.call, message.bytes));
    assert_eq!(last, Some((RpcRequest, 39, rpc_request(39, "fsync", 60).len() as u64)));
}

/// State of a message that is wrapped.
const WRAP: u64 = 5;

/// A frame of SASL: call -33, RpcSaslProto with a state and a token.
fn sasl(state: u64, token: usize, request: bool) -> Vec<u8> {
    let plain = if request { rpc_request(-33, "", 0) } else { rpc_response(-33, 0) };
    let header_length = plain[4] as usize;
    let mut header = &plain[4..=4 + header_length];
    // Hadoop gives the header of a response that it wraps a call id and a status only.
    if !request && state == WRAP {
        header = &[8, 0x08, 0xdf, 0xff, 0xff, 0xff, 0x0f, 0x10, 0];
    }
    let message = [vec![0x08, 0, 0x10], varint(state), vec![0x1a], varint(token as u64), vec![0x5a; token]].concat();
    let body = [header.to_vec(), varint(message.len() as u64), message].concat();
    [(body.len() as u32).to_be_bytes().to_vec(), body].concat()
}

#[test]
fn calls_wrapped_by_sasl_are_found_inside_their_frames() {
    let mut world = World::new(&["w1", "m1"]);
    let mut talk = world.connect((0, 40_000), (1, 8020), [100, 200], at(0));
    world.say(&mut talk, true, at(1), &[rpc_preamble(), sasl(1, 0, true)].concat());
    world.say(&mut talk, false, at(2), &sasl(1, 90, false));
    world.say(&mut talk, true, at(3), &sasl(2, 300, true));
    world.say(&mut talk, false, at(4), &sasl(0, 20, false));
    let asked = [sasl(WRAP, 200, true), sasl(WRAP, 5_000, true)];
    let answered = [sasl(WRAP, 80, false), sasl(WRAP, 120, false)];
    world.say(&mut talk, true, at(10), &asked[0]);
    world.say(&mut talk, false, at(12), &answered[0]);
    world.say(&mut talk, true, at(20), &asked[1]);
    world.say(&mut talk, false, at(22), &answered[1]);
    let call = |number, asked, answered| Call { number, method: "create", asked: at(asked), answered: at(answered) };
    let both = records(&talk, &[call(0, 10, 12), call(1, 20, 22)]);
    jvms(&mut world, &talk, (50, "YarnChild"), (60, "NameNode"), both);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let kinds = |from_client| -> Vec<_> { cuts(&merged, from_client).into_iter().map(|m| (m.0, m.1, m.2)).collect() };
    let length = |frame: &[u8]| frame.len() as u64;
    assert_eq!(
        kinds(true),
        [
            (RpcConnect, 0, 7),
            (Sasl, -33, length(&sasl(1, 0, true))),
            (Sasl, -33, length(&sasl(2, 300, true))),
            // The context is wrapped with the first call, and is likely to be as long as in clear.
            (RpcConnect, -3, 126),
            (RpcRequest, 0, length(&asked[0]) - 126),
            (RpcRequest, 1, length(&asked[1])),
        ]
    );
    assert_eq!(
        cuts(&merged, true).iter().map(|cut| cut.3.as_str()).collect::<Vec<_>>()[3..],
        ["shared", "shared", "jvm"]
    );
    assert_eq!(kinds(false)[2..], [(RpcResponse, 0, length(&answered[0])), (RpcResponse, 1, length(&answered[1]))]);
    assert!(messages(&merged, false)[2..].iter().all(|message| message.name == "create"));
}

/// A record of TLS 1.2: its five bytes, and so many more.
fn tls(kind: u8, bytes: usize) -> Vec<u8> {
    [vec![kind, 3, 3], (bytes as u16).to_be_bytes().to_vec(), vec![0xee; bytes]].concat()
}

/// What application data becomes: records of at most 16 KiB, each with its head and 24 bytes for its number and tag.
fn encrypted(plain: &[u8]) -> Vec<u8> {
    plain.chunks(1 << 14).flat_map(|chunk| tls(23, chunk.len() + 24)).collect()
}

/// An output as the handler of 3.4 reads and flushes it: what stands before it goes with its first 64 KiB.
fn flushed(before: usize, output: &[u8]) -> Vec<u8> {
    let first = output.len().min(before + (1 << 16));
    let pieces = std::iter::once(&output[..first]).chain(output[first..].chunks(1 << 16));
    pieces.flat_map(encrypted).collect()
}

/// A TLS alert: its level and what it is about, encrypted.
fn goodbye() -> Vec<u8> {
    tls(21, 26)
}

const MAPS: [&str; 2] = ["attempt_1700000000000_0001_m_000000_0", "attempt_1700000000000_0001_m_000001_0"];

/// A shuffle connection on which two outputs are fetched at once; says which bytes they take with their headers.
fn shuffle(world: &mut World, port: u16, secret: bool, reported_by_server: bool) -> [usize; 2] {
    let mut talk = world.connect((0, port), (1, 13_562), [100, 200], at(0));
    let dress = |plain: &[u8]| if secret { encrypted(plain) } else { plain.to_vec() };
    if secret {
        world.say(&mut talk, true, at(1), &tls(22, 500));
        world.say(&mut talk, false, at(2), &tls(22, 3_000));
        world.say(&mut talk, true, at(3), &[tls(20, 1), tls(22, 120)].concat());
        world.say(&mut talk, false, at(4), &[tls(20, 1), tls(22, 40)].concat());
    }
    let outputs = MAPS.map(|map| map_output(map, 3, if map == MAPS[0] { 200_000 } else { 300_000 }));
    let request = dress(&shuffle_request(3, &MAPS.map(str::to_owned)));
    world.say(&mut talk, true, at(10), &request);
    let head = shuffle_head(outputs.iter().map(Vec::len).sum());
    let befores = [head.len() + outputs[0].len() - 200_000, outputs[1].len() - 300_000];
    let parts = [[head, outputs[0].clone()].concat(), outputs[1].clone()];
    let parts = [0, 1].map(|part| if secret { flushed(befores[part], &parts[part]) } else { parts[part].clone() });
    let close = if secret { goodbye() } else { Vec::new() };
    let end = world.say(&mut talk, false, at(12), &[parts.concat(), close.clone()].concat());
    if secret {
        world.say(&mut talk, true, end + MS, &close);
    }
    let served = MAPS.map(|map| JvmRecord::ShuffleServed {
        t0: at(10) + DELAY_NS + STAMP_NS,
        t1: end,
        job: "job_1700000000000_0001".into(),
        map: map.into(),
        reduce: 3,
        bytes: if map == MAPS[0] { 200_000 } else { 300_000 },
        read_ns: 0,
        local: talk.server.to_string(),
        remote: talk.client.to_string(),
    });
    let fetched = MAPS.map(|map| JvmRecord::Fetch {
        t0: at(12) + DELAY_NS + STAMP_NS,
        t1: end,
        th: 5,
        map: map.into(),
        reduce: 3,
        bytes: if map == MAPS[0] { 200_000 } else { 300_000 },
        raw: if map == MAPS[0] { 199_996 } else { 299_996 },
        host: "w2:13562".into(),
        read_wait: 0,
    });
    let stated = if reported_by_server { (Vec::new(), served.to_vec()) } else { (fetched.to_vec(), Vec::new()) };
    jvms(world, &talk, (u32::from(port), "YarnChild"), (70, "NodeManager"), stated);
    parts.map(|part| part.len())
}

#[test]
fn a_shuffle_over_tls_falls_back_to_the_records_and_its_neighbour_does_not() {
    let mut world = World::new(&["w1", "w2"]);
    world.keep = (256, 256);
    let secret = shuffle(&mut world, 40_000, true, true);
    let plain = shuffle(&mut world, 40_001, false, true);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let of = |port: &str, from_client: bool| -> Vec<_> {
        let row = connections(&merged).into_iter().find(|row| row.client.ends_with(port)).unwrap();
        assert_eq!(row.protocol, "shuffle");
        let mine =
            merged.joined.messages.iter().filter(|m| m.connection == row.connection && m.from_client == from_client);
        let mut mine: Vec<_> = mine.collect();
        mine.sort_by_key(|message| message.offset);
        mine
    };
    let stated = of(":40001", false);
    assert_eq!(stated.iter().map(|m| m.bytes as usize).collect::<Vec<_>>(), plain);
    assert!(stated.iter().all(|message| message.evidence != "shared"), "{stated:?}");

    let asked: Vec<_> = of(":40000", true).iter().map(|m| (m.kind, m.name, m.reduce)).collect();
    assert_eq!(asked, [(Sasl, "tls", None), (ShuffleRequest, "/mapOutput", Some(3)), (Sasl, "tls", None)]);
    let answered = of(":40000", false);
    let kinds: Vec<_> = answered.iter().map(|m| (m.kind, m.map, m.app_bytes)).collect();
    assert_eq!(
        kinds,
        [
            (Sasl, None, 0),
            (ShuffleResponse, Some(MAPS[0]), 200_000),
            (ShuffleResponse, Some(MAPS[1]), 300_000),
            (Sasl, None, 0)
        ]
    );
    // Encryption counts with what it carries: sizes are those of the wire.
    for (message, bytes) in answered[1..].iter().zip(secret) {
        assert_eq!((message.bytes, message.evidence), (bytes as u64, "jvm"));
    }
}

#[test]
fn the_shuffle_without_payload_is_cut_by_the_sizes_of_its_outputs() {
    for reported_by_server in [true, false] {
        let mut world = private(&["w1", "w2"]);
        let parts = shuffle(&mut world, 40_000, false, reported_by_server);
        let merged = world.merged();
        assert_bytes_are_conserved(&merged);
        let answered = messages(&merged, false);
        assert_eq!(
            answered.iter().map(|m| m.bytes as usize).collect::<Vec<_>>(),
            parts,
            "server: {reported_by_server}"
        );
        assert!(answered.iter().all(|m| m.evidence == "jvm" && m.reduce == Some(3)));
        assert!(messages(&merged, true).iter().all(|m| m.kind == ShuffleRequest));
    }
}

fn block(talk: &Talk, op: &str, block: u64, [t0, t1]: [u64; 2], length: u64, bytes: u64) -> JvmRecord {
    JvmRecord::Block {
        t0,
        t1,
        th: 9,
        op: op.into(),
        block,
        offset: 0,
        length,
        bytes,
        client: "DFSClient_attempt_1700000000000_0001_r_000001_0_77_1".into(),
        local: talk.server.to_string(),
        remote: talk.client.to_string(),
        mirror: String::new(),
        read_wait: 0,
        write_wait: 0,
    }
}

/// Two reads one after the other; whatever both sides say is `dressed`.
fn two_reads(world: &mut World, dress: impl Fn(&[u8]) -> Vec<u8>, opening: &[u8]) -> [Vec<usize>; 2] {
    let mut talk = world.connect((0, 40_000), (1, 9866), [100, 200], at(0));
    let (mut asked, mut answered, mut stated) = (Vec::new(), Vec::new(), Vec::new());
    if !opening.is_empty() {
        world.say(&mut talk, true, at(1), opening);
        world.say(&mut talk, false, at(2), &[0x11; 90]);
        asked.push(opening.len());
        answered.push(90);
    }
    for (number, data) in [(0, 150_000), (1, 40_000)] {
        let t = 10 + number * 100;
        let (request, status) = (dress(&[0; 180]), dress(&read_status()));
        let (response, packets) = (dress(&read_response()), dress(&data_packets(0, data, 65_536)));
        world.say(&mut talk, true, at(t), &request);
        world.say(&mut talk, false, at(t + 2), &response);
        let end = world.say(&mut talk, false, at(t + 3), &packets);
        world.say(&mut talk, true, end + MS, &status);
        let times = [at(t) + DELAY_NS + STAMP_NS, end + 2 * MS];
        stated.push(block(&talk, "read", 500 + number, times, data as u64, data as u64));
        asked.extend([request.len(), status.len()]);
        answered.extend([response.len(), packets.len()]);
    }
    jvms(world, &talk, (50, "YarnChild"), (60, "DataNode"), (Vec::new(), stated));
    [asked, answered]
}

#[test]
fn reads_are_told_by_the_data_node_alone() {
    for encrypted in [false, true] {
        let mut world = private(&["w1", "w2"]);
        let mut opening = Vec::new();
        if encrypted {
            world.keep = (256, 64);
            opening = [vec![0xde, 0xad, 0xbe, 0xef], vec![0x22; 60]].concat();
        }
        // Each write is wrapped: 4 bytes of length and 16 that prove it.
        let dress = |plain: &[u8]| if encrypted { [plain, &[0x99; 20]].concat() } else { plain.to_vec() };
        let [asked, answered] = two_reads(&mut world, dress, &opening);
        let merged = world.merged();
        assert_bytes_are_conserved(&merged);
        assert_eq!(connections(&merged)[0].protocol, "data-transfer");
        let lengths =
            |from_client| -> Vec<_> { messages(&merged, from_client).iter().map(|m| m.bytes as usize).collect() };
        assert_eq!([lengths(true), lengths(false)], [asked, answered], "encrypted: {encrypted}");
        let kinds = |from_client| -> Vec<_> { messages(&merged, from_client).iter().map(|m| m.kind).collect() };
        let skip = usize::from(encrypted);
        assert_eq!(kinds(true)[skip..], [BlockRequest, BlockStatus, BlockRequest, BlockStatus]);
        assert_eq!(kinds(false)[skip..], [BlockResponse, BlockData, BlockResponse, BlockData]);
        assert!(kinds(true)[..skip].iter().chain(&kinds(false)[..skip]).all(|kind| *kind == Sasl));
        assert!(messages(&merged, false)[skip..].iter().all(|m| m.evidence == "jvm"), "encrypted: {encrypted}");
        let data: Vec<_> =
            messages(&merged, false).iter().filter(|m| m.kind == BlockData).map(|m| (m.block, m.app_bytes)).collect();
        let blocks = [(Some(500), 150_000), (Some(501), 40_000)];
        if encrypted {
            // How packets lie is not known then: the JVM's figure is within a few bytes of them.
            assert_eq!(data.iter().map(|(block, _)| *block).collect::<Vec<_>>(), blocks.map(|(block, _)| block));
        } else {
            assert_eq!(data, blocks);
        }
        let attempt = messages(&merged, true).iter().rfind(|m| m.kind == BlockRequest).unwrap().attempt;
        assert_eq!(attempt, Some("attempt_1700000000000_0001_r_000001_0"));
    }
}

/// What DIGEST-MD5 makes of a write with 3DES, as Hadoop frames it: its length, 10 bytes of proof, filled up to blocks of 8, and
/// 6 bytes of type and number.
fn token(bytes: usize) -> Vec<u8> {
    let length = ((bytes + 10) / 8 + 1) * 8 + 6;
    [(length as u32).to_be_bytes().to_vec(), vec![0x99; length]].concat()
}

/// What 3.4 wraps: the response to a reader piece by piece and flushed at once, packets of 4 KiB of data one by one, all else
/// whole. The lengths of the tokens are those that were recorded.
fn wrapped(plain: &[u8]) -> Vec<u8> {
    if plain == read_response() {
        return [1, 8, 2, 2, 2].into_iter().flat_map(token).collect();
    }
    plain.chunks(4096 + 32 + 33).flat_map(|packet| token(packet.len())).collect()
}

#[test]
fn reads_wrapped_by_3des_are_cut_where_tokens_end() {
    assert_eq!([1, 4161].map(|bytes| token(bytes).len()), [4 + 22, 4 + 4182]);
    let mut world = private(&["w1", "w2"]);
    let opening = [vec![0xde, 0xad, 0xbe, 0xef], vec![0x22; 390]].concat();
    let [asked, answered] = two_reads(&mut world, wrapped, &opening);
    assert_eq!(answered[1], 138);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    for (from_client, wanted) in [(true, asked), (false, answered)] {
        let messages = messages(&merged, from_client);
        assert_eq!(messages.iter().map(|m| m.bytes as usize).collect::<Vec<_>>(), wanted);
        assert!(messages.iter().all(|m| m.evidence != "shared"), "{messages:?}");
    }
    let data: Vec<_> = messages(&merged, false).into_iter().filter(|m| m.kind == BlockData).collect();
    assert_eq!(data.iter().map(|m| m.block).collect::<Vec<_>>(), [Some(500), Some(501)]);
}

/// A write of 100,000 bytes: request, response, data, acknowledgements.
fn write(world: &mut World, port: u16) -> (Talk, [usize; 4]) {
    let mut talk = world.connect((0, port), (1, 9866), [100, 200], at(0));
    let data = data_packets(0, 100_000, 64_512);
    world.say(&mut talk, true, at(10), &[0; 400]);
    world.say(&mut talk, false, at(12), &[0; 5]);
    world.say(&mut talk, true, at(14), &data);
    world.say(&mut talk, false, at(16), &[0; 19]);
    world.say(&mut talk, false, at(17), &[0; 19]);
    (talk, [400, data.len(), 5, 38])
}

#[test]
fn a_write_is_told_by_its_record_or_else_by_those_of_other_writes() {
    let mut world = private(&["w1", "w2"]);
    let (talk, lengths) = write(&mut world, 40_000);
    // On the second one no JVM says a word: its DataNode is known by the first.
    let (silent, _) = write(&mut world, 40_001);
    let record = block(&talk, "write", 700, [at(10) + DELAY_NS + STAMP_NS, at(18)], 0, 100_000);
    jvms(&mut world, &talk, (50, "DataNode"), (60, "DataNode"), (Vec::new(), vec![record]));
    world.own(&silent, at(0), (50, "DataNode"), (60, "DataNode"));
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    for (row, block, evidence) in [(0, Some(700), "jvm"), (1, None, "headers")] {
        let mut mine: Vec<_> =
            merged.joined.messages.iter().filter(|message| message.connection.index() == row).collect();
        mine.sort_by_key(|message| (!message.from_client, message.offset));
        let kinds: Vec<_> = mine.iter().map(|m| (m.kind, m.bytes as usize)).collect();
        let wanted = [BlockRequest, BlockData, BlockResponse, BlockAck].into_iter().zip(lengths);
        assert_eq!(kinds, wanted.collect::<Vec<_>>());
        assert!(mine.iter().all(|m| m.block == block && m.evidence == evidence), "{mine:?}");
        assert_eq!(mine[1].app_bytes, 100_000);
    }
}

#[test]
fn a_web_page_is_what_both_jvms_are_silent_about() {
    let mut world = private(&["w1", "m1"]);
    let mut talk = world.connect((0, 40_000), (1, 9870), [100, 200], at(0));
    for (t, asked, answered) in [(1, 200, 5_000), (20, 180, 900)] {
        world.say(&mut talk, true, at(t), &vec![0; asked]);
        world.say(&mut talk, false, at(t + 2), &vec![0; answered]);
    }
    let without_owners = world.merged();
    assert!(without_owners.joined.messages.iter().all(|message| message.kind == MessageKind::Unknown));
    world.own(&talk, at(0), (50, "Client"), (60, "NameNode"));
    let mute = world.merged();
    assert!(mute.joined.messages.iter().all(|message| message.kind == MessageKind::Unknown), "it may be mute for good");
    let elsewhere = world.talk((0, 40_001), (1, 8020), [1, 2]);
    let (_, served) = records(&elsewhere, &[Call { number: 1, method: "fsync", asked: at(5), answered: at(6) }]);
    world.hosts[1].jvms[0].1.extend(served);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    assert_eq!(connections(&merged)[0].protocol, "http");
    assert_eq!(cuts(&merged, true), wanted(&[(HttpRequest, 0, 200, "headers"), (HttpRequest, 1, 180, "headers")]));
    assert_eq!(cuts(&merged, false), wanted(&[(HttpResponse, 0, 5_000, "headers"), (HttpResponse, 1, 900, "headers")]));
}
