//! Options of the jobs.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;

use super::cluster::ClusterArgs;
use crate::jobs::{JobKind, JobOptions};
use crate::units::Bytes;

#[derive(Debug, Args)]
#[command(next_help_heading = "Jobs")]
pub(super) struct JobArgs {
    /// A job, again for more of them, one after the other [default: terasort]
    #[arg(long = "job", value_enum, value_name = "JOB")]
    pub(super) jobs: Vec<JobKind>,
    /// Input of each job
    #[arg(long, default_value = "128MB")]
    pub(super) size: Bytes,
    /// Maps, each with a file of its own [default: as many as workers]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) maps: Option<u32>,
    /// Reduces [default: as many as workers]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) reduces: Option<u32>,
    /// Replicas of the input
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10))]
    pub(super) input_replication: u32,
    /// Replicas of the output (TeraSort's own default is 1)
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=10))]
    pub(super) output_replication: u32,
    /// So many of the sort's maps read over the network: their input is moved to the first worker
    #[arg(long, default_value_t = 0, requires = "quiet")]
    pub(super) remote_maps: u32,
    /// Seed of generated text
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Limit for each job, seconds
    #[arg(long, default_value_t = 900, value_parser = clap::value_parser!(u64).range(10..=86_400))]
    pub(super) timeout: u64,
}

impl JobArgs {
    pub(super) fn options(&self, cluster: &ClusterArgs) -> Result<JobOptions> {
        let workers = u32::try_from(cluster.workers)?;
        for (option, replication) in
            [("--input-replication", self.input_replication), ("--output-replication", self.output_replication)]
        {
            ensure!(
                replication <= workers,
                "{option} {replication}: there are only {workers} workers to hold replicas"
            );
        }
        let maps = self.maps.unwrap_or(workers);
        if self.remote_maps > 0 {
            ensure!(
                self.input_replication == 1,
                "--remote-maps needs --input-replication 1: with more replicas every map finds one near"
            );
            ensure!(
                self.remote_maps < maps,
                "--remote-maps {}: at least one of the {maps} maps reads from its own host",
                self.remote_maps
            );
        }
        Ok(JobOptions {
            size: self.size,
            maps,
            reduces: self.reduces.unwrap_or(workers),
            input_replication: self.input_replication,
            output_replication: self.output_replication,
            remote_maps: self.remote_maps,
            seed: self.seed,
            limit: Duration::from_secs(self.timeout),
        })
    }
}
