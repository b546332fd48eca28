//! The table, and the page that shows it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::figure::Figure;

fn rounded(value: f64) -> String {
    match value.abs() {
        large if large >= 1e6 => format!("{:.2} M", value / 1e6),
        large if large >= 1e4 => format!("{:.1} k", value / 1e3),
        large if large >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

fn rows(figures: &[Figure]) -> Vec<[String; 6]> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    figures
        .iter()
        .map(|figure| {
            [
                figure.name.clone(),
                rounded(figure.ours),
                or_dash(figure.peer.map(|(_, value)| rounded(value))),
                or_dash(figure.ratio().map(|ratio| format!("{ratio:.2}"))),
                figure.unit.to_owned(),
                or_dash(figure.peer.map(|(name, _)| name.to_owned())),
            ]
        })
        .collect()
}

const COLUMNS: [&str; 6] = ["name", "ours", "peer", "ratio", "unit", "peer is"];

pub fn table(figures: &[Figure]) -> String {
    let mut table = comfy_table::Table::new();
    table.set_header(COLUMNS);
    for row in rows(figures) {
        table.add_row(row);
    }
    format!("{table}\n")
}

pub fn write(folder: &Path, figures: &[Figure]) -> Result<()> {
    let json: Vec<Value> = figures.iter().map(Figure::json).collect();
    let path = folder.join("benchmarks.json");
    fs::write(&path, serde_json::to_string_pretty(&json)? + "\n")
        .with_context(|| format!("cannot write {}", path.display()))?;
    let mut page = String::from(PAGE);
    writeln!(page, "Machine: {}.\n", machine())?;
    writeln!(page, "| {} |\n|---|---:|---:|---:|---|---|", COLUMNS.join(" | "))?;
    for row in rows(figures) {
        writeln!(page, "| {} |", row.join(" | "))?;
    }
    let path = folder.join("benchmarks.md");
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    trace::stderr::print(format!("written: {0}/benchmarks.json, {0}/benchmarks.md", folder.display()));
    Ok(())
}

const PAGE: &str = "# Benchmarks

Written by `make bench`; the same as numbers for programs: `benchmarks.json`. A ratio above 1 says how many times ours is faster
(of loads and latencies: ours / the peer's). Speeds only mean something as ratios of one run.
CAMINOS' router is `Basic`: up/down or dimension order, 4 VCs of 16 flits at both ends of a link, a packet draws link and VC anew in
each cycle. Ours is set up to have its loads and latencies within 3% below saturation: `credit` with 4 VLs of 16 credits, links without a delay of
their own (a cycle of CAMINOS' link is the time of a flit), `adaptive` on trees (it takes the link with most credits that nobody has in mind),
`bubble` on the torus; at load .9 it has 15 VLs, as a packet keeps its VL here. `input-output-queued` has CAMINOS' router itself, `input-queued` that of BookSim2. BookSim2 is not
run here: on one machine it did so much of what CAMINOS did (500 k flit-hops a second beside 1.548 M for ft64-p8-0.5), and its speed here is that share of CAMINOS' in the same run.
`omni-path` and `spinnaker` stand alone: OpaSim's program is not public, and no other program gives figures of SpiNNaker's routers. `insee-torus` and `insee-tree` do so where INSEE's program is not there (`benchmarks --insee FSIN`).
`two-threads-*` is how much faster a run is on two threads than on one; its peer is what the machine itself gains by its second core, with two runs that have nothing to do with each other.
`ethernet-*` are TCP connections across a whole tree, beside the same packets over `store-and-forward`; `replay-*` is the golden terasort; `goal-*` are schedules as LogGOPSim's `schedgen` makes them, of 65,536 ranks with messages of 8 bytes, over `ideal`.
`replay` asks the system for huge pages, the peers take what they are given. Speeds are per second of CPU time of one thread. What is simulated: `tests/bench/`. A flit-hop is a flit through a switch.

";

fn machine() -> String {
    let cpus = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown processor");
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = memory.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0);
    format!("{} x {}, {} GiB", cpus, model.trim_start_matches(['\t', ' ', ':']), kib >> 20)
}
