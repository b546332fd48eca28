//! collect: goes on where it was broken off, believes no file that is not whole, and follows no link.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{Kind, Rig, missing, wait_until};
use test_support::skip_if;

const SIZE: u64 = 200 << 20;

/// A file of the JVMs' name, with bytes that do not repeat in any simple way.
fn big(path: &std::path::Path, size: u64) {
    crate::support::sh(&format!("head -c {size} /dev/urandom >{0}; chmod 640 {0}", path.display()));
}

/// The folder of root's JVMs on a host.
fn records(rig: &Rig, host: &str) -> std::path::PathBuf {
    let folder = rig.of(host).join("cap/jvm/0");
    fs::create_dir_all(&folder).unwrap();
    // As that of a JVM: the agents' group may read it, and has its files.
    crate::support::sh(&format!("chmod 2750 {}", folder.display()));
    folder
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn killed_in_the_middle_it_goes_on_from_there() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(2, "3");
    rig.ok("install", &[]);
    for host in &rig.hosts {
        big(&records(&rig, host).join("jvm-1-1.jsonl"), SIZE);
    }
    let out = rig.path("capture");
    let part = out.join("h1/jvm/0/jvm-1-1.jsonl.part");
    let mut collect = rig.command("collect", &["--out", out.to_str().unwrap()]).spawn().unwrap();
    wait_until("the file comes", || fs::metadata(&part).is_ok_and(|about| about.len() > 1 << 20));
    collect.kill().unwrap();
    collect.wait().unwrap();
    let had = fs::metadata(&part).unwrap().len();
    assert!(had < SIZE, "it was killed too late");
    assert!(!out.join("h1/jvm/0/jvm-1-1.jsonl").exists());
    // The connections end with the program: nothing of it is left on the hosts.
    wait_until("sessions on the host end", || {
        let here = rig.on("h1", "for p in /proc/[0-9]*; do [ \"$(readlink $p/ns/net)\" = \"$(readlink /proc/self/ns/net)\" ] && cat $p/comm; done; true");
        !String::from_utf8_lossy(&here.stdout).lines().any(|name| name == "dd")
    });

    let report = rig.ok("collect", &["--out", out.to_str().unwrap()]);
    assert!(report["hosts"][0]["had_bytes"].as_u64().unwrap() >= had, "{report:#}");
    for host in &rig.hosts {
        let there = rig.of(host).join("cap/jvm/0/jvm-1-1.jsonl");
        assert!(fs::read(out.join(host).join("jvm/0/jvm-1-1.jsonl")).unwrap() == fs::read(there).unwrap());
        assert!(!out.join(host).join("jvm/0/jvm-1-1.jsonl.part").exists());
    }
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn what_is_here_is_not_fetched_again_and_not_believed() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    rig.ok("install", &[]);
    let there = records(&rig, "h1").join("jvm-7-8.jsonl");
    big(&there, 1 << 20);
    let out = rig.path("capture");
    let here = out.join("h1/jvm/0/jvm-7-8.jsonl");
    let collect = || rig.ok("collect", &["--out", out.to_str().unwrap()])["hosts"][0]["had_bytes"].as_u64().unwrap();
    assert_eq!(collect(), 0);
    assert_eq!(collect(), 1 << 20);
    // It grew: only what is new comes.
    let whole = [fs::read(&there).unwrap(), b"more\n".to_vec()].concat();
    fs::write(&there, &whole).unwrap();
    assert_eq!(collect(), 1 << 20);
    assert!(fs::read(&here).unwrap() == whole);
    // A byte changed here, and the beginning of something else.
    let mut bad = whole.clone();
    bad[77] ^= 1;
    fs::write(&here, &bad).unwrap();
    collect();
    assert!(fs::read(&here).unwrap() == whole);
    fs::remove_file(&here).unwrap();
    fs::write(out.join("h1/jvm/0/jvm-7-8.jsonl.part"), "something else").unwrap();
    collect();
    assert!(fs::read(&here).unwrap() == whole);
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn a_file_that_agents_replace_meanwhile_comes_as_it_is_by_then() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    rig.ok("install", &[]);
    let folder = rig.of("h1").join("cap/h1");
    let [long, short] = ["x".repeat(100_000), String::new()].map(|text| format!("{{\"text\":\"{text}\"}}"));
    fs::write(folder.join("ports.json"), &long).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for text in [&short, &long].into_iter().cycle() {
                fs::write(folder.join(".new"), text).unwrap();
                fs::rename(folder.join(".new"), folder.join("ports.json")).unwrap();
                thread::sleep(Duration::from_millis(25));
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let collected: Vec<String> = (0..8)
            .map(|number| {
                let out = rig.path(&format!("capture-{number}"));
                rig.run("collect", &["--out", out.to_str().unwrap()]);
                fs::read_to_string(out.join("h1/ports.json")).unwrap_or_default()
            })
            .collect();
        stop.store(true, Ordering::Relaxed);
        assert!(collected.iter().all(|text| *text == long || *text == short), "{:?}", lengths(&collected));
    });
}

fn lengths(texts: &[String]) -> Vec<usize> {
    texts.iter().map(String::len).collect()
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn links_pipes_and_foreign_names_of_container_users_are_left_there() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    rig.ok("install", &[]);
    let folder = records(&rig, "h1");
    crate::support::sh(&format!(
        "cd {}; echo secret >../secret; ln -s ../secret jvm-1-1.jsonl; ln ../secret jvm-2-2.jsonl; mkfifo jvm-3-3.jsonl; \
         mkdir jvm-4-4.jsonl; : >'jvm-5-$(id).jsonl'; : >notes.txt; echo '{{}}' >jvm-6-6.jsonl; \
         echo '{{}}' >jvm-7-7.jsonl; chown 65534 jvm-7-7.jsonl; mkdir ../4711; echo '{{}}' >../4711/jvm-8-8.jsonl",
        folder.display()
    ));
    let out = rig.path("capture");
    let report = rig.ok("collect", &["--out", out.to_str().unwrap()]);
    // In 0 all but the folder and what came; in jvm the file `secret` and the folder that is not its user's.
    assert_eq!(report["hosts"][0]["odd"], 6 + 2, "{report:#}");
    let names = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(out.join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(names("h1/jvm/0"), ["jvm-6-6.jsonl"]);
    assert_eq!(names("h1/jvm"), ["0"]);
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn the_histories_of_jobs_come_into_the_job_folder() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(2, "1");
    rig.ok("install", &[]);
    let logs = rig.of("h2").join("logs/history/done/2026");
    fs::create_dir_all(&logs).unwrap();
    for name in
        ["job_202601010000_0001_1_root_terasort", "job_202601010000_0002_1_root_wc", ".job_202601010000_0001.crc"]
    {
        fs::write(logs.join(name), name).unwrap();
    }
    let out = rig.path("capture");
    let from = format!("h2:{}", rig.there("logs/history"));
    rig.ok("collect", &["--out", out.to_str().unwrap(), "--job-history", &from, "--job", "202601010000_0001"]);
    let names: Vec<String> =
        fs::read_dir(out.join("job")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names, ["job_202601010000_0001_1_root_terasort"]);
}
