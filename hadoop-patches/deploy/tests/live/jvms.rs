//! Hadoop's JVMs on a host: which have the agent, which get it by being attached, and which need the jar to stay.

use std::fs;
use std::process::Child;

use crate::support::{Kind, Rig, missing, problems, wait_until};
use serde_json::Value;
use test_support::{skip, skip_if};

const DATANODE: &str = "org.apache.hadoop.hdfs.server.datanode.DataNode";
const TASK: &str = "org.apache.hadoop.mapred.YarnChild";

/// Programs with the names of Hadoop's, which only wait.
fn compile(rig: &Rig) -> Result<(), &'static str> {
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
            return Err("no JDK");
        }
    }
    Ok(())
}

/// Starts one as Hadoop's scripts do: with what the env file sets.
fn jvm(rig: &Rig, class: &str, options: &str) -> Child {
    let (conf, classes) = (rig.there("conf"), rig.path("java"));
    let command = format!(". {conf}/hadoop-env.sh; exec java {options} -cp {} {class}", classes.display());
    rig.enter("h1", &command).stderr(std::process::Stdio::null()).spawn().unwrap()
}

/// What status says of a JVM: "yes", "no" or "attached"; "" = it is not seen.
fn agent_of(rig: &Rig, pid: u32) -> String {
    let report = rig.ok("status", &[]);
    let jvms = report["hosts"][0]["jvms"].as_array().unwrap().clone();
    let found = jvms.iter().find(|jvm| jvm["pid"] == pid);
    found.map_or_else(String::new, |jvm| jvm["agent"].as_str().unwrap().to_owned())
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn the_jar_reaches_jvms_by_env_files_or_attached_and_stays_while_a_job_needs_it() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(2, "3");
    skip_if!(compile(&rig).err());
    let conf = rig.of("h1").join("conf/hadoop-env.sh");
    let before = fs::read(&conf).unwrap();
    let mut early = jvm(&rig, DATANODE, "${HDFS_DATANODE_OPTS-}");
    let seen =
        |report: &Value| report["hosts"][0]["without_agent"].to_string().contains(&format!("DataNode {}", early.id()));
    wait_until("the JVM is seen", || {
        fs::read_to_string(format!("/proc/{}/cmdline", early.id())).is_ok_and(|text| text.contains(DATANODE))
    });
    let report = rig.ok("install", &[]);
    assert!(seen(&report), "{report:#}");
    assert_eq!(
        report["hosts"][1]["without_agent"],
        Value::Array(Vec::new()),
        "those of other hosts are not this one's"
    );
    let report = rig.ok("start", &[]);
    assert!(seen(&report), "{report:#}");
    assert_eq!(agent_of(&rig, early.id()), "no");
    rig.ok("start", &["--attach"]);
    assert_eq!(agent_of(&rig, early.id()), "attached");

    let mut late = jvm(&rig, DATANODE, "${HDFS_DATANODE_OPTS-}");
    wait_until("a JVM that was started later has the agent", || agent_of(&rig, late.id()) == "yes");
    let mut task = jvm(&rig, TASK, "$hadoptic_agent");
    wait_until("the task has the agent", || agent_of(&rig, task.id()) == "yes");

    let jar = rig.of("h1").join("opt/hadoptic/lib/hadoptic-agent.jar");
    let report = rig.wrong("remove", &[]);
    assert!(problems(&report).contains(&format!("YarnChild {}", task.id())), "{report:#}");
    assert!(jar.exists());
    assert_eq!(fs::read(&conf).unwrap(), before, "nothing names the jar any more");
    task.kill().unwrap();
    task.wait().unwrap();
    let report = rig.ok("remove", &[]);
    assert!(report["hosts"][0]["notes"].to_string().contains(&format!("DataNode {}", late.id())), "{report:#}");
    assert!(!rig.of("h1").join("opt").exists());
    for jvm in [&mut early, &mut late] {
        jvm.kill().unwrap();
        jvm.wait().unwrap();
    }
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn another_user_than_hadoptic_runs_the_agents() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "2");
    rig.ok("install", &["--run-as", "nobody"]);
    let modes = rig.tree("h1");
    assert_eq!(modes["opt/hadoptic/bin/sniffer"].0 & 0o7777, 0o755, "never setuid");
    assert_eq!(modes["opt/hadoptic/bin/sniffer"].1, 0);
    let report = rig.ok("start", &[]);
    let status = fs::read_to_string(format!("/proc/{}/status", report["hosts"][0]["sniffer"])).unwrap();
    let uid = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
    assert!(uid.contains("65534"), "{uid}");
    rig.ok("status", &[]);
    rig.ok("stop", &[]);
    rig.ok("remove", &[]);
    assert!(!rig.of("h1").join("cap").exists());
}

/// Somebody who is not root, and his group.
const DAEMON_USER: [&str; 2] = ["nobody", "nogroup"];

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn the_first_daemon_starts_the_agents_and_they_end_after_the_last() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    skip_if!(compile(&rig).err());
    let before = rig.tree("h1");
    let (code, report) =
        rig.run("install", &["--started-by", "daemons", "--run-as", DAEMON_USER[0], "--disk-limit", "64MiB"]);
    if problems(&report).contains("setcap") {
        skip!("no setcap, or no file system with extended attributes");
    }
    assert_eq!(code, 0, "{report:#}");
    let report = rig.ok("start", &[]);
    assert_eq!(report["hosts"][0]["sniffer"], Value::Null, "no daemon is there: {report:#}");
    let daemon = || {
        let [user, group] = DAEMON_USER;
        let user = format!("exec setpriv --reuid={user} --regid={group} --clear-groups java");
        let command = format!(
            ". {}/hadoop-env.sh; {user} $HDFS_DATANODE_OPTS -cp {} {DATANODE}",
            rig.there("conf"),
            rig.path("java").display()
        );
        rig.enter("h1", &command).stderr(std::process::Stdio::null()).spawn().unwrap()
    };
    let agents = || {
        let report = rig.run("status", &[]).1;
        ["sniffer_runs", "dumpingd_runs"].map(|agent| report["hosts"][0][agent]["pid"].as_u64())
    };
    let ready = |name: &str| {
        let text = fs::read(rig.of("h1").join(format!("cap/h1/{name}.json"))).unwrap_or_default();
        let report: Value = serde_json::from_slice(&text).unwrap_or(Value::Null);
        report["ready"] == true && report["ended"] != true
    };
    let mut first = daemon();
    wait_until("the daemon starts both", || {
        agents().iter().all(Option::is_some) && ready("sniffer") && ready("dumpingd")
    });
    let pair = agents();
    let mut second = daemon();
    wait_until("the second daemon is seen", || agent_of(&rig, second.id()) == "yes");
    assert_eq!(agents(), pair, "one pair a host");
    let [sniffer, dumpingd] = pair.map(Option::unwrap);
    let uid = fs::read_to_string(format!("/proc/{sniffer}/status")).unwrap();
    assert!(uid.lines().any(|line| line.starts_with("Uid:\t65534\t65534")), "{uid}");
    // What install was told reaches programs that daemons start.
    let words = fs::read_to_string(format!("/proc/{sniffer}/cmdline")).unwrap();
    assert!(words.contains("--follow") && words.contains("--disk-limit=41943040"), "{words}");

    crate::support::sh(&format!("kill -9 {sniffer}"));
    wait_until("the sniffer comes back", || agents()[0].is_some_and(|pid| pid != sniffer) && ready("sniffer"));
    assert_eq!(agents()[1], Some(dumpingd));
    rig.ok("status", &[]);
    let report = rig.ok("start", &[]);
    assert_eq!(
        (&report["hosts"][0]["started"], report["hosts"][0]["sniffer"].as_u64()),
        (&Value::Bool(false), agents()[0])
    );

    let report = rig.ok("stop", &[]);
    assert_eq!(report["hosts"][0]["ran"], true);
    // The daemons look every 2 s, and see that they were asked to end.
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert_eq!(agents(), [None, None]);
    let mut third = daemon();
    wait_until("a daemon that is started again starts both", || {
        agents().iter().all(Option::is_some) && ready("sniffer")
    });

    for jvm in [&mut first, &mut second, &mut third] {
        crate::support::sh(&format!("kill {}", jvm.id()));
        jvm.wait().unwrap();
    }
    wait_until("both end after the last daemon", || agents() == [None, None]);
    let report = rig.ok("status", &[]);
    assert_eq!(report["hosts"][0]["lost"], 0);
    let out = rig.path("capture");
    rig.ok("collect", &["--out", out.to_str().unwrap()]);
    for name in ["sniffer", "dumpingd"] {
        let report: Value = serde_json::from_slice(&fs::read(out.join(format!("h1/{name}.json"))).unwrap()).unwrap();
        assert_eq!(report["ended"], true, "{report:#}");
    }
    rig.ok("remove", &[]);
    assert_eq!(crate::support::differ(&[before], &[rig.tree("h1")]), [""; 0], "nothing is left");
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn a_process_that_somebody_calls_an_agent_is_not_stopped() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    rig.ok("install", &[]);
    let mut other = rig.enter("h1", "exec sleep 600").spawn().unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", other.id())).unwrap();
    let ticks = stat.rsplit_once(')').unwrap().1.split(' ').nth(20).unwrap().to_owned();
    let lock = rig.of("h1").join("cap/h1/agents.lock");
    fs::write(&lock, format!("sniffer {} {ticks} 1\n", other.id())).unwrap();
    let report = rig.ok("stop", &[]);
    assert_eq!(report["hosts"][0]["ran"], false);
    assert!(other.try_wait().unwrap().is_none(), "a process of others was ended");
    other.kill().unwrap();
    other.wait().unwrap();
    rig.ok("remove", &[]);
}
