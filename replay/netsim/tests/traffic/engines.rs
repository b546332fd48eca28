//! Events or windows, one thread or several: what is measured is the same.

use netsim::fabric::FabricConfig;
use netsim::statistics::Cost;
use netsim::traffic::{self, EngineKind, RunOptions, TrafficConfig};
use std::sync::atomic::AtomicBool;

const TREE: &str = r#"
    kind = "store-and-forward"
    routing = "ecmp"
    mtu = "1500B"
    headers = "40B"
    switch_delay = "100ns"
    [topology]
    shape = "k-ary-n-tree"
    k = 4
    n = 3
    host_link = { rate = "10Gbps", delay = "50ns", buffer = "4 packets" }
    uplink = { rate = "10Gbps", delay = "70ns", buffer = "4 packets" }
"#;

const TORUS: &str = r#"
    kind = "store-and-forward"
    routing = "dor"
    [topology]
    shape = "torus"
    size = [4, 4]
    concentration = 4
    host_link = { rate = "7000000001bps", delay = "0ns", buffer = "9KB" }
    link = { rate = "7000000001bps", delay = "0ns", buffer = "9KB" }
"#;

const CREDIT_TREE: &str = r#"
    kind = "credit"
    routing = "adaptive"
    mtu = "1KiB"
    headers = "26B"
    vls = 2
    credits = 40
    [topology]
    shape = "k-ary-n-tree"
    k = 4
    n = 3
    host_link = { rate = "10Gbps", delay = "50ns" }
    uplink = { rate = "10Gbps", delay = "70ns" }
"#;

const CREDIT_TORUS: &str = r#"
    kind = "credit"
    routing = "dor"
    vls = 4
    [topology]
    shape = "torus"
    size = [4, 4]
    concentration = 4
    host_link = { rate = "7000000001bps", delay = "0ns" }
    link = { rate = "7000000001bps", delay = "0ns" }
"#;

const ETHERNET_TREE: &str = r#"
    kind = "ethernet"
    host_delay = "1us"
    [topology]
    shape = "k-ary-n-tree"
    k = 4
    n = 3
    host_link = { rate = "10Gbps", delay = "50ns", buffer = "4 packets" }
    uplink = { rate = "10Gbps", delay = "70ns", buffer = "4 packets" }
"#;

const ETHERNET_TORUS: &str = r#"
    kind = "ethernet"
    routing = "dor"
    host_delay = "0ns"
    host_queue = "2 packets"
    [topology]
    shape = "torus"
    size = [4, 4]
    concentration = 4
    host_link = { rate = "7000000001bps", delay = "0ns", buffer = "9KB" }
    link = { rate = "7000000001bps", delay = "0ns", buffer = "9KB" }
"#;

/// All that a run gives, but for what it took on this machine.
fn outcome(traffic: &str, fabric: &str, engine: EngineKind, threads: usize) -> String {
    let traffic: TrafficConfig = traffic.parse().unwrap();
    let config: FabricConfig = fabric.parse().unwrap();
    let options = RunOptions { keep: true, pairs: true, engine, threads, ..RunOptions::default() };
    let mut run = traffic::run(&traffic, &config, 7, options, &AtomicBool::new(false), &mut |_| {}).unwrap();
    run.figures.cost = Cost::default();
    assert!(run.figures.packets > 300, "{} packets are few", run.figures.packets);
    format!("{:#?}", (run.figures, run.packets))
}

#[test]
fn engines_and_threads_do_not_show_in_what_is_measured() {
    for fabric in [TREE, TORUS, CREDIT_TREE, CREDIT_TORUS, ETHERNET_TREE, ETHERNET_TORUS] {
        for traffic in [
            "pattern = \"uniform\"\nload = 0.5\noffered_hops = true",
            "pattern = \"uniform\"\nload = 1.4\narrivals = \"bernoulli\"",
            "pattern = \"hot-spot\"\nshare = 0.3\nload = 0.3\nsize = \"10KB\"",
            "pattern = \"transpose\"\nload = 0.7\narrivals = \"fixed\"\nflows = \"message\"\nsize = \"300B\"",
        ] {
            let traffic = format!("{traffic}\nwarm_up = \"5us\"\nmeasurement = \"60us\"\ndrain = \"50us\"");
            // TCP keeps one connection a pair, and needs some round trips.
            let is_tcp = fabric.contains("ethernet");
            let of_tcp = || traffic.replace("flows = \"message\"", "").replace("60us", "400us");
            let traffic = if is_tcp { of_tcp() } else { traffic };
            let events = outcome(&traffic, fabric, EngineKind::Events, 1);
            let differ = |engine, threads| {
                let parts = outcome(&traffic, fabric, engine, threads);
                let differences = first_differences(&events, &parts);
                assert!(events == parts, "{engine:?}, {threads} threads, {traffic}:\n{differences}");
            };
            [1, 2, 4, 16].into_iter().for_each(|threads| differ(EngineKind::Windows, threads));
            // Threads meet here far more often.
            if fabric.contains("store-and-forward") {
                [2, 4].into_iter().for_each(|threads| differ(EngineKind::Optimistic, threads));
            }
        }
    }
}

/// Behind the measurement a run looks every 40 ns whether it is over; a window has 1,282, and only the last one needs all its looks.
#[test]
fn few_looks_cut_a_window_and_none_shows_in_what_is_measured() {
    let near = TREE.replace("\"4 packets\"", "\"20 packets\"");
    // What is on the way there arrives some hundred windows later.
    let far = near.replace("70ns", "300us");
    let cases = [
        (0.5, "uniform", &near, 90),
        (0.9, "uniform", &near, 90),
        (1.4, "uniform", &near, 90),
        (0.9, "transpose", &near, 90),
        (0.5, "uniform", &far, 2_000),
    ];
    for (load, pattern, fabric, drain_us) in cases {
        let traffic = format!(
            "pattern = \"{pattern}\"\nload = {load}\nsize = \"1500B\"\nwarm_up = \"1us\"\nmeasurement = \"10.24us\"\ndrain = \"{drain_us}us\""
        );
        let events = outcome(&traffic, fabric, EngineKind::Events, 1);
        for threads in [1, 2, 3] {
            let windows = outcome(&traffic, fabric, EngineKind::Windows, threads);
            assert!(events == windows, "{threads} threads, {traffic}:\n{}", first_differences(&events, &windows));
        }
        let (traffic, config): (TrafficConfig, FabricConfig) = (traffic.parse().unwrap(), fabric.parse().unwrap());
        let options = RunOptions { engine: EngineKind::Windows, threads: 1, ..RunOptions::default() };
        let run = traffic::run(&traffic, &config, 7, options, &AtomicBool::new(false), &mut |_| {}).unwrap();
        let parallel = run.figures.cost.parallel.unwrap();
        let begun = run.figures.simulated_ps.div_ceil(parallel.lookahead_ps);
        assert!(parallel.windows <= begun + 40, "{} windows of {begun}", parallel.windows);
    }
}

/// Flits whose time is 1 ns on all links.
const WHOLE_CYCLES: &str = r#"
    kind = "credit"
    mtu = "252B"
    headers = "4B"
    vls = 2
    credits = 6
    switch_delay = "1ns"
    [topology]
    shape = "k-ary-n-tree"
    k = 4
    n = 3
    host_link = { rate = "512Gbps", delay = "0ns" }
    uplink = { rate = "512Gbps", delay = "2ns" }
"#;

#[test]
fn cycles_do_not_show_in_what_is_measured() {
    for routing in ["routing = \"adaptive\"", "routing = \"ecmp\""] {
        let fabric = format!("{routing}\n{WHOLE_CYCLES}");
        for traffic in [
            "load = 0.5\nflits = 1\narrivals = \"bernoulli\"\nlevels = { 0 = 0.5, 1 = 0.5 }",
            "load = 1.0\nflits = 4\narrivals = \"bernoulli\"\noffered_hops = true",
            "load = 0.6\nsize = \"900B\"\narrivals = \"bernoulli\"\nflows = \"message\"",
            "load = 0.6\nsize = \"40B\"",
            "load = 0.9\nflits = 2\narrivals = \"bernoulli\"\ninjection_queue = 2",
            "load = 0.9\nflits = 2\narrivals = \"bernoulli\"\nnetwork_limit = 0.1",
            "load = 0.3\nflits = 2\narrivals = \"bernoulli\"\nbackground = { pattern = \"uniform\", load = 0.1, flits = 1 }",
        ] {
            let traffic = format!(
                "pattern = \"uniform\"\n{traffic}\nwarm_up = \"0.5us\"\nmeasurement = \"1us\"\ndrain = \"1us\""
            );
            let events = outcome(&traffic, &fabric, EngineKind::Events, 1);
            let auto = outcome(&traffic, &fabric, EngineKind::Auto, 1);
            assert!(events == auto, "{routing}, {traffic}:\n{}", first_differences(&events, &auto));
        }
    }
}

fn first_differences(a: &str, b: &str) -> String {
    let lines = a.lines().zip(b.lines()).enumerate();
    let differ = lines.filter(|(_, (a, b))| a != b).take(8);
    differ.map(|(line, (a, b))| format!("line {line}: {a} | {b}\n")).collect()
}

#[test]
fn a_fabric_that_only_events_can_run_says_so() {
    let traffic: TrafficConfig = "pattern = \"uniform\"\nhosts = 4\nload = 0.1\ninterval = \"1us\"".parse().unwrap();
    let config: FabricConfig = "kind = \"ideal\"".parse().unwrap();
    for engine in [EngineKind::Windows, EngineKind::Optimistic] {
        let options = RunOptions { engine, ..RunOptions::default() };
        let error = traffic::run(&traffic, &config, 1, options, &AtomicBool::new(false), &mut |_| {}).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("store-and-forward") && error.contains(engine.name()), "{error}");
    }
}

#[test]
fn what_time_warp_does_not_run_is_refused_with_a_way_out() {
    let refused = |traffic: &str, fabric: &str| {
        let (traffic, config): (TrafficConfig, FabricConfig) = (traffic.parse().unwrap(), fabric.parse().unwrap());
        let options = RunOptions { engine: EngineKind::Optimistic, ..RunOptions::default() };
        traffic::run(&traffic, &config, 1, options, &AtomicBool::new(false), &mut |_| {}).unwrap_err().to_string()
    };
    let error = refused("load = 0.1", CREDIT_TREE);
    assert!(error.contains("\"optimistic\"") && error.contains("\"windows\""), "{error}");
    let error = refused("load = 0.1\nbackground = { pattern = \"uniform\", load = 0.1 }", TREE);
    assert!(error.contains("traffic.background") && error.contains("\"optimistic\""), "{error}");
}

/// 4,096 hosts.
const LARGE: &str = r#"
    kind = "credit"
    routing = "d-mod-k"
    headers = "0B"
    [topology]
    shape = "k-ary-n-tree"
    k = 16
    n = 3
    host_link = { rate = "100Gbps", delay = "25ns" }
    uplink = { rate = "100Gbps", delay = "100ns" }
"#;

/// Runs `traffic` over `fabric` with two threads, as the program does by itself. Why it was by events, and its events.
fn by_itself(traffic: &str, fabric: &str, engine: EngineKind) -> (Option<String>, u64) {
    let traffic = format!("{traffic}\nwarm_up = \"0us\"\nmeasurement = \"1us\"\ndrain = \"1us\"");
    let (traffic, config): (TrafficConfig, FabricConfig) = (traffic.parse().unwrap(), fabric.parse().unwrap());
    let options = RunOptions { engine, threads: 2, ..RunOptions::default() };
    let run = traffic::run(&traffic, &config, 7, options, &AtomicBool::new(false), &mut |_| {}).unwrap();
    (run.by_events, run.figures.events)
}

#[test]
fn a_large_network_uses_its_threads_or_says_why_not() {
    let uniform = "pattern = \"uniform\"\nload = 0.2\nsize = \"2KiB\"";
    let (reason, events) = by_itself(uniform, LARGE, EngineKind::Auto);
    assert_eq!(reason, None);
    assert_eq!(by_itself(uniform, LARGE, EngineKind::Events), (None, events));
    let (reason, _) = by_itself(&format!("{uniform}\ninjection_queue = 4"), LARGE, EngineKind::Auto);
    assert!(reason.unwrap().contains("traffic.injection_queue"));
    let first = LARGE.replace("headers", "transit_priority = 1.0\nheaders");
    let (reason, _) = by_itself(uniform, &first, EngineKind::Auto);
    assert!(reason.unwrap().contains("transit_priority"));
    let short = LARGE.replace("100ns", "0ns").replace("headers", "mtu = \"4KiB\"\nheaders");
    let (reason, _) = by_itself(uniform, &short, EngineKind::Auto);
    assert!(reason.unwrap().contains("too short"));
}
