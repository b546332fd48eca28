//! Any datagram of sock_diag is taken apart, and what makes no sense counted; never a panic.

use dumpingd::diag::parse_datagram;

/// What must hold for any input.
pub fn check(bytes: &[u8]) {
    let found = parse_datagram(bytes);
    // The least that a socket takes: two headers.
    assert!(found.sockets.len() * 88 <= bytes.len());
}
