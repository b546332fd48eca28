//! What `make bench` shows: the simulator's speed beside that of its peers, and how it does at scale.
//!
//!     benchmarks [--out docs] [--runs 3] [--criterion target/criterion] [--only WORD]
//!
//! Every figure is the median of several runs; a peer runs in turns with ours, so that a noisy machine disturbs both. The
//! figures of the event queue are read from what criterion left. Writes `benchmarks.json` (a list of objects with the
//! keys name, ours, peer, ratio, unit, and peer_name) and `benchmarks.md`, the page that shows it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use hadoptic_tests::process::memory_peak_bytes;
use serde_json::{Value, json};

/// Experiments and the peers' configurations.
const CASES: &str = "tests/bench";
const REPLAY: &str = "target/release/replay";
const CAMINOS: &str = "tests/peers/target/release/peers";
const HEAP: &str = "target/release/binary-heap";

/// The same network, traffic and load for us (`NAME.toml`) and for CAMINOS (`NAME.cfg`).
const AGAINST_CAMINOS: [&str; 8] = [
    "ft64-p8-0.1",
    "ft64-p8-0.5",
    "ft64-p8-0.9",
    "torus8x8-p8-0.3",
    "ft512-p8-0.5",
    "ft1024-p8-0.5",
    "ft64-p1-0.5",
    "ft1024-p1-0.5",
];
/// The same with routers as CAMINOS has them (`input-output-queued-NAME.toml`, `NAME.cfg`).
const CAMINOS_ROUTERS: [&str; 5] = ["ft64-p8-0.1", "ft64-p8-0.5", "ft64-p8-0.9", "torus8x8-p8-0.3", "ft64-p1-0.5"];
/// The same with BookSim2's routers (`input-queued-NAME.toml`), and the share of CAMINOS' flit-hops a second that BookSim2 did on one machine
/// (single threads, medians of three).
const BOOKSIM2_ROUTERS: [(&str, f64); 7] = [
    ("ft64-p8-0.1", 539.0 / 867.0),
    ("ft64-p8-0.5", 500.0 / 1_548.0),
    ("ft64-p8-0.9", 367.0 / 1_365.0),
    ("torus8x8-p8-0.3", 625.0 / 1_126.0),
    ("ft512-p8-0.5", 134.0 / 966.0),
    ("ft1024-p8-0.5", 128.0 / 383.0),
    ("ft64-p1-0.5", 301.0 / 1_034.0),
];
/// 65,536 hosts below a three-level tree of 64-port switches.
/// `store-and-forward` at three sizes, one thread, for us and for the plain model over a binary heap.
const AGAINST_HEAP: [&str; 3] = ["heap-1024", "heap-65536", "heap-524288"];
const SCALE: [&str; 2] = ["scale-store-and-forward", "scale-credit"];
/// Flits of 64 bytes of their packets of 2 KiB.
const SCALE_PACKET_FLITS: f64 = 32.0;
/// The event queue and what else could hold events, by criterion's names.
const QUEUES: [&str; 3] = ["binary heap", "4-ary heap", "B-tree"];
const PENDING: [u64; 3] = [1_000, 100_000, 10_000_000];

struct Options {
    out: PathBuf,
    runs: usize,
    criterion: PathBuf,
    only: String,
}

/// One line of the table.
struct Figure {
    name: String,
    ours: f64,
    peer: Option<(&'static str, f64)>,
    unit: &'static str,
    /// Whether more is better: a ratio above 1 then says that ours is better by so much.
    more_is_better: bool,
}

impl Figure {
    fn ratio(&self) -> Option<f64> {
        let (_, peer) = self.peer?;
        Some(if self.more_is_better { self.ours / peer } else { peer / self.ours })
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "ours": self.ours,
            "peer": self.peer.map(|(_, value)| value),
            "ratio": self.ratio(),
            "unit": self.unit,
            "peer_name": self.peer.map(|(name, _)| name),
        })
    }
}

fn main() -> Result<()> {
    let options = options()?;
    let mut figures = Vec::new();
    for name in wanted(&AGAINST_CAMINOS, &options) {
        figures.extend(against_caminos(name, name, options.runs)?);
    }
    for case in CAMINOS_ROUTERS {
        let name = format!("input-output-queued-{case}");
        if name.contains(&options.only) {
            figures.extend(against_caminos(&name, case, options.runs)?);
        }
    }
    for (case, share) in BOOKSIM2_ROUTERS {
        let name = format!("input-queued-{case}");
        if name.contains(&options.only) {
            figures.push(against_booksim2(&name, case, share, options.runs)?);
        }
    }
    for name in wanted(&AGAINST_HEAP, &options) {
        figures.extend(against_heap(name, options.runs)?);
    }
    for name in wanted(&SCALE, &options) {
        figures.extend(at_scale(name, options.runs)?);
    }
    if options.only.is_empty() || "queue".contains(&options.only) {
        figures.extend(queues(&options.criterion)?);
    }
    ensure!(!figures.is_empty(), "--only {}: no benchmark has that in its name", options.only);
    print!("{}", table(&figures));
    if options.only.is_empty() {
        write(&options.out, &figures)?;
    }
    Ok(())
}

fn options() -> Result<Options> {
    let mut options =
        Options { out: "docs".into(), runs: 3, criterion: "target/criterion".into(), only: String::new() };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--out" => options.out = value.into(),
            "--runs" => options.runs = value.parse().with_context(|| format!("--runs {value}: a number is needed"))?,
            "--criterion" => options.criterion = value.into(),
            "--only" => options.only = value,
            _ => bail!("{name} is not known; there are --out, --runs, --criterion and --only"),
        }
    }
    ensure!(options.runs > 0, "--runs 0: at least one run is needed");
    Ok(options)
}

fn wanted<'a>(names: &[&'a str], options: &Options) -> Vec<&'a str> {
    names.iter().copied().filter(|name| name.contains(&options.only)).collect()
}

/// The JSON object that a program printed last.
fn json_of(command: &Command, output: &Output) -> Result<Value> {
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let begin = text.rfind("\n{").map_or(0, |at| at + 1);
    serde_json::from_str(&text[begin..]).with_context(|| format!("{command:?} printed no JSON object"))
}

/// Runs an experiment. Its summary gets one key more, `memory_peak_bytes`: the most that the program has held.
fn simulate(name: &str) -> Result<Value> {
    let results = std::env::temp_dir().join(format!("hadoptic-bench-{}", std::process::id()));
    let experiment = Path::new(CASES).join(format!("{name}.toml"));
    let mut command = Command::new(REPLAY);
    command.arg("run").arg(experiment).args(["--threads", "1", "--json", "--force"]).arg("--out").arg(&results);
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run {command:?}"))?;
    let mut memory = 0;
    while child.try_wait()?.is_none() {
        memory = memory_peak_bytes(child.id()).unwrap_or(memory);
        thread::sleep(Duration::from_millis(20));
    }
    let summary = json_of(&command, &child.wait_with_output()?);
    let _ = fs::remove_dir_all(&results);
    let mut summary = summary?;
    summary["memory_peak_bytes"] = memory.into();
    Ok(summary)
}

fn number(of: &Value, key: &str) -> Result<f64> {
    of[key].as_f64().with_context(|| format!("no {key} in {of}"))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What CAMINOS prints of `case`, and its flit-hops a second.
fn caminos(case: &str) -> Result<(Value, f64)> {
    let mut caminos = Command::new(CAMINOS);
    caminos.arg(Path::new(CASES).join(format!("{case}.cfg")));
    let output = caminos.output().with_context(|| format!("cannot run {caminos:?}"))?;
    let peer = json_of(&caminos, &output)?;
    // Its hops are links between switches; ours are switches. All cycles cost time, those of the warm-up too.
    let phits = number(&peer, "accepted_load")? * number(&peer, "cycle")? * number(&peer, "servers")?;
    let speed = phits * (number(&peer, "average_packet_hops")? + 1.0) / number(&peer, "user_time")?;
    Ok((peer, speed))
}

/// BookSim2 itself is not run: its speed is `share` of that which CAMINOS has here and now.
fn against_booksim2(name: &str, case: &str, share: f64, runs: usize) -> Result<Figure> {
    announce(name);
    let (mut ours, mut peers) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let summary = simulate(name)?;
        ours.push(number(&summary, "flit_hops")? / number(&summary, "cpu_s")?);
        peers.push(caminos(case)?.1 * share);
    }
    Ok(Figure {
        name: format!("{name}: speed"),
        ours: median(ours),
        peer: Some(("BookSim2, reckoned from CAMINOS", median(peers))),
        unit: "flit-hops per second of CPU",
        more_is_better: true,
    })
}

fn against_caminos(name: &str, case: &str, runs: usize) -> Result<Vec<Figure>> {
    announce(name);
    let (mut ours, mut peers) = (Vec::new(), Vec::new());
    let mut last = (Value::Null, Value::Null);
    for _ in 0..runs {
        let summary = simulate(name)?;
        ours.push(number(&summary, "flit_hops")? / number(&summary, "cpu_s")?);
        let (peer, speed) = caminos(case)?;
        peers.push(speed);
        last = (summary, peer);
    }
    let figure = |what: &str, ours: f64, peer: f64, unit| Figure {
        name: format!("{name}: {what}"),
        ours,
        peer: Some(("CAMINOS 0.6.3", peer)),
        unit,
        more_is_better: true,
    };
    let (summary, peer) = last;
    Ok(vec![
        figure("speed", median(ours), median(peers), "flit-hops per second of CPU"),
        figure(
            "accepted load",
            number(&summary, "accepted_load")?,
            number(&peer, "accepted_load")?,
            "flits per node and cycle",
        ),
        figure(
            "mean packet latency",
            number(&summary, "packet_latency_mean_cycles")?,
            number(&peer, "average_message_delay")?,
            "cycles",
        ),
    ])
}

fn against_heap(name: &str, runs: usize) -> Result<Vec<Figure>> {
    announce(name);
    let (mut ours, mut peers, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    let mut latencies = (0.0, 0.0);
    for _ in 0..runs {
        let summary = simulate(name)?;
        memory.push(number(&summary, "memory_peak_bytes")? / (1u64 << 30) as f64);
        ours.push(number(&summary, "cpu_s")? * 1e9 / number(&summary, "packet_hops")?);
        let mut heap = Command::new(HEAP);
        heap.arg(Path::new(CASES).join(format!("{name}.toml")));
        let output = heap.output().with_context(|| format!("cannot run {heap:?}"))?;
        let peer = json_of(&heap, &output)?;
        peers.push(number(&peer, "cpu_s")? * 1e9 / number(&peer, "packet_hops")?);
        latencies = (number(&summary, "packet_latency_mean_ns")? / 1e3, number(&peer, "packet_latency_mean_ps")? / 1e6);
    }
    let figure = |what: &str, ours: f64, peer: f64, unit, more_is_better| Figure {
        name: format!("{name}: {what}"),
        ours,
        peer: Some(("plain model over a binary heap", peer)),
        unit,
        more_is_better,
    };
    Ok(vec![
        figure("time", median(ours), median(peers), "ns of CPU per packet-hop, set-up included", false),
        figure("mean packet latency", latencies.0, latencies.1, "us", true),
        Figure {
            name: format!("{name}: memory"),
            ours: median(memory),
            peer: None,
            unit: "GiB, results written included",
            more_is_better: false,
        },
    ])
}

fn at_scale(name: &str, runs: usize) -> Result<Vec<Figure>> {
    announce(name);
    let all: Vec<Value> = (0..runs).map(|_| simulate(name)).collect::<Result<_>>()?;
    let of = |what: &dyn Fn(&Value) -> Result<f64>| -> Result<f64> {
        Ok(median(all.iter().map(what).collect::<Result<_>>()?))
    };
    let figure = |what: &str, ours: f64, unit, more_is_better| Figure {
        name: format!("{name}: {what}"),
        ours,
        peer: None,
        unit,
        more_is_better,
    };
    Ok(vec![
        figure(
            "packets",
            of(&|run| Ok(number(run, "packets")? / number(run, "cpu_s")?))?,
            "packets per second of CPU",
            true,
        ),
        figure("time", of(&|run| Ok(number(run, "cpu_s")? * 1e9 / number(run, "events")?))?, "ns per event", false),
        figure(
            "events",
            of(&|run| Ok(number(run, "events")? * SCALE_PACKET_FLITS / number(run, "flit_hops")?))?,
            "events per packet-hop",
            false,
        ),
        figure("memory", of(&|run| Ok(number(run, "memory_peak_bytes")? / (1u64 << 30) as f64))?, "GiB", false),
    ])
}

/// What criterion measured: nanoseconds for one taken out and one put in.
fn queues(criterion: &Path) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for pending in PENDING {
        let ours = hold_ns(criterion, "wheel", pending)?.context(
            "no figures of the event queue: run `cargo bench --profile release -p replay --bench queue` first",
        )?;
        for peer in QUEUES {
            // The slowest are not measured at the largest size.
            if let Some(ns) = hold_ns(criterion, peer, pending)? {
                figures.push(Figure {
                    name: format!("event queue, {pending} pending"),
                    ours,
                    peer: Some((peer, ns)),
                    unit: "ns per pop and push",
                    more_is_better: false,
                });
            }
        }
    }
    Ok(figures)
}

fn hold_ns(criterion: &Path, queue: &str, pending: u64) -> Result<Option<f64>> {
    const HOLDS: f64 = 100_000.0;
    let path = criterion.join(format!("queue/{queue}/{pending}/new/estimates.json"));
    let Ok(bytes) = fs::read(&path) else { return Ok(None) };
    let estimates: Value = serde_json::from_slice(&bytes).with_context(|| format!("{} is no JSON", path.display()))?;
    Ok(Some(number(&estimates["median"], "point_estimate")? / HOLDS))
}

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

fn table(figures: &[Figure]) -> String {
    let mut table = comfy_table::Table::new();
    table.set_header(COLUMNS);
    for row in rows(figures) {
        table.add_row(row);
    }
    format!("{table}\n")
}

fn write(folder: &Path, figures: &[Figure]) -> Result<()> {
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
Speeds are per second of CPU time of one thread. What is simulated: `tests/bench/`. A flit-hop is a flit through a switch.

";

fn machine() -> String {
    let cpus = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown processor");
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = memory.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0);
    format!("{} x {}, {} GiB", cpus, model.trim_start_matches(['\t', ' ', ':']), kib >> 20)
}

fn announce(name: &str) {
    trace::stderr::print(format!("running {name}"));
}
