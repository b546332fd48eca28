//! What the comments of `tests/bench` promise of each experiment there: hosts, packets and the load, in short runs.

use netsim::fabric::FabricKind as _;
use netsim::traffic::{RunOptions, TrafficRun};
use replay::experiment::{Experiment, Override};
use replay::run::run_traffic;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

/// Packets of a run that say enough of its load.
const PACKETS: f64 = 5_000.0;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/bench")
}

fn text(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

fn experiment(name: &str, changes: &[String]) -> Experiment {
    let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
    Experiment::parse(&text(&format!("{name}.toml")), name, &changes).unwrap()
}

fn hosts(experiment: &Experiment) -> u32 {
    experiment.fabric.places().hosts.unwrap()
}

fn run(name: &str, changes: &[String]) -> TrafficRun {
    run_traffic(&experiment(name, changes), RunOptions::default(), &AtomicBool::new(false), |_| {}).unwrap()
}

/// All experiments there, by their names.
fn names() -> BTreeSet<String> {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    files.filter_map(|file| Some(file.strip_suffix(".toml")?.to_owned())).collect()
}

/// The number behind `before` in the comment that `name` begins with.
fn said<T: FromStr>(name: &str, before: &str) -> T {
    let comment: String = text(&format!("{name}.toml")).lines().take_while(|line| line.starts_with('#')).collect();
    let (_, rest) = comment.split_once(before).unwrap_or_else(|| panic!("{name}: no {before:?} in {comment}"));
    let number: String = rest.chars().take_while(|c| c.is_ascii_digit() || matches!(c, '.' | ',')).collect();
    number.trim_end_matches(['.', ',']).replace(',', "").parse().unwrap_or_else(|_| panic!("{name}: {before}{rest}"))
}

fn assert_near(name: &str, what: &str, is: f64, expected: f64, share: f64) {
    assert!((is / expected - 1.0).abs() < share, "{name}: {what} is {is}, not {expected}");
}

/// Hosts, flits of a packet and load of the names that say them, such as `input-queued-ft64-p8-0.5`.
fn of_name(name: &str) -> Option<(u32, u32, f64)> {
    let (rest, load) = name.rsplit_once('-')?;
    let (network, flits) = rest.rsplit_once("-p")?;
    let hosts = match network.rsplit('-').next()? {
        "torus8x8" => 64,
        number => number.trim_start_matches("ft").parse().ok()?,
    };
    Some((hosts, flits.parse().ok()?, load.parse().ok()?))
}

#[test]
fn each_has_the_hosts_the_packets_and_the_load_of_its_name() {
    let named: Vec<_> = names().into_iter().filter_map(|name| Some((of_name(&name)?, name))).collect();
    assert!(named.len() >= 22, "{named:?}");
    for ((number, flits, load), name) in named {
        // As many packets whatever the load, so that it is known as well.
        let cycles = (PACKETS * f64::from(flits) / f64::from(number) / load).max(1_000.0).ceil();
        let settings = [("warm_up", 500.0), ("measurement", cycles), ("drain", 500.0)];
        let short = settings.map(|(key, cycles)| format!("traffic.{key}={cycles}cycles"));
        let config = experiment(&name, &[]);
        assert_eq!((hosts(&config), config.traffic.as_ref().unwrap().flits), (number, Some(flits)), "{name}");
        let figures = run(&name, &short).figures;
        assert_near(&name, "offered load", figures.offered_load.unwrap(), load, 0.06);
        // BookSim2's routers carry less than that.
        let carried = if name == "input-queued-ft64-p8-0.9" { 0.69 } else { load };
        assert_near(&name, "accepted load", figures.accepted_load.unwrap(), carried, 0.06);
        // CAMINOS is told the same.
        let network = name.trim_start_matches("input-output-queued-").trim_start_matches("input-queued-");
        if let Ok(cfg) = fs::read_to_string(folder().join(format!("{network}.cfg"))) {
            for line in [format!("load: {load},"), format!("message_size: {flits},"), format!("servers: {number},")] {
                assert!(cfg.contains(&line), "{network}.cfg has no {line}");
            }
        }
    }
}

#[test]
fn full_sources_keep_the_networks_of_insee_saturated() {
    for name in ["insee-torus", "insee-tree"] {
        let short = ["traffic.warm_up=500cycles", "traffic.measurement=1000cycles"].map(str::to_owned);
        let config = experiment(name, &[]);
        assert_eq!(hosts(&config), 64);
        let load = |changes: &[String]| run(name, changes).figures.accepted_load.unwrap();
        let full = load(&short);
        assert!((0.65..0.85).contains(&full), "{name}: {full}");
        // More is offered than fits: less makes no difference.
        let less = [&short[..], &["traffic.load=0.9".to_owned()]].concat();
        assert_near(name, "accepted load", load(&less), full, 0.04);
    }
}

#[test]
fn large_trees_carry_their_load_when_they_are_small() {
    let large = ["heap-1024", "heap-65536", "heap-524288", "scale-credit", "scale-store-and-forward"];
    for name in large {
        let tree = if name.starts_with("scale") { "" } else { "tree of " };
        assert_eq!(
            hosts(&experiment(name, &[])),
            said::<u32>(name, if tree.is_empty() { "# " } else { tree }),
            "{name}"
        );
        let load = if tree.is_empty() { said(name, "uniform traffic at ") } else { 0.5 };
        let mut small = vec!["fabric.topology.m=8".to_owned(), "traffic.warm_up=20us".to_owned()];
        small.push(format!("traffic.measurement={}us", if tree.is_empty() { 30 } else { 100 }));
        assert_near(name, "accepted load", run(name, &small).figures.accepted_load.unwrap(), load, 0.06);
    }
    let name = "fattreesim";
    assert_eq!(hosts(&experiment(name, &[])), said::<u32>(name, "all of them: "));
    let small = ["fabric.topology.m=8".to_owned(), "traffic.count=50".to_owned()];
    // A packet of 1 KiB takes 819.2 ns at 10 Gbit/s.
    assert_near(name, "load", 819.2 / said::<f64>(name, "hosts that it draws, "), said(name, "with a load of "), 0.01);
    let figures = run(name, &small).figures;
    assert!((6_350..=6_400).contains(&figures.packets), "{}", figures.packets);
    let tcp = ["ethernet-1024", "ethernet-16384"];
    for name in tcp {
        assert_eq!(hosts(&experiment(name, &[])), said::<u32>(name, "# TCP at "), "{name}");
    }
    let small = ["fabric.topology.m=8".to_owned(), "traffic.measurement=2ms".to_owned()];
    assert_near(tcp[0], "offered load", run(tcp[0], &small).figures.offered_load.unwrap(), 0.5, 0.1);
    // All experiments of the folder are told of here.
    let told = large.len() + tcp.len() + 3 + names().iter().filter(|name| of_name(name).is_some()).count();
    assert_eq!(names().len(), told, "{:?}", names());
}
