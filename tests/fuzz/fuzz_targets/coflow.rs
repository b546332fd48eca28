#![no_main]

#[path = "../checks/coflow.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &str| check::check(input));
