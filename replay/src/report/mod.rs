//! The report: one HTML file that needs nothing else, neither a network nor a script.
//!
//! All figures are drawn here, in HTML and SVG; the page's script only shows details under the pointer, and one
//! experiment at a time where there are several.

mod chart;
mod coflow;
mod congestion;
mod curves;
mod document;
mod format;
mod gantt;
mod jobs;
pub(crate) mod markup;
mod overview;
mod page;
mod parts;
mod path;
pub mod plots;
mod synthetic;
mod traffic;
mod transfers;

pub use self::coflow::{write_coflow_page, write_coflows};
pub use self::congestion::{write_congestion, write_congestion_page};
pub use page::{page, write, write_curves, write_job_curves, write_jobs, write_traffic};
pub use synthetic::page as traffic_page;
