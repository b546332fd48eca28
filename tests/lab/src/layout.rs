//! Where Hadoop lies on a host, and where a host's files lie on the machine.

use std::path::{Path, PathBuf};

use crate::plan::HostPlan;

/// Where Hadoop is on a host.
pub const HOME: &str = "/opt/hadoop";
/// Where its configuration is on a host.
pub const CONF: &str = "/etc/hadoop/conf";
/// The folder of what a host has of its own, as the machine sees it.
#[must_use]
pub fn root(run: &Path, host: &HostPlan) -> PathBuf {
    run.join(&host.name).join("root")
}

/// A program of Hadoop's and its first arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// `hadoop`, `hdfs`, `yarn` or `mapred`.
    pub program: &'static str,
    /// What it is told first.
    pub arguments: Vec<String>,
}

impl Call {
    /// A call of a program with a subcommand.
    #[must_use]
    pub fn new(program: &'static str, arguments: &[&str]) -> Self {
        Self { program, arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect() }
    }

    /// The program's path on a host.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{HOME}/bin/{}", self.program)
    }
}
