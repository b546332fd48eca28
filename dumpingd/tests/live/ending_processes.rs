//! A process that ends while it is looked at is none that could not be looked into.

use std::io::IoSlice;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{Agent, Pair};
use dumpingd::processes::still_runs;
use nix::sys::socket::{AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, sendmsg, socketpair};
use serde_json::Value;
use test_support::skip;
use trace::socket::Owner;

const DUMPINGD: &str = env!("CARGO_BIN_EXE_dumpingd");

fn start_ticks(pid: u32) -> u64 {
    procfs::process::Process::new(pid.cast_signed()).unwrap().stat().unwrap().starttime
}

#[test]
fn a_zombie_does_not_run() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let owner = Owner { pid: child.id(), start_ticks: start_ticks(child.id()) };
    assert!(still_runs(owner));
    assert!(!still_runs(Owner { start_ticks: owner.start_ticks + 1, ..owner }), "another process of that number");
    drop(child.stdin.take());
    crate::support::wait_until("a zombie", || {
        procfs::process::Process::new(child.id().cast_signed()).unwrap().stat().unwrap().state == 'Z'
    });
    assert!(!still_runs(owner));
    child.wait().unwrap();
    assert!(!still_runs(owner));
}

/// Keeps making sockets that no process has open: each is on its way from one socket to another. dumpingd looks for their
/// owners among all processes.
fn make_sockets_of_nobody(stop: &AtomicBool) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (from, _to) = socketpair(AddressFamily::Unix, SockType::Datagram, None, SockFlag::SOCK_CLOEXEC).unwrap();
    let mut ends = Vec::new();
    while !stop.load(Ordering::Relaxed) && ends.len() < 200 {
        let end = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let on_its_way = [end.as_raw_fd()];
        let message = [ControlMessage::ScmRights(&on_its_way)];
        let flags = MsgFlags::MSG_DONTWAIT;
        if sendmsg::<()>(from.as_raw_fd(), &[IoSlice::new(b"x")], &message, flags, None).is_err() {
            break;
        }
        ends.push(listener.accept().unwrap());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn processes_that_come_and_go_are_no_problem() {
    let pair = Pair::new();
    let problems = |seconds: f64, with_others: bool| -> String {
        let folder = tempfile::tempdir().unwrap();
        let agent = Agent::start(DUMPINGD, &pair.left, "dumpingd.json", folder.path(), &["--interval", "5ms"]);
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let in_namespace = std::sync::Arc::clone(&stop);
        let sockets = Pair::within(&pair.left, move || make_sockets_of_nobody(&in_namespace));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while with_others && !stop.load(Ordering::Relaxed) {
                        Command::new("ip").args(["netns", "exec", &pair.left, "true"]).status().unwrap();
                    }
                });
            }
            thread::sleep(Duration::from_secs_f64(seconds));
            stop.store(true, Ordering::Relaxed);
        });
        sockets.join().unwrap();
        let (_, manifest): (i32, Value) = agent.stop();
        manifest["problems"].to_string()
    };
    if problems(0.5, false).contains("could not be looked into") {
        skip!("some processes of this machine are hidden from root, too");
    }
    let found = problems(2.0, true);
    assert!(!found.contains("could not be looked into"), "{found}");
}
