//! Options of the recording.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use crate::agents::Agents;
use crate::deployed::Deployer;
use crate::recorder::Recorder;
use crate::session::capture_folder;

#[derive(Debug, Args)]
#[command(next_help_heading = "Recording")]
pub(super) struct RecordArgs {
    /// Record into this folder, empty or new
    #[arg(long, value_name = "DIR")]
    pub(super) capture: Option<PathBuf>,
    /// Record with the project's agents (the default with --capture)
    #[arg(long, requires = "capture", conflicts_with_all = ["no_agents", "tcpdump"])]
    pub(super) agents: bool,
    /// Record nothing but the job history
    #[arg(long, conflicts_with = "tcpdump")]
    pub(super) no_agents: bool,
    /// Record with tcpdump and ss
    #[arg(long, requires = "capture")]
    pub(super) tcpdump: bool,
    /// Pack the recorded files with zstd
    #[arg(long, requires = "capture")]
    pub(super) pack: bool,
    /// The Java agent
    #[arg(long, value_name = "FILE", default_value = "hadoop-patches/target/hadoptic-agent.jar")]
    pub(super) agent_jar: PathBuf,
    /// The packet agent
    #[arg(long, value_name = "FILE", default_value = "target/release/sniffer")]
    pub(super) sniffer: PathBuf,
    /// The socket agent
    #[arg(long, value_name = "FILE", default_value = "target/release/dumpingd")]
    pub(super) dumpingd: PathBuf,
}

impl RecordArgs {
    pub(super) fn recorder(&self, deployed_by: Option<&Path>) -> Result<(Recorder, Option<PathBuf>)> {
        let recorder = if self.tcpdump {
            Recorder::Tcpdump
        } else if self.no_agents || self.capture.is_none() {
            Recorder::Nobody
        } else {
            let agents = Agents::found(&self.agent_jar, &self.sniffer, &self.dumpingd)?;
            match deployed_by {
                Some(program) => Recorder::Deployed(Deployer::found(program, agents)?),
                None => Recorder::Agents(agents),
            }
        };
        let capture = self.capture.as_deref().map(capture_folder).transpose()?;
        Ok((recorder, capture))
    }
}
