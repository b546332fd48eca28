//! Hadoop RPC is cut into calls, also where most of them lies beyond the kept bytes.

use crate::world::wire::{rpc_preamble, rpc_request, rpc_response};
use crate::world::{MS, Talk, World, assert_bytes_are_conserved, at, connections, messages};
use trace::jvm::JvmRecord;
use trace::rows::MessageKind::{RpcConnect, RpcPing, RpcRequest, RpcResponse, Sasl};

const CONTEXT: i64 = -3;
const PING: i64 = -4;
const NEGOTIATE: i64 = -33;

fn opened() -> (World, Talk) {
    let mut world = World::new(&["w1", "m1"]);
    let talk = world.connect((0, 40_000), (1, 8020), [100, 200], at(0));
    (world, talk)
}

#[test]
fn calls_and_responses_have_their_names_and_ids() {
    let (mut world, mut talk) = opened();
    let mut first = rpc_preamble();
    first.extend(rpc_request(NEGOTIATE, "", 20));
    world.say(&mut talk, true, at(1), &first);
    world.say(&mut talk, false, at(2), &rpc_response(NEGOTIATE, 30));
    let mut second = rpc_request(CONTEXT, "", 40);
    second.extend(rpc_request(0, "getFileInfo", 25));
    world.say(&mut talk, true, at(3), &second);
    world.say(&mut talk, false, at(4), &rpc_response(0, 60));
    world.say(&mut talk, true, at(5), &rpc_request(PING, "", 0));
    world.say(&mut talk, true, at(6), &rpc_request(1, "create", 30));
    world.say(&mut talk, false, at(7), &rpc_response(1, 600));
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    assert_eq!(connections(&merged)[0].protocol, "rpc");
    let asked: Vec<_> = messages(&merged, true).iter().map(|m| (m.kind, m.call, m.name)).collect();
    let wanted = [
        (RpcConnect, 0, ""),
        (Sasl, NEGOTIATE, ""),
        (RpcConnect, CONTEXT, ""),
        (RpcRequest, 0, "getFileInfo"),
        (RpcPing, PING, ""),
        (RpcRequest, 1, "create"),
    ];
    assert_eq!(asked, wanted);
    let answered: Vec<_> = messages(&merged, false).iter().map(|m| (m.kind, m.call, m.name)).collect();
    assert_eq!(answered, [(Sasl, NEGOTIATE, ""), (RpcResponse, 0, "getFileInfo"), (RpcResponse, 1, "create")]);
    assert!(merged.joined.messages.iter().all(|m| m.evidence == "framing"));
}

#[test]
fn a_call_over_many_segments_is_one_message() {
    let (mut world, mut talk) = opened();
    world.keep = (256, 256);
    world.say(&mut talk, true, at(1), &rpc_preamble());
    let report = rpc_request(5, "blockReport", 100_000);
    let arrived = world.say(&mut talk, true, at(2), &report);
    world.say(&mut talk, true, at(50), &rpc_request(6, "sendHeartbeat", 10));
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let asked = messages(&merged, true);
    assert_eq!(asked.len(), 3);
    assert_eq!((asked[1].name, asked[1].bytes), ("blockReport", report.len() as u64));
    assert_eq!((asked[1].sent_ns, asked[1].delivered_ns), (at(2), arrived));
    assert_eq!((asked[2].name, asked[2].call), ("sendHeartbeat", 6));
}

#[test]
fn hidden_calls_get_their_ids_from_the_jvm() {
    let (mut world, mut talk) = opened();
    world.say(&mut talk, true, at(1), &rpc_preamble());
    world.say(&mut talk, true, at(2), &rpc_request(1, "getFileInfo", 10));
    // Two calls in one segment of which only the first one's head was kept, as two threads share a connection.
    let mut both = rpc_request(2, "create", 300);
    both.extend(rpc_request(3, "mkdirs", 200));
    world.say(&mut talk, true, at(500), &both);
    world.say(&mut talk, true, at(1000), &rpc_request(4, "rename", 10));
    let served = |call: i64, method: &str, ms: u64| JvmRecord::Rpc {
        received: at(ms) + MS,
        begin: at(ms) + 2 * MS,
        end: at(ms) + 3 * MS,
        responded: at(ms) + 3 * MS,
        th: 7,
        call,
        client: "07".repeat(16),
        method: method.into(),
        local: "10.0.0.2:8020".into(),
        remote: "10.0.0.1:40000".into(),
        context: String::new(),
        queued: 0,
        completed: Vec::new(),
        assigned: Vec::new(),
    };
    let records = vec![
        served(1, "getFileInfo", 2),
        served(2, "create", 500),
        served(3, "mkdirs", 500),
        served(4, "rename", 1000),
    ];
    world.jvm(1, 77, "NameNode", records);
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let asked: Vec<_> = messages(&merged, true).iter().map(|m| (m.call, m.name, m.evidence)).collect();
    let wanted = [
        (0, "", "framing"),
        (1, "getFileInfo", "framing"),
        (2, "create", "framing"),
        (3, "mkdirs", "jvm"),
        (4, "rename", "framing"),
    ];
    assert_eq!(asked, wanted);
    // And the JVM's spans are about these messages.
    let spans: Vec<_> = merged.joined.spans.iter().map(|span| (span.name, span.request.is_some())).collect();
    assert_eq!(spans, [("getFileInfo", true), ("create", true), ("mkdirs", true), ("rename", true)]);
}

#[test]
fn a_connection_without_its_begin_is_understood_from_the_next_call_on() {
    let mut world = World::new(&["w1", "m1"]);
    let mut talk = world.talk((0, 40_000), (1, 8031), [100, 200]);
    for call in 100..110 {
        world.say(&mut talk, true, at(call * 10), &rpc_request(call as i64, "nodeHeartbeat", 200));
        world.say(&mut talk, false, at(call * 10 + 2), &rpc_response(call as i64, 30));
    }
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    assert!(merged.joined.messages.iter().all(|m| m.name == "nodeHeartbeat"));
    assert_eq!(merged.joined.messages.len(), 20);
}

#[test]
fn a_gap_costs_what_is_in_it_and_no_more() {
    let (mut world, mut talk) = opened();
    world.say(&mut talk, true, at(1), &rpc_preamble());
    for call in 0..10u64 {
        let before: Vec<usize> = world.hosts.iter().map(|host| host.eth0.len()).collect();
        world.say(&mut talk, true, at(10 + call * 10), &rpc_request(call as i64, "getBlockLocations", 50));
        if call == 4 {
            world.hosts.iter_mut().zip(before).for_each(|(host, before)| host.eth0.truncate(before));
        }
    }
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    let whole =
        messages(&merged, true).iter().filter(|m| m.evidence == "framing" && m.name == "getBlockLocations").count();
    assert_eq!(whole, 9);
}

#[test]
fn what_is_no_rpc_is_not_taken_for_it() {
    let mut world = World::new(&["w1", "m1"]);
    let mut talk = world.connect((0, 40_000), (1, 8020), [100, 200], at(0));
    world.say(&mut talk, true, at(1), b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n");
    world.say(&mut talk, false, at(2), b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n");
    let merged = world.merged();
    assert_bytes_are_conserved(&merged);
    assert_eq!(connections(&merged)[0].protocol, "", "a port tells nothing");
    assert!(merged.joined.messages.iter().all(|m| m.kind.as_str() == "unknown"));
}
