//! What goes wrong on one host leaves the files of all hosts as they were.

use std::fs;

use crate::support::{Kind, Rig, Tree, differ, missing, problems};
use test_support::skip_if;

fn confs(rig: &Rig) -> Vec<Tree> {
    let of = |host: &String| rig.tree(host).into_iter().filter(|(name, _)| name.starts_with("conf")).collect();
    rig.hosts.iter().map(of).collect()
}

/// On h2 the jar's checksum is another one than it was sent with, as after a bad disk or network.
fn damage_the_jar(rig: &Rig) {
    let fake = rig.path("sha256sum");
    let script = "#!/bin/sh\nread -r sum rest <<X\n$(/run/real)\nX\n\
                  case $(readlink /proc/$$/fd/0) in *agent.jar) sum=0 ;; esac\necho \"$sum  -\"\n";
    fs::write(&fake, script).unwrap();
    rig.on(
        "h2",
        &format!(
            "cp /usr/bin/sha256sum /run/real; mount -t tmpfs tmpfs /usr/local; mkdir /usr/local/bin; \
             install -m 755 {} /usr/local/bin/sha256sum",
            fake.display()
        ),
    );
}

/// Breaks a host, installs, and wants all configurations as before and a reason.
fn broken(rig: &Rig, more: &[&str], reason: &str) {
    let before = confs(rig);
    let report = rig.wrong("install", more);
    assert!(problems(&report).contains(reason), "{report:#}");
    assert_eq!(differ(&before, &confs(rig)), [""; 0]);
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn a_host_that_cannot_be_reached() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(2, "3");
    let config = fs::read_to_string(rig.path("config")).unwrap();
    fs::write(rig.path("config"), format!("{config}Host away\n  ProxyCommand false\n")).unwrap();
    broken(&rig, &["--also", "away"], "cannot be reached");
    let report = rig.wrong("check", &["--also", "away"]);
    assert_eq!(report["hosts"][0]["ok"], true);
    assert_eq!(report["hosts"][2]["ok"], false);
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn a_full_disk_and_a_jar_that_arrives_damaged() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(2, "2");
    let prefix = rig.there("opt");
    rig.on("h2", &format!("mkdir -p {prefix}; mount -t tmpfs -o size=64k tmpfs {prefix}"));
    broken(&rig, &[], "write");
    rig.on("h2", &format!("umount {prefix}"));

    damage_the_jar(&rig);
    broken(&rig, &[], "hadoptic-agent.jar did not arrive as it was sent");
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn a_file_that_cannot_be_replaced_at_the_last_moment() {
    skip_if!(missing(Kind::Plain));
    for (generation, name) in [("2", "mapred-site.xml"), ("1", "hadoop-env.sh")] {
        let rig = Rig::new(3, generation);
        // A mount point cannot be renamed over, and nothing shows it before.
        let path = rig.there(&format!("conf/{name}"));
        rig.on("h2", &format!("mount --bind {path} {path}"));
        broken(&rig, &[], "busy");
        // What was brought can be taken away all the same.
        rig.ok("remove", &[]);
        assert!(!rig.of("h1").join("opt").exists());
    }
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn a_configuration_that_cannot_be_edited() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(2, "2");
    let site = rig.of("h2").join("conf/mapred-site.xml");
    let good = fs::read(&site).unwrap();
    fs::write(&site, "<configuration><property><name>mapreduce.framework.name</name>").unwrap();
    assert!(problems(&rig.wrong("check", &["--quick"])).contains("mapred-site.xml"));
    broken(&rig, &[], "mapred-site.xml");
    fs::write(&site, &good).unwrap();
    let conf = rig.there("conf");
    rig.on("h1", &format!("mount -t tmpfs -o ro tmpfs {conf}"));
    broken(&rig, &[], "conf");
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn a_jar_that_is_damaged_later_is_seen_and_repaired() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(2, "3");
    rig.ok("install", &[]);
    fs::write(rig.of("h2").join("opt/hadoptic/lib/hadoptic-agent.jar"), "no jar").unwrap();
    let report = rig.wrong("status", &[]);
    assert!(problems(&report).contains("the jar is missing or is not the one"), "{report:#}");
    rig.ok("install", &[]);
    rig.ok("status", &[]);
    rig.ok("remove", &[]);
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn an_agent_that_dies_is_told_and_started_again() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    rig.ok("install", &[]);
    let started = rig.ok("start", &[]);
    let sniffer = &started["hosts"][0]["sniffer"];
    // It ends when its rings have been given back, not at once.
    crate::support::sh(&format!(
        "kill -9 {sniffer}; while grep -q '^State:[^ZX]*$' /proc/{sniffer}/status; do sleep 0.1; done 2>/dev/null"
    ));
    let report = rig.wrong("status", &[]);
    assert!(problems(&report).contains("sniffer ended without being asked to"), "{report:#}");
    assert!(!problems(&report).contains("at the very end"), "{report:#}");
    fs::write(rig.of("h1").join("opt/hadoptic/log/sniffer.log"), b"a line\n\x1b[31mat\xc2\x9b the\xff very end\n")
        .unwrap();
    let report = rig.wrong("status", &[]);
    assert!(problems(&report).contains("sniffer.log (a line [31mat the\u{fffd} very end)"), "{report:#}");
    let again = rig.ok("start", &[]);
    assert_ne!(again["hosts"][0]["sniffer"], started["hosts"][0]["sniffer"]);
    assert_eq!(again["hosts"][0]["dumpingd"], started["hosts"][0]["dumpingd"]);
    rig.ok("status", &[]);
    rig.ok("remove", &[]);
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn what_a_failed_install_brought_goes_too() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(2, "2");
    let before: Vec<Tree> = rig.hosts.iter().map(|host| rig.tree(host)).collect();
    damage_the_jar(&rig);
    rig.wrong("install", &[]);
    rig.on("h2", "umount /usr/local");
    assert!(rig.of("h1").join("opt/hadoptic/bin/sniffer").exists());
    assert!(rig.of("h2").join("opt/hadoptic/new").exists());
    rig.ok("remove", &[]);
    let after: Vec<Tree> = rig.hosts.iter().map(|host| rig.tree(host)).collect();
    assert_eq!(differ(&before, &after), [""; 0]);
}
