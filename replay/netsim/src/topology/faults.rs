//! Cables that are out of order.

use super::TopologyError;
use super::builder::Builder;
use super::ids::NodeId;
use crate::csr::Csr;
use crate::kernel::random::{below, draw};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use toml::Value;

/// Which cables between routers are out of order, in both directions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum FaultsConfig {
    /// So many, drawn.
    Number(u32),
    /// Those between these pairs of routers, by their names; a pair that stands there twice loses two of parallel cables.
    Cables(Vec<(String, String)>),
}

impl Default for FaultsConfig {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl FaultsConfig {
    /// Whether there are none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        match self {
            Self::Number(number) => *number == 0,
            Self::Cables(cables) => cables.is_empty(),
        }
    }

    /// Which of cables are out of order, whose ends are called as `ends` says.
    pub(super) fn among(&self, ends: &[(&str, &str)], seed: u64) -> Result<Vec<bool>, TopologyError> {
        let mut faulty = vec![false; ends.len()];
        match self {
            Self::Number(number) => {
                if *number as usize > ends.len() {
                    let allowed = format!("at most {}, for so many cables join routers", ends.len());
                    return Err(TopologyError::value("faults", number, allowed));
                }
                // The first of a shuffle: each set is as likely as any other.
                let mut order: Vec<usize> = (0..ends.len()).collect();
                for place in 0..*number as usize {
                    let left = (ends.len() - place) as u64;
                    let drawn = below(draw(seed, FAULTS, place as u64), left);
                    order.swap(place, place + usize::try_from(drawn).unwrap_or(0));
                    faulty[order[place]] = true;
                }
            }
            Self::Cables(cables) => {
                for (a, b) in cables {
                    let joins = |(from, to): &(&str, &str)| (*from == a && *to == b) || (*from == b && *to == a);
                    let cable = (0..ends.len()).find(|cable| !faulty[*cable] && joins(&ends[*cable]));
                    let cable = cable.ok_or_else(|| {
                        let allowed =
                            "pairs of routers that a cable joins, by their names, such as [[\"r0.0\", \"r1.0\"]]";
                        TopologyError::value("faults", format!("[[\"{a}\", \"{b}\"]]"), allowed)
                    })?;
                    faulty[cable] = true;
                }
            }
        }
        Ok(faulty)
    }
}

/// The place of draws of faults.
const FAULTS: u64 = 0x6661_756c_7473;

impl<'de> Deserialize<'de> for FaultsConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Value::deserialize(deserializer)?;
        let pair = |value: &Value| match value.as_array().map(Vec::as_slice) {
            Some([Value::String(a), Value::String(b)]) => Some((a.clone(), b.clone())),
            _ => None,
        };
        let found = match &given {
            Value::Integer(number) => u32::try_from(*number).ok().map(Self::Number),
            Value::Array(pairs) => pairs.iter().map(pair).collect::<Option<_>>().map(Self::Cables),
            _ => None,
        };
        found.ok_or_else(|| {
            D::Error::custom(format!(
                "faults = {given} is neither a number of cables nor a list of pairs of routers, such as [[\"r0.0\", \"r1.0\"]]"
            ))
        })
    }
}

/// So many routers without a way are named.
const NAMED: usize = 6;

/// Every router reaches every other one; else some that do not are named.
pub(super) fn check_joined(builder: &Builder) -> Result<(), TopologyError> {
    let topology = &builder.topology;
    let nodes = topology.name_ends.len();
    let present = || topology.links().iter().filter(|link| !link.absent);
    let forward = Csr::grouped(nodes, present().map(|link| (link.from.0 as usize, link.to)));
    let back = Csr::grouped(nodes, present().map(|link| (link.to.0 as usize, link.from)));
    let first = NodeId(topology.hosts);
    let mut pairs = Vec::new();
    for (links, ahead) in [(&forward, true), (&back, false)] {
        let reached = reached(links, first, nodes);
        let missed = (topology.hosts..topology.nodes()).map(NodeId).filter(|node| !reached[node.0 as usize]);
        pairs.extend(missed.map(|node| if ahead { (first, node) } else { (node, first) }));
    }
    if pairs.is_empty() {
        return Ok(());
    }
    let name = |node: NodeId| topology.name(node);
    let named: Vec<String> =
        pairs.iter().take(NAMED).map(|(from, to)| format!("{} to {}", name(*from), name(*to))).collect();
    let more = if pairs.len() > NAMED { format!(", and {} more", pairs.len() - NAMED) } else { String::new() };
    Err(TopologyError::Parted { pairs: named.join(", ") + &more })
}

fn reached(links: &Csr<NodeId>, first: NodeId, nodes: usize) -> Vec<bool> {
    let mut reached = vec![false; nodes];
    reached[first.0 as usize] = true;
    let mut open = vec![first];
    while let Some(node) = open.pop() {
        for next in links.row(node.0 as usize) {
            if !std::mem::replace(&mut reached[next.0 as usize], true) {
                open.push(*next);
            }
        }
    }
    reached
}
