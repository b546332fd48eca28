//! What a run came to, for people and for programs.

use crate::error::{Context, Result};
use comfy_table::{Cell, CellAlignment, Table, presets};
use serde_json::json;
use trace::truth::{Truth, TruthLink};

use crate::session::Outcome;

/// Tables of links and jobs, then what was wrong.
#[must_use]
pub fn table(outcome: &Outcome) -> String {
    let truth = &outcome.truth;
    let mut text = format!("{}\n\n{}\n", links(truth), jobs(truth));
    let measured = &truth.measured;
    text.push_str(&format!(
        "\nround trips: {} us over loopback, {} us in a rack, {} us between racks; loopback {:.1} Gbit/s\n",
        measured.loopback_round_trip_ns / 1000,
        measured.rack_round_trip_ns / 1000,
        measured.across_round_trip_ns / 1000,
        measured.loopback_bytes_per_s * 8.0 / 1e9
    ));
    for problem in &truth.problems {
        text.push_str(&format!("wrong: {problem}\n"));
    }
    let recorded = match &outcome.capture {
        Some(path) => format!("recorded by {} in {}", truth.recorder, path.display()),
        None => "not recorded".to_owned(),
    };
    text.push_str(&format!("{:.1} s in all; {recorded}", outcome.wall_s));
    text
}

/// One object: `capture` (path or null), `wall_s`, `truth` (as in truth.json).
///
/// # Errors
/// Never for what the lab makes; numbers that JSON cannot carry would be one.
pub fn json(outcome: &Outcome) -> Result<String> {
    let capture = outcome.capture.as_ref().map(|path| path.display().to_string());
    let object = json!({ "capture": capture, "wall_s": outcome.wall_s, "truth": outcome.truth });
    serde_json::to_string_pretty(&object).context("cannot write the summary")
}

fn links(truth: &Truth) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["link", "set", "there", "back"]);
    let mbit = |bps: Option<f64>| bps.map_or("-".to_owned(), |bps| format!("{:.1} Mbit/s", bps / 1e6));
    let set = |link: &TruthLink| link.set_bps.map_or("unshaped".to_owned(), |bps| mbit(Some(bps as f64)));
    for link in &truth.links {
        table.add_row([
            Cell::new(format!("{} - {}", link.a, link.b)),
            right(&set(link)),
            right(&mbit(link.measured_ab_bps)),
            right(&mbit(link.measured_ba_bps)),
        ]);
    }
    table
}

fn jobs(truth: &Truth) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["job", "id", "job s", "client s", "maps", "remote", "reduces"]);
    let seconds = |from: u64, to: u64| format!("{:.1}", to.saturating_sub(from) as f64 / 1e9);
    let number = |n: Option<u32>| right(&n.map_or("-".to_owned(), |n| n.to_string()));
    for job in &truth.jobs {
        let is_job = !job.id.is_empty();
        table.add_row([
            Cell::new(&job.kind),
            Cell::new(if is_job { &job.id } else { "-" }),
            right(&if is_job { seconds(job.submitted_ns, job.finished_ns) } else { "-".to_owned() }),
            right(&seconds(job.client_start_ns, job.client_end_ns)),
            number(is_job.then_some(job.maps)),
            number(job.remote_maps),
            number(is_job.then_some(job.reduces)),
        ]);
    }
    table
}

fn right(text: &str) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}
