//! How far packets go, and how many lie in queues.

use netsim::fabric::FabricConfig;
use netsim::statistics::RunFigures;
use netsim::traffic::{self, EngineKind, RunOptions, TrafficConfig, TrafficRunError};
use std::sync::atomic::AtomicBool;

fn tried(traffic: &str, fabric: &str, engine: EngineKind) -> Result<RunFigures, TrafficRunError> {
    let traffic: TrafficConfig = traffic.parse().unwrap();
    let config: FabricConfig = fabric.parse().unwrap();
    let options = RunOptions { engine, ..RunOptions::default() };
    traffic::run(&traffic, &config, 3, options, &AtomicBool::new(false), &mut |_| {}).map(|run| run.figures)
}

fn run(traffic: &str, fabric: &str) -> RunFigures {
    tried(traffic, fabric, EngineKind::Events).unwrap()
}

const TORUS: &str = "[topology]\nshape = \"torus\"\nsize = [8, 8]";

#[test]
fn packets_are_as_far_apart_as_their_hosts_and_go_as_far_where_ways_are_shortest() {
    let fabric = format!("kind = \"credit\"\nrouting = \"dor\"\nvls = 2\n{TORUS}");
    let figures = run("pattern = \"uniform\"\nload = 0.2\noffered_hops = true", &fabric);
    let offered = figures.offered_hops.unwrap();
    assert_eq!((figures.undelivered, &offered), (0, &figures.hops));
    // 4.063492 links between routers (docs/topologies.md), so a switch more.
    let error = offered.deviation().unwrap() / (offered.count() as f64).sqrt();
    assert!((offered.mean().unwrap() - 5.063_492).abs() < 3.0 * error, "{:?} +- {error}", offered.mean());
    assert!(run("pattern = \"uniform\"\nload = 0.2", &fabric).offered_hops.is_none());
}

#[test]
fn what_goes_far_starves_first_and_that_shows() {
    // Nothing is waited for: what has not arrived is in the one and not in the other.
    let fabric =
        format!("kind = \"credit\"\nmtu = \"512B\"\nrouting = {{ bubble = \"smart\", vcs = 2 }}\nvls = 2\n{TORUS}");
    let figures = run("pattern = \"uniform\"\nload = 1.0\ndrain = \"1 cycles\"\noffered_hops = true", &fabric);
    let offered = figures.offered_hops.unwrap();
    assert_eq!(offered.count(), figures.hops.count() + figures.undelivered);
    assert!(figures.undelivered > 1_000 && offered.mean() > figures.hops.mean(), "{offered:?}\n{:?}", figures.hops);
}

#[test]
fn hosts_at_one_switch_and_those_of_trees() {
    let tree = "[topology]\nshape = \"k-ary-n-tree\"\nk = 2\nn = 3";
    // Pairs, then pairs of pairs: 1 and 3 switches.
    let fabric = format!("kind = \"store-and-forward\"\n{tree}");
    let figures = run("pattern = \"nearest-neighbour\"\nload = 0.1\noffered_hops = true", &fabric);
    let (near, far) = (figures.offered_hops.as_ref().unwrap().min(), figures.offered_hops.as_ref().unwrap().max());
    assert_eq!((near, far, figures.offered_hops.as_ref()), (1, 3, Some(&figures.hops)));
    let windows =
        tried("pattern = \"nearest-neighbour\"\nload = 0.1\noffered_hops = true", &fabric, EngineKind::Windows)
            .unwrap();
    assert_eq!(windows.offered_hops, figures.offered_hops);
    let error =
        tried("hosts = 4\noffered_hops = true", "kind = \"ideal\"\nrate = \"1Gbps\"", EngineKind::Auto).unwrap_err();
    assert!(error.to_string().contains("traffic.offered_hops"), "{error}");
}

/// Each host sends a packet of `flits` to the next one, each `gap` cycles.
fn regular(flits: u64, gap: u64, fabric: &str) -> RunFigures {
    let load = flits as f64 / gap as f64;
    let traffic = format!(
        "pattern = \"tornado\"\nshift = 1\nload = {load:?}\nflits = {flits}\narrivals = \"fixed\"\nwarm_up = \"{} cycles\"\n\
         measurement = \"{} cycles\"\noccupancy = true",
        20 * gap,
        100 * gap
    );
    run(&traffic, fabric)
}

#[test]
fn a_packet_lies_in_a_queue_until_its_last_flit_has_left() {
    let switch =
        "[topology]\nshape = \"single-switch\"\nnodes = 8\nhost_link = { rate = \"10Gbps\", delay = \"50ns\" }";
    for (fabric, flits, gap, cycles) in [
        // It goes on as it comes.
        ("kind = \"input-output-queued\"\nrouting = \"shortest\"", 8, 32, 8),
        ("kind = \"credit\"\nrouting = \"shortest\"\nswitch_delay = \"0ns\"", 8, 32, 8),
        // It is there twelve flits longer, as the packet as a whole is waited for (11 flits), with a delay of one.
        ("kind = \"credit\"\nrouting = \"shortest\"\nswitch_delay = \"51.2ns\"\nstart = \"whole-packet\"", 12, 60, 24),
        // 50 cycles to come in, 32 for its way, 16 to be granted, and 16 flits at 3 a cycle.
        ("kind = \"omni-path\"\nrouting = \"shortest\"", 16, 160, 50 + 32 + 16 + 6),
    ] {
        let figures = regular(flits, gap, &format!("{fabric}\n{switch}"));
        let share = f64::from(cycles) / gap as f64;
        // One queue behind each host's link.
        assert_eq!(figures.occupancy.len(), 8, "{fabric}");
        for queue in &figures.occupancy {
            assert_eq!(queue.shares.len(), 2, "{fabric}: {queue:?}");
            assert!((queue.shares[1] - share).abs() < 1e-6, "{fabric}: {queue:?} is not {share}");
            assert!((queue.shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{fabric}: {queue:?}");
        }
    }
}

#[test]
fn queues_hold_what_they_let_through_times_how_long_it_stays() {
    // Little's law over a whole network: where nobody waits a packet of 8 flits stays 8 cycles in a queue of each of its switches.
    let fabric = format!("kind = \"input-output-queued\"\nrouting = {{ dally = \"trc\" }}\nvcs = 2\n{TORUS}");
    let lying = |load: f64| {
        let keys = "flits = 8\noccupancy = true\nmeasurement = \"40000 cycles\"";
        let figures = run(&format!("pattern = \"uniform\"\nload = {load:?}\n{keys}"), &fabric);
        let mean =
            |shares: &[f64]| (0u32..).zip(shares).map(|(packets, share)| f64::from(packets) * share).sum::<f64>();
        let lying: f64 = figures.occupancy.iter().map(|queue| mean(&queue.shares)).sum();
        let most = figures.occupancy.iter().map(|queue| queue.shares.len() - 1).max().unwrap();
        (lying / (figures.accepted_load.unwrap() * 64.0 * figures.hops.mean().unwrap()), most)
    };
    let (rare, _) = lying(0.01);
    assert!((0.98..1.03).contains(&rare), "{rare} times what nobody waits for");
    let (often, most) = lying(0.4);
    assert!(often > 1.2 && most == 2, "{often} times, at most {most}: a queue has room for two");
}

#[test]
fn virtual_lanes_carry_what_their_levels_do_and_together_all_that_links_carry() {
    let fabric = "kind = \"credit\"\nrouting = \"d-mod-k\"\nvls = 4\nmtu = \"512B\"\n[topology]\nshape = \"k-ary-n-tree\"\nk = 4\nn = 2";
    let levels = "levels = { 0 = 0.5, 1 = 0.25, 2 = 0.25 }\nflits = 8\nload = 0.4\nmeasurement = \"40000 cycles\"";
    let figures = run(&format!("pattern = \"uniform\"\n{levels}\noccupancy = true"), fabric);
    let flits: Vec<u64> = figures.vls.iter().map(|vl| vl.flits).collect();
    let all: u64 = flits.iter().sum();
    assert_eq!(all * 64, figures.links.iter().map(|link| link.bytes).sum::<u64>());
    for (vl, share) in figures.vls.iter().zip([0.5, 0.25, 0.25, 0.0]) {
        assert!((vl.flits as f64 / all as f64 - share).abs() < 0.01, "{flits:?}");
        assert!(vl.utilisation_max >= vl.utilisation_mean);
    }
    let mean = figures.links.iter().filter_map(|link| link.utilisation).sum::<f64>() / figures.links.len() as f64;
    assert!((figures.vls.iter().filter_map(|vl| vl.utilisation_mean).sum::<f64>() - mean).abs() < 1e-9);
    // What lies in all queues, once more.
    let lying = |lane: u32| {
        let of_queue =
            |shares: &[f64]| (0u32..).zip(shares).map(|(packets, share)| f64::from(packets) * share).sum::<f64>();
        figures.occupancy.iter().filter(|queue| queue.lane == lane).map(|queue| of_queue(&queue.shares)).sum::<f64>()
    };
    for (lane, vl) in (0u32..).zip(&figures.vls) {
        assert!((vl.queued_mean.unwrap() - lying(lane)).abs() < 1e-9, "VL {lane}");
    }
    let plain = run(&format!("pattern = \"uniform\"\n{levels}"), fabric);
    assert!(plain.vls.iter().all(|vl| vl.queued_mean.is_none()) && plain.vls[0].flits == flits[0]);
    assert_eq!(run("pattern = \"uniform\"", &fabric.replace("vls = 4", "vls = 1")).vls, []);
}

#[test]
fn logs_need_a_fabric_that_tells_and_hosts_that_there_are() {
    let tree = "kind = \"credit\"\n[topology]\nshape = \"k-ary-n-tree\"\nk = 2\nn = 2";
    let ideal = "kind = \"ideal\"\nrate = \"1Gbps\"";
    for (keys, fabric, needle) in [
        ("hosts = 4\nlog = {}", ideal, "does not tell how packets go"),
        ("log = { packets = 0 }", tree, "traffic.log.packets"),
        ("log = { packets = 65537 }", tree, "1 to 65536"),
        ("log = { hosts = [4] }", tree, "hosts below 4"),
    ] {
        let traffic: TrafficConfig = keys.parse().unwrap();
        let error = match traffic.check() {
            Err(error) => error.to_string(),
            Ok(()) => tried(keys, fabric, EngineKind::Auto).unwrap_err().to_string(),
        };
        assert!(error.contains(needle), "{keys}: {error}");
    }
    let windows = tried("log = {}", tree, EngineKind::Windows).unwrap_err().to_string();
    assert!(windows.contains("traffic.log"), "{windows}");
}

#[test]
fn levels_have_loads_and_latencies_of_their_own_which_add_up() {
    // A lane for each level; level 1 goes before level 0 wherever both ask.
    let fabric = "kind = \"credit\"\nrouting = \"d-mod-k\"\nvls = 2\nmtu = \"512B\"\n\
                  arbitration = { high = [[1, 1]], low = [[0, 1]] }\n[topology]\nshape = \"k-ary-n-tree\"\nk = 4\nn = 2";
    let traffic =
        "pattern = \"uniform\"\nlevels = { 0 = 0.75, 1 = 0.25 }\nflits = 8\nload = 0.6\nmeasurement = \"40000 cycles\"";
    let figures = run(traffic, fabric);
    let [low, high] = &figures.levels[..] else { panic!("{:?}", figures.levels) };
    assert_eq!((low.level, high.level), (0, 1));
    let offered = (low.offered_bytes + high.offered_bytes) as f64;
    assert!((high.offered_bytes as f64 / offered - 0.25).abs() < 0.01);
    assert!((high.accepted_bytes as f64 / high.offered_bytes as f64 - 1.0).abs() < 0.01);
    assert_eq!(low.packet.count() + high.packet.count(), figures.packet.count());
    let sum = |of: fn(&netsim::statistics::Histogram) -> f64| of(&low.packet) + of(&high.packet);
    let total = sum(|histogram| histogram.mean().unwrap() * histogram.count() as f64);
    assert!((total / figures.packet.mean().unwrap() / figures.packet.count() as f64 - 1.0).abs() < 1e-9);
    let latency = |count: &netsim::statistics::LevelCount| count.network.mean().unwrap();
    assert!(latency(high) * 1.1 < latency(low), "{} beside {}", latency(high), latency(low));
    let windows = tried(traffic, fabric, EngineKind::Windows).unwrap();
    assert_eq!(windows.levels, figures.levels);
    // What full hosts lose is lost by levels, too.
    let losing = run(&format!("{}\ninjection_queue = 1\nfull_queue = \"drop\"", traffic.replace("0.6", "1.5")), fabric);
    assert!(losing.lost > 1_000 && losing.levels.iter().map(|level| level.lost).sum::<u64>() == losing.lost);
    assert_eq!(run("pattern = \"uniform\"", fabric).levels, []);
}
