//! Random small networks, and the fast fabrics beside the slow models on them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

pub mod input_output_queued;
pub mod input_queued;
pub mod listed;
pub mod networks;
pub mod omni_path;
pub mod spinnaker;
pub mod topologies;

use crate::flit_model::fault::Fault;
use crate::flit_model::traffic::{Seen, Sending, When, answers};
use netsim::fabric::credit::CreditConfig;
use netsim::fabric::ethernet::EthernetConfig;
use netsim::fabric::input_output_queued::InputOutputQueuedConfig;
use netsim::fabric::input_queued::InputQueuedConfig;
use netsim::fabric::omni_path::OmniPathConfig;
use netsim::fabric::packet::PacketFabric;
use netsim::fabric::spinnaker::SpinnakerRouterConfig;
use netsim::fabric::store_and_forward::StoreAndForwardConfig;
use netsim::network::Delivery;
use netsim::time::SimTime;
use netsim::topology::{HostPlace, Topology, TopologyConfig};
use proptest::prop_assert_eq;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{
    Config, FileFailurePersistence, RngAlgorithm, TestCaseError, TestCaseResult, TestRng, TestRunner,
};
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;

/// A fabric's configuration, its hosts, and what is sent.
#[derive(Clone)]
pub struct Case<C> {
    pub config: C,
    pub hosts: Vec<HostPlace>,
    pub traffic: Vec<Sending>,
}

/// A configuration of a fabric on a topology.
pub trait OnTopology: fmt::Display {
    fn topology(&self) -> &TopologyConfig;
}

impl OnTopology for CreditConfig {
    fn topology(&self) -> &TopologyConfig {
        &self.topology
    }
}

impl OnTopology for EthernetConfig {
    fn topology(&self) -> &TopologyConfig {
        &self.topology
    }
}

impl OnTopology for InputOutputQueuedConfig {
    fn topology(&self) -> &TopologyConfig {
        &self.topology
    }
}

impl OnTopology for InputQueuedConfig {
    fn topology(&self) -> &TopologyConfig {
        &self.topology
    }
}

impl OnTopology for OmniPathConfig {
    fn topology(&self) -> &TopologyConfig {
        &self.topology
    }
}

impl OnTopology for SpinnakerRouterConfig {
    fn topology(&self) -> &TopologyConfig {
        &self.topology
    }
}

impl OnTopology for StoreAndForwardConfig {
    fn topology(&self) -> &TopologyConfig {
        &self.topology
    }
}

impl<C: OnTopology> Case<C> {
    /// The file of the graph, if the topology is one.
    fn graph(&self) -> Option<String> {
        match self.config.topology() {
            TopologyConfig::Graph(graph) => std::fs::read_to_string(&graph.file).ok(),
            _ => None,
        }
    }
}

/// As an experiment would have it, and the messages as a table.
impl<C: OnTopology> fmt::Debug for Case<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}", self.config)?;
        if let Some(graph) = &self.graph() {
            writeln!(f, "the graph's file:\n{graph}")?;
        }
        let racks: Vec<String> = self.hosts.iter().map(|host| format!("{} in {}", host.name, host.rack)).collect();
        writeln!(f, "hosts: {}", racks.join(", "))?;
        for (number, message) in self.traffic.iter().enumerate() {
            let Sending { when, source, destination, bytes, level, flow } = message;
            let when = match when {
                When::At(time) => format!("at {time} ps"),
                When::After(message, think) => format!("{think} ps after message {message}"),
            };
            writeln!(f, "message {number}: {when}, w{source} -> w{destination}, {bytes} B, SL {level}, flow {flow}")?;
        }
        Ok(())
    }
}

/// What a fast fabric does with `traffic`, advanced from delivery to delivery.
pub fn drive<F: PacketFabric<Seen>>(fabric: &mut F, traffic: &[Sending]) -> Seen {
    let mut pending: BTreeMap<SimTime, Vec<usize>> = BTreeMap::new();
    for (number, sending) in traffic.iter().enumerate() {
        if let When::At(time) = sending.when {
            pending.entry(SimTime(time)).or_default().push(number);
        }
    }
    let mut all: Vec<Delivery> = Vec::new();
    loop {
        let next = pending.keys().next().copied();
        if next.is_none() && fabric.next_event().is_none() {
            break;
        }
        let mut deliveries = Vec::new();
        // Messages of an instant are handed over before anything of that instant is processed.
        match next {
            Some(SimTime::ZERO) => {}
            Some(next) => drop(fabric.advance(SimTime(next.0 - 1), &mut deliveries)),
            None => drop(fabric.advance(SimTime::MAX, &mut deliveries)),
        }
        for delivery in &deliveries {
            for (answer, think) in answers(traffic, usize::try_from(delivery.token.0).unwrap()) {
                if think == 0 {
                    fabric.send(delivery.at, &traffic[answer].message(answer));
                } else {
                    pending.entry(delivery.at.plus_ps(think)).or_default().push(answer);
                }
            }
        }
        if deliveries.is_empty()
            && let Some((at, messages)) = pending.pop_first()
        {
            for number in messages {
                fabric.send(at, &traffic[number].message(number));
            }
        }
        all.append(&mut deliveries);
    }
    let mut seen = std::mem::take(fabric.observer());
    seen.deliveries = all;
    seen.sorted()
}

/// What a fast fabric does with `traffic` that has no answers in it, by [`PacketFabric::run_before`].
pub fn run<F: PacketFabric<Seen>>(fabric: &mut F, traffic: &[Sending]) -> Seen {
    let mut numbers: Vec<usize> = (0..traffic.len()).collect();
    let at = |number: usize| match traffic[number].when {
        When::At(time) => SimTime(time),
        When::After(..) => panic!("answers need deliveries"),
    };
    numbers.sort_by_key(|number| at(*number));
    for number in numbers {
        fabric.run_before(at(number));
        fabric.send(at(number), &traffic[number].message(number));
    }
    while fabric.next_event().is_some() {
        fabric.run_before(SimTime::MAX);
    }
    std::mem::take(fabric.observer()).sorted()
}

/// What differs between `fast` and `slow`, for people; nothing if nothing does.
pub fn difference(fast: &Seen, slow: &Seen, topology: &Topology) -> Option<String> {
    if fast == slow {
        return None;
    }
    let mut text = String::new();
    let packets = |seen: &Seen| -> BTreeMap<(u32, u64), String> {
        let delivered = seen.packets.iter().map(|p| {
            let what = format!(
                "left {} arrived {} (handed over {}, {} B, {} flits, {} switches, message {})",
                p.left.0, p.arrived.0, p.handed_over.0, p.bytes, p.flits, p.switches, p.token.0
            );
            ((p.source.0, p.number), what)
        });
        let dropped = seen.dropped.iter().map(|d| {
            let what = format!("dropped at {} (message {})", d.at.0, d.token);
            ((d.source.0, d.number), what)
        });
        delivered.chain(dropped).collect()
    };
    let (fast_packets, slow_packets) = (packets(fast), packets(slow));
    let mut keys: Vec<_> = fast_packets.keys().chain(slow_packets.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let nowhere = "nowhere".to_owned();
    for key in keys {
        let of = |packets: &BTreeMap<_, String>| packets.get(key).unwrap_or(&nowhere).clone();
        let (ours, theirs) = (of(&fast_packets), of(&slow_packets));
        if ours != theirs {
            let _ = writeln!(text, "packet {} of w{}:\n  fast {ours}\n  slow {theirs}", key.1, key.0);
        }
    }
    if text.is_empty() {
        let of = |seen: &Seen| seen.deliveries.iter().map(|d| (d.token.0, d.at.0)).collect::<Vec<_>>();
        let _ = writeln!(text, "deliveries:\n  fast {:?}\n  slow {:?}", of(fast), of(slow));
    }
    for (number, link) in topology.links().iter().enumerate() {
        let _ = writeln!(
            text,
            "link {number}: node {} -> node {}, {}, {} ps, {}",
            link.from.0, link.to.0, link.rate, link.delay_ps, link.buffer
        );
    }
    Some(text)
}

/// Everything arrives at a `fabric`, as the slow model says that saw `slow`.
pub fn all_arrive_as<F: PacketFabric<Seen>>(
    slow: &Seen,
    topology: &Topology,
    traffic: &[Sending],
    fabric: impl Fn() -> F,
) -> TestCaseResult {
    prop_assert_eq!(slow.deliveries.len(), traffic.len(), "something is stuck");
    if let Some(difference) = difference(&drive(&mut fabric(), traffic), slow, topology) {
        return Err(TestCaseError::fail(difference));
    }
    if traffic.iter().all(|sending| matches!(sending.when, When::At(_))) {
        prop_assert_eq!(&run(&mut fabric(), traffic).packets, &slow.packets);
    }
    Ok(())
}

/// `cases` networks, or as many more as `PROPTEST_CASES` asks for; those that once failed are kept in `file` and come
/// first.
pub fn networks_config(cases: u32, file: &'static str) -> Config {
    Config {
        cases: Config::default().cases.max(cases),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(file))),
        max_shrink_iters: 20_000,
        ..Config::default()
    }
}

/// For each mistake the number of the first of at most `cases` networks on which what the fast fabric does is not what
/// the slow model does with this mistake. Always the same networks.
pub fn found<S: Strategy>(
    strategy: &S,
    cases: usize,
    faults: &[Fault],
    fast: impl Fn(&S::Value) -> Seen,
    slow: impl Fn(&S::Value, Fault) -> Seen,
) -> Vec<(Fault, Option<usize>)> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut found: Vec<_> = faults.iter().map(|fault| (*fault, None)).collect();
    for number in 0..cases {
        if found.iter().all(|(_, network)| network.is_some()) {
            break;
        }
        let case = strategy.new_tree(&mut runner).unwrap().current();
        let right = fast(&case);
        for (fault, network) in &mut found {
            if network.is_none() && slow(&case, *fault) != right {
                *network = Some(number);
            }
        }
    }
    found
}
