//! What is read, shuffled, written, and what of it crosses the network.

use std::collections::BTreeMap;

use trace::rows::{MessageKind, MessageRow, TaskKind, Trace};

use super::{run, tasks};

const JOB: &str = "[cluster]\nnodes = 5\nracks = 2\n[hadoop]\ndfs.blocksize = 4194304\n\
    [[job]]\ninput = \"50MiB\"\nreduces = 7\nmap_output = 0.5\nreduce_output = 2.0\n";

fn sum(trace: &Trace, kind: MessageKind, is_counted: impl Fn(&MessageRow) -> bool) -> u64 {
    trace
        .messages
        .iter()
        .filter(|message| message.kind == kind && is_counted(message))
        .map(|message| message.app_bytes)
        .sum()
}

#[test]
fn reduces_fetch_what_maps_write_and_write_their_part_in_copies() {
    let trace = run(JOB);
    let job = &trace.jobs[0];
    assert_eq!(job.hdfs_bytes_read, Some(50 << 20));
    assert_eq!(job.shuffle_bytes, Some(25 << 20), "half of the input, to the byte");
    let written = job.hdfs_bytes_written.unwrap();
    assert!(written.abs_diff(50 << 20) <= 14, "each of 7 parts is rounded: {written}");
    for hop in 1..=3 {
        assert_eq!(sum(&trace, MessageKind::BlockData, |message| message.hop == Some(hop)), written, "copy {hop}");
    }
    assert_eq!(sum(&trace, MessageKind::BlockData, |message| message.hop == Some(4)), 0);
}

#[test]
fn every_reduce_gets_one_output_of_every_map() {
    let trace = run(JOB);
    let mut fetched = BTreeMap::new();
    for message in trace.messages.iter().filter(|message| message.kind == MessageKind::ShuffleResponse) {
        *fetched.entry((message.map.clone().unwrap(), message.reduce.unwrap())).or_insert(0) += 1;
    }
    assert_eq!(fetched.len(), 13 * 7);
    assert!(fetched.values().all(|times| *times == 1));
}

#[test]
fn the_network_carries_what_is_not_local() {
    let trace = run(JOB);
    let host_of: BTreeMap<&str, _> =
        trace.tasks.iter().map(|task| (task.attempt.as_str(), task.host.unwrap())).collect();
    for message in trace.messages.iter().filter(|message| message.kind == MessageKind::ShuffleResponse) {
        let (map, reduce) = (message.map.as_deref().unwrap(), message.attempt.as_deref().unwrap());
        let is_local = host_of[map] == host_of[reduce];
        assert_eq!(trace.connections[message.connection.index()].loopback, is_local);
    }
    // Copies lie on different nodes, the second in another rack than the first, the third in that of the second.
    let rack = |host: trace::ids::HostId| trace.hosts[host.index()].rack.as_str();
    let mut pipelines: BTreeMap<u64, BTreeMap<u32, trace::ids::HostId>> = BTreeMap::new();
    for message in trace.messages.iter().filter(|message| message.kind == MessageKind::BlockData) {
        if let (Some(block), Some(hop)) = (message.block, message.hop) {
            let server = trace.connections[message.connection.index()].server_host;
            pipelines.entry(block).or_default().insert(hop, server);
        }
    }
    assert!(pipelines.len() >= 13);
    for hosts in pipelines.values() {
        let [first, second, third] = [hosts[&1], hosts[&2], hosts[&3]];
        assert!(first != second && second != third && first != third);
        assert_ne!(rack(first), rack(second));
        assert_eq!(rack(second), rack(third));
    }
}

#[test]
fn skewed_parts_are_as_zipf_says_and_add_up() {
    let trace = run(&JOB.replace("reduces = 7", "reduces = 4\nskew = 1.0"));
    let mut parts = BTreeMap::new();
    for message in trace.messages.iter().filter(|message| message.kind == MessageKind::ShuffleResponse) {
        *parts.entry(message.reduce.unwrap()).or_insert(0u64) += message.app_bytes;
    }
    let all: u64 = parts.values().sum();
    assert_eq!(all, 25 << 20);
    // 1, 1/2, 1/3, 1/4 of 25/12.
    for (reduce, share) in [(0, 12.0 / 25.0), (1, 6.0 / 25.0), (2, 4.0 / 25.0), (3, 3.0 / 25.0)] {
        let part = parts[&reduce] as f64 / all as f64;
        assert!((part - share).abs() < 1e-5, "reduce {reduce}: {part}, {share}");
    }
}

#[test]
fn compressed_output_is_smaller_on_disk_and_network_only() {
    let trace = run(&JOB.replace("[[job]]\n", "mapreduce.map.output.compress = true\n[[job]]\ncompressed = 0.25\n"));
    let job = &trace.jobs[0];
    assert!(job.shuffle_bytes.unwrap().abs_diff((25 << 20) / 4) <= 13);
    assert!(job.hdfs_bytes_written.unwrap().abs_diff(50 << 20) < 200);
}

#[test]
fn maps_run_where_their_blocks_lie() {
    let trace = run(JOB);
    let local =
        trace.messages.iter().filter(|message| message.kind == MessageKind::BlockRequest && message.hop.is_none());
    let on_loopback = local.filter(|message| trace.connections[message.connection.index()].loopback).count();
    assert_eq!(on_loopback, tasks(&trace, TaskKind::Map).count(), "with three copies on five nodes each finds one");
}
