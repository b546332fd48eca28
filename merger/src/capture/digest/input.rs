//! Reading numbers and pieces of bounded length.

use std::io::{self, BufRead, Read as _};

use serde::de::DeserializeOwned;

use super::DigestError;
use crate::varint::MAX_BYTES;

/// What is left of a digest, unpacked.
pub(super) struct Input {
    reader: Box<dyn BufRead + Send>,
    piece: Vec<u8>,
}

/// The packing's word where it has one, which names the damage.
fn damaged(error: &io::Error) -> DigestError {
    DigestError::Damaged(error.to_string())
}

impl Input {
    pub fn new(reader: Box<dyn BufRead + Send>) -> Self {
        Self { reader, piece: Vec::new() }
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DigestError> {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes).map_err(|error| damaged(&error))?;
        Ok(bytes)
    }

    pub fn number(&mut self) -> Result<u64, DigestError> {
        let mut number = 0u64;
        for place in 0..MAX_BYTES {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f).checked_shl(7 * place as u32).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(DigestError::Senseless("a number of more than ten bytes".into()))
    }

    /// A length of at most `limit`.
    pub fn length(&mut self, limit: usize) -> Result<usize, DigestError> {
        let length = self.number()?;
        let fits = usize::try_from(length).ok().filter(|length| *length <= limit);
        fits.ok_or_else(|| DigestError::Senseless(format!("{length} bytes where at most {limit} can be")))
    }

    /// So many bytes, in place of what is in `into`.
    pub fn bytes(&mut self, length: usize, into: &mut Vec<u8>) -> Result<(), DigestError> {
        into.clear();
        // Memory grows with what is there, not with what is claimed.
        let read = (&mut self.reader).take(length as u64).read_to_end(into).map_err(|error| damaged(&error))?;
        if read < length { Err(DigestError::Damaged("it ends too early".into())) } else { Ok(()) }
    }

    pub fn json<T: DeserializeOwned>(&mut self, length: usize) -> Result<T, DigestError> {
        let mut piece = std::mem::take(&mut self.piece);
        self.bytes(length, &mut piece)?;
        let value = serde_json::from_slice(&piece).map_err(|error| DigestError::Senseless(error.to_string()));
        self.piece = piece;
        value
    }

    /// A length and JSON.
    pub fn record<T: DeserializeOwned>(&mut self) -> Result<T, DigestError> {
        let length = self.length(super::MAX_RECORD_BYTES)?;
        self.json(length)
    }

    /// That nothing follows; only here the packing's checksum is known to be right.
    pub fn end(mut self) -> Result<(), DigestError> {
        match self.reader.fill_buf() {
            Ok([]) => Ok(()),
            Ok(_) => Err(DigestError::Senseless("something follows on its end".into())),
            Err(error) => Err(damaged(&error)),
        }
    }
}
