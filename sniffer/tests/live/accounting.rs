//! Nothing is lost uncounted: what a ring could not hold while the sniffer stood still, and what a disk could not while it
//! was full, are known to the packet, and marked where they are missing.

use std::fs;
use std::io::Write;
use std::thread;
use std::time::Duration;

use crate::support::{Agent, Pair, SmallDisk, exchange, sh, wait_until};
use crate::traffic::{Moments, read_with_notes, send_frames};
use nix::sys::signal::Signal;
use serde_json::Value;
use trace::capture_note::CaptureNoteKind;

const SNIFFER: &str = env!("CARGO_BIN_EXE_sniffer");

fn of_eth0(manifest: &Value, key: &str) -> u64 {
    let interfaces = manifest["interfaces"].as_array().unwrap();
    interfaces.iter().find(|i| i["name"] == "eth0").unwrap()[key].as_u64().unwrap()
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn captured_and_dropped_are_what_was_sent() {
    let pair = Pair::new();
    for namespace in [&pair.left, &pair.right] {
        sh(&format!("ip netns exec {namespace} sysctl -qw net.ipv6.conf.all.disable_ipv6=1"));
    }
    for (ring, sent) in [("512KiB", 40_000), ("64MiB", 40_000)] {
        let folder = tempfile::tempdir().unwrap();
        let agent =
            Agent::start(SNIFFER, &pair.left, "sniffer.json", folder.path(), &["--ring", ring, "--interface", "eth0"]);
        send_frames(&pair, 500);
        agent.signal(Signal::SIGSTOP);
        send_frames(&pair, sent);
        agent.signal(Signal::SIGCONT);
        send_frames(&pair, 500);
        let (code, manifest) = agent.stop();
        let (packets, dropped) = (of_eth0(&manifest, "packets"), of_eth0(&manifest, "kernel_drops"));
        assert_eq!(packets + dropped, u64::from(sent) + 1000, "ring {ring}: {manifest}");
        assert_eq!((dropped == 0, code), (ring == "64MiB", i32::from(dropped > 0)), "ring {ring}: {manifest}");
        let (recorded, notes) = read_with_notes(&folder.path().join("packets-eth0.hpk"));
        assert_eq!(recorded.len() as u64, packets);
        let noted: u64 = notes.iter().filter(|m| m.kind == CaptureNoteKind::KernelDrops).map(|m| m.count).sum();
        assert_eq!(noted, dropped, "what is missing is not marked in the record");
        assert!(recorded.last().unwrap().sequence == 499, "recording did not go on after the stall");
    }
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn a_disk_that_is_full_now_and_then_costs_what_is_counted_and_marked() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let _mounted = SmallDisk::mount(folder.path(), "4m");
    let agent = Agent::start(SNIFFER, &pair.left, "sniffer.json", folder.path(), &["--ring", "8MiB"]);
    let filler = folder.path().join("filler");
    let mut moments = Moments::begin();
    for _ in 0..8 {
        let mut file = fs::File::create(&filler).unwrap();
        while file.write_all(&[0; 4096]).is_ok() || file.write_all(&[0; 64]).is_ok() {}
        let full_for = moments.below(500);
        thread::scope(|scope| {
            scope.spawn(|| exchange(&pair, 200, 300, 100));
            thread::sleep(full_for);
        });
        fs::remove_file(&filler).unwrap();
        drop(file);
        exchange(&pair, 50, 300, 100);
        thread::sleep(moments.below(300));
    }
    // Whatever the moments hit: a time in which packets come and none can be written.
    let mut file = fs::File::create(&filler).unwrap();
    while file.write_all(&[0; 64]).is_ok() {}
    wait_until("the loss being told", || {
        exchange(&pair, 50, 300, 100);
        let manifest = agent.manifest();
        of_eth0(&manifest, "unwritten") > 0 && manifest["problems"].to_string().contains("could not be written")
    });
    fs::remove_file(&filler).unwrap();
    drop(file);
    thread::sleep(Duration::from_millis(300));
    let (before, _) = read_with_notes(&folder.path().join("packets-eth0.hpk"));
    let last = exchange(&pair, 100, 300, 100);
    let (code, manifest) = agent.stop();
    assert_eq!(code, 1, "{manifest}");
    let (recorded, notes) = read_with_notes(&folder.path().join("packets-eth0.hpk"));
    assert!(recorded.len() > before.len(), "recording did not go on");
    assert!(recorded.iter().any(|p| p.source == last.client) && recorded.iter().any(|p| p.source == last.server));
    let unwritten = of_eth0(&manifest, "unwritten");
    assert_eq!(recorded.len() as u64 + unwritten, of_eth0(&manifest, "packets"), "{manifest}");
    let noted: u64 = notes.iter().filter(|m| m.kind == CaptureNoteKind::Unwritten).map(|m| m.count).sum();
    assert_eq!(noted, unwritten, "what is missing is not marked in the record");
}
