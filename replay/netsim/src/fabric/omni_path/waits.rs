//! Whether packets may wait for each other for ever.
//!
//! Packets from the inputs of a group wait in one queue at a central link, whatever outputs they go to. So a packet that leads down
//! may wait behind one that leads up, which a routing that is free of deadlock knows nothing of. Here the circle is looked for in the
//! graph of links and central links, each with its classes of virtual lanes.

use super::layout::Layout;
use crate::count::count;
use crate::fabric::FabricError;
use crate::routing::{Routes, RoutingConfig, RoutingError};
use crate::topology::{LinkId, NodeId, Topology};

/// So many steps may be taken.
const MAX_STEPS: u64 = 300_000_000;

/// What a packet holds, and what it waits for: links, then central links, each with its classes.
struct Waits<'a> {
    layout: &'a Layout,
    classes: u32,
    next: Vec<Vec<u32>>,
}

impl Waits<'_> {
    fn link(&self, link: LinkId, class: u8) -> u32 {
        link.0 * self.classes + u32::from(class)
    }

    fn note(&mut self, holds: u32, waits: u32) {
        let known = &mut self.next[holds as usize];
        if !known.contains(&waits) {
            known.push(waits);
        }
    }

    /// A packet that came by `from` with `class` goes on by `out` with `out_class`.
    fn pass(&mut self, (from, class): (LinkId, u8), (out, out_class): (LinkId, u8)) {
        let input = self.layout.input(from);
        let (holds, waits) = (self.link(from, class), self.link(out, out_class));
        if self.layout.input_port(input).is_some_and(|port| self.layout.same_group(port, out)) {
            return self.note(holds, waits);
        }
        let first = self.layout.first_central(input).0;
        for number in self.layout.centrals_for(input, out) {
            let central = (self.layout.links() + first + number) * self.classes + u32::from(out_class);
            self.note(holds, central);
            self.note(central, waits);
        }
    }
}

/// Refuses a routing whose packets may wait for each other for ever in these switches.
///
/// # Errors
/// With the links that wait for each other, or if that cannot be found out in reasonable time.
pub(super) fn check(routes: &Routes, topology: &Topology, layout: &Layout) -> Result<(), FabricError> {
    routes.deadlock_freedom(topology)?;
    if topology.switches() <= 1 {
        return Ok(());
    }
    let routing = || routes.config().to_string();
    // One host of each switch stands for all on the way to it, but for tables, which know every host apart.
    let apart = matches!(routes.config(), RoutingConfig::Table(_) | RoutingConfig::File);
    let mut first_at = vec![None; topology.nodes() as usize];
    for host in (0..topology.hosts()).map(NodeId) {
        first_at[topology.switch_of(host).0 as usize].get_or_insert(host);
    }
    let sources: Vec<NodeId> = first_at.into_iter().flatten().collect();
    let targets: Vec<NodeId> = if apart { (0..topology.hosts()).map(NodeId).collect() } else { sources };
    let steps = targets.len() as u64 * topology.links().len() as u64;
    if steps > MAX_STEPS {
        return Err(RoutingError::Unchecked { routing: routing(), steps, most: MAX_STEPS }.into());
    }
    let classes = u32::from(routes.classes());
    let nodes = (topology.links().len() + layout.units(topology.switches())) * classes as usize;
    let mut waits = Waits { layout, classes, next: vec![Vec::new(); nodes] };
    let mut seen = vec![u32::MAX; topology.links().len() * classes as usize];
    for to in targets {
        let mut open: Vec<(LinkId, u8)> =
            (0..topology.hosts()).map(|host| (topology.uplink(NodeId(host)), 0)).collect();
        while let Some((link, class)) = open.pop() {
            let channel = waits.link(link, class) as usize;
            let at = topology.link(link).to;
            if topology.is_host(at) || std::mem::replace(&mut seen[channel], to.0) == to.0 {
                continue;
            }
            let next = routes.next(at, link, to);
            for out in next.links {
                waits.pass((link, class), (*out, next.class));
                open.push((*out, next.class));
            }
            if at == topology.switch_of(to) {
                let hosts = topology.out(at).iter().filter(|out| topology.is_host(topology.link(**out).to));
                hosts.for_each(|out| waits.pass((link, class), (*out, next.class)));
            }
        }
    }
    let channels = count(topology.links().len()) * classes;
    let Some(circle) = circle(&waits.next, channels) else { return Ok(()) };
    let links = circle.iter().chain(circle.first()).filter(|node| **node < channels);
    let links = links.map(|node| topology.link_name(LinkId(node / classes)));
    Err(RoutingError::Deadlock {
        routing: routing(),
        cycle: links.collect::<Vec<_>>().join(", "),
        advice: "Packets from ports of one group wait for each other at its central links: give ports that lead up and ports that \
                 lead down groups of their own (a multiple of fabric.group of each), or take fabric.group = 1",
    }
    .into())
}

/// A circle in a graph, which begins with one of the first `links` nodes if it has one.
fn circle(next: &[Vec<u32>], links: u32) -> Option<Vec<u32>> {
    let mut waited_for = vec![0u32; next.len()];
    next.iter().flatten().for_each(|node| waited_for[*node as usize] += 1);
    let mut open: Vec<u32> = (0..count(next.len())).filter(|node| waited_for[*node as usize] == 0).collect();
    let mut gone = vec![false; next.len()];
    while let Some(node) = open.pop() {
        gone[node as usize] = true;
        for behind in &next[node as usize] {
            waited_for[*behind as usize] -= 1;
            if waited_for[*behind as usize] == 0 {
                open.push(*behind);
            }
        }
    }
    // Whoever is left is waited for by one that is left: the way back closes.
    let mut before = vec![u32::MAX; next.len()];
    for (node, behind) in (0..).zip(next).filter(|(node, _)| !gone[*node as usize]) {
        behind.iter().for_each(|behind| before[*behind as usize] = node);
    }
    let mut node = (0..count(next.len())).find(|node| !gone[*node as usize])?;
    let mut seen = vec![false; next.len()];
    while !std::mem::replace(&mut seen[node as usize], true) {
        node = before[node as usize];
    }
    let mut circle = vec![node];
    let mut at = before[node as usize];
    while at != node {
        circle.push(at);
        at = before[at as usize];
    }
    circle.reverse();
    let first = circle.iter().position(|node| *node < links).unwrap_or(0);
    circle.rotate_left(first);
    Some(circle)
}
