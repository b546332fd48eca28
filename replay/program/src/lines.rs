//! Lines of a file, and what is wrong with one.

use std::io::{self, BufRead};

use thiserror::Error;

/// Bytes that a line may have.
const MAX_LINE: u64 = 16 << 20;

/// Why a file is no program.
#[derive(Debug, Error)]
pub enum ParseError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// A line is wrong.
    #[error("line {line}: {reason}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// What is wrong, and what is allowed.
        reason: String,
    },
    /// The file ends too early, or holds nothing.
    #[error("{0}")]
    End(String),
}

/// Hands each line, without its break and with its number from 1, to `take`.
///
/// # Errors
/// If the file cannot be read, a line is no text or longer than 16 MiB, or `take` says what is wrong with one.
pub(crate) fn each_line(
    mut file: impl BufRead,
    mut take: impl FnMut(&str) -> Result<(), String>,
) -> Result<(), ParseError> {
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        if io::Read::take(&mut file, MAX_LINE + 1).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let wrong = |reason: String| ParseError::Line { line, reason };
        if bytes.len() as u64 > MAX_LINE {
            return Err(wrong(format!("longer than {} MiB", MAX_LINE >> 20)));
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| wrong("is no text".to_owned()))?;
        // The byte order mark, with which some editors begin a file.
        let text = text.strip_prefix('\u{feff}').filter(|_| line == 1).unwrap_or(text);
        take(text.trim()).map_err(wrong)?;
    }
    Ok(())
}

/// A whole number, or what is wrong with it.
pub(crate) fn number<T: std::str::FromStr>(word: &str, what: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("\"{word}\" is no {what}"))
}
