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
