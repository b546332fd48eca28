//! What lies below the ToRs as a fabric of its own.

use crate::common::{fabric, lab, run_all};
use netsim::fabric::{self, Fabric, FabricConfig};
use netsim::network::{HostIndex, Network, Simulation, Token};
use netsim::time::SimTime;
use netsim::topology::HostPlace;
use proptest::prelude::*;

/// InfiniBand, with everything that the deliverable's ToR has of it.
const INFINIBAND: &str = "kind = \"credit\"\nflit = \"64B\"\nvls = 4\ncredits = 64\ncredit_min_time = \"50ns\"\nflit_gap = \"1ns\"\n\
     packet_gap = \"7ns\"\nwidth = 4\nspeed = \"QDR\"\n";
const ETHERNET: &str = "kind = \"ethernet\"\nswitch_delay = \"1us\"\ntopology = { shape = \"racks\", host_link = { rate = \"10Gbps\", delay = \"100ns\" } }\n";

fn lightness(keys: &str, rack: &str) -> String {
    format!("kind = \"lightness\"\n{keys}\n[rack]\n{rack}")
}

fn counter(network: &Fabric, name: &str) -> u64 {
    network.figures().counters.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no counter {name}")).1
}

/// When one message of `bytes` is there.
fn time(network: &mut Fabric, from: u32, to: u32, bytes: u64) -> u64 {
    let flow = network.open_flow(HostIndex(from), HostIndex(to));
    network.send(SimTime::ZERO, flow, bytes, Token(0));
    let deliveries = run_all(network);
    assert_eq!(deliveries.len(), 1);
    deliveries[0].at.0
}

/// A rack of two hosts, with another one for the ToR.
fn rack_alone(text: &str) -> Fabric {
    let hosts: Vec<HostPlace> =
        ["w0", "w1", "tor"].map(|name| HostPlace { name: name.to_owned(), rack: "rack0".to_owned() }).to_vec();
    fabric(text, &hosts)
}

#[test]
fn within_a_rack_a_message_takes_what_the_racks_fabric_takes() {
    for (rack, bytes) in
        [ETHERNET, INFINIBAND].into_iter().flat_map(|rack| [1, 1_000, 100_000, 3_000_000].map(|bytes| (rack, bytes)))
    {
        let alone = time(&mut rack_alone(rack), 0, 1, bytes);
        let mut network = fabric(&lightness("", rack), &lab(3, 2));
        assert_eq!(time(&mut network, 4, 5, bytes), alone);
        assert_eq!((counter(&network, "messages below ToRs"), counter(&network, "ACKs")), (1, 0));
    }
}

#[test]
fn between_racks_a_packet_crosses_both_racks_and_the_optics() {
    for (rack, bytes) in
        [ETHERNET, INFINIBAND].into_iter().flat_map(|rack| [80, 1_000, 32_768].map(|bytes| (rack, bytes)))
    {
        let below = time(&mut rack_alone(rack), 0, 2, bytes);
        let mut network = fabric(&lightness("decision = \"direct\"", rack), &lab(2, 2));
        let optics = 1_678_000 + bytes * 2_150;
        assert_eq!(time(&mut network, 0, 3, bytes), 2 * below + optics, "{bytes} B");
    }
}

#[test]
fn the_tor_waits_for_the_whole_packet() {
    // One packet of 30,000 bytes against twenty of 1,500: the first of those is sooner at the optics.
    let time = |largest: u64| {
        let keys = format!("decision = \"direct\"\nphotonic_packet_max = \"{largest}B\"\ntor_startup_delay = \"0ns\"");
        time(&mut fabric(&lightness(&keys, ETHERNET), &lab(2, 1)), 0, 1, 30_000)
    };
    assert!(time(1_500) + 20_000_000 < time(30_000), "{} and {}", time(1_500), time(30_000));
}

#[test]
fn figures_name_the_links_below_the_tors_and_no_ways_between_racks() {
    let mut network = fabric(&lightness("", ETHERNET), &lab(3, 2));
    time(&mut network, 0, 5, 100_000);
    let links = network.figures().links;
    let bytes = |name: &str| links.iter().find(|link| link.name == name).unwrap_or_else(|| panic!("{name}")).bytes;
    for name in ["w0->rack0", "rack0->rack0.tor", "rack2.tor->rack2", "rack2->w5"] {
        assert!(bytes(name) > 100_000, "{name}");
    }
    assert!(!links.iter().any(|link| link.name.contains("core")));
    assert_eq!(links.iter().filter(|link| link.name.contains("OPS")).count(), 3 * 4 * 2);
}

#[test]
fn what_cannot_lie_below_a_tor_is_refused() {
    let rack = "kind = \"ethernet\"\ntopology = { shape = \"fat-tree\" }\n";
    let config: FabricConfig = lightness("", rack).parse().unwrap();
    let Err(error) = fabric::build(&config, &lab(2, 1)) else { panic!("{rack}") };
    assert!(error.to_string().starts_with("fabric.rack.topology.shape = \"fat-tree\": \"racks\""), "{error}");
    let error = lightness("", "kind = \"lightness\"\n").parse::<FabricConfig>().unwrap_err();
    let error = error.to_string();
    assert!(error.contains("kind = \"lightness\"") && error.contains("\"credit\""), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Below ToRs without any delay, everything is as with ideal servers' links.
    #[test]
    fn an_ideal_rack_is_as_ideal_links(
        messages in prop::collection::vec((1..100_000u64, 0..6u32, 1..6u32, 0..50_000u64), 1..20),
        decision in prop_oneof![Just("ops"), Just("by-size"), Just("by-flow"), Just("by-prediction")],
        window in 1..4u32,
    ) {
        let keys = format!(
            "decision = \"{decision}\"\ndecision_threshold = \"20kB\"\nwindow = {window}\nswitch_delay = \"0ns\"\n\
             ocs_first_message_delay = \"10us\"\nphotonic_packet_max = \"1500B\"\nserver_rate = \"unlimited\"\n\
             loopback = {{ latency = \"0ns\", rate = \"unlimited\" }}"
        );
        let ideal = "kind = \"ideal\"\nrate = \"unlimited\"\nlatency = \"0ns\"\n";
        let run = |text: &str| {
            let mut network = fabric(text, &lab(3, 2));
            let mut deliveries = Vec::new();
            let mut at = SimTime::ZERO;
            for (token, (gap, from, step, bytes)) in (0..).zip(&messages) {
                at = at.plus_ps(*gap);
                while network.advance(at, &mut deliveries) < at {}
                let flow = network.open_flow(HostIndex(*from), HostIndex((from + step) % 6));
                network.send(at, flow, *bytes, Token(token));
            }
            deliveries.extend(run_all(&mut network));
            deliveries.sort_by_key(|delivery| delivery.token.0);
            (deliveries, counter(&network, "ACKs"), counter(&network, "NACKs"))
        };
        let (with, without) = (run(&lightness(&keys, ideal)), run(&format!("kind = \"lightness\"\n{keys}")));
        prop_assert_eq!(with.0.len(), messages.len());
        prop_assert_eq!(with, without);
    }
}

/// A ToR's channel with few places holds its servers back, whatever lies between them: no more is sent up than has a place.
#[test]
fn a_full_channel_holds_the_servers_of_its_rack_back() {
    const PACKET: u64 = 1_500;
    let switched = "kind = \"store-and-forward\"\nmtu = \"1500B\"\ntopology = { shape = \"racks\", host_link = { rate = \"40Gbps\" } }\n";
    for rack in [switched, INFINIBAND] {
        for (places, way) in [(1, "ops"), (3, "ops"), (2, "ocs")] {
            let keys = format!(
                "decision = \"{way}\"\nwavelengths = 1\ntor_max_messages = {places}\nphotonic_packet_max = \"{PACKET}B\"\n\
                 ocs_first_message_delay = \"10us\""
            );
            let mut network = fabric(&lightness(&keys, rack), &lab(2, 2));
            let flows = [0, 1].map(|source| network.open_flow(HostIndex(source), HostIndex(2)));
            for (token, flow) in (0..).zip(flows) {
                network.send(SimTime::ZERO, flow, 100 * PACKET, Token(token));
            }
            let mut deliveries = Vec::new();
            let mut held_back = false;
            for step in 1..200 {
                while network.advance(SimTime::from_ns(step * 5_000), &mut deliveries) < SimTime::from_ns(step * 5_000)
                {
                }
                let figures = network.figures();
                let up =
                    figures.links.iter().filter(|link| ["w0->", "w1->"].iter().any(|host| link.name.starts_with(host)));
                let sent: u64 = up.map(|link| link.packets).sum();
                let gone = counter(&network, if way == "ops" { "ACKs" } else { "packets by circuit" });
                // A packet that goes by circuit frees its place when it has left.
                assert!(sent <= gone + places, "{rack}{way}: {sent} sent up, {gone} gone");
                held_back |= sent > 0 && sent < 200;
            }
            deliveries.extend(run_all(&mut network));
            assert!(held_back && deliveries.len() == 2, "{rack}{way}");
        }
    }
}
