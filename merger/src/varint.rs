//! Numbers in as few bytes as they need: LEB128, signed ones zigzag.

/// Bytes of a number, at most.
pub(crate) const MAX_BYTES: usize = 10;

/// A signed number as an unsigned one that is small where it is near to 0.
pub(crate) fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// Back from [`zigzag`].
pub(crate) fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Writes a number at the front of `out`, which must have room for it, and says how many bytes it took. Where there is room for eight,
/// those behind it may be written too.
#[inline]
pub(crate) fn put(out: &mut [u8], number: u64) -> usize {
    if number < 1 << 56
        && let Some(room) = out.first_chunk_mut::<8>()
    {
        let length = (70 - (number | 1).leading_zeros()) / 7;
        let goes_on = ALL_GO_ON & ((1 << (8 * (length - 1))) - 1);
        *room = (apart(number) | goes_on).to_le_bytes();
        return length as usize;
    }
    put_bytes(out, number)
}

fn put_bytes(out: &mut [u8], mut number: u64) -> usize {
    let mut at = 0;
    while number >= 0x80 {
        out[at] = number as u8 | 0x80;
        number >>= 7;
        at += 1;
    }
    out[at] = number as u8;
    at + 1
}

/// The bits by which bytes say that others follow.
const ALL_GO_ON: u64 = 0x8080_8080_8080_8080;

/// Groups of seven bits, one a byte: all at once, as where a number ends is hard to foresee.
#[inline]
fn apart(number: u64) -> u64 {
    let halves = (number & 0x0fff_ffff) | ((number & 0x00ff_ffff_f000_0000) << 4);
    let quarters = (halves & 0x0000_3fff_0000_3fff) | ((halves & 0x0fff_c000_0fff_c000) << 2);
    (quarters & 0x007f_007f_007f_007f) | ((quarters & 0x3f80_3f80_3f80_3f80) << 1)
}

/// Back from [`apart`].
#[inline]
fn together(bytes: u64) -> u64 {
    let quarters = (bytes & 0x007f_007f_007f_007f) | ((bytes & 0x7f00_7f00_7f00_7f00) >> 1);
    let halves = (quarters & 0x0000_3fff_0000_3fff) | ((quarters & 0x3fff_0000_3fff_0000) >> 2);
    (halves & 0x0fff_ffff) | ((halves & 0x0fff_ffff_0000_0000) >> 4)
}

/// Appends a number.
#[cfg(test)]
fn push(out: &mut Vec<u8>, number: u64) {
    let mut bytes = [0; MAX_BYTES];
    let length = put(&mut bytes, number);
    out.extend_from_slice(&bytes[..length]);
}

/// Takes a number from the front of `rest`; `None` if there is no whole one.
#[inline]
pub(crate) fn get(rest: &mut &[u8]) -> Option<u64> {
    if let Some(bytes) = rest.first_chunk::<8>() {
        let bytes = u64::from_le_bytes(*bytes);
        let ends = !bytes & ALL_GO_ON;
        if ends != 0 {
            let bits = ends.trailing_zeros() + 1;
            *rest = &rest[(bits / 8) as usize..];
            return Some(together(bytes & (u64::MAX >> (64 - bits))));
        }
    }
    get_bytes(rest)
}

fn get_bytes(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(numbers in prop::collection::vec(any::<i64>(), 0..20)) {
            let mut bytes = Vec::new();
            for number in &numbers {
                push(&mut bytes, zigzag(*number));
                push(&mut bytes, *number as u64);
            }
            let mut rest = bytes.as_slice();
            for number in &numbers {
                prop_assert_eq!(get(&mut rest).map(unzigzag), Some(*number));
                prop_assert_eq!(get(&mut rest), Some(*number as u64));
            }
            prop_assert!(rest.is_empty() && get(&mut rest).is_none());
        }
    }
}
