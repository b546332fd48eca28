//! Connections shorter than any interval have an owner, and listeners are told at once; containers' namespaces are seen.

use std::collections::HashMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Agent, Pair, exchange, wait_until};
use nix::sys::signal::Signal;
use test_support::{skip, skipped};
use trace::files::read_json_lines;
use trace::socket::{Owner, SocketRecord};

const DUMPINGD: &str = env!("CARGO_BIN_EXE_dumpingd");

/// A port on which nobody listens.
const CLOSED: u16 = 9;

fn start(namespace: &str, out: &Path, options: &[&str]) -> Agent {
    Agent::start(DUMPINGD, namespace, "dumpingd.json", out, options)
}

fn owners(folder: &Path) -> HashMap<SocketAddr, Owner> {
    let records: Vec<SocketRecord> = read_json_lines(&folder.join("sockets.jsonl")).unwrap().0;
    records
        .iter()
        .filter_map(|record| match record {
            SocketRecord::Socket { local, owner: Some(owner), .. } => Some((*local, *owner)),
            _ => None,
        })
        .collect()
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn connections_of_a_millisecond_have_their_owner() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let agent = start(&pair.left, folder.path(), &["--interval", "1h"]);
    if agent.manifest()["tracepoint"] != true {
        let notes = agent.manifest()["notes"].to_string();
        assert!(notes.contains("tracepoint"), "{notes}");
        skip!("no tracepoint here: {notes}");
    }
    let (tell, stated) = std::sync::mpsc::channel();
    let server = Pair::within(&pair.right, move || {
        let listener = TcpListener::bind((Pair::RIGHT, 0)).unwrap();
        tell.send(listener.local_addr().unwrap()).unwrap();
        for _ in 0..200 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
        }
    });
    let address = stated.recv().unwrap();
    let (tell_ends, all_ended) = std::sync::mpsc::channel();
    let (end_thread, may_end) = std::sync::mpsc::channel::<()>();
    let clients = Pair::within(&pair.left, move || {
        let mut ends = Vec::new();
        for _ in 0..200 {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"x").unwrap();
            ends.push(stream.local_addr().unwrap());
        }
        // Nobody listens there: a SYN and a RST are traffic, too.
        TcpStream::connect((Pair::RIGHT, CLOSED)).unwrap_err();
        tell_ends.send(ends).unwrap();
        // The thread lives longer than its connections: on a busy machine the agent may look only after them.
        let _ = may_end.recv();
    });
    let ends = all_ended.recv().unwrap();
    server.join().unwrap();
    let owned = || {
        let owners = owners(folder.path());
        ends.iter().filter(|end| owners.get(end).is_some_and(|owner| owner.pid == std::process::id())).count()
    };
    wait_until("the owners of 198 of 200 connections", || owned() >= 198);
    drop(end_thread);
    clients.join().unwrap();
    let (code, manifest) = agent.stop();
    assert_eq!(code, 0, "{manifest}");
    let records: Vec<SocketRecord> = read_json_lines(&folder.path().join("sockets.jsonl")).unwrap().0;
    let knocked = records.iter().find_map(|record| match record {
        SocketRecord::Socket { local, remote, owner: Some(owner), state, .. } if remote.port() == CLOSED => {
            Some((local.port(), owner.pid, state.as_str()))
        }
        _ => None,
    });
    let (port, pid, state) = knocked.expect("whoever knocked at the closed port is not known");
    assert_eq!((pid, state), (std::process::id(), "CLOSE"));
    assert_ne!(port, 0);
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn connections_of_threads_that_ended_before_the_agent_looked_are_counted() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let agent = start(&pair.left, folder.path(), &["--interval", "1h"]);
    if agent.manifest()["tracepoint"] != true {
        skip!("no tracepoint here");
    }
    agent.signal(Signal::SIGSTOP);
    for _ in 0..3 {
        exchange(&pair, 1, 1_000, 100);
    }
    agent.signal(Signal::SIGCONT);
    let (code, manifest) = agent.stop();
    assert_eq!(code, 0, "{manifest}");
    // Those of other tests, in other network namespaces, may be among them.
    assert!(manifest["ended_openers"].as_u64() >= Some(3), "{manifest}");
    assert!(owners(folder.path()).is_empty());
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn a_killed_run_leaves_no_tracepoint_behind_for_long() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let first = start(&pair.left, &folder.path().join("a"), &[]);
    if first.manifest()["tracepoint"] != true {
        skip!("no tracepoint here");
    }
    let killed = format!("hadoptic-{}-", first.pid());
    first.kill();
    let second = start(&pair.left, &folder.path().join("b"), &[]);
    // tracefs may be mounted for the agent only: look through its eyes.
    let instances = format!("/proc/{}/root/sys/kernel/tracing/instances", second.pid());
    let names: Vec<String> = fs::read_dir(instances)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert!(!names.iter().any(|name| name.starts_with(&killed)), "{names:?}");
    assert!(names.iter().any(|name| name.starts_with(&format!("hadoptic-{}-", second.pid()))), "{names:?}");
    assert_eq!(second.stop().0, 0);
}

/// A program under the name of one of Hadoop's JVMs that listens, in a namespace.
fn fake_jvm(namespace: &str, folder: &Path) -> Option<(std::process::Child, u16)> {
    let source = folder.join("NodeManager.java");
    fs::write(
        &source,
        "package org.apache.hadoop.yarn.server.nodemanager;
        public class NodeManager { public static void main(String[] a) throws Exception {
            java.net.ServerSocket s = new java.net.ServerSocket(0);
            System.out.println(s.getLocalPort());
            while (System.in.read() >= 0) { }
        } }",
    )
    .unwrap();
    let compiled = Command::new("javac").arg("-d").arg(folder).arg(&source).status();
    if !compiled.is_ok_and(|status| status.success()) {
        return None;
    }
    let mut child = Command::new("ip")
        .args(["netns", "exec", namespace, "java", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp"])
        .arg(folder)
        .arg("org.apache.hadoop.yarn.server.nodemanager.NodeManager")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
    Some((child, line.trim().parse().unwrap()))
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn hadoops_processes_in_other_namespaces_are_seen_when_that_is_wanted_and_their_ports_are_told() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let (wide, narrow) = (folder.path().join("wide"), folder.path().join("narrow"));
    let all = start(&pair.left, &wide, &["--interval", "50ms", "--namespaces", "hadoop"]);
    let own = start(&pair.left, &narrow, &["--interval", "50ms"]);
    let Some((mut jvm, port)) = fake_jvm(&pair.right, folder.path()) else {
        skip!("no JDK");
    };
    let listens = |folder: &Path| {
        let records: Vec<SocketRecord> = read_json_lines(&folder.join("sockets.jsonl")).unwrap().0;
        records.iter().any(|record| {
            matches!(record, SocketRecord::Listen { local, owner: Some(owner), .. }
            if local.port() == port && owner.pid == jvm.id())
        })
    };
    wait_until("the listener in the other namespace", || listens(&wide));
    let ports = || fs::read_to_string(wide.join("ports.json")).unwrap_or_default();
    wait_until("the port being told", || ports().contains(&format!("\"{port}\":\"NodeManager {}\"", jvm.id())));
    let (code, manifest) = all.stop();
    // 1: a process of another namespace may be hidden even from root.
    assert!(matches!(code, 0 | 1), "{manifest}");
    assert!(!manifest["other_netns"].as_array().unwrap().is_empty());
    assert_eq!(own.stop().0, 0);
    assert!(!listens(&narrow));
    let _ = jvm.kill();
    let _ = jvm.wait();
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn the_fall_backs_record_owners_as_well() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for source in ["netlink", "proc", "lsof"] {
        if source == "lsof" && Command::new("lsof").arg("-v").output().is_err() {
            skipped("no lsof");
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let status = Command::new(DUMPINGD)
            .args(["run", "--duration", "300ms", "--interval", "50ms", "--no-tracepoint", "--source", source])
            .args(["--keep-free", "0", "--out"])
            .arg(folder.path())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        // 1: a process of this machine may be hidden even from root.
        assert!(matches!(status.code(), Some(0 | 1)), "{source}");
        let records: Vec<SocketRecord> = read_json_lines(&folder.path().join("sockets.jsonl")).unwrap().0;
        assert!(
            records.iter().any(|record| matches!(record, SocketRecord::Listen { local, owner: Some(owner), .. }
                if local.port() == port && owner.pid == std::process::id())),
            "{source}: the listener has no owner"
        );
    }
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn once_everything_is_open_few_rights_are_left() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let agent = start(&pair.left, folder.path(), &[]);
    let status = fs::read_to_string(format!("/proc/{}/status", agent.pid())).unwrap();
    let capabilities = status.lines().find(|line| line.starts_with("CapEff:")).unwrap();
    // CAP_DAC_READ_SEARCH (2) and CAP_SYS_PTRACE (19).
    assert_eq!(capabilities.split_whitespace().nth(1), Some("0000000000080004"));
    assert_eq!(agent.stop().0, 0);
}
