//! The output of lsof.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (listing, owners) = dumpingd::lsof::parse(&text);
    assert!(listing.sockets.len() + owners.len() <= 2 * text.len());
});
