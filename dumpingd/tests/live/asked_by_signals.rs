//! SIGUSR1 asks for the counters and is answered at once, between two scans; SIGTERM ends the run as promptly.

use crate::support::{Agent, Pair, exchange, wait_until};
use nix::sys::signal::Signal;

const DUMPINGD: &str = env!("CARGO_BIN_EXE_dumpingd");

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn the_counts_so_far_are_told_at_a_signal_and_the_run_goes_on() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    // No scan but the first one: what answers is not a scan.
    let mut agent = Agent::start(DUMPINGD, &pair.left, "dumpingd.json", folder.path(), &["--interval", "1h"]);
    for asked in 1..=2 {
        exchange(&pair, 1, 1_000, 100);
        agent.signal(Signal::SIGUSR1);
        wait_until("an answer", || agent.said().lines().filter(|line| line.contains(" scans (")).count() == asked);
    }
    let stated = agent.said();
    let line = stated.lines().next().unwrap();
    assert!(line.starts_with("1 scans (0 late) at 3600000 ms, "), "{stated}");
    assert!(line.contains(" connections told of when they opened, ") && line.ends_with(" of CPU time"), "{stated}");
    assert_eq!(agent.manifest()["interval_reason"], "as --interval says");
    let (code, manifest) = agent.stop();
    assert_eq!(code, 0, "{manifest}");
    assert_eq!(manifest["scans"], 2, "{manifest}");
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn without_an_interval_it_is_said_which_applies_and_why() {
    let pair = Pair::new();
    for (options, has_events) in [(&[][..], true), (&["--no-tracepoint"], false), (&["--source", "proc"], false)] {
        let folder = tempfile::tempdir().unwrap();
        let agent = Agent::start(DUMPINGD, &pair.left, "dumpingd.json", folder.path(), options);
        let (_, manifest) = agent.stop();
        let has_events = has_events && manifest["tracepoint"] == true && manifest["hears_dying"] == true;
        assert_eq!(manifest["interval_ms"], if has_events { 5_000 } else { 1_000 }, "{manifest}");
        let reason = manifest["interval_reason"].as_str().unwrap();
        assert_eq!(reason.contains("does not tell"), !has_events, "{manifest}");
    }
}
