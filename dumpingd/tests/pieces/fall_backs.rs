//! The text of /proc/net/tcp and of lsof gives the same sockets as sock_diag.

use std::net::{TcpListener, TcpStream};

use dumpingd::diag::{Lister, TcpSocket, TcpState};
use dumpingd::{lsof, proc_net};
use proptest::prelude::*;
use test_support::skipped;

const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:E307 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 450458 1 00000000dcc0a341 100 0 0 10 0
   2: 0100007F:89E0 0100007F:E307 01 00000000:00000000 00:00000000 00000000     0        0 450459 2 0000000090490c02 20 0 0 10 -1
   3: nonsense
   4: 0100007F:89E0 0100007F:E308 06 00000000:00000000 03:00000A5B 00000000     0        0 0 3 00000000dcc0a341
";
const TCP6: &str = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0000000000000000FFFF00000100007F:EC09 0000000000000000FFFF00000200007F:0001 08 00000000:00000000 00:00000000 00000000     0        0 450461 1 000000007fa9c504 100 0 0 10 0
";

#[test]
fn the_text_of_proc_is_read() {
    let found = proc_net::parse(TCP);
    assert_eq!((found.sockets.len(), found.malformed), (3, 1));
    let [listen, open, waits] = &found.sockets[..] else { panic!() };
    assert_eq!(
        (listen.local, listen.state, listen.inode),
        ("127.0.0.1:58119".parse().unwrap(), TcpState::LISTEN, 450_458)
    );
    assert_eq!((open.remote, open.state.name()), ("127.0.0.1:58119".parse().unwrap(), "ESTABLISHED"));
    assert_eq!((waits.inode, waits.state.name()), (0, "TIME_WAIT"));
    let found = proc_net::parse(TCP6);
    assert_eq!(found.sockets[0].local, "127.0.0.1:60425".parse().unwrap(), "a mapped address is an IPv4 one");
    assert_eq!(found.sockets[0].state.name(), "CLOSE_WAIT");
}

#[test]
fn the_output_of_lsof_is_read() {
    let text = "p16839\nf3\ntIPv4\nd450458\nPTCP\nn127.0.0.1:58119\nTST=LISTEN\nTQR=0\nf4\ntIPv6\nd450459\nn[::1]:35296->[::1]:58119\n\
                TST=ESTABLISHED\np17000\nf4\ntIPv6\nd450459\nn[::1]:35296->[::1]:58119\nTST=ESTABLISHED\nf6\ntIPv6\nd450461\nn*:60425\nTST=LISTEN\n\
                f9\nd1\nnnonsense\nTST=LISTEN\n";
    let (found, owners) = lsof::parse(text);
    assert_eq!((found.sockets.len(), found.malformed), (3, 1));
    assert_eq!(owners.len(), 3);
    assert!(owners.contains_key(&450_459), "a socket of two processes is one socket");
    assert_eq!(found.sockets[1].remote, "[::1]:58119".parse().unwrap());
    assert_eq!(found.sockets[2].local, "[::]:60425".parse().unwrap());
    assert_eq!(owners[&450_461], 17_000);
}

/// What all ways agree on.
fn ours(sockets: &[TcpSocket], port: u16) -> Vec<(String, String, &'static str, u64)> {
    let mut found: Vec<_> = sockets
        .iter()
        .filter(|s| s.local.port() == port || s.remote.port() == port)
        .map(|s| (s.local.to_string(), s.remote.to_string(), s.state.name(), s.inode))
        .collect();
    found.sort();
    found
}

#[test]
fn all_ways_list_the_same_sockets() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let by_netlink = ours(&Lister::open().unwrap().list().unwrap().sockets, port);
    assert_eq!(by_netlink.len(), 3);
    assert_eq!(ours(&proc_net::list("self").unwrap().sockets, port), by_netlink);
    match lsof::list() {
        Ok((listing, owners)) => {
            assert_eq!(ours(&listing.sockets, port), by_netlink);
            assert!(by_netlink.iter().all(|(.., inode)| owners[inode] == std::process::id()));
        }
        Err(error) => skipped(format_args!("lsof: {error}")),
    }
    drop((client, accepted));
}

proptest! {
    #[test]
    fn no_text_makes_them_panic(text in "([pfdntT:>*\\[\\]0-9A-F. -]{0,40}\n){0,8}.{0,40}") {
        let _ = proc_net::parse(&text);
        let _ = lsof::parse(&text);
    }
}
