//! What an ordinary user of the host can plant costs the sniffer little, and nobody else anything.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use crate::support::{Agent, Pair, exchange, sh, wait_until};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use sniffer::disk_quota::{DiskQuota, Limits, NoRoom, WhenFull};
use sniffer::follow::Follower;
use sniffer::ports::PortSet;

const SNIFFER: &str = env!("CARGO_BIN_EXE_sniffer");
const NOBODY: u32 = 65_534;
/// What an agent may take without its ring.
const MAX_MEMORY_KB: u64 = 64 << 10;

/// A host's folder, and the common one of JVMs in it.
fn layout(folder: &Path) -> (PathBuf, PathBuf) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    let (out, jvm) = (folder.join("w1"), folder.join("jvm"));
    fs::create_dir(&jvm).unwrap();
    fs::set_permissions(&jvm, fs::Permissions::from_mode(0o3777)).unwrap();
    (out, jvm)
}

fn folder_of(jvm: &Path, uid: u32) -> PathBuf {
    let own = jvm.join(uid.to_string());
    fs::create_dir_all(&own).unwrap();
    chown(&own, Some(uid), None).unwrap();
    own
}

fn write(path: &Path, text: impl AsRef<[u8]>, uid: u32) {
    fs::write(path, text).unwrap();
    chown(path, Some(uid), None).unwrap();
}

fn header(role: &str, pid: u32) -> String {
    format!(
        r#"{{"k":"header","t":1,"version":1,"pid":{pid},"start_ticks":34,"netns":0,"host":"w1","addresses":[],"main":"m","role":"{role}","hadoop":"","java":""}}"#
    ) + "\n"
}

fn listen(port: u16) -> String {
    format!("{{\"k\":\"listen\",\"t\":2,\"local\":\"10.1.0.1:{port}\"}}\n")
}

fn open(number: u32) -> String {
    let (low, high) = (number % 60_000 + 1, number / 60_000 + 1);
    format!("{{\"k\":\"open\",\"t\":3,\"th\":1,\"local\":\"10.1.0.1:{low}\",\"remote\":\"10.1.{high}.2:{low}\"}}\n")
}

/// The most memory that the agent ever had, KiB.
fn most_memory(agent: &Agent) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", agent.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn follows(agent: &Agent, port: u16) -> bool {
    let port = port.to_string();
    let manifest = agent.manifest();
    manifest["followed_ports"].as_array().is_some_and(|ports| ports.iter().any(|one| one.as_str() == Some(&port)))
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn forged_records_of_jvms_cost_little_memory_and_hide_no_other_users_jvm() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let (out, jvm) = layout(folder.path());
    let (hostile, other) = (folder_of(&jvm, NOBODY), folder_of(&jvm, 0));
    let long = "r".repeat(60_000);
    let opens: String = (0..60_000).map(open).collect();
    write(&hostile.join("jvm-1-1.jsonl"), header(&long, 1) + &opens + &listen(50_201), NOBODY);
    let some: String = (0..300).map(open).collect();
    for number in 0..3000u32 {
        let path = hostile.join(format!("jvm-{}-7.jsonl", number + 10));
        match number % 6 {
            0 => symlink("/etc/shadow", path).unwrap(),
            1 => nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
            2 => fs::File::create(&path).unwrap().set_len(5 << 40).unwrap(),
            3 => fs::create_dir(&path).unwrap(),
            4 => write(&path, header(&long, number) + &some, NOBODY),
            _ => write(&path, "[".repeat(200_000), NOBODY),
        }
    }
    write(&other.join("jvm-5-5.jsonl"), header("NodeManager", 5) + &listen(50_100), 0);
    let options = ["--ring", "512KiB", "--interface", "eth0", "--follow", "--jvm-records", jvm.to_str().unwrap()];
    let agent = Agent::start(SNIFFER, &pair.left, "sniffer.json", &out, &options);
    wait_until("the port of the other user's JVM", || follows(&agent, 50_100));
    // It goes on while the sniffer looks: new connections at each look.
    for round in 0..4 {
        let more: String = (0..20_000).map(|number| open(number + round * 20_000)).collect();
        let forged = header(&long, 2) + &more;
        write(&hostile.join(format!("jvm-2-{round}.jsonl")), forged, NOBODY);
        let (_, _) = (exchange(&pair, 2, 100, 10), std::thread::sleep(std::time::Duration::from_millis(1200)));
    }
    let most = most_memory(&agent);
    assert!(most < MAX_MEMORY_KB, "{most} KiB");
    let (code, manifest) = agent.stop();
    assert_eq!(code, 1, "what is left out has to show: {manifest}");
    let problems = manifest["problems"].to_string();
    assert!(problems.contains("/65534: ") && problems.contains("left out"), "{problems}");
    assert!(problems.len() < 2_000, "{problems}");
}

#[test]
fn more_files_than_are_followed_at_once_do_not_end_the_following() {
    let folder = tempfile::tempdir().unwrap();
    let me = nix::unistd::geteuid().as_raw();
    let own = folder.path().join("jvm").join(me.to_string());
    fs::create_dir_all(&own).unwrap();
    let mut follower = Follower::new(folder.path(), &folder.path().join("jvm"), PortSet::default(), 32_768);
    let end = "{\"k\":\"end\",\"t\":9,\"dropped\":0}\n";
    for number in 0..5000 {
        fs::write(own.join(format!("jvm-{number}-1.jsonl")), header("YarnChild", number) + end).unwrap();
        if number % 250 == 249 {
            follower.look();
        }
    }
    fs::write(own.join("jvm-9999-1.jsonl"), header("NodeManager", 9999) + &listen(41_234)).unwrap();
    let since = std::time::Instant::now();
    while !follower.shared().followed().ports.contains(41_234) {
        assert!(
            since.elapsed().as_secs() < 30,
            "the JVM behind 5000 others is not followed: {:?}",
            follower.problems()
        );
        follower.look();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn a_folder_that_is_not_its_users_own_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (out, jvm) = layout(folder.path());
    // Nobody has made a folder in root's name, put a link beside, and a file of root's where it is his.
    let forged = jvm.join("0");
    fs::create_dir(&forged).unwrap();
    write(&forged.join("jvm-1-1.jsonl"), header("NameNode", 1) + &listen(41_001), NOBODY);
    chown(&forged, Some(NOBODY), None).unwrap();
    let own = folder_of(&jvm, NOBODY);
    write(&own.join("jvm-2-2.jsonl"), header("NameNode", 2) + &listen(41_002), 0);
    symlink(&own, jvm.join("1000")).unwrap();
    // What the JVM does when its name is taken.
    let again = jvm.join("0.1");
    fs::create_dir(&again).unwrap();
    write(&again.join("jvm-3-3.jsonl"), header("DataNode", 3) + &listen(41_003), 0);
    let follower = Follower::new(&out, &jvm, PortSet::default(), 32_768);
    let followed = follower.shared().followed();
    let ports = [41_001, 41_002, 41_003].map(|port| followed.ports.contains(port));
    assert_eq!(ports, [false, false, true]);
    assert!(follower.problems()[0].contains("belongs to user 0, not to 65534"), "{:?}", follower.problems());
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn a_list_of_ports_that_is_forged_or_too_long_is_refused_once() {
    let folder = tempfile::tempdir().unwrap();
    let (out, jvm) = layout(folder.path());
    fs::create_dir(&out).unwrap();
    let stated = r#"{"version":1,"t":1,"listen":{"41234":"DataNode 7"},"connections":[]}"#;
    let path = out.join("ports.json");
    let mut follower = Follower::new(&out, &jvm, PortSet::default(), 32_768);
    for (text, uid, why) in [
        (stated.to_owned(), NOBODY, "belongs to user 65534"),
        (stated.to_owned() + &" ".repeat(9 << 20), 0, "has more than 8388608 bytes"),
        ("[".repeat(1000), 0, "cannot be used"),
    ] {
        write(&path, text, uid);
        follower.look();
        let opened = Inotify::init(InitFlags::IN_NONBLOCK).unwrap();
        opened.add_watch(&path, AddWatchFlags::IN_OPEN).unwrap();
        for _ in 0..3 {
            follower.look();
        }
        assert!(opened.read_events().is_err(), "it is read again without having changed");
        assert!(follower.problems()[0].contains(why), "{:?}", follower.problems());
        assert!(!follower.shared().followed().ports.contains(41_234));
    }
    write(&path, stated, 0);
    follower.look();
    assert!(follower.shared().followed().ports.contains(41_234));
    assert_eq!(follower.problems(), Vec::<String>::new());
}

/// Packets in several batches.
fn exchange_in_turns(pair: &Pair) {
    for _ in 0..5 {
        exchange(pair, 500, 300, 10);
        std::thread::sleep(std::time::Duration::from_millis(250));
    }
}

/// Closed packet files of a run.
fn closed_files(out: &Path) -> usize {
    let names = fs::read_dir(out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("packets-eth0.0")).count()
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn a_planted_sparse_packet_file_makes_no_closed_file_be_removed() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let (out, _) = layout(folder.path());
    let options = ["--ring", "1MiB", "--interface", "eth0", "--file-size", "40KiB", "--keep-free", "0"];
    let limits = ["--disk-limit", "8MiB", "--when-full", "drop-oldest"];
    let options = [&options[..], &limits].concat();
    let agent = Agent::start(SNIFFER, &pair.left, "sniffer.json", &out, &options);
    exchange_in_turns(&pair);
    assert_eq!(agent.stop().0, 0);
    let closed = closed_files(&out);
    assert!(closed >= 3, "{closed} files were closed");
    for (name, uid) in [("packets-x.hpk", NOBODY), ("packets-eth9.hpk", 0), ("packets-eth0.000000.hpk", 0)] {
        fs::File::create(out.join(name)).unwrap().set_len(5 << 40).unwrap();
        chown(out.join(name), Some(uid), None).unwrap();
    }
    let agent = Agent::start(SNIFFER, &pair.left, "sniffer.json", &out, &options);
    exchange(&pair, 500, 300, 10);
    let (code, manifest) = agent.stop();
    assert_eq!((code, &manifest["removed_files"]), (0, &serde_json::json!(0)), "{manifest}");
    assert!(closed_files(&out) > closed);
    assert!(manifest["disk_bytes"].as_u64() < Some(8 << 20), "{manifest}");
}

#[test]
fn no_file_is_removed_where_that_makes_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = |number: u32| folder.path().join(format!("packets-eth0.{number:06}.hpk"));
    for number in 1..4 {
        fs::write(path(number), vec![7; 10_000]).unwrap();
    }
    let drops = Limits { when_full: WhenFull::DropOldest, ..Limits::default() };
    let keeps_free = DiskQuota::new(folder.path(), Limits { keep_free_bytes: u64::MAX / 4, ..drops }).unwrap();
    assert!(matches!(keeps_free.reserve(1), Err(NoRoom::Free { .. })));
    let limited = DiskQuota::new(folder.path(), Limits { disk_bytes: 15_000, ..drops }).unwrap();
    assert!(matches!(limited.reserve(20_000), Err(NoRoom::Limit { .. })));
    assert!((1..4).all(|number| path(number).exists()));
    assert_eq!(limited.reserve(4_000).map(|removed| removed.files), Ok(2));
    assert!(path(3).exists());
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn what_is_planted_under_the_name_of_a_new_file_does_not_stop_rotation() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let (out, _) = layout(folder.path());
    fs::create_dir(&out).unwrap();
    let at = |name: &str| out.join(name).display().to_string();
    let victim = folder.path().join("victim");
    write(&victim, "a letter", 0);
    sh(&format!(
        "mkdir -p {}/full; mkdir -p {}/full; ln -s {} {}; mkfifo {}",
        at(".packets-eth0.hpk.new"),
        at(".packets-eth0.hpk.0.new"),
        victim.display(),
        at(".packets-eth0.hpk.1.new"),
        at(".packets-eth0.hpk.2.new"),
    ));
    let options = ["--ring", "1MiB", "--interface", "eth0", "--file-size", "40KiB", "--keep-free", "0"];
    let agent = Agent::start(SNIFFER, &pair.left, "sniffer.json", &out, &options);
    exchange_in_turns(&pair);
    let (code, manifest) = agent.stop();
    assert_eq!(code, 0, "{manifest}");
    assert!(closed_files(&out) >= 3, "{manifest}");
    assert_eq!(fs::read_to_string(victim).unwrap(), "a letter");
}

/// Runs the sniffer for a moment on loopback; its exit code and what it said. It must not wait for anybody.
fn run_for_a_moment(out: &Path, more: &[&str]) -> (Option<i32>, String) {
    let said = tempfile::NamedTempFile::new().unwrap();
    let mut child = std::process::Command::new(SNIFFER)
        .args([
            "run",
            "--interface",
            "lo",
            "--ring",
            "1MiB",
            "--duration",
            "100ms",
            "--disk-limit",
            "0",
            "--keep-free",
            "0",
        ])
        .args(more)
        .arg("--out")
        .arg(out)
        .stderr(said.reopen().unwrap())
        .spawn()
        .unwrap();
    let mut ended = None;
    let since = std::time::Instant::now();
    while ended.is_none() && since.elapsed().as_secs() < 30 {
        std::thread::sleep(std::time::Duration::from_millis(20));
        ended = child.try_wait().unwrap();
    }
    let _ = child.kill();
    let _ = child.wait();
    let text = fs::read_to_string(said.path()).unwrap();
    assert!(ended.is_some(), "it hangs: {text}");
    (ended.and_then(|status| status.code()), text)
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn a_planted_fifo_does_not_hang_the_start() {
    let plant = |path: &Path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (name, more, code) in [
        ("sniffer.json", &[][..], 1),
        ("ports.json", &["--follow"], 1),
        ("packets-lo.hpk", &[], 2),
        ("packets-lo.pcapng", &["--pcapng"], 2),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (out, _) = layout(folder.path());
        fs::create_dir(&out).unwrap();
        plant(&out.join(name));
        let (ended, said) = run_for_a_moment(&out, more);
        assert_eq!(ended, Some(code), "{name}: {said}");
        assert!(said.contains("is no regular file"), "{name}: {said}");
    }
    let folder = tempfile::tempdir().unwrap();
    let (out, _) = layout(folder.path());
    plant(&folder.path().join("core-site.xml"));
    let (ended, said) = run_for_a_moment(&out, &["--follow", "--hadoop-conf", folder.path().to_str().unwrap()]);
    assert_eq!(ended, Some(1), "{said}");
    assert!(said.contains("core-site.xml is left out: is no regular file"), "{said}");
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn a_folder_into_which_others_may_write_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (out, _) = layout(folder.path());
    fs::create_dir(&out).unwrap();
    let refused = |out: &Path, why: &str| {
        let (ended, said) = run_for_a_moment(out, &[]);
        assert_eq!(ended, Some(2), "{said}");
        assert!(said.contains(why), "{said}");
        assert_eq!(fs::read_dir(out).unwrap().count(), 0);
    };
    fs::set_permissions(&out, fs::Permissions::from_mode(0o1777)).unwrap();
    refused(&out, "others may write into it (mode 1777)");
    fs::set_permissions(&out, fs::Permissions::from_mode(0o755)).unwrap();
    symlink(&out, folder.path().join("link")).unwrap();
    refused(&folder.path().join("link"), "is a link");
    chown(&out, Some(NOBODY), None).unwrap();
    refused(&out, "belongs to user 65534");
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn as_another_user_it_reads_jvms_by_their_group_and_says_which_it_cannot() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let (out, jvm) = layout(folder.path());
    for (uid, group, port) in [(1, NOBODY, 41_101), (2, 2, 41_102)] {
        let own = folder_of(&jvm, uid);
        let path = own.join("jvm-7-7.jsonl");
        write(&path, header("DataNode", 7) + &listen(port), uid);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        chown(&path, None, Some(group)).unwrap();
        chown(&own, None, Some(group)).unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o750)).unwrap();
    }
    let options = ["--ring", "1MiB", "--interface", "eth0", "--follow", "--user", "nobody"];
    let options = [&options[..], &["--jvm-records", jvm.to_str().unwrap()]].concat();
    let agent = Agent::start(SNIFFER, &pair.left, "sniffer.json", &out, &options);
    wait_until("the port of the JVM whose group is ours", || follows(&agent, 41_101));
    assert!(!follows(&agent, 41_102));
    let (_, manifest) = agent.stop();
    let problems = manifest["problems"].to_string();
    assert!(problems.contains("jvm/2 cannot be read") && !problems.contains("jvm/1 "), "{problems}");
    assert_eq!(manifest["capabilities"], serde_json::Value::Null, "{manifest}");
}
