//! Circles of waits are found where there are some, shown link by link, and not claimed where there are none.

use crate::common::{build, graph};
use netsim::routing::{DeadlockFreedom, Routes, RoutingConfig, RoutingError};
use netsim::topology::Topology;

fn deadlock_freedom(topology: &Topology, config: &RoutingConfig) -> Result<DeadlockFreedom, RoutingError> {
    Routes::new(config, topology, 1).unwrap().deadlock_freedom(topology)
}

fn ring(switches: usize) -> Topology {
    let cables: Vec<(usize, usize)> = (0..switches).map(|switch| (switch, (switch + 1) % switches)).collect();
    graph(switches, &cables, &(0..switches).collect::<Vec<_>>())
}

#[test]
fn shortest_ways_around_a_ring_wait_for_each_other() {
    let topology = ring(5);
    let error = deadlock_freedom(&topology, &RoutingConfig::Shortest).unwrap_err().to_string();
    // Forward or back, all five links of one direction, the first again at the end.
    let forward = "s0->s1, s1->s2, s2->s3, s3->s4, s4->s0, s0->s1";
    let back = "s4->s3, s3->s2, s2->s1, s1->s0, s0->s4, s4->s3";
    let shown = |circle: &str| {
        let links: Vec<&str> = circle.split(", ").take(5).collect();
        (0..5).any(|turn| {
            let turned: Vec<&str> = (0..6).map(|index| links[(turn + index) % 5]).collect();
            error.contains(&turned.join(", "))
        })
    };
    assert!(shown(forward) || shown(back), "{error}");
    assert!(error.contains("up-down"), "{error}");
    // Three are too few: no way has two links.
    assert!(matches!(
        deadlock_freedom(&ring(3), &RoutingConfig::Shortest),
        Ok(DeadlockFreedom::Acyclic { waits: 0.., .. })
    ));
    assert_eq!(deadlock_freedom(&topology, &RoutingConfig::UpDown), Ok(DeadlockFreedom::UpThenDown));
}

#[test]
fn a_circle_is_made_of_links_that_follow_each_other() {
    for topology in [ring(6), build("shape = \"torus\"\nsize = [5, 4]"), build("shape = \"mesh\"\nsize = [3, 3]")] {
        let routes = Routes::new(&RoutingConfig::EcmpPacket, &topology, 1).unwrap();
        let cycle = routes.cycle(&topology).unwrap();
        assert!(cycle.len() > 3 && cycle.first() == cycle.last(), "{cycle:?}");
        for two in cycle.windows(2) {
            assert_eq!(topology.link(two[0].0).to, topology.link(two[1].0).from);
        }
        assert!(matches!(routes.deadlock_freedom(&topology), Err(RoutingError::Deadlock { .. })));
    }
}

#[test]
fn datelines_cut_rings_and_without_them_dimension_order_closes_circles() {
    // In a ring of four nobody goes on behind the second link, so there is no circle to close.
    for size in ["[8]", "[8, 8]", "[5, 5, 5]", "[5, 3]"] {
        let topology = build(&format!("shape = \"torus\"\nsize = {size}"));
        let dor = Routes::new(&RoutingConfig::Dor, &topology, 1).unwrap();
        assert!(matches!(dor.deadlock_freedom(&topology), Ok(DeadlockFreedom::Acyclic { .. })), "{size}");
        assert_eq!(dor.cycle(&topology), None);
        // The same ways from a file, which knows no classes.
        let table = Routes::from_table(&dor.to_table(&topology).unwrap(), "dor.txt", &topology).unwrap();
        let error = table.deadlock_freedom(&topology).unwrap_err().to_string();
        assert!(error.contains("dor.txt") && error.contains("wait for each other"), "{error}");
        let mesh = build(&format!("shape = \"mesh\"\nsize = {size}"));
        let dor = Routes::new(&RoutingConfig::Dor, &mesh, 1).unwrap();
        let table = Routes::from_table(&dor.to_table(&mesh).unwrap(), "dor.txt", &mesh).unwrap();
        assert!(matches!(table.deadlock_freedom(&mesh), Ok(DeadlockFreedom::Acyclic { .. })), "{size}");
    }
}

#[test]
fn bubbles_take_rings_for_one_and_tell_that_they_need_room() {
    let topology = build("shape = \"torus\"\nsize = [5, 4]");
    let bubble = Routes::new(&RoutingConfig::Bubble, &topology, 1).unwrap();
    assert_eq!(bubble.deadlock_freedom(&topology), Ok(DeadlockFreedom::Bubble));
    assert_eq!(bubble.cycle(&topology), None);
    assert_eq!(bubble.packets_of_room(), 2);
}

#[test]
fn trees_are_free_by_their_form_however_large() {
    let topology = build("shape = \"m-port-n-tree\"\nm = 64\nn = 3");
    for config in [RoutingConfig::Adaptive, RoutingConfig::Ecmp, RoutingConfig::DModK, RoutingConfig::UpDown] {
        assert_eq!(deadlock_freedom(&topology, &config), Ok(DeadlockFreedom::UpThenDown), "{config}");
    }
}

#[test]
fn reasons_are_told_in_words() {
    for (deadlock_freedom, part) in [
        (DeadlockFreedom::UpThenDown, "up, then down"),
        (DeadlockFreedom::DimensionOrder, "datelines"),
        (DeadlockFreedom::Bubble, "two packets"),
        (DeadlockFreedom::Escape { channels: 7, waits: 9 }, "no circle among 9 waits of its 7"),
        (DeadlockFreedom::Acyclic { channels: 7, waits: 9 }, "no circle among 9 waits of 7"),
    ] {
        assert!(deadlock_freedom.to_string().contains(part), "{deadlock_freedom}");
    }
}
