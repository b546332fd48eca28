//! What pages of replayed jobs have in common.

use pages::markup::{Element, div, element};
use pages::{format, parts};

use super::{circuits, overview, path, plots, timeline, traffic, transfers, words};
use crate::results::Detail;

/// The main part of a page: `headline`, times of all replays, `sections` of the page's own, and everything about each replay.
pub(super) fn main(details: &[Detail], headline: Element, sections: Vec<Element>) -> Element {
    let mut sorted: Vec<&Detail> = details.iter().collect();
    sorted.sort_by(|a, b| a.summary.job_time_s.total_cmp(&b.summary.job_time_s));
    let articles = || {
        let several = sorted.len() > 1;
        div("articles").with("id", "articles").children(sorted.iter().map(|detail| experiment(detail, several)))
    };
    match sorted.first() {
        None => element("main").child(element("p").text("No experiment came to a result.")),
        Some(first) => element("main")
            .child(headline)
            .children(sections)
            .child(overview::job_times(&sorted, first))
            .child(overview::phases(&sorted, first))
            .child(path::shares(&sorted))
            .children(switcher(&sorted))
            .child(articles())
            .child(words::meanings()),
    }
}

/// Which job was replayed.
pub(super) fn job(details: &[Detail]) -> Option<Element> {
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
        .children(circuits::section(detail))
        .children(detail.summary.baseline.is_recorded().then(|| transfers::section(detail)))
        .child(plots::section(detail))
        .child(parts::configuration(&detail.effective))
}
