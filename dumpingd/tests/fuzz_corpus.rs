//! What fuzzing has kept (tests/fuzz/corpus) holds what the fuzz targets ask.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../../tests/fuzz/checks/corpus.rs"]
mod corpus;
#[path = "../../tests/fuzz/checks/lsof.rs"]
mod lsof;
#[path = "../../tests/fuzz/checks/netlink.rs"]
mod netlink;
#[path = "../../tests/fuzz/checks/proc_text.rs"]
mod proc_text;
#[path = "../../tests/fuzz/checks/ring.rs"]
mod ring;

#[test]
fn netlink_keep_their_promises() {
    corpus::each("netlink", netlink::check);
}

#[test]
fn ring_keep_their_promises() {
    corpus::each("ring", ring::check);
}

#[test]
fn proc_text_keep_their_promises() {
    corpus::each_text("proc_text", proc_text::check);
}

#[test]
fn lsof_keep_their_promises() {
    corpus::each_text("lsof", lsof::check);
}
