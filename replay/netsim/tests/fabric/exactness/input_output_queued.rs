//! Random small networks of input-output-queued routers.

use super::Case;
use super::input_queued::{allocator, link, topology};
use super::networks::{drafts, sendings};
use netsim::fabric::input_output_queued::{InputOutputQueuedConfig, Requests, RouterLatencies};
use netsim::routing::RoutingConfig;
use netsim::topology::{HostPlace, TopologyConfig};
use netsim::units::Bytes;
use proptest::prelude::*;
use proptest::sample::select;

/// Hosts that send, at most.
const MAX_HOSTS: usize = 9;

/// Networks on which packets, queues, requests and allocators differ.
pub fn input_output_queued_networks() -> impl Strategy<Value = Case<InputOutputQueuedConfig>> {
    networks_of((1..9u32).boxed())
}

/// Networks whose packets have one flit and ask for one VC, in a drawn order.
pub fn one_flit_networks() -> impl Strategy<Value = Case<InputOutputQueuedConfig>> {
    networks_of(Just(1).boxed()).prop_map(|mut case| {
        (case.config.requests, case.config.allocator, case.config.latency.crossbar) = (Requests::One, None, 0);
        case
    })
}

fn networks_of(flits: BoxedStrategy<u32>) -> impl Strategy<Value = Case<InputOutputQueuedConfig>> {
    let sizes = (flits, prop_oneof![2 => Just(64u64), 1 => 1..100u64], 0..20u32, 0..20u32);
    let base = (link().prop_flat_map(topology), sizes, 1..5u8);
    let latency = (prop_oneof![2 => Just(0u32), 1 => 1..4u32], prop_oneof![2 => Just(0u32), 1 => 1..4u32]);
    let allocator = prop_oneof![2 => Just(None), 1 => allocator().prop_map(Some)];
    let router = (latency, allocator, any::<(bool, bool, bool, bool)>(), any::<u64>());
    (base, router, drafts(50), select(vec![0u64, 3])).prop_map(|(base, router, drafts, headers)| {
        let ((topology, routing), (flits, flit, buffer, output_buffer), vcs) = base;
        let ((crossbar, link), allocator, (all, busy_outputs, first, bubble), seed) = router;
        let grid = matches!(topology, TopologyConfig::Torus(_) | TopologyConfig::Mesh(_));
        let routing = if grid && bubble { RoutingConfig::Bubble } else { routing };
        let classes = grid && routing != RoutingConfig::Bubble;
        let needed = if routing == RoutingConfig::Bubble { 2 * flits } else { flits };
        let headers = headers.min(u64::from(flits) * flit - 1);
        let mtu = u64::from(flits) * flit - headers;
        let config = InputOutputQueuedConfig {
            topology: topology.clone(),
            routing,
            seed,
            mtu: Bytes(mtu),
            headers: Bytes(headers),
            flit: Bytes(flit),
            vcs: if classes { vcs.div_ceil(2) * 2 } else { vcs },
            buffer: buffer.max(needed),
            output_buffer: output_buffer.max(needed),
            latency: RouterLatencies { crossbar, link },
            requests: if all { Requests::All } else { Requests::One },
            allocator,
            busy_outputs,
            transit_priority: first && allocator.is_none(),
            ..InputOutputQueuedConfig::default()
        };
        let idle = topology.build(&[]).unwrap().hosts() as usize;
        let hosts: Vec<_> = (0..idle.min(MAX_HOSTS))
            .map(|host| HostPlace { name: format!("w{host}"), rack: "rack0".to_owned() })
            .collect();
        let traffic = sendings(&drafts, hosts.len(), mtu, headers, flit);
        Case { config, hosts, traffic }
    })
}
