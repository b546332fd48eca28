//! Real sockets in network namespaces: their owners, their counters, and the last words of those that die.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{Agent, Pair, SmallDisk, copy_program, exchange, sh, wait_until};
use serde_json::Value;
use test_support::skip;
use trace::files::read_json_lines;
use trace::socket::{Owner, SocketRecord, TcpCounters};

const DUMPINGD: &str = env!("CARGO_BIN_EXE_dumpingd");

fn start(pair: &Pair, out: &Path, interval: &str) -> Agent {
    Agent::start(DUMPINGD, &pair.left, "dumpingd.json", out, &["--interval", interval])
}

fn records(folder: &Path) -> Vec<SocketRecord> {
    read_json_lines(&folder.join("sockets.jsonl")).unwrap().0
}

/// Waits until the agent has recorded what `is_it` looks for.
fn await_record(folder: &Path, what: &str, is_it: impl Fn(&SocketRecord) -> bool) {
    wait_until(what, || records(folder).iter().any(&is_it));
}

/// The last counters of each connection end that died.
fn deaths(records: &[SocketRecord]) -> HashMap<(SocketAddr, SocketAddr), TcpCounters> {
    let of = |record: &SocketRecord| match record {
        SocketRecord::Died { local, remote, tcp, .. } => Some(((*local, *remote), tcp.unwrap())),
        _ => None,
    };
    records.iter().filter_map(of).collect()
}

/// A program that runs in a namespace until its standard input ends, having written a line when it is ready.
struct Program(Child);

impl Program {
    fn start(command: &mut Command) -> (Self, String) {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (Self(child), line.trim().to_owned())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_ticks(pid: u32) -> u64 {
    procfs::process::Process::new(pid.cast_signed()).unwrap().stat().unwrap().starttime
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn connections_that_live_shorter_than_an_interval_leave_their_last_counters() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let agent = start(&pair, folder.path(), "1h");
    assert_eq!(agent.manifest()["hears_dying"], true);
    let mut exchanges = Vec::new();
    for i in 1..=20 {
        exchanges.push((exchange(&pair, i, 10_001, 100 * i), i as u64));
    }
    wait_until("the deaths of all", || {
        let dead = deaths(&records(folder.path()));
        exchanges.iter().all(|(ends, _)| dead.contains_key(&(ends.client, ends.server)))
    });
    let (code, manifest) = agent.stop();
    assert_eq!(code, 0, "{manifest}");
    let dead = deaths(&records(folder.path()));
    for (ends, i) in exchanges {
        let counters = dead[&(ends.client, ends.server)];
        assert_eq!(counters.bytes_sent - counters.bytes_retrans, 10_001 * i);
        // With the FIN, which counts as a byte.
        assert_eq!(counters.bytes_received, 100 * i + 1);
        assert!(counters.snd_mss > 0 && counters.rtt_us > 0);
    }
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn news_of_deaths_that_did_not_fit_are_counted() {
    let pair = Pair::new();
    let (destroy_events, remark) =
        Pair::within(&pair.left, || dumpingd::destroy_events::SocketDestroyEvents::subscribe(8192).unwrap())
            .join()
            .unwrap();
    assert_eq!(remark, None);
    let mut destroy_events = destroy_events;
    let (mut died, mut overruns) = (0, 0);
    wait_until("a full buffer", || {
        for _ in 0..50 {
            exchange(&pair, 1, 10, 10);
        }
        let batch = destroy_events.take(10_000).unwrap();
        died += batch.died.len();
        overruns += batch.overruns;
        overruns > 0
    });
    assert!(died > 0, "what did fit was not heard");
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn the_jvm_that_listens_and_the_program_that_connects_are_known() {
    if Command::new("javac").arg("-version").output().is_err() {
        skip!("no JDK");
    }
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let classes = compile_data_node(folder.path());
    let out = folder.path().join("w1");
    let agent = start(&pair, &out, "20ms");

    let mut java = Command::new("ip");
    java.args(["netns", "exec", &pair.left, "java", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp"]);
    java.arg(&classes).args(["org.apache.hadoop.hdfs.server.datanode.DataNode", "--password", "hunter2"]);
    let (jvm, port) = Program::start(&mut java);
    let jvm_owner = Owner { pid: jvm.0.id(), start_ticks: start_ticks(jvm.0.id()) };
    let listen: SocketAddr = format!("{}:{port}", Pair::LEFT).parse().unwrap();

    // bash opens a connection, says so, and holds it until its input ends.
    let connect =
        format!("exec 3<>/dev/tcp/{}/{}; printf hello >&3; echo connected; read line", Pair::LEFT, listen.port());
    let (bash, connected) =
        Program::start(Command::new("ip").args(["netns", "exec", &pair.left, "bash", "-c", &connect]));
    assert_eq!(connected, "connected");
    let bash_owner = Owner { pid: bash.0.id(), start_ticks: start_ticks(bash.0.id()) };

    await_record(
        &out,
        "the listener with its owner",
        |record| matches!(record, SocketRecord::Listen { local, owner, .. } if local.port() == listen.port() && *owner == Some(jvm_owner)),
    );
    let owned_by = |wanted: Owner, from_port: Option<u16>, to_port: Option<u16>| {
        move |record: &SocketRecord| {
            matches!(record, SocketRecord::Socket { local, remote, owner, state, .. }
                if *owner == Some(wanted) && state == "ESTABLISHED"
                && from_port.is_none_or(|port| local.port() == port) && to_port.is_none_or(|port| remote.port() == port))
        }
    };
    await_record(&out, "the accepted end with its owner", owned_by(jvm_owner, Some(listen.port()), None));
    await_record(&out, "the connecting end with its owner", owned_by(bash_owner, None, Some(listen.port())));
    drop((bash, jvm));
    let (code, manifest) = agent.stop();
    assert_eq!(code, 0, "{manifest}");

    let recorded = records(&out);
    let process = |wanted: Owner| {
        let found: Vec<_> = recorded
            .iter()
            .filter_map(|record| match record {
                SocketRecord::Process { owner, main, role, netns, .. } if *owner == wanted => {
                    assert_eq!(Some(*netns), manifest["netns"].as_u64());
                    Some((main.clone(), role.clone()))
                }
                _ => None,
            })
            .collect();
        found
    };
    assert_eq!(
        process(jvm_owner).last().unwrap(),
        &("org.apache.hadoop.hdfs.server.datanode.DataNode".to_owned(), "DataNode".to_owned())
    );
    assert_eq!(process(bash_owner), [("bash".to_owned(), "other".to_owned())]);
    let text = fs::read_to_string(out.join("sockets.jsonl")).unwrap();
    assert!(!text.contains("hunter2"), "an argument was recorded");
}

/// A JVM of our own under the name of one of Hadoop's: listens on all addresses (a v4-mapped socket), tells its port,
/// accepts one connection, and ends with its input.
fn compile_data_node(folder: &Path) -> std::path::PathBuf {
    let source = folder.join("DataNode.java");
    let classes = folder.join("classes");
    let mut file = fs::File::create(&source).unwrap();
    file.write_all(
        b"package org.apache.hadoop.hdfs.server.datanode;
        public class DataNode {
            public static void main(String[] arguments) throws Exception {
                java.net.ServerSocket server = new java.net.ServerSocket(0);
                System.out.println(server.getLocalPort());
                java.net.Socket socket = server.accept();
                while (System.in.read() >= 0) { }
                socket.close();
            }
        }",
    )
    .unwrap();
    sh(&format!("javac -d {} {}", classes.display(), source.display()));
    classes
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn a_killed_dumpingd_leaves_a_file_that_can_be_read_and_continued() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sockets.jsonl");
    let mut survived = 0;
    // `HADOPTIC_KILLS=200` for the long run.
    let kills = std::env::var("HADOPTIC_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(6u64);
    for run in 0..kills {
        let agent = start(&pair, folder.path(), "1ms");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..5 {
                    exchange(&pair, 100, 1_000, 100);
                }
            });
            std::thread::sleep(std::time::Duration::from_millis(run.wrapping_mul(2_654_435_761) % 150));
            agent.kill();
        });
        let (records, losses) = read_json_lines::<SocketRecord>(&path).unwrap();
        assert_eq!(losses.malformed_lines, 0);
        assert!(records.len() > survived, "run {run}");
        survived = records.len();
    }
    let (code, manifest) = start(&pair, folder.path(), "100ms").stop();
    assert_eq!(code, 0, "{manifest}");
    assert_eq!(manifest["earlier_runs"].as_array().unwrap().len() as u64, kills);
    let (records, losses) = read_json_lines::<SocketRecord>(&path).unwrap();
    assert_eq!(losses, Default::default(), "what a kill cut off is gone after the next run");
    assert_eq!(records.iter().filter(|record| matches!(record, SocketRecord::Header { .. })).count() as u64, kills + 1);
    let broken_off =
        |record: &&SocketRecord| matches!(record, SocketRecord::Lost { what, .. } if what.contains("broken off"));
    assert_eq!(records.iter().filter(broken_off).count() as u64, kills, "a time without the agent is not marked");
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn a_full_disk_costs_records_that_are_counted_when_there_is_room_again() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let _mounted = SmallDisk::mount(folder.path(), "256k");
    let options = ["--interval", "10ms", "--disk-limit", "0", "--keep-free", "0"];
    let agent = Agent::start(DUMPINGD, &pair.left, "dumpingd.json", folder.path(), &options);
    let filler = folder.path().join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    while file.write_all(&[0; 512]).is_ok() {}
    wait_until("the problem", || {
        exchange(&pair, 1, 100, 100);
        agent.manifest()["problems"].to_string().contains("could not be written")
    });
    fs::remove_file(&filler).unwrap();
    drop(file);
    await_record(
        folder.path(),
        "the count of what was lost",
        |record| matches!(record, SocketRecord::Lost { what, count, .. } if what.contains("could not be written") && *count > 0),
    );
    let (code, manifest) = agent.stop();
    assert_eq!(code, 1, "{manifest}");
    let (_, losses) = read_json_lines::<SocketRecord>(&folder.path().join("sockets.jsonl")).unwrap();
    assert_eq!(losses, Default::default(), "a piece of a line was left in the file");
}

#[test]
fn without_root_what_can_be_known_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = folder.path().join("dumpingd");
    copy_program(DUMPINGD, &program);
    let mut command = Command::new(program);
    let out = folder.path().join("host");
    command.args(["run", "--duration", "100ms", "--keep-free", "0", "--json", "--out"]).arg(&out);
    if nix::unistd::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let output = command.output().unwrap();
    let manifest: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&manifest["ready"], &manifest["ended"]), (&Value::Bool(true), &Value::Bool(true)));
    assert!(
        records(&out).iter().any(|r| matches!(r, SocketRecord::Listen { local, .. } if local.port() == port)),
        "the listener of this test is missing"
    );
    if nix::unistd::geteuid().is_root() {
        assert_eq!(output.status.code(), Some(1), "that owners are missing has to show");
        let problems = manifest["problems"].to_string();
        assert!(problems.contains("CAP_SYS_PTRACE"), "{problems}");
    }
}

#[test]
fn the_command_line_teaches_and_refuses() {
    for arguments in [["--help"].as_slice(), &["run", "--help"], &["completions", "zsh"]] {
        let output = Command::new(DUMPINGD).args(arguments).output().unwrap();
        assert!(output.status.success() && !output.stdout.is_empty(), "{arguments:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let in_a_file = file.join("host");
    for (arguments, hint) in [
        (["run", "--out", "x", "--interval", "0ms"], "at least 1ms"),
        (["run", "--out", "x", "--interval", "often"], "200ms"),
        (["run", "--out", in_a_file.to_str().unwrap(), "--interval", "1s"], "file/host"),
    ] {
        let output = Command::new(DUMPINGD).args(arguments).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(hint), "{message}");
    }
}
