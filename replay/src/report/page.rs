//! The page of replayed jobs.

use std::path::Path;

use pages::document::document;

use super::replayed_page::{job, main};
use super::{curves, jobs, overview, traffic_page};
use crate::results::synthetic::TrafficDetail;
use crate::results::{Detail, JobSweep, StoreError, write_text};

/// Writes the report of some replays of a job.
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, details: &[Detail]) -> Result<(), StoreError> {
    write_text(path, &page(details))
}

/// Writes the report of synthetic traffic.
///
/// # Errors
/// If it cannot be written.
pub fn write_traffic(path: &Path, detail: &TrafficDetail) -> Result<(), StoreError> {
    write_text(path, &traffic_page(detail))
}

/// Writes the report of a sweep of a recorded job.
///
/// # Errors
/// If it cannot be written.
pub fn write_jobs(path: &Path, jobs: &JobSweep) -> Result<(), StoreError> {
    write_text(path, &jobs::page(jobs))
}

/// Writes the curves of a sweep of synthetic traffic into a folder.
///
/// # Errors
/// If they cannot be written.
pub fn write_curves(folder: &Path, detail: &TrafficDetail) -> Result<(), StoreError> {
    curves::curves(detail).into_iter().try_for_each(|(name, picture)| write_text(&folder.join(name), &picture))
}

/// Writes the curves of a sweep of a recorded job into a folder.
///
/// # Errors
/// If they cannot be written.
pub fn write_job_curves(folder: &Path, jobs: &JobSweep) -> Result<(), StoreError> {
    curves::job_curves(jobs).into_iter().try_for_each(|(name, picture)| write_text(&folder.join(name), &picture))
}

/// The report of some replays of a job as an HTML page.
#[must_use]
pub fn page(details: &[Detail]) -> String {
    let main = main(details, overview::headline(details), Vec::new());
    document(&title(details), job(details), main, &super::footer(" Times count from the job's submission."))
}

fn title(details: &[Detail]) -> String {
    match details {
        [] => "Hadoptic".to_owned(),
        [one] => format!("{} · {} · Hadoptic", one.summary.name, one.summary.job),
        [first, ..] => format!("{} over {} fabrics · Hadoptic", first.summary.job, details.len()),
    }
}
