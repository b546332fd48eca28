//! No link carries more than its rate, over however long a run at rates that are no whole number of picoseconds; and
//! where nothing conflicts, links carry it.

use crate::common::lab;
use crate::exactness::run;
use crate::flit_model::traffic::{Seen, Sending, When};
use netsim::fabric::credit::{Credit, CreditConfig};
use netsim::fabric::packet::{PacketFabric, PacketRecord};
use netsim::fabric::store_and_forward::{StoreAndForward, StoreAndForwardConfig};
use netsim::network::NetworkFigures;
use netsim::routing::RoutingConfig;
use netsim::time::SimTime;
use netsim::topology::{FatTreeConfig, LinkConfig, TopologyConfig};
use netsim::units::{Buffer, Bytes, DurationPs, Rate};

/// Hosts of each of two racks, and core switches.
const HOSTS: u32 = 4;
/// Packets are so many bytes: a whole number of flits.
const BYTES: u64 = 1_024;
const RATES: [u64; 4] = [3_000_000_000, 9_999_999_937, 56_000_000_000, 111_111_111_111];
/// The width of the intervals in which links are looked at.
const INTERVAL: DurationPs = DurationPs::from_us(20);

fn topology(rate: u64) -> TopologyConfig {
    let link = LinkConfig {
        rate: Rate::from_bps(rate),
        delay: Some(DurationPs(12_345)),
        buffer: Buffer::Unlimited,
        ..LinkConfig::default()
    };
    let tree = FatTreeConfig { cores: HOSTS, host_link: link, uplink: link, ..FatTreeConfig::default() };
    TopologyConfig::FatTree(tree)
}

fn credit(rate: u64) -> Credit<Seen> {
    let config = CreditConfig {
        topology: topology(rate),
        routing: RoutingConfig::DModK,
        mtu: Bytes(BYTES),
        headers: Bytes(0),
        credits: 1_024,
        vls: 2,
        interval: INTERVAL,
        ..CreditConfig::default()
    };
    Credit::new(&config, &lab(2, HOSTS as usize), Seen::default()).unwrap()
}

fn stored(rate: u64) -> StoreAndForward<Seen> {
    let config = StoreAndForwardConfig {
        topology: topology(rate),
        routing: RoutingConfig::DModK,
        mtu: Bytes(BYTES),
        switch_delay: DurationPs(777),
        interval: INTERVAL,
        ..StoreAndForwardConfig::default()
    };
    StoreAndForward::new(&config, &lab(2, HOSTS as usize), Seen::default()).unwrap()
}

fn message(source: u32, destination: u32, packets: u64, level: u8) -> Sending {
    Sending { when: When::At(0), source, destination, bytes: packets * BYTES, level, flow: u64::from(source) }
}

/// When `packets` packets have left that follow each other from time 0 on.
fn without_a_pause(packets: u64, rate: u64) -> u64 {
    let bits = u128::from(packets) * u128::from(BYTES) * 8_000_000_000_000;
    u64::try_from(bits / u128::from(rate)).unwrap()
}

/// What arrived at the hosts between the first and the last arrival, as a part of what their links can carry.
fn used(packets: &[PacketRecord], destination: u32, rate: u64) -> f64 {
    let arrivals: Vec<SimTime> =
        packets.iter().filter(|packet| packet.destination.0 == destination).map(|packet| packet.arrived).collect();
    let (first, last) = (arrivals.iter().min().unwrap(), arrivals.iter().max().unwrap());
    let least = without_a_pause(arrivals.len() as u64 - 1, rate);
    // The first may have come a picosecond late by the fraction that it began with.
    assert!(last.since_ps(*first) + 1 >= least, "more than the link to host {destination} carries");
    least as f64 / last.since_ps(*first) as f64
}

/// No link carried more in an interval than its rate allows, and a packet that began before it.
fn assert_bound(figures: &NetworkFigures, rate: u64) {
    assert!(!figures.links.is_empty());
    for link in &figures.links {
        assert_eq!(link.bytes_by_interval().iter().sum::<u64>(), link.bytes, "{}", link.name);
        for bytes in link.bytes_by_interval() {
            let most = u128::from(rate) * u128::from(figures.interval_ps) / 8_000_000_000_000 + u128::from(BYTES);
            assert!(u128::from(*bytes) <= most, "{}: {bytes} of {most} bytes", link.name);
        }
    }
}

/// A permutation in which every host sends to the other rack over a core switch of its own: all links are full.
fn full(fabric: &mut impl PacketFabric<Seen>, rate: u64) {
    let packets = 3_000;
    let traffic: Vec<Sending> =
        (0..2 * HOSTS).map(|host| message(host, (host + HOSTS) % (2 * HOSTS), packets, 0)).collect();
    let seen = run(fabric, &traffic);
    assert_eq!(seen.packets.len() as u64, packets * u64::from(2 * HOSTS));
    for packet in &seen.packets {
        assert_eq!(packet.left.0, without_a_pause(packet.number, rate), "packet {} at {rate}", packet.number);
    }
    for host in 0..2 * HOSTS {
        let used = used(&seen.packets, host, rate);
        assert!(used >= 0.995, "{used} of the link to host {host} at {rate} bit/s");
    }
    assert_bound(&fabric.figures(), rate);
}

/// Everybody sends to everybody, and to host 0 most: nothing is exceeded, and the link to host 0 is full.
fn conflicts(fabric: &mut impl PacketFabric<Seen>, rate: u64) {
    let mut traffic = Vec::new();
    for source in 0..2 * HOSTS {
        for destination in (0..2 * HOSTS).filter(|destination| *destination != source) {
            let packets = if destination == 0 { 400 } else { 100 };
            traffic.push(message(source, destination, packets, u8::try_from(source % 2).unwrap()));
        }
    }
    let seen = run(fabric, &traffic);
    for host in 0..2 * HOSTS {
        assert!(used(&seen.packets, host, rate) <= 1.000_001);
    }
    let hot = used(&seen.packets, 0, rate);
    assert!(hot >= 0.995, "{hot} of the link to host 0 at {rate} bit/s");
    assert_bound(&fabric.figures(), rate);
}

#[test]
fn with_credits_links_are_full_where_nothing_conflicts() {
    RATES.iter().for_each(|rate| full(&mut credit(*rate), *rate));
}

#[test]
fn storing_and_forwarding_links_are_full_where_nothing_conflicts() {
    RATES.iter().for_each(|rate| full(&mut stored(*rate), *rate));
}

#[test]
fn with_credits_no_link_carries_more_than_its_rate() {
    RATES.iter().for_each(|rate| conflicts(&mut credit(*rate), *rate));
}

#[test]
fn storing_and_forwarding_no_link_carries_more_than_its_rate() {
    RATES.iter().for_each(|rate| conflicts(&mut stored(*rate), *rate));
}
