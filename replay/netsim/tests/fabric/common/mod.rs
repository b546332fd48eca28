//! What the tests of fabrics share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

use netsim::fabric::credit::Credit;
use netsim::fabric::packet::{Message, PacketFabric, PacketRecord, ServiceLevel};
use netsim::fabric::store_and_forward::StoreAndForward;
use netsim::fabric::{self, Fabric, FabricConfig};
use netsim::network::{Delivery, HostIndex, Network, Token};
use netsim::time::SimTime;
use netsim::topology::HostPlace;

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
    let config: FabricConfig = text.parse().unwrap();
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

/// The `credit` fabric whose keys are `text`, which keeps every packet's record.
pub fn credit(text: &str, hosts: &[HostPlace]) -> Credit<Vec<PacketRecord>> {
    Credit::new(&text.parse().unwrap(), hosts, Vec::new()).unwrap()
}

/// The `store-and-forward` fabric whose keys are `text`, which keeps every packet's record.
pub fn store_and_forward(text: &str, hosts: &[HostPlace]) -> StoreAndForward<Vec<PacketRecord>> {
    StoreAndForward::new(&text.parse().unwrap(), hosts, Vec::new()).unwrap()
}

/// A message of `bytes` on service level `level`; its flow is its pair of hosts.
pub fn message(source: u32, destination: u32, bytes: u64, level: u8) -> Message {
    Message {
        source: HostIndex(source),
        destination: HostIndex(destination),
        bytes,
        level: ServiceLevel(level),
        flow: u64::from(source) << 32 | u64::from(destination),
        token: Token(0),
    }
}

/// Runs until nothing is under way any more: the packets, in the order in which they left, then of their sources.
pub fn packets(fabric: &mut impl PacketFabric<Vec<PacketRecord>>) -> Vec<PacketRecord> {
    fabric.run_before(SimTime::MAX);
    assert_eq!(fabric.next_event(), None);
    let mut packets = std::mem::take(fabric.observer());
    packets.sort_by_key(|packet| (packet.left, packet.source, packet.number));
    packets
}

/// `message` with another token.
pub fn with_token(message: Message, token: u64) -> Message {
    Message { token: Token(token), ..message }
}
