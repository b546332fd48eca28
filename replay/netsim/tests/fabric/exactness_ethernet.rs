//! The fabric `ethernet` beside its slow model: every message of random small networks at the same picosecond, and as many packets, bytes
//! and losses on each link, with flows that nothing comes back on but ACKs and with connections, whose data carry them.

use crate::exactness::networks::ethernet_networks;
use crate::exactness::{Case, networks_config};
use crate::flit_model::traffic::{Sending, When, answers};
use crate::tcp_model::{Mistake, PlainEthernet};
use netsim::fabric::ethernet::{Ethernet, EthernetConfig};
use netsim::network::{Delivery, FlowId, HostIndex, Network, NetworkFigures, Token};
use netsim::time::SimTime;
use netsim::topology::HostPlace;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};

/// Hands messages over on a flow for each pair of hosts, or on a connection for both ways.
fn deliveries(network: &mut impl Network, traffic: &[Sending], connections: bool) -> Vec<Delivery> {
    let mut flows: HashMap<(u32, u32), FlowId> = HashMap::new();
    let mut send = |network: &mut dyn Network, at: SimTime, number: usize| {
        let Sending { source, destination, bytes, .. } = traffic[number];
        let (client, server) = (HostIndex(source), HostIndex(destination));
        if connections && source != destination && !flows.contains_key(&(source, destination)) {
            let (there, back) = network.open_connection(client, server);
            flows.extend([((source, destination), there), ((destination, source), back)]);
        }
        let flow = *flows.entry((source, destination)).or_insert_with(|| network.open_flow(client, server));
        network.send(at, flow, bytes, Token(number as u64));
    };
    let mut pending: BTreeMap<SimTime, Vec<usize>> = BTreeMap::new();
    for (number, sending) in traffic.iter().enumerate() {
        if let When::At(time) = sending.when {
            pending.entry(SimTime(time)).or_default().push(number);
        }
    }
    let mut all = Vec::new();
    while !pending.is_empty() || network.next_event().is_some() {
        let mut arrived = Vec::new();
        // Messages of an instant are handed over before anything of that instant is processed.
        match pending.keys().next().copied() {
            Some(SimTime::ZERO) => {}
            Some(next) => drop(network.advance(SimTime(next.0 - 1), &mut arrived)),
            None => drop(network.advance(SimTime::MAX, &mut arrived)),
        }
        if arrived.is_empty()
            && let Some((at, numbers)) = pending.pop_first()
        {
            numbers.into_iter().for_each(|number| send(network, at, number));
        }
        for delivery in &arrived {
            for (answer, think) in answers(traffic, usize::try_from(delivery.token.0).unwrap()) {
                if think == 0 {
                    send(network, delivery.at, answer);
                } else {
                    pending.entry(delivery.at.plus_ps(think)).or_default().push(answer);
                }
            }
        }
        all.append(&mut arrived);
    }
    all
}

/// What both models count.
#[derive(Debug, PartialEq)]
struct Counted {
    drops: u64,
    retransmissions: u64,
    counters: Vec<(String, u64)>,
    /// Of each link bytes, packets, drops, and bytes of the longest queue.
    links: Vec<[u64; 4]>,
}

fn counted(figures: &NetworkFigures) -> Counted {
    let links = figures.links.iter().map(|link| [link.bytes, link.packets, link.drops, link.queue_max_bytes]);
    Counted {
        drops: figures.drops,
        retransmissions: figures.retransmissions,
        counters: figures.counters.clone(),
        links: links.collect(),
    }
}

/// The messages' deliveries, and the figures.
fn run(mut network: impl Network, case: &Case<EthernetConfig>, connections: bool) -> (Vec<Delivery>, NetworkFigures) {
    (deliveries(&mut network, &case.traffic, connections), network.figures())
}

fn fast(case: &Case<EthernetConfig>, connections: bool) -> (Vec<Delivery>, NetworkFigures) {
    run(Ethernet::new(&case.config, &case.hosts).unwrap(), case, connections)
}

fn slow(case: &Case<EthernetConfig>, connections: bool, mistake: Option<Mistake>) -> (Vec<Delivery>, NetworkFigures) {
    run(PlainEthernet::new(&case.config, &case.hosts, mistake), case, connections)
}

fn check(case: &Case<EthernetConfig>, connections: bool) -> Result<NetworkFigures, TestCaseError> {
    let ((of_fast, figures), (of_slow, expected)) = (fast(case, connections), slow(case, connections, None));
    let first = of_fast.iter().zip(&of_slow).find(|(fast, slow)| fast != slow);
    prop_assert!(of_fast == of_slow, "{} and {} messages; first {:?}", of_fast.len(), of_slow.len(), first);
    prop_assert_eq!(counted(&figures), counted(&expected));
    prop_assert_eq!(of_fast.len(), case.traffic.len(), "TCP delivers all");
    Ok(figures)
}

proptest! {
    #![proptest_config(networks_config(400, "tests/regressions/fabric_exactness_ethernet.txt"))]

    #[test]
    fn every_message_arrives_when_the_slow_model_says(case in ethernet_networks(), connections in any::<bool>()) {
        check(&case, connections)?;
    }
}

/// Four hosts that send each other long messages, twice with a pause between, through buffers of so many packets.
fn lossy(buffer: u64, bytes: u64) -> Case<EthernetConfig> {
    let text = format!(
        "host_delay = \"10us\"\n[topology]\nshape = \"racks\"\nhost_link = {{ rate = \"100mbit\", delay = \"3us\", buffer = \"{buffer} packets\" }}\n\
         uplink = {{ rate = \"40mbit\", delay = \"20us\", buffer = \"{buffer} packets\" }}\n"
    );
    let place = |host: u32| HostPlace { name: format!("w{host}"), rack: format!("rack{}", host % 2) };
    let sending = |number: u32| Sending {
        when: When::At(u64::from(number) * 1_700_000_000 + u64::from(number / 12) * 4_000_000_000_000),
        source: number % 4,
        destination: (number + 1 + number / 4 % 3) % 4,
        bytes: bytes + u64::from(number) * 7_001,
        level: 0,
        flow: 0,
    };
    Case {
        config: toml::from_str(&text).unwrap(),
        hosts: (0..4).map(place).collect(),
        traffic: (0..24).map(sending).collect(),
    }
}

/// Buffers in packets, bytes of a message, whether there are connections.
const LOSSY: [(u64, u64, bool); 5] =
    [(1, 40_000, false), (3, 300_000, false), (5, 200_000, true), (12, 400_000, true), (200, 400_000, true)];

/// Losses, SACKs, recoveries, probes, time-outs, and ACKs that are lost: none of them is left to chance.
#[test]
fn lossy_networks_lose_and_repeat_as_the_slow_model_does() {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for (buffer, bytes, connections) in LOSSY {
        let figures = check(&lossy(buffer, bytes), connections).unwrap();
        for (name, number) in figures.counters.into_iter().chain([("lost".to_owned(), figures.drops)]) {
            *seen.entry(name).or_default() += number;
        }
    }
    for name in ["lost", "recoveries", "time-outs", "tail loss probes", "delayed ACKs"] {
        assert!(seen[name] > 10, "{name}: {seen:?}");
    }
}

#[test]
fn mistakes_are_found() {
    let networks: Vec<_> = LOSSY.map(|(buffer, bytes, connections)| (lossy(buffer, bytes), connections)).into();
    let right: Vec<_> = networks.iter().map(|(case, connections)| fast(case, *connections).0).collect();
    for mistake in Mistake::ALL {
        let differs = |((case, connections), right): (&(Case<EthernetConfig>, bool), &Vec<Delivery>)| {
            slow(case, *connections, Some(mistake)).0 != *right
        };
        assert!(networks.iter().zip(&right).any(differs), "{mistake:?}");
    }
}
