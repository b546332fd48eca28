//! Topologies and routing: one file a behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod routing_comments;
mod routing_deadlock;
mod routing_exports;
mod routing_files;
mod routing_lanes;
mod routing_minimal;
mod routing_properties;
mod routing_rules;
mod topology_files;
mod topology_lattices;
mod topology_mistakes;
mod topology_shapes;
mod topology_subnets;
