//! How a cluster is to behave, and where it is made.

use std::path::PathBuf;

use crate::encryption::Cipher;
use crate::layout::{self, CONF};
use crate::plan::HostPlan;

/// How a cluster is to behave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// No speculation, reduces after the last map, one map or reduce a host at a time.
    pub quiet: bool,
    /// All is encrypted that can be without Kerberos, blocks by this.
    pub encrypted: Option<Cipher>,
    /// Options of every JVM of the cluster beside its own (the Java agent).
    pub jvm_options: Vec<String>,
    /// Properties of the user, over all others.
    pub properties: Vec<(String, String)>,
    /// Home of the Java runtime.
    pub java_home: PathBuf,
    /// Folder of the distribution's files.
    pub cache: PathBuf,
    /// Folder of the lab's files.
    pub work: PathBuf,
}

impl Settings {
    /// Folder of a host's files.
    #[must_use]
    pub fn host_folder(&self, host: &HostPlan) -> PathBuf {
        self.work.join(&host.name)
    }

    /// Folder of a host's configuration as the machine sees it; on the host it is [`CONF`].
    #[must_use]
    pub fn conf(&self, host: &HostPlan) -> PathBuf {
        layout::root(&self.work, host).join(CONF.trim_start_matches('/'))
    }
}
