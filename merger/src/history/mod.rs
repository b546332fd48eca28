//! Hadoop's own records of a job: the job history (`*.jhist`, in Hadoop 1.x `job_*` without an ending), its configuration and its counters.
//!
//! They lie in `CAPTURE/job/`. A history that was cut off is read as far as it goes; a line that cannot be understood
//! is counted. Times in it are milliseconds of the application master's wall clock.

mod conf;
mod events;
mod records;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use trace::manifest::Loss;
use trace::truth::CountersByJob;

pub use conf::read_configuration;
pub(crate) use events::job_of;
pub use events::{Attempt, AttemptState, History};

/// Why the job history could not be read. What is merely cut off or unknown is no error but a [`Loss`].
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// A file cannot be opened or read.
    #[error("{path}: {source}; give it read permission or remove it from the capture", path = path.display())]
    Io {
        /// File.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
}

/// All that the captures' `job/` folders say.
#[derive(Clone, Debug, Default)]
pub struct Histories {
    /// One for each job, ordered by submission.
    pub jobs: Vec<History>,
    /// Configuration of each job: name to value.
    pub configurations: BTreeMap<String, BTreeMap<String, String>>,
    /// What could not be used.
    pub losses: Vec<Loss>,
}

impl Histories {
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
        for path in files(&capture.join("job"))? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            if name.contains(".jhist") {
                let (jobs, losses) = events::read(&path)?;
                histories.losses.extend(losses);
                for job in jobs {
                    merge(&mut histories.jobs, job);
                }
            } else if let Some(job) = job_of_configuration(&name) {
                histories.configurations.insert(job, read_configuration(&path)?);
            } else if name.starts_with("job_") {
                let (jobs, losses) = records::read(&path)?;
                histories.losses.extend(losses);
                for job in jobs {
                    merge(&mut histories.jobs, job);
                }
            } else if name.starts_with("counters.json") {
                match read_counters(&path)? {
                    Some(more) => counters.extend(more),
                    None => histories.losses.push(unusable(&path)),
                }
            }
        }
    }
    for job in &mut histories.jobs {
        if let Some(counted) = counters.get(&job.id) {
            job.complete_counters(counted);
        }
    }
    histories.jobs.sort_by(|a, b| (a.submit_ms, &a.id).cmp(&(b.submit_ms, &b.id)));
    Ok(histories)
}

/// Of two histories of one job (one from HDFS' intermediate folder, one from the staging folder) the longer one counts.
fn merge(jobs: &mut Vec<History>, job: History) {
    match jobs.iter_mut().find(|other| other.id == job.id) {
        Some(other) if other.events >= job.events => {}
        Some(other) => *other = job,
        None => jobs.push(job),
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, HistoryError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(HistoryError::Io { path: folder.into(), source }),
    };
    let mut files = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|source| HistoryError::Io { path: folder.into(), source })?;
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}

/// "job_1_0002_conf.xml" and "job_1_0002_conf.xml.zst" belong to "job_1_0002".
fn job_of_configuration(name: &str) -> Option<String> {
    let (job, rest) = name.split_once("_conf.xml")?;
    (job.starts_with("job_") && (rest.is_empty() || rest.starts_with('.'))).then(|| job.to_owned())
}

fn read_counters(path: &Path) -> Result<Option<CountersByJob>, HistoryError> {
    let input = trace::files::open(path).map_err(|source| HistoryError::Io { path: path.into(), source })?;
    Ok(serde_json::from_reader(input).ok())
}

fn unusable(path: &Path) -> Loss {
    Loss { what: format!("job history file {} (not understood)", path.display()), count: 1, unit: "files".into() }
}
