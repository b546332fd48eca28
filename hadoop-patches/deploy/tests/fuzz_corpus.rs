//! What fuzzing has kept (tests/fuzz/corpus) holds what the fuzz targets ask.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../../../tests/fuzz/checks/config_files.rs"]
mod config_files;
#[path = "../../../tests/fuzz/checks/corpus.rs"]
mod corpus;
#[path = "../../../tests/fuzz/checks/host_answers.rs"]
mod host_answers;

#[test]
fn host_answers_keep_their_promises() {
    corpus::each("host_answers", host_answers::check);
}

#[test]
fn config_files_keep_their_promises() {
    corpus::each("config_files", config_files::check);
}
