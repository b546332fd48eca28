//! A probe of one's own: it sees every packet of a run, and costs only what it does with it:
//! `cargo run --release -p netsim --example probe`.

use std::collections::BTreeMap;
use std::io::{Write as _, stdout};

use netsim::fabric::FabricKind;
use netsim::fabric::credit::CreditConfig;
use netsim::fabric::packet::{Message, Observer, PacketFabric, PacketRecord, ServiceLevel};
use netsim::network::{HostIndex, Simulation, Token};
use netsim::time::SimTime;

/// For each number of switches on the way: packets, and the sum of their latencies in picoseconds.
#[derive(Default)]
struct LatencyByDistance(BTreeMap<u32, (u64, u64)>);

impl Observer for LatencyByDistance {
    fn delivered(&mut self, packet: &PacketRecord) {
        let (packets, latency) = self.0.entry(packet.switches).or_default();
        *packets += 1;
        *latency += packet.arrived.since_ps(packet.left);
    }
}

const FABRIC: &str = "
routing = \"minimal-adaptive\"
vls = 3
switch_delay = \"100ns\"
[topology]
shape = \"torus\"
size = [4, 4]
";

/// Every host sends a packet to every other one, with a pause between them, so that none is in another's way.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config: CreditConfig = FABRIC.parse()?;
    let mut fabric = config.packets(&[], LatencyByDistance::default())?;
    let (hosts, mut now) = (fabric.hosts(), SimTime::ZERO);
    for (source, destination) in (0..hosts * hosts).map(|pair| (HostIndex(pair / hosts), HostIndex(pair % hosts))) {
        if source != destination {
            fabric.run_before(now);
            let (level, flow, token) = (ServiceLevel(0), 0, Token(now.0));
            fabric.send(now, &Message { source, destination, bytes: 1_024, level, flow, token });
            now = now.plus_ps(10_000_000);
        }
    }
    fabric.run_before(SimTime::LATEST);
    let LatencyByDistance(rows) = &*fabric.observer();
    // Distances in a 4 x 4 torus: 4, 6, 4 and 1 routers are 1 to 4 steps away, and the first router is passed, too.
    let packets: Vec<u64> = rows.values().map(|(packets, _)| *packets).collect();
    assert_eq!(packets, [16 * 4, 16 * 6, 16 * 4, 16]);
    for (switches, (packets, latency)) in rows {
        writeln!(stdout(), "{switches} switches: {packets:>3} packets, {:>5} ns", latency / packets / 1_000)?;
    }
    Ok(())
}
