//! How time and memory grow with the network: INSEE's figure 14 (document 003), run here.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use hadoptic_tests::options::at_least_one;
use hadoptic_tests::process::{cpu_seconds, memory_peak_bytes};
use pages::chart::{Chart, Line, standing};

const REPLAY: &str = "target/release/replay";
const TORUS: &str = "tests/bench/insee-torus.toml";
const TREE: &str = "tests/bench/insee-tree.toml";
const MIB: f64 = 1_048_576.0;

/// How time and memory grow with the network: figure 14 of document 003 (INSEE), run here.
///
/// Each point is a process of its own: its CPU time is the least of several runs, its memory the most that it has held. Programs are those of
/// target/release, experiments those of tests/bench: run it in the repository's root. Writes scaling.md and scaling-*.svg.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:\n  scaling --out docs\n  scaling --runs 1 --largest 256 --out /tmp/small")]
struct Options {
    /// Folder of the page and its pictures.
    #[arg(long, value_name = "FOLDER", default_value = "docs")]
    out: PathBuf,
    /// Runs of which the least CPU time counts, 1 at least.
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = at_least_one)]
    runs: usize,
    /// No network has more hosts.
    #[arg(long, value_name = "HOSTS", default_value_t = 4_096)]
    largest: u64,
}

/// One network or message size.
struct Point {
    name: String,
    /// What time and memory grow with.
    size: f64,
    hosts: u64,
    arguments: Vec<String>,
}

/// What a point took.
struct Cost {
    cpu_s: f64,
    memory_mib: f64,
}

/// A picture of figure 14.
struct Study {
    /// Of its file, and of its heading.
    name: &'static str,
    title: &'static str,
    /// What `size` is.
    over: &'static str,
    /// What the paper says of it.
    published: &'static str,
    /// Whether time and memory are to be linear in `size`.
    is_linear: bool,
    points: Vec<Point>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(fs::exists(REPLAY)?, "{REPLAY} is not there: cargo build --release -p replay");
    let mut page = HEAD.replace("RUNS", &options.runs.to_string());
    for study in [tori(), binary_trees(), trees(), butterfly()] {
        let points = || study.points.iter().filter(|point| point.hosts <= options.largest);
        let costs = points().map(|point| cost(point, options.runs)).collect::<Result<Vec<Cost>>>()?;
        let points: Vec<&Point> = points().collect();
        if points.len() < 2 {
            continue;
        }
        section(&mut page, &study, &points, &costs)?;
        for (what, value) in [("time", cpu as fn(&Cost) -> f64), ("memory", memory)] {
            let path = options.out.join(format!("scaling-{}-{what}.svg", study.name));
            fs::write(&path, picture(&study, what, &points, &costs, value))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    let path = options.out.join("scaling.md");
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
}

const HEAD: &str = "# How time and memory grow

Written by `make scaling`: figure 14 of document 003 (INSEE), run here. Settings as there: tori with bubble routers (`smart`), trees with
adaptive ones, two VLs, queues of 4 packets of 16 flits of 4 bytes, uniform traffic at full pace from sources that stop when they are full, 1,000 cycles of warm-up and 4,000 measured (`tests/bench/insee-torus.toml`, `tests/bench/insee-tree.toml`).
The paper's machine had a Pentium 4 at 3 GHz; how long its runs were is not said, so that only the form of the curves can be compared.

Each point is a process on one thread. CPU time is the least of RUNS run(s), and what starting the program takes is in it; memory is the most that the process has held. R\u{b2} is that of the straight line through the points.
";

const fn cpu(cost: &Cost) -> f64 {
    cost.cpu_s
}

const fn memory(cost: &Cost) -> f64 {
    cost.memory_mib
}

/// A run of synthetic traffic.
fn traffic(experiment: &str, sets: &[String]) -> Vec<String> {
    let mut arguments: Vec<String> = ["run", experiment, "--threads", "1"].map(str::to_owned).into();
    for set in sets {
        arguments.extend(["--set".to_owned(), set.clone()]);
    }
    arguments
}

fn tori() -> Study {
    let point = |side: u64| Point {
        name: format!("{side}x{side}"),
        size: (side * side) as f64,
        hosts: side * side,
        arguments: traffic(TORUS, &[format!("fabric.topology.size=[{side}, {side}]")]),
    };
    Study {
        name: "tori",
        title: "a: tori",
        over: "nodes",
        published: "time and memory roughly linear in the nodes",
        is_linear: true,
        points: [4, 8, 16, 24, 32, 48, 64].map(point).into(),
    }
}

/// A k-ary n-tree, whose size is that of its switches' ports.
fn tree(k: u64, n: u32) -> Point {
    let hosts = k.pow(n);
    // n levels of k^(n-1) switches, with 2k ports each but for the uppermost.
    let ports = hosts * (2 * u64::from(n) - 1);
    let sets = [format!("fabric.topology.k={k}"), format!("fabric.topology.n={n}")];
    Point { name: format!("{k}-ary {n}-tree"), size: ports as f64, hosts, arguments: traffic(TREE, &sets) }
}

fn binary_trees() -> Study {
    Study {
        name: "binary-trees",
        title: "b: 2-ary k-trees",
        over: "ports of switches",
        published: "time and memory as n log n, as the switches",
        is_linear: true,
        points: (4..=12).map(|levels| tree(2, levels)).collect(),
    }
}

fn trees() -> Study {
    Study {
        name: "trees",
        title: "c: trees of 4,096 nodes",
        over: "ports of switches",
        published: "up to 400% between topologies, least for the 4-ary 6-tree",
        is_linear: false,
        points: [(2, 12), (4, 6), (8, 4), (16, 3)].map(|(k, n)| tree(k, n)).into(),
    }
}

fn butterfly() -> Study {
    let point = |bytes: u64| Point {
        name: format!("{bytes} B"),
        size: bytes as f64,
        hosts: 4_096,
        arguments: ["program", "--kernel", "butterfly", "--ranks", "4096", "--threads", "1", "--size"]
            .map(str::to_owned)
            .into_iter()
            .chain([format!("{bytes}B"), "--fabric".to_owned(), TORUS.to_owned()])
            .chain(["--set", "fabric.topology.size=[64, 64]"].map(str::to_owned))
            .collect(),
    };
    Study {
        name: "butterfly",
        title: "d: butterfly on a torus of 64x64, by bytes of a message",
        over: "bytes of a message",
        published: "time linear in the length of messages, the same memory for all",
        is_linear: true,
        points: [256, 512, 1_024, 2_048, 4_096, 8_192, 16_384].map(point).into(),
    }
}

fn cost(point: &Point, runs: usize) -> Result<Cost> {
    trace::stderr::print(format!("running {}", point.name));
    let costs = (0..runs).map(|_| measure(&point.arguments)).collect::<Result<Vec<Cost>>>()?;
    // Whatever else runs on the machine makes a run longer, and none shorter.
    let cpu_s = costs.iter().map(cpu).fold(f64::INFINITY, f64::min);
    Ok(Cost { cpu_s, memory_mib: costs.iter().map(memory).fold(0.0, f64::max) })
}

/// Runs the program once.
fn measure(arguments: &[String]) -> Result<Cost> {
    let results = std::env::temp_dir().join(format!("hadoptic-scaling-{}", std::process::id()));
    let _ = fs::remove_dir_all(&results);
    let mut command = Command::new(REPLAY);
    command.args(arguments).arg("--out").arg(&results).stdout(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
    let (mut cpu_s, mut memory) = (0.0, 0);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        cpu_s = cpu_seconds(child.id()).unwrap_or(cpu_s);
        memory = memory_peak_bytes(child.id()).unwrap_or(memory);
        thread::sleep(Duration::from_millis(2));
    };
    let _ = fs::remove_dir_all(&results);
    ensure!(status.success(), "{command:?}: {status}");
    Ok(Cost { cpu_s, memory_mib: memory as f64 / MIB })
}

/// How well a straight line fits: the share of the squares about the mean that it explains.
fn r_squared(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|point| of(point.0 - x, point.1 - y)).sum::<f64>();
    sum(&|x, y| x * y).powi(2) / (sum(&|x, _| x * x) * sum(&|_, y| y * y))
}

fn section(page: &mut String, study: &Study, points: &[&Point], costs: &[Cost]) -> Result<()> {
    let Study { name, title, over, published, .. } = study;
    writeln!(page, "\n## {title}\n\nIn the paper: {published}.")?;
    if study.is_linear {
        let of = |value: fn(&Cost) -> f64| {
            r_squared(&points.iter().zip(costs).map(|(point, cost)| (point.size, value(cost))).collect::<Vec<_>>())
        };
        writeln!(page, "Here over {over}: R\u{b2} {:.4} of the time, {:.4} of the memory.", of(cpu), of(memory))?;
    } else {
        let spread = |value: fn(&Cost) -> f64| {
            let values = || costs.iter().map(value);
            values().fold(0.0, f64::max) / values().fold(f64::INFINITY, f64::min)
        };
        writeln!(
            page,
            "Here the most is {:.1} times the least time, {:.1} times the least memory.",
            spread(cpu),
            spread(memory)
        )?;
    }
    writeln!(page, "\n| | {over} | CPU time (s) | memory (MiB) |\n|---|---:|---:|---:|")?;
    for (point, cost) in points.iter().zip(costs) {
        writeln!(page, "| {} | {} | {:.2} | {:.0} |", point.name, point.size, cost.cpu_s, cost.memory_mib)?;
    }
    writeln!(page, "\n![CPU time](scaling-{name}-time.svg)\n![memory](scaling-{name}-memory.svg)")?;
    Ok(())
}

fn picture(study: &Study, what: &str, points: &[&Point], costs: &[Cost], value: fn(&Cost) -> f64) -> String {
    let title = match what {
        "time" => format!("{}: CPU time (s)", study.title),
        _ => format!("{}: memory (MiB)", study.title),
    };
    let line = points.iter().zip(costs).map(|(point, cost)| (point.size, value(cost), false));
    let chart = Chart {
        title: &title,
        over: study.over,
        places: &[],
        hollow: "",
        diagonal: false,
        dots: true,
        joined: study.is_linear,
    };
    standing(&chart.draw(&[Line { name: String::new(), points: line.collect() }]))
}

#[cfg(test)]
mod tests {
    use super::r_squared;

    #[test]
    fn a_straight_line_fits_itself_and_a_curve_less() {
        assert!((r_squared(&[(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)]) - 1.0).abs() < 1e-12);
        let curve: Vec<(f64, f64)> = (1..=8).map(|x| (f64::from(x), libm::exp(f64::from(x)))).collect();
        assert!(r_squared(&curve) < 0.7);
    }
}
