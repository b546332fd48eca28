//! Any text is read as what lsof prints; never a panic.

/// What must hold for any input.
pub fn check(text: &str) {
    let (listing, owners) = dumpingd::lsof::parse(text);
    assert!(listing.sockets.len() + usize::try_from(listing.malformed).unwrap_or(usize::MAX) <= text.lines().count());
    assert!(owners.len() <= listing.sockets.len());
}
