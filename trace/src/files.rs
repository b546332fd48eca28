//! Reading what agents left, whole or cut off, packed or not.

use std::fs::File;
#[cfg(feature = "packed")]
use std::io::Read;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::de::DeserializeOwned;

/// What could not be used of a file of JSON lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineLosses {
    /// Bytes of a last line that has no end: the writer was killed in it.
    pub truncated_bytes: u64,
    /// Whole lines that are no record of the expected kind.
    pub malformed_lines: u64,
    /// The first of these: line number (from 1) and reason.
    pub first_malformed: Option<(u64, String)>,
}

/// Reads a file of JSON lines: all whole records, and what was lost.
///
/// # Errors
/// If the file cannot be opened or read.
pub fn read_json_lines<T: DeserializeOwned>(path: &Path) -> io::Result<(Vec<T>, LineLosses)> {
    let mut input = open(path)?;
    let mut records = Vec::new();
    let mut losses = LineLosses::default();
    let mut line = Vec::new();
    let mut number = 0u64;
    loop {
        line.clear();
        number += 1;
        let ended_early = match input.read_until(b'\n', &mut line) {
            Ok(_) => false,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => true,
            Err(error) => return Err(error),
        };
        if line.last() != Some(&b'\n') {
            losses.truncated_bytes = line.len() as u64;
            return Ok((records, losses));
        }
        match serde_json::from_slice(&line) {
            Ok(record) => records.push(record),
            Err(error) => {
                losses.malformed_lines += 1;
                losses.first_malformed.get_or_insert_with(|| (number, error.to_string()));
            }
        }
        if ended_early {
            return Ok((records, losses));
        }
    }
}

/// Opens a file, buffered; with feature `packed` also what zstd, gzip or xz packed, told by its first bytes.
///
/// # Errors
/// If it cannot be opened or read, or is packed and the feature is missing.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    let mut file = BufReader::with_capacity(1 << 18, File::open(path)?);
    let head = file.fill_buf()?;
    let packing = Packing::of(head);
    unpack(file, packing)
}

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    Plain,
    /// Zstandard (RFC 8878).
    Zstd,
    /// gzip (RFC 1952).
    Gzip,
    /// xz.
    Xz,
}

impl Packing {
    /// Told by the first bytes.
    #[must_use]
    pub fn of(head: &[u8]) -> Self {
        if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Self::Zstd
        } else if head.starts_with(&[0x1f, 0x8b]) {
            Self::Gzip
        } else if head.starts_with(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
            Self::Xz
        } else {
            Self::Plain
        }
    }
}

#[cfg(feature = "packed")]
fn unpack<R: BufRead + Send + 'static>(file: R, packing: Packing) -> io::Result<Box<dyn BufRead + Send>> {
    fn buffered<R: Read + Send + 'static>(input: R) -> Box<dyn BufRead + Send> {
        Box::new(BufReader::with_capacity(1 << 18, CutOff { input, begun: false }))
    }
    Ok(match packing {
        Packing::Plain => Box::new(file),
        Packing::Zstd => buffered(zstd::Decoder::with_buffer(file)?),
        Packing::Gzip => buffered(flate2::bufread::MultiGzDecoder::new(file)),
        Packing::Xz => buffered(liblzma::bufread::XzDecoder::new_multi_decoder(file)),
    })
}

#[cfg(not(feature = "packed"))]
fn unpack<R: BufRead + Send + 'static>(file: R, packing: Packing) -> io::Result<Box<dyn BufRead + Send>> {
    match packing {
        Packing::Plain => Ok(Box::new(file)),
        _ => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("the file is packed ({packing:?}) and this program only reads plain ones"),
        )),
    }
}

/// Packed data that was cut off or damaged ends where it can no longer be unpacked: the decoders' errors differ, and
/// whatever came before is good. Data that never unpacked at all is an error.
#[cfg(feature = "packed")]
struct CutOff<R> {
    input: R,
    begun: bool,
}

#[cfg(feature = "packed")]
impl<R: Read> Read for CutOff<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.input.read(buffer) {
            Ok(n) => {
                self.begun |= n > 0;
                Ok(n)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) if self.begun => Err(io::Error::new(io::ErrorKind::UnexpectedEof, error)),
            Err(error) => Err(error),
        }
    }
}
