//! Runs the simulator.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use hadoptic_tests::process::memory_peak_bytes;
use serde_json::Value;
use trace::row;

/// Experiments and the peers' configurations.
pub const CASES: &str = "tests/bench";
pub const REPLAY: &str = "target/release/replay";

row! {
    /// What is looked at of a link of a run.
    LinkPackets in "links" {
        /// Where it begins and where it ends.
        link: String,
        /// Packets that it carried.
        packets: u64,
    }
}

pub fn announce(name: &str) {
    trace::stderr::print(format!("running {name}"));
}

/// The JSON object that a program printed last.
pub fn json_of(command: &Command, output: &Output) -> Result<Value> {
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let begin = text.rfind("\n{").map_or(0, |at| at + 1);
    serde_json::from_str(&text[begin..]).with_context(|| format!("{command:?} printed no JSON object"))
}

/// Runs an experiment. Its summary gets two keys more: `memory_peak_bytes`, the most that the program has held, and `packets_from_switches`, the
/// packets that links from switches carried.
pub fn simulate(name: &str) -> Result<Value> {
    simulate_with(name, &[])
}

/// The same with values of the experiment replaced, as `--set` takes them.
pub fn simulate_with(name: &str, sets: &[&str]) -> Result<Value> {
    let mut run = Running::start(name, sets, 1, "")?;
    let mut memory = 0;
    while run.child.try_wait()?.is_none() {
        memory = memory_peak_bytes(run.child.id()).unwrap_or(memory);
        thread::sleep(Duration::from_millis(20));
    }
    let links = trace_tables::read_rows::<LinkPackets>(&run.results);
    let (mut summary, links) = (run.finish()?, links?);
    // Hosts are `h0`, `h1`, ... in all topologies that are run here.
    let from_switches = links.iter().filter(|row| !row.link.starts_with('h')).map(|row| row.packets);
    summary["memory_peak_bytes"] = memory.into();
    summary["packets_from_switches"] = from_switches.sum::<u64>().into();
    Ok(summary)
}

/// An experiment that runs.
pub struct Running {
    command: Command,
    child: Child,
    results: PathBuf,
}

impl Running {
    /// Starts one, with values replaced and on so many threads; `label` tells it from others that run beside it.
    pub fn start(name: &str, sets: &[&str], threads: usize, label: &str) -> Result<Self> {
        let results = std::env::temp_dir().join(format!("hadoptic-bench-{}{label}", std::process::id()));
        let experiment = Path::new(CASES).join(format!("{name}.toml"));
        let mut command = Command::new(REPLAY);
        command.arg("run").arg(experiment).args(["--threads", &threads.to_string(), "--json", "--force"]);
        command.arg("--out").arg(&results).args(sets.iter().flat_map(|set| ["--set", set]));
        let child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run {command:?}"))?;
        Ok(Self { command, child, results })
    }

    /// Its summary; its results are removed.
    pub fn finish(self) -> Result<Value> {
        let output = self.child.wait_with_output();
        let _ = fs::remove_dir_all(&self.results);
        json_of(&self.command, &output?)
    }
}

pub fn number(of: &Value, key: &str) -> Result<f64> {
    of[key].as_f64().with_context(|| format!("no {key} in {of}"))
}
