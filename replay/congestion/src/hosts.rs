//! Which hosts take part.

use crate::CongestionError;
use crate::pattern::shuffle;
use netsim::topology::{NodeId, Topology};
use std::collections::VecDeque;

/// How the hosts that take part are chosen; all others are silent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Subset {
    /// Breadth-first from the topology's first node.
    #[default]
    LinearBfs,
    /// The first ones.
    First,
    /// Drawn anew for each run.
    Rand,
    /// Those that are listed, in this order.
    Named(Vec<Listed>),
}

/// A host in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its line, counted from 1.
    pub line: usize,
    /// Its name.
    pub name: String,
}

impl Subset {
    /// All that may take part, in order: the first ones do, if fewer are wanted.
    pub(crate) fn hosts(&self, topology: &Topology) -> Result<Vec<NodeId>, CongestionError> {
        let all = (0..topology.hosts()).map(NodeId);
        match self {
            Self::First | Self::Rand => Ok(all.collect()),
            Self::LinearBfs => Ok(breadth_first(topology)),
            Self::Named(names) => {
                let known: std::collections::HashMap<&str, NodeId> =
                    all.map(|host| (topology.name(host), host)).collect();
                let mut taken = vec![false; topology.hosts() as usize];
                let find = |Listed { line, name }: &Listed| {
                    let wrong = |what| CongestionError::Host { line: *line, name: name.clone(), what };
                    let host = *known.get(name.as_str()).ok_or_else(|| wrong("is not a host of the topology"))?;
                    if std::mem::replace(&mut taken[host.0 as usize], true) {
                        return Err(wrong("is listed twice"));
                    }
                    Ok(host)
                };
                names.iter().map(find).collect()
            }
        }
    }

    /// The hosts of one run, rank by rank: `wanted` of `all`, in an order that `seed` decides if `shuffled`.
    pub(crate) fn ranks(&self, all: &[NodeId], wanted: usize, shuffled: bool, seed: u64, ranks: &mut Vec<NodeId>) {
        ranks.clear();
        match self {
            Self::Rand => {
                ranks.extend_from_slice(all);
                shuffle(ranks, seed);
                ranks.truncate(wanted);
                if !shuffled {
                    ranks.sort_unstable();
                }
            }
            _ => {
                ranks.extend_from_slice(&all[..wanted]);
                if shuffled {
                    shuffle(ranks, seed);
                }
            }
        }
    }
}

/// The hosts that are found from the first node on.
fn breadth_first(topology: &Topology) -> Vec<NodeId> {
    let mut seen = vec![false; topology.nodes() as usize];
    let mut queue = VecDeque::new();
    let mut hosts = Vec::new();
    if let Some(first) = seen.first_mut() {
        *first = true;
        queue.push_back(NodeId(0));
    }
    while let Some(node) = queue.pop_front() {
        if topology.is_host(node) {
            hosts.push(node);
        }
        for link in topology.out(node) {
            let to = topology.link(*link).to;
            if !std::mem::replace(&mut seen[to.0 as usize], true) {
                queue.push_back(to);
            }
        }
    }
    hosts
}
