//! Allocation: inputs that pass one packet at a time, and how many of them are matched.

use crate::common::{credit, lab, message, packets};
use netsim::fabric::packet::PacketFabric;
use netsim::network::Simulation;
use netsim::time::SimTime;

/// A switch over which 4 hosts send to each of 4 others without a pause, a VL for each destination, by `allocation`: the share of its time
/// in which a link to a host is busy, long after the start. A packet takes 51.2 ns, and so does a cycle.
fn throughput(allocation: &str) -> f64 {
    const HOSTS: u32 = 4;
    let text = format!(
        "topology = {{ shape = \"single-switch\" }}\nmtu = \"64B\"\nheaders = \"0B\"\nvls = 4\ncredits = 64\nswitch_delay = \"0ns\"\n\
         {allocation}"
    );
    let mut fabric = credit(&text, &lab(1, 2 * HOSTS as usize));
    for source in 0..HOSTS {
        for destination in 0..HOSTS {
            let level = u8::try_from(destination).unwrap();
            fabric.send(SimTime::ZERO, &message(source, HOSTS + destination, 64 * 4_000, level));
        }
    }
    let slot = |slots: u64| SimTime(slots * 51_200);
    fabric.run_before(slot(9_000));
    let packets = std::mem::take(fabric.observer());
    let counted = packets.iter().filter(|packet| (slot(1_000)..slot(9_000)).contains(&packet.arrived)).count();
    counted as f64 / 8_000.0 / f64::from(HOSTS)
}

#[test]
fn parallel_iterative_matching_comes_to_its_published_share() {
    // Of n inputs that each ask for all n outputs, one iteration with draws matches 1 - (1 - 1/n)^n, 63% of many (Anderson et al. 1993).
    // 8,000 slots of 4 outputs: a standard deviation below 0.003.
    let one = |order: &str| {
        throughput(&format!(
            "input_arbitration = \"random\"\n\
             allocation = {{ order = \"{order}\", queue_arbitration = \"random\", cycle = \"51.2ns\" }}"
        ))
    };
    let expected = 1.0 - 0.75_f64.powi(4);
    for order in ["input-first", "output-first"] {
        assert!((one(order) - expected).abs() < 0.012, "{order}: {} for {expected}", one(order));
    }
}

#[test]
fn round_robins_of_islip_come_apart_and_match_all() {
    // McKeown 1999: with one iteration all outputs are busy once the turns have come apart.
    let busy = throughput("allocation = { order = \"output-first\", cycle = \"51.2ns\" }");
    assert!(busy > 0.995, "{busy}");
}

#[test]
fn more_iterations_match_more() {
    let busy = |iterations: u8| {
        throughput(&format!(
            "input_arbitration = \"random\"\nallocation = {{ order = \"output-first\", iterations = {iterations}, \
             queue_arbitration = \"random\", cycle = \"51.2ns\" }}"
        ))
    };
    let (one, two, four) = (busy(1), busy(2), busy(4));
    assert!(one + 0.15 < two && two + 0.01 < four, "{one} {two} {four}");
}

/// When two packets arrive (ps) that hosts of one rack send at 0, on a VL each, to those of another. Uplinks are ten times as fast as the links
/// of hosts, where a packet takes 51.2 ns.
fn two_at_once(allocation: &str) -> Vec<u64> {
    let text = format!(
        "topology = {{ shape = \"racks\", host_link = {{ rate = \"10Gbps\", delay = \"0ns\" }}, uplink = {{ rate = \"100Gbps\", delay = \"0ns\" }} }}\n\
         mtu = \"64B\"\nheaders = \"0B\"\nvls = 2\nswitch_delay = \"0ns\"\n{allocation}"
    );
    let mut fabric = credit(&text, &lab(2, 2));
    for (source, level) in [(0, 0), (1, 1)] {
        fabric.send(SimTime::ZERO, &message(source, source + 2, 64, level));
    }
    let mut arrivals: Vec<u64> = packets(&mut fabric).iter().map(|packet| packet.arrived.0).collect();
    arrivals.sort_unstable();
    arrivals
}

#[test]
fn an_input_passes_one_packet_at_a_time() {
    // To the second switch they come at 56.32 and 61.44 ns, by one link.
    assert_eq!(two_at_once(""), [107_520, 112_640]);
    for order in ["input-first", "output-first"] {
        assert_eq!(two_at_once(&format!("allocation = {{ order = \"{order}\" }}")), [107_520, 158_720]);
    }
}

#[test]
fn switches_allocate_once_a_cycle() {
    // At 100 and 200 ns the first, at 200 and 300 the second: the second switch's input is free again at 251.2 ns.
    assert_eq!(two_at_once("allocation = { cycle = \"100ns\" }"), [251_200, 351_200]);
}
