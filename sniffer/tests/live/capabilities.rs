//! Once its sockets are open, the sniffer has few rights, or another user's, and goes on recording and rotating.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::support::{Agent, Pair, exchange};

const SNIFFER: &str = env!("CARGO_BIN_EXE_sniffer");

/// A field of /proc/PID/task/TID/status of each thread of the sniffer that works in a folder.
fn status_of_threads(agent: &Agent, field: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{}/task", agent.pid())).unwrap();
    tasks
        .map(|task| {
            let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
            let line = status.lines().find(|line| line.starts_with(field)).unwrap().to_owned();
            line.split_whitespace().nth(1).unwrap().to_owned()
        })
        .collect()
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn no_thread_keeps_a_capability_and_the_files_still_rotate() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let options = ["--ring", "8MiB", "--file-size", "40KiB"];
    let agent = Agent::start(SNIFFER, &pair.left, "sniffer.json", folder.path(), &options);
    for field in ["CapEff:", "CapPrm:", "CapInh:", "CapBnd:", "CapAmb:"] {
        assert!(status_of_threads(&agent, field).iter().all(|caps| caps == "0000000000000000"), "{field}");
    }
    assert!(status_of_threads(&agent, "NoNewPrivs:").iter().all(|set| set == "1"));
    for _ in 0..5 {
        exchange(&pair, 500, 300, 10);
    }
    let (code, manifest) = agent.stop();
    assert_eq!(code, 0, "{manifest}");
    assert_eq!(manifest["capabilities"].as_array().map_or(0, Vec::len), 0, "{manifest}");
    // What shuts it in stands in the manifest, or why it does not.
    for wall in ["mounts", "landlock", "seccomp"] {
        let stands = manifest["sandbox"].as_array().is_some_and(|walls| walls.iter().any(|one| one == wall));
        assert!(stands || manifest["notes"].to_string().contains(&format!("no {wall}")), "{wall}: {manifest}");
    }
    assert!(folder.path().join("packets-eth0.000001.hpk").exists(), "no file was closed");
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn another_user_goes_on_and_rotates_in_the_folder_that_became_its_own() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let out = folder.path().join("w1");
    let options = ["--ring", "8MiB", "--file-size", "40KiB", "--user", "nobody"];
    let agent = Agent::start(SNIFFER, &pair.left, "sniffer.json", &out, &options);
    assert!(status_of_threads(&agent, "Uid:").iter().all(|uid| uid == "65534"));
    assert!(status_of_threads(&agent, "CapEff:").iter().all(|caps| caps == "0000000000000000"));
    for _ in 0..5 {
        exchange(&pair, 500, 300, 10);
    }
    let (code, manifest) = agent.stop();
    assert_eq!(code, 0, "{manifest}");
    let closed = fs::metadata(out.join("packets-eth0.000001.hpk")).unwrap();
    assert_eq!((closed.uid(), closed.mode() & 0o777), (65534, 0o600));
    // A later run as root is given what the user left.
    let agent = Agent::start(SNIFFER, &pair.left, "sniffer.json", &out, &options);
    assert_eq!(agent.stop().0, 0);
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn a_user_that_does_not_exist_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(SNIFFER)
        .args(["run", "--interface", "lo", "--ring", "1MiB", "--user", "no-such-user", "--out"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no-such-user"));
}
