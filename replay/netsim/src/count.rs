//! Numbering with 32 bits.

/// So many things, each of which has a number of 32 bits.
#[inline]
pub(crate) fn count(things: usize) -> u32 {
    u32::try_from(things).unwrap_or(u32::MAX)
}
