//! Topologies and routings that cannot be: each gets an error that names the key, the value and what is allowed.

use netsim::fabric::{FabricConfig, build};
use netsim::topology::HostPlace;

/// The error of an Ethernet fabric with these keys of its topology and this routing.
fn error_for(topology: &str, routing: &str, hosts: usize) -> String {
    let routing = if routing.is_empty() { String::new() } else { format!("routing = {routing}\n") };
    let text = format!("kind = \"ethernet\"\n{routing}[topology]\n{topology}");
    let hosts: Vec<HostPlace> =
        (0..hosts).map(|host| HostPlace { name: format!("w{host}"), rack: "rack".to_owned() }).collect();
    match text.parse::<FabricConfig>() {
        Err(error) => error.to_string(),
        Ok(config) => match build(&config, &hosts) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("was accepted: {text}"),
        },
    }
}

#[test]
fn each_mistake_of_a_topology_is_named() {
    let cases: &[(&str, &[&str])] = &[
        ("shape = \"ring\"", &["ring", "k-ary-n-tree", "torus", "graph"]),
        ("shape = \"k-ary-n-tree\"\nk = 0", &["fabric.topology.k = 0", "at least 1"]),
        ("shape = \"k-ary-n-tree\"\nn = 0", &["fabric.topology.n = 0", "from 1 to 22"]),
        ("shape = \"k-ary-n-tree\"\nn = 23\nk = 1", &["fabric.topology.n = 23", "from 1 to 22"]),
        ("shape = \"k-ary-n-tree\"\nk = -4", &["-4"]),
        ("shape = \"k-ary-n-tree\"\nk = 4.5", &["4.5"]),
        ("shape = \"k-ary-n-tree\"\nnodes = 60", &["fabric.topology.nodes = 60", "4-ary 3-tree has 64 hosts"]),
        ("shape = \"k-ary-n-tree\"\nk = 100\nn = 9", &["cables", "4194304"]),
        ("shape = \"k-ary-n-tree\"\nk = 4294967295\nn = 22", &["cables", "4194304"]),
        ("shape = \"k-ary-n-tree\"\nlevels = 3", &["levels", "`k`"]),
        (
            "shape = \"k-ary-n-tree\"\nuplinks = [{ rate = \"1Gbps\" }]",
            &["fabric.topology.uplinks", "[1 entries]", "2 entries"],
        ),
        (
            "shape = \"k-ary-n-tree\"\nuplinks = [{}, { delay = \"1ns\", length = \"1m\" }]",
            &["uplinks[1]", "1ns", "1m", "one of them"],
        ),
        ("shape = \"k-ary-n-tree\"\nuplink = { rate = \"-1Gbps\" }", &["-1Gbps"]),
        ("shape = \"k-ary-n-tree\"\nuplink = { rate = 10 }", &["\"10\" has no unit"]),
        ("shape = \"thin-tree\"\nk = 2\nk_up = 3", &["fabric.topology.k_up = 3", "at most k = 2", "xgft"]),
        ("shape = \"thin-tree\"\nk_up = 0", &["fabric.topology.k_up = 0", "at least 1"]),
        ("shape = \"thin-tree\"\nnodes = 28", &["nodes = 28", "4:2-ary 3-thin-tree", "64"]),
        ("shape = \"m-port-n-tree\"\nm = 5", &["fabric.topology.m = 5", "even"]),
        ("shape = \"m-port-n-tree\"\nm = 0", &["fabric.topology.m = 0", "at least 2"]),
        ("shape = \"m-port-n-tree\"\nnodes = 64", &["nodes = 64", "4-port 3-tree", "16"]),
        ("shape = \"xgft\"\nm = []", &["fabric.topology.m = []", "one a level"]),
        ("shape = \"xgft\"\nm = [4, 4, 4]", &["fabric.topology.w = [1, 2]", "as many numbers as m", "3"]),
        ("shape = \"xgft\"\nw = [2, 2]", &["fabric.topology.w = [2, 2]", "the first is 1", "one link"]),
        ("shape = \"xgft\"\ncables = [2, 1]", &["fabric.topology.cables = [2, 1]", "the first is 1"]),
        ("shape = \"xgft\"\nm = [4, 0]", &["fabric.topology.m = [4, 0]", "at least 1"]),
        ("shape = \"xgft\"\nnodes = 17", &["nodes = 17", "XGFT(2; [4, 4]; [1, 2])", "16"]),
        ("shape = \"leaf-spine\"\nleaves = 0", &["fabric.topology.leaves = 0", "at least 1"]),
        ("shape = \"leaf-spine\"\nspines = 0", &["fabric.topology.spines = 0"]),
        ("shape = \"leaf-spine\"\ncables = 0", &["fabric.topology.cables = 0"]),
        ("shape = \"leaf-spine\"\nnodes = 3", &["nodes = 3", "16 hosts"]),
        ("shape = \"single-switch\"\nnodes = 0", &["fabric.topology.nodes = 0"]),
        ("shape = \"single-switch\"\nnodes = 2", &["3 hosts", "places for 2"]),
        ("shape = \"single-switch\"\nuplink = {}", &["uplink", "host_link"]),
        ("shape = \"torus\"\nsize = []", &["fabric.topology.size = []", "one a dimension"]),
        ("shape = \"torus\"\nsize = [4, 0]", &["fabric.topology.size = [4, 0]", "at least 1"]),
        ("shape = \"mesh\"\nsize = 8", &["8"]),
        ("shape = \"mesh\"\nsize = [2]", &["3 hosts", "mesh of [2]", "places for 2"]),
        ("shape = \"mesh\"\nsize = [100000, 100000]", &["cables", "4194304"]),
        ("shape = \"mesh\"\nconcentration = 0", &["fabric.topology.concentration = 0"]),
        ("shape = \"torus\"\nnodes = 65", &["nodes = 65", "torus of [8, 8] has 64"]),
        ("shape = \"torus\"\nlinks = [{}, {}, {}]", &["fabric.topology.links", "[3 entries]", "2 entries"]),
        ("shape = \"torus\"\nways = 3", &["fabric.topology.ways = 3", "1 (", "2 ("]),
        ("shape = \"mesh\"\nways = 1", &["fabric.topology.ways = 1", "mesh"]),
        ("shape = \"torus\"\ntwist = { w = { x = 1 } }", &["fabric.topology.twist = w", "x, y"]),
        ("shape = \"torus\"\ntwist = { z = { x = 1 } }", &["fabric.topology.twist = z", "x, y"]),
        ("shape = \"torus\"\ntwist = { x = { x = 1 } }", &["twist.x.x = 1", "another dimension"]),
        ("shape = \"torus\"\ntwist = { y = { x = 1 }, x = { y = 1 } }", &["twist.x.y = 1", "shifts no other"]),
        ("shape = \"torus\"\nsize = [4, 1]\ntwist = { y = { x = 1 } }", &["twist.y.x = 1", "at least 2 routers"]),
        ("shape = \"mesh\"\ntwist = { y = { x = 1 } }", &["twist.y.x = 1", "torus"]),
        ("shape = \"torus\"\nfaults = 129", &["fabric.topology.faults = 129", "at most 128"]),
        ("shape = \"torus\"\nfaults = -1", &["faults = -1", "number of cables"]),
        ("shape = \"torus\"\nfaults = [\"r0.0\"]", &["faults = ", "pairs of routers"]),
        ("shape = \"torus\"\nfaults = [[\"r0.0\", \"r0.2\"]]", &["[[\"r0.0\", \"r0.2\"]]", "that a cable joins"]),
        (
            "shape = \"torus\"\nfaults = [[\"r0.0\", \"r0.1\"], [\"r0.1\", \"r0.0\"]]",
            &["[[\"r0.1\", \"r0.0\"]]", "that a cable joins"],
        ),
        ("shape = \"torus\"\nsize = [8]\nfaults = 2", &["falls apart", "r0 to ", "fault_seed"]),
        ("shape = \"midimew\"\nrouters = 4", &["fabric.topology.routers = 4", "at least 5"]),
        ("shape = \"midimew\"\nnodes = 12", &["nodes = 12", "a midimew of 13 has 13"]),
        ("shape = \"midimew\"\nrouters = 4000000000", &["cables", "4194304"]),
        ("shape = \"midimew\"\nlinks = [{}]", &["fabric.topology.links", "2 entries"]),
        ("shape = \"spinnaker\"\nsize = [2, 8]", &["fabric.topology.size = [2, 8]", "at least 3"]),
        ("shape = \"spinnaker\"\nsize = [4]", &["fabric.topology.size = [4]", "two numbers"]),
        ("shape = \"spinnaker\"\nconcentration = 0", &["fabric.topology.concentration = 0"]),
        ("shape = \"graph\"", &["fabric.topology.file", "needed"]),
        ("shape = \"graph\"\nfile = \"/nowhere/x.dot\"", &["fabric.topology.file", "/nowhere/x.dot"]),
        ("shape = \"graph\"\nformat = \"png\"", &["png", "edges", "dot"]),
    ];
    for (topology, parts) in cases {
        let error = error_for(topology, "", 3);
        for part in *parts {
            assert!(error.contains(part), "the error for\n{topology}\ndoes not say \"{part}\":\n{error}");
        }
    }
}

#[test]
fn each_mistake_of_a_routing_is_named() {
    for (topology, routing, parts) in [
        ("shape = \"racks\"", "\"fastest\"", ["fastest", "d-mod-k", "up-down"].as_slice()),
        ("shape = \"racks\"", "\"random\"", &["fabric.routing = random", "d-mod-k", "one way"]),
        ("shape = \"racks\"", "\"adaptive\"", &["fabric.routing = adaptive", "ecmp"]),
        ("shape = \"racks\"", "\"ecmp-packet\"", &["fabric.routing = ecmp-packet", "ecmp"]),
        ("shape = \"torus\"", "\"bubble\"", &["fabric.routing = bubble", "dor"]),
        ("shape = \"racks\"", "\"dor\"", &["fabric.routing = dor", "a graph", "mesh"]),
        ("shape = \"k-ary-n-tree\"", "\"dor\"", &["fabric.routing = dor", "a tree", "mesh"]),
        ("shape = \"torus\"", "\"d-mod-k\"", &["fabric.routing = d-mod-k", "a torus", "dor"]),
        ("shape = \"mesh\"", "\"s-mod-k\"", &["fabric.routing = s-mod-k", "a mesh", "dor"]),
        ("shape = \"mesh\"", "{ table = \"/nowhere/r.txt\" }", &["fabric.routing.table", "/nowhere/r.txt"]),
        ("shape = \"mesh\"", "{ path = \"r.txt\" }", &["path", "table"]),
        ("shape = \"mesh\"", "\"file\"", &["fabric.routing = file", "a mesh", "comment", "shortest"]),
        ("shape = \"mesh\"", "3", &["3"]),
        (
            "shape = \"torus\"",
            "{ dally = \"fast\" }",
            &["routing.dally = \"fast\"", "trc", "basic", "entry", "improved", "adaptive"],
        ),
        ("shape = \"torus\"", "{ dally = \"trc\", order = \"zyx\" }", &["routing.order = \"zyx\"", "dim", "dir"]),
        ("shape = \"torus\"", "{ dally = \"trc\", vcs = 3 }", &["routing.vcs = 3", "adaptive", "2 classes"]),
        ("shape = \"torus\"", "{ dally = \"adaptive\", vcs = 2 }", &["routing.vcs = 2", "3 to 15"]),
        ("shape = \"torus\"", "{ dally = \"adaptive\", vcs = \"3\" }", &["routing.vcs = \"3\"", "3 to 15"]),
        ("shape = \"torus\"", "{ dally = \"trc\", bubble_at = \"here\" }", &["routing.bubble_at", "order, ties, vcs"]),
        ("shape = \"torus\"", "{ bubble = \"big\" }", &["routing.bubble = \"big\"", "oblivious", "smart"]),
        ("shape = \"torus\"", "{ bubble = \"smart\", bubble_at = \"there\" }", &["routing.bubble_at", "next", "here"]),
        ("shape = \"torus\"", "{ bubble = \"smart\", room = \"flits\" }", &["routing.room", "shortest"]),
        ("shape = \"torus\"", "{ bubble = \"shortest\", room = \"bytes\" }", &["routing.room", "credits", "flits"]),
        ("shape = \"torus\"", "{ bubble = \"smart\", ties = \"even\" }", &["routing.ties = \"even\"", "draw"]),
        ("shape = \"torus\"", "{ bubble = 3 }", &["bubble = 3", "{ bubble = \"MODE\" }"]),
        ("shape = \"torus\"", "{ dor = \"fair\" }", &["routing.dor = \"fair\"", "draw", "destination"]),
        ("shape = \"torus\"", "{ dor = \"draw\", vcs = 2 }", &["routing.vcs", "no other key"]),
        ("shape = \"torus\"", "{ dor = \"draw\" }", &["fabric.routing = { dor = \"draw\" }", "one way"]),
        ("shape = \"racks\"", "{ adaptive = \"vl\" }", &["routing.adaptive = \"vl\"", "link-and-vl"]),
        ("shape = \"racks\"", "{ bubble = \"smart\" }", &["bubble = \"smart\""]),
    ] {
        let error = error_for(topology, routing, 3);
        for part in parts {
            assert!(error.contains(part), "{routing} on {topology} gives {error}, without {part}");
        }
    }
}

#[test]
fn a_network_without_losses_that_may_stand_still_is_refused_and_one_with_losses_is_not() {
    let result = |kind: &str, routing: &str, vls: u8| {
        let vls = if kind == "credit" { format!("vls = {vls}\n") } else { String::new() };
        let text =
            format!("kind = \"{kind}\"\nrouting = \"{routing}\"\n{vls}topology = {{ shape = \"torus\", size = [5] }}");
        build(&text.parse().unwrap(), &[]).map(|_| ()).map_err(|error| error.to_string())
    };
    let error = result("credit", "ecmp", 1).unwrap_err();
    for part in ["fabric.routing = ecmp", "deadlock", "wait for each other", "r0->", "dor and bubble"] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(result("store-and-forward", "ecmp", 1), Ok(()));
    for (routing, vls) in [("up-down", 1), ("dor", 2), ("bubble", 1)] {
        assert_eq!(result("credit", routing, vls), Ok(()), "{routing}");
    }
}
