//! What the kernel says about sockets: the fields of its messages; arbitrary bytes never panic.

use dumpingd::diag::{TcpState, parse_datagram};
use dumpingd::tcp_info;
use proptest::collection::vec;
use proptest::prelude::*;
use trace::socket::TcpCounters;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const INET_DIAG_INFO: u16 = 2;

fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&(16 + body.len() as u32).to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&[0; 10]);
    bytes.extend_from_slice(body);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// `struct inet_diag_msg`, and a `struct tcp_info` if there is one.
fn socket(family: u8, state: u8, ips: [[u8; 16]; 2], ports: [u16; 2], inode: u32, info: Option<&[u8]>) -> Vec<u8> {
    let mut body = vec![family, state, 0, 0];
    for port in ports {
        body.extend_from_slice(&port.to_be_bytes());
    }
    for ip in ips {
        body.extend_from_slice(&ip);
    }
    body.extend_from_slice(&0u32.to_ne_bytes());
    body.extend_from_slice(&77u64.to_ne_bytes());
    for number in [0, 0, 0, 1000, inode] {
        body.extend_from_slice(&u32::to_ne_bytes(number));
    }
    if let Some(info) = info {
        body.extend_from_slice(&(4 + info.len() as u16).to_ne_bytes());
        body.extend_from_slice(&INET_DIAG_INFO.to_ne_bytes());
        body.extend_from_slice(info);
    }
    message(SOCK_DIAG_BY_FAMILY, &body)
}

fn v4(bytes: [u8; 4]) -> [u8; 16] {
    let mut ip = [0; 16];
    ip[..4].copy_from_slice(&bytes);
    ip
}

/// A `struct tcp_info` whose every recorded field has another value.
fn some_tcp_info() -> Vec<u8> {
    let mut info = vec![0; 248];
    for (at, value) in [(16, 1448u32), (68, 400), (100, 3), (148, 50)] {
        info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    for (at, value) in [(120, 12u64), (128, 13), (168, 16), (176, 17), (184, 18), (200, 20), (208, 21)] {
        info[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    }
    info
}

const SOME_COUNTERS: TcpCounters = TcpCounters {
    bytes_sent: 20,
    bytes_retrans: 21,
    bytes_acked: 12,
    bytes_received: 13,
    rtt_us: 400,
    min_rtt_us: 50,
    total_retrans: 3,
    snd_mss: 1448,
    busy_us: 16,
    rwnd_limited_us: 17,
    sndbuf_limited_us: 18,
};

#[test]
fn the_fields_of_a_socket_are_found() {
    let ends = [v4([10, 1, 0, 1]), v4([10, 1, 0, 2])];
    let found = parse_datagram(&socket(2, 1, ends, [9866, 40_000], 5, Some(&some_tcp_info())));
    let [socket] = found.sockets.as_slice() else { panic!("{found:?}") };
    assert_eq!(socket.local, "10.1.0.1:9866".parse().unwrap());
    assert_eq!(socket.remote, "10.1.0.2:40000".parse().unwrap());
    assert_eq!((socket.state.name(), socket.inode, socket.cookie), ("ESTABLISHED", 5, 77));
    assert_eq!(socket.tcp, Some(SOME_COUNTERS));
    assert!(!socket.lacks_bytes_sent && !found.done && found.malformed == 0);
}

#[test]
fn ipv4_addresses_inside_ipv6_are_given_as_ipv4() {
    let mapped = |last| "::ffff:10.1.0.0".parse::<std::net::Ipv6Addr>().unwrap().to_bits() | last;
    let ends = [mapped(1).to_be_bytes(), mapped(2).to_be_bytes()];
    let found = parse_datagram(&socket(10, 1, ends, [1, 2], 5, None));
    assert_eq!(found.sockets[0].local, "10.1.0.1:1".parse().unwrap());
    assert_eq!(found.sockets[0].remote, "10.1.0.2:2".parse().unwrap());
    let real = [1u128.to_be_bytes(), 0u128.to_be_bytes()];
    let found = parse_datagram(&socket(10, 10, real, [1, 0], 5, None));
    assert_eq!(found.sockets[0].local, "[::1]:1".parse().unwrap());
    assert_eq!((found.sockets[0].state, found.sockets[0].tcp), (TcpState::LISTEN, None));
}

#[test]
fn an_older_kernels_shorter_tcp_info_is_used_as_far_as_it_goes() {
    let info = some_tcp_info();
    for length in 0..info.len() {
        let counters = tcp_info::counters(&info[..length]);
        for (at, found, whole) in [
            (20, counters.snd_mss, SOME_COUNTERS.snd_mss),
            (72, counters.rtt_us, SOME_COUNTERS.rtt_us),
            (152, counters.min_rtt_us, SOME_COUNTERS.min_rtt_us),
        ] {
            assert_eq!(found, if length >= at { whole } else { 0 }, "length {length}");
        }
        assert_eq!(counters.bytes_sent, if length >= 208 { 20 } else { 0 }, "length {length}");
    }
    let ends = [v4([10, 1, 0, 1]), v4([10, 1, 0, 2])];
    let found = parse_datagram(&socket(2, 1, ends, [1, 2], 5, Some(&info[..192])));
    assert!(found.sockets[0].lacks_bytes_sent);
}

#[test]
fn several_messages_share_a_datagram_and_the_end_is_seen() {
    let ends = [v4([10, 1, 0, 1]), v4([10, 1, 0, 2])];
    let mut bytes = socket(2, 1, ends, [1, 2], 5, Some(&some_tcp_info()));
    bytes.extend(socket(2, 6, ends, [3, 4], 0, None));
    bytes.extend(message(NLMSG_DONE, &[0; 4]));
    let found = parse_datagram(&bytes);
    assert_eq!((found.sockets.len(), found.done, found.error), (2, true, None));
    let refused = parse_datagram(&message(NLMSG_ERROR, &[(-2i32).to_ne_bytes().as_slice(), &[0; 16]].concat()));
    assert_eq!((refused.done, refused.error), (true, Some(2)));
}

#[test]
fn a_cut_datagram_counts_as_malformed() {
    let ends = [v4([10, 1, 0, 1]), v4([10, 1, 0, 2])];
    let whole = socket(2, 1, ends, [1, 2], 5, Some(&some_tcp_info()));
    for cut in 4..whole.len() {
        let found = parse_datagram(&whole[..cut]);
        assert_eq!((found.sockets.len(), found.malformed), (0, 1), "cut at {cut}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..400)) {
        let _ = parse_datagram(&bytes);
        let _ = tcp_info::counters(&bytes);
    }

    #[test]
    fn arbitrary_messages_never_panic(kind in 0u16..24, body in vec(any::<u8>(), 0..300), more in vec(any::<u8>(), 0..40)) {
        let _ = parse_datagram(&[message(kind, &body), more].concat());
    }

    #[test]
    fn damaged_messages_never_panic(damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let ends = [v4([10, 1, 0, 1]), v4([10, 1, 0, 2])];
        let mut bytes = socket(2, 1, ends, [1, 2], 5, Some(&some_tcp_info()));
        for (at, to) in damage {
            let at = at.index(bytes.len());
            bytes[at] = to;
        }
        let _ = parse_datagram(&bytes);
    }
}
