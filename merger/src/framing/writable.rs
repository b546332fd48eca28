//! Hadoop's own serialisation (`WritableUtils`), as far as the shuffle's headers and calls need it.

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

/// The method of a call, by the beginning of its body (`WritableRpcEngine.Invocation`): version (8 bytes), protocol and
/// method, each behind its length of two bytes.
pub(super) fn invoked(body: &[u8]) -> Option<&str> {
    const VERSION: [u8; 8] = 2u64.to_be_bytes();
    let (protocol, rest) = text(body.strip_prefix(&VERSION)?)?;
    let (method, _) = text(rest)?;
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.'))
    };
    (is_name(protocol) && is_name(method)).then_some(method)
}

fn text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (text, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    Some((std::str::from_utf8(text).ok()?, rest))
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

    #[test]
    fn the_method_of_a_call_stands_behind_version_and_protocol() {
        let body = |version: u64, protocol: &str, method: &str| {
            let mut out = version.to_be_bytes().to_vec();
            for name in [protocol, method] {
                out.extend((name.len() as u16).to_be_bytes());
                out.extend(name.as_bytes());
            }
            out
        };
        let whole = body(2, "org.apache.hadoop.mapred.TaskUmbilicalProtocol", "statusUpdate");
        assert_eq!(invoked(&whole), Some("statusUpdate"));
        assert!((0..whole.len()).all(|cut| invoked(&whole[..cut]).is_none()));
        for (version, protocol, method) in
            [(3, "a.B", "c"), (2, "", "c"), (2, "a.B", ""), (2, "a b", "c"), (2, "a", "\n")]
        {
            assert_eq!(invoked(&body(version, protocol, method)), None, "{version} {protocol} {method}");
        }
    }

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
