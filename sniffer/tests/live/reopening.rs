//! An interface that goes away and comes back is recorded on, if that was asked for, with a right that is of no use before.

use std::fs;
use std::thread;
use std::time::Duration;

use crate::support::{Agent, Pair, exchange, sh, wait_until};
use crate::traffic::read_with_notes;
use trace::capture_note::CaptureNoteKind;

const SNIFFER: &str = env!("CARGO_BIN_EXE_sniffer");

/// Replaces the veth pair between the namespaces by another one with the same names and addresses. Returns a time at which
/// there was none, nanoseconds since the epoch.
fn replace_interface(pair: &Pair) -> u64 {
    let (l, r) = (&pair.left, &pair.right);
    sh(&format!("ip -n {l} link del eth0"));
    thread::sleep(Duration::from_millis(300));
    let without = trace::agent::now_ns();
    sh(&format!(
        "ip link add eth0 netns {l} type veth peer name eth0 netns {r}
         ip -n {l} addr add {}/24 dev eth0; ip -n {r} addr add {}/24 dev eth0
         for n in {l} {r}; do ip -n $n link set eth0 up; done",
        Pair::LEFT,
        Pair::RIGHT
    ));
    without
}

fn capabilities(agent: &Agent, set: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{}/task", agent.pid())).unwrap();
    let mut all: Vec<String> = tasks
        .map(|task| {
            let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
            status.lines().find_map(|line| line.strip_prefix(set)).unwrap().trim().to_owned()
        })
        .collect();
    all.dedup();
    all
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn an_interface_that_comes_back_is_recorded_on_and_the_time_between_is_marked() {
    for user in [&[][..], &["--user", "nobody"]] {
        let pair = Pair::new();
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let out = folder.path().join("w1");
        let options = [&["--ring", "8MiB", "--reopen"], user].concat();
        let agent = Agent::start(SNIFFER, &pair.left, "sniffer.json", &out, &options);
        let file = out.join("packets-eth0.hpk");
        exchange(&pair, 10, 1_000, 100);
        for _ in 0..2 {
            let without = replace_interface(&pair);
            // CAP_NET_RAW (13) can be called for, and is in effect only while it is.
            assert_eq!(capabilities(&agent, "CapPrm:"), ["0000000000002000"]);
            wait_until("the time between being marked", || {
                let notes = read_with_notes(&file).1;
                notes.iter().any(|m| m.kind == CaptureNoteKind::Vanished && m.from_ns < without && m.to_ns > without)
            });
            let ends = exchange(&pair, 50, 1_000, 100);
            wait_until("its packets", || {
                read_with_notes(&file).0.iter().filter(|p| p.source == ends.client && p.time_ns > without).count() > 5
            });
            assert_eq!(capabilities(&agent, "CapEff:"), ["0000000000000000"]);
        }
        let (code, manifest) = agent.stop();
        assert_eq!(code, 1, "that packets may be missing has to show: {manifest}");
        let eth0 = manifest["interfaces"].as_array().unwrap().iter().find(|i| i["name"] == "eth0").unwrap();
        assert_eq!(eth0["packets"], read_with_notes(&file).0.len(), "{manifest}");
        assert!(eth0["interface_packets"].as_u64() >= eth0["packets"].as_u64(), "{manifest}");
        assert!(manifest["problems"].to_string().contains("eth0: the interface went away"), "{manifest}");
        assert_eq!(read_with_notes(&file).1.last().map(|note| note.kind), Some(CaptureNoteKind::End));
    }
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn an_interface_that_is_put_down_and_up_again_needs_no_right() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let agent = Agent::start(SNIFFER, &pair.left, "sniffer.json", folder.path(), &["--ring", "8MiB"]);
    exchange(&pair, 10, 1_000, 100);
    sh(&format!("ip -n {} link set eth0 down", pair.left));
    thread::sleep(Duration::from_millis(500));
    sh(&format!("ip -n {} link set eth0 up", pair.left));
    let ends = exchange(&pair, 50, 1_000, 100);
    let (_, manifest) = agent.stop();
    let (packets, _) = read_with_notes(&folder.path().join("packets-eth0.hpk"));
    assert!(packets.iter().filter(|packet| packet.source == ends.client).count() > 5, "{manifest}");
}
