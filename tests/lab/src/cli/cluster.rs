//! Options of the cluster.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use crate::distribution::Distribution;
use crate::encryption::Cipher;
use crate::network::Shape;
use crate::plan::Plan;
use crate::session::ClusterOptions;
use crate::setup;
use crate::units::LinkRate;

#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub(super) struct ClusterArgs {
    /// Version of Hadoop
    #[arg(long, value_enum, default_value = "3.4.2")]
    pub(super) hadoop: Distribution,
    /// What all names begin with; labs with different prefixes run side by side
    #[arg(long, default_value = "lab")]
    pub(super) prefix: String,
    /// Addresses are 10.SUBNET.0.0/16 [default: by the prefix]
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=254))]
    pub(super) subnet: Option<u8>,
    /// Workers, the first half of them in rack 1, the others in rack 2
    #[arg(long, default_value_t = 4)]
    pub(super) workers: usize,
    /// Rate of the hosts' links, or `unshaped`
    #[arg(long, value_name = "RATE", default_value = "100mbit")]
    pub(super) links: LinkRate,
    /// Rate of the link between the racks, or `unshaped`
    #[arg(long, value_name = "RATE", default_value = "50mbit")]
    pub(super) uplink: LinkRate,
    /// Queue at each end of a link, packets
    #[arg(long, value_name = "PACKETS", default_value_t = 170, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub(super) buffer: u32,
    /// Delay of the links; only 0ms, as the kernel has no netem
    #[arg(long, value_name = "TIME", default_value = "0ms")]
    pub(super) delay: String,
    /// Less noise: no speculation, reduces after the last map, one map or reduce a host at a time
    #[arg(long)]
    pub(super) quiet: bool,
    /// Encrypt what Hadoop encrypts without Kerberos: block transfers (by this cipher), calls by token, the shuffle
    ///
    /// dfs.encrypt.data.transfer with block tokens, hadoop.rpc.protection=privacy (task umbilical, application master to
    /// ResourceManager and NodeManagers; calls without a token stay plain), mapreduce.shuffle.ssl.enabled with a
    /// throw-away key. Not in 1.2.1; in 2.10.2 without aes.
    #[arg(long, value_enum, value_name = "CIPHER", num_args = 0..=1, require_equals = true, default_missing_value = "aes")]
    pub(super) encrypted: Option<Cipher>,
    /// A property of Hadoop over the lab's own
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = property)]
    pub(super) properties: Vec<(String, String)>,
    /// Folder for what is fetched [default: hadoptic in the user's cache folder]
    #[arg(long, value_name = "DIR")]
    pub(super) cache: Option<PathBuf>,
    /// Folder for the cluster's files, empty or new [default: a throw-away one]
    #[arg(long, value_name = "DIR")]
    pub(super) work: Option<PathBuf>,
    /// Keep the cluster's files (logs, HDFS, configuration)
    #[arg(long)]
    pub(super) keep: bool,
}

impl ClusterArgs {
    pub(super) fn options(&self) -> Result<ClusterOptions> {
        check_delay(&self.delay)?;
        if let Some(cipher) = self.encrypted {
            self.hadoop.check_cipher(cipher, None)?;
        }
        Plan::new(&self.prefix, self.subnet, self.workers)?;
        let cache = match &self.cache {
            Some(cache) => cache.clone(),
            None => setup::default_cache()?,
        };
        Ok(ClusterOptions {
            distribution: self.hadoop,
            prefix: self.prefix.clone(),
            subnet: self.subnet,
            workers: self.workers,
            shape: Shape { links: self.links, uplink: self.uplink, queue_packets: self.buffer },
            quiet: self.quiet,
            encrypted: self.encrypted,
            properties: self.properties.clone(),
            cache,
            work: self.work.clone(),
            keep: self.keep,
        })
    }
}

fn property(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("{text:?} is no property: write KEY=VALUE")),
    }
}

/// The lab does not pretend to have what it has not.
fn check_delay(delay: &str) -> Result<()> {
    let number = delay.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    match number.parse::<f64>() {
        Ok(0.0) => Ok(()),
        Ok(_) => bail!("--delay {delay}: links cannot be delayed here, the kernel has no netem; only 0ms is possible"),
        Err(_) => bail!("--delay {delay:?} is no time: write 0ms"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn a_delay_is_refused_and_not_ignored() {
        assert!(check_delay("0ms").is_ok());
        assert!(check_delay("2ms").unwrap_err().to_string().contains("netem"));
        assert!(check_delay("soon").is_err());
    }
}
