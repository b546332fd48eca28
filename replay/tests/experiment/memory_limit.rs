//! What would take more memory than it may ends with an error.

use std::path::Path;
use std::process::{Command, Output};

/// 65,536 hosts, some 400 MiB.
fn run_large_network(memory: &[&str], out: &Path) -> Output {
    let experiment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/bench/scale-credit.toml");
    let mut replay = Command::new(env!("CARGO_BIN_EXE_replay"));
    replay.arg("run").arg(experiment).args(["--set", "traffic.load=0.01", "--threads", "1", "--out"]).arg(out);
    replay.args(memory).output().unwrap()
}

#[test]
fn a_network_that_takes_more_memory_than_it_may_ends_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let output = run_large_network(&["--memory", "64MiB"], &out);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("replay: out of memory: it holds ") && said.contains("may hold 64MiB"), "{said}");
    assert!(said.contains("--memory") && said.lines().count() == 1, "{said}");
    assert!(!out.join("summary.json").exists());
}

#[test]
fn what_is_available_is_enough_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let output = run_large_network(&[], &folder.path().join("results"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
