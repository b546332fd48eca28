//! The report of coflows under schedulers.

use std::path::Path;

use crate::results::coflow::{CoflowDetail, SchedulerSummary};
use crate::results::{StoreError, write_text};
use pages::chart::{Chart, Line, number, standing};
use pages::document::document;
use pages::format;
use pages::markup::{Element, div, element, table};
use pages::parts::note;

/// Writes the report and its picture into a folder.
///
/// # Errors
/// If they cannot be written.
pub fn write_coflows(folder: &Path, detail: &CoflowDetail) -> Result<(), StoreError> {
    write_text(&folder.join("cct.svg"), &standing(&distribution(detail)))?;
    write_coflow_page(&folder.join("report.html"), detail)
}

/// Writes the report as an HTML page.
///
/// # Errors
/// If it cannot be written.
pub fn write_coflow_page(path: &Path, detail: &CoflowDetail) -> Result<(), StoreError> {
    write_text(path, &page(detail))
}

fn page(detail: &CoflowDetail) -> String {
    let explanation = "A coflow's completion time (CCT) runs from its arrival to the end of its last flow. Its bound is what its busiest \
                port has to send or to receive, with the switch to itself; over circuits with a set-up for each pair of ports.";
    let drawn = element("section")
        .child(element("h2").text("Completion times"))
        .child(distribution(detail))
        .child(note("The share of coflows that are complete within a time; times on a logarithmic scale."));
    let main = element("main").child(figures(detail)).child(drawn).child(note(explanation));
    let how = if detail.alone { "each by itself" } else { "as they arrive" };
    let text = format!("{} coflows over {} ports, {how}", format::count(detail.coflows as u64), detail.ports);
    let job = div("job").child(element("strong").text(&text));
    document(&format!("{text} · Hadoptic"), Some(job), main, &super::footer(""))
}

fn figures(detail: &CoflowDetail) -> Element {
    let headers = [
        "scheduler",
        "mean CCT",
        "median",
        "95%",
        "99%",
        "greatest",
        "over the bound",
        "95%",
        "over circuits' bound",
        "95%",
        "last end",
        "circuits",
        "of it set up",
    ];
    let dash = || "–".to_owned();
    let rows = detail.schedulers.iter().map(|one: &SchedulerSummary| {
        vec![
            one.scheduler.clone(),
            format::seconds(one.cct_s.mean),
            format::seconds(one.cct_s.median),
            format::seconds(one.cct_s.p95),
            format::seconds(one.cct_s.p99),
            format::seconds(one.cct_s.max),
            one.over_packet_bound.map_or_else(dash, |figures| number(figures.mean)),
            one.over_packet_bound.map_or_else(dash, |figures| number(figures.p95)),
            one.over_circuit_bound.map_or_else(dash, |figures| number(figures.mean)),
            one.over_circuit_bound.map_or_else(dash, |figures| number(figures.p95)),
            one.end_s.map_or_else(dash, format::seconds),
            one.circuits.map_or_else(dash, format::count),
            one.set_up_share.map_or_else(dash, |share| format!("{:.1}%", share * 100.0)),
        ]
    });
    let explanation = format!(
        "{}: {} flows, {:.1} GB; ports of {:.3} Gbit/s, circuits set up in {}.",
        detail.file,
        format::count(detail.flows as u64),
        detail.bytes / 1e9,
        gigabits(detail.rate_bps),
        format::seconds(detail.delay_s),
    );
    element("section").child(element("h2").text("Figures")).child(table(&headers, 1, rows)).child(note(&explanation))
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn gigabits(bps: u64) -> f64 {
    bps as f64 / 1e9
}

/// The share of coflows that are complete within a time, over its decimal logarithm.
fn distribution(detail: &CoflowDetail) -> Element {
    let times = detail.schedulers.iter().flat_map(|one| &one.cct_percentiles_s).filter(|time| **time > 0.0);
    let (low, high) = times.fold((f64::INFINITY, 0.0_f64), |(low, high), time| (low.min(*time), high.max(*time)));
    let (first, last) = if high > 0.0 { (libm::log10(low).floor(), libm::log10(high).ceil()) } else { (0.0, 1.0) };
    let decades: Vec<(f64, String)> = (0..)
        .map(|decade| first + f64::from(decade))
        .take_while(|decade| *decade <= last)
        .map(|decade| (decade - first, format::seconds(libm::pow(10.0, decade))))
        .collect();
    let places: Vec<(f64, &str)> = decades.iter().map(|(place, name)| (*place, name.as_str())).collect();
    let line = |one: &SchedulerSummary| Line {
        name: one.scheduler.clone(),
        points: one
            .cct_percentiles_s
            .iter()
            .zip(0..)
            .map(|(time, percent)| (libm::log10(*time).max(first) - first, f64::from(percent) / 100.0, false))
            .collect(),
    };
    let lines: Vec<Line> = detail.schedulers.iter().map(line).collect();
    let title = "Share of coflows that are complete";
    Chart { title, over: "Completion time", places: &places, hollow: "", diagonal: false, dots: false, joined: true }
        .draw(&lines)
}
