//! The set bits of a word, one after the other.

/// The lowest bit that is set, which is set no more.
#[inline]
pub const fn take_lowest(bits: &mut u64) -> Option<u32> {
    if *bits == 0 {
        return None;
    }
    let bit = bits.trailing_zeros();
    *bits &= *bits - 1;
    Some(bit)
}
