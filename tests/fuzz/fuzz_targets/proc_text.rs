#![no_main]

#[path = "../checks/proc_text.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &str| check::check(input));
