//! Lanes: one virtual lane of one link as its sender knows it, and the credits that it knows to be free.
//!
//! No event brings a credit back. When a packet starts to leave a buffer, all instants at which its credits become free
//! and are told are certain; the sender is told of them by one [`Return`] and counts them when it looks. Only for a sender
//! that waits the instant is computed at which enough will be there.

use super::buffer_policy::BufferPolicy;
use super::buffers::Buffer;
use super::config::{CreditConfig, LaneAllocation};
use super::flit_counts::FlitCounts;
use super::link_timing::{LinkTiming, LinkTimings};
use super::returns::Return;
use crate::fabric::ids::{LaneId, ReturnId};
use crate::fabric::slab::Slab;
use crate::time::SimTime;
use crate::topology::{LinkId, NodeId};
use crate::units::DurationPs;
use typed_index_collections::TiVec;

/// VLs of a link at most.
const MAX_VLS: usize = 15;

/// What is free on a lane that needs no credits: nothing is ever taken of it.
const UNLIMITED: u32 = 1 << 30;

/// What is free on a lane that begins in another part of the network: who sends on it is not known here.
pub(super) const ELSEWHERE: u32 = u32::MAX;

/// A credit, in bytes.
pub(super) const CREDIT: u64 = 64;

/// How lanes are numbered: those of a link one after the other, and a power of two for each link, as dividing takes long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    shift: u32,
}

impl Numbering {
    /// Numbers for `vls` VLs.
    pub const fn new(vls: u32) -> Self {
        Self { shift: vls.next_power_of_two().trailing_zeros() }
    }

    /// Numbers of lanes for `things` links (or hosts).
    pub const fn count(self, things: usize) -> usize {
        things << self.shift
    }

    /// The lane of `vl` of `link`.
    #[inline]
    pub const fn lane(self, link: LinkId, vl: u32) -> LaneId {
        LaneId((link.0 << self.shift) | vl)
    }

    /// The lanes of `link`, which has `vls` VLs.
    #[inline]
    pub fn all(self, link: LinkId, vls: u32) -> impl Iterator<Item = LaneId> {
        (0..vls).map(move |vl| self.lane(link, vl))
    }

    /// The queue of messages of `vl` at host `node`.
    #[inline]
    pub const fn queue(self, node: NodeId, vl: u32) -> usize {
        ((node.0 << self.shift) | vl) as usize
    }

    /// The bit of `vl` of the link at place `slot` of a switch, among those of its queues.
    #[inline]
    pub const fn bit(self, slot: u32, vl: u32) -> u32 {
        (slot << self.shift) | vl
    }

    /// The place of the link and the VL whose bit that is.
    #[inline]
    pub const fn of_bit(self, bit: u32) -> (u32, u32) {
        (self.port(bit), self.vl_of(bit))
    }

    /// The link of `lane`.
    #[inline]
    pub const fn link(self, lane: LaneId) -> LinkId {
        LinkId(lane.0 >> self.shift)
    }

    /// The VL of `lane`.
    #[inline]
    pub const fn vl(self, lane: LaneId) -> u32 {
        lane.0 & ((1 << self.shift) - 1)
    }

    /// The number of `vl` of a `port`, where ports are numbered otherwise than links; that port, and that VL.
    #[inline]
    pub const fn at_port(self, port: u32, vl: u32) -> u32 {
        port.wrapping_shl(self.shift) | vl
    }

    #[inline]
    pub const fn port(self, number: u32) -> u32 {
        number.wrapping_shr(self.shift)
    }

    #[inline]
    pub const fn vl_of(self, number: u32) -> u32 {
        number & 1u32.wrapping_shl(self.shift).wrapping_sub(1)
    }
}

/// Both ends of a lane. They fit into one line of a cache; neither writes the other's.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct LaneEnds {
    pub sender: Lane,
    pub buffer: Buffer,
}

/// One VL of one link as its sender knows it.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    /// Queues that have chosen this lane and are ready, one bit each, where 64 bits are enough for them.
    pub mask: u64,
    /// Credits that are free of the most that it may hold, as far as was counted.
    pub free: u32,
    /// Above 0, it waits for so many, and nothing under way brings them.
    pub wanted: u32,
    /// Flits that have started, modulo 2^32.
    pub flits: u32,
    /// The bit at which an arbitration of its inputs begins.
    pub begin: u16,
    /// The packets that give credits back, in their order; how many credits of the first of these are counted.
    counted: u16,
    first_return: ReturnId,
    last_return: ReturnId,
}

/// The credits of a lane, as they are counted.
#[derive(Clone, Copy)]
struct Account {
    free: u32,
    first: ReturnId,
    counted: u32,
    /// The earliest instant at which the next update may leave.
    next_update: SimTime,
}

/// All lanes of a network.
pub(super) struct Lanes<B> {
    policy: B,
    vls: u32,
    pub ends: TiVec<LaneId, LaneEnds>,
    /// Links that take the same times share one.
    pub timings: Vec<LinkTiming>,
    /// The wire of each link.
    pub wire_of: TiVec<LinkId, u16>,
    /// Adaptive routing: what packets need that have chosen a lane and have not started. Empty with other routings.
    claimed: TiVec<LaneId, u32>,
    /// Where a lane has one packet at a time: until when that is sent which has started. Empty if lanes are shared.
    held_until: TiVec<LaneId, SimTime>,
    /// The earliest instant at which the next update of each lane may leave. Empty if that is always at once.
    next_updates: TiVec<LaneId, SimTime>,
    /// How often the count of each lane's flits began again.
    pub overflows: TiVec<LaneId, u32>,
    returns: Slab<ReturnId, Return>,
    /// Where lanes or queues are compared by them.
    flits: FlitCounts,
    number: Numbering,
    flit: u64,
    /// Least time between two updates.
    pause: DurationPs,
}

impl<B: BufferPolicy> Lanes<B> {
    /// The lanes of each link, with buffers by `policy` at their ends.
    ///
    /// `counts_flits`: whether lanes or queues are compared by flits.
    pub fn new(
        timings: LinkTimings,
        numbering: Numbering,
        config: &CreditConfig,
        (adaptive, counts_flits): (bool, bool),
        policy: B,
    ) -> Self {
        let width = config.lanes_of_a_link();
        let lane = Lane {
            mask: 0,
            free: policy.max(),
            wanted: 0,
            flits: 0,
            begin: 0,
            counted: 0,
            first_return: ReturnId::NONE,
            last_return: ReturnId::NONE,
        };
        let number = numbering.count(timings.of.len());
        let pause = config.credit_min_time;
        Self {
            policy,
            vls: width,
            ends: vec![LaneEnds { sender: lane, buffer: Buffer::EMPTY }; number].into(),
            timings: timings.timings,
            wire_of: timings.of.into(),
            claimed: if adaptive { vec![0; number].into() } else { TiVec::new() },
            held_until: match config.lane_allocation {
                LaneAllocation::Exclusive => vec![SimTime::ZERO; number].into(),
                LaneAllocation::Shared => TiVec::new(),
            },
            next_updates: if pause > DurationPs::ZERO { vec![SimTime::ZERO; number].into() } else { TiVec::new() },
            overflows: vec![0; number].into(),
            returns: Slab::default(),
            flits: FlitCounts::new(if counts_flits { number } else { 0 }),
            number: numbering,
            flit: config.flit.get(),
            pause,
        }
    }

    /// The lanes of `link` need no credits.
    pub fn unlimit(&mut self, link: LinkId) {
        self.number.all(link, self.vls).for_each(|lane| self.ends[lane].sender.free = UNLIMITED);
    }

    /// The lanes of `link` begin in another part of the network.
    pub fn begin_elsewhere(&mut self, link: LinkId) {
        self.number.all(link, self.vls).for_each(|lane| self.ends[lane].sender.free = ELSEWHERE);
    }

    /// Whether another packet has `lane`, where a lane has one at a time.
    pub fn is_held(&self, lane: LaneId, now: SimTime) -> bool {
        let Some(until) = self.held_until.get(lane) else { return false };
        self.ends[lane].sender.free < UNLIMITED && (self.claimed[lane] > 0 || *until > now)
    }

    /// A packet has `lane` until `ended`.
    #[inline]
    pub fn hold(&mut self, lane: LaneId, ended: SimTime) {
        if let Some(until) = self.held_until.get_mut(lane) {
            *until = ended;
        }
    }

    /// What is looked at of the credits of `lane`: something to wait for.
    #[inline]
    pub fn read(&self, lane: LaneId) -> u64 {
        let sender = &self.ends[lane].sender;
        let returns = sender.first_return != ReturnId::NONE;
        u64::from(sender.free) ^ if returns { self.returns.get(sender.first_return).end.0 } else { 0 }
    }

    /// Until when the packet on `lane` is sent; `None` if it has not started.
    pub fn held_until(&self, lane: LaneId) -> Option<SimTime> {
        self.held_until.get(lane).copied().filter(|_| self.claimed[lane] == 0)
    }

    /// Whether a lane has one packet at a time.
    #[inline]
    pub fn exclusive(&self) -> bool {
        !self.held_until.is_empty()
    }

    /// The times of `link`.
    #[inline]
    pub fn timing(&self, link: LinkId) -> &LinkTiming {
        &self.timings[usize::from(self.wire_of[link])]
    }

    /// Whether a lane's credits depend on those of the other lanes of its link.
    #[inline]
    pub fn shared(&self) -> bool {
        self.policy.shared()
    }

    /// Whether each lane has credits for itself, several packets at a time, told at once and counted as credits alone.
    pub fn are_plain(&self) -> bool {
        !self.shared() && !self.exclusive() && self.pause == DurationPs::ZERO && !self.counts_flits()
    }

    /// Bytes of the flits that have started on each lane of each link, link by link.
    pub fn bytes(&self) -> Vec<u64> {
        let lanes = self.ends.keys().zip(self.ends.iter().zip(&self.overflows));
        let lanes = lanes.filter(|(lane, _)| self.number.vl(*lane) < self.vls).map(|(_, lane)| lane);
        lanes
            .map(|(lane, overflows)| (u64::from(*overflows) << 32 | u64::from(lane.sender.flits)) * self.flit)
            .collect()
    }

    /// Whether `need` credits are free on `lane` at `now`.
    #[inline]
    pub fn has(&mut self, lane: LaneId, need: u32, now: SimTime) -> bool {
        let known = self.ends[lane].sender.free >= need && !self.shared();
        known || self.free(lane, now) >= need
    }

    /// Credits free on `lane` at `now`.
    #[inline]
    fn free(&mut self, lane: LaneId, now: SimTime) -> u32 {
        if self.shared() && self.ends[lane].sender.free < UNLIMITED {
            self.free_of_shared(lane, now)
        } else {
            self.count(lane, now)
        }
    }

    /// The same where the VLs of a link share its buffer.
    fn free_of_shared(&mut self, lane: LaneId, now: SimTime) -> u32 {
        let mut all = [0; MAX_VLS];
        let own = self.number.vl(lane) as usize;
        for (other, used) in self.number.all(self.number.link(lane), self.vls).zip(&mut all) {
            *used = self.policy.max() - self.count(other, now);
        }
        self.policy.free(all[own], all.into_iter().take(self.vls as usize))
    }

    /// Credits free on `lane` at `now`, less those that others have in mind.
    #[inline]
    pub fn unclaimed(&mut self, lane: LaneId, now: SimTime) -> i64 {
        i64::from(self.free(lane, now)) - i64::from(self.claimed[lane])
    }

    /// A packet that needs `credits` credits has chosen `lane`.
    #[inline]
    pub fn claim(&mut self, lane: LaneId, credits: u32) {
        self.claimed[lane] += credits;
    }

    /// A packet that has chosen `lane` starts.
    #[inline]
    pub fn disclaim(&mut self, lane: LaneId, credits: u32) {
        self.claimed[lane] -= credits;
    }

    /// Whether lanes or queues are compared by flits.
    #[inline]
    pub fn counts_flits(&self) -> bool {
        self.flits.any()
    }

    /// `packet` starts on `lane`, where flits are counted.
    #[inline]
    pub fn starts(&mut self, lane: LaneId, packet: Return) {
        self.flits.starts(lane, packet);
    }

    /// Flits that fit into the buffer at the end of `lane` beside those that have left for it by `now` and not left it, as its sender
    /// was told.
    pub fn room_in_flits(&self, lane: LaneId, now: SimTime) -> i64 {
        let inside = self.outstanding(lane, now) - self.flits.unsent(lane, &self.timings, now);
        let all = u64::from(self.policy.max()) * CREDIT / self.flit;
        i64::try_from(all).unwrap_or(i64::MAX) - i64::try_from(inside).unwrap_or(i64::MAX)
    }

    /// Flits of packets that have started on `lane`, less those of which the sender was told before `now` that they have left the buffer at
    /// its end.
    pub fn not_gone_before(&self, lane: LaneId, now: SimTime) -> u64 {
        self.outstanding(lane, SimTime(now.0.saturating_sub(1)))
    }

    /// The same by `told`.
    fn outstanding(&self, lane: LaneId, told: SimTime) -> u64 {
        self.flits.outstanding(lane, self.leaving(lane), &self.timings, self.left_when_told(lane, told))
    }

    /// The packets that leave the buffer of `lane`, as far as they have not been counted.
    fn leaving(&self, lane: LaneId) -> impl Iterator<Item = Return> {
        let of = |id: ReturnId| (id != ReturnId::NONE).then(|| *self.returns.get(id));
        std::iter::successors(of(self.ends[lane].sender.first_return), move |packet| of(packet.next))
    }

    /// When the sender of `lane` knows next behind `now` of a flit that leaves on it, or leaves the buffer at its end, as far as what has
    /// started decides it.
    pub fn next_flit(&self, lane: LaneId, now: SimTime) -> Option<SimTime> {
        let sent = self.flits.next_sent(lane, &self.timings, now);
        let by = self.left_when_told(lane, now);
        let gone = self.leaving(lane).find_map(|packet| FlitCounts::next_gone(&packet, &self.timings, by));
        let told = gone.map(|at| at + self.timing(self.number.link(lane)).back);
        sent.into_iter().chain(told).min()
    }

    /// When what the sender of `lane` is told at `now` had left.
    fn left_when_told(&self, lane: LaneId, now: SimTime) -> SimTime {
        now.checked_sub(self.timing(self.number.link(lane)).back).unwrap_or_default()
    }

    /// A packet starts to leave the buffer of `lane`.
    #[inline]
    pub fn give_back(&mut self, lane: LaneId, leaving: Return) {
        let id = self.returns.insert(leaving);
        let lane = &mut self.ends[lane].sender;
        if lane.first_return == ReturnId::NONE {
            lane.first_return = id;
            lane.counted = 0;
        } else {
            self.returns.get_mut(lane.last_return).next = id;
        }
        lane.last_return = id;
    }

    fn account(&self, lane: LaneId) -> Account {
        let state = &self.ends[lane].sender;
        let next_update = self.next_updates.get(lane).copied().unwrap_or_default();
        Account { free: state.free, first: state.first_return, counted: state.counted.into(), next_update }
    }

    /// Counts what has been told by `now`. Returns how many credits are free.
    #[inline]
    fn count(&mut self, lane: LaneId, now: SimTime) -> u32 {
        let state = &self.ends[lane].sender;
        if state.first_return == ReturnId::NONE { state.free } else { self.count_returns(lane, now) }
    }

    /// The same where packets give credits back.
    fn count_returns(&mut self, lane: LaneId, now: SimTime) -> u32 {
        let back = self.timing(self.number.link(lane)).back;
        match now.checked_sub(back) {
            Some(sent) if self.pause == DurationPs::ZERO => self.count_until(lane, sent),
            Some(sent) => self.count_updates(lane, sent),
            None => self.ends[lane].sender.free,
        }
    }

    /// The same, of all that is free by `sent`; what was counted in full is no longer needed.
    fn count_until(&mut self, lane: LaneId, sent: SimTime) -> u32 {
        let state = &mut self.ends[lane].sender;
        while state.first_return != ReturnId::NONE {
            let leaving = self.returns.get(state.first_return);
            if leaving.end > sent {
                if leaving.start < sent {
                    let timing = &self.timings[usize::from(leaving.timing)];
                    let flits = timing.flits_by(sent - leaving.start, leaving.rest);
                    // Fewer than a packet has, which fit.
                    let counted = u16::try_from(flits * self.flit / CREDIT).unwrap_or(u16::MAX);
                    state.free += u32::from(counted - state.counted);
                    state.counted = counted;
                }
                break;
            }
            state.free += u32::from(leaving.credits - state.counted);
            state.counted = 0;
            let gone = self.returns.remove(state.first_return);
            state.first_return = gone.next;
            self.flits.has_gone(lane, &gone);
        }
        state.free
    }

    /// The same, of the updates that have left by `sent`.
    fn count_updates(&mut self, lane: LaneId, sent: SimTime) -> u32 {
        let mut account = self.account(lane);
        let begin = account.first;
        while let Some(update) = self.next_update(&account) {
            if update > sent {
                break;
            }
            self.carry(&mut account, update);
            account.next_update = update + self.pause;
        }
        self.next_updates[lane] = account.next_update;
        let mut first = begin;
        while first != account.first {
            first = self.returns.remove(first).next;
        }
        let state = &mut self.ends[lane].sender;
        state.free = account.free;
        state.first_return = account.first;
        state.counted = u16::try_from(account.counted).unwrap_or(u16::MAX);
        account.free
    }

    /// Adds to `account` what is free by `at`.
    #[inline]
    fn carry(&self, account: &mut Account, at: SimTime) {
        while account.first != ReturnId::NONE {
            let leaving = self.returns.get(account.first);
            if leaving.end > at {
                if leaving.start < at {
                    let flits = self.timings[usize::from(leaving.timing)].flits_by(at - leaving.start, leaving.rest);
                    let free = u32::try_from(flits * self.flit / CREDIT).unwrap_or(u32::MAX);
                    account.free += free - account.counted;
                    account.counted = free;
                }
                return;
            }
            account.free += u32::from(leaving.credits) - account.counted;
            account.counted = 0;
            account.first = leaving.next;
        }
    }

    /// When `credits` credits of `leaving` are free.
    fn free_at(&self, leaving: &Return, credits: u32) -> SimTime {
        let flits = (u64::from(credits) * CREDIT).div_ceil(self.flit);
        match u32::try_from(flits) {
            Ok(flits) if flits < u32::from(leaving.flits) => {
                leaving.start + self.timings[usize::from(leaving.timing)].time(flits, leaving.rest)
            }
            _ => leaving.end,
        }
    }

    /// When the next update leaves for `account`.
    fn next_update(&self, account: &Account) -> Option<SimTime> {
        if account.first == ReturnId::NONE {
            return None;
        }
        let leaving = self.returns.get(account.first);
        Some(self.free_at(leaving, account.counted + 1).max(account.next_update))
    }

    /// When `need` credits that nobody has in mind will be free on `lane`, where fewer are now, as far as what has started
    /// decides it; if it does not, that they are wanted is noted. (A packet that starts takes its credits and its claim: what
    /// is unclaimed stays.)
    pub fn when_unclaimed(&mut self, lane: LaneId, need: u32) -> Option<SimTime> {
        let at = self.when(lane, need + self.claimed[lane]);
        let wanted = &mut self.ends[lane].sender.wanted;
        if at.is_none() {
            *wanted = if *wanted == 0 { need } else { need.min(*wanted) };
        }
        at
    }

    /// When the first credit of `leaving` is told to the sender of `lane`, or earlier.
    pub fn first_known(&self, lane: LaneId, leaving: &Return) -> SimTime {
        let next_update = self.next_updates.get(lane).copied().unwrap_or_default();
        self.free_at(leaving, 1).max(next_update) + self.timing(self.number.link(lane)).back
    }

    /// When `need` credits will be free on `lane`, as far as what has started decides it.
    pub fn when(&self, lane: LaneId, need: u32) -> Option<SimTime> {
        if self.shared() { self.when_of_shared(lane, need) } else { self.when_of_own(lane, need) }
    }

    /// The same where the VLs of a link share its buffer: from one instant at which any of them is told of credits to the next.
    fn when_of_shared(&self, lane: LaneId, need: u32) -> Option<SimTime> {
        let link = self.number.link(lane);
        let mut accounts: Vec<Account> = self.number.all(link, self.vls).map(|lane| self.account(lane)).collect();
        let own = self.number.vl(lane) as usize;
        let used = |account: &Account| self.policy.max() - account.free;
        loop {
            let updates =
                accounts.iter().enumerate().filter_map(|(vl, account)| Some((self.next_update(account)?, vl)));
            let (update, vl) = updates.min()?;
            self.carry(&mut accounts[vl], update);
            accounts[vl].next_update = update + self.pause;
            if self.policy.free(used(&accounts[own]), accounts.iter().map(used)) >= need {
                return Some(update + self.timing(link).back);
            }
        }
    }

    fn when_of_own(&self, lane: LaneId, need: u32) -> Option<SimTime> {
        let mut account = self.account(lane);
        let back = self.timing(self.number.link(lane)).back;
        if self.pause > DurationPs::ZERO {
            loop {
                let update = self.next_update(&account)?;
                self.carry(&mut account, update);
                account.next_update = update + self.pause;
                if account.free >= need {
                    return Some(update + back);
                }
            }
        }
        let mut missing = need - account.free;
        while account.first != ReturnId::NONE {
            let leaving = self.returns.get(account.first);
            let here = u32::from(leaving.credits) - account.counted;
            if here >= missing {
                return Some(self.free_at(leaving, account.counted + missing) + back);
            }
            missing -= here;
            account.counted = 0;
            account.first = leaving.next;
        }
        None
    }
}
