//! A host's link to its switch counts as full although single windows carry more: a bucket's burst, and one more of the host's own
//! packets of 64 KiB. Behind a switch packets have their length on the wire, and one burst is allowed.

use crate::world::{World, at};
use merger::merged::Merged;

/// Payload of a packet, of which one leaves each millisecond: 105 Mbit/s with headers.
const PACKET: usize = 12_500;
const MS: usize = 2_000;

/// A host sends evenly, and at one instant `more` packets at once.
fn sent(more: usize) -> Merged {
    let mut world = World::new(&["w1", "w2"]);
    world.keep = (256, 0);
    world.segment = PACKET;
    let mut talk = world.connect((0, 40_000), (1, 9_000), [100, 200], at(0));
    for ms in 1..MS {
        let packets = if ms == MS / 2 { 1 + more } else { 1 };
        world.say(&mut talk, true, at(ms as u64), &vec![0; packets * PACKET]);
    }
    world.merged()
}

/// Whether the sender's uplink, and the receiver's downlink, count as full.
fn full(more: usize) -> (bool, bool) {
    let merged = sent(more);
    let down = merged.network.links.iter().find(|link| link.to == "w2").unwrap();
    let up = merged.network.links.iter().find(|link| link.from == "w1").unwrap();
    assert_eq!(merged.joined.full_uplinks[0].holds(at(MS as u64 / 4)), !up.at_least, "{up:?}");
    if !up.at_least {
        assert!(up.rate_bps.abs_diff(105_000_000) < 3_000_000, "{up:?}");
    }
    (!up.at_least, !down.at_least)
}

#[test]
fn an_uplink_may_carry_a_burst_and_one_more_packet_of_its_host() {
    // A window has some 655 kB, 3% of which are as good as nothing; a packet has 13,094 bytes with headers.
    assert!(full(0).0 && full(5).0, "one burst of 64 KiB");
    assert_eq!(full(9), (true, false), "118 kB: two bursts");
    assert_eq!(full(13), (false, false), "170 kB");
}
