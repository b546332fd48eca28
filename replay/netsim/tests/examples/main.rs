//! The examples run, and what they assert holds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../examples/arbiter.rs"]
mod arbiter;
#[path = "../../examples/fabric.rs"]
mod fabric;
#[path = "../../examples/probe.rs"]
mod probe;
#[path = "../../examples/topology.rs"]
mod topology;
#[path = "../../examples/workload.rs"]
mod workload;

#[test]
fn an_arbiter_of_ones_own_runs() {
    arbiter::main().unwrap();
}

#[test]
fn a_fabric_of_ones_own_runs() {
    fabric::main().unwrap();
}

#[test]
fn a_probe_of_ones_own_sees_all_packets() {
    probe::main().unwrap();
}

#[test]
fn a_topology_and_a_routing_of_ones_own_run_and_are_checked() {
    topology::main().unwrap();
}

#[test]
fn a_workload_of_ones_own_runs() {
    workload::main().unwrap();
}
