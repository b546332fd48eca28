//! Routings of lattices that choose virtual lanes: which lanes they take and offer, and that what waits for what closes no circle.

use crate::common::{any_lattice, build, distances};
use netsim::routing::{CreditRequirement, DeadlockFreedom, Hop, Lane, Pick, Ranks, Routes, RoutingConfig};
use netsim::topology::{LinkId, NodeId, Topology};
use proptest::prelude::*;

/// All modes, those of the bubble router with three classes where they have adaptive ones.
const MODES: [&str; 17] = [
    "{ dor = \"draw\" }",
    "{ dor = \"destination\" }",
    "{ dally = \"trc\" }",
    "{ dally = \"trc\", order = \"dir\" }",
    "{ dally = \"basic\" }",
    "{ dally = \"basic\", order = \"dir\", ties = \"destination\" }",
    "{ dally = \"improved\" }",
    "{ dally = \"improved\", order = \"dir\" }",
    "{ dally = \"adaptive\", vcs = 4 }",
    "{ dally = \"adaptive\", order = \"dir\" }",
    "{ bubble = \"oblivious\", vcs = 3 }",
    "{ bubble = \"oblivious\", vcs = 2, bubble_at = \"here\" }",
    "{ bubble = \"random\", vcs = 3 }",
    "{ bubble = \"random\", vcs = 3, bubble_at = \"here\" }",
    "{ bubble = \"shortest\", vcs = 3 }",
    "{ bubble = \"shortest\", vcs = 3, room = \"flits\", equals = \"first\" }",
    "{ bubble = \"smart\", vcs = 3 }",
];

fn routes(topology: &Topology, routing: &str) -> Routes {
    let text = format!("routing = {routing}\n");
    let config: RoutingConfig = toml::from_str::<toml::Table>(&text).unwrap()["routing"].clone().try_into().unwrap();
    Routes::new(&config, topology, 5).unwrap()
}

/// The lanes of all ranks, flat, as the packet's switch sees them.
fn offered(routes: &Routes, hop: &Hop) -> Vec<Vec<Lane>> {
    if routes.looks_at_packets() {
        return routes.lane(hop).into_iter().map(|(lane, _)| vec![lane]).collect();
    }
    if !routes.commits_to_room() {
        let next = routes.next(hop.at, hop.input_link, hop.to);
        return vec![next.links.iter().map(|link| Lane { link: *link, class: next.class }).collect()];
    }
    let mut ranks = Ranks::default();
    routes.ranks(hop, &mut ranks);
    ranks.iter().map(|rank| rank.lanes.to_vec()).collect()
}

/// Classes of a packet's lanes between routers, by its one lane.
fn classes(topology: &Topology, routes: &Routes, from: u32, to: u32) -> Vec<u8> {
    let uplink = topology.uplink(NodeId(from));
    let (mut hop, mut found) =
        (Hop { at: topology.link(uplink).to, input_link: uplink, class: 0, to: NodeId(to), key: 1 }, Vec::new());
    loop {
        let (lane, _) = routes.lane(&hop).unwrap();
        let at = topology.link(lane.link).to;
        if topology.is_host(at) {
            return found;
        }
        found.push(lane.class);
        hop = Hop { at, input_link: lane.link, class: lane.class, ..hop };
    }
}

#[test]
fn the_classes_of_trc_and_basic_are_those_of_the_program() {
    let ring = build("shape = \"torus\"\nsize = [7]");
    let trc = routes(&ring, "{ dally = \"trc\" }");
    // In on 1, on 0 from router 0 on; falling the wrap itself is on 0 already.
    assert_eq!(classes(&ring, &trc, 5, 1), [1, 1, 0]);
    assert_eq!(classes(&ring, &trc, 0, 3), [0, 0, 0]);
    assert_eq!(classes(&ring, &trc, 1, 5), [1, 0, 0]);
    assert_eq!(classes(&ring, &trc, 3, 1), [1, 1]);
    let basic = routes(&ring, "{ dally = \"basic\" }");
    // On 0 with the wrap ahead, on 1 behind it and without.
    assert_eq!(classes(&ring, &basic, 5, 1), [0, 0, 1]);
    assert_eq!(classes(&ring, &basic, 1, 5), [0, 0, 1]);
    assert_eq!(classes(&ring, &basic, 0, 3), [1, 1, 1]);
    let entry = routes(&ring, "{ dally = \"entry\" }");
    // On 1 all along if the wrap lies ahead where the ring is entered.
    assert_eq!(classes(&ring, &entry, 5, 1), [1, 1, 1]);
    assert_eq!(classes(&ring, &entry, 1, 5), [1, 1, 1]);
    assert_eq!(classes(&ring, &entry, 0, 3), [0, 0, 0]);
    assert_eq!(classes(&ring, &entry, 3, 1), [0, 0]);
    let torus = build("shape = \"torus\"\nsize = [7, 7]");
    let trc = routes(&torus, "{ dally = \"trc\" }");
    // Each dimension begins anew: from (5, 3) to (1, 1), and from (5, 3) to (0, 0).
    assert_eq!(classes(&torus, &trc, 26, 8), [1, 1, 0, 1, 1]);
    let dir = routes(&torus, "{ dally = \"basic\", order = \"dir\" }");
    let rising = classes(&torus, &dir, 1 + 7, 6 + 7 * 3);
    // (1, 1) to (6, 3): up in y first, then back over the end of x.
    assert_eq!(rising, [1, 1, 0, 0]);
    let dim = routes(&torus, "{ dally = \"basic\" }");
    assert_eq!(classes(&torus, &dim, 1 + 7, 6 + 7 * 3), [0, 0, 1, 1]);
}

#[test]
fn lanes_come_in_the_order_of_their_mode() {
    let torus = build("shape = \"torus\"\nsize = [5, 5]");
    let router = |x: u32, y: u32| NodeId(25 + x + 5 * y);
    let link = |from: NodeId, to: NodeId| *torus.out(from).iter().find(|link| torus.link(**link).to == to).unwrap();
    let lane = |to: NodeId, class: u8| Lane { link: link(router(1, 1), to), class };
    let (x, y) = (router(2, 1), router(1, 2));
    // At (1, 1) for (3, 3), having come along x on class 2.
    let straight =
        Hop { at: router(1, 1), input_link: link(router(0, 1), router(1, 1)), class: 2, to: NodeId(3 + 5 * 3), key: 9 };
    let all = vec![lane(x, 1), lane(x, 2), lane(y, 1), lane(y, 2)];
    let random = routes(&torus, "{ bubble = \"random\", vcs = 3 }");
    assert_eq!(offered(&random, &straight), [vec![lane(x, 2)], all.clone(), vec![lane(x, 0)]]);
    let shortest = routes(&torus, "{ bubble = \"shortest\", vcs = 3 }");
    assert_eq!(offered(&shortest, &straight), [all.clone(), vec![lane(x, 0)]]);
    let smart = routes(&torus, "{ bubble = \"smart\", vcs = 3 }");
    assert_eq!(offered(&smart, &straight), [vec![lane(x, 2)], vec![lane(y, 1), lane(y, 2)], vec![lane(x, 0)]]);
    // From y, its own axis comes first, but the escape is by dimension order.
    let turning = Hop { input_link: link(router(1, 0), router(1, 1)), class: 0, ..straight };
    assert_eq!(
        offered(&smart, &turning),
        [vec![lane(y, 1), lane(y, 2)], vec![lane(x, 1), lane(x, 2)], vec![lane(x, 0)]]
    );
    // What room is asked for: two packets into a ring, one on the way in it.
    let room = |hop: &Hop, routing: &str| {
        let mut ranks = Ranks::default();
        routes(&torus, routing).ranks(hop, &mut ranks);
        let last = ranks.iter().last().unwrap();
        assert_eq!(last.lanes, [lane(x, 0)]);
        last.required
    };
    let on_escape = Hop { class: 0, ..straight };
    for routing in ["{ bubble = \"random\", vcs = 3 }", "{ bubble = \"smart\", vcs = 3 }"] {
        assert_eq!([room(&straight, routing), room(&turning, routing)], [CreditRequirement::Bubble; 2]);
        assert_eq!(room(&on_escape, routing), CreditRequirement::Packet);
    }
    let here = CreditRequirement::BubbleIn(Lane { link: straight.input_link, class: 0 });
    assert_eq!(room(&turning, "{ bubble = \"shortest\", vcs = 3, bubble_at = \"here\" }"), here);
    let adaptive = routes(&torus, "{ dally = \"adaptive\", vcs = 4 }");
    let mut ranks = Ranks::default();
    adaptive.ranks(&straight, &mut ranks);
    let first = ranks.iter().next().unwrap();
    assert_eq!((first.lanes.len(), first.pick), (4, Pick::Drawn));
    let rest: Vec<Vec<Lane>> = ranks.iter().skip(1).map(|rank| rank.lanes.to_vec()).collect();
    assert!(rest == [vec![lane(x, 0)], vec![lane(x, 1)]] || rest == [vec![lane(x, 1)], vec![lane(x, 0)]]);
}

#[test]
fn ties_are_drawn_evenly_and_stay_as_they_were_drawn() {
    let torus = build("shape = \"torus\"\nsize = [8, 8]");
    let drawn = routes(&torus, "{ dor = \"draw\" }");
    let mut forward = [0u32; 2];
    for key in 0..4_000 {
        // Half-way round in both dimensions: each is drawn by itself.
        let hop = Hop { at: NodeId(64), input_link: LinkId(u32::MAX), class: 0, to: NodeId(4 + 8 * 4), key };
        let along_x = torus.link(drawn.lane(&hop).unwrap().0.link).to;
        forward[0] += u32::from(along_x == NodeId(65));
        let hop = Hop { at: NodeId(68), ..hop };
        let along_y = torus.link(drawn.lane(&hop).unwrap().0.link).to;
        forward[1] += u32::from(along_y == NodeId(64 + 12));
    }
    // 2,000 expected, standard deviation 32.
    assert!(forward.iter().all(|count| (1_850..2_150).contains(count)), "{forward:?}");
}

#[test]
fn the_ways_of_a_lattice_without_its_classes_are_refused() {
    for text in [
        "shape = \"torus\"\nsize = [8, 4]\ntwist = { y = { x = 4 } }",
        "shape = \"midimew\"\nrouters = 25",
        "shape = \"spinnaker\"\nsize = [8, 8]",
        "shape = \"torus\"\nsize = [4]\nways = 1",
    ] {
        let topology = build(text);
        let dor = Routes::new(&RoutingConfig::Dor, &topology, 1).unwrap();
        assert!(matches!(dor.deadlock_freedom(&topology), Ok(DeadlockFreedom::Acyclic { .. })), "{text}");
        let table = Routes::from_table(&dor.to_table(&topology).unwrap(), "dor.txt", &topology).unwrap();
        let error = table.deadlock_freedom(&topology).unwrap_err().to_string();
        assert!(error.contains("wait for each other"), "{text}: {error}");
    }
}

/// Whatever lanes a packet gets, each brings it nearer, and it arrives after as many links as lie between.
fn every_choice_arrives(topology: &Topology, routes: &Routes, seed: u64) {
    for to in (0..topology.hosts()).map(NodeId) {
        for from in (0..topology.hosts()).filter(|from| NodeId(*from) != to) {
            let left = |node: NodeId| distances(topology, node.0)[to.0 as usize];
            let uplink = topology.uplink(NodeId(from));
            let key = (u64::from(from) << 40) + seed;
            let mut hop = Hop { at: topology.link(uplink).to, input_link: uplink, class: 0, to, key };
            let mut turn = seed.wrapping_add(key);
            loop {
                let ranks = offered(routes, &hop);
                let lanes: Vec<Lane> = ranks.concat();
                assert!(!lanes.is_empty(), "no way at {}", topology.name(hop.at));
                let here = left(hop.at);
                for lane in &lanes {
                    let link = topology.link(lane.link);
                    assert!(link.from == hop.at && !link.absent && lane.class < routes.classes());
                    let ends = link.to == to || !topology.is_host(link.to);
                    assert!(ends && left(link.to) + 1 == here, "{} leads no nearer", topology.link_name(lane.link));
                }
                turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let lane = lanes[usize::try_from(turn >> 33).unwrap() % lanes.len()];
                let at = topology.link(lane.link).to;
                if at == to {
                    break;
                }
                hop = Hop { at, input_link: lane.link, class: lane.class, ..hop };
            }
        }
    }
}

#[test]
fn entry_leads_everywhere_on_tori_and_closes_a_circle_on_one_way_rings_alone() {
    for size in ["[2]", "[3]", "[4]", "[5]", "[8]", "[4, 4]", "[5, 3]", "[2, 3, 4]"] {
        for shape in ["torus", "mesh"] {
            let topology = build(&format!("shape = \"{shape}\"\nsize = {size}"));
            let routes = routes(&topology, "{ dally = \"entry\" }");
            every_choice_arrives(&topology, &routes, 7);
            assert_eq!(routes.cycle(&topology), None, "{shape} {size}");
            assert!(
                matches!(routes.deadlock_freedom(&topology), Ok(DeadlockFreedom::Acyclic { .. })),
                "{shape} {size}"
            );
        }
    }
    let one_way = build("shape = \"torus\"\nsize = [4]\nways = 1");
    let error = routes(&one_way, "{ dally = \"entry\" }").deadlock_freedom(&one_way).unwrap_err().to_string();
    assert!(error.contains("wait for each other"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_mode_leads_everywhere_by_whatever_lanes_and_closes_no_circle(
        text in any_lattice().prop_filter("small enough", |text| build(text).hosts() <= 24),
        seed in any::<u64>(),
    ) {
        let topology = build(&text);
        for mode in MODES {
            let routes = routes(&topology, mode);
            every_choice_arrives(&topology, &routes, seed >> 30);
            prop_assert_eq!(routes.cycle(&topology), None, "{} on {}", mode, text);
            let freedom = routes.deadlock_freedom(&topology).unwrap();
            let bubbles = routes.packets_of_room() == 2;
            match freedom {
                DeadlockFreedom::Bubble => prop_assert!(bubbles),
                DeadlockFreedom::Escape { .. } => prop_assert!(routes.escape_classes() > 0 && !bubbles),
                DeadlockFreedom::Acyclic { .. } => prop_assert!(!bubbles),
                other => prop_assert!(false, "{other}"),
            }
        }
    }
}
