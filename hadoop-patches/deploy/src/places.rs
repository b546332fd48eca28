//! Where things lie on the hosts.

use crate::versions::{Generation, JAR, LAUNCHER};

/// Where things lie on the hosts.
#[derive(Clone, Debug)]
pub struct Places {
    /// The folder of everything.
    pub prefix: String,
    /// The folder of what is recorded.
    pub capture_dir: String,
    /// Hadoop's configuration, "" = as found.
    pub conf_dir: String,
    /// Hadoop's version, where the operator says it.
    pub generation: Option<Generation>,
    /// The Java that tries the agent, "" = the one found.
    pub java: String,
}

impl Places {
    /// What prints the option that loads the agent.
    #[must_use]
    pub fn launcher(&self) -> String {
        format!("{}/{}", self.prefix, LAUNCHER)
    }

    /// Where JVMs keep their records: a folder for each user.
    #[must_use]
    pub fn jvm_dir(&self) -> String {
        format!("{}/jvm", self.capture_dir)
    }

    /// Where the jar lies.
    #[must_use]
    pub fn jar(&self) -> String {
        format!("{}/lib/{}", self.prefix, JAR)
    }
}
