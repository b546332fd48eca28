//! Which payload bytes are kept: the beginnings of messages, not the middle of data streams.

use std::net::SocketAddr;

use proptest::prelude::*;
use sniffer::keep::{FullPayloadOf, KeepRule, Keeper};
use trace::packet::flag::{ACK, PSH};

const FULL: u32 = 1448;

fn ends() -> (SocketAddr, SocketAddr) {
    ("10.1.0.1:40000".parse().unwrap(), "10.1.0.2:9866".parse().unwrap())
}

fn keeper(full_of: FullPayloadOf) -> Keeper {
    Keeper::new(KeepRule { full_of, ..KeepRule::default() })
}

#[test]
fn short_segments_are_kept_and_segments_without_payload_are_not() {
    for of in [FullPayloadOf::Bursts, FullPayloadOf::All, FullPayloadOf::None] {
        let (a, b) = ends();
        let mut keeper = keeper(of);
        assert_eq!(keeper.keep(0, a, b, ACK, 0), 0);
        assert_eq!(keeper.keep(1, a, b, ACK | PSH, 1399), 256);
        assert_eq!(keeper.keep(2, b, a, ACK | PSH, 31), 256);
    }
}

#[test]
fn of_a_stream_only_the_beginning_is_kept() {
    let (a, b) = ends();
    let mut keeper = keeper(FullPayloadOf::Bursts);
    assert_eq!(keeper.keep(0, a, b, ACK, FULL), 256, "the first data of a connection");
    for i in 1..100 {
        assert_eq!(keeper.keep(i * 1000, a, b, ACK, FULL), 0, "segment {i}");
    }
}

#[test]
fn a_burst_begins_after_a_short_segment_or_a_pause() {
    let (a, b) = ends();
    let mut keeper = keeper(FullPayloadOf::Bursts);
    keeper.keep(0, a, b, ACK, FULL);
    assert_eq!(keeper.keep(3_000, a, b, ACK, 500), 256);
    assert_eq!(keeper.keep(4_000, a, b, ACK, FULL), 64, "after a short segment");
    assert_eq!(keeper.keep(20_004_000, a, b, ACK, FULL), 0, "20 ms later");
    assert_eq!(keeper.keep(40_004_001, a, b, ACK, FULL), 64, "more than 20 ms later");
}

#[test]
fn a_push_ends_a_write_unless_the_segment_is_as_long_as_they_come() {
    let (a, b) = ends();
    let mut keeper = keeper(FullPayloadOf::Bursts);
    keeper.keep(0, a, b, ACK, 65_483);
    assert_eq!(keeper.keep(1_000, a, b, ACK | PSH, 65_483), 0);
    assert_eq!(keeper.keep(2_000, a, b, ACK | PSH, 30_000), 0, "Linux pushes in the middle of a stream");
    assert_eq!(keeper.keep(3_000, a, b, ACK, 65_483), 64, "after a push on a shorter segment");
}

#[test]
fn an_answer_is_kept_like_a_short_segment() {
    let (a, b) = ends();
    let mut keeper = keeper(FullPayloadOf::Bursts);
    keeper.keep(0, a, b, ACK | PSH, 300);
    assert_eq!(keeper.keep(1_000, b, a, ACK, FULL), 256);
    keeper.keep(2_000, a, b, ACK | PSH, 20);
    assert_eq!(keeper.keep(3_000, b, a, ACK, FULL), 0, "acknowledgements of a stream do not begin a new one");
}

#[test]
fn all_and_none_are_what_they_say() {
    let (a, b) = ends();
    let (mut all, mut none) = (keeper(FullPayloadOf::All), keeper(FullPayloadOf::None));
    for i in 0..5 {
        assert_eq!(all.keep(i, a, b, ACK, FULL), 64);
        assert_eq!(none.keep(i, a, b, ACK, FULL), 0);
    }
}

#[test]
fn connections_do_not_disturb_each_other() {
    let (_, server) = ends();
    let mut keeper = keeper(FullPayloadOf::Bursts);
    let clients: Vec<SocketAddr> = (0..50).map(|i| SocketAddr::new("10.1.0.1".parse().unwrap(), 40_000 + i)).collect();
    let mut kept = 0;
    for round in 0..20 {
        for client in &clients {
            kept += keeper.keep(round * 1000, *client, server, ACK, FULL);
        }
    }
    // Two connections may meet in one of 4,096 slots; these ports do not.
    assert_eq!(kept, clients.len() * 256);
}

proptest! {
    #[test]
    fn never_more_is_kept_than_the_rule_says(
        segments in prop::collection::vec((any::<u64>(), any::<SocketAddr>(), any::<SocketAddr>(), any::<u8>(), any::<u32>()), 0..200),
    ) {
        let mut keeper = keeper(FullPayloadOf::Bursts);
        for (t, from, to, flags, length) in segments {
            let kept = keeper.keep(t, from, to, flags, length);
            prop_assert!(kept <= 256 && (length > 0 || kept == 0));
        }
    }
}
