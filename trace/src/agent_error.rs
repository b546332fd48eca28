//! Why a run of an agent could not begin or go on.

use std::io;
use std::path::{Path, PathBuf};

use crate::privileges::PrivilegeError;

/// Why a run of any agent could not begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The rights cannot be given up.
    #[error(transparent)]
    Privileges(#[from] PrivilegeError),
    /// A file cannot be written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file that the error is about.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system does not tell what has to be known.
    #[error("cannot find out {what}: {source}")]
    System {
        /// What, as it stands behind "cannot find out".
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl AgentError {
    /// For `map_err`: a file could not be written.
    pub fn file(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { path: path.clone(), source }
    }

    /// For `map_err`: the system does not tell `what`.
    pub fn system(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
