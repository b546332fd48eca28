//! What is wrong with an experiment, and where.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why an experiment cannot be run as it is written.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// The file cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// Something in it is wrong.
    #[error("{place}: {reason}")]
    Wrong {
        /// `FILE:LINE:COLUMN`, or the `--set` that is wrong.
        place: String,
        /// What is wrong, what is allowed, and the line where it is known.
        reason: String,
    },
}
