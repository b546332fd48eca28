//! `spinnaker`: latencies of a lone packet, who waits for whom and is lost, what a replay makes of losses, and what is refused. A cycle is 1 ns.

use crate::common::{fabric, lab, message, packets, run_all};
use netsim::fabric::FabricConfig;
use netsim::fabric::FabricError;
use netsim::fabric::packet::{LostPacket, Observer, PacketFabric, PacketRecord};
use netsim::fabric::spinnaker::{Spinnaker, SpinnakerRouterConfig, TableEntry};
use netsim::network::{HostIndex, Network as _, Simulation as _, Token};
use netsim::time::SimTime;
use netsim::topology::NodeId;
use netsim::traffic::{self, RunOptions, TrafficConfig};
use std::sync::atomic::AtomicBool;

const CYCLE_PS: u64 = 1_000;
const LINK: &str = "{ rate = \"64Gbps\", delay = \"0ns\" }";

/// Flits of 8 B, packets of `flits` of them.
fn keys(flits: u64) -> String {
    format!("flit = \"8B\"\nheaders = \"0B\"\nmtu = \"{}B\"", flits * 8)
}

fn triangles() -> String {
    format!("[topology]\nshape = \"spinnaker\"\nsize = [8, 8]\nhost_link = {LINK}\nlink = {LINK}")
}

fn switch(hosts: u32) -> String {
    format!("[topology]\nshape = \"single-switch\"\nnodes = {hosts}\nhost_link = {LINK}")
}

/// Sees what arrives and what is lost.
#[derive(Default)]
struct Both {
    arrived: Vec<PacketRecord>,
    lost: Vec<LostPacket>,
}

impl Observer for Both {
    fn delivered(&mut self, packet: &PacketRecord) {
        self.arrived.push(*packet);
    }

    fn dropped(&mut self, packet: &LostPacket) {
        self.lost.push(*packet);
    }
}

#[test]
fn a_lone_packet_is_passed_on_whole_by_each_router() {
    // (n + 1) (F + L) + n routing over n switches.
    for (more, to, switches, cycles) in [
        ("", 1, 2, 3 * 8 + 2),
        ("", 9, 2, 3 * 8 + 2),
        ("", 18, 3, 4 * 8 + 3),
        ("routing_cycles = 5\nlink_cycles = 2", 18, 3, 4 * (8 + 2) + 3 * 5),
    ] {
        let config: SpinnakerRouterConfig = format!("{}\n{more}\n{}", keys(8), triangles()).parse().unwrap();
        let mut network = Spinnaker::new(&config, &[], Vec::new()).unwrap();
        network.send(SimTime::ZERO, &message(0, to, 64, 0));
        let packet = packets(&mut network)[0];
        assert_eq!((packet.arrived.0 / CYCLE_PS, packet.switches), (cycles, switches), "to {to}, {more:?}");
    }
}

/// Hosts and cycles.
type Times = Vec<(u32, u64)>;

/// What becomes of a packet of 100 flits from each of hosts 0, 1 and 2 to host 3: when which arrive, in cycles, and when which are lost.
fn three_to_one(wait: u32) -> (Times, Times) {
    let config: SpinnakerRouterConfig = format!("{}\nwait = {wait}\n{}", keys(100), switch(4)).parse().unwrap();
    let mut network = Spinnaker::new(&config, &[], Both::default()).unwrap();
    for host in 0..3 {
        network.send(SimTime::ZERO, &message(host, 3, 800, 0));
    }
    network.run_before(SimTime::MAX);
    let seen = network.observer();
    let arrived = seen.arrived.iter().map(|packet| (packet.source.0, packet.arrived.0 / CYCLE_PS));
    let lost = seen.lost.iter().map(|packet| (packet.source.0, packet.at.0 / CYCLE_PS));
    (arrived.collect(), lost.collect())
}

#[test]
fn what_finds_its_output_taken_waits_and_then_is_lost() {
    // All have come at 100. The first passes at 101 and leaves; the second waits at the output from 102 on, the third in the engine from 103 on.
    assert_eq!(three_to_one(300), (vec![(0, 201), (1, 301), (2, 401)], vec![]));
    assert_eq!(three_to_one(50), (vec![(0, 201), (1, 301)], vec![(2, 153)]));
    // The second leaves at 201, so that the third could pass at 202.
    assert!(three_to_one(99).1.is_empty());
    assert_eq!(three_to_one(98).1, [(2, 201)]);
}

#[test]
fn one_that_waits_holds_up_all_others_of_its_router() {
    let alone = |wait: u32| {
        let config: SpinnakerRouterConfig = format!("{}\nwait = {wait}\n{}", keys(100), switch(6)).parse().unwrap();
        let mut network = Spinnaker::new(&config, &[], Both::default()).unwrap();
        for host in 0..3 {
            network.send(SimTime::ZERO, &message(host, 3, 800, 0));
        }
        // To another host, a cycle later.
        network.send(SimTime(CYCLE_PS), &message(4, 5, 800, 0));
        network.run_before(SimTime::MAX);
        let packet = network.observer().arrived.iter().find(|packet| packet.source.0 == 4).copied().unwrap();
        packet.arrived.0 / CYCLE_PS
    };
    // It is taken when the third has passed (at 202) or is lost, routed for a cycle, and takes 100.
    assert_eq!(alone(300), 202 + 1 + 100);
    assert_eq!(alone(20), 103 + 20 + 1 + 100);
}

/// A network of triangles in which packets of host 0 go along routers 0 to 3, with a copy to host 1, and end at host 3.
fn by_tables(more: &[(u32, &[&str])]) -> Result<Spinnaker<Both>, FabricError> {
    let mut config: SpinnakerRouterConfig = format!("{}\n{}", keys(8), triangles()).parse().unwrap();
    let topology = config.topology.build(&[]).unwrap();
    let router = |number: u32| topology.name(NodeId(topology.hosts() + number)).to_owned();
    let host = |number: u32| topology.name(NodeId(number)).to_owned();
    let entry = |at: u32, to: Vec<String>| TableEntry { router: router(at), source: host(0), to };
    // Router 2 has none: straight on.
    config.tables = vec![entry(0, vec![router(1)]), entry(1, vec![router(2), host(1)]), entry(3, vec![host(3)])];
    for (at, to) in more {
        config.tables.push(entry(*at, to.iter().map(|name| (*name).to_owned()).collect()));
    }
    Spinnaker::new(&config, &[], Both::default())
}

#[test]
fn tables_by_source_lead_copies_to_several_hosts_and_else_straight_on() {
    let mut network = by_tables(&[]).unwrap();
    network.send(SimTime::ZERO, &message(0, 3, 64, 0));
    network.run_before(SimTime::MAX);
    let [packet] = network.observer().arrived[..] else { panic!("one arrives") };
    assert_eq!((packet.arrived.0 / CYCLE_PS, packet.switches), (5 * 8 + 4, 4));
    assert!(network.observer().lost.is_empty());
    let crossed: Vec<String> =
        network.figures().links.iter().filter(|link| link.packets > 0).map(|link| link.name.to_string()).collect();
    assert_eq!(crossed.len(), 1 + 3 + 2, "{crossed:?}");
    // One that is for host 1 has come there when its copy has come to host 3, too; one for host 9 comes nowhere.
    for (to, arrives, lost) in [(1, Some(3 * 8 + 2), None), (9, None, Some(5 * 8 + 4))] {
        let mut network = by_tables(&[]).unwrap();
        network.send(SimTime::ZERO, &message(0, to, 64, 0));
        network.run_before(SimTime::MAX);
        let seen = network.observer();
        let arrived = seen.arrived.first().map(|packet| packet.arrived.0 / CYCLE_PS);
        assert_eq!((arrived, seen.lost.first().map(|packet| packet.at.0 / CYCLE_PS)), (arrives, lost), "to {to}");
    }
    // Packets of others go by the routing.
    let mut network = by_tables(&[]).unwrap();
    network.send(SimTime::ZERO, &message(1, 9, 64, 0));
    network.run_before(SimTime::MAX);
    assert_eq!(network.observer().arrived[0].switches, 2);
}

#[test]
fn tables_that_lead_nowhere_or_in_circles_are_refused() {
    let error = |more: &[(u32, &[&str])]| by_tables(more).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(
        error(&[(9, &["nobody"])]).contains("names of what the router has a link to"),
        "{}",
        error(&[(9, &["nobody"])])
    );
    assert!(error(&[(3, &["h3"])]).contains("one entry for each router and source"));
    // From router 2 back to router 1.
    let topology = SpinnakerRouterConfig::default().topology.build(&[]).unwrap();
    let one = topology.name(NodeId(topology.hosts() + 1));
    assert!(error(&[(2, &[one])]).contains("entries that make a tree"), "{}", error(&[(2, &[one])]));
    assert!(error(&[(2, &[])]).contains("an entry, or a link straight on"));
}

#[test]
fn it_never_stops_and_what_does_not_arrive_is_lost() {
    for load in [0.1, 1.0] {
        let traffic: TrafficConfig = format!(
            "pattern = \"uniform\"\nload = {load:?}\nflits = 8\npackets = 16\nwarm_up = \"0 cycles\"\nmeasurement = \"10000 cycles\"\n\
             drain = \"500000 cycles\"\nevolution = \"2000 cycles\""
        )
        .parse()
        .unwrap();
        let text = format!("kind = \"spinnaker\"\nbuffer = 1\nwait = 20\n{}\n{}", keys(8), triangles());
        let config: FabricConfig = text.parse().unwrap();
        let options = RunOptions::default();
        let run = traffic::run(&traffic, &config, 3, options, &AtomicBool::new(false), &mut |_| {}).unwrap();
        let figures = run.figures;
        assert!(figures.evolution.iter().all(|span| span.row.accepted > 0), "{load}");
        assert_eq!((figures.undelivered, figures.losses.in_network), (0, figures.drops), "{load}");
        assert_eq!(figures.drops > 1_000, load > 0.5, "{load}: {} are lost", figures.drops);
    }
}

#[test]
fn a_replay_sends_again_what_is_lost() {
    let text = format!("kind = \"spinnaker\"\nbuffer = 1\nwait = 4\n{}\n{}", keys(8), triangles());
    let mut network = fabric(&text, &lab(1, 64));
    for host in 0..64 {
        let flow = network.open_flow(HostIndex(host), HostIndex((host * 7 + 3) % 64));
        (0..4u64).for_each(|number| network.send(SimTime::ZERO, flow, 1_000, Token(u64::from(host) * 4 + number)));
    }
    let deliveries = run_all(&mut network);
    let figures = network.figures();
    let lost: u64 = figures.links.iter().map(|link| link.drops).sum();
    assert!(lost > 100, "{lost} packets were lost on the way");
    let mut tokens: Vec<u64> = deliveries.iter().map(|delivery| delivery.token.0).collect();
    tokens.sort_unstable();
    assert_eq!(tokens, (0..256).collect::<Vec<_>>());
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    for (keys, needle) in [
        ("buffer = 0", "buffer"),
        ("routing_cycles = 0", "routing_cycles"),
        ("wait = 2000000", "wait"),
        ("flit = \"0B\"", "flit"),
        ("routing = \"adaptive\"", "routing"),
        ("routing = { bubble = \"smart\" }\n[topology]\nshape = \"torus\"\nsize = [4, 4]", "routing"),
        (
            "[topology]\nshape = \"single-switch\"\nnodes = 64\nhost_link = { rate = \"1Gbps\", delay = \"1s\" }",
            "4194304 cycles",
        ),
    ] {
        let config: SpinnakerRouterConfig = keys.parse().unwrap_or_else(|error| panic!("{keys}: {error}"));
        let Err(error) = Spinnaker::new(&config, &[], ()) else { panic!("{keys}: not refused") };
        assert!(error.to_string().contains(needle), "{keys}: {error}");
    }
}
