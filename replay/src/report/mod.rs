//! The report: one HTML file that needs nothing else, neither a network nor a script.
//!
//! All figures are drawn here, in HTML and SVG; the page's script only shows details under the pointer, and one
//! experiment at a time where there are several.

mod curves;
mod format;
mod gantt;
pub(crate) mod markup;
mod overview;
mod path;
pub mod plots;
mod synthetic;
mod traffic;
mod transfers;

use std::path::Path;

use crate::results::synthetic::TrafficDetail;
use crate::results::{Detail, StoreError};
pub use curves::curves;
use markup::{Element, div, element};
pub use synthetic::page as traffic_page;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Writes the report of some replays of a job.
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, details: &[Detail]) -> Result<(), StoreError> {
    crate::results::write_text(path, &page(details))
}

/// Writes the report of synthetic traffic.
///
/// # Errors
/// If it cannot be written.
pub fn write_traffic(path: &Path, detail: &TrafficDetail) -> Result<(), StoreError> {
    crate::results::write_text(path, &traffic_page(detail))
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
    document(&title(details), job(details), main, " Times count from the job's submission.")
}

/// A page with its head, header and footer.
fn document(title: &str, job: Option<Element>, main: Element, times: &str) -> String {
    let head = element("head")
        .child(element("meta").with("charset", "utf-8"))
        .child(element("meta").with("name", "viewport").with("content", "width=device-width, initial-scale=1"))
        .child(element("meta").with("name", "color-scheme").with("content", "light dark"))
        .child(element("link").with("rel", "icon").with("href", "data:,"))
        .child(element("title").text(title))
        .child(element("style").own_code(STYLE));
    let body = element("body")
        .child(header(job))
        .child(main)
        .child(footer(times))
        .child(div("tip").with("id", "tip").with("role", "tooltip").with("hidden", ""))
        .child(element("script").own_code(SCRIPT));
    format!("<!doctype html>\n{}\n", element("html").with("lang", "en").child(head).child(body))
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

fn header(job: Option<Element>) -> Element {
    element("header").child(
        div("bar").child(element("span").with("class", "brand").text("Hadoptic")).children(job).child(
            element("button")
                .with("id", "theme")
                .with("type", "button")
                .with("hidden", "")
                .with("aria-label", "Switch between light and dark")
                .text("◐"),
        ),
    )
}

fn footer(times: &str) -> Element {
    element("footer").text(format!(
        "Drawn by replay {}.{times} Tables of all this lie beside this file as Parquet and JSON.",
        env!("CARGO_PKG_VERSION")
    ))
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
        .children(summary.doubts.iter().chain(&summary.notes).map(|note| element("p").with("class", "note").text(note)))
        .child(gantt::section(detail))
        .child(path::section(detail))
        .child(traffic::section(detail))
        .child(transfers::section(detail))
        .child(plots::section(detail))
        .child(
            element("section").child(element("h3").text("Configuration")).child(
                element("details")
                    .child(element("summary").text("Every key of this experiment, as it was run"))
                    .child(div("scroll").with("tabindex", 0).child(element("pre").text(&detail.effective))),
            ),
        )
}

/// The colours' meaning.
fn legend<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Element {
    div("legend").children(
        entries.into_iter().map(|(class, text)| element("span").child(element("i").with("class", class)).text(text)),
    )
}

/// A time axis from 0 to `end_s`.
fn time_axis(end_s: f64) -> Element {
    div("axis").children(format::ticks(end_s, 8.0).into_iter().enumerate().map(|(number, tick)| {
        element("span")
            .with("class", if number % 2 == 1 { "odd" } else { "even" })
            .with("style", format!("left:{}", format::percent_of(tick, end_s)))
            .text(format::tick(tick))
    }))
}

/// Vertical lines at the ticks of [`time_axis`].
fn grid(end_s: f64) -> Element {
    div("grid").children(
        format::ticks(end_s, 8.0)
            .into_iter()
            .map(|tick| element("i").with("style", format!("left:{}", format::percent_of(tick, end_s)))),
    )
}
