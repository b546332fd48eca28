//! The units under a real systemd: `hadoptic` starts and stops them, systemd brings back what is killed.

use std::fs;

use crate::support::{Kind, Rig, differ, missing, wait_until};
use serde_json::Value;
use test_support::skip_if;

/// A host with a systemd, for commands in it.
struct Host(Rig);

impl Host {
    /// What a command on the host prints.
    fn says(&self, command: &str) -> String {
        let output = self.0.on("h1", command);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn property(&self, agent: &str, name: &str) -> String {
        self.says(&format!("systemctl show --value -p {name} hadoptic-{agent}.service"))
    }

    fn manifest(&self, agent: &str) -> Value {
        let text = fs::read(self.0.of("h1").join(format!("cap/h1/{agent}.json"))).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or(Value::Null)
    }
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn units_run_come_back_and_end_in_order() {
    skip_if!(missing(Kind::Systemd));
    let host = Host(Rig::of_kind(Kind::Systemd, 1, "3"));
    let rig = &host.0;
    assert_eq!(host.says("systemctl is-system-running"), "running");
    let before = rig.tree("h1");
    rig.ok("install", &["--systemd"]);
    assert_eq!(host.property("sniffer", "LoadState"), "loaded");
    assert_eq!(host.property("sniffer", "ActiveState"), "inactive");
    let started = rig.ok("start", &[]);
    assert_eq!(started["hosts"][0]["started"], true);
    for agent in ["sniffer", "dumpingd"] {
        assert_eq!(host.property(agent, "ActiveState"), "active");
        assert_eq!(host.property(agent, "MainPID"), started["hosts"][0][agent].to_string());
        // What the unit says of rights and files holds.
        let status = host.says(&format!("cat /proc/{}/status", host.property(agent, "MainPID")));
        assert!(status.lines().any(|line| line == "NoNewPrivs:\t1"), "{status}");
        let uid = host.says("id -u hadoptic");
        assert!(status.contains(&format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n")), "{status}");
        assert_eq!(host.says(&format!("cat /proc/{}/oom_score_adj", host.property(agent, "MainPID"))), "500");
        assert_ne!(host.property(agent, "MemoryMax"), "infinity");
    }
    rig.ok("status", &[]);

    for agent in ["sniffer", "dumpingd"] {
        let pid = host.property(agent, "MainPID");
        host.says(&format!("kill -9 {pid}"));
        wait_until("systemd starts it again", || {
            let now = host.property(agent, "MainPID");
            now != pid && now != "0" && host.manifest(agent)["ready"] == true && host.manifest(agent)["ended"] != true
        });
        assert_eq!(host.property(agent, "NRestarts"), "1");
    }
    let report = rig.ok("status", &[]);
    assert_eq!(
        report["hosts"][0]["sniffer_runs"]["pid"].to_string(),
        host.property("sniffer", "MainPID"),
        "{report:#}"
    );
    let again = rig.ok("start", &[]);
    assert_eq!(again["hosts"][0]["started"], false);

    host.says("systemctl stop hadoptic-sniffer.service");
    assert_eq!(host.property("sniffer", "Result"), "success");
    assert_eq!(host.manifest("sniffer")["ended"], true);
    rig.ok("start", &[]);
    let stopped = rig.ok("stop", &[]);
    assert_eq!(stopped["hosts"][0]["ran"], true);
    for agent in ["sniffer", "dumpingd"] {
        assert_eq!(host.property(agent, "ActiveState"), "inactive");
        assert_eq!(host.property(agent, "Result"), "success");
        assert_eq!(host.manifest(agent)["ended"], true);
    }
    rig.ok("remove", &[]);
    assert_eq!(host.property("sniffer", "LoadState"), "not-found");
    assert_eq!(differ(&[before], &[rig.tree("h1")]), [""; 0], "nothing is left");
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn an_agent_that_cannot_begin_is_told_and_not_started_for_ever() {
    skip_if!(missing(Kind::Systemd));
    let host = Host(Rig::of_kind(Kind::Systemd, 1, "3"));
    host.0.ok("install", &["--systemd", "--sniffer-option=--interface=none9"]);
    let report = host.0.wrong("start", &[]);
    assert!(crate::support::problems(&report).contains("none9"), "{report:#}");
    assert_eq!(host.property("sniffer", "NRestarts"), "0");
    assert_eq!(host.property("sniffer", "ActiveState"), "failed");
    host.0.ok("remove", &[]);
}
