#![no_main]

#[path = "../checks/program.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &str| check::check(input));
