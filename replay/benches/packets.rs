//! How fast the packet fabrics run: packet-hops (packets x switches) a second of `credit` and `store-and-forward` under
//! uniform traffic of 8-flit packets at load 0.5, with 4 virtual lanes, on a 4-ary 3-tree (64 hosts) and an 8-ary 3-tree
//! (512 hosts). A cycle is a flit's time. What makes the traffic is not measured.
//!
//!     cargo bench -p replay --bench packets

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use netsim::fabric::credit::Credit;
use netsim::fabric::packet::{Message, Observer, PacketFabric, PacketRecord, ServiceLevel};
use netsim::fabric::store_and_forward::StoreAndForward;
use netsim::kernel::random::{below, draw};
use netsim::network::{HostIndex, Token};
use netsim::time::SimTime;
use std::hint::black_box;

/// A flit of 64 B at 512 Gbit/s.
const CYCLE_PS: u64 = 1_000;
const FLITS: u64 = 8;

#[derive(Clone, Copy, Default)]
struct Hops {
    packets: u64,
    hops: u64,
}

impl Observer for Hops {
    fn delivered(&mut self, packet: &PacketRecord) {
        self.packets += 1;
        self.hops += u64::from(packet.switches);
    }
}

/// Bernoulli arrivals of packets at load 0.5 for `cycles` cycles, in order of their times.
fn traffic(hosts: u32, cycles: u64) -> Vec<(SimTime, Message)> {
    let mut messages = Vec::new();
    for cycle in 0..cycles {
        for host in 0..hosts {
            let bits = draw(1, host.into(), cycle);
            // Half a flit a cycle are a packet every 16 cycles.
            if !bits.is_multiple_of(2 * FLITS) {
                continue;
            }
            let step = u32::try_from(below(draw(2, host.into(), cycle), u64::from(hosts) - 1)).unwrap_or(0);
            let token = messages.len() as u64;
            let message = Message {
                source: HostIndex(host),
                destination: HostIndex((host + 1 + step) % hosts),
                bytes: FLITS * 64,
                level: ServiceLevel((token % 4) as u8),
                flow: token,
                token: Token(token),
            };
            messages.push((SimTime(cycle * CYCLE_PS), message));
        }
    }
    messages
}

fn keys(k: u32) -> String {
    let link = "{ rate = \"512Gbps\", delay = \"1ns\", buffer = \"unlimited\" }";
    format!(
        "topology = {{ shape = \"k-ary-n-tree\", k = {k}, n = 3, host_link = {link}, uplink = {link} }}\nrouting = \"random\"\nmtu = \"512B\"\nheaders = \"0B\"\nswitch_delay = \"0ns\"\n"
    )
}

fn credit(k: u32) -> Credit<Hops> {
    let config = toml::from_str(&format!("{}vls = 4\ncredits = 16", keys(k))).unwrap_or_default();
    Credit::new(&config, &[], Hops::default()).unwrap_or_else(|error| unreachable!("{error}"))
}

fn store_and_forward(k: u32) -> StoreAndForward<Hops> {
    let config = toml::from_str(&keys(k)).unwrap_or_default();
    StoreAndForward::new(&config, &[], Hops::default()).unwrap_or_else(|error| unreachable!("{error}"))
}

fn run<F: PacketFabric<Hops>>(mut fabric: F, messages: &[(SimTime, Message)]) -> F {
    for (at, message) in messages {
        fabric.run_before(*at);
        fabric.send(*at, message);
    }
    fabric.run_before(SimTime::MAX);
    fabric
}

fn measure<F: PacketFabric<Hops>>(
    criterion: &mut Criterion,
    name: &str,
    messages: &[(SimTime, Message)],
    make: impl Fn() -> F,
) {
    let mut done = run(make(), messages);
    let Hops { packets, hops } = *done.observer();
    let events = done.events();
    println!("{name}: {packets} packets, {hops} packet-hops, {:.2} events each", events as f64 / hops as f64);
    let mut group = criterion.benchmark_group("packets");
    group.sample_size(10).throughput(Throughput::Elements(hops));
    group.bench_function(name, |bencher| {
        bencher.iter_batched(&make, |fabric| black_box(run(fabric, messages)), BatchSize::PerIteration);
    });
    group.finish();
}

fn packets(criterion: &mut Criterion) {
    for (k, hosts, cycles) in [(4, 64, 20_000), (8, 512, 4_000)] {
        let messages = traffic(hosts, cycles);
        measure(criterion, &format!("credit, {k}-ary 3-tree"), &messages, || credit(k));
        measure(criterion, &format!("store-and-forward, {k}-ary 3-tree"), &messages, || store_and_forward(k));
    }
}

criterion_group!(benches, packets);
criterion_main!(benches);
