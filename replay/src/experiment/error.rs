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
        /// The file that the error is about.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// There is no such file, and none of this name is built in.
    #[error("{path}: {reason}{hint}", path = path.display())]
    NoFile {
        /// The file that the error is about.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
        /// Which name may have been meant.
        hint: String,
    },
    /// Something in it is wrong.
    #[error("{place}: {reason}")]
    Wrong {
        /// `FILE:LINE:COLUMN`, or the `--set` that is wrong.
        place: String,
        /// What is wrong, what is allowed, and the line where it is known.
        reason: String,
    },
    /// Several things are wrong.
    #[error("{}", lines(.0))]
    Several(Vec<ExperimentError>),
}

fn lines(errors: &[ExperimentError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
