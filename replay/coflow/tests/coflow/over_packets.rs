//! The same demand over the ports of a switch and, in packets, over the fabric `rotor` with the same scheduler: each pair of ports is done at the
//! same time, to the picosecond.

use std::collections::BTreeMap;

use coflow::circuit::{Birkhoff, MatrixScheduler, MaxWeight, Priority, Solstice, all_stop, sunflow};
use coflow::{Coflow, Flow, PortId, Workload};
use netsim::fabric::packet::{Message, PacketFabric, PacketRecord, ServiceLevel};
use netsim::fabric::rotor::{Rotor, RotorConfig};
use netsim::network::{HostIndex, Simulation, Token};
use netsim::time::SimTime;
use netsim::topology::HostPlace;
use netsim::units::{DurationPs, Rate};
use proptest::prelude::*;

/// A packet of 1,500 bytes takes 1.2 us at this rate, and 12 ns over a host's link.
const RATE: Rate = Rate::from_bps(10_000_000_000);
const SET_UP: DurationPs = DurationPs::from_us(10);
/// What the shortest slot carries: five packets.
const SLOT: DurationPs = DurationPs::from_us(6);

/// When each pair's last packet has crossed the switch.
fn over_packets(scheduler: &str, ports: usize, packets: &BTreeMap<(u16, u16), u64>) -> BTreeMap<(u16, u16), u64> {
    let text = format!(
        "scheduler = \"{scheduler}\"\nslice = \"16us\"\nguard = \"10us\"\nreconfiguration_delay = \"10us\"\ncable_delay = \"0ns\"\n\
         host_rate = \"1000Gbps\"\nuplink_rate = \"10Gbps\"\nmtu = \"1436B\"\nheaders = \"64B\"\ndemand_limit = \"10s\"\n"
    );
    let config: RotorConfig = text.parse().unwrap();
    let hosts: Vec<HostPlace> =
        (0..ports).map(|port| HostPlace { name: format!("h{port}"), rack: format!("r{port}") }).collect();
    let mut network = Rotor::new(&config, &hosts, Vec::<PacketRecord>::new()).unwrap();
    for ((from, to), packets) in packets {
        let message = Message {
            source: HostIndex((*from).into()),
            destination: HostIndex((*to).into()),
            bytes: packets * 1_436,
            level: ServiceLevel(0),
            flow: 0,
            token: Token(0),
        };
        network.send(SimTime::ZERO, &message);
    }
    network.run_before(SimTime::MAX);
    let mut done = BTreeMap::new();
    for packet in std::mem::take(network.observer()) {
        let port = |host: HostIndex| u16::try_from(host.0).unwrap();
        let end = done.entry((port(packet.source), port(packet.destination))).or_insert(0);
        *end = packet.arrived.0.saturating_sub(12_000).max(*end);
    }
    done
}

fn flow((from, to): (u16, u16), packets: u64) -> Flow {
    Flow { from: PortId(from), to: PortId(to), bytes: (packets * 1_500) as f64 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn packets_are_done_when_the_ports_of_a_switch_are(
        ports in 2..7_u16,
        flows in prop::collection::vec((0..7_u16, 0..6_u16, 1..60_u64), 1..20),
    ) {
        let mut packets = BTreeMap::new();
        for (from, step, number) in flows {
            let from = from % ports;
            packets.insert((from, (from + 1 + step % (ports - 1)) % ports), number);
        }
        // A coflow for each pair, so that each is told.
        let each = packets.iter().map(|(pair, packets)| Coflow {
            id: format!("{pair:?}"),
            arrival: SimTime::ZERO,
            flows: vec![flow(*pair, *packets)],
        });
        let workload = Workload::new(ports.into(), each.collect()).unwrap();
        let schedulers: [(&str, Box<dyn MatrixScheduler>); 3] = [
            ("birkhoff", Box::new(Birkhoff)),
            ("solstice", Box::new(Solstice { shortest: SLOT })),
            ("max-weight", Box::new(MaxWeight { slot: SLOT })),
        ];
        for (name, mut scheduler) in schedulers {
            let done = all_stop(&workload, RATE, SET_UP, &mut *scheduler, |_| {}).unwrap();
            let wanted: BTreeMap<_, _> = packets.keys().copied().zip(done.iter().map(|done| done.end.0)).collect();
            prop_assert_eq!(over_packets(name, ports.into(), &packets), wanted, "{}", name);
        }

        let all = Coflow {
            id: "all".to_owned(),
            arrival: SimTime::ZERO,
            flows: packets.iter().map(|(pair, packets)| flow(*pair, *packets)).collect(),
        };
        let workload = Workload::new(ports.into(), vec![all]).unwrap();
        let mut wanted = BTreeMap::new();
        let mut circuit_is_over = |circuit: coflow::circuit::Circuit| {
            wanted.insert((circuit.from.0, circuit.to.0), circuit.end.0);
        };
        sunflow(&workload, RATE, SET_UP, Priority::Arrival, &mut circuit_is_over).unwrap();
        prop_assert_eq!(over_packets("sunflow", ports.into(), &packets), wanted, "sunflow");
    }
}
