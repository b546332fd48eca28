//! The page of replayed jobs.

use std::path::Path;

use pages::document::document;
use pages::markup::{Element, div, element};
use pages::{format, parts};

use super::{curves, gantt, jobs, overview, path, plots, traffic, traffic_page, transfers};
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
    let main = match details.first() {
        None => element("main").child(element("p").text("No experiment came to a result.")),
        Some(first) => element("main")
            .child(overview::headline(details))
            .child(overview::job_times(details, first))
            .child(overview::phases(details, first))
            .child(path::shares(details))
            .children(switcher(details))
            .children(details.iter().enumerate().map(|(number, detail)| experiment(number, detail, details.len()))),
    };
    document(&title(details), job(details), main, &super::footer(" Times count from the job's submission."))
}

fn title(details: &[Detail]) -> String {
    match details {
        [] => "Hadoptic".to_owned(),
        [one] => format!("{} · {} · Hadoptic", one.summary.name, one.summary.job),
        [first, ..] => format!("{} over {} fabrics · Hadoptic", first.summary.job, details.len()),
    }
}

/// Which job was replayed.
fn job(details: &[Detail]) -> Option<Element> {
    details.first().map(|detail| {
        let summary = &detail.summary;
        let name = if summary.job_name.is_empty() { summary.job.as_str() } else { summary.job_name.as_str() };
        div("job").child(element("strong").text(name)).child(element("span").with("class", "mono").text(&summary.job))
    })
}

/// Which experiment is shown, where there are several.
fn switcher(details: &[Detail]) -> Option<Element> {
    (details.len() > 1).then(|| {
        let buttons = details.iter().enumerate().map(|(number, detail)| {
            element("button").with("type", "button").with("data-show", number).text(&detail.summary.name)
        });
        div("switcher").with("id", "switcher").with("hidden", "").children(buttons)
    })
}

/// Everything about one experiment.
fn experiment(number: usize, detail: &Detail, all: usize) -> Element {
    let summary = &detail.summary;
    element("article")
        .with("data-experiment", number)
        .children((all > 1).then(|| {
            element("h2").with("class", "name").text(&summary.name).child(element("small").text(format!(
                " {} · {}, {} against the recording",
                summary.fabric,
                format::seconds(summary.job_time_s),
                format::change(summary.job_time_change()),
            )))
        }))
        .children((all > 1).then(|| overview::figures(summary)))
        .children(summary.doubts.iter().chain(&summary.notes).map(|note| parts::note(note)))
        .child(gantt::section(detail))
        .child(path::section(detail))
        .child(traffic::section(detail))
        .children(detail.summary.baseline.is_recorded().then(|| transfers::section(detail)))
        .child(plots::section(detail))
        .child(parts::configuration(&detail.effective))
}
