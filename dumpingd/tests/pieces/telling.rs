//! `ports.json` stays small, whatever a process that calls itself one of Hadoop's opens.

use dumpingd::diag::{TcpSocket, TcpState};
use dumpingd::ports_file::hadoops;
use dumpingd::processes::ProcessInfo;
use trace::socket::Owner;

const FAKE: Owner = Owner { pid: 10, start_ticks: 100 };
const REAL: Owner = Owner { pid: 11, start_ticks: 101 };

fn socket(state: TcpState, number: u32, inode: u64) -> TcpSocket {
    let ip = std::net::Ipv4Addr::from(0x0a00_0000 + number);
    let local = std::net::SocketAddr::from((ip, u16::try_from(number % 50_000 + 10_000).unwrap()));
    let remote = if state == TcpState::LISTEN { "0.0.0.0:0" } else { "10.1.0.2:2" };
    let remote = remote.parse().unwrap();
    TcpSocket { local, remote, state, inode, cookie: u64::from(number), tcp: None, lacks_bytes_sent: false }
}

#[test]
fn one_user_with_too_many_sockets_leaves_room_for_others_and_what_is_left_out_is_counted() {
    let process =
        |owner, uid| ProcessInfo { owner, main: "org.apache.hadoop.x".into(), role: "YarnChild", uid, ns_pid: None };
    let processes = [process(FAKE, 1000), process(REAL, 2000)];
    let owner_of = |inode| Some(if inode == 1 { FAKE } else { REAL });
    let mut sockets: Vec<_> = (0..30_000).map(|number| socket(TcpState::ESTABLISHED, number, 1)).collect();
    sockets.extend((0..100).map(|number| socket(TcpState::ESTABLISHED, 100_000 + number, 2)));
    let stated = hadoops(&sockets, owner_of, processes.iter());
    assert_eq!((stated.connections.len(), stated.left_out), (10_100, 20_000));
    assert_eq!(stated.connections.iter().filter(|connection| connection.owner.ends_with(" 11")).count(), 100);

    let listeners: Vec<_> =
        (0..9_000).map(|number| socket(TcpState::LISTEN, number, 1 + u64::from(number > 8_989))).collect();
    let stated = hadoops(&listeners, owner_of, processes.iter());
    assert_eq!((stated.listen.len(), stated.left_out), (4_096 + 10, 8_990 - 4_096));
    assert!(serde_json::to_vec(&stated).unwrap().len() < 1 << 20);
}
