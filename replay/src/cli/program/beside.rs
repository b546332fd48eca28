//! Traffic beside a program.

use anyhow::{Error, bail};
use clap::{Args, ValueEnum};
use netsim::network::HostIndex;
use netsim::units::{Bytes, DurationPs};
use program::Background;

/// Which hosts send beside the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Senders {
    /// Those without a rank (INSEE's).
    #[default]
    Idle,
    /// All.
    All,
}

#[derive(Debug, Args)]
pub(super) struct BackgroundArgs {
    /// Messages that hosts send each other beside the program: the mean time between two of a host, and their size, as 20us:1KiB.
    #[arg(long, value_name = "TIME:SIZE", value_parser = background)]
    background: Option<(DurationPs, Bytes)>,
    /// Which hosts send and receive them.
    #[arg(long, value_enum, default_value_t, value_name = "HOSTS", requires = "background")]
    background_hosts: Senders,
    /// Decides when and to whom they are sent.
    #[arg(long, value_name = "N", default_value = "1", requires = "background")]
    background_seed: u64,
}

fn background(text: &str) -> Result<(DurationPs, Bytes), String> {
    let Some((gap, size)) = text.split_once(':') else { return Err("a time and a size, as 20us:1KiB".to_owned()) };
    let gap: DurationPs = gap.parse().map_err(|error: netsim::units::UnitError| error.to_string())?;
    let size: Bytes = size.parse().map_err(|error: netsim::units::UnitError| error.to_string())?;
    if gap == DurationPs::ZERO || size.get() == 0 || size.get() > 1 << 30 {
        return Err("a time above 0, and a size of 1B to 1GiB".to_owned());
    }
    Ok((gap, size))
}

impl BackgroundArgs {
    /// What is sent beside a program whose ranks are on `ranks`, of `nodes` hosts.
    pub fn background(&self, ranks: &[HostIndex], nodes: u32) -> Result<Option<Background>, Error> {
        let Some((gap, size)) = self.background else { return Ok(None) };
        let mut idle = vec![true; nodes as usize];
        if self.background_hosts == Senders::Idle {
            ranks.iter().for_each(|host| idle[host.0 as usize] = false);
        }
        let hosts: Vec<HostIndex> = (0..nodes).filter(|host| idle[*host as usize]).map(HostIndex).collect();
        if hosts.len() < 2 {
            bail!(
                "--background: of {nodes} hosts {} have no rank, and two are needed: --nodes says how many there are, and \
                 --background-hosts all takes those with ranks, too",
                hosts.len()
            );
        }
        Ok(Some(Background::new(hosts, gap, size.get(), self.background_seed)))
    }
}
