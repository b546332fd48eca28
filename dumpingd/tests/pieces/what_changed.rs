//! Only what changed since the last scan is recorded, and a closed connection keeps its owner.

use dumpingd::changes::Changes;
use dumpingd::diag::{TcpSocket, TcpState};
use dumpingd::processes::{OTHER_ROLE, ProcessInfo};
use trace::socket::{Owner, SocketRecord, TcpCounters};

const ALICE: Owner = Owner { pid: 10, start_ticks: 100 };
const BOB: Owner = Owner { pid: 11, start_ticks: 101 };

fn socket(state: u8, inode: u64, cookie: u64, bytes_sent: u64) -> TcpSocket {
    let state = TcpState(state);
    let remote = if state == TcpState::LISTEN { "0.0.0.0:0" } else { "10.1.0.2:2" };
    TcpSocket {
        local: "10.1.0.1:1".parse().unwrap(),
        remote: remote.parse().unwrap(),
        state,
        inode,
        cookie,
        tcp: (inode != 0).then(|| TcpCounters { bytes_sent, ..TcpCounters::default() }),
        lacks_bytes_sent: false,
    }
}

fn owner_of(inode: u64) -> Option<Owner> {
    (inode == 5).then_some(ALICE)
}

fn owners(records: &[SocketRecord]) -> Vec<(String, Option<Owner>)> {
    records
        .iter()
        .map(|record| match record {
            SocketRecord::Socket { state, owner, .. } => (state.clone(), *owner),
            SocketRecord::Listen { owner, .. } => ("LISTEN".to_owned(), *owner),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_socket_is_recorded_when_it_is_new_or_changed() {
    let mut changes = Changes::new(1);
    let first = changes.sockets(1, &[socket(1, 5, 7, 100)], owner_of);
    assert_eq!(owners(&first), [("ESTABLISHED".to_owned(), Some(ALICE))]);
    assert!(changes.sockets(2, &[socket(1, 5, 7, 100)], owner_of).is_empty(), "nothing changed");
    assert_eq!(changes.sockets(3, &[socket(1, 5, 7, 101)], owner_of).len(), 1, "it sent a byte");
    assert_eq!(changes.sockets(4, &[socket(8, 5, 7, 101)], owner_of).len(), 1, "its state changed");
    assert_eq!(changes.sockets(5, &[socket(8, 5, 7, 101)], |_| Some(BOB)).len(), 1, "its owner changed");
    assert!(changes.sockets(6, &[], owner_of).is_empty());
    assert_eq!(changes.sockets(7, &[socket(8, 5, 7, 101)], owner_of).len(), 1, "it is back");
}

#[test]
fn a_closed_connection_keeps_its_owner_and_the_next_one_of_these_ports_does_not() {
    let mut changes = Changes::new(1);
    changes.sockets(1, &[socket(1, 5, 7, 100)], owner_of);
    let closed = changes.sockets(2, &[socket(6, 0, 7, 0)], owner_of);
    assert_eq!(owners(&closed), [("TIME_WAIT".to_owned(), Some(ALICE))]);
    assert!(changes.sockets(3, &[socket(6, 0, 7, 0)], owner_of).is_empty());
    let another = changes.sockets(4, &[socket(3, 0, 8, 0)], owner_of);
    assert_eq!(owners(&another), [("SYN_RECV".to_owned(), None)]);
}

#[test]
fn a_listener_is_recorded_once_and_when_its_owner_becomes_known() {
    let mut changes = Changes::new(1);
    assert_eq!(owners(&changes.sockets(1, &[socket(10, 5, 7, 0)], |_| None)), [("LISTEN".to_owned(), None)]);
    assert_eq!(owners(&changes.sockets(2, &[socket(10, 5, 7, 0)], owner_of)), [("LISTEN".to_owned(), Some(ALICE))]);
    assert!(changes.sockets(3, &[socket(10, 5, 7, 0)], owner_of).is_empty());
}

#[test]
fn sockets_that_have_no_peer_and_do_not_listen_are_left_out() {
    let mut bound = socket(7, 5, 7, 0);
    bound.remote = "0.0.0.0:0".parse().unwrap();
    assert!(Changes::new(1).sockets(1, &[bound], owner_of).is_empty());
}

#[test]
fn a_process_is_told_once_and_again_when_it_becomes_another_program() {
    let process = |main: &str, role| ProcessInfo { owner: ALICE, main: main.into(), role, uid: 0, ns_pid: None };
    let mut changes = Changes::new(1);
    let shell = process("bash", OTHER_ROLE);
    assert_eq!(changes.processes(1, [&shell].into_iter()).len(), 1);
    assert!(changes.processes(2, [&shell].into_iter()).is_empty());
    let task = process("org.apache.hadoop.mapred.YarnChild", "YarnChild");
    let stated = changes.processes(3, [&task].into_iter());
    assert!(
        matches!(&stated[..], [SocketRecord::Process { role, owner, .. }] if role == "YarnChild" && *owner == ALICE)
    );
}
