//! One run on several threads: figures 12 to 15 of document 001 (FatTreeSim), run on the cores that are here.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use hadoptic_tests::options::at_least_one;
use pages::chart::{Chart, Line, standing};
use serde_json::Value;

const REPLAY: &str = "target/release/replay";
const EXPERIMENT: &str = "tests/bench/fattreesim.toml";
/// Figures 12 and 13, nanoseconds between two packets of a host; figure 14 has the first.
const INTERVALS_NS: [u32; 4] = [200, 400, 800, 1_600];
/// Links on which the shortest of these intervals is no overload.
const FAST: [&str; 2] = ["fabric.topology.host_link.rate=100Gbps", "fabric.topology.uplink.rate=100Gbps"];
/// Figure 14, the delay of a link: with the time of a packet, the lookahead.
const DELAYS: [&str; 4] = ["0ns", "50ns", "200ns", "1us"];

const WINDOWS: &str = "windows";
const OPTIMISTIC: &str = "optimistic";

/// One run on several threads: figures 12 to 15 of document 001 (FatTreeSim), run on the cores that are here.
///
/// The network is that of tests/bench/fattreesim.toml, on 1 thread, 2, 4 and so on. Each point is a process of its own, run once. Programs are
/// those of target/release: run it in the repository's root. Writes parallel-figures.md and parallel-*.svg.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  parallel --out docs\n  parallel --packets 2 --ports 16 --out /tmp/small")]
struct Options {
    /// Folder of the page and its pictures.
    #[arg(long, value_name = "FOLDER", default_value = "docs")]
    out: PathBuf,
    /// Packets from each host, 1 at least.
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    packets: u64,
    /// Ports of a switch.
    #[arg(long, value_name = "NUMBER", default_value_t = 128)]
    ports: u64,
    /// The most threads [default: as many as there are cores].
    #[arg(long, value_name = "NUMBER", value_parser = at_least_one)]
    threads: Option<usize>,
}

/// What a run says of itself.
struct Run {
    threads: usize,
    packets: f64,
    events: f64,
    wall_s: f64,
    lookahead_ns: f64,
    windows: f64,
    remote_share: f64,
    /// Of optimistic runs.
    efficiency: Option<f64>,
    rolled_back: Option<f64>,
}

impl Run {
    const fn event_rate(&self) -> f64 {
        self.events / self.wall_s / 1e6
    }
}

/// A line of a picture.
struct Series {
    name: String,
    runs: Vec<Run>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(fs::exists(REPLAY)?, "{REPLAY} is not there: cargo build --release -p replay");
    let mut page = head(&options);
    intervals(&mut page, &options)?;
    lookahead(&mut page, &options)?;
    modes(&mut page, &options)?;
    let path = options.out.join("parallel-figures.md");
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
}

impl Options {
    /// How many threads each point of a line has: powers of two, and the most.
    fn threads(&self) -> Vec<usize> {
        let most = self.most_threads();
        let powers = std::iter::successors(Some(1), |threads| Some(threads * 2)).take_while(|threads| *threads < most);
        powers.chain([most]).collect()
    }

    fn most_threads(&self) -> usize {
        self.threads.unwrap_or_else(cores)
    }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn head(options: &Options) -> String {
    let Options { packets, ports, .. } = options;
    let hosts = 2 * (ports / 2).pow(3);
    let most = options.most_threads();
    let cores = cores();
    format!(
        "# FatTreeSim's figures 12 to 15

Written by `make parallel` (`target/release/parallel --packets {packets} --ports {ports} --threads {most}`): the scaling runs of document 001, chapter 4.2, on a machine of {cores} core(s). What the modes are, and what is not said in
the article, is told in [parallel.md](parallel.md). {hosts} hosts below three levels of switches of {ports} ports, random destinations, {packets} packets of 1 KiB from each host.

Each point is one run. Rates are events through wall time, and setting up the network is in it: it takes the larger share the fewer packets there are. The article's events are finer (216 for each packet): the forms of curves
can be compared, and packets a second. Its curves are pictures; what its text says of them stands beside ours.
"
    )
}

/// Runs the experiment with values replaced.
fn simulate(engine: &str, threads: usize, sets: &[String], options: &Options) -> Result<Run> {
    trace::stderr::print(format!("running {engine} on {threads} thread(s) {}", sets.join(" ")));
    let results = std::env::temp_dir().join(format!("hadoptic-parallel-{}", std::process::id()));
    let mut command = Command::new(REPLAY);
    command.args(["run", EXPERIMENT, "--json", "--force", "--engine", engine, "--threads", &threads.to_string()]);
    let size = [format!("traffic.count={}", options.packets), format!("fabric.topology.m={}", options.ports)];
    command.args(size.iter().chain(sets).flat_map(|set| ["--set", set]));
    let output = command.arg("--out").arg(&results).output().with_context(|| format!("cannot run {command:?}"))?;
    let _ = fs::remove_dir_all(&results);
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).with_context(|| format!("{command:?}"))?;
    let number = |path: &str| summary.pointer(path).and_then(Value::as_f64);
    let known = |path: &str| number(path).with_context(|| format!("no {path} in what {command:?} says"));
    Ok(Run {
        threads,
        packets: known("/packets")?,
        events: known("/events")?,
        wall_s: known("/wall_s")?,
        lookahead_ns: known("/parallel/lookahead_ns")?,
        windows: known("/parallel/windows")?,
        remote_share: known("/parallel/remote_share")?,
        efficiency: number("/parallel/optimistic/efficiency"),
        rolled_back: number("/parallel/optimistic/rolled_back"),
    })
}

/// The same on all numbers of threads.
fn on_threads(name: String, engine: &str, sets: &[String], options: &Options) -> Result<Series> {
    let runs = options.threads().into_iter().map(|threads| simulate(engine, threads, sets, options));
    Ok(Series { name, runs: runs.collect::<Result<_>>()? })
}

fn fast(interval_ns: u32) -> Vec<String> {
    let interval = format!("traffic.interval={interval_ns}ns");
    FAST.into_iter().map(str::to_owned).chain([interval]).collect()
}

fn intervals(page: &mut String, options: &Options) -> Result<()> {
    let series = INTERVALS_NS
        .iter()
        .map(|interval| on_threads(format!("{interval} ns"), OPTIMISTIC, &fast(*interval), options))
        .collect::<Result<Vec<_>>>()?;
    page.push_str(
        "
## Figures 12 and 13: optimistic, by cores and by the time between packets

In the article: on one rack (1,024 to 16,384 cores) the rate grows up to 297 M events/s, at most 37% of the events are remote; on two racks (2,048 to 32,768) the most are 305 M events/s on 16,384 cores, 1.41 M packets/s, and on
32,768 the efficiency is below 0. Here links have 100 Gbit/s, on which 200 ns are a load of .41.
",
    );
    table(page, "between packets", &series)?;
    let rate = |run: &Run| Some(run.event_rate());
    picture(page, options, "12-rate", "event rate (M events/s)", &series, &rate)?;
    picture(page, options, "12-remote", "remote events (%)", &series, &|run| Some(run.remote_share * 100.0))?;
    picture(page, options, "12-efficiency", "efficiency (%)", &series, &|run| run.efficiency.map(|share| share * 100.0))
}

fn lookahead(page: &mut String, options: &Options) -> Result<()> {
    let threads = options.most_threads();
    let delays = DELAYS.map(|delay| {
        let links = ["host_link", "uplink"].map(|link| format!("fabric.topology.{link}.delay={delay}"));
        simulate(WINDOWS, threads, &[fast(INTERVALS_NS[0]), links.into()].concat(), options)
    });
    let runs = delays.into_iter().collect::<Result<Vec<_>>>()?;
    write!(
        page,
        "
## Figure 14: conservative, by the lookahead

In the article: the longer the lookahead, the higher the rate, up to 655 M events/s (3.0 M packets/s) with 1 ms on 32,768 cores, 200 ns between packets. Here the lookahead is no number that one sets: links get longer, so that
it is as physical as they are. {threads} thread(s).

| delay of a link | lookahead (ns) | windows | time (s) | M events/s | M packets/s |
|---|---:|---:|---:|---:|---:|
"
    )?;
    for (delay, run) in DELAYS.iter().zip(&runs) {
        writeln!(
            page,
            "| {delay} | {} | {} | {:.2} | {:.1} | {:.2} |",
            run.lookahead_ns,
            run.windows,
            run.wall_s,
            run.event_rate(),
            run.packets / run.wall_s / 1e6
        )?;
    }
    let names: Vec<String> = runs.iter().map(|run| format!("{:.0}", run.lookahead_ns)).collect();
    let places: Vec<(f64, &str)> = names.iter().enumerate().map(|(at, name)| (at as f64, name.as_str())).collect();
    let points = places.iter().zip(&runs).map(|((at, _), run)| (*at, run.event_rate(), false)).collect();
    let line = Line { name: String::new(), points };
    draw(page, options, "14-rate", "event rate (M events/s)", ("lookahead (ns)", &places), &[line])
}

fn modes(page: &mut String, options: &Options) -> Result<()> {
    let series = [WINDOWS, OPTIMISTIC].map(|engine| on_threads(engine.to_owned(), engine, &[], options));
    let series = series.into_iter().collect::<Result<Vec<_>>>()?;
    let lookahead = series.iter().flat_map(|series| &series.runs).map(|run| run.lookahead_ns).fold(0.0, f64::max);
    write!(
        page,
        "
## Figure 15: both modes by cores

In the article: lookahead 1 us, up to 65,536 cores; the conservative mode grows less than linearly, the optimistic one is best on 16,384 cores, and its efficiency is -338% on 65,536. Here as the file has it: 10 Gbit/s, 1,600 ns between
packets, and a lookahead of {lookahead} ns. Whatever the mode and the number of threads, tables are the same ([parallel.md](parallel.md#what-holds-it)).
"
    )?;
    table(page, "mode", &series)?;
    picture(page, options, "15-time", "time (s)", &series, &|run| Some(run.wall_s))?;
    picture(page, options, "15-rate", "event rate (M events/s)", &series, &|run| Some(run.event_rate()))
}

fn table(page: &mut String, what: &str, series: &[Series]) -> Result<()> {
    writeln!(
        page,
        "\n| {what} | threads | time (s) | M events/s | M packets/s | remote | efficiency | rolled back |\n|---|---:|---:|---:|---:|---:|---:|---:|"
    )?;
    let share = |share: f64| format!("{:.1}%", share * 100.0);
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "\u{2013}".to_owned());
    for Series { name, runs } in series {
        for run in runs {
            writeln!(
                page,
                "| {name} | {} | {:.2} | {:.1} | {:.2} | {} | {} | {} |",
                run.threads,
                run.wall_s,
                run.event_rate(),
                run.packets / run.wall_s / 1e6,
                share(run.remote_share),
                or_none(run.efficiency.map(share)),
                or_none(run.rolled_back.map(|events| events.to_string())),
            )?;
        }
    }
    Ok(())
}

/// A picture of a figure of each run over threads.
fn picture(
    page: &mut String,
    options: &Options,
    name: &str,
    title: &str,
    series: &[Series],
    value: &dyn Fn(&Run) -> Option<f64>,
) -> Result<()> {
    let lines = series.iter().map(|series| {
        let points = series.runs.iter().filter_map(|run| Some((run.threads as f64, value(run)?, false)));
        Line { name: series.name.clone(), points: points.collect() }
    });
    let threads = options.threads();
    let names: Vec<String> = threads.iter().map(ToString::to_string).collect();
    let places: Vec<_> = threads.iter().map(|n| *n as f64).zip(names.iter().map(String::as_str)).collect();
    draw(page, options, name, title, ("threads", &places), &lines.collect::<Vec<_>>())
}

fn draw(
    page: &mut String,
    options: &Options,
    name: &str,
    title: &str,
    (over, places): (&str, &[(f64, &str)]),
    lines: &[Line],
) -> Result<()> {
    let chart = Chart { title, over, places, hollow: "", diagonal: false, dots: true, joined: true };
    let file = format!("parallel-{name}.svg");
    let path = options.out.join(&file);
    fs::write(&path, standing(&chart.draw(lines))).with_context(|| format!("cannot write {}", path.display()))?;
    writeln!(page, "\n![{title}]({file})")?;
    Ok(())
}
