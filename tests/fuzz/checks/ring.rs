//! Any page of the kernel's ring, by any description of its fields, gives events or nothing; joining them never panics.

use dumpingd::ring::{Format, parse_page};
use dumpingd::tracepoint::Joiner;

/// What must hold for any input.
pub fn check(bytes: &[u8]) {
    let cut = bytes.windows(2).position(|pair| pair == b"\0\0").unwrap_or(0);
    let (text, page) = bytes.split_at(cut);
    let Some(format) = std::str::from_utf8(text).ok().and_then(Format::parse) else { return };
    let page = parse_page(&format, &page[page.len().min(2)..]);
    let mut joiner = Joiner::default();
    let opened = joiner.join(&page.events, 1_700_000_000_000_000_000);
    assert!(opened.len() <= page.events.len());
}
