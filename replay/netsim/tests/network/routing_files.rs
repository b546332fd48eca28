//! LIGHTNESS' routing file: what is written, and what is found wrong with one.

use crate::common::{build, graph, walk};
use netsim::routing::{Routes, RoutingConfig};
use netsim::topology::Topology;
use proptest::prelude::*;

fn four_hosts() -> Topology {
    build("shape = \"fat-tree\"\nnodes = 4\nracks = 2\ncores = 2")
}

#[test]
fn the_file_of_a_small_fat_tree() {
    let topology = four_hosts();
    let routes = Routes::new(&RoutingConfig::DModK, &topology, 1).unwrap();
    // Two rack switches (ports: two hosts, two cores), two core switches (ports: two racks).
    assert_eq!(routes.to_table(&topology).unwrap(), "0 1 2 3\n2 3 0 1\n0 0 1 1\n0 0 1 1\n");
    for config in [RoutingConfig::Ecmp, RoutingConfig::Random, RoutingConfig::Adaptive, RoutingConfig::SModK] {
        let error = Routes::new(&config, &topology, 1).unwrap().to_table(&topology).unwrap_err().to_string();
        assert!(error.contains(&config.to_string()) && error.contains("one port"), "{error}");
    }
    let ring = graph(3, &[(0, 1), (1, 2), (2, 0)], &[0, 1, 2]);
    assert!(Routes::new(&RoutingConfig::UpDown, &ring, 1).unwrap().to_table(&ring).is_err());
}

#[test]
fn a_file_is_followed_with_comments_and_blank_lines_left_out() {
    let topology = four_hosts();
    let text = "# rack 0\n0 1 3 3\n\n3 3 0 1 # rack 1\n- - - -\n0 0 1 1\n";
    let routes = Routes::from_table(text, "r.txt", &topology).unwrap();
    let way = walk(&topology, &routes, (0, 2), (0, 0), |_| 0);
    let names: Vec<String> = way.iter().map(|step| topology.link_name(step.link).into_string()).collect();
    assert_eq!(names, ["h0->rack0", "rack0->core1", "core1->rack1", "rack1->h2"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.txt");
    std::fs::write(&file, text).unwrap();
    let read = Routes::new(&RoutingConfig::Table(file), &topology, 1).unwrap();
    assert_eq!(walk(&topology, &read, (0, 2), (0, 0), |_| 0), way);
}

#[test]
fn each_mistake_of_a_file_is_named() {
    let topology = four_hosts();
    for (text, parts) in [
        ("", ["r.txt:1:", "rack0", "4 switches"].as_slice()),
        ("0 1 2 3\n2 3 0 1\n0 0 1 1\n", &["r.txt:4:", "core1", "4 switches"]),
        ("0 1 2 3\n2 3 0 1\n0 0 1 1\n0 0 1 1\n0 0 1 1\n", &["r.txt:5:", "4 switches"]),
        ("0 1 2\n2 3 0 1\n0 0 1 1\n0 0 1 1\n", &["r.txt:1:", "3 ports", "4 hosts"]),
        ("0 1 2 3 0\n2 3 0 1\n0 0 1 1\n0 0 1 1\n", &["r.txt:1:", "more than 4"]),
        ("0 1 2 3\n2 x 0 1\n0 0 1 1\n0 0 1 1\n", &["r.txt:2:", "\"x\"", "0 to 3"]),
        ("0 1 2 3\n2 -1 0 1\n0 0 1 1\n0 0 1 1\n", &["r.txt:2:", "\"-1\""]),
        ("0 1 2 3\n2 4 0 1\n0 0 1 1\n0 0 1 1\n", &["r.txt:2:", "rack1", "0 to 3", "port 4", "host 1"]),
        ("0 1 2 3\n2 3 0 1\n0 0 2 1\n0 0 1 1\n", &["r.txt:3:", "core0", "0 to 1", "port 2"]),
        // Host 0 is reached by port 1 of its switch: by host 1.
        ("1 1 2 3\n2 3 0 1\n0 0 1 1\n0 0 1 1\n", &["r.txt", "no way", "h1", "h0"]),
        ("0 1 - 3\n2 3 0 1\n0 0 1 1\n0 0 1 1\n", &["r.txt", "no way", "rack0", "h2"]),
        ("0 1 2 3\n2 3 0 1\n0 0 0 1\n0 0 1 1\n", &["r.txt", "rack0 -> core0 -> rack0", "h2", "round"]),
    ] {
        let error = Routes::from_table(text, "r.txt", &topology).unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{text:?} gives {error}, without {parts:?}");
    }
    let missing = Routes::new(&RoutingConfig::Table("/nowhere/r.txt".into()), &topology, 1).unwrap_err().to_string();
    assert!(missing.starts_with("fabric.routing.table = \"/nowhere/r.txt\""), "{missing}");
}

proptest! {
    #[test]
    fn garbage_is_read_or_refused(text in "([0-4\\- \n#]|[a-z]){0,60}") {
        let _ = Routes::from_table(&text, "r.txt", &four_hosts());
    }

    /// Whatever table is taken leads everywhere.
    #[test]
    fn tables_that_are_taken_lead_everywhere(ports in prop::collection::vec(0usize..5, 16)) {
        let topology = four_hosts();
        let lines: Vec<String> = ports.chunks(4).map(|ports| {
            ports.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
        }).collect();
        if let Ok(routes) = Routes::from_table(&lines.join("\n"), "r.txt", &topology) {
            for source in 0..4 {
                for destination in (0..4).filter(|host| *host != source) {
                    walk(&topology, &routes, (source, destination), (0, 0), |_| 0);
                }
            }
        }
    }
}
