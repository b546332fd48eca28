#![no_main]

#[path = "../checks/hadoop_conf.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &str| check::check(input));
