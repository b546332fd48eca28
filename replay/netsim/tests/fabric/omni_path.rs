//! `omni-path` beside the paper's figures (OpaSim, DIAB-18-12-1): latencies of a lone packet, throughput with and without contention, what
//! limits it; and what is refused. A cycle is 625 ps.

use crate::common::{lab, message, packets};
use netsim::fabric::FabricConfig;
use netsim::fabric::omni_path::{OmniPath, OmniPathConfig};
use netsim::fabric::packet::{PacketFabric, PacketRecord};
use netsim::statistics::RunFigures;
use netsim::time::SimTime;
use netsim::traffic::{self, RunOptions, TrafficConfig};
use std::sync::atomic::AtomicBool;

const CYCLE_PS: u64 = 625;
const ROUTER: &str = "[topology]\nshape = \"single-switch\"\nnodes = 48\nhost_link = { rate = \"102.4Gbps\" }\n";

fn fabric(keys: &str, topology: &str, hosts: usize) -> OmniPath<Vec<PacketRecord>> {
    let config: OmniPathConfig = format!("{keys}\n{topology}").parse().unwrap();
    OmniPath::new(&config, &lab(1, hosts), Vec::new()).unwrap()
}

/// The cycles of one packet of 16 flits from the first host to another one.
fn alone(keys: &str, to: u32) -> u64 {
    let mut fabric = fabric(keys, ROUTER, 48);
    fabric.send(SimTime::ZERO, &message(0, to, 128, 0));
    packets(&mut fabric)[0].arrived.0 / CYCLE_PS
}

/// Traffic of 16-flit packets over one router.
fn traffic(pattern: &str, load: f64, levels: u8, keys: &str, topology: &str) -> RunFigures {
    let levels: Vec<_> = (0..levels).map(|level| format!("{level} = {}", 1.0 / f64::from(levels))).collect();
    let text = format!(
        "{pattern}\nflits = 16\nload = {load}\nlevels = {{ {} }}\nwarm_up = \"5000 cycles\"\nmeasurement = \"15000 cycles\"\n\
         drain = \"3000 cycles\"\n",
        levels.join(", ")
    );
    let traffic: TrafficConfig = text.parse().unwrap();
    let config: FabricConfig = format!("kind = \"omni-path\"\n{keys}\n{topology}").parse().unwrap();
    let stop = AtomicBool::new(false);
    traffic::run(&traffic, &config, 1, RunOptions::default(), &stop, &mut |_| {}).unwrap().figures
}

fn accepted(pattern: &str, load: f64, levels: u8, keys: &str) -> f64 {
    traffic(pattern, load, levels, keys, ROUTER).accepted_load.unwrap()
}

const UNIFORM: &str = "pattern = \"uniform\"";
const SHIFT: &str = "pattern = \"tornado\"\nshift = 1";

#[test]
fn a_lone_packet_takes_the_sum_of_the_stages() {
    // INJ 8, RT 32, SB 50, AT 16, X 2, AT 16, X 2, SB 50, FLY 8, and 16 flits; within a group the second AT and X fall away.
    assert_eq!(alone("", 5), 200);
    assert_eq!(alone("", 3), 182);
    // The text of the paper has 160 for a router and its link, with one AT for both crossbars.
    assert_eq!(alone("latency = { allocation = 8 }", 5), 184);
    assert_eq!(alone("latency = { allocation = 8 }", 3), 174);
}

#[test]
fn a_shift_by_one_takes_as_long_at_any_load_and_fills_the_links() {
    for load in [0.1, 0.5, 0.9, 1.0] {
        let figures = traffic(SHIFT, load, 1, "", ROUTER);
        // Three of four pairs lie within a group.
        let mean = figures.network.mean().unwrap() / CYCLE_PS as f64;
        assert!((mean - (3.0 * 182.0 + 200.0) / 4.0).abs() < 0.3, "{mean} cycles at load {load}");
        let (offered, accepted) = (figures.offered_load.unwrap(), figures.accepted_load.unwrap());
        assert!((accepted / offered - 1.0).abs() < 0.01, "{accepted} of {offered}");
    }
    // Drawn gaps leave some of a load of 1 out.
    let full = accepted(&format!("{SHIFT}\narrivals = \"fixed\""), 1.0, 1, "");
    assert!(full >= 0.99, "{full}");
}

#[test]
fn a_lane_of_48_flits_carries_that_much_a_round_trip() {
    // It is held for a link 8, storing, routing and allocating 98, passing 6, and the credit 8.
    let carried = accepted(SHIFT, 1.0, 1, "vls = 1\nbuffers = { size = 256, exclusive = 16, max = 48 }");
    assert!((carried - 48.0 / 120.0).abs() < 0.005, "{carried}");
}

#[test]
fn uniform_traffic_bends_and_saturates_where_the_paper_has_it() {
    for load in [0.5, 0.6, 0.7] {
        let figures = traffic(UNIFORM, load, 1, "", ROUTER);
        let (offered, accepted) = (figures.offered_load.unwrap(), figures.accepted_load.unwrap());
        assert!((accepted / offered - 1.0).abs() < 0.01, "{accepted} of {offered}");
    }
    let at_8 = accepted(UNIFORM, 0.8, 1, "");
    assert!(at_8 < 0.75, "not bent at load 0.8: {at_8}");
    let most = accepted(UNIFORM, 1.0, 1, "");
    assert!((most - 0.72).abs() <= 0.03, "{most}");
    let spread = accepted(UNIFORM, 1.0, 8, "");
    assert!((0.90..=0.95).contains(&spread), "over 8 VLs: {spread}");
}

#[test]
fn without_speed_up_the_first_of_each_queue_holds_up_the_others() {
    let keys = "vls = 1\nretry = \"cycle\"\ncentral_choice = \"input\"\ngroup_speedup = 1\ncentral_speedup = 1\ncentral_links = 4\n\
                buffers = { size = 100000, exclusive = 16, max = 100000 }";
    // Packets within a group have a queue beside the others, so that the limit 2 - sqrt(2) is neared from above as ports grow.
    let router = |ports: u32| {
        let topology = ROUTER.replace("48", &ports.to_string());
        traffic(UNIFORM, 1.0, 1, &format!("{keys}\nports = {ports}"), &topology).accepted_load.unwrap()
    };
    let (few, many) = (router(48), router(192));
    let limit = 2.0 - 2f64.sqrt();
    assert!(limit - 0.01 < many && many < few && few < limit + 0.05, "{few} and {many}, limit {limit}");
}

#[test]
fn a_lane_goes_on_with_what_is_its_own_while_another_fills_the_rest() {
    let mut fabric = fabric("", ROUTER, 48);
    // VL 0 of three hosts crowds at host 9, that of the first through the central crossbar; VL 1 of the first goes elsewhere.
    for source in [0, 1, 2] {
        fabric.send(SimTime::ZERO, &message(source, 9, 128 * 600, 0));
    }
    fabric.send(SimTime::ZERO, &message(0, 20, 128 * 100, 1));
    let packets = packets(&mut fabric);
    let last =
        |to: u32| packets.iter().filter(|p| p.destination.0 == to).map(|p| p.arrived.0).max().unwrap() / CYCLE_PS;
    // 16 flits at most each 120 cycles would be 12,000; the crowd takes 3 x 600 packets of 16.
    assert!(last(20) < 13_000, "{}", last(20));
    assert!(last(9) > 28_000, "{}", last(9));
}

#[test]
fn routers_of_any_number_of_groups_run_and_others_are_refused() {
    for ports in [8, 12, 48, 64] {
        let topology = ROUTER.replace("48", &ports.to_string());
        let carried = traffic(SHIFT, 0.5, 1, &format!("ports = {ports}"), &topology);
        assert!((carried.accepted_load.unwrap() - 0.5).abs() < 0.02);
    }
    let refused = |keys: &str, topology: &str| {
        let config: OmniPathConfig = format!("{keys}\n{topology}").parse().unwrap();
        OmniPath::new(&config, &lab(1, 4), ()).err().unwrap().to_string()
    };
    let has = |keys: &str, topology: &str, parts: &[&str]| {
        let error = refused(keys, topology);
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    };
    has("ports = 10", ROUTER, &["fabric.ports = 10 with group = 4", "a multiple of fabric.group"]);
    has("ports = 4", ROUTER, &["fabric.ports = 4", "two groups"]);
    has("ports = 8", ROUTER, &["fabric.ports = 8 with 48 cables"]);
    // The paper's 16 credits of 4 flits for each of 8 VLs do not fit into its queue of 256 flits.
    let paper = "buffers = { size = 256, exclusive = 64, max = 192 }";
    has(paper, ROUTER, &["fabric.buffers.size = 256 with exclusive = 64 for each of 8 VLs"]);
    has("buffers = { exclusive = 12 }", ROUTER, &["fabric.buffers.exclusive = 12 flits, with packets of 16"]);
    has("central_buffers = { max = 8 }", ROUTER, &["fabric.central_buffers.max = 8"]);
    has("buffers = { max = 63 }", ROUTER, &["flits_per_credit"]);
    has("central_links = 5", ROUTER, &["fabric.central_links = 5", "from 1 to fabric.group"]);
    has("latency = { allocation = 0 }", ROUTER, &["fabric.latency.allocation = 0"]);
    has("group_speedup = 0", ROUTER, &["fabric.group_speedup = 0"]);
    has("routing = \"adaptive\"", ROUTER, &["fabric.routing = adaptive"]);
    let rates = "[topology]\nshape = \"leaf-spine\"\nuplink = { rate = \"40Gbps\" }";
    has("", rates, &["fabric.topology = rates of", "links of one rate"]);
}

#[test]
fn packets_that_may_wait_for_each_other_at_central_links_are_refused() {
    // Ports go by the order of cables. At each leaf, what comes down from one spine to the host of the other group shares a central link
    // with what the first group's host sends up to the other spine.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crossed.edges");
    let cables = "host: w0 w1 w2 w3\nswitch: a b s t\na s\na w0\na t\na w1\nb t\nb w2\nb s\nb w3\n";
    std::fs::write(&file, cables).unwrap();
    let made = |group: u32| {
        let keys = format!("ports = 4\ncentral_links = 1\ngroup = {group}\nrouting = \"ecmp\"");
        let topology = format!("[topology]\nshape = \"graph\"\nfile = \"{}\"\n", file.display());
        let config: OmniPathConfig = format!("{keys}\n{topology}").parse().unwrap();
        OmniPath::new(&config, &lab(1, 4), ()).map(|_| ()).map_err(|error| error.to_string())
    };
    let error = made(2).unwrap_err();
    let parts = ["may come to a deadlock", "s->b, b->t, t->a, a->s, s->b", "fabric.group = 1"];
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    assert_eq!(made(1), Ok(()));
}
