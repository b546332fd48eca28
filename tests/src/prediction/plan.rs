//! Which jobs run on which networks, and how often.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// Rates are given to the lab as they stand here.
const UNSHAPED: &str = "unshaped";

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
    /// Clusters by version.
    #[serde(rename = "cluster")]
    pub clusters: Vec<Cluster>,
    /// The networks.
    #[serde(rename = "network")]
    pub networks: Vec<Network>,
}

/// A version of Hadoop and its jobs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// The version, as `lab run --hadoop` takes it.
    pub hadoop: String,
    /// Jobs, one after the other in each run.
    pub jobs: Vec<Job>,
}

/// A job of the lab.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Job {
    /// TeraSort; its own teragen and teravalidate run beside it.
    Terasort,
    /// WordCount.
    Wordcount,
}

impl Job {
    /// What the lab calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Terasort => "terasort",
            Self::Wordcount => "wordcount",
        }
    }

    /// The name with which it is submitted.
    #[must_use]
    pub const fn submitted_as(self) -> &'static str {
        match self {
            Self::Terasort => "TeraSort",
            Self::Wordcount => "word count",
        }
    }
}

/// A network of the lab.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Its name, also of files.
    pub name: String,
    /// Rate of the hosts' links.
    #[serde(default = "unshaped")]
    pub links: String,
    /// Rate between the racks.
    #[serde(default = "unshaped")]
    pub uplink: String,
}

fn unshaped() -> String {
    UNSHAPED.to_owned()
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
        for name in names {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
            ensure!(!name.is_empty() && name.chars().all(is_plain), "network \"{name}\": letters, digits and - only");
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
        assert!(plan.networks.iter().any(|network| network.links == UNSHAPED));
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
