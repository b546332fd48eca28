//! What fuzzing has kept (tests/fuzz/corpus) holds what the fuzz targets ask.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../../tests/fuzz/checks/corpus.rs"]
mod corpus;
#[path = "../../tests/fuzz/checks/packet_file.rs"]
mod packet_file;

#[test]
fn packet_file_keep_their_promises() {
    corpus::each("packet_file", packet_file::check);
}
