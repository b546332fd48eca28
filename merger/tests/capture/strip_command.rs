//! `merger strip`: a capture to hand on, without payload, without what is not known, and mergeable.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use crate::world::wire::{rpc_preamble, rpc_request, rpc_response};
use crate::world::{World, at};
use serde_json::{Value, json};

fn make_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn strip(capture: &Path, out: &Path) -> Output {
    let arguments = ["strip", capture.to_str().unwrap(), "--out", out.to_str().unwrap(), "--json"];
    Command::new(env!("CARGO_BIN_EXE_merger")).args(arguments).output().unwrap()
}

fn report(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A capture of two hosts, with a manifest, a packed file and files that nobody knows.
fn capture(folder: &Path) {
    let mut world = World::new(&["m1", "w1"]);
    let mut talk = world.connect((1, 40_000), (0, 8020), [100, 200], at(0));
    world.own(&talk, at(0), (50, "DataNode"), (60, "NameNode"));
    world.say(&mut talk, true, at(1), &rpc_preamble());
    world.say(&mut talk, true, at(2), &rpc_request(0, "sendHeartbeat", 30));
    world.say(&mut talk, false, at(3), &rpc_response(0, 30));
    world.write(folder);
    let packets = folder.join("w1/packets-eth0.hpk");
    let packed = zstd::encode_all(fs::read(&packets).unwrap().as_slice(), 3).unwrap();
    fs::write(folder.join("w1/packets-eth0.hpk.zst"), packed).unwrap();
    fs::remove_file(packets).unwrap();
    let manifest = json!({ "payload_bytes": 256, "full_payload_bytes": 64, "earlier_runs": [{ "payload_bytes": 96 }] });
    fs::write(folder.join("m1/sniffer.json"), manifest.to_string()).unwrap();
    fs::write(folder.join("m1/eth0.pcapng"), "payload in another format").unwrap();
    fs::create_dir(folder.join("job")).unwrap();
    fs::write(folder.join("job/job_1.jhist"), "history").unwrap();
}

#[test]
fn a_packet_file_that_was_never_begun_is_refused_and_the_others_are_stripped() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("capture"), folder.path().join("stripped"));
    capture(&from);
    // What agents leave that are killed before they have written a header.
    fs::write(from.join("w1/packets-lo.hpk"), "").unwrap();
    fs::write(from.join("m1/packets-lo.hpk"), "HADPKT1\n\0").unwrap();
    fs::write(from.join("m1/packets-eth1.hpk.zst"), zstd::encode_all(&b"HAD"[..], 3).unwrap()).unwrap();
    let output = strip(&from, &to);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let stripped: Value = serde_json::from_slice(&output.stdout).unwrap();
    let refused = stripped["refused"].to_string();
    for name in ["w1/packets-lo.hpk", "m1/packets-lo.hpk", "m1/packets-eth1.hpk.zst"] {
        assert!(refused.contains(name) && !to.join(name).exists(), "{name}: {refused}");
    }
    assert_eq!(stripped["refused"].as_array().unwrap().len(), 3, "{refused}");
    assert!(to.join("w1/packets-eth0.hpk.zst").is_file() && to.join("m1/packets-eth0.hpk").is_file());
    assert!(to.join("job/job_1.jhist").is_file() && stripped["packets"].as_u64() > Some(5), "{stripped}");
}

fn all_bytes(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(all_bytes(&path));
        } else if path.extension().is_some_and(|ending| ending == "zst") {
            all.extend(zstd::decode_all(fs::read(path).unwrap().as_slice()).unwrap());
        } else {
            all.extend(fs::read(path).unwrap());
        }
    }
    all
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn payload_and_unknown_files_stay_behind_and_the_rest_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("capture"), folder.path().join("out"));
    capture(&from);
    assert!(holds(&all_bytes(&from), "hrpc"));
    let stated = report(&strip(&from, &to));
    assert_eq!(stated["hosts"], 2);
    assert!(stated["payload_bytes"].as_u64().unwrap() > 100 && stated["packets"].as_u64().unwrap() > 10);
    assert!(stated["left_out"][0].as_str().unwrap().ends_with("m1/eth0.pcapng"));
    let left = all_bytes(&to);
    for word in ["hrpc", "ClientProtocol", "payload in another format"] {
        assert!(!holds(&left, word), "{word} is still there");
    }
    for kept in ["job/job_1.jhist", "w1/packets-eth0.hpk.zst", "m1/packets-eth0.hpk"] {
        assert!(to.join(kept).is_file(), "{kept}");
    }
    let manifest: Value = serde_json::from_slice(&fs::read(to.join("m1/sniffer.json")).unwrap()).unwrap();
    assert_eq!((&manifest["payload_bytes"], &manifest["full_payload_bytes"]), (&json!(0), &json!(0)));
    assert_eq!(manifest["earlier_runs"][0]["payload_bytes"], 0);
    let again = folder.path().join("again");
    assert_eq!(report(&strip(&to, &again))["payload_bytes"], 0, "there is nothing left to take out");
    assert_eq!(fs::read(to.join("m1/packets-eth0.hpk")).unwrap(), fs::read(again.join("m1/packets-eth0.hpk")).unwrap());
}

#[test]
fn links_and_fifos_are_refused_and_named_and_the_rest_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("capture"), folder.path().join("out"));
    capture(&from);
    let secret = folder.path().join("secret");
    fs::write(&secret, "for root alone").unwrap();
    let users = from.join("w1/jvm/1001");
    fs::create_dir_all(&users).unwrap();
    fs::rename(from.join("w1/jvm-50-500.jsonl"), users.join("jvm-50-500.jsonl")).unwrap();
    let odd = [
        "w1/jvm-9-1.jsonl",
        "w1/jvm/1001/jvm-9-2.jsonl",
        "w1/jvm/1001/jvm-9-3.jsonl",
        "job/job_2.jhist",
        "w1/ports.json",
    ];
    for link in [odd[0], odd[1], odd[3], odd[4]] {
        symlink(&secret, from.join(link)).unwrap();
    }
    // A second name of a file that others must not read: what a link is where the system lets users make them.
    fs::hard_link(&secret, from.join(odd[2])).unwrap();
    make_fifo(&from.join("m1/jvm-9-4.jsonl"));
    let output = strip(&from, &to);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let stated: Value = serde_json::from_slice(&output.stdout).unwrap();
    let refused: Vec<&str> =
        stated["refused"].as_array().unwrap().iter().map(|stated| stated.as_str().unwrap()).collect();
    assert_eq!(refused.len(), 6, "{refused:?}");
    for name in odd.iter().chain(&["m1/jvm-9-4.jsonl"]) {
        assert!(refused.iter().any(|stated| stated.contains(name)), "{name}: {refused:?}");
        assert!(!to.join(name).exists());
    }
    assert!(!holds(&all_bytes(&to), "for root alone"));
    assert!(to.join("w1/jvm/1001/jvm-50-500.jsonl").is_file() && to.join("job/job_1.jhist").is_file());
}

#[test]
fn what_cannot_be_stripped_is_refused_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("capture"), folder.path().join("out"));
    capture(&from);
    let refused = |from: &Path, to: &Path, word: &str| {
        let output = strip(from, to);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(word) && !said.contains("panicked"), "{said}");
    };
    refused(&folder.path().join("nowhere"), &to, "nowhere");
    refused(&from, &from, "not empty");
    fs::write(from.join("m1/packets-lo.hpk"), "something else").unwrap();
    refused(&from, &to, "packets-lo.hpk");
    fs::remove_file(from.join("m1/packets-lo.hpk")).unwrap();
    fs::write(from.join("w1/manifest.json"), "{}").unwrap();
    refused(&from, &folder.path().join("other"), "manifest.json");
}
