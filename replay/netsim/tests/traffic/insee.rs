//! Beside INSEE's program (FSIN, commit 2140aec): accepted loads at offered load 1, 64 nodes, uniform, packets of 16 phits of 4 bytes, queues of 4 packets,
//! seed 13, 10 x 2,000 cycles. `docs/results.md` has all rows, and those that differ with their reason.

use netsim::fabric::FabricConfig;
use netsim::traffic::{self, RunOptions, TrafficConfig};
use std::sync::atomic::AtomicBool;

const TORUS: &str = "[topology]\nshape = \"torus\"\nsize = [8, 8]\n";
const TREE: &str = "[topology]\nshape = \"k-ary-n-tree\"\nk = 4\nn = 3\n";
const THIN_TREE: &str = "[topology]\nshape = \"thin-tree\"\nk = 4\nk_up = 2\nn = 3\n";

/// As INSEE's routers deliver: from all queues at once.
const MULTIPLE: &str = "consumption = \"multiple\"";
/// And as they give virtual channels away: to one packet at a time.
const EXCLUSIVE: &str = "consumption = \"multiple\"\nlane_allocation = \"exclusive\"";

/// What INSEE's program accepted.
const ROWS: [(&str, &str, u8, &str, f64); 14] = [
    (TORUS, "{ bubble = \"oblivious\", bubble_at = \"here\" }", 1, MULTIPLE, 0.5431),
    (TORUS, "{ bubble = \"smart\", bubble_at = \"here\", directions = \"record\" }", 2, EXCLUSIVE, 0.7291),
    (TORUS, "{ bubble = \"smart\", bubble_at = \"here\", directions = \"record\" }", 3, EXCLUSIVE, 0.7140),
    (TORUS, "{ bubble = \"random\", bubble_at = \"here\", directions = \"record\" }", 3, EXCLUSIVE, 0.7126),
    (
        TORUS,
        "{ bubble = \"shortest\", bubble_at = \"here\", directions = \"record\", equals = \"first\", room = \"flits\" }",
        3,
        EXCLUSIVE,
        0.7063,
    ),
    (TORUS, "{ dally = \"trc\" }", 2, MULTIPLE, 0.5816),
    (TORUS, "{ dally = \"basic\" }", 2, MULTIPLE, 0.5803),
    (TORUS, "{ dally = \"improved\" }", 2, EXCLUSIVE, 0.6750),
    (TORUS, "{ dally = \"trc\" }", 2, "consumption = \"single\"", 0.5361),
    (TORUS, "{ dally = \"basic\" }", 2, "consumption = \"single\"", 0.5243),
    (TREE, "\"s-mod-k\"", 1, "", 0.5682),
    (TREE, "{ adaptive = \"link-and-vl\" }", 1, "", 0.5754),
    (TREE, "{ adaptive = \"link-and-vl\" }", 2, "", 0.7702),
    (THIN_TREE, "{ adaptive = \"link-and-vl\" }", 2, "", 0.2728),
];

/// The accepted load, in flits per node and cycle.
fn accepted(topology: &str, routing: &str, vls: u8, keys: &str) -> f64 {
    accepted_with(topology, routing, vls, keys, "")
}

/// The same with these keys of the traffic.
fn accepted_with(topology: &str, routing: &str, vls: u8, keys: &str, sources: &str) -> f64 {
    let traffic = format!(
        "pattern = \"uniform\"\nflits = 16\nload = 1.0\nwarm_up = \"10000 cycles\"\n\
         measurement = \"20000 cycles\"\ndrain = \"1 cycles\"\n{sources}"
    );
    let traffic: TrafficConfig = traffic.parse().unwrap();
    let fabric = format!(
        "kind = \"credit\"\nflit = \"4B\"\nmtu = \"64B\"\nheaders = \"0B\"\ncredits = 4\nswitch_delay = \"0ns\"\nvls = {vls}\n\
         routing = {routing}\n{keys}\n{topology}"
    );
    let config: FabricConfig = fabric.parse().unwrap();
    let options = RunOptions::default();
    traffic::run(&traffic, &config, 1, options, &AtomicBool::new(false), &mut |_| {})
        .unwrap()
        .figures
        .accepted_load
        .unwrap()
}

#[test]
fn saturation_loads_are_those_of_insee_within_3_percent() {
    for (topology, routing, vls, keys, published) in ROWS {
        let simulated = accepted(topology, routing, vls, keys);
        println!("{routing} {vls} {keys:?}: {simulated:.4} {published} {:+.1}%", (simulated / published - 1.0) * 100.0);
        assert!((simulated / published - 1.0).abs() < 0.03, "{routing} with {vls} VLs: {simulated}, not {published}");
    }
}

#[test]
fn queues_of_hosts_and_congestion_control_come_to_what_insee_accepts_within_3_percent() {
    let smart = "{ bubble = \"smart\", bubble_at = \"here\", directions = \"record\" }";
    let queues = |choice: &str| format!("injection = {{ queues = 4, {choice} }}");
    // As INSEE's program takes directions, which is not as its paper says.
    let as_program = |choice: &str| queues(&format!("{choice}, record = \"anew\""));
    let dor = as_program("choice = \"dor\", direction = \"last\"");
    let dor_shortest = as_program("choice = \"dor-shortest\", full = 3, direction = \"last\"");
    for (key, consumption, published) in [
        (dor.clone(), "multiple", 0.860),
        (dor, "single", 0.701),
        (dor_shortest.clone(), "multiple", 0.665),
        (dor_shortest, "single", 0.615),
        (as_program("choice = \"shortest-profitable\", equals = \"first\", length = \"switch\""), "single", 0.613),
        // The mean of 20 seeds: with seed 13, of the table, INSEE comes to .7235, the most of all.
        (as_program("choice = \"shortest-profitable\", equals = \"first\", length = \"switch\""), "multiple", 0.6868),
        (as_program("choice = \"longest-path\""), "single", 0.678),
        (queues("choice = \"shortest\""), "multiple", 0.658),
        (queues("choice = \"shortest\""), "single", 0.596),
        (queues("choice = \"dor\""), "multiple", 0.860),
        (queues("choice = \"dor-shortest\", full = 3"), "multiple", 0.665),
        ("transit_priority = 1.0".to_owned(), "multiple", 0.718),
    ] {
        let keys = format!("consumption = \"{consumption}\"\nlane_allocation = \"exclusive\"\n{key}");
        let simulated = accepted_with(TORUS, smart, 2, &keys, "injection_queue = 4");
        println!("{key} {consumption}: {simulated:.4} {published} {:+.1}%", (simulated / published - 1.0) * 100.0);
        assert!((simulated / published - 1.0).abs() < 0.03, "{key}, {consumption}: {simulated}, not {published}");
    }
}

#[test]
fn choosing_among_lanes_too_is_what_insees_trees_gain_by() {
    // Links alone saturate at .745 (docs/results.md), links and lanes at .770 there.
    let (link, both) = (accepted(TREE, "\"adaptive\"", 2, ""), accepted(TREE, "{ adaptive = \"link-and-vl\" }", 2, ""));
    assert!(both > link * 1.01, "{link} {both}");
}

#[test]
fn lanes_are_given_away_one_packet_at_a_time_only_where_packets_choose_them() {
    let fabric = format!(
        "kind = \"credit\"\nvls = 2\nrouting = {{ dally = \"trc\" }}\nlane_allocation = \"exclusive\"\n{TORUS}"
    );
    let config: FabricConfig = fabric.parse().unwrap();
    let traffic = TrafficConfig::default();
    let error = traffic::run(&traffic, &config, 1, RunOptions::default(), &AtomicBool::new(false), &mut |_| {});
    let error = error.unwrap_err().to_string();
    for needle in ["lane_allocation", "exclusive", "trc", "minimal-adaptive"] {
        assert!(error.contains(needle), "{error}");
    }
}

#[test]
fn keys_of_injection_that_do_not_fit_are_refused_by_name() {
    let smart = "routing = { bubble = \"smart\" }\nvls = 2";
    for (keys, needles) in [
        ("routing = \"dor\"\nvls = 2\ntransit_priority = 1.5".to_owned(), ["transit_priority", "0.0 to 1.0"]),
        (
            "routing = \"dor\"\nvls = 2\ntransit_priority = 0.5\nallocation = {}".to_owned(),
            ["transit_priority", "allocation"],
        ),
        ("routing = \"dor\"\nvls = 2\ninjection_reserve = 1".to_owned(), ["injection_reserve", "escape"]),
        (format!("{smart}\ncredits = 50\ninjection_reserve = 5"), ["injection_reserve", "VL's buffer"]),
        (format!("{smart}\ninjection = {{ queues = 16, choice = \"shortest\" }}"), ["injection.queues", "1 to 15"]),
        (format!("{smart}\ninjection = {{ queues = 3, choice = \"dor\" }}"), ["injection.queues", "4 directions"]),
        (format!("{smart}\ninjection = {{ queues = 4, choice = \"dor-shortest\" }}"), ["injection.full", "not given"]),
        (
            format!("{smart}\ninjection = {{ queues = 4, choice = \"shortest\", direction = \"last\" }}"),
            ["injection.direction", "dor-shortest"],
        ),
        (
            format!("{smart}\ninjection = {{ queues = 4, choice = \"dor\", equals = \"first\" }}"),
            ["injection.equals", "shortest-profitable"],
        ),
        (
            format!("{smart}\ninjection = {{ queues = 4, choice = \"shortest\", record = \"anew\" }}"),
            ["injection.record", "by directions"],
        ),
        (
            format!("{smart}\ninjection = {{ queues = 4, choice = \"dor\", length = \"switch\" }}"),
            ["injection.length", "shortest-profitable"],
        ),
        (
            format!(
                "{smart}\ncredit_min_time = \"1ns\"\ninjection = {{ queues = 4, choice = \"shortest\", length = \"switch\" }}"
            ),
            ["injection.length", "credit_min_time"],
        ),
        (
            "routing = { bubble = \"shortest\", room = \"flits\" }\nvls = 2\ncredit_min_time = \"1ns\"".to_owned(),
            ["routing.room", "credit_min_time"],
        ),
        (
            "routing = { bubble = \"shortest\", room = \"flits\" }\nvls = 2\nshared_buffers = { size = 200, exclusive = 50, max = 99 }"
                .to_owned(),
            ["routing.room", "shared_buffers"],
        ),
        (
            "routing = \"minimal-adaptive\"\nvls = 3\ninjection = { queues = 4, choice = \"dor\" }".to_owned(),
            ["injection.choice", "shortest"],
        ),
        (
            "routing = { bubble = \"smart\", vcs = 2 }\nvls = 4\ninjection = { queues = 4, choice = \"dor\" }"
                .to_owned(),
            ["injection", "as many vls"],
        ),
    ] {
        let config: FabricConfig = format!("kind = \"credit\"\nmtu = \"512B\"\n{keys}\n{TORUS}").parse().unwrap();
        let traffic = TrafficConfig::default();
        let error = traffic::run(&traffic, &config, 1, RunOptions::default(), &AtomicBool::new(false), &mut |_| {});
        let error = error.map(|_| ()).unwrap_err().to_string();
        for needle in needles {
            assert!(error.contains(needle), "{keys}: {error}");
        }
    }
}
