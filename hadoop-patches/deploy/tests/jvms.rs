//! Hadoop's JVMs on a host: which have the agent, which get it by being attached, and which need the jar to stay.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::fs;
use std::process::Child;

use serde_json::Value;
use support::{Rig, can_run, problems, wait_until};

const DATANODE: &str = "org.apache.hadoop.hdfs.server.datanode.DataNode";
const TASK: &str = "org.apache.hadoop.mapred.YarnChild";

/// Programs with the names of Hadoop's, which only wait.
fn compile(rig: &Rig) -> bool {
    let folder = rig.path("java");
    for class in [DATANODE, TASK] {
        let (package, name) = class.rsplit_once('.').unwrap();
        let file = folder.join(package.replace('.', "/")).join(format!("{name}.java"));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let body = "public static void main(String[] a) throws Exception { Thread.sleep(600000); }";
        fs::write(&file, format!("package {package}; public class {name} {{ {body} }}")).unwrap();
        if !std::process::Command::new("javac")
            .arg("-d")
            .arg(&folder)
            .arg(&file)
            .status()
            .is_ok_and(|status| status.success())
        {
            println!("skipped: this test needs a JDK");
            return false;
        }
    }
    true
}

/// Starts one as Hadoop's scripts do: with what the env file sets.
fn jvm(rig: &Rig, class: &str, options: &str) -> Child {
    let (conf, classes) = (rig.there("conf"), rig.path("java"));
    let command = format!(". {conf}/hadoop-env.sh; exec java {options} -cp {} {class}", classes.display());
    rig.enter("h1", &command).stderr(std::process::Stdio::null()).spawn().unwrap()
}

/// What status says of a JVM: "yes", "no" or "attached"; "" = it is not seen.
fn agent_of(rig: &Rig, pid: u32) -> String {
    let told = rig.ok("status", &[]);
    let jvms = told["hosts"][0]["jvms"].as_array().unwrap().clone();
    let found = jvms.iter().find(|jvm| jvm["pid"] == pid);
    found.map_or_else(String::new, |jvm| jvm["agent"].as_str().unwrap().to_owned())
}

#[test]
fn the_jar_reaches_jvms_by_env_files_or_attached_and_stays_while_a_job_needs_it() {
    if !can_run("the_jar_reaches_jvms_by_env_files_or_attached_and_stays_while_a_job_needs_it") {
        return;
    }
    let rig = Rig::new(2, "3");
    if !compile(&rig) {
        return;
    }
    let conf = rig.of("h1").join("conf/hadoop-env.sh");
    let before = fs::read(&conf).unwrap();
    let mut early = jvm(&rig, DATANODE, "${HDFS_DATANODE_OPTS-}");
    let seen =
        |told: &Value| told["hosts"][0]["without_agent"].to_string().contains(&format!("DataNode {}", early.id()));
    wait_until("the JVM is seen", || {
        fs::read_to_string(format!("/proc/{}/cmdline", early.id())).is_ok_and(|text| text.contains(DATANODE))
    });
    let told = rig.ok("install", &[]);
    assert!(seen(&told), "{told:#}");
    assert_eq!(told["hosts"][1]["without_agent"], Value::Array(Vec::new()), "those of other hosts are not this one's");
    let told = rig.ok("start", &[]);
    assert!(seen(&told), "{told:#}");
    assert_eq!(agent_of(&rig, early.id()), "no");
    rig.ok("start", &["--attach"]);
    assert_eq!(agent_of(&rig, early.id()), "attached");

    let mut late = jvm(&rig, DATANODE, "${HDFS_DATANODE_OPTS-}");
    wait_until("a JVM that was started later has the agent", || agent_of(&rig, late.id()) == "yes");
    let mut task = jvm(&rig, TASK, "$hadoptic_agent");
    wait_until("the task has the agent", || agent_of(&rig, task.id()) == "yes");

    let jar = rig.of("h1").join("opt/hadoptic/lib/hadoptic-agent.jar");
    let told = rig.wrong("remove", &[]);
    assert!(problems(&told).contains(&format!("YarnChild {}", task.id())), "{told:#}");
    assert!(jar.exists());
    assert_eq!(fs::read(&conf).unwrap(), before, "nothing names the jar any more");
    task.kill().unwrap();
    task.wait().unwrap();
    let told = rig.ok("remove", &[]);
    assert!(told["hosts"][0]["notes"].to_string().contains(&format!("DataNode {}", late.id())), "{told:#}");
    assert!(!rig.of("h1").join("opt").exists());
    for jvm in [&mut early, &mut late] {
        jvm.kill().unwrap();
        jvm.wait().unwrap();
    }
}

#[test]
fn another_user_runs_the_agents_by_file_capabilities() {
    if !can_run("another_user_runs_the_agents_by_file_capabilities") {
        return;
    }
    let rig = Rig::new(1, "2");
    let (code, told) = rig.run("install", &["--run-as", "nobody"]);
    if problems(&told).contains("setcap") {
        println!("skipped: no setcap, or no file system with extended attributes");
        return;
    }
    assert_eq!(code, 0, "{told:#}");
    let modes = rig.tree("h1");
    assert_eq!(modes["opt/hadoptic/bin/sniffer"].0 & 0o7777, 0o750, "never setuid");
    assert_eq!(modes["opt/hadoptic/bin/sniffer"].1, 0);
    let told = rig.ok("start", &[]);
    let status = fs::read_to_string(format!("/proc/{}/status", told["hosts"][0]["sniffer"])).unwrap();
    let uid = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
    assert!(uid.contains("65534"), "{uid}");
    rig.ok("status", &[]);
    rig.ok("stop", &[]);
    rig.ok("remove", &[]);
    assert!(!rig.of("h1").join("cap").exists());
}
