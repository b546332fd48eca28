//! A network in which all happens in cycles: all links take the same whole time for a flit, which is the cycle, and whatever else takes time
//! takes whole cycles.
//!
//! Then what comes in a cycle is a list, and nothing is sorted; and a switch chooses and arbitrates at one go, by bits of its queues and
//! links. What it computes is what events compute (`choice`, `arbitration`, `sending`, `receiving`, `hosts`), to the bit. Packets and
//! observers are seen to in `cycles`.
//!
//! Links are numbered twice here: as outputs, those of a node next to each other, and as inputs, likewise. Lanes are numbered by the node where
//! they begin, then VL, then output; the queues at their ends by input, then VL:
//! what a switch looks at lies together.

mod cases;
mod deciding;
mod lane;
mod layout;
mod offers;
mod output;
mod read_ahead;
mod ring;
mod seekers;
mod seeking;
mod working;

use super::ahead::AHEAD;
use super::lanes::Numbering;
use super::traffic::Traffic;
use crate::fabric::clocked::ways::Ways;
use crate::fabric::ids::PacketId;
use crate::time::SimTime;
use crate::topology::LinkId;
use lane::{Lane, Queue};
pub(super) use layout::Sizes;
pub(super) use offers::{Need, Offer};
pub(super) use output::Output;
use output::{Input, NEVER};
use ring::{Back, Due, Head, Ring};
use seekers::Seeking;
use strength_reduce::StrengthReducedU64;
use typed_index_collections::TiVec;
use working::Working;

/// A switch. It fits into one line of a cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Switch {
    /// Queues whose heads choose in this cycle, a bit each.
    heads: u128,
    /// Queues whose heads have found no lane with room, a bit each.
    undecided: u128,
    /// Outputs that are free and may have a packet to start, a bit each.
    ready: u64,
    place: Place,
}

/// A network in cycles.
pub(super) struct Clocked {
    /// In picoseconds; the same, to divide by.
    cycle_ps: u64,
    by_cycle: StrengthReducedU64,
    /// Bytes of a flit.
    flit: u32,
    number: Numbering,
    /// Queues of an input that may ask for one VL of a link: those of the classes of its service level.
    classes: u32,
    pub ways: Ways,
    pub ring: Ring,
    /// By node where they begin, then VL, then output.
    lanes: Vec<Lane>,
    /// How often the count of each lane's flits began again.
    overflows: Vec<u32>,
    /// The output of each lane.
    owners: Vec<u32>,
    /// When the interval ends of which outputs count what starts.
    interval_end: SimTime,
    /// By input, then VL.
    queues: Vec<Queue>,
    pub outputs: Vec<Output>,
    inputs: Vec<Input>,
    /// Of heads that commit themselves to room alone.
    pub seeking: Option<Seeking>,
    output_of: TiVec<LinkId, u32>,
    switches: Vec<Switch>,
    /// Switches at which something is to be decided.
    pub working: Working,
    /// Outputs of hosts that may have a packet to start.
    pub sending: Working,
    /// A list without anything in it, to be used again.
    pub spare: Vec<u32>,
    /// Whether heads seek room, or hosts take all at once.
    pub has_more: bool,
    /// Heads and arrivals so far.
    pub events: u64,
}

/// Where what belongs to a switch lies: its outputs (and their number), its lanes and its queues, each from the first one on.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub switch: u32,
    first_output: u32,
    outputs: u32,
    first_lane: u32,
    first_queue: u32,
}

/// What is looked up by these numbers is looked up with bounds.
impl Place {
    /// The output whose bit is `bit`.
    #[inline(always)]
    const fn output(&self, bit: u32) -> u32 {
        self.first_output.wrapping_add(bit)
    }

    /// The bit of the output with a number.
    #[inline(always)]
    pub const fn bit_of(&self, output: u32) -> u32 {
        output.wrapping_sub(self.first_output)
    }

    /// The queue whose bit is `bit`.
    #[inline(always)]
    pub const fn queue(&self, bit: u32) -> u32 {
        self.first_queue.wrapping_add(bit)
    }

    /// The lane of `vl` of the output whose bit is `bit`.
    #[inline(always)]
    const fn lane(&self, bit: u32, vl: u32) -> usize {
        self.first_lane.wrapping_add(vl.wrapping_mul(self.outputs)).wrapping_add(bit) as usize
    }
}

/// A packet on its way: its number, flits and credits.
pub(super) type Passing = (PacketId, u16, u16);

impl Clocked {
    /// The number of the cycle that begins at `at`.
    #[inline]
    pub fn cycle(&self, at: SimTime) -> u64 {
        at.0 / self.by_cycle
    }

    /// When something comes next, or is to be decided.
    pub fn next_time(&self) -> Option<SimTime> {
        self.ring.next().map(|cycle| SimTime(cycle.saturating_mul(self.cycle_ps)))
    }

    /// Whether something is to be decided in the present cycle.
    pub fn has_work(&self) -> bool {
        !self.working.is_empty() || !self.sending.is_empty()
    }

    /// The cycle that begins at `at` begins: sees credits, heads and outputs that come, and returns what else does. Lanes are read ahead with
    /// `reads_ahead`.
    pub fn begin<const MORE: bool>(&mut self, at: SimTime, reads_ahead: bool) -> Due {
        let now = self.cycle(at);
        let due = self.ring.take(now);
        for backs in due.backs.chunks(AHEAD) {
            if MORE && reads_ahead {
                self.read_lanes_ahead(backs);
            }
            for Back { lane, flits, credits } in backs {
                let state = &mut self.lanes[*lane as usize];
                state.give_back(now, (*flits, *credits));
                if state.is_awaited {
                    state.is_awaited = false;
                    self.look(self.owners[*lane as usize], now);
                }
                if MORE && self.lanes[*lane as usize].is_sought {
                    self.lanes[*lane as usize].is_sought = false;
                    self.look_for_seekers(*lane, now);
                }
            }
        }
        if MORE {
            due.seeks.iter().for_each(|lane| self.seekers_wake(*lane, now));
        }
        for Head { switch, bit } in &due.heads {
            let state = &mut self.switches[*switch as usize];
            state.heads |= 1 << bit;
            self.working.insert(*switch);
        }
        for output in &due.looks {
            let state = &mut self.outputs[*output as usize];
            if state.wake == now {
                state.wake = NEVER;
                self.look(*output, now);
            }
        }
        self.events += (due.heads.len() + due.arrived.len()) as u64;
        due
    }

    /// The decisions of the cycle `now` are made: what is left to be decided is in the next one.
    pub fn end(&mut self, now: u64) {
        if self.has_work() {
            self.ring.at(now + 1);
        }
    }

    /// `output` may find a packet to start, as soon as it is free.
    fn look(&mut self, output: u32, now: u64) {
        let state = &mut self.outputs[output as usize];
        if state.free_at > now {
            let free_at = state.free_at;
            self.wake(output, free_at);
        } else if !state.from_host {
            let (switch, bit) = (state.from, state.bit);
            self.switches[switch as usize].ready |= 1 << bit;
            self.working.insert(switch);
        } else {
            self.sending.insert(output);
        }
    }

    /// Has `output` look in the cycle `at`, unless it will earlier.
    #[inline]
    fn wake(&mut self, output: u32, at: u64) {
        let state = &mut self.outputs[output as usize];
        if at < state.wake {
            state.wake = at;
            self.ring.at(at).looks.push(output);
        }
    }

    /// The host of `link` has a packet for `vl` of it in the cycle `now`.
    pub fn host_asks(&mut self, link: LinkId, vl: u8, now: u64) {
        let output = self.output_of[link];
        self.outputs[output as usize].asking |= 1 << vl;
        self.look(output, now);
    }

    /// The host of `output` has no more packets for `vl` of it.
    pub fn host_asks_no_more(&mut self, output: u32, vl: u32) {
        self.outputs[output as usize].asking &= !(1 << vl);
    }

    /// The VL whose turn it is at the `output` of a host, of those whose first packets find the credits that they need, as `need` says; `None`
    /// without one: then it waits.
    #[inline]
    pub fn host_turn(&mut self, output: u32, now: u64, need: impl Fn(u32) -> u32) -> Option<u32> {
        for vl in self.outputs[output as usize].asking_in_turn() {
            if self.lanes[self.lane(output, vl)].free(now, self.flit) >= i64::from(need(vl)) {
                self.outputs[output as usize].turn = next_of(vl);
                return Some(vl);
            }
        }
        for vl in bits(self.outputs[output as usize].asking.into()) {
            self.await_credits(output, vl, need(vl));
        }
        None
    }

    /// A packet of `flits` flits has started on the `output` of a host. Returns whether it is looked at in the next cycle.
    pub fn host_stays(&mut self, output: u32, now: u64, flits: u16) -> bool {
        let state = &mut self.outputs[output as usize];
        state.free_at = now + u64::from(flits);
        let (asks, free_at) = (state.asking != 0, state.free_at);
        if asks && flits != 1 {
            self.wake(output, free_at);
        }
        asks && flits == 1
    }

    /// What is to be decided at `switch`: the queues whose heads choose, which are taken out, and the outputs that may have a packet to start, a
    /// bit each.
    #[inline(always)]
    pub fn begin_switch(&mut self, switch: u32) -> (Place, u128, u64) {
        let state = &mut self.switches[switch as usize];
        (state.place, std::mem::take(&mut state.heads), state.ready)
    }

    /// All is decided at `switch`, whose outputs `ready` (a bit each) may have a packet to start in the next cycle. Returns whether it is looked
    /// at then.
    #[inline(always)]
    pub fn end_switch(&mut self, switch: u32, ready: u64) -> bool {
        self.switches[switch as usize].ready = ready;
        ready != 0
    }

    /// Whether a switch's output with the bit `bit` takes several packets at a time.
    #[inline]
    pub fn is_parallel(&self, place: &Place, bit: u32) -> bool {
        self.outputs[place.output(bit) as usize].is_parallel
    }

    /// The link at whose end `queue` is.
    pub fn link_of(&self, queue: u32) -> LinkId {
        let lane = self.inputs[self.number.port(queue) as usize].first_lane;
        self.outputs[self.owners[lane as usize] as usize].link
    }

    /// The output that is `link`.
    #[inline]
    pub fn output_of(&self, link: LinkId) -> u32 {
        self.output_of[link]
    }

    /// The first packet of `queue`.
    #[inline]
    pub fn packet(&self, queue: u32) -> PacketId {
        self.queues[queue as usize].first
    }

    #[inline]
    pub fn lane(&self, output: u32, vl: u32) -> usize {
        let Output { first_lane, stride, .. } = self.outputs[output as usize];
        (first_lane + u32::from(stride) * vl) as usize
    }

    /// Credits of `vl` of `output` that nobody has in mind in the cycle `now`.
    #[inline]
    pub fn unclaimed(&self, output: u32, vl: u32, now: u64) -> i64 {
        self.lanes[self.lane(output, vl)].unclaimed(now, self.flit)
    }

    /// Has `output` look when `need` credits are free on `vl`, or when something is known of them.
    fn await_credits(&mut self, output: u32, vl: u32, need: u32) {
        let index = self.lane(output, vl);
        let lane = &mut self.lanes[index];
        match lane.free_from(need, self.flit) {
            Some(at) => self.wake(output, at),
            None => lane.is_awaited = true,
        }
    }

    /// From `at` on outputs count in another interval, of `interval_ps` picoseconds: what each has counted is `told`.
    #[inline(never)]
    pub fn turn_interval(&mut self, at: SimTime, interval_ps: u64, mut told: impl FnMut(LinkId, Traffic)) {
        let end = self.interval_end;
        for output in &mut self.outputs {
            let (bytes, packets) = (std::mem::take(&mut output.bytes), std::mem::take(&mut output.packets));
            told(output.link, Traffic { end, bytes, packets });
        }
        self.interval_end = SimTime((at.0 / interval_ps + 1).saturating_mul(interval_ps));
    }

    /// When the interval ends of which outputs count what starts.
    pub const fn interval_end(&self) -> SimTime {
        self.interval_end
    }

    /// What started on `link` in the present interval.
    pub fn traffic(&self, link: LinkId) -> Traffic {
        let output = self.outputs.get(self.output_of[link] as usize);
        let (bytes, packets) = output.map_or((0, 0), |output| (output.bytes, output.packets));
        Traffic { end: self.interval_end, bytes, packets }
    }

    /// Flits that have started on each lane of each link, link by link, where links have `vls` VLs.
    pub fn flits(&self, vls: u32) -> impl Iterator<Item = u64> {
        let lanes = self.output_of.iter().flat_map(move |output| (0..vls).map(move |vl| (*output, vl)));
        lanes.map(|(output, vl)| {
            if output as usize >= self.outputs.len() {
                return 0;
            }
            let lane = self.lane(output, vl);
            u64::from(self.overflows[lane]) << 32 | u64::from(self.lanes[lane].flits)
        })
    }

    /// The most credits that packets of a VL held at the end of `link`.
    pub fn held_most(&self, link: LinkId, vl: u32) -> u32 {
        let output = self.outputs.get(self.output_of[link] as usize);
        output.map_or(0, |output| self.queues[(output.first_queue + vl) as usize].held_most)
    }
}

/// The VL behind `vl`.
#[inline]
const fn next_of(vl: u32) -> u8 {
    (vl + 1) as u8
}

/// The set bits of `mask`, from the lowest on.
#[inline]
fn bits(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros();
        (mask != 0).then(|| {
            mask &= mask - 1;
            bit
        })
    })
}
