//! Clocked and credit routers beside those of CAMINOS, BookSim2 and INSEE.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use hadoptic_tests::process::children_cpu_seconds;
use serde_json::Value;

use crate::figure::{Figure, median};
use crate::run::{CASES, announce, json_of, number, simulate};

const CAMINOS: &str = "tests/peers/target/release/peers";

/// The same network, traffic and load for us (`NAME.toml`) and for CAMINOS (`NAME.cfg`).
pub const AGAINST_CAMINOS: [&str; 8] = [
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
pub const CAMINOS_ROUTERS: [&str; 5] = ["ft64-p8-0.1", "ft64-p8-0.5", "ft64-p8-0.9", "torus8x8-p8-0.3", "ft64-p1-0.5"];
/// The same with BookSim2's routers (`input-queued-NAME.toml`), and the share of CAMINOS' flit-hops a second that BookSim2 did on one machine
/// (single threads, medians of three).
pub const BOOKSIM2_ROUTERS: [(&str, f64); 7] = [
    ("ft64-p8-0.1", 539.0 / 867.0),
    ("ft64-p8-0.5", 500.0 / 1_548.0),
    ("ft64-p8-0.9", 367.0 / 1_365.0),
    ("torus8x8-p8-0.3", 625.0 / 1_126.0),
    ("ft512-p8-0.5", 134.0 / 966.0),
    ("ft1024-p8-0.5", 128.0 / 383.0),
    ("ft64-p1-0.5", 301.0 / 1_034.0),
];
/// Routers that stand alone: `OpaSim`'s program is not public, and nobody has another one for SpiNNaker's figures.
pub const ALONE: [&str; 2] = ["omni-path-48-p16-0.5", "spinnaker-64-p9-0.1"];
/// INSEE's routers, each with what its program is told of them beside [`INSEE`], and how many more switches than what it counts lie on a way: on
/// the torus it counts links between routers, on trees those of hosts, too. Both have 64 hosts.
pub const INSEE_ROUTERS: [(&str, &str, f64); 2] = [
    ("insee-torus", "topo=torus_8_8\nvc=bubble\nbsize=2\nrouting=dim\nrmode=smart\ncmode=multiple\n", 1.0),
    ("insee-tree", "topo=fattree_4_3\nrouting=adaptive\ncmode=single\n", -1.0),
];
/// Two VCs, queues of 4 packets of 16 phits of 4 bytes, uniform traffic at full load.
const INSEE: &str = "rseed=13\nnways=2\nnchan=2\nninj=1\ntql=4\niql=4\nimode=shortest\namode=rr\nplength=16_4\ntpattern=uniform\nload=1.0\n\
                     warm_up_period=1000\nconv_period=1000\nconv_thres=0.05\nmax_conv_time=1000\nnsamples=2\nsample_size=2000\npheaders=0\nplevel=0\n";

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
pub fn against_booksim2(name: &str, case: &str, share: f64, runs: usize) -> Result<Figure> {
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

pub fn against_caminos(name: &str, case: &str, runs: usize) -> Result<Vec<Figure>> {
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

/// Our own speed, where no peer can be run.
pub fn alone(name: &str, runs: usize) -> Result<Figure> {
    announce(name);
    let speed = || -> Result<f64> {
        let summary = simulate(name)?;
        Ok(number(&summary, "flit_hops")? / number(&summary, "cpu_s")?)
    };
    let ours = (0..runs).map(|_| speed()).collect::<Result<_>>()?;
    Ok(Figure::alone(name, "speed", median(ours), "flit-hops per second of CPU", true))
}

pub fn against_insee(name: &str, (keys, more): (&str, f64), program: &Path, runs: usize) -> Result<Figure> {
    announce(name);
    let (mut ours, mut peers) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let summary = simulate(name)?;
        ours.push(number(&summary, "flit_hops")? / number(&summary, "cpu_s")?);
        peers.push(insee(program, keys, more)?);
    }
    Ok(Figure {
        name: format!("{name}: speed"),
        ours: median(ours),
        peer: Some(("INSEE 2140aec", median(peers))),
        unit: "flit-hops per second of CPU",
        more_is_better: true,
    })
}

/// The phit-hops a second of INSEE's program, by what it prints as the mean of its batches.
fn insee(program: &Path, keys: &str, more: f64) -> Result<f64> {
    let folder = std::env::temp_dir().join(format!("hadoptic-bench-insee-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("fsin.conf"), format!("{INSEE}{keys}"))?;
    let mut command = Command::new(program);
    let before = children_cpu_seconds().context("/proc/self/stat")?;
    let output = command.current_dir(&folder).output().with_context(|| format!("cannot run {command:?}"));
    let cpu_s = children_cpu_seconds().context("/proc/self/stat")? - before;
    let _ = fs::remove_dir_all(&folder);
    let text = String::from_utf8_lossy(&output?.stdout).into_owned();
    let cycles = text.lines().find_map(|line| line.strip_prefix("Simulation clock (cycles/us):"));
    let cycles = cycles.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    // Batch, cycles, distance in links, injected and accepted load.
    let batch = text.lines().find(|line| line.trim_start().starts_with("AVG,")).map(|line| line.split(','));
    let batch: Option<Vec<f64>> = batch.and_then(|cells| cells.skip(1).map(|cell| cell.trim().parse().ok()).collect());
    let (Some(cycles), Some(&[_, distance, _, accepted, ..])) = (cycles, batch.as_deref()) else {
        bail!("{command:?} printed no figures of a batch: {text}");
    };
    let hosts = 64.0;
    Ok(accepted * cycles * hosts * (distance + more) / cpu_s)
}
