//! A network in which all happens in cycles: all links take the same whole time for a flit, which is the cycle, and whatever else takes time
//! takes whole cycles.
//!
//! Then what comes in a cycle is a list, and nothing is sorted; and a switch chooses and arbitrates at one go, by bits of its queues and
//! links. What it computes is what events compute (`choice`, `arbitration`, `sending`, `receiving`, `hosts`), to the bit. Packets and
//! observers are seen to in `cycles`.

mod lane;
mod layout;
mod ring;

use super::lanes::Numbering;
use crate::fabric::ids::{LaneId, PacketId};
use crate::time::SimTime;
use crate::topology::LinkId;
use lane::LaneEnds;
pub(super) use layout::Sizes;
pub(super) use ring::Head;
use ring::{Back, Due, Ring};
use typed_index_collections::TiVec;

/// Of a link for which no look is on the way.
const NEVER: u64 = u64::MAX;

/// A link.
#[derive(Clone, Copy)]
pub(super) struct Port {
    /// The cycle from which it is free.
    free_at: u64,
    /// The earliest cycle in which it looks again; [`NEVER`] if none is known.
    wake: u64,
    /// The switch or the host at which it begins, and the switch at which it ends; each counted from 0 on.
    pub from: u32,
    to: u32,
    /// The VL at which the next arbitration begins.
    turn: u32,
    /// The VLs for which somebody asks, a bit each.
    asking: u16,
    /// Its bit among the links that begin at its switch, and that of its VL 0 among the queues where it ends.
    bit: u8,
    first_bit: u8,
    /// Cycles from the start of a packet until it can be the head of its queue; to a host, until its last flit has arrived, less its flits.
    ahead: u8,
    /// Cycles that credits are on their way.
    back: u8,
    from_host: bool,
    pub to_host: bool,
    /// Of a host's link: whether it is in the list of those that may send.
    is_listed: bool,
}

/// A switch.
#[derive(Clone, Copy)]
struct Switch {
    /// Queues whose heads choose in this cycle, a bit each.
    heads: u128,
    /// Links that are free and may have a packet to start, a bit each.
    ready: u64,
    /// Where its links begin among `outputs`, and among `inputs`.
    outputs: u32,
    inputs: u32,
    /// Whether it is in the list of those at which something is to be decided.
    is_listed: bool,
}

/// A network in cycles.
pub(super) struct Clocked {
    /// In picoseconds.
    cycle_ps: u64,
    /// Bytes of a flit.
    flit: u32,
    number: Numbering,
    /// Queues of an input that may ask for one VL of a link: those of the classes of its service level.
    classes: u32,
    pub ring: Ring,
    pub ends: TiVec<LaneId, LaneEnds>,
    /// How often the count of each lane's flits began again.
    overflows: TiVec<LaneId, u32>,
    pub ports: TiVec<LinkId, Port>,
    switches: Vec<Switch>,
    /// The links that begin at each switch, and those that end there, in order.
    outputs: Vec<LinkId>,
    inputs: Vec<LinkId>,
    /// Switches at which something is to be decided.
    pub working: Vec<u32>,
    /// Links of hosts that may have a packet to start.
    pub sending: Vec<LinkId>,
    /// Heads and arrivals so far.
    pub events: u64,
}

/// A packet that a link takes: the VL on which it leaves, and its queue.
#[derive(Clone, Copy)]
pub(super) struct Taken {
    pub vl: u32,
    pub queue: LaneId,
    /// The queue's bit in the mask of the lane.
    bit: u8,
}

impl Clocked {
    /// The number of the cycle that begins at `at`.
    #[inline]
    pub const fn cycle(&self, at: SimTime) -> u64 {
        at.0 / self.cycle_ps
    }

    /// When something comes next, or is to be decided.
    pub fn next_time(&self) -> Option<SimTime> {
        self.ring.next().map(|cycle| SimTime(cycle.saturating_mul(self.cycle_ps)))
    }

    /// Whether something is to be decided in the present cycle.
    pub fn has_work(&self) -> bool {
        !self.working.is_empty() || !self.sending.is_empty()
    }

    /// The cycle that begins at `at` begins: sees credits, heads and links that come, and returns what else does.
    pub fn begin(&mut self, at: SimTime) -> Due {
        let now = self.cycle(at);
        let due = self.ring.take(now);
        for Back { lane, flits, credits } in &due.backs {
            let state = &mut self.ends[*lane].sender;
            state.give_back(now, (*flits, *credits));
            if state.is_awaited {
                state.is_awaited = false;
                self.look(self.number.link(*lane), now);
            }
        }
        for Head { switch, bit } in &due.heads {
            self.switches[*switch as usize].heads |= 1 << bit;
            self.list(*switch);
        }
        for link in &due.looks {
            let port = &mut self.ports[*link];
            if port.wake == now {
                port.wake = NEVER;
                self.look(*link, now);
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

    /// Something is to be decided at `switch`.
    #[inline]
    fn list(&mut self, switch: u32) {
        let state = &mut self.switches[switch as usize];
        if !state.is_listed {
            state.is_listed = true;
            self.working.push(switch);
        }
    }

    /// `link` may find a packet to start, as soon as it is free.
    fn look(&mut self, link: LinkId, now: u64) {
        let port = &mut self.ports[link];
        if port.free_at > now {
            let free_at = port.free_at;
            self.wake(link, free_at);
        } else if !port.from_host {
            let (switch, bit) = (port.from, port.bit);
            self.switches[switch as usize].ready |= 1 << bit;
            self.list(switch);
        } else if !port.is_listed {
            port.is_listed = true;
            self.sending.push(link);
        }
    }

    /// Has `link` look in the cycle `at`, unless it will earlier.
    #[inline]
    fn wake(&mut self, link: LinkId, at: u64) {
        let port = &mut self.ports[link];
        if at < port.wake {
            port.wake = at;
            self.ring.at(at).looks.push(link);
        }
    }

    /// The host of `link` has a packet for `vl` of it in the cycle `now`.
    pub fn host_asks(&mut self, link: LinkId, vl: u8, now: u64) {
        self.ports[link].asking |= 1 << vl;
        self.look(link, now);
    }

    /// The host of `link` has no more packets for `vl` of it.
    pub fn host_asks_no_more(&mut self, link: LinkId, vl: u32) {
        self.ports[link].asking &= !(1 << vl);
    }

    /// The VL whose turn it is at the `link` of a host, of those whose first packets find the credits that they need, as `need` says; `None`
    /// without one: then it waits.
    pub fn host_turn(&mut self, link: LinkId, now: u64, need: impl Fn(u32) -> u32) -> Option<u32> {
        for mut vls in self.ports[link].asking_in_turn() {
            while vls != 0 {
                let vl = vls.trailing_zeros();
                vls &= vls - 1;
                if self.ends[self.number.lane(link, vl)].sender.free(now, self.flit) >= i64::from(need(vl)) {
                    self.ports[link].turn = vl + 1;
                    return Some(vl);
                }
            }
        }
        for vl in bits(self.ports[link].asking.into()) {
            self.await_credits(link, vl, need(vl));
        }
        self.ports[link].is_listed = false;
        None
    }

    /// A packet of `flits` flits has started on the `link` of a host. Returns whether it is looked at in the next cycle.
    pub fn host_stays(&mut self, link: LinkId, now: u64, flits: u16) -> bool {
        let port = &mut self.ports[link];
        port.free_at = now + u64::from(flits);
        port.is_listed = port.asking != 0 && flits == 1;
        let (is_listed, free_at) = (port.is_listed, port.free_at);
        if !is_listed && port.asking != 0 {
            self.wake(link, free_at);
        }
        is_listed
    }

    /// The queues of `switch` whose heads choose, a bit each: they are taken out.
    #[inline]
    pub fn take_heads(&mut self, switch: u32) -> u128 {
        std::mem::take(&mut self.switches[switch as usize].heads)
    }

    /// The links of `switch` that may have a packet to start, a bit each.
    #[inline]
    pub fn ready(&self, switch: u32) -> u64 {
        self.switches[switch as usize].ready
    }

    /// Whether `switch` has links that may have a packet to start in the next cycle: else it is not looked at then.
    #[inline]
    pub fn stays(&mut self, switch: u32) -> bool {
        let state = &mut self.switches[switch as usize];
        state.is_listed = state.ready != 0;
        state.is_listed
    }

    /// The link of `switch` whose bit is `bit`.
    #[inline]
    pub fn output(&self, switch: u32, bit: u32) -> LinkId {
        self.outputs[(self.switches[switch as usize].outputs + bit) as usize]
    }

    /// The queue of `switch` whose bit is `bit`.
    #[inline]
    pub fn queue(&self, switch: u32, bit: u32) -> LaneId {
        let (slot, vl) = self.number.of_bit(bit);
        self.number.lane(self.inputs[(self.switches[switch as usize].inputs + slot) as usize], vl)
    }

    /// Credits of a VL of `link` that nobody has in mind in the cycle `now`.
    #[inline]
    pub fn unclaimed(&self, link: LinkId, vl: u32, now: u64) -> i64 {
        self.ends[self.number.lane(link, vl)].sender.unclaimed(now, self.flit)
    }

    /// The head of `queue`, that of `switch` whose bit is `bit`, of so many credits, asks for `vl` of `link` in the cycle `now`, and needs `need`
    /// credits there.
    #[inline]
    pub fn ask(
        &mut self,
        (Head { switch, bit }, queue): (Head, LaneId),
        (link, vl): (LinkId, u32),
        (credits, need): (u16, u32),
        now: u64,
    ) {
        self.ends[queue].queue.need = need;
        let (slot, from_vl) = self.number.of_bit(bit);
        let lane = &mut self.ends[self.number.lane(link, vl)].sender;
        lane.mask |= 1 << (slot * self.classes + if self.classes == 1 { 0 } else { from_vl % self.classes });
        lane.claim(credits);
        let port = &mut self.ports[link];
        port.asking |= 1 << vl;
        if port.free_at <= now {
            self.switches[switch as usize].ready |= 1 << port.bit;
        } else {
            let free_at = port.free_at;
            self.wake(link, free_at);
        }
    }

    /// What the `link` of `switch`, which is free, takes in the cycle `now`: the next VL with a head that finds its credits, and of that the next
    /// head; `None` without one: then it waits.
    #[inline]
    pub fn turn(&mut self, switch: u32, link: LinkId, now: u64) -> Option<Taken> {
        let inputs = self.switches[switch as usize].inputs as usize;
        for mut vls in self.ports[link].asking_in_turn() {
            while vls != 0 {
                let vl = vls.trailing_zeros();
                vls &= vls - 1;
                let lane = &self.ends[self.number.lane(link, vl)].sender;
                let found = self.first_that_finds(lane.free(now, self.flit), (lane.mask, lane.begin), inputs, vl);
                if let Some((bit, queue)) = found {
                    self.ports[link].turn = vl + 1;
                    return Some(Taken { vl, queue, bit });
                }
            }
        }
        self.wait(switch, link);
        None
    }

    /// The first queue of `mask`, from bit `begin` on and once around, whose head needs no more than the `free` credits of VL `vl`.
    #[inline]
    fn first_that_finds(&self, free: i64, (mask, begin): (u64, u8), inputs: usize, vl: u32) -> Option<(u8, LaneId)> {
        let later = mask & (u64::MAX << begin);
        for mut queues in [later, mask & !later] {
            while queues != 0 {
                let bit = queues.trailing_zeros();
                let queue = self.queue_of(inputs, vl, bit);
                if i64::from(self.ends[queue].queue.need) <= free {
                    return Some((u8::try_from(bit).unwrap_or(0), queue));
                }
                queues &= queues - 1;
            }
        }
        None
    }

    /// The queue whose bit is `bit` in the masks of VL `vl` of the links of a switch whose inputs begin at `inputs`.
    #[inline]
    fn queue_of(&self, inputs: usize, vl: u32, bit: u32) -> LaneId {
        if self.classes == 1 {
            return self.number.lane(self.inputs[inputs + bit as usize], vl);
        }
        let input = self.inputs[inputs + (bit / self.classes) as usize];
        self.number.lane(input, vl / self.classes * self.classes + bit % self.classes)
    }

    /// The `link` of `switch` finds no credits for what asks for it, and waits for some.
    #[inline(never)]
    fn wait(&mut self, switch: u32, link: LinkId) {
        let Port { asking, bit, .. } = self.ports[link];
        let state = &mut self.switches[switch as usize];
        state.ready &= !(1 << bit);
        let inputs = state.inputs as usize;
        for vl in bits(asking.into()) {
            let mask = self.ends[self.number.lane(link, vl)].sender.mask;
            let needs = bits(mask).map(|bit| self.ends[self.queue_of(inputs, vl, bit)].queue.need);
            if let Some(need) = needs.min() {
                self.await_credits(link, vl, need);
            }
        }
    }

    /// Has `link` look when `need` credits are free on `vl`, or when something is known of them.
    fn await_credits(&mut self, link: LinkId, vl: u32, need: u32) {
        let lane = &mut self.ends[self.number.lane(link, vl)].sender;
        match lane.free_from(need, self.flit) {
            Some(at) => self.wake(link, at),
            None => lane.is_awaited = true,
        }
    }

    /// The packet that was `taken`, of so many flits and credits, starts in the cycle `now` on the `link` of `switch`.
    #[inline]
    pub fn leaves(&mut self, switch: u32, link: LinkId, taken: Taken, (flits, credits): (u16, u16), now: u64) {
        let lane = &mut self.ends[self.number.lane(link, taken.vl)].sender;
        lane.mask &= !(1 << taken.bit);
        lane.begin = (taken.bit + 1) % 64;
        lane.disclaim(credits);
        let is_left = lane.mask != 0;
        let port = &mut self.ports[link];
        if !is_left {
            port.asking &= !(1 << taken.vl);
        }
        port.free_at = now + u64::from(flits);
        let free_at = port.free_at;
        if port.asking == 0 || flits > 1 {
            self.switches[switch as usize].ready &= !(1 << port.bit);
            if port.asking != 0 {
                self.wake(link, free_at);
            }
        }
    }

    /// The first packet of `queue` starts in the cycle `now`; `next` is behind it, and can be the head from the cycle `comes` on. Its credits
    /// go back.
    #[inline]
    pub fn gives(&mut self, queue: LaneId, (flits, credits): (u16, u16), (next, comes): (PacketId, u64), now: u64) {
        let ended = now + u64::from(flits);
        self.ends[queue].queue.gives(credits, ended, next);
        let port = &self.ports[self.number.link(queue)];
        let told = now + 1 + u64::from(port.back);
        if next != PacketId::NONE {
            let head = Head { switch: port.to, bit: u32::from(port.first_bit) + self.number.vl(queue) };
            self.ring.at(comes.max(ended)).heads.push(head);
        }
        self.ring.at(told).backs.push(Back { lane: queue, flits, credits });
    }

    /// Packet `id`, of so many flits and credits, starts in the cycle `now` on `lane` to a host, which reads it as it arrives.
    #[inline]
    pub fn starts_to_host(&mut self, lane: LaneId, id: PacketId, (flits, credits): (u16, u16), now: u64) {
        if self.ends[lane].sender.start((flits, credits)) {
            self.overflows[lane] += 1;
        }
        let port = &self.ports[self.number.link(lane)];
        let delay = now + u64::from(port.ahead);
        let told = delay + 1 + u64::from(port.back);
        self.ring.at(delay + u64::from(flits)).arrived.push(id);
        self.ring.at(told).backs.push(Back { lane, flits, credits });
    }

    /// Packet `id`, of so many flits and credits, starts in the cycle `now` on `lane` to a switch. Returns the cycle from which it can be the
    /// head of its queue, and the packet in front of it, if there is one.
    #[inline]
    pub fn starts_to_switch(
        &mut self,
        lane: LaneId,
        id: PacketId,
        (flits, credits): (u16, u16),
        now: u64,
    ) -> (u64, Option<PacketId>) {
        if self.ends[lane].sender.start((flits, credits)) {
            self.overflows[lane] += 1;
        }
        let port = &self.ports[self.number.link(lane)];
        let comes = now + u64::from(port.ahead);
        let queue = &mut self.ends[lane].queue;
        queue.takes(credits, now);
        let before = std::mem::replace(&mut queue.last, id);
        if before != PacketId::NONE {
            return (comes, Some(before));
        }
        queue.first = id;
        let head = Head { switch: port.to, bit: u32::from(port.first_bit) + self.number.vl(lane) };
        let at = comes.max(queue.left_at);
        self.ring.at(at).heads.push(head);
        (comes, None)
    }

    /// Flits that have started on each lane of each link, link by link, where links have `vls` VLs.
    pub fn flits(&self, vls: u32) -> impl Iterator<Item = u64> {
        let lanes = self.ends.keys().zip(self.ends.iter().zip(&self.overflows));
        let lanes = lanes.filter(move |(lane, _)| self.number.vl(*lane) < vls);
        lanes.map(|(_, (ends, overflows))| u64::from(*overflows) << 32 | u64::from(ends.sender.flits))
    }
}

impl Port {
    /// The VLs for which somebody asks, a bit each: from the one on whose turn it is, then those before it.
    #[inline]
    fn asking_in_turn(&self) -> [u32; 2] {
        let asking = u32::from(self.asking);
        let later = asking & (u32::MAX << self.turn);
        [later, asking & !later]
    }
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
