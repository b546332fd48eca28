//! Hadoop's ports are followed as they come and go, and no packet of them is lost meanwhile.

use std::fs;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Agent, Pair, exchange, request, serve, sh, wait_until};
use crate::traffic::packets_of;
use serde_json::Value;
use sniffer::follow::Follower;
use sniffer::ports::PortSet;
use trace::agent::write_atomically;
use trace::packet::{Packet, PacketReader, flag};
use trace::ports::{HadoopPorts, OpenConnection};

const SNIFFER: &str = env!("CARGO_BIN_EXE_sniffer");

fn start(pair: &Pair, out: &Path, options: &[&str]) -> Agent {
    Agent::start(SNIFFER, &pair.left, "sniffer.json", out, &[&["--ring", "8MiB", "--follow"], options].concat())
}

fn count(manifest: &Value, key: &str) -> u64 {
    let interfaces = manifest["interfaces"].as_array().unwrap();
    interfaces.iter().find(|i| i["name"] == "eth0").unwrap()[key].as_u64().unwrap()
}

/// Tells as dumpingd would: these ports, and these connections.
fn tell(folder: &Path, ports: &[u16], connections: &[(SocketAddr, SocketAddr)]) {
    let stated = HadoopPorts {
        version: 1,
        t: 1,
        listen: ports.iter().map(|port| (*port, "DataNode 7".to_owned())).collect(),
        connections: connections
            .iter()
            .map(|(local, remote)| OpenConnection { local: *local, remote: *remote, owner: "YarnChild 8".into() })
            .collect(),
        left_out: 0,
    };
    write_atomically(&folder.join("ports.json"), &serde_json::to_vec(&stated).unwrap()).unwrap();
}

/// The folder of our own user's JVMs.
fn folder_of_user(out: &Path) -> std::path::PathBuf {
    let own = out.join("jvm").join(nix::unistd::geteuid().to_string());
    fs::create_dir_all(&own).unwrap();
    own
}

/// A client on the left sends to a server on `port` on the right.
fn talk(pair: &Pair, port: u16, pieces: usize) -> SocketAddr {
    let (tell, stated) = std::sync::mpsc::channel();
    let server = Pair::within(&pair.right, move || {
        let listener = TcpListener::bind((Pair::RIGHT, port)).unwrap();
        tell.send(listener.local_addr().unwrap()).unwrap();
        serve(&listener, 10)
    });
    let address = stated.recv().unwrap();
    let (ends, _) = Pair::within(&pair.left, move || request(address, pieces, 100)).join().unwrap();
    server.join().unwrap();
    ends.client
}

/// Payload that one end sent, and whether its first segment is there.
fn sent_by(packets: &[Packet], end: SocketAddr) -> (u64, bool) {
    let of = || packets.iter().filter(|packet| packet.source == end);
    (of().map(|packet| u64::from(packet.payload_length)).sum(), of().any(|packet| packet.has(flag::SYN)))
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn a_connection_whose_port_is_told_later_has_its_beginning_and_a_foreign_one_is_left_out() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let agent = start(&pair, folder.path(), &["--hold", "60s", "--port", "7777"]);
    let configured = talk(&pair, 7777, 5);
    let by_default = talk(&pair, 9866, 5);
    let foreign = talk(&pair, 443, 5);
    let known_later = exchange(&pair, 5, 100, 10);
    let opened_by_hadoop = exchange(&pair, 5, 100, 10);
    tell(folder.path(), &[known_later.server.port()], &[(opened_by_hadoop.client, opened_by_hadoop.server)]);
    wait_until("the ports that were told", || {
        agent.manifest()["followed_ports"].to_string().contains(&known_later.server.port().to_string())
    });
    let (code, manifest) = agent.stop();
    assert_eq!(code, 0, "{manifest}");
    let packets = packets_of(&folder.path().join("packets-eth0.hpk"));
    for end in [configured, by_default, known_later.client, opened_by_hadoop.client] {
        assert_eq!(sent_by(&packets, end), (500, true), "{end}");
    }
    assert_eq!(sent_by(&packets, foreign), (0, false));
    assert!(count(&manifest, "filtered") > 0, "the kernel let the foreign connection through: {manifest}");
    let seen: u64 = ["packets", "other", "unparsed", "unfollowed", "undecided", "kernel_drops", "filtered"]
        .iter()
        .map(|key| count(&manifest, key))
        .sum();
    assert_eq!(seen, count(&manifest, "interface_packets"), "{manifest}");
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn no_packet_is_lost_while_filters_change() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let agent = start(&pair, folder.path(), &["--port", "7777"]);
    let over = AtomicBool::new(false);
    let client = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut port = 2000;
            while !over.load(Ordering::Relaxed) {
                tell(folder.path(), &[port], &[]);
                port += 1;
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        });
        let client = talk(&pair, 7777, 60_000);
        wait_until("some filters", || agent.manifest()["filter_changes"].as_u64() > Some(5));
        over.store(true, Ordering::Relaxed);
        client
    });
    let (code, manifest) = agent.stop();
    assert_eq!(code, 0, "{manifest}");
    let packets = packets_of(&folder.path().join("packets-eth0.hpk"));
    let mut edges: Vec<(u32, u32)> = packets
        .iter()
        .filter(|packet| packet.source == client && packet.payload_length > 0)
        .map(|packet| (packet.sequence, packet.payload_length))
        .collect();
    edges.sort_unstable();
    edges.dedup();
    let unique: u64 = edges.iter().map(|(_, length)| u64::from(*length)).sum();
    assert!(unique >= 6_000_000, "{unique} of 6000000 bytes are in the record");
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn a_connection_that_was_open_before_is_followed_when_its_process_is_told() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let (tell_port, port_of_thread) = std::sync::mpsc::channel();
    let server = Pair::within(&pair.right, move || {
        let listener = TcpListener::bind((Pair::RIGHT, 0)).unwrap();
        tell_port.send(listener.local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes.len()
    });
    let address = port_of_thread.recv().unwrap();
    let mut stream = Pair::within(&pair.left, move || TcpStream::connect(address).unwrap()).join().unwrap();
    stream.write_all(b"before").unwrap();
    let client = stream.local_addr().unwrap();
    tell(folder.path(), &[], &[(client, address)]);
    let agent = start(&pair, folder.path(), &[]);
    stream.write_all(b"afterwards").unwrap();
    drop(stream);
    assert_eq!(server.join().unwrap(), 16);
    let (code, manifest) = agent.stop();
    assert_eq!(code, 0, "{manifest}");
    let packets = packets_of(&folder.path().join("packets-eth0.hpk"));
    assert_eq!(sent_by(&packets, client), (10, false));
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn what_does_not_fit_while_it_is_held_is_counted_and_marked() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let agent = start(&pair, folder.path(), &["--hold", "60s", "--hold-memory", "4096"]);
    wait_until("packets that had to go", || {
        exchange(&pair, 200, 1000, 10);
        count(&agent.manifest(), "undecided") > 50
    });
    let (code, manifest) = agent.stop();
    assert_eq!(code, 1, "a loss has to show");
    assert!(manifest["problems"].to_string().contains("--hold-memory"), "{manifest}");
    let mut reader =
        PacketReader::new(BufReader::new(File::open(folder.path().join("packets-eth0.hpk")).unwrap())).unwrap();
    while reader.next_packet().unwrap().is_some() {}
    let noted: u64 = reader
        .notes()
        .iter()
        .filter(|note| note.kind == trace::capture_note::CaptureNoteKind::Undecided)
        .map(|note| note.count)
        .sum();
    assert_eq!(noted, count(&manifest, "undecided"));
}

#[test]
fn jvms_tell_of_their_own_ports_and_connections() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder_of_user(folder.path()).join("jvm-12-34.jsonl");
    let header = r#"{"k":"header","t":1,"version":1,"pid":12,"start_ticks":34,"netns":0,"host":"w1","addresses":[],"main":"m","role":"MRAppMaster","hadoop":"","java":""}"#;
    let lines = [
        header,
        r#"{"k":"rpc","this":"is no concern of ours"}"#,
        r#"{"k":"listen","t":2,"local":"10.1.0.1:41234"}"#,
        r#"{"k":"open","t":3,"th":1,"local":"10.1.0.1:50001","remote":"10.1.0.2:60001"}"#,
    ];
    fs::write(&path, lines.join("\n")).unwrap();
    let mut follower = Follower::new(folder.path(), &folder.path().join("jvm"), PortSet::default(), 32_768);
    let shared = follower.shared();
    let followed = shared.followed();
    assert!(followed.ports.contains(41_234));
    let (local, remote) = ("10.1.0.1:50001".parse().unwrap(), "10.1.0.2:60001".parse().unwrap());
    assert!(!followed.has(local, remote), "the line has no end yet");
    let version = shared.version();
    follower.look();
    assert_eq!(shared.version(), version, "nothing changed");
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"\n{\"k\":\"end\",\"t\":9,\"dropped\":0}\n{ nonsense\n").unwrap();
    wait_until("what was added", || {
        follower.look();
        shared.followed().has(local, remote)
    });
    let followed = shared.followed();
    assert!(followed.has(remote, local));
    assert_eq!(followed.owner(local, remote), "MRAppMaster 12");
    assert!(followed.ports.contains(41_234), "what ended is followed for its last packets");
    assert_eq!(follower.problems(), Vec::<String>::new());
}

#[test]
fn a_planted_link_or_pipe_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    fs::write(elsewhere.path(), "{\"k\":\"listen\",\"t\":2,\"local\":\"10.1.0.1:41234\"}\n").unwrap();
    let own = folder_of_user(folder.path());
    std::os::unix::fs::symlink(elsewhere.path(), own.join("jvm-1-1.jsonl")).unwrap();
    fs::hard_link(elsewhere.path(), own.join("jvm-3-3.jsonl")).unwrap();
    sh(&format!("mkfifo {}", own.join("jvm-2-2.jsonl").display()));
    let follower = Follower::new(folder.path(), &folder.path().join("jvm"), PortSet::default(), 32_768);
    assert!(!follower.shared().followed().ports.contains(41_234));
}
