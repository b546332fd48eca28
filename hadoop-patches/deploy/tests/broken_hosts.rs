//! What goes wrong on one host leaves the files of all hosts as they were.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::fs;

use support::{Rig, Tree, can_run, differ, problems};

fn confs(rig: &Rig) -> Vec<Tree> {
    let of = |host: &String| rig.tree(host).into_iter().filter(|(name, _)| name.starts_with("conf")).collect();
    rig.hosts.iter().map(of).collect()
}

/// Breaks a host, installs, and wants all configurations as before and a reason.
fn broken(rig: &Rig, more: &[&str], reason: &str) {
    let before = confs(rig);
    let told = rig.wrong("install", more);
    assert!(problems(&told).contains(reason), "{told:#}");
    assert_eq!(differ(&before, &confs(rig)), [""; 0]);
}

#[test]
fn a_host_that_cannot_be_reached() {
    if !can_run("a_host_that_cannot_be_reached") {
        return;
    }
    let rig = Rig::new(2, "3");
    let config = fs::read_to_string(rig.path("config")).unwrap();
    fs::write(rig.path("config"), format!("{config}Host away\n  ProxyCommand false\n")).unwrap();
    broken(&rig, &["--also", "away"], "cannot be reached");
    let told = rig.wrong("check", &["--also", "away"]);
    assert_eq!(told["hosts"][0]["ok"], true);
    assert_eq!(told["hosts"][2]["ok"], false);
}

#[test]
fn a_full_disk_and_a_jar_that_arrives_damaged() {
    if !can_run("a_full_disk_and_a_jar_that_arrives_damaged") {
        return;
    }
    let rig = Rig::new(2, "2");
    let prefix = rig.there("opt");
    rig.on("h2", &format!("mkdir -p {prefix}; mount -t tmpfs -o size=64k tmpfs {prefix}"));
    broken(&rig, &[], "write");
    rig.on("h2", &format!("umount {prefix}"));

    // A disk that gives back other bytes than were written.
    let fake = rig.path("sha256sum");
    let script = "#!/bin/sh\nread -r sum rest <<X\n$(/usr/bin/sha256sum)\nX\n\
                  case $(readlink /proc/$$/fd/0) in *agent.jar) sum=0 ;; esac\necho \"$sum  -\"\n";
    fs::write(&fake, script).unwrap();
    support::sh(&format!("chmod 755 {}", fake.display()));
    rig.on("h2", &format!("cp /usr/bin/sha256sum /run/real; mount -t tmpfs tmpfs /usr/local; mkdir /usr/local/bin; \
                           sed s,/usr/bin/sha256sum,/run/real, {0} >/usr/local/bin/sha256sum; chmod 755 /usr/local/bin/sha256sum", fake.display()));
    broken(&rig, &[], "hadoptic-agent.jar did not arrive as it was sent");
}

#[test]
fn a_file_that_cannot_be_replaced_at_the_last_moment() {
    if !can_run("a_file_that_cannot_be_replaced_at_the_last_moment") {
        return;
    }
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
fn a_configuration_that_cannot_be_edited() {
    if !can_run("a_configuration_that_cannot_be_edited") {
        return;
    }
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
fn a_jar_that_is_damaged_later_is_seen_and_repaired() {
    if !can_run("a_jar_that_is_damaged_later_is_seen_and_repaired") {
        return;
    }
    let rig = Rig::new(2, "3");
    rig.ok("install", &[]);
    fs::write(rig.of("h2").join("opt/hadoptic/lib/hadoptic-agent.jar"), "no jar").unwrap();
    let told = rig.wrong("status", &[]);
    assert!(problems(&told).contains("the jar is missing or is not the one"), "{told:#}");
    rig.ok("install", &[]);
    rig.ok("status", &[]);
    rig.ok("remove", &[]);
}
