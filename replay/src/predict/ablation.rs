//! What a prediction is worth without one of its ideas.

use std::fmt;
use std::str::FromStr;

use causal::Causality;
use netsim::fabric::FabricConfig;
use netsim::units::PerByte;
use serde::{Deserialize, Serialize};

use crate::experiment::Experiment;

/// Something that a replay does, and can leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ablation {
    /// Messages leave when their causes have happened; without it, at their recorded times.
    Causality,
    /// News waits for heartbeats; without it, it is there at once.
    Timers,
    /// Work that the recorded network hid takes time; without it none.
    Production,
    /// Hosts speak TCP; without it they send as fast as their links are, and queues lose nothing.
    Tcp,
    /// Tasks compete for processors; without it computing takes as long as recorded.
    CpuSharing,
    /// The network takes processors from the tasks; without it nothing.
    NetworkWork,
    /// Connections are opened in the fabric; without it, opening took what it took in the recording.
    Handshakes,
}

impl Ablation {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Causality,
        Self::Timers,
        Self::Production,
        Self::Tcp,
        Self::CpuSharing,
        Self::NetworkWork,
        Self::Handshakes,
    ];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Causality => "causality",
            Self::Timers => "timers",
            Self::Production => "production",
            Self::Tcp => "tcp",
            Self::CpuSharing => "cpu-sharing",
            Self::NetworkWork => "network-work",
            Self::Handshakes => "handshakes",
        }
    }

    /// An experiment without it.
    ///
    /// # Errors
    /// If the experiment does not have it, in words.
    pub fn leave_out(self, experiment: &Experiment) -> Result<Experiment, String> {
        let mut without = experiment.clone();
        let workload = &mut without.workload;
        let nothing = |what: &str| Err(format!("--without {self}: {} {what}", experiment.name));
        match self {
            Self::Causality => workload.causality = Causality::Recorded,
            Self::Timers => workload.timers = false,
            Self::Production => workload.production = false,
            Self::Handshakes => workload.handshakes = false,
            Self::CpuSharing if without.cpu.is_none() => {
                return nothing("lets no tasks compete: it has no table [cpu] (--set cpu.cores=2 gives it one)");
            }
            Self::CpuSharing => without.cpu = None,
            Self::NetworkWork => match without.cpu.as_mut().filter(|cpu| cpu.has_network_work()) {
                Some(cpu) => (cpu.network_work, cpu.recorded_network_work) = (PerByte::default(), None),
                None => return nothing("has no cpu.network_work (--set cpu.network_work=9.3ns/B gives it one)"),
            },
            Self::Tcp => match without_tcp(&experiment.fabric)? {
                Some(fabric) => without.fabric = fabric,
                None => return nothing(&format!("has no TCP: its fabric is \"{}\"", experiment.fabric.kind())),
            },
        }
        Ok(without)
    }
}

/// The links of an Ethernet with packets of the same size on the wire, and queues without end in place of TCP; `None` for other fabrics.
fn without_tcp(fabric: &FabricConfig) -> Result<Option<FabricConfig>, String> {
    let FabricConfig::Ethernet(ethernet) = fabric else { return Ok(None) };
    let mut topology = value(&ethernet.topology)?;
    let headers = ethernet.headers.get() + ethernet.framing.get();
    let payload = ethernet.mtu.get().saturating_sub(ethernet.headers.get());
    endless_queues(&mut topology);
    let fabric = toml::Table::from_iter([
        ("kind".to_owned(), "store-and-forward".into()),
        ("topology".to_owned(), topology),
        ("routing".to_owned(), value(&ethernet.routing)?),
        ("seed".to_owned(), value(ethernet.seed)?),
        ("mtu".to_owned(), format!("{payload}B").into()),
        ("headers".to_owned(), format!("{headers}B").into()),
        ("switch_delay".to_owned(), value(ethernet.switch_delay)?),
        ("loopback".to_owned(), value(ethernet.loopback)?),
        ("interval".to_owned(), value(ethernet.interval)?),
    ]);
    fabric.try_into().map(Some).map_err(|error: toml::de::Error| error.message().to_owned())
}

fn value(of: impl Serialize) -> Result<toml::Value, String> {
    toml::Value::try_from(of).map_err(|error| error.to_string())
}

/// Links of a topology become wires with queues that lose nothing.
fn endless_queues(value: &mut toml::Value) {
    match value {
        toml::Value::Table(table) => {
            for (key, inner) in table.iter_mut() {
                match key.as_str() {
                    "buffer" => *inner = "unlimited".into(),
                    "burst" => *inner = "0B".into(),
                    _ => endless_queues(inner),
                }
            }
        }
        toml::Value::Array(values) => values.iter_mut().for_each(endless_queues),
        _ => {}
    }
}

impl fmt::Display for Ablation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Ablation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|one| one.as_str() == text)
            .ok_or_else(|| format!("one of {}", Self::ALL.map(Self::as_str).join(", ")))
    }
}
