//! What fuzzing has kept (tests/fuzz/corpus) holds what the fuzz targets ask.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../../tests/fuzz/checks/agents_files.rs"]
mod agents_files;
#[path = "../../tests/fuzz/checks/corpus.rs"]
mod corpus;
#[path = "../../tests/fuzz/checks/digest.rs"]
mod digest;
#[path = "../../tests/fuzz/checks/foreign_files.rs"]
mod foreign_files;
#[path = "../../tests/fuzz/checks/wire.rs"]
mod wire;
mod world;

#[test]
fn agents_files_keep_their_promises() {
    corpus::each("agents_files", agents_files::check);
}

#[test]
fn digests_keep_their_promises() {
    corpus::each("digest", digest::check);
}

#[test]
fn foreign_files_keep_their_promises() {
    corpus::each("foreign_files", foreign_files::check);
}

#[test]
fn wire_keep_their_promises() {
    corpus::each("wire", wire::check);
}
