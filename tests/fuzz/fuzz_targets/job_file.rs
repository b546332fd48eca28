#![no_main]

#[path = "../checks/job_file.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &str| check::check(input));
