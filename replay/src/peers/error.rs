//! Errors of peers' figures.

use std::path::PathBuf;

use crate::experiment::ExperimentError;
use thiserror::Error;

/// Why a peer's figures cannot be put beside ours.
#[derive(Debug, Error)]
pub enum PeersError {
    /// The table cannot be read.
    #[error("{path}: {reason}", path = path.display())]
    Read {
        /// The file that the error is about.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Something in the table is wrong.
    #[error("{file}:{line}: {reason}")]
    Wrong {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong, and what is allowed.
        reason: String,
    },
    /// The experiment cannot be read, or a row's keys do not fit it.
    #[error("{at}: {error}")]
    Experiment {
        /// The row's file and line.
        at: String,
        /// Why.
        error: ExperimentError,
    },
    /// The experiment has no synthetic traffic, or lists of values.
    #[error("{file}: {reason}")]
    Form {
        /// The experiment.
        file: String,
        /// What is wrong, and what is allowed.
        reason: String,
    },
}
