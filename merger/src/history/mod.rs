//! Hadoop's own records of a job: the job history (`*.jhist`, in Hadoop 1.x `job_*` without an ending), its configuration and its counters.
//!
//! They lie in `CAPTURE/job/`. A history that was cut off, such as a running job's, is read as far as it goes; what
//! cannot be understood is counted. Times in it are milliseconds of the application master's wall clock.

mod conf;
mod events;
mod racks;
mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use trace::files;
use trace::folder::{Folder, Kind};
use trace::truth::CountersByJob;

use crate::capture::host::is_damage;
use crate::left_out::{self, LEFT_OUT};
use crate::loss::{Loss, LossKind, Note as _};

pub use conf::read_configuration;
pub(crate) use conf::{SLOW_START, SLOW_START_1};
pub(crate) use events::job_of;
pub use events::{Attempt, AttemptState, History};
pub(crate) use events::{BYTES_READ, BYTES_WRITTEN, SHUFFLE_BYTES};

/// Why the job history could not be read. What is merely cut off or unknown is no error but a [`Loss`].
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// A file cannot be opened or read.
    #[error("{path}: {source}; give it read permission or remove it from the capture", path = path.display())]
    Io {
        /// The file that the error is about.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// All that the captures' `job/` folders say.
#[derive(Clone, Debug, Default)]
pub struct Histories {
    /// One for each job, ordered by submission.
    pub jobs: Vec<History>,
    /// Configuration of each job: name to value of the settings that are asked for.
    pub configurations: BTreeMap<String, BTreeMap<String, String>>,
    /// Rack of each host that they name.
    pub racks: BTreeMap<String, String>,
    /// What could not be used.
    pub losses: Vec<Loss>,
}

impl Histories {
    fn take(&mut self, name: &str, file_kind: FileKind, input: File, counters: &mut CountersByJob) -> io::Result<()> {
        let (jobs, losses) = match file_kind {
            FileKind::Events => events::read(name, input, &mut self.racks)?,
            FileKind::Records => records::read(name, input)?,
            FileKind::Configuration(job) => {
                self.configurations.insert(job, read_configuration(input)?);
                return Ok(());
            }
            FileKind::Counters => {
                match serde_json::from_slice::<CountersByJob>(&files::read_whole(input)?) {
                    Ok(more) => counters.extend(more),
                    Err(error) => {
                        self.losses.lost(&at(name), LossKind::CountersNotUnderstood(error.to_string()), 1);
                    }
                }
                return Ok(());
            }
            FileKind::Nothing => return Ok(()),
        };
        self.losses.extend(losses);
        for job in jobs {
            merge(&mut self.jobs, job);
        }
        Ok(())
    }

    /// Adds what another file says.
    fn add(&mut self, other: Self) {
        self.losses.extend(other.losses);
        self.racks.extend(other.racks);
        self.configurations.extend(other.configurations);
        for job in other.jobs {
            merge(&mut self.jobs, job);
        }
    }

    /// A setting of a job.
    #[must_use]
    pub fn setting(&self, job: &str, name: &str) -> Option<&str> {
        self.configurations.get(job)?.get(name).map(String::as_str)
    }
}

/// Reads the `job/` folder of each capture; a capture without one adds nothing.
///
/// # Errors
/// If a file that is there cannot be read.
pub fn read(captures: &[PathBuf]) -> Result<Histories, HistoryError> {
    let mut histories = Histories::default();
    let mut counters = CountersByJob::new();
    for capture in captures {
        let Some(folder) = job_folder(capture)? else { continue };
        let mut left_out = left_out::read(&folder).map_err(io_error(&folder.path().join(LEFT_OUT)))?;
        if let Some(reason) = left_out.remove(LEFT_OUT) {
            histories.losses.lost(&at(LEFT_OUT), LossKind::Unusable(reason), 1);
        }
        let names = folder.names().map_err(io_error(folder.path()))?.names;
        let here: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let mut all: Vec<(&str, Option<&str>)> = here.iter().map(|name| (*name, None)).collect();
        let missing = left_out.iter().filter(|(name, _)| !here.contains(name.as_str()));
        all.extend(missing.map(|(name, reason)| (name.as_str(), Some(reason.as_str()))));
        all.sort_unstable();
        let files: Vec<_> = all.par_iter().map(|(name, left_out)| read_file(&folder, name, *left_out)).collect();
        for file in files {
            let (of_file, counted) = file?;
            histories.add(of_file);
            counters.extend(counted);
        }
    }
    for job in &mut histories.jobs {
        if let Some(counted) = counters.get(&job.id) {
            job.complete_counters(counted);
        }
    }
    for job in histories.jobs.iter().filter(|job| job.finish_ms == 0) {
        histories.losses.lost(&job.id, LossKind::WithoutEnd, 1);
    }
    histories.jobs.sort_by(|a, b| (a.submit_ms, &a.id).cmp(&(b.submit_ms, &b.id)));
    Ok(histories)
}

/// Whether a file of a `job/` folder tells anything, by its name.
pub(crate) fn is_of_job(name: &str) -> bool {
    FileKind::of(name) != FileKind::Nothing
}

/// What one file says; or why it was left out when the folder was copied.
fn read_file(folder: &Folder, name: &str, left_out: Option<&str>) -> Result<(Histories, CountersByJob), HistoryError> {
    let (mut histories, mut counters) = (Histories::default(), CountersByJob::new());
    let file_kind = FileKind::of(name);
    if file_kind == FileKind::Nothing {
        return Ok((histories, counters));
    }
    if let Some(reason) = left_out {
        histories.losses.lost(&at(name), LossKind::LeftOut(reason.to_owned()), 1);
        return Ok((histories, counters));
    }
    let (lost, error) = match folder.file(name) {
        Ok(input) => match histories.take(name, file_kind, input, &mut counters) {
            Ok(()) => return Ok((histories, counters)),
            Err(error) => (LossKind::Unusable(error.to_string()), error),
        },
        Err(error) => (LossKind::LeftOut(error.to_string()), error),
    };
    if !is_damage(&error) {
        return Err(io_error(&folder.path().join(name))(error));
    }
    histories.losses.lost(&at(name), lost, 1);
    Ok((histories, counters))
}

/// Of two histories of one job (one from HDFS' intermediate folder, one from the staging folder) the longer one counts.
fn merge(jobs: &mut Vec<History>, job: History) {
    match jobs.iter_mut().find(|other| other.id == job.id) {
        Some(other) if other.events >= job.events => {}
        Some(other) => *other = job,
        None => jobs.push(job),
    }
}

/// What a file of a `job/` folder tells, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FileKind {
    /// The history, in events: `*.jhist`.
    Events,
    /// The history of Hadoop 1.x: `job_*`.
    Records,
    /// The configuration of this job: "job_1_0002_conf.xml" and "job_1_0002_conf.xml.zst" are those of "job_1_0002".
    Configuration(String),
    /// `counters.json`.
    Counters,
    /// Nothing that is known.
    Nothing,
}

impl FileKind {
    fn of(name: &str) -> Self {
        if name.contains(".jhist") {
            return Self::Events;
        }
        let configuration = name
            .split_once("_conf.xml")
            .filter(|(job, rest)| job.starts_with("job_") && (rest.is_empty() || rest.starts_with('.')));
        match configuration {
            Some((job, _)) => Self::Configuration(job.to_owned()),
            None if name.starts_with("job_") => Self::Records,
            None if name.starts_with("counters.json") => Self::Counters,
            None => Self::Nothing,
        }
    }
}

/// The `job/` folder of a capture, if it has one.
fn job_folder(capture: &Path) -> Result<Option<Folder>, HistoryError> {
    let root = Folder::open(capture).map_err(io_error(capture))?;
    match root.kind("job") {
        Ok(Some(Kind::Folder)) => Ok(Some(root.folder("job").map_err(io_error(&capture.join("job")))?)),
        _ => Ok(None),
    }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> HistoryError {
    let path = path.to_owned();
    move |source| HistoryError::Io { path, source }
}

/// A file of the `job/` folder, as losses name it.
fn at(name: &str) -> String {
    format!("job/{name}")
}
