//! What the walls have to leave open.

use std::path::PathBuf;

/// What an agent needs once everything is open.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Folders and files that are read; where one is missing the nearest folder above it.
    pub reads: Vec<PathBuf>,
    /// Folders into which is written.
    pub writes: Vec<PathBuf>,
    /// /proc/PID of other processes is looked into: then there is no Landlock.
    pub looks_into_processes: bool,
    /// Network namespaces of others are entered.
    pub enters_namespaces: bool,
    /// Programs are started.
    pub starts_programs: bool,
}
