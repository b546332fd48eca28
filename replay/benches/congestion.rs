//! How fast congestion is counted: link visits a second of `bisect_fb_sym` with D-mod-k, one thread, on 3,456 hosts (XGFT) and of
//! `rand` with dimension order on a torus of 1,024 hosts, whose paths are walked switch by switch.
//!
//!     cargo bench -p replay --bench congestion

use congestion::{Experiment, Joined, Paths, Pattern, Sends, Subset};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use netsim::routing::{Routes, RoutingConfig};
use netsim::topology::TopologyConfig;
use std::hint::black_box;

const RUNS: u64 = 20;

fn measure(criterion: &mut Criterion, name: &str, keys: &str, routing: &RoutingConfig, pattern: Pattern) {
    let config = toml::from_str::<TopologyConfig>(keys).unwrap_or_else(|error| unreachable!("{error}"));
    let topology = config.build(&[]).unwrap_or_else(|error| unreachable!("{error}"));
    let routes = Routes::new(routing, &topology, 1).unwrap_or_else(|error| unreachable!("{error}"));
    let paths = Paths::new(&topology, &routes).unwrap_or_else(|error| unreachable!("{error}"));
    let experiment = Experiment {
        pattern: Joined { first: pattern, against: None },
        hosts: None,
        subset: Subset::default(),
        shuffled: true,
        level: None,
        runs: RUNS,
        seed: 1,
        sends: Sends::Free,
        threads: 1,
    };
    let run = || experiment.run(&paths, || {}).unwrap_or_else(|error| unreachable!("{error}"));
    let mut group = criterion.benchmark_group("congestion");
    group.sample_size(10).throughput(Throughput::Elements(run().visits));
    group.bench_function(name, |bencher| bencher.iter(|| black_box(run())));
    group.finish();
}

fn congestion(criterion: &mut Criterion) {
    let tree = "shape = \"xgft\"\nm = [12, 12, 24]\nw = [1, 12, 12]";
    measure(criterion, "bisect_fb_sym, tree of 3,456", tree, &RoutingConfig::DModK, Pattern::BisectBoth);
    let torus = "shape = \"torus\"\nsize = [32, 32]";
    measure(criterion, "rand, torus of 1,024", torus, &RoutingConfig::Dor, Pattern::Rand);
}

criterion_group!(benches, congestion);
criterion_main!(benches);
