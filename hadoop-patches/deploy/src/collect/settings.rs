//! What is collected, and whence.

use std::path::PathBuf;

use super::host_digest::DigestSettings;
use crate::places::Places;

/// What is to be collected.
pub struct Settings {
    /// Where it lies.
    pub places: Places,
    /// The capture.
    pub out: PathBuf,
    /// So much of a host at most, bytes; 0 = all, `None` = by what it was allowed to record.
    pub max_bytes: Option<u64>,
    /// Where the histories of jobs lie.
    pub history: Option<History>,
    /// Of each host a digest in place of all files, made like this.
    pub digest: Option<DigestSettings>,
}

/// Where the histories of jobs lie.
#[derive(Clone, Debug)]
pub struct History {
    /// The host that has them, or from which HDFS is read.
    pub host: String,
    /// A folder there.
    pub folder: String,
    /// Whether it is one of HDFS.
    pub in_hdfs: bool,
    /// Only jobs whose files' names hold this, "" = all.
    pub job: String,
    /// The program `hadoop` on that host.
    pub hadoop: String,
    /// As whom HDFS is read, "" = root.
    pub user: String,
}
