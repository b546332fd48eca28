//! Reading what agents and other tools left, whole or cut off, packed or not, within bounds: what a line may take, and
//! how much a packed file may grow to.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::folder::open_regular;

/// Bytes of a line of an agent's record file, at most; the longest ones that were seen have 536.
pub const MAX_RECORD_BYTES: usize = 64 << 10;
/// Bytes of a manifest, a configuration or another file that is read whole, at most.
pub const MAX_WHOLE_BYTES: u64 = 16 << 20;
/// A packed file may unpack to this many times its size ...
pub const MAX_EXPANSION: u64 = 1000;
/// ... or to so many bytes, whichever is more. Record files are packed 5 to 60 times smaller.
pub const FREE_EXPANSION_BYTES: u64 = 64 << 20;

/// What could not be used of a file of lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineLosses {
    /// Bytes of a last line that has no end: the writer was killed in it.
    pub truncated_bytes: u64,
    /// Whole lines that are no record of the expected kind.
    pub malformed_lines: u64,
    /// The first of these: line number (from 1) and reason.
    pub first_malformed: Option<(u64, String)>,
    /// Lines that are longer than any record may be.
    pub overlong_lines: u64,
    /// Why the file could not be read to its end: packed data that is cut off, damaged, or grows beyond all measure.
    pub broken_off: Option<String>,
}

/// Reads a file of JSON lines: all whole records, and what was lost.
///
/// # Errors
/// If the file cannot be opened or read.
pub fn read_json_lines<T: DeserializeOwned>(path: &Path) -> io::Result<(Vec<T>, LineLosses)> {
    let mut records = Vec::new();
    let losses = json_lines(open(path)?, MAX_RECORD_BYTES, |record| records.push(record))?;
    Ok((records, losses))
}

/// Hands each record of JSON lines of at most `longest` bytes to `take`, and says what was lost.
///
/// # Errors
/// If `input` cannot be read.
pub fn json_lines<T: DeserializeOwned>(
    input: impl BufRead,
    longest: usize,
    take: impl FnMut(T),
) -> io::Result<LineLosses> {
    parsed_lines(input, longest, |line| serde_json::from_slice(line), take)
}

/// As [`json_lines`], with a reader of records.
///
/// # Errors
/// As [`json_lines`].
pub fn parsed_lines<T>(
    input: impl BufRead,
    longest: usize,
    parse: impl Fn(&[u8]) -> serde_json::Result<T>,
    mut take: impl FnMut(T),
) -> io::Result<LineLosses> {
    let mut malformed = 0;
    let mut first_malformed = None;
    let (mut losses, _) = lines(input, longest, |number, line| match parse(line) {
        Ok(record) => take(record),
        Err(error) => {
            malformed += 1;
            first_malformed.get_or_insert_with(|| (number, error.to_string()));
        }
    })?;
    (losses.malformed_lines, losses.first_malformed) = (malformed, first_malformed);
    Ok(losses)
}

/// Hands each whole line of at most `longest` bytes to `take`, with its number (from 1) and its end. Says what was lost,
/// and hands back a last line that has no end. Holds one line at a time.
///
/// # Errors
/// If `input` cannot be read.
pub fn lines(
    mut input: impl BufRead,
    longest: usize,
    mut take: impl FnMut(u64, &[u8]),
) -> io::Result<(LineLosses, Vec<u8>)> {
    let mut losses = LineLosses::default();
    let mut line = Vec::new();
    // Bytes of this line so far, those that were not kept among them.
    let mut length = 0u64;
    let mut number = 1u64;
    loop {
        let piece = match input.fill_buf() {
            Ok(piece) => piece,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                losses.broken_off = Some(error.to_string());
                &[]
            }
            Err(error) => return Err(error),
        };
        if piece.is_empty() {
            losses.truncated_bytes = length;
            return Ok((losses, line));
        }
        // As quick as the system's search for a byte.
        let used = { piece }.skip_until(b'\n')?;
        let ends = piece[..used].ends_with(b"\n");
        length += used as u64;
        if length <= longest as u64 {
            line.extend_from_slice(&piece[..used]);
        }
        input.consume(used);
        if ends {
            if length <= longest as u64 {
                take(number, &line);
            } else {
                losses.overlong_lines += 1;
            }
            line.clear();
            (length, number) = (0, number + 1);
        }
    }
}

/// Reads a file that is to be understood whole, of at most [`MAX_WHOLE_BYTES`].
///
/// # Errors
/// If it is larger, cut off in its packing, or cannot be read.
pub fn read_whole(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    unpacked(file)?.take(MAX_WHOLE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_WHOLE_BYTES {
        let limit = MAX_WHOLE_BYTES >> 20;
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it is larger than {limit} MiB")));
    }
    Ok(bytes)
}

/// Opens a regular file, buffered; with feature `packed` also what zstd, gzip or xz packed, told by its first bytes.
///
/// # Errors
/// If it cannot be opened or read, is a link or anything else that is no regular file, or is packed and the feature is
/// missing.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    unpacked(open_regular(path)?)
}

/// What an open file holds, as [`open`] has it.
///
/// # Errors
/// If it cannot be read, or is packed and the feature is missing.
pub fn unpacked(file: File) -> io::Result<Box<dyn BufRead + Send>> {
    let packed_bytes = file.metadata()?.len();
    let mut file = BufReader::with_capacity(1 << 18, file);
    let packing = Packing::of(file.fill_buf()?);
    unpack(file, packing, packed_bytes)
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

/// Memory that unpacking may take for what came before, as a power of two: zstd's own default, which `--long=27` needs.
#[cfg(feature = "packed")]
const WINDOW_LOG_MAX: u32 = 27;

/// Memory that unpacking xz may take, bytes: its strongest preset needs 65 MiB.
#[cfg(feature = "packed")]
const XZ_MEMORY: u64 = 128 << 20;

#[cfg(feature = "packed")]
fn unpack<R: BufRead + Send + 'static>(
    file: R,
    packing: Packing,
    packed_bytes: u64,
) -> io::Result<Box<dyn BufRead + Send>> {
    let left = packed_bytes.saturating_mul(MAX_EXPANSION).max(FREE_EXPANSION_BYTES);
    fn buffered<R: Read + Send + 'static>(input: R, left: u64) -> Box<dyn BufRead + Send> {
        Box::new(BufReader::with_capacity(1 << 18, Unpacked { input, begun: false, left }))
    }
    Ok(match packing {
        Packing::Plain => Box::new(file),
        Packing::Zstd => {
            let mut decoder = zstd::Decoder::with_buffer(file)?;
            decoder.window_log_max(WINDOW_LOG_MAX)?;
            buffered(decoder, left)
        }
        Packing::Gzip => buffered(flate2::bufread::MultiGzDecoder::new(file), left),
        Packing::Xz => {
            let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, liblzma::stream::CONCATENATED)
                .map_err(io::Error::other)?;
            buffered(liblzma::bufread::XzDecoder::new_stream(file, stream), left)
        }
    })
}

#[cfg(not(feature = "packed"))]
fn unpack<R: BufRead + Send + 'static>(file: R, packing: Packing, _: u64) -> io::Result<Box<dyn BufRead + Send>> {
    match packing {
        Packing::Plain => Ok(Box::new(file)),
        _ => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("the file is packed ({packing:?}) and this program only reads plain ones"),
        )),
    }
}

/// Packed data that was cut off or damaged ends where it can no longer be unpacked: the decoders' errors differ, and
/// whatever came before is good. Data that never unpacked at all is an error. What grows beyond all measure ends as well.
#[cfg(feature = "packed")]
struct Unpacked<R> {
    input: R,
    begun: bool,
    /// Bytes that may still come.
    left: u64,
}

#[cfg(feature = "packed")]
impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let reason = format!("it unpacks to more than {MAX_EXPANSION} times its size");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason));
        }
        match self.input.read(buffer) {
            Ok(n) => {
                self.begun |= n > 0;
                self.left = self.left.saturating_sub(n as u64);
                Ok(n)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) if self.begun => Err(io::Error::new(io::ErrorKind::UnexpectedEof, error)),
            Err(error) => Err(error),
        }
    }
}
