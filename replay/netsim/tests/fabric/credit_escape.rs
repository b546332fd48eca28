//! Packets with an escape: beyond saturation, with room for one packet a lane, nothing ever stops.

use crate::common::{credit, message, packets, with_token};
use netsim::fabric::packet::PacketFabric;
use netsim::time::SimTime;

/// Packets of 16 flits, and buffers that hold just one of them.
const WORMS: &str = "routing = \"minimal-adaptive\"\nmtu = \"1KiB\"\nheaders = \"0B\"\ncredits = 16\n";

const NETWORKS: [(&str, u8); 4] = [
    ("[topology]\nshape = \"torus\"\nsize = [7]\n", 3),
    ("[topology]\nshape = \"torus\"\nsize = [4, 4]\n", 3),
    ("[topology]\nshape = \"mesh\"\nsize = [4, 4]\n", 2),
    ("[topology]\nshape = \"torus\"\nsize = [3, 3, 3]\n", 3),
];

#[test]
fn a_network_that_is_full_of_worms_drains() {
    for (topology, vls) in NETWORKS {
        let mut fabric = credit(&format!("vls = {vls}\n{WORMS}{topology}"), &[]);
        let hosts = netsim::network::Simulation::hosts(&fabric);
        for host in 0..hosts {
            for step in 1..hosts {
                // Half-way round first: those ways use most links of a ring.
                let to = (host + step * (hosts / 2)) % hosts;
                if to != host {
                    fabric.send(SimTime::ZERO, &with_token(message(host, to, 4_096, 0), (host * hosts + step).into()));
                }
            }
        }
        let expected: usize =
            (0..hosts).map(|_| (1..hosts).filter(|step| !(step * (hosts / 2)).is_multiple_of(hosts)).count() * 4).sum();
        assert_eq!(packets(&mut fabric).len(), expected, "{topology}");
    }
}

/// The routings of lattices, with as many virtual lanes as they are given here.
const ROUTINGS: [(&str, u8); 16] = [
    ("{ dally = \"trc\" }", 2),
    ("{ dally = \"basic\" }", 2),
    ("{ dally = \"basic\", order = \"dir\" }", 2),
    ("{ dally = \"improved\" }", 2),
    ("{ dally = \"improved\", order = \"dir\" }", 2),
    ("{ dally = \"adaptive\" }", 3),
    ("{ bubble = \"oblivious\" }", 1),
    ("{ bubble = \"oblivious\", bubble_at = \"here\" }", 2),
    ("{ bubble = \"oblivious\", ties = \"destination\" }", 2),
    ("{ bubble = \"random\" }", 2),
    ("{ bubble = \"random\", bubble_at = \"here\" }", 3),
    ("{ bubble = \"shortest\" }", 2),
    ("{ bubble = \"shortest\", bubble_at = \"here\", room = \"flits\" }", 2),
    ("{ bubble = \"smart\" }", 2),
    ("{ bubble = \"smart\", bubble_at = \"here\" }", 2),
    ("{ dor = \"draw\" }", 2),
];

#[test]
fn lattices_that_are_full_of_worms_drain_by_every_routing() {
    for topology in [
        "shape = \"torus\"\nsize = [7]\n",
        "shape = \"torus\"\nsize = [4, 4]\n",
        "shape = \"torus\"\nsize = [5, 3]\nways = 1\n",
        "shape = \"torus\"\nsize = [4, 2]\ntwist = { y = { x = 2 } }\n",
        "shape = \"midimew\"\nrouters = 13\n",
        "shape = \"spinnaker\"\nsize = [4, 4]\n",
    ] {
        for (routing, vls) in ROUTINGS {
            let credits = if routing.contains("bubble") { 32 } else { 16 };
            // Heads that wait for a lane which another one has.
            let lanes = if routing.contains("flits") { "exclusive" } else { "shared" };
            let keys = format!(
                "routing = {routing}\nvls = {vls}\nmtu = \"1KiB\"\nheaders = \"0B\"\ncredits = {credits}\nlane_allocation = \"{lanes}\"\n"
            );
            let mut fabric = credit(&format!("{keys}[topology]\n{topology}"), &[]);
            let hosts = netsim::network::Simulation::hosts(&fabric);
            let mut sent = 0;
            for host in 0..hosts {
                for step in 1..hosts {
                    let to = (host + step * (hosts / 2)) % hosts;
                    if to != host {
                        fabric.send(
                            SimTime::ZERO,
                            &with_token(message(host, to, 4_096, 0), (host * hosts + step).into()),
                        );
                        sent += 4;
                    }
                }
            }
            assert_eq!(packets(&mut fabric).len(), sent, "{routing} {topology}");
        }
    }
}

#[test]
fn it_carries_what_dimension_order_cannot() {
    // Transpose on a mesh: every way by dimension order turns at the diagonal, where all ways of a row meet.
    let drained_at = |routing: &str, vls: u8| {
        let text = format!(
            "vls = {vls}\n{}[topology]\nshape = \"mesh\"\nsize = [8, 8]\n",
            WORMS.replace("minimal-adaptive", routing).replace("credits = 16", "credits = 64")
        );
        let mut fabric = credit(&text, &[]);
        for host in 0..64 {
            let to = host % 8 * 8 + host / 8;
            if to != host {
                fabric.send(SimTime::ZERO, &message(host, to, 64 << 10, 0));
            }
        }
        packets(&mut fabric).iter().map(|packet| packet.arrived.0).max().unwrap()
    };
    let (adaptive, dimension_order) = (drained_at("minimal-adaptive", 2), drained_at("dor", 2));
    assert!(adaptive * 10 < dimension_order * 8, "{adaptive} {dimension_order}");
}
