//! A packet file without what the packets carried.

use std::io::{Read, Write};

use super::reader::{PacketReader, Part, parse_body};
use super::{MAGIC, PacketFileError, PacketFileLosses, write_header};
use crate::capture_note::CaptureNote;

/// What was written instead of a packet file, and what was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StrippedFile {
    /// Packets.
    pub packets: u64,
    /// Kept payload bytes that were left out.
    pub payload_bytes: u64,
    /// What could not be read, and is therefore left out too: payload may be in it.
    pub losses: PacketFileLosses,
}

/// Copies a packet file without the kept payload: headers, lengths, times and notes stay, in their order. Records that
/// cannot be understood are left out. Holds one record at a time.
///
/// # Errors
/// If reading or writing fails, or `input` is no packet file that this version knows.
pub fn strip<R: Read, W: Write>(input: R, mut out: W) -> Result<StrippedFile, PacketFileError> {
    let mut reader = PacketReader::new(input)?;
    let mut stripped = StrippedFile::default();
    out.write_all(MAGIC)?;
    write_header(&mut out, reader.header())?;
    let mut written = Vec::new();
    loop {
        let body = match reader.next_part()? {
            Part::End => break,
            Part::Restart => {
                out.write_all(&0u16.to_le_bytes())?;
                write_header(&mut out, reader.header())?;
                continue;
            }
            Part::Record => reader.body(),
        };
        let kept = if let Some(packet) = parse_body(body) {
            stripped.packets += 1;
            stripped.payload_bytes += packet.payload.len() as u64;
            &body[..body.len() - packet.payload.len()]
        } else if let Some(note) = CaptureNote::decode(body) {
            // Written anew: nothing else can hide in it.
            written.clear();
            note.encode(&mut written);
            &written
        } else {
            reader.note_malformed();
            continue;
        };
        out.write_all(&u16::try_from(kept.len()).unwrap_or(u16::MAX).to_le_bytes())?;
        out.write_all(kept)?;
    }
    out.flush()?;
    stripped.losses = reader.losses();
    Ok(stripped)
}
