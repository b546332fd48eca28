//! What a user of a host, or a damaged disk, may put into a capture: nothing of it hangs the merger, brings it down, or
//! takes others' records with it.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::world::{World, assert_bytes_are_conserved, at, connections, write_lines};
use merger::build::{Silent, merge};
use merger::merged::Merged;
use trace::jvm::JvmRecord;
use trace::manifest::{DumpingdManifest, InterfaceManifest, PacketCounts, SnifferManifest};
use trace::rows::OwnerEvidence;
use trace::socket::{Owner, SocketRecord};

fn world() -> World {
    let mut world = World::new(&["m1", "w1", "w2"]);
    for (client, port) in [(1, 40_000), (2, 40_001)] {
        let mut talk = world.connect((client, port), (0, 8020), [100, 200], at(0));
        world.own(&talk, at(0), (50, "DataNode"), (60, "NameNode"));
        world.say(&mut talk, true, at(1), &[7; 100]);
    }
    world
}

fn make_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn merged(folder: &Path) -> Merged {
    let merged = merge(&[folder.to_owned()], &Silent).unwrap();
    assert_bytes_are_conserved(&merged);
    merged
}

fn is_lost(merged: &Merged, words: &[&str]) -> bool {
    merged.joined.losses.iter().any(|loss| words.iter().all(|word| loss.what().contains(word)))
}

/// Runs the program with no more than this memory, and no longer than a minute.
fn run_within(memory_bytes: u64, arguments: &[&str]) -> Output {
    let limit = memory_bytes.to_string();
    let mut child = Command::new("prlimit")
        .args([&format!("--as={limit}"), env!("CARGO_BIN_EXE_merger")])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

fn build(folder: &Path) -> Output {
    let out = tempfile::tempdir().unwrap();
    run_within(
        4 << 30,
        &["build", folder.to_str().unwrap(), "--out", out.path().join("trace").to_str().unwrap(), "--json"],
    )
}

#[test]
fn a_small_file_that_unpacks_to_gigabytes_is_cut_and_named() {
    let folder = tempfile::tempdir().unwrap();
    world().write(folder.path());
    // 8 GB of one line, and 8 GB of lines that are no records.
    let line = [vec![b'0'; 60_000], vec![b'\n']].concat();
    for (name, piece) in [("jvm-9-1.jsonl.zst", vec![b'0'; 1 << 20]), ("jvm-9-2.jsonl.zst", line.repeat(16))] {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        (0..8_000).for_each(|_| encoder.write_all(&piece).unwrap());
        let packed = encoder.finish().unwrap();
        assert!(packed.len() < 5 << 20, "{}", packed.len());
        fs::write(folder.path().join("w1").join(name), packed).unwrap();
    }
    let output = build(folder.path());
    let (said, stated) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    assert_eq!(output.status.code(), Some(0), "{said}");
    for name in ["jvm-9-1.jsonl.zst", "jvm-9-2.jsonl.zst"] {
        assert!(
            stated.contains(&format!("w1/{name}: the rest of the file (it unpacks to more than 1000 times")),
            "{stated}"
        );
    }
}

#[test]
fn fifos_folders_and_links_named_like_records_are_left_out_and_named() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "only for root\n").unwrap();
    for name in ["packets-eth1.hpk", "sockets.000001.jsonl", "jvm-8-1.jsonl", "sniffer.json", "dumpingd.json"] {
        for kind in ["fifo", "folder", "link", "device"] {
            let folder = tempfile::tempdir().unwrap();
            world().write(folder.path());
            let path = folder.path().join("w1").join(name);
            match kind {
                "fifo" => make_fifo(&path),
                "folder" => fs::create_dir(&path).unwrap(),
                "device" => symlink("/dev/zero", &path).unwrap(),
                _ => symlink(outside.path().join("secret"), &path).unwrap(),
            }
            let merged = merged(folder.path());
            assert_eq!(merged.joined.connections.len(), 2);
            assert!(is_lost(&merged, &["w1/", name, "left out"]), "{kind} {name}: {:?}", merged.joined.losses);
        }
    }
}

#[test]
fn links_to_folders_are_left_out_and_named() {
    let folder = tempfile::tempdir().unwrap();
    world().write(folder.path());
    let elsewhere = tempfile::tempdir().unwrap();
    fs::rename(folder.path().join("w1/jvm-50-500.jsonl"), elsewhere.path().join("jvm-50-500.jsonl")).unwrap();
    fs::create_dir(folder.path().join("w1/jvm")).unwrap();
    symlink(elsewhere.path(), folder.path().join("w1/jvm/1001")).unwrap();
    symlink(folder.path().join("w2"), folder.path().join("w3")).unwrap();
    symlink("/etc", folder.path().join("job")).unwrap();
    let merged = merged(folder.path());
    assert!(is_lost(&merged, &["w1/jvm/1001", "it is a link"]), "{:?}", merged.joined.losses);
    assert!(is_lost(&merged, &["w3", "it is a link"]), "{:?}", merged.joined.losses);
    assert!(merged.joined.hosts.iter().all(|host| host.name != "w3"));
}

#[test]
fn a_line_longer_than_any_record_is_left_out_and_the_next_one_read() {
    let folder = tempfile::tempdir().unwrap();
    world().write(folder.path());
    let path = folder.path().join("w1/jvm-50-500.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let (header, rest) = text.split_once('\n').unwrap();
    let long = format!("{{\"k\":\"listen\",\"t\":1,\"local\":\"{}\"}}", "9".repeat(100_000));
    fs::write(&path, format!("{header}\n{long}\n{rest}")).unwrap();
    let merged = merged(folder.path());
    assert!(is_lost(&merged, &["w1/jvm-50-500.jsonl", "longer than any record"]), "{:?}", merged.joined.losses);
    assert_eq!(connections(&merged)[0].client_evidence, OwnerEvidence::Jvm);
}

#[test]
fn a_manifest_that_leads_out_of_its_folder_is_refused() {
    for file in ["../w2/packets-eth0.hpk", "/etc/hostname", "..", "packets/eth0.pcap", ""] {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("w1/packets")).unwrap();
        fs::write(folder.path().join("w1/packets/eth0.pcap"), "").unwrap();
        world().write(folder.path());
        let manifest = serde_json::json!({
            "host": "w1", "addresses": ["10.0.0.2"], "packets": [{ "file": file, "interface": "eth0" }]
        });
        fs::write(folder.path().join("w1/manifest.json"), manifest.to_string()).unwrap();
        let error = merge(&[folder.path().to_owned()], &Silent).unwrap_err().to_string();
        assert!(error.contains("w1/manifest.json") && error.contains("its folder"), "{file}: {error}");
    }
}

/// How much was lost of what is told in these words.
fn loss_of(merged: &Merged, words: &str) -> Option<u64> {
    merged.joined.losses.iter().find(|loss| loss.to_string().contains(words)).map(|loss| loss.count)
}

fn append(path: &Path, records: &[JvmRecord]) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    for record in records {
        writeln!(file, "{}", serde_json::to_string(record).unwrap()).unwrap();
    }
}

fn header(pid: u32, address: &str) -> JvmRecord {
    JvmRecord::Header {
        t: at(0),
        version: 1,
        pid,
        ns_pid: Vec::new(),
        start_ticks: u64::from(pid) * 10,
        netns: 0,
        host: "w1".into(),
        addresses: vec![address.into()],
        main: "Job".into(),
        role: "Job".into(),
        hadoop: String::new(),
        java: String::new(),
        container: None,
    }
}

#[test]
fn a_jvm_that_claims_another_hosts_address_does_not_stop_the_merge() {
    let folder = tempfile::tempdir().unwrap();
    world().write(folder.path());
    let before = merged(folder.path());
    let forged = folder.path().join("w1/jvm-9-90.jsonl");
    // That of w2, and one of which nobody else knows.
    write_lines(&forged, &[header(9, "10.0.0.3"), header(9, "10.9.9.9")]);
    let after = merged(folder.path());
    assert!(is_lost(&after, &["w1/jvm-9-90.jsonl", "10.0.0.3", "w2"]), "{:?}", after.joined.losses);
    assert_eq!(after.joined.hosts, before.joined.hosts, "addresses are those of packets and manifests");
    assert_eq!(after.joined.connections.len(), before.joined.connections.len());
}

#[test]
fn a_jvm_that_says_that_it_listens_everywhere_is_believed_in_part() {
    let folder = tempfile::tempdir().unwrap();
    world().write(folder.path());
    let before = merged(folder.path());
    let listens = (0..5000u32).map(|number| JvmRecord::Listen {
        t: at(1),
        local: format!("10.{}.{}.1:9000", 1 + number / 250, number % 250),
        purpose: String::new(),
    });
    let records: Vec<JvmRecord> = std::iter::once(header(9, "10.9.9.9")).chain(listens).collect();
    write_lines(&folder.path().join("w1/jvm-9-90.jsonl"), &records);
    let after = merged(folder.path());
    let lost = loss_of(&after, "listens on more addresses");
    assert_eq!(lost, Some(5000 - 4096), "{:?}", after.joined.losses);
    // Its process has moved the numbers of others.
    let told = |merged: &Merged| {
        connections(merged)
            .into_iter()
            .map(|row| (row.client, row.client_bytes, row.client_evidence))
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&after), told(&before));
}

#[test]
fn hosts_that_only_jvms_tell_of_have_the_addresses_that_no_other_host_claims() {
    let folder = tempfile::tempdir().unwrap();
    world().write(folder.path());
    for (host, own) in [("x1", "10.0.1.1"), ("x2", "10.0.1.2")] {
        fs::create_dir(folder.path().join(host)).unwrap();
        let records = [header(9, own), header(9, "172.17.0.1")];
        write_lines(&folder.path().join(host).join("jvm-9-90.jsonl"), &records);
    }
    let merged = merged(folder.path());
    let of = |name: &str| merged.joined.hosts.iter().find(|host| host.name == name).unwrap().addresses.clone();
    assert_eq!((of("x1").as_str(), of("x2").as_str()), ("10.0.1.1", "10.0.1.2"));
    assert!(is_lost(&merged, &["x1/jvm-9-90.jsonl", "172.17.0.1"]));
}

/// Who fills his own share of the disk loses the records of his own JVMs.
#[test]
fn whose_records_found_no_room_is_named() {
    let folder = tempfile::tempdir().unwrap();
    world().write(folder.path());
    let clock = JvmRecord::Clock { t: at(1), mono: 0, dropped: 3, unwritten: 2, cpu_ns: 0, agent_ns: 0 };
    fs::create_dir_all(folder.path().join("w1/jvm/1001")).unwrap();
    write_lines(&folder.path().join("w1/jvm/1001/jvm-9-90.jsonl"), &[header(9, "10.0.0.2"), clock]);
    let merged = merged(folder.path());
    assert!(
        is_lost(&merged, &["w1/jvm/1001: records of JVM 9 for which there was no room"]),
        "{:?}",
        merged.joined.losses
    );
    assert!(is_lost(&merged, &["w1/jvm/1001: records dropped in JVM 9"]), "{:?}", merged.joined.losses);
}

#[test]
fn counts_beyond_all_measure_do_not_run_over() {
    let folder = tempfile::tempdir().unwrap();
    world().write(folder.path());
    let all = u64::MAX;
    let clock = JvmRecord::Clock { t: at(1), mono: i64::MIN, dropped: all, unwritten: all, cpu_ns: all, agent_ns: all };
    let lost = SocketRecord::Lost { t: at(1), what: "x".into(), count: all };
    append(&folder.path().join("w1/jvm-50-500.jsonl"), &[clock.clone(), clock]);
    write_lines(&folder.path().join("w1/sockets.jsonl"), &[lost.clone(), lost]);
    let merged = merged(folder.path());
    let of = |word: &str| merged.joined.losses.iter().find(|loss| loss.what().contains(word)).map(|loss| loss.count);
    assert_eq!(of("records dropped in JVM 50"), Some(all));
    assert_eq!(of("records of JVM 50 for which there was no room"), Some(all));
    assert_eq!(of("dumpingd: x"), Some(all));
}

#[test]
fn what_each_agent_left_out_is_summed_up_by_check() {
    let folder = tempfile::tempdir().unwrap();
    world().write(folder.path());
    let clock = JvmRecord::Clock { t: at(1), mono: 1, dropped: 2, unwritten: 3, cpu_ns: 0, agent_ns: 0 };
    append(&folder.path().join("w1/jvm-50-500.jsonl"), std::slice::from_ref(&clock));
    append(&folder.path().join("w2/jvm-50-500.jsonl"), &[clock]);
    let counts = PacketCounts { kernel_drops: 5, blanked_bytes: 7, ..PacketCounts::default() };
    let interface = InterfaceManifest { name: "eth0".into(), counts, ..InterfaceManifest::default() };
    let sniffer = SnifferManifest { interfaces: vec![interface], ..SnifferManifest::default() };
    fs::write(folder.path().join("w1/sniffer.json"), serde_json::to_vec(&sniffer).unwrap()).unwrap();
    let dumpingd = DumpingdManifest { unwritten: 11, removed_records: 13, ..DumpingdManifest::default() };
    fs::write(folder.path().join("w1/dumpingd.json"), serde_json::to_vec(&dumpingd).unwrap()).unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_merger")).arg("check").arg(folder.path()).arg("--json").output().unwrap();
    let stated: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = serde_json::json!({
        "sniffer": { "packets": 5, "payload bytes": 7 }, "dumpingd": { "records": 24 }, "jvm": { "records": 10 }
    });
    assert_eq!(stated["detail"]["unwritten_by"], expected);
    let output = Command::new(env!("CARGO_BIN_EXE_merger")).arg("check").arg(folder.path()).output().unwrap();
    let stated = String::from_utf8_lossy(&output.stdout).into_owned();
    let by_dumpingd = "lost by dumpingd: w1: records of sockets for which there was no room on the disk: 11 records\n";
    assert_eq!(stated.matches(by_dumpingd).count(), 1, "{stated}");
    assert_eq!(stated.matches(": 5 packets").count(), 1, "{stated}");
}

#[test]
fn records_with_times_and_sizes_that_cannot_be_are_left_out_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    world().write(folder.path());
    let fetch = |t0: u64, t1: u64, bytes: u64| JvmRecord::Fetch {
        t0,
        t1,
        th: u64::MAX,
        map: "attempt_1_0001_m_000000_0".into(),
        reduce: u32::MAX,
        bytes,
        raw: bytes,
        host: "w2:13562".into(),
        read_wait: 0,
    };
    let records = [fetch(at(1), u64::MAX, 1), fetch(at(1), at(2), u64::MAX), fetch(at(1), at(2), 1)];
    append(&folder.path().join("w1/jvm-50-500.jsonl"), &records);
    let merged = merged(folder.path());
    let what = "w1/jvm-50-500.jsonl: records with times or sizes that cannot be";
    assert!(
        merged.joined.losses.iter().any(|loss| loss.what() == what && loss.count == 2),
        "{:?}",
        merged.joined.losses
    );
}

#[test]
fn a_jvm_does_not_get_the_connections_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = world();
    let (local, remote) = (world.address(1, 40_000), world.address(0, 8020));
    let owner = |pid: u32| Owner { pid, start_ticks: u64::from(pid) * 10 };
    let process = |pid: u32, uid: u32| {
        let (main, role) = ("org.apache.hadoop.DataNode".into(), "DataNode".into());
        SocketRecord::Process { t: at(0), owner: owner(pid), netns: 0, main, role, uid, ns_pid: None }
    };
    let state = "ESTABLISHED".into();
    let seen =
        SocketRecord::Socket { t: at(1), netns: 0, local, remote, state, inode: 7, owner: Some(owner(50)), tcp: None };
    world.hosts[1].sockets = vec![process(50, 0), process(9, 1001), seen];
    world.write(folder.path());
    let before = merged(folder.path());
    // A JVM of user 1001 takes the DataNode's connection for its own, and says so at a better time.
    let (local, remote) = (local.to_string(), remote.to_string());
    let open = JvmRecord::Open { t: at(0), th: 1, local, remote };
    fs::create_dir_all(folder.path().join("w1/jvm/1001")).unwrap();
    write_lines(&folder.path().join("w1/jvm/1001/jvm-9-90.jsonl"), &[header(9, "10.0.0.2"), open]);
    fs::remove_file(folder.path().join("w1/jvm-50-500.jsonl")).unwrap();
    let after = merged(folder.path());
    let client = |merged: &Merged| {
        let row = connections(merged).into_iter().find(|row| row.client.ends_with(":40000")).unwrap();
        merged.joined.processes[row.client_process.unwrap().index()].pid
    };
    assert_eq!((client(&before), client(&after)), (50, 50));
    assert!(is_lost(&after, &["w1: JVM 9", "another process's"]), "{:?}", after.joined.losses);
}

#[test]
fn a_flow_that_a_third_host_saw_and_one_of_its_ends_did_not_is_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    world().write(folder.path());
    // Addresses as the sniffers tell them, and w1's packets in the folder of w2.
    for (number, host) in ["m1", "w1", "w2"].iter().enumerate() {
        let interface = InterfaceManifest {
            name: "eth0".into(),
            addresses: vec![format!("10.0.0.{}/24", number + 1)],
            ..Default::default()
        };
        let manifest = SnifferManifest { interfaces: vec![interface], ..Default::default() };
        fs::write(folder.path().join(host).join("sniffer.json"), serde_json::to_vec(&manifest).unwrap()).unwrap();
    }
    let mut foreign =
        trace::packet::PacketReader::new(fs::File::open(folder.path().join("w1/packets-eth0.hpk")).unwrap()).unwrap();
    let header = foreign.header().clone();
    let moved = fs::File::create(folder.path().join("w2/packets-eth7.hpk")).unwrap();
    let mut writer = trace::packet::PacketWriter::create(moved, &header).unwrap();
    while let Some(packet) = foreign.next_packet().unwrap() {
        let direction = trace::packet::Direction::Foreign;
        writer.write(&trace::packet::Packet { direction, ..packet }).unwrap();
    }
    fs::remove_file(folder.path().join("w1/packets-eth0.hpk")).unwrap();
    merged(folder.path());
}

#[test]
fn a_host_half_of_whose_times_are_random_is_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = world();
    let mut random = 7u64;
    let mut talk = world.connect((1, 50_000), (2, 9866), [1, 2], at(5));
    for number in 0..200 {
        world.say(&mut talk, number % 2 == 0, at(10 + number), &[1; 10]);
    }
    for packet in world.hosts[1].eth0.iter_mut().skip(1).step_by(2) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        packet.time_ns = random;
    }
    world.write(folder.path());
    merged(folder.path());
    for packet in &mut world.hosts[1].eth0 {
        packet.time_ns %= 4_000_000_000_000_000_000;
    }
    world.write(folder.path());
    merged(folder.path());
}
