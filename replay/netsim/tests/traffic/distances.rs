//! INSEE's patterns by distance and region, lengths of messages, and hosts that hand over so many messages or wait for room.

use netsim::fabric::FabricConfig;
use netsim::traffic::{self, Destinations, RunOptions, TrafficConfig, TrafficRun};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::AtomicBool;

fn config(keys: &str) -> TrafficConfig {
    keys.parse().unwrap()
}

/// Where `draws` messages of `source` go, each with its number.
fn drawn(keys: &str, hosts: u32, source: u32, draws: u64) -> BTreeMap<u32, u64> {
    let config = config(keys);
    config.check().unwrap();
    let destinations = Destinations::new(&config, hosts).unwrap();
    let mut counts = BTreeMap::new();
    for count in 0..draws {
        *counts.entry(destinations.destination(5, source, count).unwrap()).or_default() += 1;
    }
    counts
}

/// Whether `count` of `draws` is what a share gives, within 4 standard deviations.
fn assert_share(count: u64, draws: u64, share: f64, what: &str) {
    let mean = draws as f64 * share;
    let deviation = (mean * (1.0 - share)).sqrt();
    assert!((count as f64 - mean).abs() <= 4.0 * deviation, "{what}: {count} of {draws}, not {mean}");
}

#[test]
fn a_hot_region_gets_its_share_and_what_goes_anywhere() {
    // An eighth of 64 hosts: 0 to 7. Host 20 is none of them.
    let counts = drawn("pattern = \"hot-region\"", 64, 20, 100_000);
    let region = 0.25 + 0.75 * 8.0 / 63.0;
    assert_share((0..8).map(|host| counts[&host]).sum(), 100_000, region, "the region");
    (0..8).for_each(|host| assert_share(counts[&host], 100_000, region / 8.0, "a host of the region"));
    assert_share(counts[&40], 100_000, 0.75 / 63.0, "another host");
    assert!(!counts.contains_key(&20));
}

#[test]
fn local_goes_as_far_as_its_shares_say_in_each_dimension_by_itself() {
    let draws = 100_000;
    let counts = drawn("pattern = \"local\"\nsides = [16, 20]", 320, 0, draws);
    assert!(!counts.contains_key(&0), "to itself");
    // Without what would go to itself: (0.5 / 3) squared.
    let all = 1.0 - 1.0 / 36.0;
    let share = |steps: u32, side: u32| match steps.min(side - steps) {
        0 | 1 => 0.5 / 3.0,
        2 | 3 => 0.25 / 4.0,
        4..=7 => 0.125 / 8.0,
        _ => 0.125 / f64::from(side - 15),
    };
    for to in 1..320u32 {
        let expected = share(to % 16, 16) * share(to / 16, 20) / all;
        assert_share(counts.get(&to).copied().unwrap_or(0), draws, expected, &format!("host {to}"));
    }
    // Another host sees the same, shifted.
    let config = config("pattern = \"local\"\nsides = [16, 16]");
    let destinations = Destinations::new(&config, 256).unwrap();
    assert!((0..10_000).all(|count| destinations.destination(1, 255, count).unwrap() != 255));
}

#[test]
fn a_tornado_goes_round_the_dimensions_that_are_named() {
    let fixed = |keys: &str, hosts| {
        let destinations = Destinations::new(&config(keys), hosts).unwrap();
        (0..hosts).map(|source| destinations.destination(1, source, 0).unwrap()).collect::<Vec<_>>()
    };
    let both = fixed("pattern = \"tornado\"\nsides = [8, 4]\ndimensions = [0, 1]", 32);
    let expected: Vec<u32> = (0..32).map(|s| (s % 8 + 4) % 8 + 8 * ((s / 8 + 2) % 4)).collect();
    assert_eq!(both, expected);
    // The first dimension alone is what radix says.
    assert_eq!(fixed("pattern = \"tornado\"\nsides = [8, 4]", 32), fixed("pattern = \"tornado\"\nradix = 8", 32));
    // INSEE's program: 3 hosts on, into the next row.
    let all = fixed("pattern = \"tornado\"\nsides = [8, 4]\nwrap = \"all\"", 32);
    assert_eq!(all, (0..32).map(|s| (s + 3) % 32).collect::<Vec<_>>());
}

#[test]
fn distances_have_the_weights_of_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let draws = 60_000;
    // On an 8x8 torus 4 hosts are 1 away, 1 is 8 away.
    let histogram = file("histogram", "# distance, weight\n1 3\n8 1\n\n2 0\n");
    let keys = format!("pattern = \"histogram\"\nsides = [8, 8]\ndistances = \"{histogram}\"");
    let counts = drawn(&keys, 64, 9, draws);
    assert_eq!(counts.len(), 5);
    for near in [8, 10, 1, 17] {
        assert_share(counts[&near], draws, 0.75 / 4.0, "1 away");
    }
    assert_share(counts[&45], draws, 0.25, "8 away");
    let population = file("population", "1\n1\n1\n8\n");
    let keys = format!("pattern = \"population\"\nsides = [8, 8]\ndistances = \"{population}\"");
    assert_share(drawn(&keys, 64, 9, draws)[&45], draws, 0.25, "8 away");
    for (text, needles) in [
        ("1 1\n9 1\n", &[":2", "9 away", "1 to 8"][..]),
        ("0 1\n", &[":1", "0 away"]),
        ("1\n", &[":1", "weight is missing"]),
        ("1 -2\n", &[":1", "-2"]),
        ("1 inf\n", &[":1", "inf"]),
        ("1 1 1\n", &[":1", "behind the weight"]),
        ("x 1\n", &[":1", "distance"]),
        ("", &["weight above 0"]),
        ("99999999999999999999999 1\n", &[":1"]),
    ] {
        let path = file("wrong", text);
        let keys = format!("pattern = \"histogram\"\nsides = [8, 8]\ndistances = \"{path}\"");
        let error = Destinations::new(&config(&keys), 64).unwrap_err().to_string();
        needles.iter().for_each(|needle| assert!(error.contains(needle), "{text:?}: {error}"));
    }
}

#[test]
fn keys_that_do_not_fit_are_told() {
    for (keys, needles) in [
        ("sides = [8, 8]", &["traffic.sides", "\"tornado\" or \"local\""][..]),
        ("pattern = \"local\"\nsides = [8, 8]", &["traffic.sides", "16 at least"]),
        ("pattern = \"local\"\nsides = [16, 16, 2]", &["traffic.sides", "64"]),
        ("pattern = \"local\"\nsides = [4294967295, 4294967295, 4294967295]", &["traffic.sides", "64"]),
        ("pattern = \"local\"\nsides = []", &["traffic.sides"]),
        ("pattern = \"tornado\"\nsides = [8, 8]\ndimensions = [2]", &["traffic.dimensions", "0 to 1"]),
        ("pattern = \"tornado\"\nsides = [8, 8]\nradix = 8", &["traffic.radix", "sides"]),
        ("pattern = \"tornado\"\ndimensions = [0]", &["traffic.dimensions", "sides"]),
        ("pattern = \"tornado\"\nsides = [8, 8]\nshift = 8", &["traffic.shift"]),
        ("pattern = \"histogram\"", &["traffic.distances", "path"]),
        ("pattern = \"histogram\"\nsides = [8, 8]\ndistances = \"/none\"", &["traffic.distances", "/none"]),
        ("pattern = \"hot-region\"\nregion = 1.5", &["traffic.region"]),
        ("region = 0.5", &["traffic.region", "hot-region"]),
        ("lengths = [{ packets = 1, share = 1.0 }]", &["traffic.lengths", "traffic.flits"]),
        ("flits = 4\nlengths = [{ packets = 1, share = 0.5 }]", &["traffic.lengths", "add up"]),
        ("flits = 4\nlengths = [{ share = 1.0 }]", &["traffic.lengths", "one of both"]),
        ("flits = 4\nlengths = [{ packets = 1, share = nan }]", &["traffic.lengths", "0.0 to 1.0"]),
        ("flits = 4\nlengths = [{ size = \"8B\", share = 1.0 }]", &["traffic.lengths"]),
        ("size = \"8B\"\nlengths = [{ size = \"8B\", share = 1.0 }]", &["traffic.size", "lengths"]),
        ("share_of = \"packets\"", &["traffic.share_of", "lengths"]),
        ("react = { probability = 0.5, messages = [1, 3] }", &["traffic.react", "less than 1"]),
        ("react = { probability = 1.5, messages = [1, 1] }", &["traffic.react.probability"]),
        ("react = { probability = 0.1, messages = [3, 1] }", &["traffic.react.messages", "[3, 1]"]),
        ("count = 5\nreact = { probability = 0.1, messages = [1, 1] }", &["traffic.react", "count"]),
        ("network_limit = 0.0", &["traffic.network_limit"]),
        ("network_limit_every = \"5 cycles\"", &["traffic.network_limit_every", "network_limit"]),
        ("count = 5\nnetwork_limit = 0.5", &["traffic.network_limit", "count"]),
        ("count = 0", &["traffic.count"]),
        ("count = 5\ndrain = \"5 cycles\"", &["traffic.drain", "count"]),
    ] {
        let config = config(keys);
        let error = config.check().err().or_else(|| Destinations::new(&config, 64).err());
        let error = error.unwrap_or_else(|| panic!("{keys} is taken")).to_string();
        needles.iter().for_each(|needle| assert!(error.contains(needle), "{keys}: {error}"));
    }
}

/// Traffic over a torus of 8x8 with packets of 16 flits.
fn run(keys: &str) -> TrafficRun {
    let fabric: FabricConfig =
        "kind = \"credit\"\nflit = \"4B\"\nmtu = \"64B\"\nheaders = \"0B\"\ncredits = 4\nswitch_delay = \"0ns\"\nvls = 2\n\
         routing = { dally = \"trc\" }\n[topology]\nshape = \"torus\"\nsize = [8, 8]"
            .parse()
            .unwrap();
    traffic::run(&config(keys), &fabric, 3, RunOptions::default(), &AtomicBool::new(false), &mut |_| {}).unwrap()
}

#[test]
fn messages_of_several_lengths_come_with_their_shares_and_keep_the_load() {
    let lengths = "lengths = [{ packets = 1, share = 0.9 }, { packets = 9, share = 0.1 }]";
    let run_of = |more: &str| run(&format!("flits = 16\nload = 0.2\nwarm_up = \"0 cycles\"\n{lengths}\n{more}"));
    // 1.8 packets a message; by packets 0.9 / (0.9 + 0.1 / 9) = 0.988 of the messages are short.
    for (more, long) in [("", 0.1), ("share_of = \"packets\"", (0.1 / 9.0) / (0.9 + 0.1 / 9.0))] {
        let figures = run_of(more).figures;
        let packets_a_message = 1.0 + 8.0 * long;
        let long_messages = (figures.packets - figures.messages) / 8;
        assert_share(long_messages, figures.messages, long, more);
        let offered = figures.offered_load.unwrap();
        assert!((offered - 0.2).abs() < 0.01, "{offered} with {packets_a_message} packets a message");
    }
}

#[test]
fn a_count_of_messages_ends_the_run_when_they_have_arrived() {
    let figures = run("flits = 16\nload = 0.3\ncount = 25").figures;
    assert_eq!((figures.messages, figures.packets, figures.undelivered), (64 * 25, 64 * 25, 0));
    assert_eq!(figures.packet.count(), 64 * 25);
    // Silent hosts of a permutation hand over none.
    let figures = run("pattern = \"transpose\"\nflits = 16\ncount = 3").figures;
    assert_eq!((figures.messages, figures.packets), (56 * 3, 56 * 3));
    // As many, whatever the load: the last is handed over later.
    let slow = run("flits = 16\nload = 0.01\ncount = 25").figures;
    assert_eq!(slow.packets, 64 * 25);
}

#[test]
fn hosts_that_are_full_hand_nothing_over() {
    let keys = "flits = 16\nload = 1.0\nwarm_up = \"2000 cycles\"\nmeasurement = \"8000 cycles\"\ndrain = \"1 cycles\"";
    let bounded = run(&format!("{keys}\ninjection_queue = 4")).figures;
    let free = run(keys).figures;
    // At most 4 wait, and one more that found no room; without a limit they pile up.
    let waiting = bounded.source_queue.unwrap();
    assert!(waiting > 3.0 && waiting <= 5.0, "{waiting}");
    assert!(free.source_queue.unwrap() > 20.0);
    // The network is as full, but for the chance of other messages, and no longer offered more than it takes.
    let (accepted, full) = (bounded.accepted_load.unwrap(), free.accepted_load.unwrap());
    assert!((accepted / full - 1.0).abs() < 0.05, "{accepted} {full}");
    assert!((bounded.offered_load.unwrap() / accepted - 1.0).abs() < 0.02);
    // Below saturation nobody is full.
    let low = "flits = 16\nload = 0.1";
    let (with, without) = (run(&format!("{low}\ninjection_queue = 50")).figures, run(low).figures);
    assert_eq!((with.messages, with.packet.sum()), (without.messages, without.packet.sum()));
}

#[test]
fn nobody_hands_over_while_the_network_holds_more_than_its_limit() {
    let keys = "flits = 16\nload = 1.0\nwarm_up = \"2000 cycles\"\nmeasurement = \"8000 cycles\"\ndrain = \"1 cycles\"";
    // 256 links with 2 VLs of 4 packets: 2,048 packets fit between the routers.
    let of = |more: &str| run(&format!("{keys}\ninjection_queue = 4\n{more}")).figures;
    let free = of("").in_network.unwrap();
    let limited = of("network_limit = 0.125").in_network.unwrap();
    // Above the limit what waits at the hosts still leaves, 5 packets of each at most.
    assert!(limited < 0.8 * free && limited > 128.0, "{limited} of {free}");
    assert_eq!(of("network_limit = 1.0").in_network.unwrap(), free);
    // Told late, hosts go on longer and stop longer.
    let late = of("network_limit = 0.125\nnetwork_limit_every = \"1000 cycles\"");
    assert!(late.in_network.unwrap() > 64.0 && late.accepted_load.unwrap() < of("").accepted_load.unwrap());
}

#[test]
fn deliveries_bring_about_as_many_messages_as_their_branching_says() {
    let keys = "flits = 16\nload = 0.1\nwarm_up = \"4000 cycles\"\nmeasurement = \"60000 cycles\"";
    let alone = run(keys).figures;
    for (react, mean) in [("probability = 0.5, messages = [1, 1]", 0.5), ("probability = 0.2, messages = [1, 3]", 0.4)]
    {
        let figures = run(&format!("{keys}\nreact = {{ {react} }}")).figures;
        // Each independent message is followed by m, m^2, ...: 1 / (1 - m) in all. The sum of such families has the deviation
        // of a branching process, at most sqrt(n (1 + mean of squares / (1 - m)^3)).
        let families = alone.messages as f64;
        let expected = families / (1.0 - mean);
        let deviation = (families * (1.0 + 2.0 / (1.0f64 - mean).powi(3))).sqrt();
        let found = figures.messages as f64;
        assert!((found - expected).abs() < 3.0 * deviation, "{react}: {found}, not {expected} +- {deviation}");
        assert_eq!(figures.undelivered, 0);
    }
    // No reaction is no change.
    let none = run(&format!("{keys}\nreact = {{ probability = 0.0, messages = [1, 1] }}")).figures;
    assert_eq!((none.messages, none.packet.sum()), (alone.messages, alone.packet.sum()));
}

#[test]
fn hosts_are_told_what_waits_by_fabrics_that_know() {
    let refused = |kind: &str, keys: &str| {
        let topology = if kind == "ideal" { "" } else { "[topology]\nshape = \"single-switch\"" };
        let fabric: FabricConfig = format!("kind = \"{kind}\"\n{topology}").parse().unwrap();
        let config = config(&format!(
            "hosts = 4\nload = 2.0\nwarm_up = \"100 cycles\"\nmeasurement = \"1000 cycles\"\ndrain = \"1 cycles\"\n{keys}"
        ));
        let run = traffic::run(&config, &fabric, 3, RunOptions::default(), &AtomicBool::new(false), &mut |_| {});
        run.err().map(|error| error.to_string())
    };
    for kind in ["store-and-forward", "ideal", "ethernet"] {
        for keys in ["injection_queue = 4", "network_limit = 0.5"] {
            let error = refused(kind, keys).unwrap();
            assert!(error.contains(&format!("traffic.{}", &keys[..13])), "{kind}: {error}");
        }
    }
    for kind in ["credit", "omni-path", "input-queued", "input-output-queued"] {
        assert_eq!(refused(kind, "injection_queue = 4"), None, "{kind}");
        assert_eq!(refused(kind, "network_limit = 0.5").is_some(), kind != "credit", "{kind}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever a file of distances holds: it is refused by its key, or leads to other hosts.
    #[test]
    fn any_file_of_distances_is_taken_or_refused(
        text in prop_oneof!["[0-9 .\n#e+-]{0,60}", "([1-9] [0-9.]{1,4}\n){0,4}", "\\PC{0,40}"],
        population in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("distances");
        fs::write(&path, text).unwrap();
        let pattern = if population { "population" } else { "histogram" };
        let keys = format!("pattern = \"{pattern}\"\nsides = [8, 8]\ndistances = \"{}\"", path.display());
        match Destinations::new(&config(&keys), 64) {
            Ok(destinations) => (0..64).for_each(|source| {
                let to = destinations.destination(1, source, 7).unwrap();
                assert!(to < 64 && to != source);
            }),
            Err(error) => prop_assert!(error.to_string().contains("traffic.distances"), "{}", error),
        }
    }
}
