//! Random small networks of routers that route one packet at a time.

use super::Case;
use super::input_queued::{link, topology};
use super::networks::{drafts, sendings};
use netsim::fabric::spinnaker::SpinnakerRouterConfig;
use netsim::routing::RoutingConfig;
use netsim::topology::{HostPlace, SpinnakerConfig, TopologyConfig};
use netsim::units::Bytes;
use proptest::prelude::*;
use proptest::sample::select;

/// Hosts that send, at most.
const MAX_HOSTS: usize = 9;

/// Networks on which packets, queues and waits differ.
pub fn spinnaker_networks() -> impl Strategy<Value = Case<SpinnakerRouterConfig>> {
    let triangles = link().prop_map(|link| {
        let torus = SpinnakerConfig { size: vec![3, 3], host_link: link, link, ..SpinnakerConfig::default() };
        (TopologyConfig::Spinnaker(torus), RoutingConfig::Shortest)
    });
    let base = prop_oneof![2 => link().prop_flat_map(topology), 1 => triangles];
    let sizes = (1..9u32, prop_oneof![2 => Just(64u64), 1 => 1..100u64], 1..4u32);
    let router = (1..4u32, prop_oneof![1 => Just(0u32), 2 => 1..40u32], 0..3u32, any::<u64>());
    (base, sizes, router, drafts(50), select(vec![0u64, 3])).prop_map(|(base, sizes, router, drafts, headers)| {
        let ((topology, routing), (flits, flit, buffer)) = (base, sizes);
        let (routing_cycles, wait, link_cycles, seed) = router;
        // Classes and credits mean nothing here.
        let routing = match &topology {
            TopologyConfig::Torus(_) | TopologyConfig::Mesh(_) => RoutingConfig::Dor,
            _ if routing == RoutingConfig::Adaptive => RoutingConfig::Random,
            _ => routing,
        };
        let headers = headers.min(u64::from(flits) * flit - 1);
        let mtu = u64::from(flits) * flit - headers;
        let config = SpinnakerRouterConfig {
            topology: topology.clone(),
            routing,
            seed,
            mtu: Bytes(mtu),
            headers: Bytes(headers),
            flit: Bytes(flit),
            buffer,
            routing_cycles,
            wait,
            link_cycles,
            ..SpinnakerRouterConfig::default()
        };
        let idle = topology.build(&[]).unwrap().hosts() as usize;
        let hosts: Vec<_> = (0..idle.min(MAX_HOSTS))
            .map(|host| HostPlace { name: format!("w{host}"), rack: "rack0".to_owned() })
            .collect();
        let traffic = sendings(&drafts, hosts.len(), mtu, headers, flit);
        Case { config, hosts, traffic }
    })
}
