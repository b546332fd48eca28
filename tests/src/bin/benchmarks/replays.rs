//! Recorded jobs and message-passing programs.

use std::fmt::Write as _;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use hadoptic_tests::process::{children_cpu_seconds, thread_cpu_seconds};
use netsim::fabric::{self, FabricConfig};
use netsim::network::{HostIndex, Simulation};
use netsim::topology::HostPlace;
use program::{Driver, Options, goal};

use crate::figure::{Figure, median};
use crate::run::{REPLAY, announce, json_of, number};

const MERGER: &str = "target/release/merger";
/// The golden terasort over an experiment that `replay experiments` lists: `replay-NAME`.
pub const GOLDEN: [&str; 3] = ["replay-ideal", "replay-ethernet-10g", "replay-infiniband"];
/// Schedules as LogGOPSim's `schedgen` makes them, `goal-PATTERN`, over the `ideal` network, where all hosts reach each other at once.
pub const PROGRAMS: [&str; 2] = ["goal-dissemination", "goal-broadcast"];
/// Ranks of a schedule.
const RANKS: u32 = 65_536;
/// Bytes of its messages.
const MESSAGE: u32 = 8;
/// Nanoseconds that a message is under way.
const LATENCY_NS: u32 = 2_500;

/// Events of the network and of the causal graph a second, without what reading the trace takes; and what the whole program takes.
pub fn golden(name: &str, runs: usize) -> Result<Vec<Figure>> {
    announce(name);
    let folder = tempfile::tempdir().context("a folder for the trace")?;
    let (trace, results) = (folder.path().join("trace"), folder.path().join("results"));
    let mut merger = Command::new(MERGER);
    let output = merger.args(["build", "tests/golden/terasort", "--out"]).arg(&trace).output();
    let output = output.with_context(|| format!("cannot run {merger:?}"))?;
    ensure!(output.status.success(), "{merger:?}: {}", String::from_utf8_lossy(&output.stderr));
    let experiment = name.trim_start_matches("replay-");
    let (mut rates, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let mut replay = Command::new(REPLAY);
        replay.args(["run", experiment, "--threads", "1", "--json", "--force", "--trace"]).arg(&trace);
        let before = children_cpu_seconds().unwrap_or(0.0);
        let output = replay.arg("--out").arg(&results).output().with_context(|| format!("cannot run {replay:?}"))?;
        whole.push(children_cpu_seconds().unwrap_or(0.0) - before);
        let summary = json_of(&replay, &output)?;
        rates.push(number(&summary, "events")? / number(&summary, "wall_s")?);
    }
    let figure = |what: &str, ours: f64, unit, more_is_better| Figure::alone(name, what, ours, unit, more_is_better);
    Ok(vec![
        figure("speed", median(rates), "events per second, without reading the trace", true),
        figure("time", median(whole), "s of CPU for the golden terasort, reading and results included", false),
    ])
}

/// Operations that end and messages that arrive, a second of CPU, without what reading the schedule takes.
pub fn program(name: &str, runs: usize) -> Result<Figure> {
    announce(name);
    let schedule = match name {
        "goal-dissemination" => dissemination(RANKS),
        "goal-broadcast" => broadcast(RANKS),
        _ => bail!("{name}: there is no such schedule"),
    };
    let program = goal::read(schedule.as_bytes()).context("a schedule of our own")?;
    let places: Vec<_> = (0..RANKS).map(|rank| HostPlace { name: format!("h{rank}"), rack: "r".to_owned() }).collect();
    let config: FabricConfig = toml::from_str(&format!("kind = \"ideal\"\nlatency = \"{LATENCY_NS}ns\""))?;
    let hosts: Vec<_> = (0..RANKS).map(HostIndex).collect();
    let mut rates = Vec::new();
    for _ in 0..runs {
        let mut network = fabric::build(&config, &places)?;
        ensure!(network.hosts() == RANKS, "a network of {} hosts for {RANKS} ranks", network.hosts());
        let begin = thread_cpu_seconds().context("the kernel does not count what threads compute")?;
        let mut driver = Driver::new(&program, &hosts, Options::default());
        driver.run(&mut network)?;
        let events = program.operations() as f64 + program.messages() as f64;
        rates.push(events / (thread_cpu_seconds().unwrap_or(begin) - begin));
    }
    Ok(Figure::alone(name, "speed", median(rates), "operations and messages per second of CPU", true))
}

/// In round k each rank sends to the rank 2^k ahead, and goes on once it has heard from the one 2^k behind.
fn dissemination(ranks: u32) -> String {
    let mut text = format!("num_ranks {ranks}\n");
    for rank in 0..ranks {
        text.push_str(&format!("rank {rank} {{\n"));
        for round in 0..ranks.next_power_of_two().ilog2() {
            let (ahead, behind) = ((rank + (1 << round)) % ranks, (rank + ranks - (1 << round)) % ranks);
            let _ = writeln!(
                text,
                "s{round}: send {MESSAGE}b to {ahead} tag {round}\nr{round}: recv {MESSAGE}b from {behind} tag {round}"
            );
            if let Some(last) = round.checked_sub(1) {
                let _ = writeln!(text, "s{round} requires s{last}\ns{round} requires r{last}");
            }
        }
        text.push_str("}\n");
    }
    text
}

/// A binomial tree from rank 0.
fn broadcast(ranks: u32) -> String {
    let mut text = format!("num_ranks {ranks}\n");
    for rank in 0..ranks {
        text.push_str(&format!("rank {rank} {{\n"));
        let first = rank.checked_ilog2().map_or(0, |highest| highest + 1);
        if rank > 0 {
            let _ = writeln!(text, "r: recv {MESSAGE}b from {} tag 0", rank - (1 << (first - 1)));
        }
        for (label, to) in (first..32).map_while(|k| rank.checked_add(1 << k).filter(|to| *to < ranks)).enumerate() {
            let _ = writeln!(text, "s{label}: send {MESSAGE}b to {to} tag 0");
            if rank > 0 {
                let _ = writeln!(text, "s{label} requires r");
            }
        }
        text.push_str("}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn schedules_end_and_have_the_messages_of_their_patterns() {
        for ranks in [1, 2, 3, 8, 13] {
            let hosts: Vec<_> = (0..ranks).map(HostIndex).collect();
            let places: Vec<_> = (0..ranks).map(|n| HostPlace { name: n.to_string(), rack: "r".to_owned() }).collect();
            let rounds = u64::from(ranks.next_power_of_two().ilog2());
            // Each round, and each step down the tree, is one message's way.
            let steps = (0..ranks).map(u32::count_ones).max().unwrap().into();
            let all = [
                (dissemination(ranks), u64::from(ranks) * rounds, rounds),
                (broadcast(ranks), u64::from(ranks) - 1, steps),
            ];
            for (schedule, messages, ways) in all {
                let program = goal::read(schedule.as_bytes()).unwrap();
                assert_eq!(program.messages(), messages, "{ranks} ranks");
                let config: FabricConfig = toml::from_str("kind = \"ideal\"\nlatency = \"1ns\"").unwrap();
                let mut network = fabric::build(&config, &places).unwrap();
                let end = Driver::new(&program, &hosts, Options::default()).run(&mut network).unwrap();
                assert_eq!(end.0, ways * 1_000, "{ranks} ranks");
            }
        }
    }
}
