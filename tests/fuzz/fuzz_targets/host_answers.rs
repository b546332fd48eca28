#![no_main]

#[path = "../checks/host_answers.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::check(input));
