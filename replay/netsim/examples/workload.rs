//! A workload of one's own: a ring all-reduce, which sends the next part only when the one before has come:
//! `cargo run --release -p netsim --example workload`.

use std::io::{Write as _, stdout};

use netsim::engine::{self, End, Workload};
use netsim::fabric::{self, FabricConfig};
use netsim::network::{Delivery, FlowId, HostIndex, Network, Token};
use netsim::time::SimTime;
use netsim::topology::HostPlace;

const HOSTS: u32 = 8;
const BYTES: u64 = 8 << 20;

/// Each host sends a part of `BYTES / HOSTS` to its successor, 2 (HOSTS - 1) times, each time what it got before.
struct AllReduce {
    flows: Vec<FlowId>,
    begun: bool,
    steps: Vec<u32>,
}

impl AllReduce {
    fn new(network: &mut impl Network) -> Self {
        let flow = |host: u32| network.open_flow(HostIndex(host), HostIndex((host + 1) % HOSTS));
        Self { flows: (0..HOSTS).map(flow).collect(), begun: false, steps: vec![0; HOSTS as usize] }
    }

    fn send(&self, now: SimTime, host: u32, network: &mut impl Network) {
        network.send(now, self.flows[host as usize], BYTES / u64::from(HOSTS), Token(host.into()));
    }
}

impl<N: Network> Workload<N> for AllReduce {
    fn next_tick(&self, _: &N) -> Option<SimTime> {
        (!self.begun).then_some(SimTime::ZERO)
    }

    fn tick(&mut self, now: SimTime, network: &mut N) {
        self.begun = true;
        (0..HOSTS).for_each(|host| self.send(now, host, network));
    }

    fn delivered(&mut self, delivery: &Delivery, network: &mut N) {
        // The token is the sender; its successor has the part now and sends it on.
        let host = (u32::try_from(delivery.token.0).unwrap_or(0) + 1) % HOSTS;
        let steps = &mut self.steps[host as usize];
        *steps += 1;
        if *steps < 2 * (HOSTS - 1) {
            self.send(delivery.at, host, network);
        }
    }

    fn is_done(&self) -> bool {
        self.steps.iter().all(|steps| *steps == 2 * (HOSTS - 1))
    }
}

/// Runs it over three fabrics.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = |host: u32| HostPlace { name: format!("h{host}"), rack: format!("r{}", host / 4) };
    let hosts: Vec<HostPlace> = (0..HOSTS).map(place).collect();
    for fabric in [
        "kind = \"ideal\"\nrate = \"10Gbps\"",
        "kind = \"credit\"\ntopology = { shape = \"racks\", host_link = { rate = \"10Gbps\" }, uplink = { rate = \"10Gbps\" } }",
        "kind = \"ethernet\"",
    ] {
        let config: FabricConfig = fabric.parse()?;
        let mut network = fabric::build(&config, &hosts)?;
        let mut workload = AllReduce::new(&mut network);
        let End::Done(end) = engine::run(&mut network, &mut workload, SimTime::LATEST) else {
            return Err("it never ended".into());
        };
        // No network can be faster than its links: 14 parts, one after the other.
        let least_ps = 14 * BYTES / u64::from(HOSTS) * 8 * 100;
        assert!(end.0 >= least_ps);
        writeln!(stdout(), "{:<9} {end}, at least {}", config.kind(), SimTime(least_ps))?;
    }
    Ok(())
}
