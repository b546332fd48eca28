#![no_main]

#[path = "../checks/config_files.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::check(input));
