//! What an ordinary user of the host can do: plant files, loop, pretend. dumpingd goes on, within its limits, with few rights.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::support::{Agent, Pair, sh, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use trace::files::read_json_lines;
use trace::socket::SocketRecord;

const DUMPINGD: &str = env!("CARGO_BIN_EXE_dumpingd");
const NOBODY: u32 = 65534;

/// Ended with the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program of uid `user` that connects to `address` from a namespace and holds the connection; it becomes `sleep`.
fn holder(namespace: &str, user: u32, address: SocketAddr) -> Killed {
    let connect = format!("exec 3<>/dev/tcp/{}/{}; exec sleep 600", address.ip(), address.port());
    of_user(namespace, user, &connect)
}

fn of_user(namespace: &str, user: u32, script: &str) -> Killed {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, "setpriv", "--clear-groups"]).arg(format!("--reuid={user}"));
    Killed(command.args(["bash", "-c", script]).stdin(Stdio::null()).spawn().unwrap())
}

/// Accepts and closes whatever comes, in a namespace.
fn server(namespace: &str, ip: &'static str) -> SocketAddr {
    let listener = Pair::within(namespace, move || TcpListener::bind((ip, 0)).unwrap()).join().unwrap();
    let address = listener.local_addr().unwrap();
    // Ends with the test program.
    thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming().flatten() {
            // The first ones are held.
            if held.len() < 4 {
                held.push(stream);
            }
        }
    });
    address
}

fn spawn(namespace: &str, out: &Path) -> Killed {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, DUMPINGD, "run", "--out"]).arg(out);
    Killed(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn a_planted_fifo_does_not_hang_the_start_and_sigterm_works() {
    let pair = Pair::new();
    for (name, starts) in [("dumpingd.json", true), ("ports.json", true), ("sockets.jsonl", false)] {
        let folder = tempfile::tempdir().unwrap();
        let planted = folder.path().join(name);
        sh(&format!("mkfifo {0}; chown {NOBODY} {0}", planted.display()));
        let mut agent = spawn(&pair.left, folder.path());
        if starts {
            let manifest = folder.path().join("dumpingd.json");
            let is_ready = || {
                let is_file = fs::symlink_metadata(&manifest).is_ok_and(|about| about.is_file());
                is_file && fs::read_to_string(&manifest).is_ok_and(|text| text.contains("\"ready\": true"))
            };
            wait_until(name, is_ready);
            kill(Pid::from_raw(agent.0.id().cast_signed()), Signal::SIGTERM).unwrap();
        }
        let mut status = None;
        wait_until("its end", || {
            status = agent.0.try_wait().unwrap();
            status.is_some()
        });
        let code = status.unwrap().code();
        assert!(if starts { code == Some(0) || code == Some(1) } else { code == Some(2) }, "{name}: {code:?}");
    }
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn a_folder_that_is_a_link_or_another_users_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let theirs = folder.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(NOBODY), None).unwrap();
    let own = folder.path().join("own");
    fs::create_dir(&own).unwrap();
    let link = folder.path().join("link");
    symlink(&own, &link).unwrap();
    for (out, why) in [(&theirs, "belongs to user 65534"), (&link, "is a link")] {
        let output = Command::new(DUMPINGD).args(["run", "--duration", "1s", "--out"]).arg(out).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(why), "{said}");
        assert_eq!(fs::read_dir(out).unwrap().count(), 0, "something was written");
    }
}

/// A field of /proc/PID/status.
fn status(agent: &Agent, field: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{}/status", agent.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).unwrap_or_default().to_owned()
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn another_user_goes_on_with_two_capabilities_in_a_sandbox_and_still_knows_whose_sockets_are() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let out = folder.path().join("w1");
    for options in [&["--user", "nobody", "--interval", "20ms"][..], &["--user", "nobody", "--source", "proc"]] {
        let agent = Agent::start(DUMPINGD, &pair.left, "dumpingd.json", &out, options);
        assert_eq!(status(&agent, "Uid:"), NOBODY.to_string());
        // CAP_DAC_READ_SEARCH (2) and CAP_SYS_PTRACE (19).
        for field in ["CapEff:", "CapPrm:", "CapBnd:"] {
            assert_eq!(u64::from_str_radix(&status(&agent, field), 16).unwrap(), 1 << 2 | 1 << 19, "{field}");
        }
        assert_eq!((status(&agent, "NoNewPrivs:"), status(&agent, "Seccomp:")), ("1".to_owned(), "2".to_owned()));
        let address = server(&pair.right, Pair::RIGHT);
        let roots = holder(&pair.left, 0, address);
        wait_until("root's socket with its owner", || {
            let records: Vec<SocketRecord> = read_json_lines(&out.join("sockets.jsonl")).unwrap().0;
            records.iter().any(|record| {
                matches!(record, SocketRecord::Socket { remote, owner: Some(owner), state, .. }
                    if *remote == address && owner.pid == roots.0.id() && state == "ESTABLISHED")
            })
        });
        let (code, manifest) = agent.stop();
        assert_eq!(code, 0, "{manifest}");
        assert_eq!(manifest["sandbox"], serde_json::json!(["mounts", "seccomp"]), "{manifest}");
        assert_eq!(manifest["capabilities"], serde_json::json!(["CAP_DAC_READ_SEARCH", "CAP_SYS_PTRACE"]));
        for name in ["sockets.jsonl", "dumpingd.json", "ports.json"] {
            let about = fs::metadata(out.join(name)).unwrap();
            assert_eq!((about.uid(), about.mode() & 0o777), (NOBODY, 0o600), "{name}");
        }
        let about = fs::metadata(&out).unwrap();
        assert_eq!((about.uid(), about.mode() & 0o777), (NOBODY, 0o750));
    }
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn a_users_connect_loop_does_not_fill_the_disk() {
    const LIMIT: u64 = 4 << 20;
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let address = server(&pair.right, Pair::RIGHT);
    let held = holder(&pair.left, 0, address);
    let options = ["--disk-limit", "4MiB", "--keep-free", "0"];
    let agent = Agent::start(DUMPINGD, &pair.left, "dumpingd.json", folder.path(), &options);
    let connect = format!("while :; do exec 3<>/dev/tcp/{}/{}; exec 3>&-; done", address.ip(), address.port());
    let looping = [of_user(&pair.left, NOBODY, &connect), of_user(&pair.left, NOBODY, &connect)];
    let files = || {
        let all = fs::read_dir(folder.path()).unwrap().flatten();
        let mut own: Vec<_> =
            all.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
        // `sockets.jsonl` comes last.
        own.sort_by_key(|path| (path.file_name().unwrap() == "sockets.jsonl", path.clone()));
        own
    };
    wait_until("files that were removed", || {
        let bytes: u64 = files().iter().filter_map(|path| fs::metadata(path).ok()).map(|about| about.len()).sum();
        assert!(bytes <= LIMIT, "{bytes} bytes");
        agent.manifest()["removed_files"].as_u64().is_some_and(|removed| removed >= 3)
    });
    drop(looping);
    let (_, manifest) = agent.stop();
    let files = files();
    let bytes: u64 = files.iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert!(files.len() >= 2 && bytes <= LIMIT && manifest["disk_bytes"] == bytes, "{files:?}, {bytes}, {manifest}");

    // Every record is in a file or counted, and what went is marked in those that are left.
    let count = |key: &str| manifest[key].as_u64().unwrap();
    let (mut records_held, mut marked) = (0, false);
    for path in &files {
        let (records, losses) = read_json_lines::<SocketRecord>(path).unwrap();
        assert_eq!(losses, Default::default(), "{}", path.display());
        records_held += records.len() as u64;
        let is_mark =
            |record: &SocketRecord| matches!(record, SocketRecord::Lost { what, .. } if what.contains("removed"));
        marked |= records.iter().any(is_mark);
        // Each can be read by itself: it tells of the run, and of who held a connection all the time.
        assert!(matches!(records[0], SocketRecord::Header { .. }), "{}", path.display());
        let pid = held.0.id();
        let is_process =
            |record: &SocketRecord| matches!(record, SocketRecord::Process { owner, .. } if owner.pid == pid);
        let is_socket = |record: &SocketRecord| matches!(record, SocketRecord::Socket { owner: Some(owner), .. } if owner.pid == pid);
        assert!(records.iter().any(is_process) && records.iter().any(is_socket), "{}", path.display());
    }
    assert!(marked, "nothing says that something went");
    assert_eq!(records_held + count("removed_records") + count("unwritten"), count("records"), "{manifest}");
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn a_process_in_a_pid_namespace_is_told_with_both_its_pids() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let listener = Pair::within(&pair.right, || TcpListener::bind((Pair::RIGHT, 0)).unwrap()).join().unwrap();
    let connect = format!("exec 3<>/dev/tcp/{}/{}; sleep 600", Pair::RIGHT, listener.local_addr().unwrap().port());
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &pair.left, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "bash"]);
    let _container = Killed(command.args(["-c", &connect]).stdin(Stdio::null()).spawn().unwrap());
    let agent = Agent::start(DUMPINGD, &pair.left, "dumpingd.json", folder.path(), &["--interval", "20ms"]);
    let outside = listener.accept().unwrap();
    wait_until("the process in its namespace", || {
        let records: Vec<SocketRecord> = read_json_lines(&folder.path().join("sockets.jsonl")).unwrap().0;
        records.iter().any(|record| {
            // Elsewhere it is another one; inside bash is the first.
            matches!(record, SocketRecord::Process { owner, ns_pid: Some(1), .. }
                if owner.pid > 1 && procfs::process::Process::new(owner.pid.cast_signed()).is_ok())
        })
    });
    drop(outside);
    assert_eq!(agent.stop().0, 0);
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn more_network_namespaces_than_files_are_left_out_and_counted() {
    const SPACES: usize = 40;
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    // Looks like a task of Hadoop's: the name of the file is taken for a main class.
    let main = "org.apache.hadoop.mapred.YarnChild";
    fs::write(folder.path().join(main), "").unwrap();
    let _tasks: Vec<Killed> = (0..SPACES)
        .map(|_| {
            let mut task = Command::new("unshare");
            task.args(["--net", "tail", "-f", main]).current_dir(folder.path()).stdout(Stdio::null());
            Killed(task.spawn().unwrap())
        })
        .collect();
    let program = folder.path().join("with-few-files");
    fs::write(&program, format!("#!/bin/sh\nulimit -n 64\nexec {DUMPINGD} \"$@\"\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let out = folder.path().join("w1");
    let options = ["--namespaces", "hadoop", "--interval", "50ms"];
    let mut agent = Agent::start(program.to_str().unwrap(), &pair.left, "dumpingd.json", &out, &options);
    let stated = |manifest: &serde_json::Value| {
        let scanned = manifest["other_netns"].as_array().map_or(0, Vec::len);
        (scanned, manifest["left_out_netns"].as_u64().unwrap_or(0))
    };
    wait_until("namespaces that are left out", || {
        assert!(!agent.has_ended(), "{}", agent.said());
        let (scanned, left_out) = stated(&agent.manifest());
        scanned as u64 + left_out >= SPACES as u64
    });
    let (_, manifest) = agent.stop();
    let (scanned, left_out) = stated(&manifest);
    assert!(scanned > 0 && left_out > 0, "{manifest}");
    assert!(!manifest["problems"].to_string().contains("Too many open files"), "{manifest}");
}
