//! Tables for people.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Cell, CellAlignment, Table};
use replay::published::fit::{self, Fit, RATIOS, Reading};
use replay::published::{Outcome, nanoseconds};
use replay::results::synthetic::{TrafficDetail, TrafficSummary};
use replay::results::{Baseline, Comparison, JobPoint, JobSweep, Summary};

/// The result of one replay.
pub(super) fn of_run(summary: &Summary) -> String {
    let mut table = new_table(&["", "simulated", summary.baseline.label(), "change"]);
    let mut row = |name: &str, simulated: Option<f64>, recorded: Option<f64>| {
        let change = simulated.zip(recorded).filter(|(_, recorded)| *recorded > 0.0);
        table.add_row([
            Cell::new(name),
            right(seconds(simulated)),
            right(seconds(recorded)),
            right(change.map_or_else(|| "–".to_owned(), |(new, old)| percent(new / old - 1.0))),
        ]);
    };
    row("job", Some(summary.job_time_s), Some(summary.recorded_job_time_s));
    for phase in &summary.phases {
        row(&format!("{} (mean of {})", phase.name, phase.attempts), phase.seconds, phase.recorded_seconds);
    }
    let errors = &summary.transfer_error;
    let error = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), percent);
    let what = if summary.shows_error() { "error" } else { "change" };
    let transfers = format!(
        "transfers  {what} of the simulated against the recorded times: median {}, 95th percentile {}\n",
        error(errors.median),
        error(errors.p95),
    );
    let transfers = if summary.baseline.is_recorded() { transfers } else { String::new() };
    format!(
        "{}: {} ({}) over {}\n{table}\n\
         messages   {} with {:.1} MB, {} not done when the job was\n\
         {}\
         network    {:.1}% of the job's time (critical path), {} packets lost, {} sent again\n\
         replay     {} events in {:.2} s\n{}",
        summary.name,
        summary.job,
        summary.job_name,
        summary.fabric,
        summary.messages,
        megabytes(summary.bytes),
        summary.messages_unfinished,
        transfers,
        summary.network_share * 100.0,
        summary.drops,
        summary.retransmissions,
        summary.events,
        summary.wall_s,
        notes(summary),
    )
}

fn notes(summary: &Summary) -> String {
    let doubts = summary.doubts.iter().map(|doubt| format!("DOUBT      {doubt}\n"));
    doubts.chain(summary.notes.iter().map(|note| format!("note       {note}\n"))).collect()
}

/// The results of several replays, below what the recording says.
pub(super) fn of_comparison(comparison: &Comparison) -> String {
    let headers =
        ["experiment", "fabric", "job", "change", "map", "shuffle", "sort", "reduce", "network", "lost", "wall"];
    let mut table = new_table(&headers);
    if let Some(first) = comparison.experiments.first() {
        let name = match first.baseline {
            Baseline::Recorded => "recorded (nothing changes)",
            Baseline::Ideal => "on an infinitely fast network",
        };
        let mut row = vec![Cell::new(name), Cell::new("–")];
        row.push(right(seconds(Some(first.recorded_job_time_s))));
        row.push(right("–".to_owned()));
        row.extend(first.phases.iter().map(|phase| right(seconds(phase.recorded_seconds))));
        row.extend((0..3).map(|_| right("–".to_owned())));
        table.add_row(row);
    }
    for summary in &comparison.experiments {
        let mut row = vec![Cell::new(&summary.name), Cell::new(&summary.fabric)];
        row.extend(cells_of_replay(summary));
        table.add_row(row);
    }
    let failed = comparison.failed.iter().map(|(name, reason)| format!("{name}: {reason}\n"));
    let notes = comparison.experiments.first().map(notes).unwrap_or_default();
    format!("{table}\n{notes}{}", failed.collect::<String>())
}

/// The results of a sweep of a recorded job: a row for each combination, below what the recording says.
pub(super) fn of_jobs(jobs: &JobSweep) -> String {
    let mut headers: Vec<&str> = jobs.axes.iter().map(|axis| axis.path.as_str()).collect();
    headers.extend(["job", "change", "map", "shuffle", "sort", "reduce", "network", "lost", "wall"]);
    let mut table = new_table(&headers);
    if let Some(recorded) = jobs.recorded() {
        let mut row: Vec<Cell> = jobs.axes.iter().map(|_| right(recorded.baseline.label().to_owned())).collect();
        row.push(right(seconds(Some(recorded.recorded_job_time_s))));
        row.push(right("–".to_owned()));
        row.extend(recorded.phases.iter().map(|phase| right(seconds(phase.recorded_seconds))));
        row.extend((0..3).map(|_| right("–".to_owned())));
        table.add_row(row);
    }
    for JobPoint { values, summary } in &jobs.points {
        let axes = jobs.axes.iter().zip(values);
        let mut row: Vec<Cell> = axes.map(|(axis, index)| right(axis.text(*index).to_owned())).collect();
        row.extend(cells_of_replay(summary));
        table.add_row(row);
    }
    let failed = jobs.failed.iter().map(|(what, reason)| format!("{what}: {reason}\n"));
    let first = jobs.points.first().map(|point| &point.summary);
    format!(
        "{}: {} over {}\n{table}\n{}{}{}",
        jobs.name,
        first.map_or("", |summary| &summary.job),
        first.map_or("", |summary| &summary.fabric),
        if jobs.interim { "Stopped: these are interim results.\n" } else { "" },
        first.map(notes).unwrap_or_default(),
        failed.collect::<String>()
    )
}

/// Job time and its change, phases, the network's share, packets lost, time of this machine.
fn cells_of_replay(summary: &Summary) -> Vec<Cell> {
    let mut row = vec![right(seconds(Some(summary.job_time_s))), right(percent(summary.job_time_change()))];
    row.extend(summary.phases.iter().map(|phase| right(seconds(phase.seconds))));
    row.push(right(format!("{:.1}%", summary.network_share * 100.0)));
    row.push(right(summary.drops.to_string()));
    row.push(right(format!("{:.1} s", summary.wall_s)));
    row
}

/// The results of synthetic traffic: a row for each combination.
pub(super) fn of_traffic(detail: &TrafficDetail) -> String {
    let mut headers: Vec<&str> = detail.axes.iter().map(|axis| axis.path.as_str()).collect();
    headers.extend([
        "offered",
        "accepted",
        "latency",
        "network",
        "p99",
        "hops",
        "busiest link",
        "packets",
        "events/s",
        "",
    ]);
    let mut table = new_table(&headers);
    for point in &detail.points {
        let summary = &point.summary;
        let axes = detail.axes.iter().zip(&point.values);
        let mut row: Vec<Cell> = axes.map(|(axis, index)| right(axis.text(*index).to_owned())).collect();
        let mean = |key: &str, value: Option<f64>, digits: usize| {
            let Some(value) = value else { return right("–".to_owned()) };
            let half = summary.confidence.get(key).map(|half| format!(" ± {half:.digits$}")).unwrap_or_default();
            right(format!("{value:.digits$}{half}"))
        };
        row.push(mean("offered_load", summary.offered_load, 4));
        row.push(mean("accepted_load", summary.accepted_load, 4));
        row.push(mean("packet_latency_mean_cycles", summary.packet_latency_mean_cycles, 1));
        row.push(mean("network_latency_mean_cycles", summary.network_latency_mean_cycles, 1));
        row.push(mean("", summary.latency_cycles.get("packet").and_then(|latency| latency.p99), 0));
        row.push(mean("hops_mean", summary.hops_mean, 3));
        let busiest =
            summary.link_utilisation_max.map_or_else(|| "–".to_owned(), |share| format!("{:.1}%", share * 100.0));
        row.push(right(busiest));
        row.push(right(summary.packets_measured.to_string()));
        row.push(right(events_per_second(summary)));
        let saturated = summary.saturated_because.as_ref().map(|why| format!("saturated: {why}"));
        row.push(Cell::new(saturated.into_iter().chain(summary.losses()).collect::<Vec<_>>().join("; ")));
        table.add_row(row);
    }
    let failed = detail.failed.iter().map(|(what, reason)| format!("{what}: {reason}\n"));
    let interim = if detail.interim { "Stopped: these are interim results.\n" } else { "" };
    format!(
        "{} over {}: {} hosts; latencies in cycles{}\n{table}\n{interim}{}",
        detail.name,
        detail.points.first().map_or("", |point| point.summary.fabric.as_str()),
        detail.points.first().map_or(0, |point| point.summary.hosts),
        detail.points.first().map_or_else(String::new, |point| format!(" of {} ns", point.summary.cycle_ns)),
        failed.collect::<String>()
    )
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn events_per_second(summary: &TrafficSummary) -> String {
    if summary.wall_s > 0.0 {
        format!("{:.2} M", summary.events as f64 / summary.wall_s / 1e6)
    } else {
        "–".to_owned()
    }
}

/// Published figures beside simulated ones.
pub(super) fn of_published(outcome: &Outcome) -> String {
    let mut table = new_table(&["", "published", "arithmetic", "simulated", "to published", ""]);
    for row in &outcome.rows {
        let time = |ps: Option<u64>| right(ps.map_or_else(|| "–".to_owned(), nanoseconds));
        table.add_row([
            Cell::new(&row.what),
            time(row.published_ps),
            time(row.arithmetic_ps),
            time(Some(row.simulated_ps)),
            right(row.deviation().map_or_else(|| "–".to_owned(), |share| signed_percent(share, 2))),
            Cell::new(if row.as_computed { "" } else { "not as computed" }),
        ]);
        for less in &row.less {
            let percent =
                |share: Option<f64>| right(share.map_or_else(|| "–".to_owned(), |share| format!("{share:.2}%")));
            table.add_row([
                Cell::new(format!("  less than {}", less.than)),
                percent(less.published_percent),
                right("–".to_owned()),
                percent(Some(less.simulated_percent)),
                right(less.points().map_or_else(|| "–".to_owned(), |points| format!("{points:+.2} points"))),
                Cell::new(""),
            ]);
        }
    }
    let notes: String = outcome.notes.iter().map(|note| format!("{note}\n")).collect();
    format!("{}\n{table}\n{notes}\n", outcome.title)
}

/// The family of readings that fit figures 19 and 21, the closest `most` of them, and the closest with InfiniBand at 10 Gbit/s.
pub(super) fn of_fits(fits: &[Fit], at_10_gbit: Option<Fit>, most: usize) -> String {
    let mut headers = vec!["flit", "packets", "window", "cables: OPS", "OCS", "IB", "servers' links", "OPS' output"];
    headers.extend(["InfiniBand", "its packets", "OCS/OPS", "IB/OPS", "IB/OCS", "IB/OPS 32 KB", "largest"]);
    let mut table = new_table(&headers);
    for fit in fits.iter().take(most).chain(&at_10_gbit) {
        let mut row: Vec<Cell> = reading_cells(fit).into_iter().map(Cell::new).collect();
        row.extend(fit.deviations_ppm().map(points));
        row.push(points(fit.largest_ppm()));
        table.add_row(row);
    }
    let family = fit::family(fits);
    let published: String =
        RATIOS.iter().map(|ratio| format!("{}: {}%\n", ratio.what, ratio.published_ppm / 10_000)).collect();
    format!(
        "Figures 19 and 21: {} of {} readings fit, with no larger deviation than {} points.\n\nWhat they read, and how many of \
         them:\n{}\nDeviations in points, the closest reading first; the last line is the closest with InfiniBand at 10 \
         Gbit/s\n{table}\nPublished:\n{published}",
        family.len(),
        fits.len(),
        fit::FITS_PPM as f64 / 10_000.0,
        of_family(family),
    )
}

/// A reading's values, in the order of the table's columns.
fn reading_cells(fit: &Fit) -> [String; 10] {
    let Reading { flit, optics, infiniband } = &fit.reading;
    let cable = |metres: u32| format!("2 x {metres} m");
    let links = |take_time: bool| if take_time { "take time" } else { "ideal" };
    let start = if infiniband.cut_through { "cut-through" } else { "whole packets" };
    [
        format!("{flit} B"),
        format!("{} B", optics.packet),
        optics.window.to_string(),
        cable(optics.ops_cable_m),
        cable(optics.ocs_cable_m),
        cable(infiniband.cable_m),
        format!("{}, IB's {}", links(optics.server_links), links(infiniband.server_links)),
        optics.output.as_str().to_owned(),
        format!("{}.{:02} Gbit/s, {start}", fit.rate_mbps / 1_000, fit.rate_mbps % 1_000 / 10),
        format!("{} B", infiniband.mtu),
    ]
}

/// What the readings of a family read, value by value; and the rates of InfiniBand.
fn of_family(family: &[Fit]) -> String {
    let names = ["flits", "packets", "window", "OPS' cables", "OCS' cables", "InfiniBand's cables", "servers' links"];
    let names = names.into_iter().chain(["OPS' output"]);
    let mut lines = String::new();
    for (index, name) in names.enumerate() {
        lines += &line_of_values(name, family.iter().map(|fit| reading_cells(fit)[index].clone()));
    }
    lines += &line_of_values("InfiniBand's packets", family.iter().map(|fit| reading_cells(fit)[9].clone()));
    let start = |fit: &Fit| if fit.reading.infiniband.cut_through { "cut-through" } else { "whole packets" };
    lines += &line_of_values("InfiniBand's switches", family.iter().map(|fit| start(fit).to_owned()));
    let rates = || family.iter().map(|fit| f64::from(fit.rate_mbps) / 1_000.0);
    if let (Some(least), Some(most)) = (rates().min_by(f64::total_cmp), rates().max_by(f64::total_cmp)) {
        lines += &format!("  {:<22}{least:.2} to {most:.2} Gbit/s\n", "InfiniBand's rate");
    }
    lines
}

fn line_of_values(name: &str, values: impl Iterator<Item = String>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let text: Vec<String> = counts.into_iter().map(|(value, count)| format!("{value} ({count})")).collect();
    format!("  {name:<22}{}\n", text.join(", "))
}

/// Millionths as points.
fn points(ppm: i64) -> Cell {
    let rounded = (ppm.abs() + 50) / 100;
    right(format!("{}{}.{:02}", if ppm < 0 { "-" } else { "+" }, rounded / 100, rounded % 100))
}

/// A table that becomes a list where the terminal is too narrow for it.
pub(super) struct Fitted(Table);

impl Deref for Fitted {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.0
    }
}

impl DerefMut for Fitted {
    fn deref_mut(&mut self) -> &mut Table {
        &mut self.0
    }
}

impl fmt::Display for Fitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.0.to_string();
        let needed = table.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or(0);
        let there = self.0.width().filter(|_| self.0.is_tty()).map_or(usize::MAX, usize::from);
        if needed <= there { f.write_str(&table) } else { f.write_str(as_list(&self.0).trim_end()) }
    }
}

/// The rows below each other, a line for each cell.
fn as_list(table: &Table) -> String {
    let headers: Vec<String> = table.header().into_iter().flat_map(|row| row.cell_iter().map(Cell::content)).collect();
    let width = headers.iter().skip(1).map(|header| header.chars().count()).max().unwrap_or(0);
    let mut list = String::new();
    for row in table.row_iter() {
        let mut cells = headers.iter().zip(row.cell_iter().map(Cell::content));
        if let Some((header, first)) = cells.next() {
            list += format!("{header} {first}").trim();
            list.push('\n');
        }
        for (header, cell) in cells.filter(|(_, cell)| !cell.is_empty()) {
            list += format!("  {header:<width$}  {cell}").trim_end();
            list.push('\n');
        }
    }
    list
}

pub(super) fn new_table(headers: &[&str]) -> Fitted {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    table.set_header(headers.to_vec());
    Fitted(table)
}

pub(super) fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn seconds(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2} s"))
}

fn percent(value: f64) -> String {
    signed_percent(value, 1)
}

/// A share as a change in percent. What is rounded to nothing has no sign.
pub(super) fn signed_percent(share: f64, digits: usize) -> String {
    let text = format!("{:+.digits$}%", share * 100.0);
    let is_nothing = !text.contains(|letter: char| matches!(letter, '1'..='9'));
    if is_nothing { text.replace(['+', '-'], "") } else { text }
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
