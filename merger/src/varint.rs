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

/// Writes a number at the front of `out`, which must have room for it, and says how many bytes it took.
#[inline]
pub(crate) fn put(out: &mut [u8], mut number: u64) -> usize {
    let mut at = 0;
    while number >= 0x80 {
        out[at] = number as u8 | 0x80;
        number >>= 7;
        at += 1;
    }
    out[at] = number as u8;
    at + 1
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
