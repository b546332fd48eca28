//! Ways packet by packet: at each switch, the links by which a packet may go on.

use super::{UNREACHED, attachment, distances_to};
use crate::topology::{LinkId, NodeId, Topology};
use std::collections::BTreeMap;

/// Where a packet may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next<'a> {
    /// The links, in order; never empty.
    pub links: &'a [LinkId],
    /// The class of virtual lanes: 0, or below [`Routes::classes`].
    pub class: u8,
    /// Whether the packet enters a ring that must keep a bubble: room for two packets is needed.
    pub enters_ring: bool,
}

/// For each switch and destination the links that lie on a way.
#[derive(Clone, Debug)]
pub struct Routes {
    /// For each destination's switch, each node's range in `links`.
    ranges: BTreeMap<NodeId, Vec<(u32, u32)>>,
    links: Vec<LinkId>,
    /// Each host's switch, and the link from it to the host.
    last: Vec<(NodeId, LinkId)>,
}

impl Routes {
    /// All shortest ways of a topology.
    #[must_use]
    pub fn shortest(topology: &Topology) -> Self {
        let mut routes = Self { ranges: BTreeMap::new(), links: Vec::new(), last: Vec::new() };
        for host in 0..topology.hosts() {
            let Some(last) = attachment(topology, NodeId(host)) else { continue };
            let target = topology.link(last).from;
            routes.last.push((target, last));
            if routes.ranges.contains_key(&target) {
                continue;
            }
            let distances = distances_to(topology, target);
            let mut ranges = Vec::with_capacity(distances.len());
            for node in 0..topology.nodes() {
                let here = distances[node as usize];
                let begin = routes.links.len();
                if here != UNREACHED {
                    let nearer = |link: &&LinkId| distances[topology.link(**link).to.0 as usize] < here;
                    routes.links.extend(topology.out(NodeId(node)).iter().filter(nearer));
                }
                let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
                ranges.push((number(begin), number(routes.links.len())));
            }
            routes.ranges.insert(target, ranges);
        }
        routes
    }

    /// How many classes of virtual lanes the routing needs to be free of deadlock.
    #[must_use]
    pub const fn classes(&self) -> u8 {
        1
    }

    /// Where a packet for host `to` may go on that stands at switch `at`, having come by `came`.
    #[must_use]
    pub fn next(&self, at: NodeId, came: LinkId, to: NodeId) -> Next<'_> {
        let _ = came;
        let (switch, last) = &self.last[to.0 as usize];
        if *switch == at {
            return Next { links: std::slice::from_ref(last), class: 0, enters_ring: false };
        }
        let (begin, end) = self.ranges.get(switch).map_or((0, 0), |ranges| ranges[at.0 as usize]);
        Next { links: &self.links[begin as usize..end as usize], class: 0, enters_ring: false }
    }
}
