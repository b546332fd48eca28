//! The messages of a pattern's levels, simulated as long ones: what their static congestion is worth as an estimate.

use std::collections::BTreeMap;

use congestion::{CongestionError, Experiment, Paths};
use netsim::fabric::FabricError;
use netsim::fabric::credit::{Credit, CreditConfig};
use netsim::fabric::packet::{HostLinksDiffer, Message, PacketFabric, ServiceLevel};
use netsim::fabric::store_and_forward::{StoreAndForward, StoreAndForwardConfig};
use netsim::network::{HostIndex, Token};
use netsim::routing::Routes;
use netsim::time::SimTime;
use netsim::topology::{NodeId, Topology};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why messages were not simulated.
#[derive(Debug, Error)]
pub enum SimulationError {
    /// A path is missing.
    #[error(transparent)]
    Congestion(#[from] CongestionError),
    /// The fabric cannot be built.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// Its packets have no common cycle.
    #[error(transparent)]
    HostLinks(#[from] HostLinksDiffer),
    /// Not all messages arrive.
    #[error(
        "{arrived} of {sent} messages arrived: queues overflowed. Give links room: --set \
         fabric.topology.host_link.buffer=unlimited --set fabric.topology.uplink.buffer=unlimited"
    )]
    Lost {
        /// Messages that arrived.
        arrived: usize,
        /// Messages that were sent.
        sent: usize,
    },
}

/// A kind of fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFabric {
    /// Lossless, with credits: `credit` with its defaults, and as many VLs as the routing needs.
    Credit,
    /// `store-and-forward` with its defaults.
    StoreAndForward,
}

impl MessageFabric {
    /// Its name, as experiments call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Credit => "credit",
            Self::StoreAndForward => "store-and-forward",
        }
    }
}

/// Static estimates beside simulated times of a pattern; times in seconds, means over runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The fabric.
    pub fabric: String,
    /// The length of each message, bytes.
    pub message_bytes: u64,
    /// Messages of all runs.
    pub messages: u64,
    /// Levels' slowest messages, added up: as the loads of links say.
    pub static_slowest_s: f64,
    /// The same as simulated.
    pub simulated_slowest_s: f64,
    /// The mean over messages of the time that the loads on their paths say.
    pub static_mean_s: f64,
    /// The same as simulated.
    pub simulated_mean_s: f64,
    /// The mean over messages of |simulated / static - 1|.
    pub mean_error: f64,
}

/// Sums over messages, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    messages: u64,
    estimated_slowest: f64,
    simulated_slowest: f64,
    estimated: f64,
    simulated: f64,
    error: f64,
}

/// Long messages on a fabric.
#[derive(Debug)]
pub struct LongMessages<'a> {
    /// The fabric.
    pub fabric: MessageFabric,
    /// Bytes of each message.
    pub bytes: u64,
    /// The network.
    pub topology: &'a Topology,
    /// Its routing.
    pub routes: &'a Routes,
    /// The same as paths.
    pub paths: &'a Paths<'a>,
}

/// Two hosts, and how long a message between them is estimated to take, in picoseconds.
type Path = (NodeId, NodeId, u64);

impl LongMessages<'_> {
    /// Simulates each level of each run of `experiment` on a network that is idle before; `done` is called
    /// after each run.
    ///
    /// # Errors
    /// When hosts or paths are missing, the fabric cannot be built, or it loses packets.
    pub fn compare(&self, experiment: &Experiment, done: impl Fn() + Sync) -> Result<Compared, SimulationError> {
        use rayon::prelude::*;
        let one = |run: u64| {
            let sums = self.run(experiment, run);
            done();
            sums
        };
        let runs = (0..experiment.runs).into_par_iter().map(one).collect::<Result<Vec<Sums>, _>>()?;
        let mut all = Sums::default();
        for sums in &runs {
            all.messages += sums.messages;
            all.estimated_slowest += sums.estimated_slowest;
            all.simulated_slowest += sums.simulated_slowest;
            all.estimated += sums.estimated;
            all.simulated += sums.simulated;
            all.error += sums.error;
        }
        let (runs, messages) = (float(runs.len() as u64), float(all.messages.max(1)));
        Ok(Compared {
            fabric: self.fabric.name().to_owned(),
            message_bytes: self.bytes,
            messages: all.messages,
            static_slowest_s: all.estimated_slowest / runs,
            simulated_slowest_s: all.simulated_slowest / runs,
            static_mean_s: all.estimated / messages,
            simulated_mean_s: all.simulated / messages,
            mean_error: all.error / messages,
        })
    }

    fn run(&self, experiment: &Experiment, run: u64) -> Result<Sums, SimulationError> {
        let ranks = experiment.mapping(self.paths, run)?;
        let n = u32::try_from(ranks.len()).unwrap_or(u32::MAX);
        let (mut sums, mut pairs) = (Sums::default(), Vec::new());
        for level in experiment.level.map_or(0..experiment.pattern.levels(n), |level| level..level + 1) {
            experiment.pattern.level(level, n, experiment.seed, run, &mut pairs);
            let hosts = pairs.iter().map(|pair| (ranks[pair.from as usize], ranks[pair.to as usize]));
            self.level(hosts.filter(|(from, to)| from != to), &mut sums)?;
        }
        Ok(sums)
    }

    /// Simulates the messages of a level and adds what they come to.
    fn level(&self, pairs: impl Iterator<Item = (NodeId, NodeId)>, sums: &mut Sums) -> Result<(), SimulationError> {
        let pairs: Vec<_> = pairs.collect();
        if pairs.is_empty() {
            return Ok(());
        }
        let topology = self.topology.clone();
        let (estimated, simulated) = match self.fabric {
            MessageFabric::Credit => {
                let config = CreditConfig { vls: self.routes.classes(), ..CreditConfig::default() };
                let fabric = Credit::on(&config, topology, self.routes.clone(), ())?;
                let paths = self.estimates(&pairs, fabric.link_time()?.message(self.bytes).1)?;
                let times = self.simulate(fabric, &paths)?;
                (paths, times)
            }
            MessageFabric::StoreAndForward => {
                let config = StoreAndForwardConfig::default();
                let fabric = StoreAndForward::on(&config, topology, self.routes.clone(), ())?;
                let paths = self.estimates(&pairs, fabric.link_time()?.message(self.bytes).1)?;
                let times = self.simulate(fabric, &paths)?;
                (paths, times)
            }
        };
        let (mut most_estimated, mut most_simulated) = (0.0f64, 0.0f64);
        for ((_, _, estimated), simulated) in estimated.into_iter().zip(simulated) {
            let (estimated, simulated) = (SimTime(estimated).as_secs_f64(), simulated.as_secs_f64());
            sums.messages += 1;
            sums.estimated += estimated;
            sums.simulated += simulated;
            if estimated > 0.0 {
                sums.error += (simulated / estimated - 1.0).abs();
            }
            most_estimated = most_estimated.max(estimated);
            most_simulated = most_simulated.max(simulated);
        }
        sums.estimated_slowest += most_estimated;
        sums.simulated_slowest += most_simulated;
        Ok(())
    }

    /// For each message the most time that a link of its path needs for all that cross it, `wire` bytes each.
    fn estimates(&self, pairs: &[(NodeId, NodeId)], wire: u64) -> Result<Vec<Path>, SimulationError> {
        let mut counts = vec![0u64; self.topology.links().len()];
        let (mut links, mut ends) = (Vec::new(), Vec::new());
        for (from, to) in pairs {
            self.paths.walk(*from, *to, &mut links)?;
            ends.push(links.len());
        }
        links.iter().for_each(|link| counts[usize::from(*link)] += 1);
        let time = |link: &netsim::topology::LinkId| {
            self.topology.link(*link).rate.time_ps(wire.saturating_mul(counts[usize::from(*link)]))
        };
        let begins = std::iter::once(0).chain(ends.iter().copied());
        let of = |((from, to), (begin, end)): (&(NodeId, NodeId), (usize, usize))| {
            (*from, *to, links[begin..end].iter().map(time).max().unwrap_or(0))
        };
        Ok(pairs.iter().zip(begins.zip(ends.iter().copied())).map(of).collect())
    }

    /// When each message has arrived, all handed over at the start.
    fn simulate<F: PacketFabric<()>>(&self, mut fabric: F, pairs: &[Path]) -> Result<Vec<SimTime>, SimulationError> {
        let indices: BTreeMap<NodeId, HostIndex> =
            (0..self.topology.hosts()).map(|host| (self.topology.host_node(host), HostIndex(host))).collect();
        for (token, (from, to, _)) in (0u64..).zip(pairs) {
            let (Some(source), Some(destination)) = (indices.get(from), indices.get(to)) else { continue };
            fabric.send(
                SimTime::ZERO,
                &Message {
                    source: *source,
                    destination: *destination,
                    bytes: self.bytes,
                    level: ServiceLevel(0),
                    // As the paths' flows are numbered.
                    flow: u64::from(from.0) << 32 | u64::from(to.0),
                    token: Token(token),
                },
            );
        }
        let mut arrived = BTreeMap::new();
        let mut deliveries = Vec::new();
        while fabric.next_event().is_some_and(|at| at <= SimTime::LATEST) {
            fabric.advance(SimTime::LATEST, &mut deliveries);
            arrived.extend(deliveries.drain(..).map(|delivery| (delivery.token, delivery.at)));
        }
        if arrived.len() < pairs.len() {
            return Err(SimulationError::Lost { arrived: arrived.len(), sent: pairs.len() });
        }
        Ok(arrived.into_values().collect())
    }
}

#[expect(clippy::cast_precision_loss, reason = "below 2^53")]
const fn float(value: u64) -> f64 {
    value as f64
}
