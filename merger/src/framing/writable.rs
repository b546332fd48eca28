//! Hadoop's own serialisation (`WritableUtils`), as far as the shuffle's headers need it.

/// Reads a VInt or VLong: value and length.
pub(super) fn read_vlong(bytes: &[u8]) -> Option<(i64, usize)> {
    let first = *bytes.first()? as i8;
    if first >= -112 {
        return Some((i64::from(first), 1));
    }
    let negative = first < -120;
    let length = usize::try_from(if negative { -120 - i32::from(first) } else { -112 - i32::from(first) }).ok()?;
    let value = bytes.get(1..=length)?.iter().fold(0i64, |value, &byte| value << 8 | i64::from(byte));
    Some((if negative { !value } else { value }, 1 + length))
}

/// Bytes that a VInt or VLong takes.
pub(super) fn vlong_bytes(value: i64) -> u64 {
    if (-112..=127).contains(&value) {
        return 1;
    }
    let magnitude = if value < 0 { !value } else { value };
    1 + u64::from((64 - magnitude.leading_zeros()).div_ceil(8))
}

/// The header of a map's output: map attempt, bytes as sent, bytes when unpacked, number of the reduce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShuffleHeader {
    pub map: String,
    pub bytes: u64,
    pub reduce: u32,
    /// Bytes of the header itself.
    pub length: u64,
}

impl ShuffleHeader {
    /// Reads one.
    pub fn read(input: &[u8]) -> Option<Self> {
        let (name, mut at) = read_vlong(input)?;
        let name = input.get(at..at + usize::try_from(name).ok().filter(|length| *length <= 1000)?)?;
        at += name.len();
        let (bytes, used) = read_vlong(input.get(at..)?)?;
        at += used;
        let (raw, used) = read_vlong(input.get(at..)?)?;
        at += used;
        let (reduce, used) = read_vlong(input.get(at..)?)?;
        at += used;
        let map = std::str::from_utf8(name).ok().filter(|name| name.starts_with("attempt_"))?;
        u64::try_from(raw).ok()?;
        Some(Self {
            map: map.to_owned(),
            bytes: u64::try_from(bytes).ok()?,
            reduce: u32::try_from(reduce).ok()?,
            length: at as u64,
        })
    }

    /// Bytes that a header takes.
    pub fn length_of(map: &str, bytes: u64, raw: u64, reduce: u32) -> u64 {
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        vlong_bytes(map.len() as i64)
            + map.len() as u64
            + vlong_bytes(signed(bytes))
            + vlong_bytes(signed(raw))
            + vlong_bytes(i64::from(reduce))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    /// `WritableUtils.writeVLong`, as its documentation describes it.
    fn write(value: i64) -> Vec<u8> {
        if (-112..=127).contains(&value) {
            return vec![value as i8 as u8];
        }
        let magnitude = if value < 0 { !value } else { value };
        let bytes: Vec<u8> = magnitude.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
        let head = if value < 0 { -120 } else { -112 } - bytes.len() as i8;
        std::iter::once(head as u8).chain(bytes).collect()
    }

    #[test]
    fn numbers_are_read_as_hadoop_writes_them() {
        for value in [0, 1, 127, 128, 255, 256, 65_535, 65_536, 1 << 40, i64::MAX, -1, -112, -113, -256, -257, i64::MIN]
        {
            let bytes = write(value);
            assert_eq!(read_vlong(&bytes), Some((value, bytes.len())), "{value}");
            assert_eq!(vlong_bytes(value), bytes.len() as u64, "{value}");
            assert_eq!(read_vlong(&bytes[..bytes.len() - 1]), None, "{value}");
        }
    }
}
