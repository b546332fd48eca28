//! Which jobs run in which settings, and what is learned from which.

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
    /// Version of Hadoop.
    pub hadoop: String,
    /// Real runs of each setting.
    pub runs: usize,
    /// Generated jobs of each prediction: places of blocks and phases of heartbeats are drawn.
    pub seeds: u32,
    /// Jobs, one after the other in each run.
    pub jobs: Vec<Job>,
    /// The settings.
    #[serde(rename = "setting")]
    pub settings: Vec<Setting>,
    /// What is learned from which.
    #[serde(rename = "prediction")]
    pub predictions: Vec<Planned>,
}

/// A cluster, a network and the size of a job. What is not given is that of `Setting::default`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct Setting {
    /// Its name, also of folders.
    pub name: String,
    /// Input, as `lab run --size` takes it.
    pub size: String,
    /// Workers.
    pub workers: u32,
    /// Maps.
    pub maps: u32,
    /// Reduces.
    pub reduces: u32,
    /// Copies of the output.
    pub replication: u32,
    /// Rate of the hosts' links.
    pub links: String,
    /// Rate between the racks.
    pub uplink: String,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            name: String::new(),
            size: "128MB".to_owned(),
            workers: 4,
            maps: 4,
            reduces: 4,
            replication: 2,
            links: "100mbit".to_owned(),
            uplink: "50mbit".to_owned(),
        }
    }
}

impl Setting {
    /// Its network.
    #[must_use]
    pub fn network(&self) -> Network {
        Network { name: self.name.clone(), links: self.links.clone(), uplink: self.uplink.clone(), network_work: None }
    }

    /// The arguments of `lab run`.
    #[must_use]
    pub fn arguments(&self, hadoop: &str) -> Vec<String> {
        let number = |number: u32| number.to_string();
        let arguments = [
            ("--prefix", "jobs".to_owned()),
            ("--hadoop", hadoop.to_owned()),
            ("--size", self.size.clone()),
            ("--workers", number(self.workers)),
            ("--maps", number(self.maps)),
            ("--reduces", number(self.reduces)),
            ("--output-replication", number(self.replication)),
            ("--links", self.links.clone()),
            ("--uplink", self.uplink.clone()),
        ];
        arguments.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
    }
}

/// How a job is made of a recorded one.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// `merger characterise`, with the other setting put into its job file.
    Like,
    /// `replay grow`.
    Grow,
}

impl By {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Like => "like",
            Self::Grow => "grow",
        }
    }
}

/// Predictions from runs of one setting.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planned {
    /// How.
    pub by: By,
    /// The setting of the recorded run.
    pub from: String,
    /// Settings that are predicted.
    pub to: Vec<String>,
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// If it cannot be read, is no plan, or says what cannot be done.
    pub fn read(path: &Path) -> Result<Self> {
        let place = || path.display().to_string();
        Self::parse(&fs::read_to_string(path).with_context(place)?).with_context(place)
    }

    fn parse(text: &str) -> Result<Self> {
        let plan: Self = toml::from_str(text)?;
        ensure!(plan.runs >= 1 && plan.seeds >= 1, "runs and seeds are at least 1");
        let mut names = BTreeSet::new();
        for setting in &plan.settings {
            let name = &setting.name;
            let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            ensure!(is_plain && !name.is_empty(), "setting \"{name}\": letters, digits and - only");
            ensure!(names.insert(name.as_str()), "two settings are called \"{name}\"");
        }
        for name in plan.predictions.iter().flat_map(|planned| planned.to.iter().chain([&planned.from])) {
            ensure!(names.contains(name.as_str()), "prediction: no setting is called \"{name}\"");
        }
        Ok(plan)
    }

    /// A setting by its name, which was checked.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.name == name)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_plan_of_the_repository_covers_what_it_is_for() {
        let plan = Plan::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs/plan.toml")).unwrap();
        assert!(plan.runs >= 5, "a noise floor of fewer than five runs says little");
        assert!(plan.jobs.contains(&Job::Terasort) && plan.jobs.contains(&Job::Wordcount));
        let all = |of: fn(&Setting) -> u32| plan.settings.iter().map(of).collect::<BTreeSet<_>>();
        assert_eq!(all(|setting| setting.workers), [2, 4, 8].into());
        assert!(all(|setting| setting.maps).is_superset(&[2, 16].into()));
        assert!(all(|setting| setting.reduces).is_superset(&[2, 16].into()));
        assert_eq!(all(|setting| setting.replication), [1, 2, 3].into());
        assert!(plan.settings.iter().any(|setting| setting.links == "unshaped"));
        let grown = plan.predictions.iter().find(|planned| planned.by == By::Grow).unwrap();
        assert_eq!(plan.setting(&grown.from).unwrap().workers, 2);
    }

    #[test]
    fn names_that_are_not_there_or_twice_are_refused() {
        let plan = |second: &str, to: &str| {
            Plan::parse(&format!(
                "hadoop = \"3.4.2\"\nruns = 1\nseeds = 1\njobs = [\"terasort\"]\n[[setting]]\nname = \"base\"\n\
                 [[setting]]\nname = \"{second}\"\nsize = \"64MB\"\n\
                 [[prediction]]\nby = \"like\"\nfrom = \"base\"\nto = [\"{to}\"]\n"
            ))
        };
        let refused = |second: &str, to: &str| plan(second, to).unwrap_err().to_string();
        assert_eq!(plan("half", "half").unwrap().settings[1].workers, 4);
        assert!(refused("base", "base").contains("two settings"));
        assert!(refused("half", "quarter").contains("\"quarter\""));
        assert!(refused("../x", "base").contains("../x"));
    }
}
