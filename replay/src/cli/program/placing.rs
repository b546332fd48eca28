//! On which hosts the ranks of a program are.

use std::path::PathBuf;

use anyhow::Error;
use clap::Args;
use netsim::network::HostIndex;
use program::{Placement, Program};
use replay::dimemas::mapping::TaskMapping;

use super::source::read;

#[derive(Debug, Args)]
pub(super) struct Placing {
    /// Another program at the same time, with ranks of its own that follow; may be given more than once.
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// So many instances of the program (of all that are given) at once, each with ranks of its own.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    instances: u32,
    /// Where ranks are: consecutive, shift:N, shuffle:HOSTS_A_SWITCH, column:XxY, quadrant:XxY[xZ] or random[:SEED].
    #[arg(long, value_name = "POLICY", default_value = "consecutive")]
    placement: Placement,
    /// A file with "rank host" in each line, in place of a policy.
    #[arg(long, value_name = "FILE", conflicts_with = "placement")]
    task_mapping: Option<PathBuf>,
}

impl Placing {
    /// All instances of a program and of those beside it.
    pub fn instances(&self, program: Program) -> Result<Program, Error> {
        let mut programs = vec![program];
        for path in &self.with {
            programs.push(read(path, None)?);
        }
        let all = match &programs[..] {
            [_] => programs.remove(0),
            _ => Program::together(&programs.iter().collect::<Vec<_>>()).map_err(Error::msg)?,
        };
        if self.instances == 1 { Ok(all) } else { all.repeated(self.instances).map_err(Error::msg) }
    }

    /// The host of each rank of a program, of `nodes` hosts.
    pub fn hosts(&self, program: &Program, nodes: u32) -> Result<Vec<HostIndex>, Error> {
        let found = match &self.task_mapping {
            Some(path) => {
                let mapping = TaskMapping::read(path, nodes)?;
                (0..program.ranks()).map(|rank| mapping.host(rank, nodes)).collect()
            }
            None => self
                .placement
                .hosts_of(&program.applications(), nodes)
                .map(|hosts| hosts.into_iter().map(HostIndex).collect())
                .map_err(|why| format!("{why} (--nodes says how many there are)")),
        };
        found.map_err(Error::msg)
    }
}
