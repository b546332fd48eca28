//! Links take one of the packets that ask for them: first the VL is arbitrated, then the input.

use super::arbiter::GrantedVl;
use super::buffer_policy::BufferPolicy;
use super::input_arbiter::{Contender, Contest, InputArbiter};
use super::lanes::{Lanes, Numbering};
use super::link_numbers::LinkNumbers;
use super::packet::Packet;
use super::strategies::Strategies;
use super::{Credit, NO_MASKS, OutputLink};
use crate::count::count;
use crate::fabric::ids::{LaneId, PacketId};
use crate::fabric::packet::Observer;
use crate::fabric::slab::Slab;
use crate::kernel::random::{draw, unit};
use crate::time::SimTime;
use crate::topology::LinkId;
use typed_index_collections::TiVec;

impl<O: Observer, S: Strategies> Credit<O, S> {
    /// The head of `queue` is ready: its link has to look, as soon as it is free.
    #[inline(always)]
    pub(super) fn ask(&mut self, queue: LaneId, now: SimTime) {
        let buffer = &mut self.lanes.ends[queue].buffer;
        buffer.since = now;
        let lane = buffer.chosen;
        let (link, vl) = (self.number.link(lane), self.number.vl(lane));
        let bit = self.bit_of(queue);
        let state = &mut self.links[link];
        state.asking |= 1 << vl;
        if state.masks == NO_MASKS {
            self.lanes.ends[lane].sender.mask |= 1 << bit;
        } else {
            self.masks[(state.masks + vl * u32::from(state.words) + bit / 64) as usize] |= 1 << (bit % 64);
        }
        let free_at = state.free_at;
        if free_at > now {
            self.wake(link, free_at);
        } else {
            self.look(link);
        }
    }

    /// The bit of `queue` in the masks of the lanes for which it may ask.
    #[inline(always)]
    pub(super) fn bit_of(&self, queue: LaneId) -> u32 {
        let slot = self.links[self.number.link(queue)].slot;
        if self.stride == 1 { slot } else { slot * self.stride + self.number.vl(queue) % self.stride }
    }

    /// The queue whose bit is `bit` in the masks of VL `vl` of a link whose sender's inputs begin at `inputs`.
    #[inline(always)]
    pub(super) fn queue_of(&self, inputs: u32, vl: u32, bit: u32) -> LaneId {
        queue_of(self.number, self.stride, &self.inputs[inputs as usize..], vl, bit)
    }

    /// The masks of the queues that ask for `link` and `vl`.
    pub(super) fn asking_masks(&self, link: LinkId, vl: u32) -> Vec<u64> {
        let state = &self.links[link];
        if state.masks == NO_MASKS {
            return vec![self.lanes.ends[self.number.lane(link, vl)].sender.mask];
        }
        let words = usize::from(state.words);
        let first = state.masks as usize + vl as usize * words;
        self.masks[first..first + words].to_vec()
    }

    /// The bit of the queue that is next among those that ask for `id` and `vl` and find their credits; or how many credits
    /// have to be there until one of them does.
    #[inline(always)]
    fn next_input(&mut self, id: LinkId, vl: u32, now: SimTime) -> Result<u32, u32> {
        let link = &self.links[id];
        if link.from_host {
            return self.next_at_host(id, vl, now);
        }
        if link.masks != NO_MASKS {
            return self.next_of_many(id, vl, now);
        }
        let lane = self.number.lane(id, vl);
        let sender = &self.lanes.ends[lane].sender;
        let asking = AskingWord::new(sender.mask, sender.begin.into());
        self.contest(asking, link.inputs, lane, vl, now)
    }

    /// The same of a host, which has one queue for each VL: the class on which its packet starts.
    fn next_at_host(&mut self, id: LinkId, vl: u32, now: SimTime) -> Result<u32, u32> {
        let need = self.host_need(self.links[id].inputs, vl);
        if self.classes_at_hosts > 1 {
            return self.class_at_host(id, vl, need, now).ok_or(need);
        }
        if self.lanes.has(self.number.lane(id, vl), need, now) { Ok(0) } else { Err(need) }
    }

    /// The same where a mask has several words.
    fn next_of_many(&mut self, id: LinkId, vl: u32, now: SimTime) -> Result<u32, u32> {
        let lane = self.number.lane(id, vl);
        let link = &self.links[id];
        let words = usize::from(link.words);
        let first = link.masks as usize + vl as usize * words;
        let (inputs, begin) = (link.inputs, self.lanes.ends[lane].sender.begin.into());
        let masks = std::mem::take(&mut self.masks);
        let taken = self.contest(Asking::new(&masks[first..first + words], begin), inputs, lane, vl, now);
        self.masks = masks;
        taken
    }

    /// What the arbiter takes of the queues of `asking`, whose switch's inputs begin at `inputs`.
    #[inline(always)]
    fn contest<A: Bits + Clone>(
        &mut self,
        asking: A,
        inputs: u32,
        lane: LaneId,
        vl: u32,
        now: SimTime,
    ) -> Result<u32, u32> {
        if self.transit_priority > 0.0 && self.transit_first(lane, now) {
            return self.contest_by_origin(asking, inputs, lane, vl, now);
        }
        self.contest_of_all(asking, inputs, lane, vl, now)
    }

    /// Whether heads from other switches go before those of a host at this arbitration of `lane`.
    pub(super) fn transit_first(&self, lane: LaneId, now: SimTime) -> bool {
        let place = TRANSIT + 16 * u64::from(self.number.link(lane).0) + u64::from(self.number.vl(lane));
        unit(draw(self.seed, place, now.0)) < self.transit_priority
    }

    /// The same as [`Self::contest`], of heads from other switches; only where none of them may start of those of hosts.
    #[inline(never)]
    fn contest_by_origin<A: Bits + Clone>(
        &mut self,
        asking: A,
        inputs: u32,
        lane: LaneId,
        vl: u32,
        now: SimTime,
    ) -> Result<u32, u32> {
        let mut least_need = u32::MAX;
        for from_host in [false, true] {
            let inputs = &self.inputs[inputs as usize..];
            let bits = asking.clone();
            let contest = LaneContest {
                asking: OfOrigin { bits, from_host, stride: self.stride, inputs, links: &self.links },
                lane,
                vl,
                now,
                seed: self.seed,
                number: self.number,
                links: &self.link_numbers,
                stride: self.stride,
                inputs,
                lanes: &mut self.lanes,
                packets: &self.packets,
                least_need: u32::MAX,
            };
            match contest.input(&self.input_arbiter) {
                Ok(bit) => return Ok(bit),
                Err(need) => least_need = least_need.min(need),
            }
        }
        Err(least_need)
    }

    #[inline(always)]
    fn contest_of_all<A: Bits>(
        &mut self,
        asking: A,
        inputs: u32,
        lane: LaneId,
        vl: u32,
        now: SimTime,
    ) -> Result<u32, u32> {
        let contest = LaneContest {
            asking,
            lane,
            vl,
            now,
            seed: self.seed,
            number: self.number,
            links: &self.link_numbers,
            stride: self.stride,
            inputs: &self.inputs[inputs as usize..],
            lanes: &mut self.lanes,
            packets: &self.packets,
            least_need: u32::MAX,
        };
        contest.input(&self.input_arbiter)
    }

    /// Starts one of the packets that ask for `link`, if it is free and credits are there; else has it look again when
    /// that may be.
    pub(super) fn arbitrate(&mut self, link: LinkId, now: SimTime) {
        let state = &self.links[link];
        let (asking, free_at) = (state.asking, state.free_at);
        if asking == 0 {
            return;
        }
        if state.parallel {
            if state.from_host {
                self.inject_all(link, now);
            } else {
                self.start_all(link, now);
            }
            return;
        }
        if free_at > now {
            self.wake(link, free_at);
            return;
        }
        let mut found = [0u32; 16];
        let mut may = 0u16;
        let mut vls = asking;
        while vls != 0 {
            let vl = vls.trailing_zeros();
            vls &= vls - 1;
            match self.next_input(link, vl, now) {
                Ok(bit) => {
                    may |= 1 << vl;
                    found[vl as usize] = bit;
                }
                Err(least) => found[vl as usize] = least,
            }
        }
        if may == 0 {
            if self.loses_heads && self.links[link].from_host {
                self.lose_head(link, now);
            } else {
                self.wait_for_all(link, asking, &found);
            }
            return;
        }
        let state = &mut self.links[link];
        let given = self.tables.give(&mut state.turns, may, free_at < now);
        self.begin(link, given, found[usize::from(given.vl)], now);
    }

    /// Has `link` look again when a packet may find its credits that asks for one of the VLs `asking`, each of which needs what
    /// `needs` says.
    fn wait_for_all(&mut self, link: LinkId, asking: u16, needs: &[u32; 16]) {
        let mut vls = asking;
        while vls != 0 {
            let vl = vls.trailing_zeros();
            vls &= vls - 1;
            self.wait_for_any(link, vl, needs[vl as usize]);
        }
    }

    /// Starts all packets that ask for `link`, which takes one of each queue at a time.
    fn start_all(&mut self, link: LinkId, now: SimTime) {
        while self.links[link].asking != 0 {
            let vl = self.links[link].asking.trailing_zeros();
            let Ok(bit) = self.next_input(link, vl, now) else { return };
            self.leave_queue(link, vl, bit, now);
        }
    }

    /// Has `link` look again when a packet that asks for `vl` may find `need` credits.
    fn wait_for_any(&mut self, link: LinkId, vl: u32, need: u32) {
        let classes = if self.links[link].from_host { self.classes_at_hosts } else { 1 };
        for class in 0..classes {
            self.wait_for(self.number.lane(link, vl + class), need);
        }
    }

    /// Starts the packet with bit `bit` of the VL that was given the turn.
    #[inline(always)]
    fn begin(&mut self, link: LinkId, given: GrantedVl, bit: u32, now: SimTime) {
        let vl = u32::from(given.vl);
        let started = if self.links[link].from_host {
            self.leave_host(link, vl, bit, now).map(|(flits, credits, _)| (flits, credits))
        } else {
            self.leave_queue(link, vl, bit, now)
        };
        let Some((flits, credits)) = started else { return };
        let bytes = u32::try_from(u64::from(flits) * self.flit).unwrap_or(u32::MAX);
        self.tables.started(&mut self.links[link].turns, given, credits.into(), bytes);
    }
}

/// The queue whose bit is `bit` in the masks of VL `vl` of a link whose sender's inputs are `inputs`.
#[inline(always)]
fn queue_of(number: Numbering, stride: u32, inputs: &[LinkId], vl: u32, bit: u32) -> LaneId {
    if stride == 1 {
        return number.lane(inputs[bit as usize], vl);
    }
    number.lane(inputs[(bit / stride) as usize], vl / stride * stride + bit % stride)
}

/// The set bits of a mask, from one of them on and once around.
pub(super) trait Bits {
    /// The next one.
    fn next(&mut self) -> Option<u32>;
}

/// Those of a mask of one word.
#[derive(Clone)]
struct AskingWord {
    /// What is left behind the beginning, then before it.
    bits: u64,
    earlier: u64,
}

impl AskingWord {
    #[inline(always)]
    const fn new(mask: u64, begin: u32) -> Self {
        let bits = mask & (u64::MAX << begin);
        Self { bits, earlier: mask & !bits }
    }
}

impl Bits for AskingWord {
    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        if self.bits == 0 {
            (self.bits, self.earlier) = (self.earlier, 0);
            if self.bits == 0 {
                return None;
            }
        }
        let bit = self.bits.trailing_zeros();
        self.bits &= self.bits - 1;
        Some(bit)
    }
}

/// Those of a mask of several words.
#[derive(Clone)]
pub(super) struct Asking<'a> {
    masks: &'a [u64],
    /// What is left of the present word.
    bits: u64,
    word: usize,
    /// Words that were begun before this one.
    round: usize,
    begin: u32,
}

impl<'a> Asking<'a> {
    #[inline(always)]
    pub fn new(masks: &'a [u64], begin: u32) -> Self {
        let word = begin as usize / 64;
        Self { masks, bits: masks[word] & (u64::MAX << (begin % 64)), word, round: 0, begin }
    }
}

impl Bits for Asking<'_> {
    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        while self.bits == 0 {
            if self.round == self.masks.len() {
                return None;
            }
            self.round += 1;
            self.word = if self.word + 1 == self.masks.len() { 0 } else { self.word + 1 };
            self.bits = self.masks[self.word];
            if self.round == self.masks.len() {
                // The first word again, for what lies before the beginning.
                self.bits &= !(u64::MAX << (self.begin % 64));
            }
        }
        let bit = self.bits.trailing_zeros();
        self.bits &= self.bits - 1;
        Some(count(self.word) * 64 + bit)
    }
}

/// Those of `bits` that stand for queues of packets from hosts, or from other switches.
struct OfOrigin<'a, A> {
    bits: A,
    from_host: bool,
    stride: u32,
    inputs: &'a [LinkId],
    links: &'a TiVec<LinkId, OutputLink>,
}

impl<A: Bits> Bits for OfOrigin<'_, A> {
    fn next(&mut self) -> Option<u32> {
        loop {
            let bit = self.bits.next()?;
            if self.links[self.inputs[(bit / self.stride) as usize]].from_host == self.from_host {
                return Some(bit);
            }
        }
    }
}

/// Where it is drawn which packets go first: behind the places of links and switches.
const TRANSIT: u64 = 1 << 61;

/// The heads of a switch that ask for a lane.
struct LaneContest<'a, B, A> {
    asking: A,
    lane: LaneId,
    vl: u32,
    now: SimTime,
    seed: u64,
    number: Numbering,
    links: &'a LinkNumbers,
    stride: u32,
    inputs: &'a [LinkId],
    lanes: &'a mut Lanes<B>,
    packets: &'a Slab<PacketId, Packet>,
    /// The least that one of those needs that did not find its credits.
    least_need: u32,
}

/// What arbiters may know of the heads of queues.
pub(super) struct Heads<'a, B> {
    pub lanes: &'a Lanes<B>,
    pub packets: &'a Slab<PacketId, Packet>,
    pub number: Numbering,
    pub links: &'a LinkNumbers,
    pub seed: u64,
    pub now: SimTime,
}

impl<B> Heads<'_, B> {
    #[inline(always)]
    fn head(&self, contender: Contender) -> &Packet {
        self.packets.get(self.lanes.ends[LaneId(contender.queue)].buffer.first)
    }

    #[inline(always)]
    pub fn asks_since(&self, contender: Contender) -> SimTime {
        self.lanes.ends[LaneId(contender.queue)].buffer.since
    }

    #[inline(always)]
    pub fn injected(&self, contender: Contender) -> SimTime {
        self.head(contender).left
    }

    #[inline(always)]
    pub fn waiting_flits(&self, contender: Contender) -> u64 {
        let mut packet = self.head(contender);
        let mut flits = u64::from(packet.flits);
        while packet.next != PacketId::NONE {
            packet = self.packets.get(packet.next);
            if packet.first > self.now {
                break;
            }
            flits += u64::from(packet.flits);
        }
        flits
    }

    #[inline(always)]
    pub fn draw(&self, contender: Contender) -> u64 {
        let queue = LaneId(contender.queue);
        let link = self.links.global(self.number.link(queue));
        let place = (1 << 62) + u64::from(link.0) * 16 + u64::from(self.number.vl(queue));
        draw(self.seed, place, self.now.0)
    }
}

impl<B: BufferPolicy, A: Bits> LaneContest<'_, B, A> {
    /// The bit of the queue that `arbiter` takes; or how many credits have to be there until it takes one.
    #[inline(always)]
    fn input(mut self, arbiter: &impl InputArbiter) -> Result<u32, u32> {
        arbiter.take(&mut self).map(|taken| taken.position).ok_or(self.least_need)
    }

    #[inline(always)]
    fn heads(&self) -> Heads<'_, B> {
        let Self { packets, number, links, seed, now, .. } = *self;
        Heads { lanes: self.lanes, packets, number, links, seed, now }
    }
}

impl<B: BufferPolicy, A: Bits> Contest for LaneContest<'_, B, A> {
    #[inline(always)]
    fn next(&mut self) -> Option<Contender> {
        while let Some(position) = self.asking.next() {
            let queue = queue_of(self.number, self.stride, self.inputs, self.vl, position);
            let need = self.lanes.ends[queue].buffer.need;
            // What is not there for one is not there for another that needs as much.
            if need < self.least_need {
                if self.lanes.has(self.lane, need, self.now) {
                    return Some(Contender { position, queue: queue.0 });
                }
                self.least_need = need;
            }
        }
        None
    }

    #[inline(always)]
    fn asks_since(&self, contender: Contender) -> SimTime {
        self.heads().asks_since(contender)
    }

    #[inline(always)]
    fn injected(&self, contender: Contender) -> SimTime {
        self.heads().injected(contender)
    }

    #[inline(always)]
    fn waiting_flits(&self, contender: Contender) -> u64 {
        self.heads().waiting_flits(contender)
    }

    #[inline(always)]
    fn draw(&self, contender: Contender) -> u64 {
        self.heads().draw(contender)
    }
}
