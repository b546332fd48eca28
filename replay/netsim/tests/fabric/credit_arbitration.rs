//! Who is next: VL arbitration with its tables, weights and limit, and inputs in turn.

use crate::common::{credit, lab, message, packets};
use netsim::fabric::packet::PacketFabric;
use netsim::network::{Simulation, Token};
use netsim::time::SimTime;

/// In which order a host's link takes `each` packets of 1,024 B on each of `levels`, which all wait from the start.
fn order(keys: &str, levels: &[u8], each: u64) -> Vec<u8> {
    let text = format!(
        "topology = {{ shape = \"single-switch\" }}\nmtu = \"1KiB\"\nheaders = \"0B\"\ncredits = 1000\nvls = 3\n{keys}"
    );
    let mut fabric = credit(&text, &lab(1, 2));
    for level in levels {
        fabric.send(SimTime::ZERO, &crate::common::with_token(message(0, 1, each * 1_024, *level), (*level).into()));
    }
    packets(&mut fabric).iter().map(|packet| packet.token.0 as u8).collect()
}

#[test]
fn without_tables_lanes_take_turns() {
    assert_eq!(order("", &[2, 0, 1], 3), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert_eq!(order("", &[2, 1], 2), [1, 2, 1, 2]);
}

#[test]
fn weights_are_shares() {
    // 16 credits a packet: 40 are 3 packets, 16 one, 1 one.
    let keys = "arbitration = { low = [[1, 40], [0, 16], [2, 1]] }";
    assert_eq!(order(keys, &[0, 1, 2], 6)[..10], [1, 1, 1, 0, 2, 1, 1, 1, 0, 2]);
    // A lane may stand in a table twice.
    let keys = "arbitration = { low = [[1, 1], [0, 1], [1, 1], [2, 1]] }";
    assert_eq!(order(keys, &[0, 1, 2], 4)[..8], [1, 0, 1, 2, 1, 0, 1, 2]);
}

#[test]
fn the_high_table_comes_first_up_to_its_limit() {
    let tables = |limit: u8| format!("arbitration = {{ high = [[2, 255]], low = [[0, 1], [1, 1]], limit = {limit} }}");
    assert_eq!(order(&tables(255), &[0, 1, 2], 5), [2, 2, 2, 2, 2, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    assert_eq!(order(&tables(0), &[0, 1, 2], 4), [2, 0, 2, 1, 2, 0, 2, 1, 0, 1, 0, 1]);
    // 4,096 B are 4 packets.
    assert_eq!(order(&tables(1), &[0, 1, 2], 6)[..10], [2, 2, 2, 2, 0, 2, 2, 1, 0, 1]);
}

#[test]
fn a_lane_without_credits_lets_others_pass() {
    // On VL 0 host 0 gets a third of the link to host 2; VL 1 of its own link takes what that leaves.
    let text = "topology = { shape = \"single-switch\" }\nmtu = \"64B\"\nheaders = \"0B\"\ncredits = 8\nvls = 2";
    let mut fabric = credit(text, &lab(1, 5));
    for source in [0, 1, 4] {
        fabric.send(SimTime::ZERO, &message(source, 2, 64 * 100, 0));
    }
    fabric.send(SimTime::ZERO, &message(0, 3, 64 * 100, 1));
    let packets = packets(&mut fabric);
    let last = |destination: u32| {
        packets
            .iter()
            .filter(|packet| packet.destination.0 == destination)
            .map(|packet| packet.arrived.0)
            .max()
            .unwrap()
    };
    // About 150 flit times and 300.
    assert!(last(3) * 10 < last(2) * 6, "{} {}", last(3), last(2));
}

#[test]
fn inputs_take_turns_behind_the_one_before() {
    let text = "topology = { shape = \"single-switch\" }\nmtu = \"64B\"\nheaders = \"0B\"\ncredits = 4";
    let mut fabric = credit(text, &lab(1, 5));
    for source in [3, 1, 0, 2] {
        let sent = message(source, 4, 64 * 10, 0);
        fabric.send(SimTime::ZERO, &crate::common::with_token(sent, source.into()));
    }
    let mut packets = packets(&mut fabric);
    packets.sort_by_key(|packet| packet.arrived);
    let order: Vec<u64> = packets.iter().map(|packet| packet.token.0).collect();
    assert_eq!(order, (0..40).map(|i| i % 4).collect::<Vec<_>>());
}

#[test]
fn a_switch_of_a_hundred_ports_serves_all_of_them() {
    let text = "topology = { shape = \"single-switch\" }\nmtu = \"64B\"\nheaders = \"0B\"\ncredits = 2\nvls = 2";
    let mut fabric = credit(text, &lab(1, 150));
    for source in 0..149 {
        for level in 0..2 {
            let mut sent = message(source, 149, 64 * 3, level);
            sent.token = Token(u64::from(source));
            fabric.send(SimTime::ZERO, &sent);
        }
    }
    let mut packets = packets(&mut fabric);
    packets.sort_by_key(|packet| packet.arrived);
    let order: Vec<u64> = packets.iter().map(|packet| packet.token.0).collect();
    // Two lanes take turns, and on each of them the inputs do.
    assert_eq!(order, (0..149 * 6).map(|i| i / 2 % 149).collect::<Vec<_>>());
}

/// In which order packets of hosts 0, 1 and 2 reach host 3, by their sources. At 0 host 2 sends 16 flits, which keep the link to
/// host 3 busy from 1019.2 ns on until 1838.4 ns. Meanwhile come four packets of 4 flits from host 0, handed over at `first`, and one of
/// `bytes` from host 1, handed over at `second` (ns).
fn order_of_inputs(rule: &str, first: u64, second: u64, bytes: u64) -> Vec<u64> {
    let text = format!(
        "topology = {{ shape = \"single-switch\" }}\nmtu = \"1KiB\"\nheaders = \"0B\"\nstart = \"whole-packet\"\n\
         input_arbitration = \"{rule}\""
    );
    let mut fabric = credit(&text, &lab(1, 4));
    let mut sends = vec![(0, 2, 1_024), (second, 1, bytes)];
    sends.extend([(first, 0, 256); 4]);
    sends.sort_unstable();
    for (at, source, bytes) in sends {
        fabric.run_before(SimTime::from_ns(at));
        let sent = crate::common::with_token(message(source, 3, bytes, 0), source.into());
        fabric.send(SimTime::from_ns(at), &sent);
    }
    let mut packets = packets(&mut fabric);
    packets.sort_by_key(|packet| packet.arrived);
    packets.iter().map(|packet| packet.token.0).collect()
}

#[test]
fn each_input_arbitration_takes_whom_it_names() {
    // The packet of host 1 has 8 flits, left earlier than those of host 0, and asks later.
    let long = |rule: &str| order_of_inputs(rule, 950, 900, 512);
    assert_eq!(long("round-robin"), [2, 0, 1, 0, 0, 0]);
    assert_eq!(long("fifo"), [2, 0, 1, 0, 0, 0]);
    // 16 flits against 8, 12 against 8, then 8 each: behind the queue of host 0 comes that of host 1.
    assert_eq!(long("longest"), [2, 0, 0, 1, 0, 0]);
    assert_eq!(long("age"), [2, 1, 0, 0, 0, 0]);
    // Of one flit it left after the first of host 0, and asks earlier.
    let short = |rule: &str| order_of_inputs(rule, 900, 950, 64);
    assert_eq!(short("round-robin"), [2, 0, 1, 0, 0, 0]);
    assert_eq!(short("fifo"), [2, 1, 0, 0, 0, 0]);
    assert_eq!(short("longest"), [2, 0, 0, 0, 0, 1]);
    assert_eq!(short("age"), [2, 0, 1, 0, 0, 0]);
}

#[test]
fn random_arbitration_gives_each_input_its_share() {
    let text = "topology = { shape = \"single-switch\" }\nmtu = \"64B\"\nheaders = \"0B\"\ncredits = 50\n\
                input_arbitration = \"random\"";
    let mut fabric = credit(text, &lab(1, 5));
    for source in 0..4 {
        let sent = message(source, 4, 64 * 1_000, 0);
        fabric.send(SimTime::ZERO, &crate::common::with_token(sent, source.into()));
    }
    let mut packets = packets(&mut fabric);
    packets.sort_by_key(|packet| packet.arrived);
    let order: Vec<u64> = packets.iter().map(|packet| packet.token.0).take(2_000).collect();
    for source in 0..4 {
        // 500 each, standard deviation 19; the same twice in a row 125 times each.
        let taken = order.iter().filter(|token| **token == source).count();
        assert!((420..580).contains(&taken), "input {source}: {taken}");
        let again = order.windows(2).filter(|two| two[0] == source && two[1] == source).count();
        assert!((75..175).contains(&again), "input {source} again: {again}");
    }
}

#[test]
fn all_inputs_of_a_large_switch_are_looked_at() {
    // A packet of one flit from each host, the last host's first and 1 ns later the next one's: after the first of them all ask while
    // others are sent, which takes 51.2 ns each.
    let order = |rule: &str| {
        let text = format!(
            "topology = {{ shape = \"single-switch\" }}\nmtu = \"64B\"\nheaders = \"0B\"\ninput_arbitration = \"{rule}\""
        );
        let mut fabric = credit(&text, &lab(1, 150));
        for source in (0..149).rev() {
            let at = SimTime::from_ns(u64::from(148 - source));
            fabric.run_before(at);
            fabric.send(at, &crate::common::with_token(message(source, 149, 64, 0), source.into()));
        }
        let mut packets = packets(&mut fabric);
        packets.sort_by_key(|packet| packet.arrived);
        packets.iter().map(|packet| packet.token.0).collect::<Vec<_>>()
    };
    let descending: Vec<u64> = (0..149).rev().collect();
    assert_eq!(order("age"), descending);
    assert_eq!(order("fifo"), descending);
    assert_ne!(order("round-robin"), descending);
}
