//! Ways through any graph: tables of the links that lie on them.

use super::{RoutingConfig, RoutingError};
use crate::csr::Csr;
use crate::topology::{LinkId, MAX_ENTRIES, NodeId, Topology};
use std::collections::VecDeque;

const UNREACHED: u32 = u32::MAX;

/// For each destination's switch and each switch, the links by which a packet may go on.
#[derive(Clone, Debug)]
pub(super) struct GraphHops {
    hosts: u32,
    switches: u32,
    /// Of each host: which of `targets` its switch is, and the link from there.
    last: Vec<(u32, LinkId)>,
    /// Switches with hosts.
    targets: Vec<NodeId>,
    /// The links of each (target, phase, switch).
    links: Csr<LinkId>,
    /// Each host's link.
    up: Vec<LinkId>,
    /// For up*/down*: whether each link leads down. Empty otherwise: one phase.
    down: Vec<bool>,
}

impl GraphHops {
    /// All shortest ways.
    pub(super) fn shortest(topology: &Topology, routing: &RoutingConfig) -> Result<Self, RoutingError> {
        let mut sets = Self::empty(topology, routing, 1)?;
        let incoming = incoming(topology);
        for target in 0..sets.targets.len() {
            let distances = distances_against(topology, &incoming, sets.targets[target]);
            for switch in topology.hosts()..topology.nodes() {
                let here = distances[switch as usize];
                let nearer = |link: &&LinkId| distances[topology.link(**link).to.0 as usize] < here;
                if here != UNREACHED {
                    sets.links.extend(topology.out(NodeId(switch)).iter().filter(nearer).copied());
                }
                sets.links.end_row();
            }
        }
        sets.check_reached(topology, routing)?;
        Ok(sets)
    }

    /// The shortest ways that never go up after they went down.
    pub(super) fn up_down(topology: &Topology, routing: &RoutingConfig) -> Result<Self, RoutingError> {
        let roots = middle(topology);
        let first = roots.iter().take(1).copied().collect::<Vec<_>>();
        // With several roots some pairs may have no common one; with one root all have it.
        let several = if roots.len() > 1 { Self::up_down_from(topology, routing, &roots) } else { None };
        let sets = match several.transpose()? {
            Some(sets) => sets,
            None => Self::up_down_from(topology, routing, &first).transpose()?.ok_or_else(|| RoutingError::NoWay {
                routing: routing.to_string(),
                from: topology.name(NodeId(0)).to_owned(),
                to: topology.name(NodeId(topology.hosts().saturating_sub(1))).to_owned(),
            })?,
        };
        Ok(sets)
    }

    /// Up*/down* from these roots; `None` if some pair has no way.
    fn up_down_from(
        topology: &Topology,
        routing: &RoutingConfig,
        roots: &[NodeId],
    ) -> Option<Result<Self, RoutingError>> {
        let mut sets = match Self::empty(topology, routing, 2) {
            Ok(sets) => sets,
            Err(error) => return Some(Err(error)),
        };
        let rank = ranks(topology, roots);
        sets.down = topology.links().iter().map(|link| rank[link.to.0 as usize] > rank[link.from.0 as usize]).collect();
        let mut order: Vec<u32> = (topology.hosts()..topology.nodes()).collect();
        order.sort_by_key(|switch| rank[*switch as usize]);
        for target in 0..sets.targets.len() {
            let (any, falling) = up_down_distances(topology, sets.targets[target], &order, &sets.down);
            for (phase, here) in [&any, &falling].into_iter().enumerate() {
                for switch in topology.hosts()..topology.nodes() {
                    let distance = here[switch as usize];
                    let down = &sets.down;
                    let leads = |link: &&LinkId| {
                        let to = topology.link(**link).to;
                        let rest = if down[link.0 as usize] { &falling } else { &any };
                        let allowed = phase == 0 || down[link.0 as usize];
                        allowed && !topology.is_host(to) && rest[to.0 as usize].saturating_add(1) == distance
                    };
                    if distance != UNREACHED {
                        sets.links.extend(topology.out(NodeId(switch)).iter().filter(leads).copied());
                    } else if phase == 0
                        && !topology.out(NodeId(switch)).iter().all(|link| {
                            // A switch without hosts need not reach anybody.
                            !topology.is_host(topology.link(*link).to)
                        })
                    {
                        return None;
                    }
                    sets.links.end_row();
                }
            }
        }
        Some(Ok(sets))
    }

    fn empty(topology: &Topology, routing: &RoutingConfig, phases: u64) -> Result<Self, RoutingError> {
        let mut last = Vec::with_capacity(topology.hosts() as usize);
        let mut targets = Vec::new();
        let mut known = vec![UNREACHED; topology.nodes() as usize];
        let up: Vec<LinkId> = (0..topology.hosts()).map(|host| topology.uplink(NodeId(host))).collect();
        for link in &up {
            let switch = topology.link(*link).to;
            let target = &mut known[switch.0 as usize];
            if *target == UNREACHED {
                *target = u32::try_from(targets.len()).unwrap_or(UNREACHED);
                targets.push(switch);
            }
            last.push((*target, link.back()));
        }
        let entries = targets.len() as u64 * u64::from(topology.switches()) * phases;
        if entries > MAX_ENTRIES {
            return Err(RoutingError::TooLarge { routing: routing.to_string(), entries, most: MAX_ENTRIES });
        }
        Ok(Self {
            hosts: topology.hosts(),
            switches: topology.switches(),
            last,
            targets,
            links: Csr::default(),
            up,
            down: Vec::new(),
        })
    }

    /// Every switch with hosts has a way to every other one.
    fn check_reached(&self, topology: &Topology, routing: &RoutingConfig) -> Result<(), RoutingError> {
        for (row, to) in self.targets.iter().enumerate() {
            for at in self.targets.iter().filter(|at| *at != to) {
                let entry = row * self.switches as usize + (at.0 - self.hosts) as usize;
                if self.links.row(entry).is_empty() {
                    let name = |node: &NodeId| topology.name(*node).to_owned();
                    return Err(RoutingError::NoWay { routing: routing.to_string(), from: name(at), to: name(to) });
                }
            }
        }
        Ok(())
    }

    /// The links by which a packet for host `to` may go on that stands at `at`, having come by `input_link`.
    #[inline]
    pub(super) fn next(&self, at: NodeId, input_link: LinkId, to: NodeId) -> &[LinkId] {
        if at.0 < self.hosts {
            return std::slice::from_ref(&self.up[at.0 as usize]);
        }
        let (target, last) = &self.last[to.0 as usize];
        if self.targets[*target as usize] == at {
            return std::slice::from_ref(last);
        }
        let row = if self.down.is_empty() {
            *target as usize
        } else {
            *target as usize * 2 + usize::from(self.down.get(input_link.0 as usize).is_some_and(|down| *down))
        };
        let entry = row * self.switches as usize + (at.0 - self.hosts) as usize;
        self.links.row(entry)
    }

    /// Whether host `to` is at the switch `at`, or `at` is a host.
    pub(super) fn is_end(&self, at: NodeId, to: NodeId) -> bool {
        at.0 < self.hosts || self.targets[self.last[to.0 as usize].0 as usize] == at
    }

    /// Whether it is up*/down*.
    pub(super) fn is_up_down(&self) -> bool {
        !self.down.is_empty()
    }
}

/// Where the links that end at each node begin.
fn incoming(topology: &Topology) -> Csr<NodeId> {
    let links = topology.links().iter().filter(|link| !link.absent);
    Csr::grouped(topology.nodes() as usize, links.map(|link| (link.to.0 as usize, link.from)))
}

/// Every node's distance to `target`, by breadth-first search against the links; hosts are not passed through.
fn distances_against(topology: &Topology, incoming: &Csr<NodeId>, target: NodeId) -> Vec<u32> {
    let mut distances = vec![UNREACHED; topology.nodes() as usize];
    distances[target.0 as usize] = 0;
    let mut reached = VecDeque::from([target]);
    while let Some(node) = reached.pop_front() {
        let next = distances[node.0 as usize] + 1;
        if topology.is_host(node) {
            continue;
        }
        for from in incoming.row(node.0 as usize) {
            if distances[from.0 as usize] == UNREACHED {
                distances[from.0 as usize] = next;
                reached.push_back(*from);
            }
        }
    }
    distances
}

/// Every node's distance to `target`, by breadth-first search where cables lead both ways; hosts are not passed through.
fn distances_to(topology: &Topology, target: NodeId) -> Vec<u32> {
    distances_from(topology, &[target])
}

/// Every node's distance to the nearest of `targets`.
fn distances_from(topology: &Topology, targets: &[NodeId]) -> Vec<u32> {
    let mut distances = vec![UNREACHED; topology.nodes() as usize];
    let mut reached: VecDeque<NodeId> = targets.iter().copied().collect();
    for target in targets {
        distances[target.0 as usize] = 0;
    }
    while let Some(node) = reached.pop_front() {
        let next = distances[node.0 as usize] + 1;
        if topology.is_host(node) {
            continue;
        }
        for link in topology.out(node) {
            let to = topology.link(*link).to;
            if distances[to.0 as usize] == UNREACHED {
                distances[to.0 as usize] = next;
                reached.push_back(to);
            }
        }
    }
    distances
}

/// The switches from which the way to all hosts is shortest, taken together.
fn middle(topology: &Topology) -> Vec<NodeId> {
    let total = |switch: &u32| {
        let distances = distances_to(topology, NodeId(*switch));
        distances[..topology.hosts() as usize].iter().map(|distance| u64::from(*distance)).sum::<u64>()
    };
    let totals: Vec<(u64, u32)> = (topology.hosts()..topology.nodes()).map(|switch| (total(&switch), switch)).collect();
    let least = totals.iter().map(|(total, _)| *total).min().unwrap_or(0);
    totals.iter().filter(|(total, _)| *total == least).map(|(_, switch)| NodeId(*switch)).collect()
}

/// The order by which links lead up (to a lower rank) or down: by distance from the roots, then by number.
fn ranks(topology: &Topology, roots: &[NodeId]) -> Vec<(u32, u32)> {
    distances_from(topology, roots).into_iter().zip(0..).collect()
}

/// Each node's distance to `target`: by any up*/down* way, and by one that only goes down.
fn up_down_distances(topology: &Topology, target: NodeId, order: &[u32], down: &[bool]) -> (Vec<u32>, Vec<u32>) {
    let mut falling = vec![UNREACHED; topology.nodes() as usize];
    falling[target.0 as usize] = 0;
    let mut reached = VecDeque::from([target]);
    while let Some(node) = reached.pop_front() {
        for link in topology.out(node) {
            // The way back over the same cable leads down to `node`.
            let from = topology.link(*link).to;
            if down[link.back().0 as usize] && !topology.is_host(from) && falling[from.0 as usize] == UNREACHED {
                falling[from.0 as usize] = falling[node.0 as usize] + 1;
                reached.push_back(from);
            }
        }
    }
    let mut any = falling.clone();
    for node in order {
        for link in topology.out(NodeId(*node)) {
            let to = topology.link(*link).to;
            if !down[link.0 as usize] && !topology.is_host(to) {
                any[*node as usize] = any[*node as usize].min(any[to.0 as usize].saturating_add(1));
            }
        }
    }
    (any, falling)
}
