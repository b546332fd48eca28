//! Bad captures give a clear error or a counted loss, never a panic.

use std::fs;
use std::path::{Path, PathBuf};

use crate::world::wire::{
    data_packets, map_output, read_block, read_response, rpc_preamble, rpc_request, rpc_response, shuffle_head,
    shuffle_request,
};
use crate::world::{World, assert_bytes_are_conserved, at, connections};
use merger::build::{Silent, merge};
use merger::error::MergeError;
use proptest::prelude::*;

fn busy() -> World {
    let mut world = World::new(&["m1", "w1", "w2"]);
    world.keep = (256, 64);
    let mut talk = world.connect((1, 40_000), (0, 8020), [100, 200], at(0));
    world.own(&talk, at(0), (50, "DataNode"), (60, "NameNode"));
    world.say(&mut talk, true, at(1), &rpc_preamble());
    for call in 0..20 {
        world.say(&mut talk, true, at(10 + call * 10), &rpc_request(call as i64, "sendHeartbeat", 30));
        world.say(&mut talk, false, at(11 + call * 10), &rpc_response(call as i64, 30));
    }
    let mut talk = world.connect((1, 41_000), (2, 9866), [100, 200], at(20));
    world.own(&talk, at(20), (70, "YarnChild"), (80, "DataNode"));
    world.say(&mut talk, true, at(21), &read_block(1, "DFSClient_attempt_1_0001_m_000000_0_1_1", 0, 100_000));
    world.say(&mut talk, false, at(22), &[read_response(), data_packets(0, 100_000, 65_536)].concat());
    let mut talk = world.connect((2, 42_000), (1, 13_562), [100, 200], at(30));
    let body = map_output("attempt_1_0001_m_000000_0", 0, 20_000);
    world.say(&mut talk, true, at(31), &shuffle_request(0, &["attempt_1_0001_m_000000_0".to_owned()]));
    world.say(&mut talk, false, at(32), &[shuffle_head(body.len()), body].concat());
    world
}

fn merge_one(path: &Path) -> Result<merger::merged::Merged, MergeError> {
    merge(&[path.to_owned()], &Silent)
}

#[test]
fn a_missing_folder_is_named() {
    let error = merge_one(Path::new("/nowhere/at/all")).unwrap_err();
    assert!(matches!(error, MergeError::Io { .. }) && error.to_string().contains("/nowhere/at/all"), "{error}");
}

#[test]
fn a_folder_that_is_no_capture_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("w1")).unwrap();
    let error = merge_one(folder.path()).unwrap_err();
    assert!(matches!(error, MergeError::NoHosts { .. }) && error.to_string().contains("packets-"), "{error}");
}

#[test]
fn an_empty_capture_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    World::new(&["w1", "w2"]).write(folder.path());
    let error = merge_one(folder.path()).unwrap_err();
    assert!(matches!(error, MergeError::NoPackets { .. }), "{error}");
    for empty in ["packets-eth0.hpk", "packets-lo.hpk", "sockets.jsonl"] {
        fs::write(folder.path().join("w1").join(empty), b"").unwrap();
    }
    assert!(matches!(merge_one(folder.path()).unwrap_err(), MergeError::NoPackets { .. }));
}

#[test]
fn one_host_alone_is_merged() {
    let folder = tempfile::tempdir().unwrap();
    busy().write(folder.path());
    let merged = merge_one(&folder.path().join("w1")).unwrap();
    assert_bytes_are_conserved(&merged);
    assert_eq!(merged.joined.connections.len(), 3);
    assert_eq!(merged.joined.hosts.iter().filter(|host| host.captured).count(), 1);
}

#[test]
fn several_captures_of_one_cluster_are_one() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let world = busy();
    world.write(folders[0].path());
    let mut later = World::new(&["m1", "w1", "w2"]);
    let mut talk = later.connect((1, 50_000), (2, 9866), [1, 2], at(100_000));
    later.say(&mut talk, true, at(100_001), &[1; 10]);
    later.write(folders[1].path());
    let paths: Vec<PathBuf> = folders.iter().map(|folder| folder.path().to_owned()).collect();
    let merged = merge(&paths, &Silent).unwrap();
    assert_bytes_are_conserved(&merged);
    assert_eq!((merged.joined.hosts.len(), merged.joined.connections.len()), (3, 4));
}

#[test]
fn what_is_there_twice_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    busy().write(folder.path());
    let once = merge_one(folder.path()).unwrap();
    let path = folder.path().join("w1/packets-eth0.hpk");
    fs::write(path.with_extension("hpk.zst"), zstd::encode_all(&fs::read(&path).unwrap()[..], 3).unwrap()).unwrap();
    let twice = merge(&[folder.path().to_owned(), folder.path().join("w1")], &Silent).unwrap();
    assert_eq!(connections(&twice), connections(&once));
}

#[test]
fn two_clusters_are_refused() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    busy().write(folders[0].path());
    let mut other = World::new(&["x1", "x2"]);
    let mut talk = other.connect((0, 40_000), (1, 9866), [1, 2], at(0));
    other.say(&mut talk, true, at(1), &[1; 10]);
    other.write(folders[1].path());
    let paths: Vec<PathBuf> = folders.iter().map(|folder| folder.path().to_owned()).collect();
    let error = merge(&paths, &Silent).unwrap_err();
    assert!(matches!(error, MergeError::Clash { .. }) && error.to_string().contains("different clusters"), "{error}");

    // The same names with other addresses.
    let mut same_names = World::new(&["a", "b", "c", "m1", "w1", "w2"]);
    let mut talk = same_names.connect((3, 40_000), (4, 9866), [1, 2], at(0));
    same_names.say(&mut talk, true, at(1), &[1; 10]);
    let folder = tempfile::tempdir().unwrap();
    same_names.write(folder.path());
    let error = merge(&[paths[0].clone(), folder.path().to_owned()], &Silent).unwrap_err();
    assert!(matches!(error, MergeError::SameName { .. }), "{error}");
}

#[test]
fn garbage_in_any_file_is_counted() {
    for file in
        ["packets-eth0.hpk", "packets-lo.hpk", "sockets.jsonl", "jvm-50-500.jsonl", "sniffer.json", "dumpingd.json"]
    {
        let folder = tempfile::tempdir().unwrap();
        busy().write(folder.path());
        fs::write(folder.path().join("w1").join(file), b"garbage\n\x00\xff\xfe more garbage\n{}\n").unwrap();
        let merged = merge_one(folder.path()).unwrap();
        assert_bytes_are_conserved(&merged);
        assert!(
            merged.joined.losses.iter().any(|loss| loss.what().contains(file)),
            "{file}: {:?}",
            merged.joined.losses
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_capture_cut_anywhere_is_read_as_far_as_it_goes(which in 0usize..7, at in 0.0f64..1.0) {
        let file = ["w1/packets-eth0.hpk", "w2/packets-eth0.hpk", "m1/packets-eth0.hpk", "w1/packets-lo.hpk",
                    "w1/jvm-50-500.jsonl", "w2/jvm-80-800.jsonl", "m1/jvm-60-600.jsonl"][which];
        let folder = tempfile::tempdir().unwrap();
        busy().write(folder.path());
        let path = folder.path().join(file);
        let whole = fs::read(&path).unwrap();
        let cut = (whole.len() as f64 * at) as usize;
        fs::write(&path, &whole[..cut]).unwrap();
        let merged = merge_one(folder.path()).unwrap();
        assert_bytes_are_conserved(&merged);
        prop_assert_eq!(merged.joined.connections.len(), 3);
    }

    #[test]
    fn a_packed_capture_cut_anywhere_too(at in 0.0f64..1.0) {
        let folder = tempfile::tempdir().unwrap();
        busy().write(folder.path());
        let path = folder.path().join("w1/packets-eth0.hpk");
        let packed = zstd::encode_all(&fs::read(&path).unwrap()[..], 3).unwrap();
        fs::remove_file(&path).unwrap();
        let cut = (packed.len() as f64 * at) as usize;
        fs::write(path.with_extension("hpk.zst"), &packed[..cut]).unwrap();
        assert_bytes_are_conserved(&merge_one(folder.path()).unwrap());
    }

    #[test]
    fn any_payload_keeps_every_byte(
        pieces in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..600), 0usize..8), 1..30),
        syn in any::<bool>(),
    ) {
        let mut world = World::new(&["w1", "w2"]);
        world.keep = (256, 64);
        let mut talk = if syn {
            world.connect((0, 40_000), (1, 9866), [100, 200], at(0))
        } else {
            world.talk((0, 40_000), (1, 9866), [100, 200])
        };
        let mut t = at(1);
        for (from_client, bytes, prefix) in pieces {
            // Beginnings that look like something, so that the readers get going.
            let mut payload = match prefix {
                0 => rpc_preamble(),
                1 => rpc_request(3, "x", 5),
                2 => rpc_response(3, 5),
                3 => read_block(5, "DFSClient_attempt_1_0001_m_000000_0_1_1", 0, 1000),
                4 => [read_response(), data_packets(0, 700, 512)].concat(),
                5 => shuffle_request(1, &["attempt_1_0001_m_000000_0".to_owned()]),
                6 => shuffle_head(bytes.len() * 3),
                _ => Vec::new(),
            };
            payload.extend(bytes);
            t = world.say(&mut talk, from_client, t + 1_000_000, &payload);
        }
        assert_bytes_are_conserved(&world.merged());
    }

    #[test]
    fn any_headers_keep_every_byte(
        packets in prop::collection::vec((any::<bool>(), any::<u8>(), any::<u32>(), any::<u32>(), 0u32..70_000, any::<u16>()), 1..60),
    ) {
        let mut world = World::new(&["w1", "w2"]);
        let talk = world.talk((0, 40_000), (1, 9866), [1, 2]);
        for (number, (from_client, flags, sequence, acknowledgement, length, window)) in packets.into_iter().enumerate() {
            let t = at(number as u64);
            world.packet(&talk, from_client, t, sequence, flags, &[], window);
            for host in &mut world.hosts {
                if let Some(packet) = host.eth0.last_mut() {
                    packet.acknowledgement = acknowledgement;
                    packet.payload_length = length;
                }
            }
        }
        assert_bytes_are_conserved(&world.merged());
    }
}
