//! How fast fabrics run: packet-hops a second of an Ethernet fat-tree and of a LIGHTNESS network under a shuffle.
//!
//!     cargo bench -p replay --bench fabric

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use netsim::fabric::{Fabric, FabricConfig, build};
use netsim::network::{HostIndex, Network, Simulation, Token};
use netsim::time::SimTime;
use netsim::topology::HostPlace;
use std::hint::black_box;

const HOSTS: u32 = 128;
const RACKS: u32 = 8;

fn fabric(text: &str) -> Fabric {
    let hosts: Vec<HostPlace> = (0..HOSTS)
        .map(|host| HostPlace { name: format!("h{host}"), rack: format!("r{}", host * RACKS / HOSTS) })
        .collect();
    let config: FabricConfig = toml::from_str(text).unwrap_or_default();
    build(&config, &hosts).unwrap_or_else(|error| unreachable!("{error}"))
}

/// Every host sends `bytes` to eight others.
fn shuffle(network: &mut Fabric, bytes: u64) {
    for source in 0..HOSTS {
        for step in 1..9 {
            let destination = (source + step * 13) % HOSTS;
            let (flow, _) = network.open_connection(HostIndex(source), HostIndex(destination));
            network.send(SimTime::ZERO, flow, bytes, Token(u64::from(source * 16 + step)));
        }
    }
}

fn run(mut network: Fabric) -> Fabric {
    let mut deliveries = Vec::new();
    while network.next_event().is_some() {
        deliveries.clear();
        network.advance(SimTime::MAX, &mut deliveries);
    }
    network
}

fn packet_hops(network: &Fabric) -> u64 {
    network.figures().links.iter().map(|link| link.packets).sum()
}

fn fabrics(criterion: &mut Criterion) {
    let cases = [
        (
            "ethernet fat-tree",
            "kind = \"ethernet\"\n[topology]\nshape = \"fat-tree\"\ncores = 8\nhost_link = { rate = \"10Gbps\", length = \"20m\" }\nuplink = { rate = \"40Gbps\", length = \"50m\" }\n",
        ),
        ("lightness OPS", "kind = \"lightness\"\nphotonic_packet_max = \"1500B\"\nwavelengths = 16\n"),
    ];
    let mut group = criterion.benchmark_group("fabric");
    group.sample_size(10);
    for (name, text) in cases {
        let prepared = || {
            let mut network = fabric(text);
            shuffle(&mut network, 1_000_000);
            network
        };
        let done = run(prepared());
        let hops = packet_hops(&done);
        let figures = done.figures();
        println!("{name}: {hops} packet-hops, {} events, {} drops", figures.events, figures.drops);
        group.throughput(Throughput::Elements(hops));
        group.bench_function(name, |bencher| {
            bencher.iter_batched(prepared, |network| black_box(run(network)), BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, fabrics);
criterion_main!(benches);
