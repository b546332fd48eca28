//! The page of replayed jobs.

use std::path::Path;

use pages::document::document;
use pages::markup::{Element, div, element};
use pages::{format, parts};

use super::{curves, jobs, overview, path, plots, timeline, traffic, traffic_page, transfers, words};
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
    let mut sorted: Vec<&Detail> = details.iter().collect();
    sorted.sort_by(|a, b| a.summary.job_time_s.total_cmp(&b.summary.job_time_s));
    let articles = || {
        let several = sorted.len() > 1;
        div("articles").with("id", "articles").children(sorted.iter().map(|detail| experiment(detail, several)))
    };
    let main = match sorted.first() {
        None => element("main").child(element("p").text("No experiment came to a result.")),
        Some(first) => element("main")
            .child(overview::headline(details))
            .child(overview::job_times(&sorted, first))
            .child(overview::phases(&sorted, first))
            .child(path::shares(&sorted))
            .children(switcher(&sorted))
            .child(articles())
            .child(words::meanings()),
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

/// Which experiment is shown, and which one beside it, where there are several.
fn switcher(details: &[&Detail]) -> Option<Element> {
    let name = |detail: &&Detail| detail.summary.name.clone();
    let button = |name: String| element("button").with("type", "button").with("data-show", &name).text(&name);
    let option = |name: String| element("option").with("value", &name).text(&name);
    let beside = || {
        element("label").with("class", "choose").text("beside it ").child(
            element("select")
                .with("id", "beside")
                .child(element("option").with("value", "").text("none"))
                .children(details.iter().map(name).map(option)),
        )
    };
    (details.len() > 1).then(|| {
        div("switcher")
            .with("id", "switcher")
            .with("role", "group")
            .with("aria-label", "Experiment that is shown")
            .with("hidden", "")
            .child(beside())
            .children(details.iter().map(name).map(button))
    })
}

/// Everything about one experiment.
fn experiment(detail: &Detail, several: bool) -> Element {
    let summary = &detail.summary;
    let (change, against) = (format::change(summary.job_time_change()), summary.baseline.label());
    let what = if summary.shows_error() { " (error)" } else { "" };
    let time = format::seconds(summary.job_time_s);
    let small = format!(" {} · {time}, {change}{what} against {against}", summary.fabric);
    let name = || element("h2").with("class", "name").text(&summary.name).child(element("small").text(&small));
    element("article")
        .with("data-name", &summary.name)
        .children(several.then(name))
        .children(several.then(|| overview::figures(summary)))
        .children(summary.doubts.iter().chain(&summary.notes).map(|note| parts::note(note)))
        .child(timeline::section(detail))
        .child(traffic::section(detail))
        .children(detail.summary.baseline.is_recorded().then(|| transfers::section(detail)))
        .child(plots::section(detail))
        .child(parts::configuration(&detail.effective))
}
