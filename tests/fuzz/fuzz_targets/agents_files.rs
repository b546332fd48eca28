#![no_main]

#[path = "../checks/agents_files.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::check(input));
