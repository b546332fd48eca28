//! Everything in turn by a user who is not root and becomes it by sudo, and what is said to one who may not.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::support::{Kind, OPERATOR, Rig, differ, missing, problems};
use test_support::skip_if;

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn a_whole_round_by_sudo() {
    skip_if!(missing(Kind::Sudo));
    let rig = Rig::of_kind(Kind::Sudo, 2, "3");
    let user = ["--user", OPERATOR];
    let before: Vec<_> = rig.hosts.iter().map(|host| rig.tree(host)).collect();
    let checked = rig.ok("check", &user);
    for host in checked["hosts"].as_array().unwrap() {
        assert_eq!(host["jar_loads"], true, "{host:#}");
        let notes = host["notes"].to_string();
        assert!(notes.contains(&format!("{OPERATOR} becomes root by sudo")), "{notes}");
    }
    let after: Vec<_> = rig.hosts.iter().map(|host| rig.tree(host)).collect();
    assert_eq!(differ(&before, &after), [""; 0], "check changes nothing");

    rig.ok("install", &user);
    let started = rig.ok("start", &user);
    assert_eq!(started["hosts"][0]["started"], true);
    // The login and sudo's terminal have ended: the agents run on, as the user who was made for them, not as the operator.
    let again = rig.ok("start", &user);
    assert_eq!(again["hosts"][0]["sniffer"], started["hosts"][0]["sniffer"]);
    let sniffer = format!("/proc/{}/status", started["hosts"][0]["sniffer"]);
    let uid = fs::read_to_string(sniffer).unwrap().lines().find(|line| line.starts_with("Uid:")).unwrap().to_owned();
    let service = fs::metadata(rig.of("h1").join("cap/h1")).unwrap().uid();
    assert!(service != 0 && uid == format!("Uid:\t{service}\t{service}\t{service}\t{service}"), "{uid}");
    rig.on("h1", "bash -c 'exec 3<>/dev/tcp/127.0.0.1/8020' || true");
    crate::support::wait_until("packets are counted", || {
        rig.ok("status", &user)["hosts"][0]["packets"].as_u64().unwrap() > 0
    });
    let stopped = rig.ok("stop", &user);
    assert_eq!(stopped["hosts"][1]["ran"], true);

    let out = rig.path("capture");
    rig.ok("collect", &["--user", OPERATOR, "--out", out.to_str().unwrap()]);
    for host in &rig.hosts {
        let there = rig.of(host).join("cap").join(host);
        for name in ["sniffer.json", "dumpingd.json", "sockets.jsonl", "packets-lo.hpk"] {
            assert_eq!(fs::read(out.join(host).join(name)).unwrap(), fs::read(there.join(name)).unwrap(), "{name}");
        }
    }
    rig.ok("remove", &user);
    let after: Vec<_> = rig.hosts.iter().map(|host| rig.tree(host)).collect();
    assert_eq!(differ(&before, &after), [""; 0], "nothing is left");
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn who_may_not_is_told() {
    skip_if!(missing(Kind::Sudo));
    let rig = Rig::of_kind(Kind::Sudo, 1, "3");
    // A password would be asked for, and nobody is there to give it.
    fs::write(rig.etc("h1", "sudoers"), format!("{OPERATOR} ALL=(ALL) ALL\n")).unwrap();
    let report = rig.wrong("check", &["--quick", "--user", OPERATOR]);
    let said = problems(&report);
    assert!(said.contains(&format!("the user {OPERATOR} is not root and may not `sudo -n sh` (")), "{said}");
    assert!(said.contains("sudo: a password is required)"), "{said}");
}
