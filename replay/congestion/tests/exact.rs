//! What is known exactly, and what holds for any network.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use congestion::{
    Experiment, Histogram, Joined, Listed, Pair, Paths, Pattern, Results, Sends, Subset, Summary, Transfer, bandwidth,
    quality,
};
use netsim::routing::{Routes, RoutingConfig};
use netsim::topology::{Format, Graph, GraphConfig, NodeId, Topology, TopologyConfig};

fn topology(keys: &str) -> Topology {
    toml::from_str::<TopologyConfig>(keys).unwrap().build(&[]).unwrap()
}

const SWITCH: &str = "shape = \"single-switch\"\nnodes = 16";
const TREE: &str = "shape = \"k-ary-n-tree\"\nk = 4\nn = 2";

fn experiment(pattern: Pattern) -> Experiment {
    Experiment {
        pattern: Joined { first: pattern, against: None },
        hosts: None,
        subset: Subset::default(),
        shuffled: true,
        level: None,
        runs: 20,
        seed: 1,
        sends: Sends::Free,
        threads: 2,
    }
}

fn run_by(keys: &str, routing: &RoutingConfig, experiment: &Experiment) -> Results {
    let topology = topology(keys);
    let routes = Routes::new(routing, &topology, 1).unwrap();
    experiment.run(&Paths::new(&topology, &routes).unwrap(), || {}).unwrap()
}

fn run(keys: &str, experiment: &Experiment) -> Results {
    run_by(keys, &RoutingConfig::DModK, experiment)
}

fn pattern(name: &str) -> Pattern {
    name.parse().unwrap()
}

#[test]
fn a_single_switch_is_never_congested_by_permutations() {
    for (name, levels) in
        [("bisect", 1), ("bisect_fb_sym", 1), ("rand", 1), ("bruck", 4), ("tree", 4), ("ring", 16), ("recdbl", 4)]
    {
        let found = run(SWITCH, &experiment(pattern(name)));
        assert_eq!(found.sum_max, Histogram::from([(levels, 20)]), "{name}");
        assert_eq!(
            found.bandwidth.summary().map(|runs| (runs.min, runs.max, runs.runs)),
            Some((1.0, 1.0, 20)),
            "{name}"
        );
        assert!(found.congestion.keys().all(|weight| *weight == 1), "{name}");
        if name == "tree" {
            assert_eq!(found.delay, Histogram::from([(4, 20)]));
        }
    }
}

#[test]
fn all_that_is_gathered_or_scattered_shares_the_link_of_the_root() {
    for keys in [SWITCH, TREE, "shape = \"torus\"\nsize = [4, 4]"] {
        for name in ["gather", "scatter"] {
            let found = run_by(keys, &RoutingConfig::Shortest, &experiment(pattern(name)));
            assert_eq!(found.sum_max, Histogram::from([(15, 20)]), "{keys} {name}");
            assert_eq!(found.congestion, Histogram::from([(15, 15 * 20)]), "{keys} {name}");
        }
    }
}

#[test]
fn a_ring_is_one_message_after_the_other() {
    let all_runs = |value| Histogram::from([(value, 20)]);
    let ring = run(TREE, &experiment(Pattern::Ring));
    assert_eq!((ring.sum_max, ring.delay), (all_runs(16), all_runs(16)));
    assert_eq!(ring.bandwidth.bins[19], 20);
    let null = run(TREE, &experiment(Pattern::Null));
    assert_eq!((null.sum_max, null.delay, null.bandwidth.summary()), (all_runs(0), all_runs(0), None));
}

#[test]
fn the_bandwidth_is_that_of_listing_3() {
    let found = bandwidth(&Histogram::from([(1, 14), (2, 44), (3, 6)])).unwrap();
    assert!((found - 0.593_75).abs() < 1e-12);
}

#[test]
fn d_mod_k_spreads_all_pairs_evenly_over_trees() {
    for (k, n) in [(4, 2), (2, 3), (4, 3)] {
        let topology = topology(&format!("shape = \"k-ary-n-tree\"\nk = {k}\nn = {n}"));
        let routes = Routes::new(&RoutingConfig::DModK, &topology, 1).unwrap();
        let found = quality(&Paths::new(&topology, &routes).unwrap(), 2).unwrap();
        let hosts = u64::from(topology.hosts());
        // A link out of level l carries k^n - k^l; the mean is over levels 1 to n - 1, each with as many links.
        let loads: Vec<u64> = (1..n).map(|level| hosts - u64::pow(k, level)).collect();
        let mean = loads.iter().sum::<u64>() as f64 / loads.len() as f64;
        assert!((found.mean - mean).abs() < 1e-9, "{k} {n}: {found:?}");
        assert_eq!(found.most, loads[0]);
        if n == 2 {
            assert!(found.deviation.abs() < 1e-12);
        }
    }
}

#[test]
fn shifts_are_free_of_congestion_where_ranks_are_in_order() {
    for keys in [TREE, "shape = \"k-ary-n-tree\"\nk = 4\nn = 3"] {
        for by in 1..16 {
            let found =
                run(keys, &Experiment { shuffled: false, subset: Subset::First, ..experiment(Pattern::Shift(by)) });
            assert!(found.congestion.keys().all(|weight| *weight == 1), "{keys} {by}");
        }
    }
    // In another order they are not.
    assert!(run(TREE, &experiment(Pattern::Shift(1))).congestion.len() > 1);
}

/// Calls `each` with every way to pair up `left`.
fn matchings(left: &mut Vec<u32>, chosen: &mut Vec<(u32, u32)>, each: &mut impl FnMut(&[(u32, u32)])) {
    let Some(first) = left.pop() else { return each(chosen) };
    for other in 0..left.len() {
        let partner = left.remove(other);
        chosen.push((first, partner));
        matchings(left, chosen, each);
        chosen.pop();
        left.insert(other, partner);
    }
    left.push(first);
}

/// Nothing drawn: all 2,027,025 ways to pair 16 hosts, counted over the paths that the crate walks.
#[test]
fn all_matchings_of_the_4_ary_2_tree_have_the_exact_distribution() {
    let topology = topology(TREE);
    let routes = Routes::new(&RoutingConfig::DModK, &topology, 1).unwrap();
    let paths = Paths::new(&topology, &routes).unwrap();
    let mut walked = vec![Vec::new(); 256];
    for from in 0..16u32 {
        for to in 0..16u32 {
            let path = &mut walked[(from * 16 + to) as usize];
            paths.walk(NodeId(from), NodeId(to), path).unwrap();
        }
    }
    let mut counts = vec![0u8; topology.links().len()];
    // The bandwidth of a message in twelfths, so that 1/3 is exact.
    let (mut shares, mut sum, mut all, mut weights) = (Histogram::new(), 0u64, 0u64, [0u64; 5]);
    matchings(&mut (0..16).collect(), &mut Vec::new(), &mut |pairs| {
        counts.fill(0);
        let both = || pairs.iter().flat_map(|(a, b)| [a * 16 + b, b * 16 + a]);
        for link in both().flat_map(|pair| &walked[pair as usize]) {
            counts[link.0 as usize] += 1;
        }
        let mut twelfths = 0;
        for pair in both() {
            let weight = walked[pair as usize].iter().map(|link| counts[link.0 as usize]).max().unwrap();
            weights[usize::from(weight)] += 1;
            twelfths += 12 / u64::from(weight);
        }
        *shares.entry(twelfths).or_default() += 1;
        (sum, all) = (sum + twelfths, all + 1);
    });
    assert_eq!(all, 2_027_025);
    // The mean is 591/715, in units of 1/192 of full bandwidth.
    assert_eq!(sum * 715, all * 192 * 591);
    let sixteenths = [3_744, 13_824, 89_280, 138_816, 386_640, 451_872, 538_704, 288_576, 115_569];
    let table: Histogram = (8..=16).map(|sixteenth| sixteenth * 12).zip(sixteenths).collect();
    assert_eq!(shares, table);
    assert_eq!(all * 12_841, 115_569 * 225_225);
    let part = |weight: usize| weights[weight] as f64 / (all * 16) as f64;
    assert!(
        (part(1) - 0.664_336).abs() < 1e-6 && (part(2) - 0.302_098).abs() < 1e-6 && (part(3) - 0.033_566).abs() < 1e-6
    );
}

#[test]
fn random_mappings_come_to_the_known_means() {
    let networks = [
        (TREE, [0.9085, 0.8260, 0.8354, 0.8337, 0.9406]),
        ("shape = \"m-port-n-tree\"\nm = 8\nn = 2", [0.8683, 0.7543, 0.7579, 0.7579, 0.9119]),
        ("shape = \"k-ary-n-tree\"\nk = 4\nn = 3", [0.7947, 0.6464, 0.6500, 0.6497, 0.8607]),
        ("shape = \"thin-tree\"\nk = 4\nk_up = 2\nn = 3", [0.4610, 0.3231, 0.3263, 0.3262, 0.5906]),
    ];
    for (keys, means) in networks {
        for (name, mean) in ["bisect", "bisect_fb_sym", "rand", "bruck", "tree"].into_iter().zip(means) {
            let found = run(keys, &Experiment { runs: 4_000, ..experiment(pattern(name)) });
            let summary: Summary = found.bandwidth.summary().unwrap();
            let error = summary.half_width_99 + 0.004;
            assert!((summary.mean - mean).abs() < error, "{keys} {name}: {} for {mean} ± {error}", summary.mean);
        }
    }
}

#[test]
fn results_are_the_same_for_any_number_of_threads() {
    for subset in [Subset::LinearBfs, Subset::Rand] {
        let of = |threads| {
            let against = Some((7, Pattern::Rand));
            let pattern = Joined { first: Pattern::Bruck, against };
            run(
                TREE,
                &Experiment { threads, subset: subset.clone(), hosts: Some(13), pattern, ..experiment(Pattern::Null) },
            )
        };
        assert_eq!(of(1), of(3));
        assert_eq!(of(1), of(64));
    }
}

#[test]
fn a_load_is_a_path_that_passes() {
    for name in ["rand", "bruck", "recdbl", "6neighbor", "tree"] {
        let found = run(TREE, &experiment(pattern(name)));
        assert_eq!(found.links.iter().sum::<u64>(), found.visits, "{name}");
        assert_eq!(found.bandwidth.bins.iter().sum::<u64>(), 20, "{name}");
    }
}

#[test]
fn transfers_take_as_long_as_the_link_with_most_time() {
    // Two racks of two hosts; links of hosts have 10 Gbit/s, the two between each rack and the cores 1 Gbit/s.
    let topology = topology(
        "shape = \"xgft\"\nm = [2, 2]\nw = [1, 2]\nhost_link = { rate = \"10Gbps\" }\nuplink = { rate = \"1Gbps\" }",
    );
    let transfers = |list: &[(u32, u32, u64)]| -> Vec<Transfer> {
        list.iter().map(|(from, to, bytes)| Transfer { from: *from, to: *to, bytes: *bytes }).collect()
    };
    let in_order = Experiment { shuffled: false, subset: Subset::First, runs: 1, ..experiment(Pattern::Null) };
    let times = |routing: &RoutingConfig, list: &[(u32, u32, u64)]| {
        let routes = Routes::new(routing, &topology, 1).unwrap();
        let paths = Paths::new(&topology, &routes).unwrap();
        let found = in_order.share(&paths, &transfers(list), || {}).unwrap();
        (found.links.seconds().unwrap().mean, found.host_links.seconds().unwrap().mean, found.bytes)
    };
    let list = [(0, 2, 125_000_000), (1, 3, 250_000_000), (0, 1, 1_250_000_000), (3, 3, 99)];
    // D-mod-k takes one core for host 2 and the other for host 3; the first shortest path takes one for both.
    let (links, hosts, bytes) = times(&RoutingConfig::DModK, &list);
    assert_eq!((links, hosts), (2.0, 1.1));
    assert_eq!(bytes.iter().sum::<u64>(), 4 * (125_000_000 + 250_000_000) + 2 * 1_250_000_000);
    let (links, hosts, _) = times(&RoutingConfig::Shortest, &list);
    assert_eq!((links, hosts), (3.0, 1.1));
    // Any mapping, on any number of threads.
    let routes = Routes::new(&RoutingConfig::DModK, &topology, 1).unwrap();
    let paths = Paths::new(&topology, &routes).unwrap();
    let of = |threads| {
        let random = Experiment { threads, runs: 40, ..experiment(Pattern::Null) };
        random.share(&paths, &transfers(&list), || {}).unwrap()
    };
    assert_eq!(of(1), of(3));
    assert_eq!(of(1).links.seconds().unwrap().runs, 40);
}

fn level(pattern: Pattern, level: usize, n: u32) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    pattern.level(level, n, 0, 1, 0, &mut pairs);
    pairs.into_iter().map(|Pair { from, to }| (from, to)).collect()
}

#[test]
fn patterns_are_as_defined() {
    assert_eq!(level(Pattern::Bisect, 0, 5), [(1, 0), (3, 2)]);
    assert_eq!(level(Pattern::Tree, 2, 6), [(0, 4), (1, 5)]);
    assert_eq!(level(Pattern::Bruck, 1, 3), [(0, 2), (1, 0), (2, 1)]);
    assert_eq!(level(Pattern::RecursiveDoubling, 1, 4), [(0, 2), (2, 0), (1, 3), (3, 1)]);
    assert_eq!(level(Pattern::Ring, 2, 3), [(2, 0)]);
    assert_eq!(level(Pattern::Neighbor(2), 0, 4), [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)]);
    assert_eq!(Pattern::Tree.levels(800), 10);
    for n in 2..40 {
        let drawn = level(Pattern::Rand, 0, n);
        let mut receivers: Vec<u32> = drawn.iter().map(|(_, to)| *to).collect();
        receivers.sort_unstable();
        assert_eq!(receivers, (0..n).collect::<Vec<_>>());
        assert!(drawn.iter().all(|(from, to)| from != to));
    }
}

#[test]
fn the_second_pattern_begins_again_until_the_first_ends() {
    let joined = Joined { first: Pattern::Tree, against: Some((4, Pattern::Bisect)) };
    assert_eq!(joined.levels(8), 2);
    let mut pairs = Vec::new();
    joined.level(1, 8, 1, 0, &mut pairs);
    let pairs: Vec<_> = pairs.into_iter().map(|pair| (pair.from, pair.to)).collect();
    assert_eq!(pairs, [(0, 2), (1, 3), (5, 4), (7, 6)]);
}

#[test]
fn what_cannot_be_run_is_said() {
    let topology = topology(TREE);
    let refused = |experiment: &Experiment, routing: &RoutingConfig| {
        let routes = Routes::new(routing, &topology, 1).unwrap();
        let ran = Paths::new(&topology, &routes).and_then(|paths| experiment.run(&paths, || {}));
        ran.unwrap_err().to_string()
    };
    let bisect = experiment(Pattern::Bisect);
    let d_mod_k = &RoutingConfig::DModK;
    assert!(refused(&bisect, &RoutingConfig::Adaptive).contains("no fixed path"));
    assert!(refused(&Experiment { hosts: Some(17), ..bisect.clone() }, d_mod_k).contains("from 2 to 16"));
    assert!(refused(&Experiment { level: Some(1), ..bisect.clone() }, d_mod_k).contains("no level 1"));
    assert!(refused(&Experiment { runs: 0, ..bisect.clone() }, d_mod_k).contains("at least 1"));
    let against = Some((15, Pattern::Null));
    let split = Experiment { pattern: Joined { first: Pattern::Bisect, against }, ..bisect.clone() };
    assert!(refused(&split, d_mod_k).contains("15 of 16"));
    let list = |names: &[&str]| {
        let listed = names.iter().zip(1..).map(|(name, line)| Listed { line, name: (*name).to_owned() });
        Experiment { subset: Subset::Named(listed.collect()), ..bisect.clone() }
    };
    assert!(refused(&list(&["h1", "nobody"]), d_mod_k).starts_with("line 2: host nobody is not"));
    assert!(refused(&list(&["h1", "h2", "h1"]), d_mod_k).starts_with("line 3: host h1 is listed twice"));
    assert_eq!(refused(&list(&["h1"]), d_mod_k), "1 of the hosts can take part: at least 2 are needed");
    assert!("5neighbor".parse::<Pattern>().unwrap_err().to_string().contains("6neighbor"));
}

/// ORCS' listing 1, whose routes to H5 to H8 lead to no hosts.
const LISTING_1: &str = r#"digraph network {
"S1" -> "H1" [ comment = "H1" ];
"S1" -> "H2" [ comment = "H2" ];
"S1" -> "H3" [ comment = "H3" ];
"S1" -> "H4" [ comment = "H4" ];

"H1" -> "S1" [ comment = "*" ];
"H2" -> "S1" [ comment = "*" ];
"H3" -> "S1" [ comment = "*" ];
"H4" -> "S1" [ comment = "*" ];

"S1" -> "S11" [ comment = "H5" ];
"S1" -> "S11" [ comment = "H6" ];
"S1" -> "S12" [ comment = "H7" ];
"S1" -> "S12" [ comment = "H8" ];

"S11" -> "S1" [ comment = "H1,H2" ];
"S11" -> "S1" [ comment = "H3,H4" ];
"S12" -> "S1" [ comment = "H1,H2" ];
"S12" -> "S1" [ comment = "H3,H4" ];
}"#;

#[test]
fn listing_1_has_sixteen_directed_edges_and_bisections_of_full_bandwidth() {
    let graph = Graph::parse(LISTING_1, Format::Dot, "listing 1").unwrap();
    let topology = GraphConfig::default().topology(&graph, "listing 1", &[]).unwrap();
    let between = topology.links().iter().filter(|link| !topology.is_host(link.from) && !topology.is_host(link.to));
    assert_eq!((topology.hosts(), topology.links().len(), between.count()), (4, 16, 8));
    assert_eq!(topology.warnings().len(), 4);
    assert!(topology.warnings()[0].starts_with("listing 1:12: ") && topology.warnings()[0].contains("\"H5\""));
    let strict = GraphConfig { strict: true, ..GraphConfig::default() };
    let refused = strict.topology(&graph, "listing 1", &[]).unwrap_err().to_string();
    assert!(refused.starts_with("listing 1:12: ") && refused.contains("strict = false"), "{refused}");
    let routes = Routes::new(&RoutingConfig::File, &topology, 1).unwrap();
    let paths = Paths::new(&topology, &routes).unwrap();
    let results = experiment(Pattern::Bisect).run(&paths, || ()).unwrap();
    assert_eq!(results.congestion, Histogram::from([(1, 2 * 20)]));
    assert_eq!(bandwidth(&results.congestion), Some(1.0));
    // The routes of S11 and S12, where no host is, are those of the file.
    let s11 = (0..topology.nodes()).map(NodeId).find(|node| topology.name(*node) == "S11").unwrap();
    let by_host: Vec<_> = (0..4).map(|host| topology.route(s11, NodeId(host)).unwrap()).collect();
    assert_eq!(by_host, [topology.out(s11)[0], topology.out(s11)[0], topology.out(s11)[1], topology.out(s11)[1]]);
}
