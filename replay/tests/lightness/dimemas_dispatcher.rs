//! `replay dimemas` as a program: the task mapping of the fabric's file, and fabrics that simulate packets.

use replay::experiment::Experiment;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Starts the server for one client; its log, and the address that it names.
fn serve(folder: &Path, arguments: &[&str]) -> (Child, BufReader<std::process::ChildStderr>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_replay"))
        .current_dir(folder)
        .args(["dimemas", "--listen", "127.0.0.1:0", "--once"])
        .args(arguments)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    let address = line.trim().rsplit(' ').next().unwrap().to_owned();
    (child, log, address)
}

/// Plays a turn-taking client that sends one message and asks until it is complete: when that is, in ns.
fn one_message(address: &str, from: u32, to: u32, bytes: u32) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    stream.write_all(format!("SEND 0 {from} {to} 1 {bytes} 0xa 0xb {from} {to} 0 0\n").as_bytes()).unwrap();
    loop {
        stream.write_all(b"STOP 100000000000\nEND\n").unwrap();
        let mut completed = None;
        loop {
            let mut line = String::new();
            assert!(answers.read_line(&mut line).unwrap() > 0, "the server left");
            if line.trim() == "END" {
                break;
            }
            completed = line.split_whitespace().nth(2).map(str::to_owned);
        }
        if let Some(at) = completed {
            stream.write_all(b"FINISH\n").unwrap();
            return at;
        }
    }
}

const TORS: &str = "[fabric]\nkind = \"lightness\"\ndecision = \"ops\"\nserver_rate = \"unlimited\"\n";

#[test]
fn tasks_are_mapped_by_the_deliverables_names() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tasks.txt"), "100 0\n200 3\n").unwrap();
    std::fs::write(
        folder.path().join("mapped.toml"),
        format!("[dispatcher]\ntaskMapping = true\ntaskFilename = \"tasks.txt\"\n{TORS}"),
    )
    .unwrap();
    // From another folder: the file lies beside the experiment.
    let (mut child, _log, address) =
        serve(Path::new("/"), &[folder.path().join("mapped.toml").to_str().unwrap(), "--nodes", "4"]);
    // 1,678 + 1,000 x 2.15 + 30, the next whole ns, 800.
    assert_eq!(one_message(&address, 100, 200, 1_000), "4659");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_mapping_that_is_switched_off_or_lacks_its_file_is_seen() {
    let read = |dispatcher: &str| Experiment::parse(&format!("[dispatcher]\n{dispatcher}\n{TORS}"), "e.toml", &[]);
    let off = read("taskMapping = false\ntaskFilename = \"tasks.txt\"").unwrap();
    assert_eq!(off.dispatcher.mapping_file(), None);
    let on = read("task_filename = \"tasks.txt\"").unwrap();
    assert_eq!(on.dispatcher.mapping_file(), Some(Path::new("tasks.txt")));
    let written = on.to_toml().unwrap();
    assert_eq!(Experiment::parse(&written, "w.toml", &[]).unwrap(), on);
    let error = read("taskMapping = true").unwrap_err().to_string();
    assert!(error.starts_with("e.toml:2:1: dispatcher.taskMapping"), "{error}");
}

#[test]
fn packet_fabrics_serve_dimemas_too() {
    // One switch between two nodes: 10 packets' worth of a message at 8 Gbit/s, 1 ns a byte.
    let folder = tempfile::tempdir().unwrap();
    let topology = "topology = { shape = \"racks\", host_link = { rate = \"8Gbps\" } }";
    let fabrics = [
        // Cut-through: a flit of 64 B and the switch ahead of the 1,000 bytes, which are 16 flits.
        (format!("kind = \"credit\"\nheaders = \"0B\"\nswitch_delay = \"200ns\"\n{topology}"), "1288"),
        (
            format!(
                "kind = \"lightness\"\nserver_rate = \"unlimited\"\n[fabric.rack]\nkind = \"credit\"\nheaders = \"0B\"\n{topology}"
            ),
            "1288",
        ),
    ];
    for (number, (fabric, expected)) in fabrics.iter().enumerate() {
        let name = format!("{number}.toml");
        std::fs::write(folder.path().join(&name), format!("[fabric]\n{fabric}\n")).unwrap();
        let (mut child, _log, address) = serve(folder.path(), &[&name, "--nodes", "4", "--racks", "1"]);
        assert_eq!(one_message(&address, 0, 1, 1_000), *expected, "{fabric}");
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn a_line_that_is_none_is_logged_and_the_connection_kept_and_a_silent_client_is_told_what_was_awaited() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("e.toml"), TORS).unwrap();
    let (mut child, mut log, address) = serve(folder.path(), &["e.toml", "--nodes", "4", "--timeout", "1s"]);
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"SEND 0 0 1 rubbish\nSTOP 10\nEND\nSTOP 20\n").unwrap();
    let mut answer = String::new();
    BufReader::new(stream.try_clone().unwrap()).read_line(&mut answer).unwrap();
    assert_eq!(answer, "END\n");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let mut text = String::new();
    while log.read_line(&mut text).unwrap() > 0 {}
    assert!(text.contains("line 1: ") && text.contains("SEND") && text.contains("passed over"), "{text}");
    assert!(text.contains("timed out: waited 1s for END of the turn that began with line 4"), "{text}");
}

#[test]
fn the_microbenchmark_takes_what_the_deliverables_arithmetic_says() {
    let trace = include_str!("../../experiments/dimemas/microbenchmark.dim");
    let sends: Vec<Vec<u32>> = trace
        .lines()
        .filter_map(|line| line.strip_prefix("2:0:0:1:-1:"))
        .map(|line| line.split(':').take(2).map(|word| word.parse().unwrap()).collect())
        .collect();
    assert_eq!(sends, [[80, 1], [32_768, 2]]);
    // The last lines say where the records of a task begin.
    for line in trace.lines().filter_map(|line| line.strip_prefix("s:")) {
        let (task, at) = line.split_once(':').unwrap();
        assert!(trace[at.parse().unwrap()..].starts_with(&format!("1:{task}:0:")), "{line}");
    }
    let direct = ["--set", "fabric.decision=\"direct\"", "--set", "fabric.photonic_packet_max=\"1500B\""];
    let ideal_servers = ["--nodes", "2", "--racks", "2", "--set", "fabric.server_rate=\"unlimited\""];
    // Tables 1 and 2, and a circuit's set-up before it (Figure 18).
    for (fabric, more, bytes, expected) in [
        ("lightness-ops", &direct[..], 80, "1850"),
        ("lightness-ops", &direct[..], 32_768, "107367.2"),
        ("lightness-ocs", &[][..], 80, "753001850"),
    ] {
        let arguments: Vec<&str> = [fabric].into_iter().chain(ideal_servers).chain(more.iter().copied()).collect();
        let (mut child, _log, address) = serve(Path::new("."), &arguments);
        assert_eq!(one_message(&address, 0, 1, bytes), expected, "{fabric} {bytes}");
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn it_listens_on_a_port_a_name_or_an_address() {
    for (listen, expected) in [("0", "127.0.0.1:"), ("localhost:0", "127.0.0.1:"), ("127.0.0.1:0", "127.0.0.1:")] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_replay"))
            .args(["dimemas", "ideal", "--once", "--listen", listen])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(line.contains(&format!("listening on {expected}")), "{listen}: {line}");
    }
    for (listen, expected) in [("localhost", "write it like 4242, localhost:4242"), ("localhost:99999", "port")] {
        let command = ["dimemas", "ideal", "--once", "--listen", listen];
        let output = Command::new(env!("CARGO_BIN_EXE_replay")).args(command).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(expected), "{listen}: {error}");
    }
}
