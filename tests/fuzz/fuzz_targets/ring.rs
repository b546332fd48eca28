//! Pages of the tracepoint's ring buffer, and its format.
#![no_main]

use dumpingd::ring::{Format, parse_page};
use libfuzzer_sys::fuzz_target;

const FORMAT: &str = include_str!("../corpus/format.txt");

fuzz_target!(|data: &[u8]| {
    let format = Format::parse(FORMAT).unwrap();
    let page = parse_page(&format, data);
    assert!(page.events.len() * 4 <= data.len());
    let _ = dumpingd::tracepoint::Joiner::default().join(&page.events, 0);
    if let Ok(text) = std::str::from_utf8(data) {
        if let Some(format) = Format::parse(text) {
            let _ = parse_page(&format, data);
        }
    }
});
