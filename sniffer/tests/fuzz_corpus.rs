//! What fuzzing has kept (tests/fuzz/corpus) holds what the fuzz targets ask.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../../tests/fuzz/checks/corpus.rs"]
mod corpus;
#[path = "../../tests/fuzz/checks/hadoop_conf.rs"]
mod hadoop_conf;
#[path = "../../tests/fuzz/checks/packets.rs"]
mod packets;
#[path = "../../tests/fuzz/checks/secrets.rs"]
mod secrets;

#[test]
fn packets_keep_their_promises() {
    corpus::each("packets", packets::check);
}

#[test]
fn hadoop_conf_keep_their_promises() {
    corpus::each_text("hadoop_conf", hadoop_conf::check);
}

#[test]
fn secrets_keep_their_promises() {
    corpus::each("secrets", secrets::check);
}
