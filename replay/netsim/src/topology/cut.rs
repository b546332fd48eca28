//! The least cut between two halves of the hosts of any graph.

use super::{LinkId, Topology};
use crate::csr::Csr;
use std::collections::VecDeque;

/// So many links may a graph have whose halves are looked at.
const MAX_LINKS: usize = 200_000;

/// The least number of cables whose removal parts the first half of the hosts from the others, and the least rate.
pub(super) fn halves(topology: &Topology) -> Option<(u64, Option<u64>)> {
    if topology.hosts() < 2 || topology.links().len() > MAX_LINKS {
        return None;
    }
    let there = |link: usize| u64::from(!topology.link(LinkId::from(link)).absent);
    let cables = least_cut(topology, there)?;
    let limited = topology.links().iter().all(|link| link.rate.bps().is_some());
    let rate = |link: usize| topology.link(LinkId::from(link)).rate.bps().unwrap_or(0) * there(link);
    let bps = if limited { least_cut(topology, rate) } else { None };
    Some((cables, bps))
}

/// The largest flow from the first half of the hosts to the others, where link `l` carries `room(l)`: by shortest
/// augmenting ways, all of one length at a time (Dinic).
fn least_cut(topology: &Topology, room: impl Fn(usize) -> u64) -> Option<u64> {
    let half = topology.hosts() / 2;
    // Also those that nothing is sent by: the flow may be taken back there.
    let all = (0..).map(LinkId).zip(topology.links()).map(|(id, link)| (link.from.0 as usize, id));
    let out = Csr::grouped(topology.nodes() as usize, all);
    // Both directions of a cable are each other's way back.
    let mut left: Vec<u64> = (0..topology.links().len()).map(room).collect();
    let mut flow = 0u64;
    loop {
        let distances = levels(topology, &out, half, &left);
        let mut next = vec![0usize; topology.nodes() as usize];
        let mut grown = false;
        for source in 0..half {
            while let Some(more) = augment(topology, &out, half, source, &distances, &mut next, &mut left) {
                flow = flow.checked_add(more)?;
                grown = true;
            }
        }
        if !grown {
            return Some(flow);
        }
    }
}

/// Each node's distance from the first half, over links with room.
fn levels(topology: &Topology, out: &Csr<LinkId>, half: u32, left: &[u64]) -> Vec<u32> {
    let mut distances = vec![u32::MAX; topology.nodes() as usize];
    let mut reached: VecDeque<u32> = (0..half).collect();
    for source in &reached {
        distances[*source as usize] = 0;
    }
    while let Some(node) = reached.pop_front() {
        for link in out.row(node as usize) {
            let to = topology.link(*link).to.0 as usize;
            if left[link.0 as usize] > 0 && distances[to] == u32::MAX {
                distances[to] = distances[node as usize] + 1;
                reached.push_back(topology.link(*link).to.0);
            }
        }
    }
    distances
}

/// Sends what fits along one way from `source` to a host of the second half.
fn augment(
    topology: &Topology,
    ports: &Csr<LinkId>,
    half: u32,
    source: u32,
    distances: &[u32],
    next: &mut [usize],
    left: &mut [u64],
) -> Option<u64> {
    let mut way: Vec<usize> = Vec::new();
    let mut node = source;
    loop {
        if node >= half && node < topology.hosts() {
            let more = way.iter().map(|link| left[*link]).min()?;
            for link in way {
                left[link] -= more;
                left[link ^ 1] = left[link ^ 1].saturating_add(more);
            }
            return Some(more);
        }
        let out = ports.row(node as usize);
        let forward = out.iter().skip(next[node as usize]).position(|link| {
            let to = topology.link(*link).to.0 as usize;
            left[link.0 as usize] > 0 && distances[to] == distances[node as usize] + 1
        });
        if let Some(skipped) = forward {
            next[node as usize] += skipped;
            let link = out[next[node as usize]];
            way.push(link.0 as usize);
            node = topology.link(link).to.0;
        } else {
            // A dead end: no way through it at this length.
            next[node as usize] = out.len();
            let back = way.pop()?;
            node = topology.link(LinkId::from(back)).from.0;
            next[node as usize] += 1;
        }
    }
}
