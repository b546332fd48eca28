//! Protocol buffers' wire format, as far as it takes to find where fields stand in a message that may be cut off.

use std::ops::Range;

/// A field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Its number.
    pub number: u32,
    /// Of a number its value.
    pub value: u64,
    /// Of bytes, text or a message within: where it stands, as far as it is there.
    pub content: Option<Range<usize>>,
    /// How long the content is, whether or not it is there.
    pub length: usize,
}

/// Reads a varint at `at`: its value, and what stands behind it.
pub(super) fn varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (place, &byte) in bytes.get(at..)?.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * place).min(63);
        if byte & 0x80 == 0 {
            return Some((value, at + place + 1));
        }
    }
    None
}

/// Reads a length at `at`, and where what it is about begins and ends (also if that is beyond what is there).
pub(super) fn delimited(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let (length, begin) = varint(bytes, at)?;
    let length = usize::try_from(length).ok().filter(|length| *length <= 1 << 27)?;
    Some((begin, begin + length))
}

/// The fields of a message that begins at `begin` and ends at `end`, as far as they are there. `None` = it is no message.
pub(super) fn fields(bytes: &[u8], begin: usize, end: usize) -> Option<Vec<Field>> {
    let is_cut = end > bytes.len();
    let end = end.min(bytes.len());
    let bytes = bytes.get(..end)?;
    let mut found = Vec::new();
    let mut at = begin;
    while at < end {
        // What is cut off inside of a field is none that can be told.
        let Some((key, behind)) = varint(bytes, at) else { return is_cut.then_some(found) };
        let number = u32::try_from(key >> 3).ok().filter(|number| (1..=536_870_911).contains(number))?;
        let mut field = Field { number, value: 0, content: None, length: 0 };
        match key & 7 {
            0 => match varint(bytes, behind) {
                Some((value, next)) => (field.value, at) = (value, next),
                None => return is_cut.then_some(found),
            },
            1 => at = behind + 8,
            5 => at = behind + 4,
            2 => match delimited(bytes, behind) {
                Some((first, last)) => {
                    field.content = Some(first..last.min(end));
                    (field.length, at) = (last - first, last);
                }
                None => return is_cut.then_some(found),
            },
            _ => return None,
        }
        if at > end && !is_cut {
            return None;
        }
        found.push(field);
    }
    Some(found)
}

/// Where the content of fields stands that are reached by these numbers, in a message from `begin` to `end`.
pub(super) fn find(bytes: &[u8], (begin, end): (usize, usize), path: &[u32], found: &mut Vec<Range<usize>>) {
    let Some((first, rest)) = path.split_first() else { return };
    for field in fields(bytes, begin, end).unwrap_or_default() {
        let Some(content) = field.content.filter(|_| field.number == *first) else { continue };
        if rest.is_empty() {
            found.push(content);
        } else {
            find(bytes, (content.start, content.start + field.length), rest, found);
        }
    }
}
