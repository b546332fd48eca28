//! What one may look at in a simulated network: INSEE's figure 9 (document 003), run here.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use netsim::fabric::FabricConfig;
use netsim::statistics::{Histogram, RunFigures, float};
use netsim::traffic::{self, RunOptions, TrafficConfig};
use pages::chart::{Chart, Line, standing};
use pages::grouped::{Grouped, Series};
use pages::markup::{Element, element};

const REPLAY: &str = "target/release/replay";
const TORUS: &str = "tests/bench/insee-torus.toml";
const TREE: &str = "tests/bench/insee-tree.toml";
const TWIST: (&str, &str) = ("fabric.topology.twist.y.x", "4");
/// Lines of more points have no dots.
const MAX_DOTS: usize = 40;
const KERNELS: [&str; 6] = ["alltoall", "binarytree", "butterfly", "mesh2", "nbodies", "waterfall"];

/// A network: its name, its file, and what is changed in that.
#[derive(Clone, Copy)]
struct Network {
    name: &'static str,
    file: &'static str,
    set: &'static [(&'static str, &'static str)],
}

const NETWORKS: [Network; 3] = [
    Network { name: "torus 8x8", file: TORUS, set: &[] },
    Network { name: "twisted torus 8x8", file: TORUS, set: &[TWIST] },
    Network { name: "4-ary 3-tree", file: TREE, set: &[] },
];

/// What one may look at in a simulated network: figure 9 of document 003 (INSEE), run here.
///
/// Programs are those of target/release, experiments those of tests/bench: run it in the repository's root. Writes analyses.md and
/// analyses-*.svg.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  analyses --out docs\n  analyses --cycles 2000 --out /tmp/short")]
struct Options {
    /// Folder of the page and its pictures.
    #[arg(long, value_name = "FOLDER", default_value = "docs")]
    out: PathBuf,
    /// How long runs measure, 1 at least.
    #[arg(long, value_name = "CYCLES", default_value_t = 8_000, value_parser = clap::value_parser!(u64).range(1..))]
    cycles: u64,
}

fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(fs::exists(REPLAY)?, "{REPLAY} is not there: cargo build --release -p replay");
    let mut page = HEAD.to_owned();
    loads(&options, &mut page)?;
    applications(&options, &mut page)?;
    at_full_pace(&options, &mut page)?;
    faults(&options, &mut page)?;
    evolution(&options, &mut page)?;
    write(&options.out.join("analyses.md"), &page)
}

const HEAD: &str = "# What one may look at in a network

Written by `make analyses`: the analyses of figure 9 of document 003 (INSEE), run here. Networks of 64 hosts: a torus, the same with a twist of 4, and a 4-ary 3-tree, each with the settings of
`tests/bench/insee-torus.toml` and `tests/bench/insee-tree.toml`. All figures are of one seed. The paper says of its graphs only what they are of; with your own networks the files named with each have the same figures.
";

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Puts a value in the place of the one at `path`, with tables where there are none.
fn set(table: &mut toml::Table, path: &str, value: &str) -> Result<()> {
    let parsed: toml::Table = format!("value = {value}").parse().with_context(|| format!("{path} = {value}"))?;
    let value = parsed.get("value").cloned().context("a value")?;
    let mut at = table;
    let (parents, key) = path.rsplit_once('.').context("a path")?;
    for parent in parents.split('.') {
        let inner = at.entry(parent).or_insert_with(|| toml::Table::new().into());
        at = inner.as_table_mut().with_context(|| format!("{parent} of {path} is no table"))?;
    }
    at.insert(key.to_owned(), value);
    Ok(())
}

/// Runs a network's traffic with some keys changed.
fn run(network: Network, options: &Options, keys: &[(&str, String)]) -> Result<RunFigures> {
    let text = fs::read_to_string(network.file).with_context(|| network.file.to_owned())?;
    let mut table: toml::Table = text.parse().with_context(|| network.file.to_owned())?;
    set(&mut table, "traffic.measurement", &format!("\"{} cycles\"", options.cycles))?;
    network.set.iter().try_for_each(|(path, value)| set(&mut table, path, value))?;
    keys.iter().try_for_each(|(path, value)| set(&mut table, path, value))?;
    let mut part = |name: &str| table.remove(name).context("a table").and_then(|part| Ok(toml::to_string(&part)?));
    let (traffic, fabric) = (part("traffic")?, part("fabric")?);
    let traffic: TrafficConfig = traffic.parse()?;
    let fabric: FabricConfig = fabric.parse()?;
    let wanted = RunOptions { pairs: true, ..RunOptions::default() };
    let done = traffic::run(&traffic, &fabric, 1, wanted, &AtomicBool::new(false), &mut |_| {});
    Ok(done.with_context(|| network.name.to_owned())?.figures)
}

/// A picture of lines over round numbers, with a dot for each point where there are few.
fn lines(title: &str, over: &str, lines: &[Line]) -> String {
    let dots = lines.iter().all(|line| line.points.len() <= MAX_DOTS);
    let chart = Chart { title, over, places: &[], hollow: "", diagonal: false, dots, joined: true };
    standing(&chart.draw(lines))
}

fn section(page: &mut String, title: &str, text: &str, pictures: &[&str]) -> Result<()> {
    writeln!(page, "\n## {title}\n\n{text}\n")?;
    pictures.iter().try_for_each(|name| Ok(writeln!(page, "![{title}](analyses-{name}.svg)")?))
}

/// a and b: throughput and latency over the load.
fn loads(options: &Options, page: &mut String) -> Result<()> {
    let (mut accepted, mut latency) = (Vec::new(), Vec::new());
    for network in NETWORKS {
        let mut points = (Vec::new(), Vec::new());
        for tenth in 1..=10 {
            let load = f64::from(tenth) / 10.0;
            let figures = run(network, options, &[("traffic.load", format!("{load:?}"))])?;
            points.0.push((load, figures.accepted_load.unwrap_or(0.0), false));
            let cycle_ps = 8_000.0;
            points.1.push((load, figures.packet.mean().unwrap_or(0.0) / cycle_ps, false));
        }
        let most = points.0.iter().map(|point| point.1).fold(0.0, f64::max);
        accepted.push(Line { name: format!("{}: at most {most:.3}", network.name), points: points.0 });
        latency.push(Line { name: network.name.to_owned(), points: points.1 });
    }
    let picture = lines("Accepted load", "offered load (flits per node and cycle)", &accepted);
    write(&options.out.join("analyses-throughput.svg"), &picture)?;
    let picture = lines("Mean packet latency (cycles)", "offered load (flits per node and cycle)", &latency);
    write(&options.out.join("analyses-latency.svg"), &picture)?;
    let command = "`replay run EXPERIMENT --out OUT --set traffic.load=[0.1,0.2,0.3]`";
    let text = format!("Uniform traffic from sources that stop when they are full: `accepted.svg` of {command}.");
    section(page, "a: throughput", &text, &["throughput"])?;
    let text = format!("The same runs, from hand-over to arrival: `latency.svg` of {command}.");
    section(page, "b: latency", &text, &["latency"])
}

/// c: how long applications take.
fn applications(options: &Options, page: &mut String) -> Result<()> {
    let mut series: Vec<Series> = Vec::new();
    for network in NETWORKS {
        let mut values = Vec::new();
        for kernel in KERNELS {
            let mut command = Command::new(REPLAY);
            command.args(["program", "--kernel", kernel, "--size", "1024B", "--json", "--fabric", network.file]);
            for (path, value) in network.set {
                command.arg("--set").arg(format!("{path}={value}"));
            }
            let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
            ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
            let json: serde_json::Value = serde_json::from_slice(&output.stdout)?;
            let time = json["fabrics"][0]["time_s"].as_f64().context("time_s")?;
            values.push(Some((time * 1e6, false)));
        }
        series.push(Series { name: network.name.to_owned(), values });
    }
    let groups = KERNELS.map(str::to_owned);
    let grouped = Grouped { title: "Time (us)", over: "kernel", groups: &groups, hollow: "" };
    write(&options.out.join("analyses-applications.svg"), &standing(&grouped.draw(&series)))?;
    let text = "Kernels of 64 tasks with messages of 1,024 bytes: `time_s` of `replay program --kernel KIND --size 1024B --fabric EXPERIMENT --json`.";
    section(page, "c: application performance", text, &["applications"])
}

/// d, e, f and i: balance, distances, pairs and injected packets of runs at full pace.
fn at_full_pace(options: &Options, page: &mut String) -> Result<()> {
    let (mut balance, mut distances, mut injected) = (Vec::new(), Vec::new(), Vec::new());
    let mut furthest = 0;
    for network in NETWORKS {
        let figures = run(network, options, &[("traffic.offered_hops", "true".to_owned())])?;
        let mut shares: Vec<f64> = figures.links.iter().filter_map(|link| link.utilisation).collect();
        shares.sort_by(|a, b| b.total_cmp(a));
        let count = float(shares.len() as u64);
        let points = (1u64..).zip(&shares).map(|(place, share)| (float(place) / count, *share, false));
        balance.push(Line { name: network.name.to_owned(), points: points.collect() });
        let offered = figures.offered_hops.as_ref();
        for (kind, histogram) in [("injected", offered), ("consumed", Some(&figures.hops))] {
            let Some(histogram) = histogram else { continue };
            furthest = furthest.max(histogram.max());
            distances.push((format!("{}, {kind}", network.name), histogram.clone()));
        }
        let mut sent = vec![0u64; 64];
        for (from, _, count) in &figures.pairs {
            if let Some(sent) = sent.get_mut(*from as usize) {
                *sent += count.offered;
            }
        }
        let points = (0u64..).zip(&sent).map(|(host, packets)| (float(host), float(*packets), false));
        injected.push(Line { name: network.name.to_owned(), points: points.collect() });
    }
    let picture = lines("Utilisation of links, the busiest first", "share of the links", &balance);
    write(&options.out.join("analyses-balance.svg"), &picture)?;
    let groups: Vec<String> = (1..=furthest).map(|switches| switches.to_string()).collect();
    let series = distances.into_iter().map(|(name, histogram)| Series { name, values: shares(&histogram, furthest) });
    let grouped = Grouped { title: "Share of the packets", over: "switches on the way", groups: &groups, hollow: "" };
    let picture = standing(&grouped.draw(&series.collect::<Vec<_>>()));
    write(&options.out.join("analyses-distances.svg"), &picture)?;
    let picture = lines("Packets handed over", "host", &injected);
    write(&options.out.join("analyses-injected.svg"), &picture)?;
    let region = [("traffic.pattern", "\"hot-region\"".to_owned()), ("traffic.load", "0.3".to_owned())];
    let figures = run(NETWORKS[0], options, &region)?;
    write(&options.out.join("analyses-pairs.svg"), &standing(&pair_map(&figures)))?;
    let text = "At full pace, as all below: `links.parquet` of `replay run EXPERIMENT --out OUT` has each link.";
    section(page, "d: network balance", text, &["balance"])?;
    let text = "As packets are handed over, and as they arrive: `hops.parquet` with `traffic.offered_hops = true`.";
    section(page, "e: distances", text, &["distances"])?;
    let text = "Packets of each pair under `hot-region`, the torus at load .3: `pairs.parquet` of `replay run EXPERIMENT --out OUT --pairs`.";
    section(page, "f: task to task", text, &["pairs"])?;
    let text = "By host, as sources stop that are full: sums of `pairs.parquet`.";
    section(page, "i: injected packets", text, &["injected"])
}

/// The share of the packets at each number of switches.
fn shares(histogram: &Histogram, furthest: u64) -> Vec<Option<(f64, bool)>> {
    let all = float(histogram.count().max(1));
    let of = |switches: u64| histogram.buckets().find(|(low, ..)| *low == switches).map(|(_, _, packets)| packets);
    (1..=furthest).map(|switches| of(switches).map(|packets| (float(packets) / all, false))).collect()
}

/// Packets of each pair of hosts as squares, sources to the right and destinations down: the darker, the more.
fn pair_map(figures: &RunFigures) -> Element {
    const SIDE: u32 = 6;
    const SHADES: u64 = 8;
    let hosts = figures.pairs.iter().map(|(from, to, _)| from.max(to) + 1).max().unwrap_or(1);
    let most = figures.pairs.iter().map(|(.., count)| count.accepted).max().unwrap_or(0).max(1);
    let mut squares = vec![String::new(); usize::try_from(SHADES).unwrap_or(1) + 1];
    for (from, to, count) in &figures.pairs {
        let shade = usize::try_from((count.accepted * SHADES).div_ceil(most)).unwrap_or(0);
        let _ = write!(squares[shade], "M{} {}h{SIDE}v{SIDE}h-{SIDE}z", from * SIDE, to * SIDE);
    }
    let side = hosts * SIDE;
    let picture = element("svg")
        .with("viewBox", format!("0 0 {side} {side}"))
        .with("width", side.to_string())
        .with("role", "img")
        .child(element("title").text("Packets from each host (to the right) to each (down)"));
    let shaded = squares.into_iter().enumerate().skip(1).filter(|(_, squares)| !squares.is_empty());
    picture.children(shaded.map(|(shade, squares)| {
        let opacity = format!("{:.2}", float(shade as u64) / float(SHADES));
        element("path").with("d", squares).with("fill", "#1f6feb").with("fill-opacity", opacity)
    }))
}

/// g: what is accepted with cables out of order.
fn faults(options: &Options, page: &mut String) -> Result<()> {
    let mut drawn = Vec::new();
    for network in [NETWORKS[0], NETWORKS[1]] {
        let mut points = Vec::new();
        for faults in [0u32, 2, 4, 8, 12, 16] {
            let keys = [
                ("fabric.topology.faults", faults.to_string()),
                ("fabric.routing", "\"minimal-adaptive\"".to_owned()),
                ("fabric.vls", "3".to_owned()),
            ];
            let figures = run(network, options, &keys)?;
            points.push((f64::from(faults), figures.accepted_load.unwrap_or(0.0), false));
        }
        drawn.push(Line { name: network.name.to_owned(), points });
    }
    let picture = lines("Accepted load at load 1", "cables out of order", &drawn);
    write(&options.out.join("analyses-faults.svg"), &picture)?;
    let text = "At full pace with `minimal-adaptive` and three VLs, whose escape finds a way wherever there is one: `replay run EXPERIMENT --out OUT --set 'fabric.routing=\"minimal-adaptive\"' --set fabric.vls=3 --set fabric.topology.faults=[0,4,8,16]`. Which cables are out of order is drawn.";
    section(page, "g: fault tolerance", text, &["faults"])
}

/// h: how a network fills.
fn evolution(options: &Options, page: &mut String) -> Result<()> {
    let mut drawn = Vec::new();
    for network in NETWORKS {
        let keys = [
            ("traffic.evolution", "\"250 cycles\"".to_owned()),
            ("traffic.pattern", "\"bit-complement\"".to_owned()),
            ("traffic.warm_up", "\"1 cycles\"".to_owned()),
        ];
        let figures = run(network, options, &keys)?;
        let point = |span: &netsim::statistics::SeriesSpan| {
            let cycles = float(span.until_ps - span.from_ps) / 8_000.0;
            let load = float(span.row.accepted_bytes) / 4.0 / cycles / 64.0;
            (float(span.until_ps) / 8_000.0, load, false)
        };
        let points = figures.evolution.iter().take(24).map(point).collect();
        drawn.push(Line { name: network.name.to_owned(), points });
    }
    write(&options.out.join("analyses-evolution.svg"), &lines("Accepted load", "cycles since the begin", &drawn))?;
    let text = "Bit complement at full pace, in intervals of 250 cycles: `intervals.parquet` with `traffic.evolution = \"250 cycles\"`.";
    section(page, "h: evolution", text, &["evolution"])
}
