//! On which hosts the ranks of a program are.

use std::path::PathBuf;

use anyhow::Error;
use clap::Args;
use netsim::network::HostIndex;
use program::{Placement, Program};
use replay::dimemas::mapping::TaskMapping;

use super::source::{Sides, sides};

#[derive(Debug, Args)]
pub(super) struct Placing {
    /// So many instances of the program at once, each with ranks of its own.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    instances: u32,
    /// Where ranks are: consecutive, shift:N, shuffle:HOSTS_A_SWITCH, column:XxY, quadrant:XxY[xZ] or random[:SEED].
    #[arg(long, value_name = "POLICY", default_value = "consecutive", value_parser = placement)]
    placement: Placement,
    /// A file with "rank host" in each line, in place of a policy.
    #[arg(long, value_name = "FILE", conflicts_with = "placement")]
    task_mapping: Option<PathBuf>,
}

fn placement(text: &str) -> Result<Placement, String> {
    let (name, value) = text.split_once(':').map_or((text, None), |(name, value)| (name, Some(value)));
    let number = |value: &str| value.parse().map_err(|_| format!("\"{value}\" is no number"));
    match (name, value) {
        ("consecutive", None) => Ok(Placement::Consecutive),
        ("shift", Some(by)) => Ok(Placement::Shift(number(by)?)),
        ("shuffle", Some(each)) => Ok(Placement::Shuffle(number(each)?)),
        ("column", Some(grid)) => match sides(grid)? {
            Sides(sides) if sides.len() == 2 => Ok(Placement::Column(sides[0], sides[1])),
            _ => Err("column has a grid of 2 sides, as column:8x8".to_owned()),
        },
        ("quadrant", Some(grid)) => Ok(Placement::Quadrant(sides(grid)?.0)),
        ("random", None) => Ok(Placement::Random(1)),
        ("random", Some(seed)) => seed.parse().map(Placement::Random).map_err(|_| format!("\"{seed}\" is no seed")),
        _ => Err(
            "there are consecutive, shift:N, shuffle:HOSTS_A_SWITCH, column:XxY, quadrant:XxY[xZ] and random[:SEED]"
                .to_owned(),
        ),
    }
}

impl Placing {
    /// All instances of a program.
    pub fn instances(&self, program: Program) -> Result<Program, Error> {
        if self.instances == 1 { Ok(program) } else { program.repeated(self.instances).map_err(Error::msg) }
    }

    /// The host of each rank of all instances, of `nodes` hosts.
    pub fn hosts(&self, ranks: u32, nodes: u32) -> Result<Vec<HostIndex>, Error> {
        let found = match &self.task_mapping {
            Some(path) => {
                let mapping = TaskMapping::read(path, nodes)?;
                (0..ranks).map(|rank| mapping.host(rank, nodes)).collect()
            }
            None => self
                .placement
                .hosts(self.instances, ranks / self.instances, nodes)
                .map(|hosts| hosts.into_iter().map(HostIndex).collect())
                .map_err(|why| format!("{why} (--nodes says how many there are)")),
        };
        found.map_err(Error::msg)
    }
}
