//! Why a run could not begin.

use std::io;
use std::path::PathBuf;

use crate::capture::OpenError;
use crate::disk_quota::NoRoom;
use crate::interfaces::ChoiceError;
use crate::privileges::PrivilegeError;

/// Why a run could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is nothing to record.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// An interface cannot be recorded.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A configuration of Hadoop cannot be read.
    #[error("{path} is no folder with Hadoop's configuration: {source}", path = path.display())]
    Configuration {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The packet files of earlier runs take all that there may be.
    #[error("{0}: remove or collect what is in the folder, or raise the limit")]
    NoRoom(NoRoom),
    /// The rights cannot be given up.
    #[error(transparent)]
    Privileges(#[from] PrivilegeError),
    /// A file cannot be written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The system does not tell what has to be known.
    #[error("cannot find out {what}: {source}")]
    System {
        /// What.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}
