//! The test of truth: what a capture made on one network predicts for another, beside what was measured there.
//!
//! Takes captures of the same job that the lab recorded on different networks (each says in its `truth.json` which), merges
//! each, and replays it over the network of every other one:
//!
//! ```sh
//! lab run --quiet --remote-maps 1 --links 100mbit --uplink 50mbit --capture a
//! lab run --quiet --remote-maps 1 --links 30mbit --uplink 15mbit --capture b
//! cross-validate a b
//! ```

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use comfy_table::Table;
use hadoptic_tests::{experiment_file, run, run_json};
use trace::files;
use trace::truth::Truth;

/// Phases whose means are compared.
const PHASES: [&str; 3] = ["map", "shuffle", "reduce"];

fn main() -> Result<()> {
    let captures: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    ensure!(captures.len() > 1, "usage: cross-validate CAPTURE CAPTURE... (folders that `lab run --capture` wrote)");
    let folder = std::env::temp_dir().join(format!("cross-validate-{}", std::process::id()));
    let outcome = compare(&captures, &folder);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    outcome
}

/// A capture's network, and where its trace lies.
struct Recording {
    network: Network,
    racks: Vec<(String, String)>,
    trace: PathBuf,
}

/// Rates of the lab's links, bits per second.
struct Network {
    host_bps: u64,
    uplink_bps: u64,
}

/// Seconds of a job and of its phases' means.
struct Times {
    job_s: f64,
    phases_s: [f64; PHASES.len()],
}

fn compare(captures: &[PathBuf], folder: &Path) -> Result<()> {
    let recordings = captures
        .iter()
        .enumerate()
        .map(|(number, capture)| merge(capture, &folder.join(format!("trace-{number}"))))
        .collect::<Result<Vec<_>>>()?;
    let results = folder.join("results");
    let mut table = Table::new();
    let mut header = vec![
        "recorded on".to_owned(),
        "for".into(),
        "job".into(),
        "measured".into(),
        "error".into(),
        "nothing changes".into(),
    ];
    header.extend(PHASES.map(|name| format!("{name}: predicted / measured")));
    table.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(header);
    for from in &recordings {
        for to in &recordings {
            let (predicted, recorded) = replay(from, &to.network, &results)?;
            let (_, measured) = replay(to, &to.network, &results)?;
            let percent = |found: f64| format!("{:+.1}%", 100.0 * (found / measured.job_s - 1.0));
            let mut row = vec![
                from.network.name(),
                to.network.name(),
                format!("{:.2} s", predicted.job_s),
                format!("{:.2} s", measured.job_s),
                percent(predicted.job_s),
                percent(recorded.job_s),
            ];
            row.extend(
                predicted
                    .phases_s
                    .iter()
                    .zip(measured.phases_s)
                    .map(|(found, real)| format!("{found:.2} / {real:.2} s")),
            );
            table.add_row(row);
        }
    }
    println!("{table}");
    Ok(())
}

fn merge(capture: &Path, out: &Path) -> Result<Recording> {
    let path = capture.join("truth.json");
    let truth: Truth = serde_json::from_reader(files::open(&path).with_context(|| path.display().to_string())?)
        .with_context(|| path.display().to_string())?;
    let (capture, trace) = (text(capture)?, text(out)?);
    let built = run("merger", &["build", capture, "--out", trace])?;
    ensure!(built.status.success(), "merging {capture}: {}", String::from_utf8_lossy(&built.stderr));
    Ok(Recording {
        network: Network::of(&truth)
            .with_context(|| format!("{}: no links between hosts and racks", path.display()))?,
        racks: truth.hosts.into_iter().map(|host| (host.name, host.rack)).collect(),
        trace: out.into(),
    })
}

impl Network {
    /// The slowest rate of each kind of link: as it was set, or as it was measured where none was.
    fn of(truth: &Truth) -> Option<Self> {
        let is_host = |name: &str| truth.hosts.iter().any(|host| host.name == name);
        let slowest = |of_host: bool| {
            truth
                .links
                .iter()
                .filter(|link| (is_host(&link.a) || is_host(&link.b)) == of_host)
                .filter_map(|link| link.set_bps.or(link.measured_ab_bps.map(|bps| bps as u64)))
                .min()
        };
        Some(Self { host_bps: slowest(true)?, uplink_bps: slowest(false)? })
    }

    fn name(&self) -> String {
        let mbit = |bps: u64| bps.div_ceil(1_000_000);
        format!("{} / {} Mbit/s", mbit(self.host_bps), mbit(self.uplink_bps))
    }
}

/// Times of a recording's job over a network, and as they were recorded.
fn replay(from: &Recording, network: &Network, results: &Path) -> Result<(Times, Times)> {
    let experiment = experiment_file("lab-100mbit.toml");
    let mut settings = vec![
        format!("fabric.topology.host_link.rate={}bps", network.host_bps),
        format!("fabric.topology.uplink.rate={}bps", network.uplink_bps),
    ];
    settings.extend(from.racks.iter().map(|(host, rack)| format!("workload.racks.{host}={rack}")));
    let mut arguments =
        vec!["run", text(&experiment)?, "--trace", text(&from.trace)?, "--out", text(results)?, "--force"];
    for setting in &settings {
        arguments.extend(["--set", setting]);
    }
    let summary = run_json("replay", &arguments)?;
    let number =
        |value: &serde_json::Value, key: &str| value[key].as_f64().with_context(|| format!("no {key}: {summary}"));
    let times = |job: &str, phase: &str| -> Result<Times> {
        let mut phases_s = [0.0; PHASES.len()];
        for (seconds, name) in phases_s.iter_mut().zip(PHASES) {
            let found =
                summary["phases"].as_array().and_then(|phases| phases.iter().find(|phase| phase["name"] == name));
            *seconds = number(found.with_context(|| format!("no phase {name}"))?, phase)?;
        }
        Ok(Times { job_s: number(&summary, job)?, phases_s })
    };
    Ok((times("job_time_s", "seconds")?, times("recorded_job_time_s", "recorded_seconds")?))
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is no text", path.display()))
}
