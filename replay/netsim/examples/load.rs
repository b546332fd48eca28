//! Latency over load of a 64-host fat-tree: `cargo run --release -p netsim --example load`.

use std::io::{Write as _, stdout};
use std::sync::atomic::AtomicBool;

use netsim::fabric::FabricConfig;
use netsim::traffic::{self, RunOptions, TrafficConfig};

const FABRIC: &str = r#"
kind = "credit"
routing = "adaptive"
vls = 4

[topology]
shape = "k-ary-n-tree"
k = 4
n = 3
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let fabric: FabricConfig = FABRIC.parse()?;
    let mut out = stdout();
    writeln!(out, "{:>8} {:>10} {:>12}", "offered", "accepted", "latency, ns")?;
    for percent in [10, 30, 50, 70, 90] {
        let keys = format!("pattern = \"uniform\"\nflits = 8\nload = 0.{percent}\nmeasurement = \"5000 cycles\"");
        let traffic: TrafficConfig = keys.parse()?;
        let run = traffic::run(&traffic, &fabric, 1, RunOptions::default(), &AtomicBool::new(false), &mut |_| ())?;
        let latency = run.figures.packet.mean().unwrap_or_default() / 1_000.0;
        writeln!(out, "{:>7}% {:>10.3} {latency:>12.1}", percent, run.figures.accepted_load.unwrap_or_default())?;
    }
    Ok(())
}
