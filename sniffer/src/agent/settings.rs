//! What a run is told.

use std::path::PathBuf;
use std::time::Duration;

use crate::capture::CaptureSettings;
use crate::disk_quota::Limits;
use crate::privileges::RunAs;

/// What is to be recorded, and where to.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// The host's folder.
    pub out: PathBuf,
    /// The folder of the JVMs' records.
    pub jvm_records: PathBuf,
    /// Interfaces; none = all that are up.
    pub interfaces: Vec<String>,
    /// Whether interfaces that come up during the run are recorded as well, if none are named.
    pub new_interfaces: bool,
    /// What is captured of a frame, and what of it is kept.
    pub capture: CaptureSettings,
    /// Whether only Hadoop's ports are recorded, and where they are told.
    pub follow: Option<FollowSettings>,
    /// Whether the packets are written as pcapng too.
    pub pcapng: bool,
    /// What packet files may take of the disk.
    pub limits: Limits,
    /// What becomes of the rights after the start.
    pub run_as: RunAs,
    /// When to end by itself; `None` = at a signal.
    pub duration: Option<Duration>,
}

/// Where Hadoop's ports are told, beside the folder of the host.
#[derive(Clone, Debug, Default)]
pub struct FollowSettings {
    /// Folders with Hadoop's `*-site.xml`.
    pub configurations: Vec<PathBuf>,
    /// More ports.
    pub ports: Vec<u16>,
}
