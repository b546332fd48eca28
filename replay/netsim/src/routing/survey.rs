//! All ways of a routing that has one for each pair.

use super::{Choice, Routes, RoutingError};
use crate::topology::{LinkId, NodeId, Topology};
use serde::Serialize;

/// What the ways between all pairs of different hosts come to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Survey {
    /// Ordered pairs of different hosts; each has a way.
    pub pairs: u64,
    /// Switches on a way, in the mean; null with a single host.
    pub mean_switches: Option<f64>,
    /// Switches on the longest way.
    pub most_switches: u64,
    /// Ways over the link between switches that has most; 0 without such links.
    pub most_ways: u64,
    /// That link: "rack0->core1".
    pub most_used: Option<String>,
}

impl Routes {
    /// The one link by which packets for `to` go on from switch `at`, whatever their flow and wherever they come from.
    pub(super) fn only_link(&self, at: NodeId, to: NodeId) -> Option<LinkId> {
        let next = self.next(at, LinkId(u32::MAX), to);
        match self.choose(next.links.len(), at, 0, 0, to, to) {
            Choice::Index(index) => next.links.get(index).copied(),
            Choice::ByCredits => None,
        }
    }

    /// Follows the ways between all pairs.
    ///
    /// # Errors
    /// When packets for one destination may take several ports of a switch, or go round.
    pub fn survey(&self, topology: &Topology) -> Result<Survey, RoutingError> {
        if !self.has_one_port() {
            return Err(RoutingError::NoTable { routing: self.config().to_string() });
        }
        let mut hosts_at = vec![0u64; topology.nodes() as usize];
        for host in (0..topology.hosts()).map(NodeId) {
            hosts_at[topology.switch_of(host).0 as usize] += 1;
        }
        let starts: Vec<NodeId> =
            (topology.hosts()..topology.nodes()).map(NodeId).filter(|node| hosts_at[node.0 as usize] > 0).collect();
        let mut ways = vec![0u64; topology.links().len()];
        let (mut pairs, mut total, mut most) = (0u64, 0u64, 0u64);
        for to in (0..topology.hosts()).map(NodeId) {
            let last = topology.switch_of(to);
            for start in &starts {
                let sources = hosts_at[start.0 as usize] - u64::from(*start == last);
                let mut switches = 0u64;
                let mut at = *start;
                while at != to {
                    let way = self.only_link(at, to).filter(|_| switches <= u64::from(topology.switches()));
                    let Some(link) = way else {
                        let name = |node: NodeId| topology.name(node).to_owned();
                        let routing = self.config().to_string();
                        return Err(RoutingError::NoWay { routing, from: name(*start), to: name(to) });
                    };
                    ways[link.0 as usize] += sources;
                    at = topology.link(link).to;
                    switches += 1;
                }
                pairs += sources;
                total += sources * switches;
                most = if sources > 0 { most.max(switches) } else { most };
            }
        }
        let between = |link: &(usize, &u64)| !topology.is_host(topology.link(LinkId::from(link.0)).to);
        // The first of those that have as many.
        let used =
            ways.iter().enumerate().filter(between).max_by_key(|(link, ways)| (**ways, std::cmp::Reverse(*link)));
        let name = |link: usize| topology.link_name(LinkId(u32::try_from(link).unwrap_or(u32::MAX))).into_string();
        Ok(Survey {
            pairs,
            #[expect(clippy::cast_precision_loss, reason = "a mean of at most 2^53 pairs")]
            mean_switches: (pairs > 0).then(|| total as f64 / pairs as f64),
            most_switches: most,
            most_ways: used.map_or(0, |(_, ways)| *ways),
            most_used: used.map(|(link, _)| name(link)),
        })
    }
}
