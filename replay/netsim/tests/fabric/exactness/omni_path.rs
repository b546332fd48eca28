//! Random small networks of Omni-Path's switches.

use super::Case;
use super::networks::{drafts, sendings};
use super::topologies::BEAT;
use netsim::fabric::omni_path::{CentralChoice, FlitBuffers, OmniPath, OmniPathConfig, Retry, StageLatencies};
use netsim::routing::RoutingConfig;
use netsim::topology::{GridConfig, HostPlace, LeafSpineConfig, LinkConfig, SingleSwitchConfig, TopologyConfig};
use netsim::units::{Bytes, DurationPs, Rate};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Hosts that send, at most.
const MAX_HOSTS: usize = 9;

/// Topologies whose links all are `link`, each with a routing.
fn topology(link: LinkConfig) -> impl Strategy<Value = (TopologyConfig, RoutingConfig)> {
    let single = (2..9u32).prop_map(move |nodes| {
        (TopologyConfig::SingleSwitch(SingleSwitchConfig { nodes: Some(nodes), host_link: link }), RoutingConfig::Ecmp)
    });
    let routing = select(vec![RoutingConfig::Ecmp, RoutingConfig::DModK, RoutingConfig::EcmpPacket]);
    let tree = (1..4u32, 1..3u32, 1..4u32, routing).prop_map(move |(leaves, spines, hosts, routing)| {
        let (leaves, hosts) = if leaves * hosts < 2 { (2, 1) } else { (leaves, hosts) };
        let tree =
            LeafSpineConfig { leaves, spines, hosts, host_link: link, uplink: link, ..LeafSpineConfig::default() };
        (TopologyConfig::LeafSpine(tree), routing)
    });
    let grid = (any::<bool>(), vec(2..4u32, 1..3)).prop_map(move |(wraps, size)| {
        let grid = GridConfig { size, host_link: link, link, ..GridConfig::default() };
        (if wraps { TopologyConfig::Torus(grid) } else { TopologyConfig::Mesh(grid) }, RoutingConfig::Dor)
    });
    prop_oneof![3 => single, 3 => tree, 2 => grid]
}

fn link() -> impl Strategy<Value = LinkConfig> {
    let rate =
        prop_oneof![3 => Just(10_000_000_000u64), 1 => Just(9_999_999_937), 1 => 5_000_000_000..400_000_000_000u64];
    let delay = prop_oneof![3 => Just(0), 1 => (1..6u64).prop_map(|beats| beats * BEAT), 1 => 1..300_000u64];
    (rate, delay).prop_map(|(rate, delay)| LinkConfig {
        rate: Rate::from_bps(rate),
        delay: Some(DurationPs(delay)),
        ..LinkConfig::default()
    })
}

/// Buffers for `vls` VLs and packets of so many flits, credits of `unit` flits.
fn buffers(vls: u8, flits: u32, unit: u32) -> impl Strategy<Value = FlitBuffers> {
    let packet = flits.div_ceil(unit);
    (0..2u32, 0..4 * packet + 2, 0..4 * packet + 2).prop_map(move |(own, shared, more)| {
        let exclusive = packet + own;
        let size = exclusive * u32::from(vls) + shared;
        FlitBuffers { size: size * unit, exclusive: exclusive * unit, max: (exclusive + more) * unit }
    })
}

fn latencies() -> impl Strategy<Value = StageLatencies> {
    let few = (0..6u32, 0..6u32, 1..6u32, 0..3u32, 0..6u32, 1..4u32);
    let few = few.prop_map(|(input, routing, allocation, crossbar, output, link)| StageLatencies {
        input,
        routing,
        allocation,
        crossbar,
        output,
        link,
    });
    prop_oneof![1 => Just(StageLatencies::default()), 4 => few]
}

/// Networks on which the router's stages, buffers and arbiters differ.
pub fn omni_path_networks() -> impl Strategy<Value = Case<OmniPathConfig>> {
    let sizes = (prop_oneof![3 => 1..20u32, 1 => 20..60u32], prop_oneof![2 => Just(64u64), 1 => 1..100u64]);
    let choice = select(vec![CentralChoice::Output, CentralChoice::Input, CentralChoice::Drawn, CentralChoice::Free]);
    let retry = select(vec![Retry::Allocation, Retry::Cycle]);
    let router = (1..5u32, 0..4u32, 1..6u32, 1..6u32, choice, retry, any::<u64>(), latencies());
    let base = (link().prop_flat_map(topology), sizes, prop_oneof![2 => Just(1u8), 3 => 2..6u8], 1..5u32);
    (base, router, drafts(60)).prop_flat_map(|(base, router, drafts)| {
        let ((topology, routing), (flits, flit), vls, unit) = base;
        let (group, links, group_speedup, central_speedup, central_choice, retry, seed, latency) = router;
        let vls = if matches!(topology, TopologyConfig::Torus(_)) { vls.max(2) } else { vls };
        let central = proptest::option::of(buffers(vls, flits, unit));
        let lengths = (buffers(vls, flits, unit), central, select(vec![0u64, 3]), 0..flit);
        (lengths, Just(drafts)).prop_map(move |((buffers, central_buffers, headers, less), drafts)| {
            let mtu = (u64::from(flits) * flit).saturating_sub(headers + less).max(1);
            let headers = headers.min(u64::from(flits) * flit - mtu);
            let mut config = OmniPathConfig {
                topology: topology.clone(),
                routing: routing.clone(),
                seed,
                mtu: Bytes(mtu),
                headers: Bytes(headers),
                flit: Bytes(flit),
                vls,
                ports: 12,
                group,
                central_links: 1 + links % group,
                group_speedup,
                central_speedup,
                latency,
                buffers,
                central_buffers,
                flits_per_credit: unit,
                central_choice,
                retry,
                ..OmniPathConfig::default()
            };
            let idle = topology.build(&[]).unwrap().hosts() as usize;
            let hosts: Vec<_> = (0..idle.min(MAX_HOSTS))
                .map(|host| HostPlace { name: format!("w{host}"), rack: "rack0".to_owned() })
                .collect();
            if OmniPath::new(&config, &hosts, ()).is_err() {
                // Ports of a group that lead up and down may wait for each other.
                (config.group, config.central_links) = (1, 1);
            }
            let traffic = sendings(&drafts, hosts.len(), mtu, headers, flit);
            Case { config, hosts, traffic }
        })
    })
}
