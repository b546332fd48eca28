//! Why a run could not begin.

use std::io;
use std::path::PathBuf;

use trace::agent_error::AgentError;

use crate::capture::OpenError;
use crate::disk_quota::NoRoom;
use crate::interfaces::ChoiceError;

/// Why a run could not begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is nothing to record.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// An interface cannot be recorded.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A configuration of Hadoop cannot be read.
    #[error("{path} is no folder with Hadoop's configuration: {source}", path = path.display())]
    Configuration {
        /// The file that the error is about.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The packet files of earlier runs take all that there may be.
    #[error("{0}: remove or collect what is in the folder, or raise the limit")]
    NoRoom(NoRoom),
    /// What any agent's run can fail of.
    #[error(transparent)]
    Agent(#[from] AgentError),
}
