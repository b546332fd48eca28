//! When what an instant looks at is read ahead, and how much at a time.

/// So many are read at a time: what they need fits into the first cache.
pub(super) const AHEAD: usize = 32;

/// Networks of fewer lanes lie in a core's cache, and nothing is read ahead.
pub(super) const MIN_LANES: usize = 1 << 13;
