//! What the tests of fabrics share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

use replay::fabric::{self, Fabric, FabricConfig, HostPlace};
use replay::network::{Delivery, Network, SimTime};

/// `racks` racks of `hosts` hosts each: w0, w1, ... in rack0, rack1, ...
pub fn lab(racks: usize, hosts: usize) -> Vec<HostPlace> {
    (0..racks * hosts).map(|i| HostPlace { name: format!("w{i}"), rack: format!("rack{}", i / hosts) }).collect()
}

/// The lab's network: wires of `links` to the hosts and `uplink` between the racks.
pub fn config(links: &str, uplink: &str) -> String {
    format!(
        r#"
        kind = "ethernet"
        topology = {{ shape = "racks", host_link = {{ rate = "{links}" }}, uplink = {{ rate = "{uplink}" }} }}
        "#
    )
}

/// The fabric that `text` configures.
pub fn fabric(text: &str, hosts: &[HostPlace]) -> Fabric {
    let config: FabricConfig = toml::from_str(text).unwrap();
    fabric::build(&config, hosts).unwrap()
}

/// Advances until nothing is under way any more.
pub fn run_all(network: &mut impl Network) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    while network.next_event().is_some() {
        network.advance(SimTime::MAX, &mut deliveries);
    }
    deliveries
}
