//! Which networks are run in cycles, and what is where in them.

use super::lane::{Lane, LaneEnds, Queue};
use super::ring::{CYCLES, Ring};
use super::{Clocked, NEVER, Port, Switch};
use crate::csr::Csr;
use crate::fabric::credit::lanes::Numbering;
use crate::fabric::credit::link_timing::LinkTiming;
use crate::topology::{LinkId, Topology};
use crate::units::DurationPs;

/// What is the same everywhere in a network.
pub(in crate::fabric::credit) struct Sizes {
    /// Bytes of a flit, and flits of the largest packet.
    pub flit: u64,
    pub largest_flits: u16,
    /// Credits of each VL, and of the largest packet.
    pub credits: u32,
    pub largest_credits: u16,
    pub switch_delay: DurationPs,
    /// Queues of an input that may ask for one VL of a link.
    pub classes: u32,
}

impl Clocked {
    /// The links of `topology`, lanes numbered by `number`; `None` where they do not take the same whole time for a flit, anything takes no
    /// whole number of cycles, or too many, or a switch has more links or queues than there are bits.
    pub fn new<'a>(
        topology: &Topology,
        timing: impl Fn(LinkId) -> &'a LinkTiming,
        number: Numbering,
        sizes: &Sizes,
    ) -> Option<Self> {
        let present = || (0..).map(LinkId).zip(topology.links()).filter(|(_, link)| !link.absent);
        let cycle = timing(present().next()?.0).whole_flit().filter(|cycle| cycle.ps() > 0)?;
        let cycles = |span: DurationPs| span.ps().is_multiple_of(cycle.ps()).then_some(span.ps() / cycle.ps());
        let at_switch = cycles(sizes.switch_delay)?.checked_add(1)?;
        if usize::from(sizes.largest_credits) * BITS > usize::from(u16::MAX) {
            return None;
        }
        let hosts = topology.hosts();
        let inputs = Csr::grouped(topology.nodes() as usize, present().map(|(id, link)| (link.to.0 as usize, id)));
        let mut ports = vec![ABSENT; topology.links().len()];
        for (id, link) in present() {
            let timing = timing(id);
            let [from_host, to_host] = [link.from, link.to].map(|node| topology.is_host(node));
            let ahead = cycles(timing.delay)?.checked_add(if to_host { 0 } else { at_switch })?;
            let back = cycles(timing.back)?;
            let most = ahead.checked_add(back)?.checked_add(sizes.largest_flits.into())?;
            if timing.whole_flit() != Some(cycle) || most >= CYCLES - 1 {
                return None;
            }
            let ends = inputs.row(link.to.0 as usize);
            let slot = ends.binary_search(&id).ok()?;
            let output = topology.out(link.from).binary_search(&id).ok()?;
            let has_bits = number.count(ends.len()) <= HEADS && ends.len() * sizes.classes as usize <= BITS;
            if !(to_host || has_bits) || output >= BITS {
                return None;
            }
            ports[usize::from(id)] = Port {
                from: if from_host { link.from.0 } else { link.from.0 - hosts },
                to: if to_host { link.to.0 } else { link.to.0 - hosts },
                bit: u8::try_from(output).ok()?,
                first_bit: if to_host { 0 } else { u8::try_from(number.count(slot)).ok()? },
                ahead: u8::try_from(ahead).ok()?,
                back: u8::try_from(back).ok()?,
                from_host,
                to_host,
                ..ABSENT
            };
        }
        let outputs = topology.ports();
        let switch = |node: u32| Switch {
            heads: 0,
            ready: 0,
            outputs: outputs.begin(node as usize),
            inputs: inputs.begin(node as usize),
            is_listed: false,
        };
        let lanes = number.count(ports.len());
        Some(Self {
            cycle_ps: cycle.ps(),
            flit: u32::try_from(sizes.flit).ok().filter(|flit| *flit <= LARGEST_FLIT)?,
            number,
            classes: sizes.classes,
            ring: Ring::new(),
            ends: vec![LaneEnds { sender: Lane::new(i32::try_from(sizes.credits).ok()?), queue: Queue::EMPTY }; lanes]
                .into(),
            overflows: vec![0; lanes].into(),
            ports: ports.into(),
            switches: (hosts..topology.nodes()).map(switch).collect(),
            outputs: outputs.items().to_vec(),
            inputs: inputs.items().to_vec(),
            working: Vec::new(),
            sending: Vec::new(),
            events: 0,
        })
    }
}

/// Queues of a switch that may ask for a VL, and links of a switch at most: each has a bit.
const BITS: usize = 64;

/// Queues of a switch at most: each has a bit.
const HEADS: usize = 128;

/// So many bytes times [`CYCLES`] can be counted.
const LARGEST_FLIT: u32 = 1 << 24;

/// A link that is not there.
const ABSENT: Port = Port {
    free_at: 0,
    wake: NEVER,
    from: 0,
    to: 0,
    turn: 0,
    asking: 0,
    bit: 0,
    first_bit: 0,
    ahead: 1,
    back: 0,
    from_host: false,
    to_host: false,
    is_listed: false,
};
