//! Programs over networks whose times can be worked out by hand, and beside a slow plain model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod background;
mod closed_forms;
mod files;
mod kernels;
mod matching;
mod model;
mod placement;
mod stuck;
mod traces;

use netsim::fabric::{self, Fabric, FabricConfig};
use netsim::network::HostIndex;
use netsim::time::SimTime;
use netsim::topology::HostPlace;
use netsim::units::DurationPs;
use program::{Driver, Options, Program, StuckError, goal};

/// A schedule of ranks, each a text of lines with semicolons between them.
fn schedule(ranks: &[&str]) -> Program {
    goal::read(text(ranks).as_bytes()).unwrap()
}

fn text(ranks: &[&str]) -> String {
    let mut text = format!("num_ranks {}\n", ranks.len());
    for (rank, lines) in ranks.iter().enumerate() {
        text += &format!("rank {rank} {{\n{}\n}}\n", lines.replace(';', "\n"));
    }
    text
}

fn network(config: &str, hosts: u32) -> Fabric {
    let config: FabricConfig = toml::from_str(config).unwrap();
    let place = |host| HostPlace { name: format!("n{host}"), rack: "r".to_owned() };
    fabric::build(&config, &(0..hosts).map(place).collect::<Vec<_>>()).unwrap()
}

/// 1 us, 8 Gbit/s: a byte takes 1 ns. Flows do not meet, and a host hears from itself as from others.
const LINEAR: &str = "kind = \"ideal\"\nlatency = \"1us\"\nrate = \"8Gbps\"";

struct Ran {
    end_ns: u64,
    ranks_ns: Vec<u64>,
    /// Sender, sent, delivered, in the order of arrival.
    messages_ns: Vec<(u32, u64, u64)>,
}

fn run_with(program: &Program, overhead_ns: u64) -> Result<Ran, StuckError> {
    let hosts: Vec<HostIndex> = (0..program.ranks()).map(HostIndex).collect();
    let mut network = network(LINEAR, program.ranks());
    let options = Options { overhead: DurationPs::from_ns(overhead_ns), ..Options::default() };
    let mut driver = Driver::new(program, &hosts, options);
    let end = driver.run(&mut network)?;
    let ns = |at: SimTime| {
        assert_eq!(at.0 % 1_000, 0);
        at.0 / 1_000
    };
    let sender = |id| program.operation(id).unwrap().0.0;
    Ok(Ran {
        end_ns: ns(end),
        ranks_ns: driver.ranks_end().iter().map(|end| ns(*end)).collect(),
        messages_ns: driver
            .messages()
            .iter()
            .map(|times| (sender(times.send), ns(times.sent), ns(times.delivered)))
            .collect(),
    })
}

fn run(ranks: &[&str]) -> Ran {
    run_with(&schedule(ranks), 0).unwrap()
}
