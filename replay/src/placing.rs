//! On which of a fabric's hosts those of a job are: by default on the first ones, rack by rack.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use netsim::fabric::{FabricConfig, FabricKind};
use netsim::files;
use netsim::network::{Delivery, FlowId, FlowKind, HostIndex, Network, NetworkFigures, Simulation, Token};
use netsim::time::SimTime;
use netsim::topology::{HostPlace, TopologyConfig};
use program::Placement;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Bytes of a file that says where hosts are, at most.
const MAX_BYTES: u64 = 16 << 20;

/// Where the hosts of a job are: a policy (`shuffle:4`), or `file:PATH`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum JobPlacement {
    /// By a policy, host by host in the order of the trace.
    Policy(Placement),
    /// As the lines `HOST PLACE` of a file say.
    File(PathBuf),
}

impl FromStr for JobPlacement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("file:") {
            Some("") => Err("file: is a name missing, as file:places.txt".to_owned()),
            Some(path) => Ok(Self::File(path.into())),
            None => text.parse().map(Self::Policy).map_err(|why: String| format!("{why}, or file:PATH")),
        }
    }
}

impl TryFrom<String> for JobPlacement {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map_err(|why| format!("workload.placement = \"{text}\": {why}"))
    }
}

impl From<JobPlacement> for String {
    fn from(placement: JobPlacement) -> Self {
        placement.to_string()
    }
}

impl fmt::Display for JobPlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(policy) => policy.fmt(f),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

/// Why hosts of a job have no place.
#[derive(Debug, Error)]
pub enum PlacingError {
    /// The fabric does not go together with a policy, or the policy with its hosts.
    #[error("workload.placement: {0}")]
    Policy(String),
    /// The file cannot be read.
    #[error("workload.placement: {path}: {reason}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// A line of the file is wrong.
    #[error("{path}:{line}: {reason}", path = path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: usize,
        /// What is wrong, and what is allowed.
        reason: String,
    },
}

/// The hosts of a fabric, and which of them each host of a job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The fabric's hosts.
    pub hosts: Vec<HostPlace>,
    /// By the job's hosts.
    pub of: Vec<HostIndex>,
}

impl Places {
    /// Each host of a job at the place of its number, on the fabric's first ones.
    #[must_use]
    pub fn first(hosts: Vec<HostPlace>) -> Self {
        let of = (0..).map(HostIndex).take(hosts.len()).collect();
        Self { hosts, of }
    }

    /// The places of `hosts` in `fabric`, by `placement`; without one each is itself.
    ///
    /// # Errors
    /// If they do not go together, or a file is wrong.
    pub fn new(
        placement: Option<&JobPlacement>,
        fabric: &FabricConfig,
        hosts: Vec<HostPlace>,
    ) -> Result<Self, PlacingError> {
        let Some(placement) = placement else { return Ok(Self::first(hosts)) };
        let count = u32::try_from(hosts.len()).map_err(|error| PlacingError::Policy(error.to_string()))?;
        if matches!(fabric.network(), Some((TopologyConfig::Graph(_), ..))) {
            return Err(PlacingError::Policy(
                "a graph's hosts are taken by their names: leave it out, or name the graph's hosts as the job's"
                    .to_owned(),
            ));
        }
        let racks = racks(fabric, &hosts);
        let places = u32::try_from(racks.len()).unwrap_or(u32::MAX);
        let of = match placement {
            JobPlacement::Policy(policy) => policy.hosts(1, count, places).map_err(PlacingError::Policy)?,
            JobPlacement::File(path) => of_file(path, &hosts, places)?,
        };
        let mut all: Vec<HostPlace> = racks
            .into_iter()
            .enumerate()
            .map(|(place, rack)| HostPlace { name: format!("idle{place}"), rack })
            .collect();
        for (host, place) in hosts.into_iter().zip(&of) {
            all[*place as usize].name = host.name;
        }
        Ok(Self { hosts: all, of: of.into_iter().map(HostIndex).collect() })
    }
}

/// The rack of each place of `fabric`, in the order of its hosts: those of the job where the fabric has no number of its own.
fn racks(fabric: &FabricConfig, hosts: &[HostPlace]) -> Vec<String> {
    let own = fabric.places();
    let by_racks = matches!(fabric.network(), None | Some((TopologyConfig::Racks(_) | TopologyConfig::FatTree(_), ..)));
    let each = match (own.hosts, own.racks) {
        (Some(places), Some(racks)) => Some((places, places.div_ceil(racks.max(1)).max(1))),
        (Some(places), None) if !by_racks => Some((places, places.max(1))),
        _ => None,
    };
    if let Some((places, each)) = each {
        return (0..places).map(|place| format!("r{}", place / each)).collect();
    }
    let mut in_order: Vec<&str> = Vec::new();
    for host in hosts {
        if !in_order.contains(&host.rack.as_str()) {
            in_order.push(&host.rack);
        }
    }
    let of_rack = |rack: &&str| hosts.iter().filter(|host| host.rack == **rack).map(|host| host.rack.clone()).collect();
    in_order.iter().flat_map(|rack| -> Vec<String> { of_rack(rack) }).collect()
}

/// The place of each host, as a file says.
fn of_file(path: &Path, hosts: &[HostPlace], places: u32) -> Result<Vec<u32>, PlacingError> {
    let read = |reason| PlacingError::Read { path: path.into(), reason };
    let text = files::read_text(path, MAX_BYTES).map_err(read)?;
    let known: BTreeSet<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    let (mut given, mut taken) = (BTreeMap::new(), BTreeSet::new());
    for (index, line) in text.lines().enumerate() {
        let wrong = |reason: String| PlacingError::Line { path: path.into(), line: index + 1, reason };
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let (host, place) = match words[..] {
            [] => continue,
            [host, place] => (host, place),
            _ => {
                return Err(wrong(
                    "each line is \"HOST PLACE\": a name of the trace, and a number from 0 on".to_owned(),
                ));
            }
        };
        if !known.contains(host) {
            return Err(wrong(format!("the job has no host {host:?}")));
        }
        let place = place.parse().ok().filter(|place| *place < places);
        let place = place.ok_or_else(|| wrong(format!("places are 0 to {}", places.saturating_sub(1))))?;
        if !taken.insert(place) || given.insert(host.to_owned(), place).is_some() {
            return Err(wrong(format!("host {host:?} or place {place} stands in an earlier line, too")));
        }
    }
    let of = |host: &HostPlace| {
        let reason = || format!("{}: there is no line for host {:?}", path.display(), host.name);
        given.get(&host.name).copied().ok_or_else(|| PlacingError::Policy(reason()))
    };
    hosts.iter().map(of).collect()
}

/// A network whose hosts are numbered as those of a job are.
pub struct OnPlaces<N> {
    network: N,
    of: Vec<HostIndex>,
}

impl<N> OnPlaces<N> {
    /// `network` with its hosts as [`Places::of`] says.
    pub const fn new(network: N, of: Vec<HostIndex>) -> Self {
        Self { network, of }
    }

    fn host(&self, host: HostIndex) -> HostIndex {
        self.of.get(host.0 as usize).copied().unwrap_or(host)
    }
}

impl<N: Simulation> Simulation for OnPlaces<N> {
    fn hosts(&self) -> u32 {
        self.network.hosts()
    }

    fn next_event(&self) -> Option<SimTime> {
        self.network.next_event()
    }

    fn advance(&mut self, until: SimTime, deliveries: &mut Vec<Delivery>) -> SimTime {
        self.network.advance(until, deliveries)
    }

    fn run_before(&mut self, until: SimTime) {
        self.network.run_before(until);
    }

    fn events(&self) -> u64 {
        self.network.events()
    }

    fn figures(&self) -> NetworkFigures {
        self.network.figures()
    }
}

impl<N: Network> Network for OnPlaces<N> {
    fn open_flow(&mut self, source: HostIndex, destination: HostIndex) -> FlowId {
        let (source, destination) = (self.host(source), self.host(destination));
        self.network.open_flow(source, destination)
    }

    fn open_connection(&mut self, client: HostIndex, server: HostIndex) -> (FlowId, FlowId) {
        let (client, server) = (self.host(client), self.host(server));
        self.network.open_connection(client, server)
    }

    fn describe(&mut self, flow: FlowId, kind: FlowKind) {
        self.network.describe(flow, kind);
    }

    fn send(&mut self, now: SimTime, flow: FlowId, bytes: u64, token: Token) {
        self.network.send(now, flow, bytes, token);
    }

    fn send_part(&mut self, now: SimTime, flow: FlowId, bytes: u64, of_bytes: u64, token: Token) {
        self.network.send_part(now, flow, bytes, of_bytes, token);
    }
}
