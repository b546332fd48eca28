//! Which networks are run in cycles, and what is where in them.

use super::cases::Cases;
use super::lane::{Lane, Queue};
use super::output::{Input, NEVER, Output};
use super::ring::{CYCLES, Ring};
use super::seekers::Seeking;
use super::working::Working;
use super::{Clocked, Place, Switch};
use crate::count::count;
use crate::csr::Csr;
use crate::fabric::clocked::ways::Ways;
use crate::fabric::credit::lanes::Numbering;
use crate::fabric::credit::link_timing::LinkTiming;
use crate::routing::Routes;
use crate::time::SimTime;
use crate::topology::{LinkId, Topology};
use crate::units::DurationPs;
use strength_reduce::StrengthReducedU64;
use typed_index_collections::TiVec;

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
    /// Whether heads commit themselves to lanes with room alone.
    pub seeks: bool,
}

impl Clocked {
    /// The links of `topology`, which take the times that `timing` says and several packets at a time if `is_parallel` does, lanes numbered by
    /// `number`; `None` where they do not take the same whole time for a flit, anything takes no
    /// whole number of cycles, or too many, or a switch has more links or queues than there are bits.
    pub fn new<'a>(
        (topology, routes): (&Topology, &Routes),
        (timing, is_parallel): (impl Fn(LinkId) -> &'a LinkTiming, impl Fn(LinkId) -> bool),
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
        let starts = topology.ports();
        let ends = Csr::grouped(topology.nodes() as usize, present().map(|(id, link)| (link.to.0 as usize, id)));
        let mut outputs = vec![ABSENT; starts.items().len()];
        let mut inputs = vec![Input { first_lane: 0, stride: 0, back: 0 }; ends.items().len()];
        let mut output_of: TiVec<LinkId, u32> = vec![u32::MAX; topology.links().len()].into();
        for (id, link) in present() {
            let timing = timing(id);
            let [from_host, to_host] = [link.from, link.to].map(|node| topology.is_host(node));
            let ahead = cycles(timing.delay)?.checked_add(if to_host { 0 } else { at_switch })?;
            let back = u8::try_from(cycles(timing.back)?).ok()?;
            let most = ahead.checked_add(back.into())?.checked_add(sizes.largest_flits.into())?;
            if timing.whole_flit() != Some(cycle) || most >= CYCLES - 1 {
                return None;
            }
            let beside = topology.out(link.from);
            let here = ends.row(link.to.0 as usize);
            let slot = here.binary_search(&id).ok()?;
            let bit = beside.binary_search(&id).ok()?;
            let has_bits = number.count(here.len()) <= HEADS && here.len() * sizes.classes as usize <= BITS;
            if !(to_host || has_bits) || bit >= BITS || (sizes.seeks && number.count(beside.len()) > HEADS) {
                return None;
            }
            let stride = u8::try_from(beside.len()).ok()?;
            let first_output = starts.begin(link.from.0 as usize) as usize;
            let output = first_output + bit;
            // Those of one VL of a node lie together: a head compares them.
            let first_lane = count(number.count(first_output) + bit);
            let input = ends.begin(link.to.0 as usize) as usize + slot;
            output_of[id] = count(output);
            inputs[input] = Input { first_lane, stride, back };
            outputs[output] = Output {
                first_lane,
                link: id,
                from: if from_host { link.from.0 } else { link.from.0 - hosts },
                to: if to_host { link.to.0 } else { link.to.0 - hosts },
                first_queue: count(number.count(input)),
                bit: u8::try_from(bit).ok()?,
                stride,
                first_bit: if to_host { 0 } else { u8::try_from(number.count(slot)).ok()? },
                ahead: u8::try_from(ahead).ok()?,
                back,
                from_host,
                to_host,
                is_parallel: is_parallel(id),
                ..ABSENT
            };
        }
        let switch = |node: u32| Switch {
            heads: 0,
            undecided: 0,
            ready: 0,
            place: Place {
                switch: node - hosts,
                first_output: starts.begin(node as usize),
                outputs: count(starts.row(node as usize).len()),
                first_lane: count(number.count(starts.begin(node as usize) as usize)),
                first_queue: count(number.count(ends.begin(node as usize) as usize)),
            },
        };
        let (lanes, queues) = (number.count(outputs.len()), number.count(inputs.len()));
        let mut owners = vec![u32::MAX; lanes];
        for (output, state) in (0..).zip(&outputs) {
            let of_vls = (0..number.count(1)).map(|vl| state.first_lane as usize + vl * usize::from(state.stride));
            of_vls.for_each(|lane| owners[lane] = output);
        }
        let mut of_lanes = vec![Lane::new(i32::try_from(sizes.credits).ok()?); lanes];
        for (lane, owner) in of_lanes.iter_mut().zip(&owners) {
            if outputs.get(*owner as usize).is_some_and(|output| output.is_parallel) {
                *lane = Lane::new(UNLIMITED);
            }
        }
        let has_more = sizes.seeks || outputs.iter().any(|output| output.is_parallel);
        let begin_at = |owner: &u32| outputs.get(*owner as usize).map_or(0, |output| output.from);
        let seeking = sizes.seeks.then(|| {
            let switches = (topology.nodes() - hosts) as usize;
            let cases = Cases::new(routes, switches, &outputs, ends.items().iter().copied());
            Seeking::new(owners.iter().map(begin_at), queues, cases)
        });
        Some(Self {
            cycle_ps: cycle.ps(),
            by_cycle: StrengthReducedU64::new(cycle.ps()),
            flit: u32::try_from(sizes.flit).ok().filter(|flit| *flit <= LARGEST_FLIT)?,
            number,
            classes: sizes.classes,
            ways: if sizes.seeks { Ways::default() } else { Ways::new(routes, topology) },
            ring: Ring::new(),
            lanes: of_lanes,
            overflows: vec![0; lanes],
            owners,
            interval_end: SimTime::ZERO,
            queues: vec![Queue::EMPTY; queues],
            outputs,
            inputs,
            seeking,
            output_of,
            switches: (hosts..topology.nodes()).map(switch).collect(),
            working: Working::new((topology.nodes() - hosts) as usize),
            sending: Working::new(topology.ports().begin(hosts as usize) as usize),
            spare: Vec::new(),
            has_more,
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

/// Credits of a lane that needs none: nothing is ever taken of them.
const UNLIMITED: i32 = 1 << 30;

/// A link that is not there.
const ABSENT: Output = Output {
    bytes: 0,
    packets: 0,
    first_lane: 0,
    free_at: 0,
    wake: NEVER,
    link: LinkId(u32::MAX),
    from: 0,
    to: 0,
    first_queue: 0,
    asking: 0,
    turn: 0,
    bit: 0,
    first_bit: 0,
    stride: 0,
    ahead: 1,
    back: 0,
    from_host: false,
    to_host: false,
    is_parallel: false,
};
