//! Random small topologies with hosts and a routing: trees, meshes, tori, and any connected graph.

use netsim::routing::RoutingConfig;
use netsim::topology::{
    FatTreeConfig, FaultsConfig, GraphConfig, GridConfig, HostPlace, Joined, KaryTreeConfig, LeafSpineConfig,
    LinkConfig, MidimewConfig, PortTreeConfig, RacksConfig, SingleSwitchConfig, SpinnakerConfig, ThinTreeConfig,
    TopologyConfig, XgftConfig,
};
use netsim::units::{Buffer, DurationPs, Rate};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// A flit of 64 bytes at 10 Gbit/s: the beat to which times are often set, so that much happens at one instant.
pub const BEAT: u64 = 51_200;

/// Hosts that send, at most.
const MAX_HOSTS: usize = 9;

/// A topology, its hosts, and how packets find their way.
#[derive(Clone, Debug)]
pub struct Network {
    pub topology: TopologyConfig,
    pub hosts: Vec<HostPlace>,
    pub routing: RoutingConfig,
}

fn rate() -> impl Strategy<Value = Rate> {
    let whole = select(vec![10_000_000_000, 20_000_000_000, 40_000_000_000]);
    // 64 bytes are no whole number of picoseconds.
    let broken = select(vec![3_000_000_000, 7_000_000_000, 9_999_999_937, 56_000_000_000, 111_111_111_111]);
    prop_oneof![3 => whole, 2 => broken, 1 => 5_000_000_000..400_000_000_000u64].prop_map(Rate::from_bps)
}

pub fn duration() -> impl Strategy<Value = DurationPs> {
    let beats = (1..8u64).prop_map(|beats| beats * BEAT);
    let long = 1_000_000..30_000_000u64;
    prop_oneof![6 => Just(0), 4 => beats, 2 => 1..3u64, 4 => 1..400_000u64, 1 => long].prop_map(DurationPs)
}

fn link(buffer: BoxedStrategy<Buffer>) -> impl Strategy<Value = LinkConfig> {
    (rate(), duration(), buffer).prop_map(|(rate, delay, buffer)| LinkConfig {
        rate,
        delay: Some(delay),
        buffer,
        ..LinkConfig::default()
    })
}

/// The links of hosts and those between switches. Often all are the same, which makes much happen at one instant.
fn links(buffer: &BoxedStrategy<Buffer>) -> impl Strategy<Value = (LinkConfig, LinkConfig)> + use<> {
    prop_oneof![link(buffer.clone()).prop_map(|link| (link, link)), (link(buffer.clone()), link(buffer.clone())),]
}

/// Links of one rate whose delays are whole cycles of `cycle_ps`.
fn links_in_cycles(rate: Rate, cycle_ps: u64) -> BoxedStrategy<(LinkConfig, LinkConfig)> {
    let cycles = || prop_oneof![2 => Just(0), 3 => 0..4u64, 1 => 0..25u64];
    let link = move |cycles: u64| LinkConfig {
        rate,
        delay: Some(DurationPs(cycles * cycle_ps)),
        buffer: Buffer::Unlimited,
        ..LinkConfig::default()
    };
    (cycles(), cycles()).prop_map(move |(host, other)| (link(host), link(other))).boxed()
}

/// Room for packets in front of a link.
pub fn buffer() -> BoxedStrategy<Buffer> {
    let bytes = (0..4_000u64).prop_map(Buffer::Bytes);
    prop_oneof![Just(Buffer::Unlimited), (0..5u32).prop_map(Buffer::Packets), bytes].boxed()
}

/// `hosts` hosts in `racks` racks, one rack after the other or by turns.
fn places(racks: usize, hosts: usize, by_turns: bool) -> Vec<HostPlace> {
    let racks = racks.min(hosts);
    let rack = |host: usize| if by_turns { host % racks } else { host * racks / hosts };
    (0..hosts).map(|host| HostPlace { name: format!("w{host}"), rack: format!("rack{}", rack(host)) }).collect()
}

/// Hosts for a topology that has its own number of them.
fn on_places(topology: &TopologyConfig, by_turns: bool) -> Vec<HostPlace> {
    let hosts = topology.build(&[]).unwrap().hosts() as usize;
    places(3, hosts.min(MAX_HOSTS), by_turns)
}

/// What the network of one cluster looks like.
fn racks(buffer: &BoxedStrategy<Buffer>) -> impl Strategy<Value = Network> + use<> {
    let tree = (0..3u32, 1..4u32, 1..3u32);
    let routing = select(vec![RoutingConfig::Ecmp, RoutingConfig::DModK, RoutingConfig::EcmpPacket]);
    (links(buffer), 1..4usize, 2..=MAX_HOSTS, any::<bool>(), any::<bool>(), tree, routing).prop_map(
        |((host_link, uplink), racks, hosts, by_turns, core, (shape, cores, factor), routing)| {
            let hosts = places(racks, hosts, by_turns);
            let topology = if shape == 0 {
                let joined = if core { Joined::Core } else { Joined::Auto };
                TopologyConfig::Racks(RacksConfig { host_link, uplink, joined })
            } else {
                TopologyConfig::FatTree(FatTreeConfig { nodes: None, racks: None, cores, factor, host_link, uplink })
            };
            Network { topology, hosts, routing }
        },
    )
}

/// Trees of all kinds, with the routings that lead up and down.
pub fn trees(buffer: &BoxedStrategy<Buffer>) -> impl Strategy<Value = Network> + use<> {
    trees_of(links(buffer).boxed())
}

fn trees_of(links: BoxedStrategy<(LinkConfig, LinkConfig)>) -> impl Strategy<Value = Network> {
    let shape = (0..6u32, 2..4u32, 1..3u32, 1..3u32);
    let routing = select(vec![
        RoutingConfig::Adaptive,
        RoutingConfig::Adaptive,
        RoutingConfig::Adaptive,
        RoutingConfig::Ecmp,
        RoutingConfig::EcmpPacket,
        RoutingConfig::Random,
        RoutingConfig::DModK,
        RoutingConfig::SModK,
        RoutingConfig::Shortest,
        RoutingConfig::UpDown,
    ]);
    (links, shape, any::<bool>(), routing).prop_map(|((host_link, uplink), (shape, k, up, n), by_turns, routing)| {
        let (nodes, uplinks) = (None, Vec::new());
        let topology = match shape {
            0 => TopologyConfig::SingleSwitch(SingleSwitchConfig { nodes: Some(2 * k), host_link }),
            1 => TopologyConfig::KAryNTree(KaryTreeConfig { k, n: n.max(5 - k), nodes, host_link, uplink, uplinks }),
            2 => TopologyConfig::ThinTree(ThinTreeConfig { k, k_up: up, n: 2, nodes, host_link, uplink, uplinks }),
            3 => TopologyConfig::MPortNTree(PortTreeConfig { m: 2 * up, n: 2, nodes, host_link, uplink, uplinks }),
            4 => {
                let cables = if n == 1 { Vec::new() } else { vec![1, 2] };
                let (m, w) = (vec![k, 2], vec![1, up]);
                TopologyConfig::Xgft(XgftConfig { m, w, cables, nodes, host_link, uplink, uplinks })
            }
            _ => {
                let (leaves, spines, hosts, cables) = (k, up, 2, n);
                TopologyConfig::LeafSpine(LeafSpineConfig { leaves, spines, hosts, cables, nodes, host_link, uplink })
            }
        };
        let hosts = on_places(&topology, by_turns);
        Network { topology, hosts, routing }
    })
}

/// Meshes and tori, dimension by dimension, with datelines or bubbles.
pub fn grids(buffer: &BoxedStrategy<Buffer>) -> impl Strategy<Value = Network> + use<> {
    grids_of(links(buffer).boxed())
}

fn grids_of(links: BoxedStrategy<(LinkConfig, LinkConfig)>) -> impl Strategy<Value = Network> {
    let sizes = [&[2][..], &[3], &[4], &[5], &[6], &[3, 2], &[4, 2], &[3, 3], &[3, 4], &[2, 2, 2], &[3, 2, 2]];
    let size = select(sizes.map(<[u32]>::to_vec).to_vec());
    let routing = select(vec![
        RoutingConfig::Dor,
        RoutingConfig::Dor,
        RoutingConfig::Dor,
        RoutingConfig::Bubble,
        RoutingConfig::Bubble,
        RoutingConfig::UpDown,
        RoutingConfig::Ecmp,
    ]);
    (links, size, 1..3u32, proptest::bool::weighted(0.75), any::<bool>(), routing).prop_map(
        |((host_link, link), size, concentration, wraps, by_turns, routing)| {
            let config = GridConfig { size, concentration, host_link, link, ..GridConfig::default() };
            let topology = if wraps { TopologyConfig::Torus(config) } else { TopologyConfig::Mesh(config) };
            let hosts = on_places(&topology, by_turns);
            Network { topology, hosts, routing }
        },
    )
}

/// Lattices of all kinds, some one way, some with faults; the routing has to be chosen.
pub fn lattices(buffer: &BoxedStrategy<Buffer>) -> impl Strategy<Value = Network> + use<> {
    let kind = (0..4u32, 0..4u32, 1..3u8, prop_oneof![3 => Just(0u32), 1 => 1..3u32], 0..50u64);
    (links(buffer), kind, 1..3u32, any::<bool>()).prop_map(
        |((host_link, link), (kind, turn, ways, faults, fault_seed), concentration, by_turns)| {
            let faults = FaultsConfig::Number(faults);
            let grid = |size: &[u32], twist: u32| {
                let mut config =
                    GridConfig { size: size.to_vec(), concentration, host_link, link, ..GridConfig::default() };
                if twist > 0 {
                    config.twist.entry("y".to_owned()).or_default().insert("x".to_owned(), twist);
                }
                (config.ways, config.faults, config.fault_seed) = (ways, faults.clone(), fault_seed);
                TopologyConfig::Torus(config)
            };
            let topology = |faults: FaultsConfig| match kind {
                0 => grid(&[4, 2], turn),
                1 => grid([&[6][..], &[4, 3], &[3, 3], &[4, 2, 2]][turn as usize], 0),
                2 => TopologyConfig::Midimew(MidimewConfig {
                    routers: 5 + turn,
                    concentration,
                    host_link,
                    link,
                    ways,
                    faults,
                    fault_seed,
                    ..MidimewConfig::default()
                }),
                _ => TopologyConfig::Spinnaker(SpinnakerConfig {
                    size: vec![3, 3 + turn % 2],
                    concentration,
                    host_link,
                    link,
                    ways,
                    faults,
                    fault_seed,
                    ..SpinnakerConfig::default()
                }),
            };
            let topology = topology(faults.clone());
            let topology = match topology.build(&[]) {
                Ok(_) => topology,
                // It falls apart.
                Err(_) => without_faults(topology),
            };
            let hosts = on_places(&topology, by_turns);
            Network { topology, hosts, routing: RoutingConfig::UpDown }
        },
    )
}

/// The same network with all its cables.
pub fn without_faults(mut topology: TopologyConfig) -> TopologyConfig {
    match &mut topology {
        TopologyConfig::Torus(config) => config.faults = FaultsConfig::default(),
        TopologyConfig::Midimew(config) => config.faults = FaultsConfig::default(),
        TopologyConfig::Spinnaker(config) => config.faults = FaultsConfig::default(),
        _ => {}
    }
    topology
}

/// Any connected graph of few switches, whose cables are of up to three kinds.
fn graphs(buffer: &BoxedStrategy<Buffer>) -> impl Strategy<Value = Network> + use<> {
    let kinds = vec(link(buffer.clone()), 1..4);
    let switches = vec((any::<u32>(), 1..3u32, any::<u32>()), 1..6);
    let chords = vec((any::<u32>(), any::<u32>(), any::<u32>()), 0..4);
    let hosts = vec((any::<u32>(), any::<u32>()), 2..=MAX_HOSTS);
    let routing = select(vec![
        RoutingConfig::Adaptive,
        RoutingConfig::Adaptive,
        RoutingConfig::Ecmp,
        RoutingConfig::EcmpPacket,
        RoutingConfig::Shortest,
        RoutingConfig::UpDown,
    ]);
    (kinds, switches, chords, hosts, routing).prop_map(|(kinds, switches, chords, hosts, routing)| {
        let text = edges(&kinds, &switches, &chords, &hosts);
        let topology = TopologyConfig::Graph(GraphConfig { file: kept(&text), ..GraphConfig::default() });
        Network { topology, hosts: places(1, hosts.len(), false), routing }
    })
}

/// The file of a graph: every switch hangs on one before it, by one or two cables; chords; every host at some switch.
fn edges(
    kinds: &[LinkConfig],
    switches: &[(u32, u32, u32)],
    chords: &[(u32, u32, u32)],
    hosts: &[(u32, u32)],
) -> String {
    let count = u32::try_from(switches.len()).unwrap();
    let mut text = String::new();
    for (number, kind) in kinds.iter().enumerate() {
        let delay = kind.delay.unwrap();
        let _ = writeln!(text, "class: kind{number} rate={} delay={delay} buffer=\"{}\"", kind.rate, kind.buffer);
    }
    let kind = |number: u32| number as usize % kinds.len();
    // Hosts in another order than that of their names.
    let names: Vec<String> = (0..hosts.len()).rev().map(|host| format!("w{host}")).collect();
    let _ = writeln!(text, "host: {}", names.join(" "));
    for (host, (switch, class)) in hosts.iter().enumerate() {
        let _ = writeln!(text, "w{host} s{} kind{}", switch % count, kind(*class));
    }
    for (number, (before, cables, class)) in (0..count).zip(switches) {
        if number > 0 {
            let _ = writeln!(text, "s{} s{number} kind{} x{cables}", before % number, kind(*class));
        }
    }
    for (a, b, class) in chords {
        if a % count != b % count {
            let _ = writeln!(text, "s{} s{} kind{}", a % count, b % count, kind(*class));
        }
    }
    text
}

/// The file that holds `text`, among those of the build.
fn kept(text: &str) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("exactness");
    let file = folder.join(format!("{:016x}.edges", hasher.finish()));
    if !file.exists() {
        std::fs::create_dir_all(&folder).unwrap();
        // Other tests may be looking for the same one.
        let own = folder.join(format!("{:016x}.{}", hasher.finish(), std::process::id()));
        std::fs::write(&own, text).unwrap();
        std::fs::rename(&own, &file).unwrap();
    }
    file
}

/// A network of any kind, with `buffer` in front of its links.
pub fn network(buffer: &BoxedStrategy<Buffer>) -> impl Strategy<Value = Network> + use<> {
    prop_oneof![3 => racks(buffer), 3 => trees(buffer), 3 => grids(buffer), 3 => graphs(buffer)]
}

/// A tree or a grid whose links have one rate and delays of whole cycles.
pub fn network_in_cycles(rate: Rate, cycle_ps: u64) -> impl Strategy<Value = Network> {
    let links = links_in_cycles(rate, cycle_ps);
    prop_oneof![3 => trees_of(links.clone()), 1 => grids_of(links)]
}
