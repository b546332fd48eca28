//! Real runs of a plan's jobs on each of its networks.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::plan::{Cluster, Plan};
use crate::interruption::Interruption;
use crate::lab_network::Network;
use crate::lab_runs::{self, Run, Traces};

/// Where the runs of a cluster on a network lie.
#[must_use]
pub fn folder_of(out: &Path, cluster: &Cluster, network: &Network) -> PathBuf {
    out.join(cluster.folder()).join(&network.name)
}

/// The runs that are whole, by their numbers.
///
/// # Errors
/// If one cannot be read.
pub fn runs_of(out: &Path, cluster: &Cluster, network: &Network, most: usize) -> Result<Vec<Run>> {
    let folder = folder_of(out, cluster, network);
    (1..=most).filter_map(|number| Run::read(folder.join(format!("run-{number}"))).transpose()).collect()
}

/// Makes the runs that are missing: one on each network, then the next on each, so that a machine that changes with the hours
/// changes for all networks alike.
///
/// # Errors
/// If the lab or the merger cannot do one, or is interrupted; those before it are kept.
pub fn record(plan: &Plan, out: &Path, interruption: &Interruption, tell: &dyn Fn(&str)) -> Result<()> {
    for number in 1..=plan.runs {
        for cluster in &plan.clusters {
            for network in &plan.networks {
                let folder = folder_of(out, cluster, network).join(format!("run-{number}"));
                if !lab_runs::is_whole(&folder) {
                    tell(&format!("Hadoop {} on {}, run {number} of {}", cluster.hadoop, network.name, plan.runs));
                    let arguments = arguments(plan, cluster, network);
                    let traces = Traces::WithAndWithoutAgent;
                    lab_runs::record(&arguments, &cluster.jobs, traces, &folder, interruption)?;
                }
            }
        }
    }
    Ok(())
}

fn arguments(plan: &Plan, cluster: &Cluster, network: &Network) -> Vec<String> {
    let reduces = plan.reduces.to_string();
    let arguments = [
        ["--prefix", "predict"],
        ["--hadoop", cluster.hadoop.as_str()],
        ["--size", plan.size.as_str()],
        ["--reduces", reduces.as_str()],
        ["--links", network.links.as_str()],
        ["--uplink", network.uplink.as_str()],
    ];
    arguments.as_flattened().iter().map(|word| (*word).to_owned()).collect()
}
