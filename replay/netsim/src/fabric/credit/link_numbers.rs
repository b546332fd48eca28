//! How links are numbered in a part of a network: those that begin or end there, in the order of their numbers in the whole one.

use crate::count::count;
use crate::topology::{LinkId, NodeId, Topology};
use std::sync::Arc;

/// A network in parts: who has which links, and by which numbers.
pub(super) struct Cut {
    /// The part of each node.
    part_of: Vec<u16>,
    /// The number of each link in the part where it begins, and in that where it ends.
    outputs: Vec<LinkId>,
    inputs: Vec<LinkId>,
    /// How many links each part has.
    counts: Vec<u32>,
}

impl Cut {
    /// `topology` in `parts` parts, each node in that of `part_of`.
    pub fn new(topology: &Topology, part_of: Vec<u16>, parts: u16) -> Self {
        let mut counts = vec![0u32; usize::from(parts)];
        let mut next = |part: u16| {
            let count = &mut counts[usize::from(part)];
            *count += 1;
            LinkId(*count - 1)
        };
        let (mut outputs, mut inputs) = (Vec::new(), Vec::new());
        for link in topology.links() {
            let [from, to] = [link.from, link.to].map(|node| part_of[node.0 as usize]);
            let output = next(from);
            outputs.push(output);
            inputs.push(if from == to { output } else { next(to) });
        }
        Self { part_of, outputs, inputs, counts }
    }

    /// How many parts there are.
    pub const fn parts(&self) -> usize {
        self.counts.len()
    }

    /// The part of `node`.
    #[inline]
    pub fn part(&self, node: NodeId) -> u16 {
        self.part_of[node.0 as usize]
    }

    /// The number of `link` in the part where it begins.
    #[inline]
    pub fn output(&self, link: LinkId) -> LinkId {
        self.outputs[usize::from(link)]
    }

    /// The number of `link` in the part where it ends.
    #[inline]
    pub fn input(&self, link: LinkId) -> LinkId {
        self.inputs[usize::from(link)]
    }
}

/// The links that a part of a network has, or all of them.
pub(super) struct LinkNumbers {
    count: usize,
    part: Option<PartLinks>,
}

struct PartLinks {
    cut: Arc<Cut>,
    part: u16,
    /// The number of each link in the whole network.
    links: Vec<LinkId>,
}

impl LinkNumbers {
    /// All `count` links of a network.
    pub const fn whole(count: usize) -> Self {
        Self { count, part: None }
    }

    /// The links of `part` of `topology`.
    pub fn of_part(topology: &Topology, cut: &Arc<Cut>, part: u16) -> Self {
        let here = |id: &usize| {
            let link = topology.link(LinkId::from(*id));
            cut.part(link.from) == part || cut.part(link.to) == part
        };
        let ids = (0..topology.links().len()).filter(here);
        let mut links = Vec::with_capacity(cut.counts[usize::from(part)] as usize);
        links.extend(ids.map(|id| LinkId(count(id))));
        Self { count: links.len(), part: Some(PartLinks { cut: Arc::clone(cut), part, links }) }
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// In how many parts the network is, if it is in parts.
    pub fn parts(&self) -> Option<usize> {
        self.part.as_ref().map(|part| part.cut.parts())
    }

    /// How the network is cut up, if it is.
    pub fn cut(&self) -> Option<&Arc<Cut>> {
        self.part.as_ref().map(|part| &part.cut)
    }

    /// All links: their number here, and in the whole network.
    pub fn all(&self) -> impl Iterator<Item = (LinkId, LinkId)> + Clone {
        (0..self.count).map(|id| {
            let id = LinkId(count(id));
            (id, self.global(id))
        })
    }

    /// The number in the whole network of the link that is `here` here.
    #[inline]
    pub fn global(&self, here: LinkId) -> LinkId {
        self.part.as_ref().map_or(here, |part| part.links[usize::from(here)])
    }

    /// The number here of a link that begins here.
    #[inline]
    pub fn output(&self, link: LinkId) -> LinkId {
        self.part.as_ref().map_or(link, |part| part.cut.output(link))
    }

    /// Whether a link of the whole network begins here.
    pub fn begins_here(&self, topology: &Topology, link: LinkId) -> bool {
        self.part.as_ref().is_none_or(|part| part.cut.part(topology.link(link).from) == part.part)
    }

    /// The part where a link of the whole network ends, if that is another one.
    pub fn part_of_end(&self, topology: &Topology, link: LinkId) -> Option<u16> {
        let PartLinks { cut, part, .. } = self.part.as_ref()?;
        Some(cut.part(topology.link(link).to)).filter(|to| to != part)
    }
}
