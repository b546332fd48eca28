//! `PREFIX/installed.json` on each host: what was brought there and what was changed, so that removal is exact.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::versions::Generation;

/// The file's name below the prefix.
pub const FILE: &str = "installed.json";

/// Who starts the agents of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum StartedBy {
    /// `hadoptic start`.
    #[default]
    Hadoptic,
    /// systemd, asked by `hadoptic start`.
    Systemd,
    /// The first Hadoop daemon of the host.
    Daemons,
}

/// The whole file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// Format version, 1.
    pub version: u32,
    /// The program's version.
    pub program: String,
    /// The folder of everything.
    pub prefix: String,
    /// The folder of what is recorded.
    pub capture_dir: String,
    /// Hadoop's configuration.
    pub conf_dir: String,
    /// Hadoop's version.
    pub generation: Generation,
    /// What JVMs get.
    pub agent: String,
    /// Who starts the agents.
    pub started_by: StartedBy,
    /// As whom they go on once everything is open, "" = root (of installations before there was a user for that).
    pub run_as: String,
    /// What all that is recorded on the host may take, bytes; `None` = the programs' default, 0 = no limit.
    #[serde(default)]
    pub disk_limit: Option<u64>,
    /// Options of `sniffer run`.
    pub sniffer: Vec<String>,
    /// Options of `dumpingd run`.
    pub dumpingd: Vec<String>,
    /// Checksums of the programs and the jar, by path.
    pub files: BTreeMap<String, String>,
    /// What was changed, in this order.
    pub edits: Vec<EditRecord>,
}

/// A file that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditRecord {
    /// Its name in the configuration, and of its copy in `backup/`.
    pub name: String,
    /// Where it lies, without symbolic links.
    pub path: String,
    /// Its checksum before, "-" = there was none.
    pub before: String,
    /// Its checksum afterwards.
    pub after: String,
}

impl Installed {
    /// Where an agent's own words are on a host that calls itself so.
    #[must_use]
    pub fn log(&self, agent: &str, host: &str) -> String {
        match self.started_by {
            StartedBy::Daemons => format!("{}/{host}/{agent}.log", self.capture_dir),
            StartedBy::Hadoptic | StartedBy::Systemd => format!("{}/log/{agent}.log", self.prefix),
        }
    }

    /// As whom they go on.
    #[must_use]
    pub fn service(&self) -> &str {
        if self.run_as.is_empty() { "root" } else { &self.run_as }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// If it is damaged, or of a later version.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let installed: Self =
            serde_json::from_slice(bytes).map_err(|error| format!("{FILE} on the host cannot be read: {error}"))?;
        if installed.version != 1 {
            return Err(format!("{FILE} on the host has version {}, this program knows 1", installed.version));
        }
        Ok(installed)
    }
}
