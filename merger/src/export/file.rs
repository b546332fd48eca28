//! Files of an export, and why one could not be made.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Why a trace could not be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A file cannot be written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file that the error is about.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The program for which it is could not open it.
    #[error(
        "the trace needs {found} rows, one for each process and for all that its threads did at the same time; the program \
         that is to open it takes at most {max}"
    )]
    TooManyRows {
        /// Rows.
        found: usize,
        /// Rows that it takes.
        max: usize,
    },
    /// The job's causes cannot be followed.
    #[error(transparent)]
    Causal(#[from] causal::CausalError),
    /// The format has no number for a message's size.
    #[error("a message of the trace has {bytes} bytes; the format can say at most {max}")]
    MessageTooLarge {
        /// Bytes of the message.
        bytes: u64,
        /// Bytes that it can say.
        max: u64,
    },
    /// There is nothing to show.
    #[error("the trace has no Hadoop process; was the capture made without owners (dumpingd, ss, Java agent)?")]
    NoProcesses,
}

/// Writes a file; its folder is made where it is missing.
pub(crate) fn write(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<(), ExportError> {
    let failed = |source| ExportError::Io { path: path.into(), source };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut file = BufWriter::new(File::create(path).map_err(failed)?);
    fill(&mut file).and_then(|()| file.flush()).map_err(failed)
}

/// A path with a further ending.
pub(crate) fn with_extension(out: &Path, extension: &str) -> PathBuf {
    let mut path = OsString::from(out);
    path.push(".");
    path.push(extension);
    path.into()
}

/// A name as a label in a text file. Names come from captures: a line break in one would begin a section or a label of its own.
pub(crate) fn one_line(name: &str) -> String {
    let plain = name.replace(|letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}'), " ");
    let plain = plain.trim();
    if plain.is_empty() { "unknown".to_owned() } else { plain.to_owned() }
}
