//! Every routing leads every packet to its host, by shortest ways where it promises them, and up*/down* and
//! dimension-order routing never close a circle of waits.

use crate::common::{ANYWHERE, UPWARDS, any_graph, any_grid, any_tree, distances, nodes, walk};
use netsim::routing::{DeadlockFreedom, Routes, RoutingConfig};
use netsim::topology::Topology;
use proptest::prelude::*;

/// Walks between all pairs, and looks at the lengths. `draw` stands for keys, flows and credits.
fn check_all_pairs(topology: &Topology, config: &RoutingConfig, draw: u64, shortest: bool) {
    let routes = Routes::new(config, topology, draw).unwrap();
    for source in 0..topology.hosts() {
        let distances = distances(topology, source);
        for destination in (0..topology.hosts()).filter(|host| *host != source) {
            let way = walk(topology, &routes, (source, destination), (draw, draw / 3), |ways| draw as usize % ways);
            let least = distances[destination as usize];
            if shortest {
                assert_eq!(way.len(), least, "{config} from {source} to {destination}: {way:?}");
            }
            let passed = nodes(topology, &way);
            let mut once = passed.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), passed.len(), "{config} passes a node twice: {passed:?}");
        }
    }
}

/// The table that a routing writes leads the same ways, and is written again as it was.
fn check_table(topology: &Topology, config: &RoutingConfig) {
    let routes = Routes::new(config, topology, 1).unwrap();
    let text = routes.to_table(topology).unwrap();
    let again = Routes::from_table(&text, "routes.txt", topology).unwrap();
    assert_eq!(again.to_table(topology).unwrap(), text);
    for source in 0..topology.hosts() {
        for destination in (0..topology.hosts()).filter(|host| *host != source) {
            let ends = (source, destination);
            let (one, other) =
                (walk(topology, &routes, ends, (0, 0), |_| 0), walk(topology, &again, ends, (0, 0), |_| 0));
            assert_eq!(nodes(topology, &one), nodes(topology, &other));
            assert!(one.iter().zip(&other).all(|(one, other)| one.link == other.link));
        }
    }
}

proptest! {
    #[test]
    fn all_routings_of_graphs_lead_everywhere(topology in any_graph(), draw in any::<u64>()) {
        for config in ANYWHERE.iter().chain(&UPWARDS) {
            check_all_pairs(&topology, config, draw, *config != RoutingConfig::UpDown);
        }
        check_table(&topology, &RoutingConfig::DModK);
        check_table(&topology, &RoutingConfig::Shortest);
    }

    #[test]
    fn all_routings_of_trees_lead_everywhere_and_close_no_circle(topology in any_tree(), draw in any::<u64>()) {
        for config in ANYWHERE.iter().chain(&UPWARDS) {
            check_all_pairs(&topology, config, draw, true);
            let routes = Routes::new(config, &topology, draw).unwrap();
            prop_assert_eq!(routes.deadlock_freedom(&topology).unwrap(), DeadlockFreedom::UpThenDown);
            prop_assert_eq!(routes.cycle(&topology), None);
        }
        check_table(&topology, &RoutingConfig::DModK);
        check_table(&topology, &RoutingConfig::UpDown);
    }

    #[test]
    fn all_routings_of_meshes_and_tori_lead_everywhere(topology in any_grid(), draw in any::<u64>()) {
        for config in ANYWHERE.iter().chain(&[RoutingConfig::Dor, RoutingConfig::Bubble]) {
            check_all_pairs(&topology, config, draw, *config != RoutingConfig::UpDown);
        }
        for config in [RoutingConfig::Dor, RoutingConfig::Bubble] {
            let routes = Routes::new(&config, &topology, draw).unwrap();
            prop_assert_eq!(routes.cycle(&topology), None, "{} closes a circle", config);
            prop_assert!(routes.deadlock_freedom(&topology).is_ok());
            check_table(&topology, &config);
        }
    }

    #[test]
    fn up_down_never_closes_a_circle_and_never_goes_up_after_down(topology in any_graph()) {
        let routes = Routes::new(&RoutingConfig::UpDown, &topology, 1).unwrap();
        prop_assert_eq!(routes.deadlock_freedom(&topology).unwrap(), DeadlockFreedom::UpThenDown);
        prop_assert_eq!(routes.cycle(&topology), None);
    }

    /// The tables of a graph and the arithmetic of a tree offer the same links.
    #[test]
    fn a_tree_as_a_graph_is_routed_the_same(topology in any_tree(), flow in any::<u64>()) {
        let graph = netsim::topology::Graph::of(&topology);
        let same = netsim::topology::GraphConfig::default().topology(&graph, "tree", &[]).unwrap();
        for config in [RoutingConfig::Ecmp, RoutingConfig::Random, RoutingConfig::Shortest] {
            let reckoned = Routes::new(&config, &topology, 5).unwrap();
            let tabled = Routes::new(&config, &same, 5).unwrap();
            for source in 0..topology.hosts() {
                for destination in (0..topology.hosts()).filter(|host| *host != source) {
                    let ends = (source, destination);
                    let one = walk(&topology, &reckoned, ends, (flow, flow), |_| 0);
                    let other = walk(&same, &tabled, ends, (flow, flow), |_| 0);
                    prop_assert_eq!(one, other);
                }
            }
        }
    }
}
