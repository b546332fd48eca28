//! What fuzzing has kept (tests/fuzz/corpus) holds what the fuzz targets ask.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../../tests/fuzz/checks/coflow.rs"]
mod coflow_files;
#[path = "../../tests/fuzz/checks/corpus.rs"]
mod corpus;
#[path = "../../tests/fuzz/checks/experiment.rs"]
mod experiment;
#[path = "../../tests/fuzz/checks/graph.rs"]
mod graph;
#[path = "../../tests/fuzz/checks/job_file.rs"]
mod job_file;
#[path = "../../tests/fuzz/checks/program.rs"]
mod program_files;
#[path = "../../tests/fuzz/checks/routing.rs"]
mod routing;
#[path = "../../tests/fuzz/checks/subnet.rs"]
mod subnet;

#[test]
fn coflow_keep_their_promises() {
    corpus::each_text("coflow", coflow_files::check);
}

#[test]
fn experiment_keep_their_promises() {
    corpus::each_text("experiment", experiment::check);
}

#[test]
fn graph_keep_their_promises() {
    corpus::each_text("graph", graph::check);
}

#[test]
fn job_file_keep_their_promises() {
    corpus::each_text("job_file", job_file::check);
}

#[test]
fn program_keep_their_promises() {
    corpus::each_text("program", program_files::check);
}

#[test]
fn subnet_keep_their_promises() {
    corpus::each_text("subnet", subnet::check);
}

#[test]
fn routing_keep_their_promises() {
    corpus::each_text("routing", routing::check);
}
