//! Why the lab could not do something.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Output};

/// What the lab's functions return.
pub type Result<T, E = LabError> = std::result::Result<T, E>;

/// Why the lab could not do something.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A signal ended it: nothing is wrong.
    #[error("stopped by a signal")]
    Stopped,
    /// The system refused something.
    #[error("{action}: {source}")]
    Io {
        /// What, with the file or the address: "cannot write /x".
        action: String,
        /// The system's error.
        source: io::Error,
    },
    /// A program, or a process of the lab, ended badly.
    #[error("{command} ended with {status}: {said}")]
    Command {
        /// What was run.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What it said, or the end of its log.
        said: String,
    },
    /// Something did not happen in time.
    #[error("{0}")]
    Timeout(String),
    /// It was asked for what cannot be; the text says what to change.
    #[error("{0}")]
    Config(String),
    /// Something that the lab needs is not here; the text says where it comes from.
    #[error("{0}")]
    Missing(String),
    /// What a file or a program says is not what it should be.
    #[error("{0}")]
    Parse(String),
    /// The cluster, or the lab itself, did not behave as it should.
    #[error("{0}")]
    Failed(String),
    /// Any of these, while something greater was done.
    #[error("{action}: {source}")]
    Within {
        /// What was done, as a clause.
        action: String,
        /// Why the action failed.
        source: Box<LabError>,
    },
}

impl LabError {
    /// How a program ended whose output was kept.
    pub fn command(command: impl Into<String>, output: &Output) -> Self {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Self::Command { command: command.into(), status: output.status, said }
    }

    /// Whether a signal is the reason.
    #[must_use]
    pub fn is_stop(&self) -> bool {
        match self {
            Self::Stopped => true,
            Self::Within { source, .. } => source.is_stop(),
            _ => false,
        }
    }
}

/// What becomes an error of the lab when it is told what was being done.
pub trait Cause {
    /// The error of that action.
    fn of(self, action: String) -> LabError;
}

impl Cause for LabError {
    fn of(self, action: String) -> LabError {
        LabError::Within { action, source: Box::new(self) }
    }
}

impl Cause for io::Error {
    fn of(self, action: String) -> LabError {
        LabError::Io { action, source: self }
    }
}

impl Cause for nix::Error {
    fn of(self, action: String) -> LabError {
        io::Error::from(self).of(action)
    }
}

impl Cause for serde_json::Error {
    fn of(self, action: String) -> LabError {
        LabError::Parse(format!("{action}: {self}"))
    }
}

impl Cause for std::num::ParseIntError {
    fn of(self, action: String) -> LabError {
        LabError::Parse(format!("{action}: {self}"))
    }
}

/// Says of a failure what was being done.
pub trait Context<T> {
    /// By what could not be done, and with which file: "cannot write".
    ///
    /// # Errors
    /// If this is one.
    fn at(self, action: &str, path: &Path) -> Result<T>;

    /// By a text that is there.
    ///
    /// # Errors
    /// If this is one.
    fn context(self, action: &str) -> Result<T>;

    /// By a text that is made only for a failure.
    ///
    /// # Errors
    /// If this is one.
    fn with_context(self, action: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Cause> Context<T> for std::result::Result<T, E> {
    fn at(self, action: &str, path: &Path) -> Result<T> {
        self.with_context(|| format!("{action} {}", path.display()))
    }

    fn context(self, action: &str) -> Result<T> {
        self.map_err(|error| error.of(action.to_owned()))
    }

    fn with_context(self, action: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| error.of(action()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn a_failure_tells_each_step_once_and_a_stop_is_known_below_them() {
        let refused: io::Result<()> = Err(io::ErrorKind::NotFound.into());
        let error = refused.context("cannot read /x").context("cannot join").unwrap_err();
        assert_eq!(
            trace::stderr::error_chain(&error),
            format!("cannot join: cannot read /x: {}", io::Error::from(io::ErrorKind::NotFound))
        );
        assert!(!error.is_stop());
        assert!(Err::<(), _>(LabError::Stopped).context("cannot wait").unwrap_err().is_stop());
    }
}
