#![no_main]

#[path = "../checks/packet_file.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::check(input));
