//! The list of sockets: the same by either request, IPv4 and IPv6, each socket once.

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};

use dumpingd::diag::{Lister, Listing, TcpSocket, TcpState};

/// Those with these ports, by the kernel's number. Counters may differ from one list to the next.
fn ours(listing: Listing, ports: &[u16]) -> BTreeMap<u64, TcpSocket> {
    let mut found = BTreeMap::new();
    assert_eq!(listing.malformed, 0);
    for socket in listing.sockets {
        if ports.contains(&socket.local.port()) || ports.contains(&socket.remote.port()) {
            assert_eq!(socket.tcp.is_some(), socket.state != TcpState(6), "{socket:?}");
            let known = found.insert(socket.cookie, TcpSocket { tcp: None, ..socket });
            assert_eq!(known, None, "listed twice");
        }
    }
    found
}

#[test]
fn one_request_lists_what_two_do() {
    let listeners: Vec<TcpListener> =
        ["127.0.0.1:0", "[::1]:0"].iter().filter_map(|address| TcpListener::bind(address).ok()).collect();
    let ports: Vec<u16> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
    let open: Vec<(TcpStream, TcpStream)> = listeners
        .iter()
        .map(|listener| {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        })
        .collect();
    let mut lister = Lister::open().unwrap();
    let by_family = ours(lister.list_by_family().unwrap(), &ports);
    assert_eq!(by_family.len(), listeners.len() + 2 * open.len());
    assert_eq!(ours(lister.list().unwrap(), &ports), by_family);
    // Linux has known the old request since 2.6; this holds as long as it does.
    assert_eq!(ours(lister.list_at_once().unwrap(), &ports), by_family);
}
