//! Just enough of protocol buffers' wire format to read headers of which the end may be missing.

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Varint.
    Varint(u64),
    /// Eight bytes, little endian.
    Fixed64(u64),
    /// Four bytes, little endian.
    Fixed32(u32),
    /// Bytes, text or a message within; `whole` is false if their end is missing.
    Bytes {
        /// What is there.
        bytes: &'a [u8],
        /// Whether that is all.
        whole: bool,
    },
}

impl<'a> Value<'a> {
    /// A number, whatever its encoding.
    #[must_use]
    pub fn number(self) -> Option<u64> {
        match self {
            Self::Varint(n) | Self::Fixed64(n) => Some(n),
            Self::Fixed32(n) => Some(u64::from(n)),
            Self::Bytes { .. } => None,
        }
    }

    /// Bytes, possibly without their end.
    #[must_use]
    pub fn bytes(self) -> Option<&'a [u8]> {
        if let Self::Bytes { bytes, .. } = self { Some(bytes) } else { None }
    }

    /// Text that is there whole.
    #[must_use]
    pub fn text(self) -> Option<&'a str> {
        match self {
            Self::Bytes { bytes, whole: true } => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
}

/// Reads a varint: its value and its length. `Err(true)` = cut off, `Err(false)` = none (more than ten bytes).
pub fn varint(bytes: &[u8]) -> Result<(u64, usize), bool> {
    let mut value = 0u64;
    for (at, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(7 * at as u32).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok((value, at + 1));
        }
    }
    Err(bytes.len() < 10)
}

/// Zigzag decoding.
#[must_use]
pub fn zigzag(n: u64) -> i64 {
    ((n >> 1) as i64) ^ -((n & 1) as i64)
}

/// What could be read of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message<'a> {
    /// Field numbers and values, in order.
    pub fields: Vec<(u32, Value<'a>)>,
    /// Whether the bytes were all that was expected.
    pub whole: bool,
}

impl<'a> Message<'a> {
    /// Reads a message of `length` bytes of which `bytes` begins with as many as are there. `None` = this is no such
    /// message.
    #[must_use]
    pub fn read(bytes: &'a [u8], length: usize) -> Option<Self> {
        let whole = bytes.len() >= length;
        let bytes = &bytes[..bytes.len().min(length)];
        let mut message = Self { fields: Vec::new(), whole };
        let mut at = 0;
        while at < bytes.len() {
            match field(&bytes[at..], whole) {
                Ok((number, value, used)) => {
                    message.fields.push((number, value));
                    at += used;
                }
                Err(true) if !whole => break,
                Err(_) => return None,
            }
        }
        Some(message)
    }

    /// Reads a message that stands behind its length, and says how long both are together.
    #[must_use]
    pub fn read_delimited(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let (length, used) = varint(bytes).ok()?;
        let length = usize::try_from(length).ok().filter(|length| *length <= 1 << 27)?;
        Some((Self::read(&bytes[used..], length)?, used + length))
    }

    /// The first value of a field.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<Value<'a>> {
        self.fields.iter().find(|(n, _)| *n == number).map(|(_, value)| *value)
    }

    /// The numbers of its fields, in order.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.fields.iter().map(|(number, _)| *number)
    }

    /// A message within.
    #[must_use]
    pub fn message(&self, number: u32) -> Option<Message<'a>> {
        match self.get(number)? {
            Value::Bytes { bytes, whole } => Message::read(bytes, bytes.len() + usize::from(!whole)),
            _ => None,
        }
    }
}

/// Reads a field. `Err(true)` = cut off, `Err(false)` = none. A value that is cut off counts as there, in part, if the
/// message is.
fn field(bytes: &[u8], whole: bool) -> Result<(u32, Value<'_>, usize), bool> {
    let (key, used) = varint(bytes)?;
    let number = u32::try_from(key >> 3).map_err(|_| false)?;
    if number == 0 || number > 536_870_911 {
        return Err(false);
    }
    let rest = &bytes[used..];
    let (value, length) = match key & 7 {
        0 => {
            let (value, length) = varint(rest)?;
            (Value::Varint(value), length)
        }
        1 => (Value::Fixed64(u64::from_le_bytes(*rest.first_chunk().ok_or(true)?)), 8),
        5 => (Value::Fixed32(u32::from_le_bytes(*rest.first_chunk().ok_or(true)?)), 4),
        2 => {
            let (length, used) = varint(rest)?;
            let length = usize::try_from(length).map_err(|_| false)?;
            let rest = &rest[used..];
            match rest.get(..length) {
                Some(bytes) => (Value::Bytes { bytes, whole: true }, used + length),
                None if whole => return Err(false),
                None => (Value::Bytes { bytes: rest, whole: false }, used + rest.len()),
            }
        }
        _ => return Err(false),
    };
    Ok((number, value, used + length))
}
