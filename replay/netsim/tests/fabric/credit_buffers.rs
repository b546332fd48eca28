//! Buffers that the VLs of a link share: what each has for itself, what all have together, and at most.

use crate::common::{credit, lab, message, packets};
use crate::exactness::drive;
use crate::exactness::networks::credit_networks;
use crate::flit_model::traffic::Seen;
use netsim::fabric::credit::{Credit, SharedBuffersConfig};
use netsim::fabric::packet::{PacketFabric, PacketRecord};
use netsim::time::SimTime;
use proptest::prelude::*;

/// Packets of one flit and one credit, which takes 51.2 ns.
fn switch(keys: &str) -> String {
    format!("topology = {{ shape = \"single-switch\" }}\nmtu = \"64B\"\nheaders = \"0B\"\n{keys}")
}

fn last(packets: &[PacketRecord], destination: u32) -> u64 {
    let arrived = packets.iter().filter(|packet| packet.destination.0 == destination).map(|packet| packet.arrived.0);
    arrived.max().unwrap()
}

#[test]
fn a_lane_alone_has_its_own_part_and_what_is_shared_up_to_its_maximum() {
    // The buffer is told free 302.4 ns after the start: until then as many packets start as there are credits.
    let at_once = |keys: &str| {
        let mut fabric = credit(&switch(keys), &lab(1, 2));
        fabric.send(SimTime::ZERO, &message(0, 1, 64 * 20, 0));
        let packets = packets(&mut fabric);
        packets.iter().enumerate().take_while(|(n, packet)| packet.left.0 == *n as u64 * 51_200).count()
    };
    let shared = |size: u32, max: u32| {
        format!("vls = 3\nswitch_delay = \"2us\"\nshared_buffers = {{ size = {size}, exclusive = 2, max = {max} }}")
    };
    assert_eq!(at_once("vls = 3\nswitch_delay = \"2us\"\ncredits = 2"), 2);
    assert_eq!(at_once(&shared(6, 6)), 2);
    assert_eq!(at_once(&shared(10, 10)), 6);
    assert_eq!(at_once(&shared(10, 5)), 5);
    assert_eq!(at_once(&shared(10, 2)), 2);
}

#[test]
fn a_lane_goes_on_with_what_is_its_own_while_others_fill_the_rest() {
    // VL 0 of host 0's link gets a third of the link to host 2 and fills all that is shared.
    let keys = "vls = 2\nshared_buffers = { size = 40, exclusive = 2, max = 40 }";
    let mut fabric = credit(&switch(keys), &lab(1, 5));
    for source in [0, 1, 4] {
        fabric.send(SimTime::ZERO, &message(source, 2, 64 * 300, 0));
    }
    fabric.send(SimTime::ZERO, &message(0, 3, 64 * 100, 1));
    let packets = packets(&mut fabric);
    // Two credits come back after 302.4 ns, a flit more for each packet of VL 0 in between: 100 packets take 21 us at most.
    assert!(last(&packets, 3) < 21_000_000, "{}", last(&packets, 3));
    assert!(last(&packets, 2) > 46_000_000, "{}", last(&packets, 2));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn without_anything_shared_buffers_are_static_ones(mut case in credit_networks()) {
        let run = |case: &crate::exactness::Case<_>| {
            drive(&mut Credit::new(&case.config, &case.hosts, Seen::default()).unwrap(), &case.traffic)
        };
        let fixed = run(&case);
        let credits = std::mem::replace(&mut case.config.credits, 128);
        let size = credits * u32::from(case.config.vls);
        case.config.shared_buffers = Some(SharedBuffersConfig { size, exclusive: credits, max: credits });
        prop_assert_eq!(run(&case), fixed);
    }
}
