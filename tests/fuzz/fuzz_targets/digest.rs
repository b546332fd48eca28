#![no_main]

#[path = "../checks/digest.rs"]
mod check;
#[path = "../../../merger/tests/world/mod.rs"]
mod world;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::check(input));
