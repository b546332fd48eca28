//! Experiments, traffic, causal replay and reports: one file a behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod all_networks;
mod at_terminal;
mod bench_cases;
mod causal_errors;
mod causal_garbage;
mod causal_times;
mod coflow_command;
mod common;
mod congestion_command;
mod cpu_sharing;
mod experiment_bad_traffic;
mod experiment_commands;
mod experiment_edits;
mod experiment_files;
mod experiment_sweeps;
mod generated;
mod heartbeat_waits;
mod job_sweeps;
mod memory_limit;
mod named_files;
mod peers_command;
mod placements;
mod predictions;
mod program_command;
mod promises;
mod report_page;
mod result_tables;
mod shipped;
mod topology_command;
mod traffic_circuits;
mod traffic_commands;
mod traffic_runs;
