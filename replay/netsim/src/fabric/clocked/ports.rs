//! Inputs and outputs of switches, numbered.

use crate::count::count;
use crate::csr::Csr;
use crate::topology::{LinkId, Topology};
use typed_index_collections::TiVec;

/// None of something that is numbered.
pub(in crate::fabric) const NONE: u32 = u32::MAX;

/// Inputs and outputs by number: those of each switch lie next to each other, the outputs of hosts behind those of all switches.
pub(in crate::fabric) struct Ports {
    inputs: Csr<LinkId>,
    outputs: Csr<LinkId>,
    /// By link; [`NONE`] of those that end at a host.
    input_of: TiVec<LinkId, u32>,
    output_of: TiVec<LinkId, u32>,
    /// Which of its switch's outputs a link is.
    position: TiVec<LinkId, u32>,
}

impl Ports {
    pub fn new(topology: &Topology) -> Self {
        let (hosts, switches) = (topology.hosts() as usize, topology.switches() as usize);
        let links = topology.links();
        let present = links.iter().enumerate().filter(|(_, link)| !link.absent);
        let ends = present.clone().filter(|(_, link)| link.to.0 >= topology.hosts());
        let ends = ends.map(|(id, link)| (link.to.0 as usize - hosts, LinkId(count(id))));
        let inputs = Csr::grouped(switches, ends);
        let row = |node: usize| if node < hosts { switches + node } else { node - hosts };
        let begins = present.map(|(id, link)| (row(link.from.0 as usize), LinkId(count(id))));
        let outputs = Csr::grouped(switches + hosts, begins);
        let mut input_of: TiVec<LinkId, u32> = vec![NONE; links.len()].into();
        let mut output_of = input_of.clone();
        let mut position = input_of.clone();
        (0..).zip(inputs.items()).for_each(|(number, link)| input_of[*link] = number);
        (0..).zip(outputs.items()).for_each(|(number, link)| output_of[*link] = number);
        for row in 0..switches + hosts {
            (0..).zip(outputs.row(row)).for_each(|(place, link)| position[*link] = place);
        }
        Self { inputs, outputs, input_of, output_of, position }
    }

    #[inline]
    pub fn inputs(&self) -> &[LinkId] {
        self.inputs.items()
    }

    #[inline]
    pub fn outputs(&self) -> &[LinkId] {
        self.outputs.items()
    }

    /// The first input of a switch, and how many it has.
    #[inline]
    pub fn inputs_of(&self, switch: u32) -> (u32, u32) {
        (self.inputs.begin(switch as usize), count(self.inputs.row(switch as usize).len()))
    }

    /// The first output of a switch, and how many it has.
    #[inline]
    pub fn outputs_of(&self, switch: u32) -> (u32, u32) {
        (self.outputs.begin(switch as usize), count(self.outputs.row(switch as usize).len()))
    }

    #[inline]
    pub fn input_of(&self, link: LinkId) -> u32 {
        self.input_of[link]
    }

    #[inline]
    pub fn output_of(&self, link: LinkId) -> u32 {
        self.output_of[link]
    }

    #[inline]
    pub fn position(&self, link: LinkId) -> u32 {
        self.position[link]
    }
}
