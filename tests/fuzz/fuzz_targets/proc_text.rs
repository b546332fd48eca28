//! Text of /proc: tables of sockets, counters of interfaces, command lines.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let _ = dumpingd::proc_net::parse(&text);
    let _ = sniffer::counters::total(&text, "eth0", false);
    let arguments: Vec<&str> = text.split('\0').collect();
    if let Some(main) = dumpingd::main_class::of_command_line(&arguments) {
        assert!(main.len() <= text.len());
    }
});
