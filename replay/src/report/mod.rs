//! The report: one HTML file that needs nothing else, neither a network nor a script.
//!
//! All figures are drawn here, in HTML and SVG; the page's script shows details under the pointer, one experiment at a time or two
//! side by side, and parts of the bars and of the time.

mod answer;
mod circuits;
mod coflow;
mod congestion;
mod curves;
mod gantt;
mod jobs;
mod overview;
mod page;
mod path;
pub mod plots;
mod prediction;
mod replayed_page;
mod synthetic;
mod timeline;
mod traffic;
mod transfers;
mod words;

pub use self::coflow::{write_coflow_page, write_coflows};
pub use self::congestion::{write_congestion, write_congestion_page};
pub use answer::fast_enough;
pub use page::{page, write, write_curves, write_job_curves, write_jobs, write_traffic};
pub use prediction::{page as prediction_page, write_prediction};
pub use synthetic::page as traffic_page;

/// What stands below every page.
fn footer(times: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("Drawn by replay {version}.{times} Tables of all this lie beside this file as Parquet and JSON.")
}
