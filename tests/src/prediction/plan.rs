//! Which jobs run on which networks, and how often.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::lab_network::Network;
use crate::lab_runs::Job;

/// What to record and to predict.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Real runs of each job on each network.
    pub runs: usize,
    /// Of how many captures a prediction is made, beside those of one.
    pub captures: usize,
    /// Replays of each capture.
    pub seeds: usize,
    /// Input of each job, as `lab run --size` takes it.
    pub size: String,
    /// Reduces of each job.
    pub reduces: u32,
    /// What is left out, one at a time, of predictions from several captures, as `replay predict --without` names it, and `agent`: the
    /// Java agent's records [default: all but `network-work`, which is for networks that say theirs].
    #[serde(default = "everything")]
    pub without: Vec<String>,
    /// Clusters by version.
    #[serde(rename = "cluster")]
    pub clusters: Vec<Cluster>,
    /// The networks.
    #[serde(rename = "network")]
    pub networks: Vec<Network>,
}

/// The name of the ablation that needs another trace.
pub const WITHOUT_AGENT: &str = "agent";

fn everything() -> Vec<String> {
    ["causality", "timers", "production", "tcp", "cpu-sharing", WITHOUT_AGENT].map(str::to_owned).into()
}

/// A version of Hadoop and its jobs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// The version, as `lab run --hadoop` takes it.
    pub hadoop: String,
    /// Folder of its runs, where several clusters have one version [default: the version].
    pub folder: Option<String>,
    /// Jobs, one after the other in each run.
    pub jobs: Vec<Job>,
}

impl Cluster {
    /// Folder of its runs, beside those of the other clusters.
    #[must_use]
    pub fn folder(&self) -> &str {
        self.folder.as_deref().unwrap_or(&self.hadoop)
    }
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// If it cannot be read, is no plan, or says what cannot be done.
    pub fn read(path: &Path) -> Result<Self> {
        let place = || path.display().to_string();
        let plan: Self = toml::from_str(&fs::read_to_string(path).with_context(place)?).with_context(place)?;
        plan.check().with_context(place)?;
        Ok(plan)
    }

    fn check(&self) -> Result<()> {
        ensure!(self.captures >= 1 && self.seeds >= 1, "captures and seeds are at least 1");
        ensure!(
            self.runs >= self.captures,
            "runs = {}: fewer than the {} captures of a prediction",
            self.runs,
            self.captures
        );
        let names: BTreeSet<&str> = self.networks.iter().map(|network| network.name.as_str()).collect();
        ensure!(names.len() == self.networks.len() && names.len() > 1, "give at least two networks, each its own name");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        for name in names {
            ensure!(!name.is_empty() && name.chars().all(is_plain), "network \"{name}\": letters, digits and - only");
        }
        let folders: BTreeSet<&str> = self.clusters.iter().map(Cluster::folder).collect();
        ensure!(
            folders.len() == self.clusters.len(),
            "two clusters share a folder: give one of them `folder = \"NAME\"`"
        );
        for folder in folders {
            let is_version = folder.chars().all(|c| is_plain(c) || c == '.') && !folder.starts_with('.');
            ensure!(!folder.is_empty() && is_version, "folder \"{folder}\": letters, digits, . and - only");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_plan_of_the_repository_can_be_read() {
        let plan = Plan::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("prediction/plan.toml")).unwrap();
        assert!(plan.runs >= 5, "a noise floor of fewer than five runs says little");
        assert!(plan.networks.iter().any(|network| network.links == "unshaped"));
        let jobs: Vec<Job> = plan.clusters.iter().flat_map(|cluster| cluster.jobs.clone()).collect();
        assert!(jobs.contains(&Job::SkewedSort) && jobs.contains(&Job::Distcp), "{jobs:?}");
    }

    #[test]
    fn clusters_of_one_version_have_folders_of_their_own() {
        let plan = |folder: &str| {
            let text = format!(
                "runs = 1\ncaptures = 1\nseeds = 1\nsize = \"1MB\"\nreduces = 1\n\
                 [[cluster]]\nhadoop = \"3.4.2\"\njobs = [\"terasort\"]\n\
                 [[cluster]]\nhadoop = \"3.4.2\"\n{folder}jobs = [\"skewed-sort\", \"distcp\"]\n\
                 [[network]]\nname = \"a\"\n[[network]]\nname = \"b\"\n"
            );
            toml::from_str::<Plan>(&text).unwrap().check()
        };
        assert!(plan("").unwrap_err().to_string().contains("folder = "));
        assert!(plan("folder = \"..\"\n").unwrap_err().to_string().contains("\"..\""));
        assert!(plan("folder = \"3.4.2-more\"\n").is_ok());
    }

    #[test]
    fn a_plan_that_cannot_be_done_is_refused() {
        let plan = |runs: usize, second: &str| {
            format!(
                "runs = {runs}\ncaptures = 3\nseeds = 1\nsize = \"1MB\"\nreduces = 1\ncluster = []\n\
                 [[network]]\nname = \"a\"\n[[network]]\nname = \"{second}\"\n"
            )
        };
        let refused = |text: &str| toml::from_str::<Plan>(text).unwrap().check().unwrap_err().to_string();
        assert!(toml::from_str::<Plan>(&plan(3, "b")).unwrap().check().is_ok());
        assert!(refused(&plan(2, "b")).contains("runs = 2"));
        assert!(refused(&plan(3, "a")).contains("its own name"));
        assert!(refused(&plan(3, "../b")).contains("../b"));
    }
}
