//! Combinations of a sweep that separate tasks run: a file for each in `RESULTS/parts`, until all are gathered.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use netsim::files;
use netsim::traffic::TrafficRun;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::store::StoreError;
use super::{JobPoint, Summary};
use crate::experiment::Point;

/// The folder of the parts, in that of the results.
const FOLDER: &str = "parts";
/// What a combination comes to.
pub trait PartResult: Serialize + DeserializeOwned {
    /// No more of a file is read, bytes.
    const MAX_BYTES: u64;
}

/// Of a job.
impl PartResult for Summary {
    const MAX_BYTES: u64 = 16 << 20;
}

/// Of synthetic traffic, a run for each seed: each of them has all links.
impl PartResult for Vec<TrafficRun> {
    const MAX_BYTES: u64 = 4 << 30;
}

/// What came of a combination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartOutcome<R> {
    /// It was run.
    Done(Box<R>),
    /// It came to no result, for this reason.
    Failed(String),
}

/// `parts/NUMBER.json`.
#[derive(Deserialize)]
#[serde(bound = "R: DeserializeOwned")]
struct PartFile<R> {
    /// The experiment with every key.
    experiment: String,
    outcome: PartOutcome<R>,
}

/// The same, to be written.
#[derive(Serialize)]
struct WrittenPart<'a, R> {
    experiment: String,
    outcome: &'a PartOutcome<R>,
}

/// Where the parts of a sweep lie.
#[derive(Clone, Debug)]
pub struct Parts {
    folder: PathBuf,
}

impl Parts {
    /// Those in a folder of results.
    #[must_use]
    pub fn in_results(results: &Path) -> Self {
        Self { folder: results.join(FOLDER) }
    }

    fn path(&self, number: usize) -> PathBuf {
        self.folder.join(format!("{number:06}.json"))
    }

    /// What came of a combination, if its task has come to an end.
    ///
    /// # Errors
    /// If its file cannot be read, or is of another experiment.
    pub fn read<R: PartResult>(&self, number: usize, point: &Point) -> Result<Option<PartOutcome<R>>, StoreError> {
        let path = self.path(number);
        let text = match files::read_text(&path, R::MAX_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|source| StoreError::Io { path: path.clone(), source })?,
        };
        match serde_json::from_str::<PartFile<R>>(&text) {
            Err(source) => Err(StoreError::Json { path, source }),
            Ok(part) if part.experiment != experiment(point, &path)? => Err(StoreError::OtherPart { path }),
            Ok(part) => Ok(Some(part.outcome)),
        }
    }

    /// Writes what came of a combination: the whole file or nothing, whatever ends the task meanwhile.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write<R: PartResult>(
        &self,
        number: usize,
        point: &Point,
        outcome: &PartOutcome<R>,
    ) -> Result<(), StoreError> {
        let path = self.path(number);
        let part = WrittenPart { experiment: experiment(point, &path)?, outcome };
        let text = serde_json::to_string(&part).map_err(|source| StoreError::Json { path: path.clone(), source })?;
        if text.len() as u64 >= R::MAX_BYTES {
            let reason = format!("a combination has {} bytes of results, more than a part can hold", text.len());
            return Err(StoreError::Io { path, source: io::Error::other(reason) });
        }
        // Tasks of several hosts may do the same one: each writes a file of its own first.
        let written = fs::create_dir_all(&self.folder).and_then(|()| {
            let mut unfinished = NamedTempFile::new_in(&self.folder)?;
            writeln!(unfinished, "{text}")?;
            unfinished.persist(&path).map_err(|error| error.error)
        });
        written.map(drop).map_err(|source| StoreError::Io { path, source })
    }
}

/// The experiment of a combination, by which its file is known.
fn experiment(point: &Point, path: &Path) -> Result<String, StoreError> {
    let wrong = |source| StoreError::Io { path: path.into(), source: io::Error::other(source) };
    point.experiment.to_toml().map_err(wrong)
}

impl PartOutcome<Summary> {
    /// As a combination of the sweep; the reason if it came to no result.
    ///
    /// # Errors
    /// The reason.
    pub fn into_point(self, point: &Point) -> Result<JobPoint, String> {
        match self {
            Self::Done(summary) => Ok(JobPoint { values: point.values.clone(), summary: *summary }),
            Self::Failed(reason) => Err(reason),
        }
    }
}
