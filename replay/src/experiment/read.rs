//! Reading experiments from files.

use crate::placing::JobPlacement;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::{Experiment, ExperimentError, Override, locate, shipped};
use netsim::fabric::FabricKind;

/// What serde says of an experiment without a network.
const NO_FABRIC: &str = "missing field `fabric`";

/// An experiment has at most so many bytes.
const MAX_FILE: u64 = 16 << 20;

/// The text of an experiment: of its file, or of the one of this name that is built in.
pub(super) fn text_of(path: &Path) -> Result<Cow<'static, str>, ExperimentError> {
    shipped::text_of(path, shipped::EXPERIMENTS, MAX_FILE)
}

impl Experiment {
    /// Reads an experiment from its file, or the one of this name that is built in, and applies `overrides`. `workload.trace` becomes relative to the current
    /// folder.
    ///
    /// # Errors
    /// If the file cannot be read or something in it, or in an override, is wrong.
    pub fn read(path: &Path, overrides: &[Override]) -> Result<Self, ExperimentError> {
        let text = text_of(path)?;
        let mut experiment = Self::parse(&text, &path.display().to_string(), overrides)?;
        experiment.place(path);
        Ok(experiment)
    }

    /// Takes its name and the folder of its paths from its file.
    pub(super) fn place(&mut self, path: &Path) {
        if self.name.is_empty() {
            self.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        if let Some(file) = &mut self.dispatcher.task_filename {
            *file = folder.join(&*file);
        }
        if let Some(trace) = &mut self.workload.trace {
            *trace = folder.join(&*trace);
        }
        if let Some(jobs) = self.workload.generate.as_mut().filter(|jobs| !shipped::is_shipped_job(jobs, folder)) {
            *jobs = folder.join(&*jobs);
        }
        if let Some(JobPlacement::File(file)) = &mut self.workload.placement {
            *file = folder.join(&*file);
        }
        if let Some(traffic) = &mut self.traffic {
            let background = traffic.background.as_mut().map(|background| &mut background.distances);
            let own = [&mut traffic.table, &mut traffic.distances];
            for file in own.into_iter().chain(background).flatten() {
                *file = folder.join(&*file);
            }
        }
        self.fabric.relative_to(&beside(path));
    }

    /// Reads an experiment from `text`, which errors call `file`, and applies `overrides`.
    ///
    /// # Errors
    /// If something in it, or in an override, is wrong.
    pub fn parse(text: &str, file: &str, overrides: &[Override]) -> Result<Self, ExperimentError> {
        let table = Self::table(text, file, overrides)?;
        Self::of_table(table.clone()).map_err(|message| Self::unreadable(file, text, overrides, &table, &message))
    }

    /// The error `message` of a table, the file with the overrides, that is no experiment.
    pub(super) fn unreadable(
        file: &str,
        text: &str,
        overrides: &[Override],
        table: &toml::Table,
        message: &str,
    ) -> ExperimentError {
        let read = |table| Self::of_table(table)?.to_table().map_err(|error| error.to_string());
        match locate::unreadable(file, text, overrides, (table, &read), message) {
            ExperimentError::Wrong { place, reason } if reason == NO_FABRIC => {
                let reason = format!(
                    "{reason}: a table [fabric] says which network, as kind = \"ethernet\"; `replay experiments` lists some"
                );
                ExperimentError::Wrong { place, reason }
            }
            error => error,
        }
    }

    /// The file as a table, with the overrides.
    pub(super) fn table(text: &str, file: &str, overrides: &[Override]) -> Result<toml::Table, ExperimentError> {
        let mut table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| locate::syntax_error(file, text, &error))?;
        for change in overrides {
            change.apply(&mut table)?;
        }
        let changes = |path: [&str; 2], deep: usize| {
            overrides.iter().any(|change| change.path().iter().zip(path).take(deep).all(|(is, of)| is == of))
        };
        if changes(["fabric", ""], 1)
            && !changes(["workload", "recorded_network"], 2)
            && let Some(workload) = table.get_mut("workload").and_then(toml::Value::as_table_mut)
        {
            // The file said it of its own fabric.
            workload.remove("recorded_network");
        }
        Ok(table)
    }

    /// The error of a key of this experiment that was found wrong later, at the place where the key stands.
    ///
    /// # Errors
    /// Always; or that the file cannot be read any more.
    pub fn wrong(path: &Path, overrides: &[Override], message: &str) -> ExperimentError {
        match text_of(path) {
            Ok(text) => locate::wrong(&path.display().to_string(), &text, overrides, message),
            Err(error) => error,
        }
    }
}

/// The full path of the folder in which an experiment's file lies, so that its effective configuration, which lies
/// elsewhere, names the same files.
fn beside(path: &Path) -> PathBuf {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.into());
    full.parent().unwrap_or(Path::new("")).into()
}
