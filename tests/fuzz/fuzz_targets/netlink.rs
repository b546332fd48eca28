//! What the kernel says over netlink.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let found = dumpingd::diag::parse_datagram(data);
    assert!(found.sockets.len() * 88 <= data.len());
    let _ = dumpingd::tcp_info::counters(data);
});
