//! A slow, plain model of the packet fabrics, written to be checked against `docs/fabric.md` line by line.
//!
//! Every flit's departure and arrival, every credit and every update is a happening in one ordered list; nothing is
//! computed for a stream at once. With the fast fabrics it shares their configuration, the topology, the links that a
//! routing allows, what is drawn, and the types of messages and records; no line of what it checks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

pub mod arbiter;
pub mod clocked;
pub mod counting;
pub mod credit;
pub mod fault;
pub mod input_output_queued;
pub mod input_queued;
pub mod omni_path;
pub mod routing;
pub mod separable;
pub mod spinnaker;
pub mod store_and_forward;
pub mod timeline;
pub mod traffic;

use netsim::units::Rate;

/// Bits of `bytes` times 10^12: the page's b.
pub fn bits(bytes: u64) -> u128 {
    u128::from(bytes) * 8 * 1_000_000_000_000
}

/// A rate in bits per second: the page's R.
pub fn bps(rate: Rate) -> u128 {
    u128::from(rate.bps().expect("every link has a rate"))
}

/// The page's T(i): how long after the start flit `i` (1, 2, ...) of `b` bits x 10^12 has left, on a link with rate `r`
/// and the remainder `remainder`.
pub fn t(i: u64, b: u128, remainder: u128, rate: u128, flit_gap: u64) -> u64 {
    u64::try_from((u128::from(i) * b + remainder) / rate).unwrap() + (i - 1) * flit_gap
}

/// The lengths of the packets into which a message of `bytes` is cut.
pub fn cut(bytes: u64, mtu: u64, headers: u64) -> Vec<u32> {
    let mut lengths = Vec::new();
    let mut rest = bytes;
    loop {
        let payload = rest.min(mtu);
        rest -= payload;
        // A packet of 0 bytes is sent as one of 1 byte.
        lengths.push(u32::try_from((payload + headers).max(1)).unwrap());
        if rest == 0 {
            return lengths;
        }
    }
}
