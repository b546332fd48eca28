//! A capture of which one file of the agents holds anything at all is merged, byte for byte accounted for, or refused;
//! never a panic.

use crate::world::wire::{rpc_preamble, rpc_request, rpc_response};
use crate::world::{World, assert_bytes_are_conserved, at};
use merger::build::{Silent, merge};

const FILES: [&str; 8] = [
    "packets-eth0.hpk",
    "packets-lo.hpk",
    "sockets.jsonl",
    "jvm-50-500.jsonl",
    "jvm-51-510.jsonl",
    "sniffer.json",
    "dumpingd.json",
    "../truth.json",
];

fn quiet() -> World {
    let mut world = World::new(&["m1", "w1"]);
    world.keep = (256, 64);
    let mut talk = world.connect((1, 40_000), (0, 8020), [100, 200], at(0));
    world.own(&talk, at(0), (50, "DataNode"), (60, "NameNode"));
    world.say(&mut talk, true, at(1), &rpc_preamble());
    world.say(&mut talk, true, at(10), &rpc_request(1, "sendHeartbeat", 30));
    world.say(&mut talk, false, at(11), &rpc_response(1, 30));
    world
}

/// What must hold for any input.
pub fn check(bytes: &[u8]) {
    let Some((&choice, content)) = bytes.split_first() else { return };
    let file = FILES[usize::from(choice) % FILES.len()];
    let folder = tempfile::tempdir().expect("a folder can be made");
    quiet().write(folder.path());
    std::fs::write(folder.path().join("w1").join(file), content).expect("a file can be written");
    if let Ok(merged) = merge(&[folder.path().to_owned()], &Silent) {
        assert_bytes_are_conserved(&merged);
    }
}
