//! The lab's networks, as they are asked for and as experiments.

use anyhow::Result;
use serde::Deserialize;
use trace::truth::Truth;

/// Rates are given to the lab as they stand here.
const UNSHAPED: &str = "unshaped";
/// Bytes of a full Ethernet frame and of the TCP payload in it, with time stamps: the lab measures payload, fabrics count frames.
const FRAME_BYTES: f64 = 1514.0;
const PAYLOAD_BYTES: f64 = 1448.0;
/// Faster than any link of the lab: it holds nothing up.
const NO_LIMIT: &str = "100gbit";

/// A network of the lab.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Its name, also of files.
    pub name: String,
    /// Rate of the hosts' links.
    #[serde(default = "unshaped")]
    pub links: String,
    /// Rate between the racks.
    #[serde(default = "unshaped")]
    pub uplink: String,
    /// What a byte over it takes of a processor, as `cpu.network_work` has it (`tests/lab/shaper-cost.py`) [default: nothing].
    pub network_work: Option<String>,
}

fn unshaped() -> String {
    UNSHAPED.to_owned()
}

impl Network {
    /// An experiment for recorded jobs: hosts in their racks, processors as the machine has them, shared by all hosts.
    ///
    /// # Errors
    /// If no link was measured where none was limited.
    pub fn experiment_of_recorded(&self, truth: &Truth) -> Result<String> {
        let racks: String = truth.hosts.iter().map(|host| format!("{} = \"{}\"\n", host.name, host.rack)).collect();
        let cpus = truth.machine.cpus;
        let work = self.network_work.iter().map(|work| format!("network_work = \"{work}\"\n")).collect::<String>();
        let cpu = format!("[cpu]\ncores = {cpus}\nshared = true\n{work}");
        Ok(format!("[workload.racks]\n{racks}\n{cpu}\n{}", self.fabric(truth)?))
    }

    /// An experiment for jobs from parameters, which have their own racks and cores: rates as they were set, or as they were
    /// measured where none was.
    ///
    /// # Errors
    /// If no link was measured where none was limited.
    pub fn fabric(&self, truth: &Truth) -> Result<String> {
        let measured = truth.links.iter().flat_map(|link| [link.measured_ab_bps, link.measured_ba_bps]).flatten();
        let slowest_bps = measured.fold(f64::INFINITY, f64::min) * FRAME_BYTES / PAYLOAD_BYTES;
        let rate = |set: &str| match set {
            UNSHAPED if slowest_bps.is_finite() => Ok(format!("{slowest_bps:.0}bps")),
            UNSHAPED => anyhow::bail!("{}: the lab has measured no link", self.name),
            set => Ok(set.to_owned()),
        };
        let links = rate(&self.links)?;
        let no_limit = self.uplink == UNSHAPED && self.links != UNSHAPED;
        let uplink = if no_limit { NO_LIMIT.to_owned() } else { rate(&self.uplink)? };
        let link = |name: &str, rate: &str| {
            format!("[fabric.topology.{name}]\nrate = \"{rate}\"\nbuffer = \"170 packets\"\nburst = \"32KiB\"\n\n")
        };
        Ok(format!(
            "[fabric]\nkind = \"ethernet\"\nhost_queue = \"170 packets\"\n\n\
             [fabric.topology]\nshape = \"racks\"\njoined = \"direct\"\n\n{}{}",
            link("host_link", &links),
            link("uplink", &uplink)
        ))
    }
}
