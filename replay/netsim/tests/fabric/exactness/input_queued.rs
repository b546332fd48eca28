//! Random small networks of input-queued routers.

use super::Case;
use super::networks::{drafts, sendings};
use super::topologies::BEAT;
use netsim::fabric::input_queued::{
    Arbiter, FlowControl, InputQueuedConfig, Order, PipelineLatencies, SeparableAllocator,
};
use netsim::routing::RoutingConfig;
use netsim::topology::{
    GridConfig, HostPlace, KaryTreeConfig, LeafSpineConfig, LinkConfig, SingleSwitchConfig, TopologyConfig,
};
use netsim::units::{Bytes, DurationPs, Rate};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Hosts that send, at most.
const MAX_HOSTS: usize = 9;

/// Topologies whose links all are `link`, each with a routing.
pub fn topology(link: LinkConfig) -> impl Strategy<Value = (TopologyConfig, RoutingConfig)> {
    let single = (2..7u32).prop_map(move |nodes| {
        (TopologyConfig::SingleSwitch(SingleSwitchConfig { nodes: Some(nodes), host_link: link }), RoutingConfig::Ecmp)
    });
    let up = [RoutingConfig::Ecmp, RoutingConfig::Random, RoutingConfig::Adaptive, RoutingConfig::SModK];
    let routing = select(up.to_vec());
    let tree = (1..4u32, 1..4u32, 1..4u32, routing.clone()).prop_map(move |(leaves, spines, hosts, routing)| {
        let (leaves, hosts) = if leaves * hosts < 2 { (2, 1) } else { (leaves, hosts) };
        let tree =
            LeafSpineConfig { leaves, spines, hosts, host_link: link, uplink: link, ..LeafSpineConfig::default() };
        (TopologyConfig::LeafSpine(tree), routing)
    });
    let k_ary = routing.prop_map(move |routing| {
        let tree = KaryTreeConfig { k: 2, n: 3, host_link: link, uplink: link, ..KaryTreeConfig::default() };
        (TopologyConfig::KAryNTree(tree), routing)
    });
    let on_rings =
        ["\"dor\"", "{ dally = \"entry\" }", "{ dally = \"trc\" }", "{ dally = \"basic\", ties = \"destination\" }"];
    let grid =
        (any::<bool>(), vec(2..5u32, 1..3), select(on_rings.to_vec())).prop_map(move |(wraps, size, routing)| {
            let grid = GridConfig { size, host_link: link, link, ..GridConfig::default() };
            let routing = InputQueuedConfig::from_routing(routing);
            (if wraps { TopologyConfig::Torus(grid) } else { TopologyConfig::Mesh(grid) }, routing)
        });
    prop_oneof![2 => single, 3 => tree, 1 => k_ary, 4 => grid]
}

trait FromRouting {
    fn from_routing(text: &str) -> RoutingConfig;
}

impl FromRouting for InputQueuedConfig {
    fn from_routing(text: &str) -> RoutingConfig {
        format!("routing = {text}").parse::<Self>().unwrap().routing
    }
}

pub fn link() -> impl Strategy<Value = LinkConfig> {
    let rate = prop_oneof![3 => Just(10_000_000_000u64), 1 => Just(9_999_999_937)];
    let delay = prop_oneof![3 => Just(0), 1 => (1..6u64).prop_map(|beats| beats * BEAT), 1 => 1..300_000u64];
    (rate, delay).prop_map(|(rate, delay)| LinkConfig {
        rate: Rate::from_bps(rate),
        delay: Some(DurationPs(delay)),
        ..LinkConfig::default()
    })
}

pub fn allocator() -> impl Strategy<Value = SeparableAllocator> {
    let order = select(vec![Order::InputFirst, Order::OutputFirst]);
    let arbiter = prop_oneof![3 => Just(Arbiter::RoundRobin), 1 => Just(Arbiter::Random), 1 => Just(Arbiter::Age)];
    (order, 1..4u8, arbiter).prop_map(|(order, iterations, arbiter)| SeparableAllocator { order, iterations, arbiter })
}

fn latencies() -> impl Strategy<Value = PipelineLatencies> {
    let some = (0..3u32, 1..4u32, 1..4u32, 1..3u32, 0..3u32, 0..3u32);
    let some = some.prop_map(|(routing, vc_allocation, switch_allocation, crossbar, credit, link)| PipelineLatencies {
        routing,
        vc_allocation,
        switch_allocation,
        crossbar,
        credit,
        link,
    });
    prop_oneof![1 => Just(PipelineLatencies::default()), 2 => some]
}

/// Networks on which stages, buffers, allocators and speed-ups differ.
pub fn input_queued_networks() -> impl Strategy<Value = Case<InputQueuedConfig>> {
    networks_on(link().prop_flat_map(topology), MAX_HOSTS)
}

/// The same of one switch that has more ports than a word has bits, or more than two words.
pub fn networks_of_many_ports() -> impl Strategy<Value = Case<InputQueuedConfig>> {
    let single = (prop_oneof![4 => 60..129u32, 1 => 129..140u32], link()).prop_map(|(nodes, host_link)| {
        (TopologyConfig::SingleSwitch(SingleSwitchConfig { nodes: Some(nodes), host_link }), RoutingConfig::Ecmp)
    });
    networks_on(single, usize::MAX)
}

/// Those on `topologies`; `max_hosts`: hosts that send, at most.
fn networks_on(
    topologies: impl Strategy<Value = (TopologyConfig, RoutingConfig)>,
    max_hosts: usize,
) -> impl Strategy<Value = Case<InputQueuedConfig>> {
    let sizes = (1..9u32, prop_oneof![2 => Just(64u64), 1 => 1..100u64], 1..20u32);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let speedups = (prop_oneof![2 => Just(1u8), 1 => 2..4u8], prop_oneof![2 => Just(1u8), 1 => 2..4u8]);
    // Where allocators are the plainest, they are made in another way.
    let plain = prop_oneof![2 => Just((false, false)), 1 => any::<(bool, bool)>()];
    let router = (latencies(), allocator(), allocator(), flags, speedups, any::<u64>(), plain);
    let base = (topologies, sizes, prop_oneof![12 => 1..5u8, 1 => Just(16)]);
    (base, router, drafts(50), select(vec![0u64, 3])).prop_map(move |(base, router, drafts, headers)| {
        let ((topology, routing), (flits, flit, buffer), vcs) = base;
        let (mut latency, mut vc_allocator, mut switch_allocator, flags, mut speedups, seed, plain) = router;
        let (cut_through, wait_for_tail_credit, mut speculative, mut hold_switch) = flags;
        if plain.0 || plain.1 {
            speculative = false;
        }
        if plain.0 {
            (vc_allocator, latency.vc_allocation) = (SeparableAllocator::default(), 1);
        }
        if plain.1 {
            (switch_allocator, latency.switch_allocation) = (SeparableAllocator::default(), 1);
            (hold_switch, speedups) = (false, (1, 1));
        }
        let rings = matches!(topology, TopologyConfig::Torus(_)) || !matches!(routing, RoutingConfig::Dor);
        let vcs = if rings && matches!(topology, TopologyConfig::Torus(_) | TopologyConfig::Mesh(_)) {
            vcs.div_ceil(2) * 2
        } else {
            vcs
        };
        if speculative {
            latency.vc_allocation = latency.vc_allocation.min(latency.switch_allocation);
        }
        let headers = headers.min(u64::from(flits) * flit - 1);
        let mtu = u64::from(flits) * flit - headers;
        let config = InputQueuedConfig {
            topology: topology.clone(),
            routing,
            seed,
            mtu: Bytes(mtu),
            headers: Bytes(headers),
            flit: Bytes(flit),
            vcs,
            buffer: if cut_through { buffer.max(flits) } else { buffer },
            flow_control: if cut_through { FlowControl::VirtualCutThrough } else { FlowControl::Wormhole },
            wait_for_tail_credit,
            latency,
            vc_allocator,
            switch_allocator,
            speculative,
            hold_switch,
            input_speedup: speedups.0,
            output_speedup: speedups.1,
            ..InputQueuedConfig::default()
        };
        let idle = topology.build(&[]).unwrap().hosts() as usize;
        let hosts: Vec<_> = (0..idle.min(max_hosts))
            .map(|host| HostPlace { name: format!("w{host}"), rack: "rack0".to_owned() })
            .collect();
        let traffic = sendings(&drafts, hosts.len(), mtu, headers, flit);
        Case { config, hosts, traffic }
    })
}
