//! Heads that commit themselves to lanes with room alone, in cycles: which lane one takes, and when one that found none looks again. What
//! [`Undecided`](crate::fabric::credit::undecided::Undecided) is by events.

use super::lane::Lane;
use super::offers::Offer;
use super::output::NEVER;
use super::seekers::Seekers;
use super::{Clocked, Place, bits};
use crate::fabric::credit::most_room::remainder;
use crate::routing::Ranks;

/// Some of at most 128 lanes with room, a bit each, of which one is taken.
struct RoomiestLanes {
    bits: u128,
    /// What another one must have.
    most: i64,
}

impl RoomiestLanes {
    /// None yet, of those with so many credits.
    const fn new(need: u32) -> Self {
        Self { bits: 0, most: need as i64 }
    }

    /// The one with `bit` has so much room; with `compares`, one with more goes before all others.
    #[inline(always)]
    fn add(&mut self, bit: usize, room: i64, compares: bool) {
        if room < self.most {
            return;
        }
        if compares && room > self.most {
            (self.bits, self.most) = (0, room);
        }
        self.bits |= 1 << bit;
    }

    /// The one that is taken, by what is drawn.
    #[inline(always)]
    fn pick(mut self, drawn: impl FnOnce() -> u64) -> Option<usize> {
        let several = self.bits.count_ones();
        if several > 1 {
            let position = remainder(drawn(), several.into());
            (0..position).for_each(|_| self.bits &= self.bits - 1);
        }
        (several > 0).then(|| self.bits.trailing_zeros() as usize)
    }
}

impl Clocked {
    /// The output, by its bit, and VL that a head takes of `count` outputs of a switch from its `first` one on, with `classes` lanes each from VL
    /// `base` on, in the cycle `now`: the lane with the most room, if that is at least `need`.
    #[inline(always)]
    pub fn roomy_of_run(
        &self,
        place: &Place,
        (first, count): (u32, u32),
        (base, classes): (u32, u32),
        (need, now): (u32, u64),
        drawn: impl FnOnce() -> u64,
    ) -> Option<(u32, u32)> {
        let mut found = RoomiestLanes::new(need);
        for class in 0..classes {
            let begin = place.lane(first, base + class);
            for (link, lane) in self.lanes[begin..begin + count as usize].iter().enumerate() {
                // One link's lanes are behind each other.
                found.add(link * classes as usize + class as usize, lane.unclaimed(now, self.flit), true);
            }
        }
        let taken = found.pick(drawn)? as u32;
        Some((first + taken / classes, base + taken % classes))
    }

    /// The same of `offers`, in the order of their ranks; `needs` says what a head must find that needs a packet's credits, also a reserve, or a
    /// bubble.
    #[inline]
    pub fn roomy_of_offers(
        &self,
        place: &Place,
        offers: &[Offer],
        (needs, now): ([u32; 3], u64),
        drawn: impl Fn() -> u64,
    ) -> Option<(u32, u32)> {
        for rank in offers.chunk_by(|one, other| one.rank == other.rank) {
            let Some(first) = rank.first() else { continue };
            let mut found = RoomiestLanes::new(needs[first.need as usize]);
            for (bit, offer) in rank.iter().enumerate() {
                let lane = &self.lanes[place.lane(offer.output.into(), offer.vl.into())];
                found.add(bit, lane.unclaimed(now, self.flit), first.pick.compares());
            }
            if first.pick.takes_first() {
                found.bits &= found.bits.wrapping_neg();
            }
            if let Some(taken) = found.pick(&drawn) {
                return rank.get(taken).map(|offer| (offer.output.into(), offer.vl.into()));
            }
        }
        None
    }

    /// The head of a switch's queue with the bit `bit`, which may take lanes of `count` outputs from the `first` one on, has found none with `need`
    /// credits: it looks again when one of them has.
    pub fn seeks_in_run(
        &mut self,
        place: &Place,
        bit: u32,
        (first, count): (u32, u32),
        (base, classes): (u32, u32),
        (need, now): (u32, u64),
    ) {
        self.switches[place.switch as usize].undecided |= 1 << bit;
        for class in 0..classes {
            for output in first..first + count {
                self.seeks_in(place.lane(output, base + class), bit, need, now);
            }
        }
    }

    /// The same of one that may take what is in `offers`.
    pub fn seeks_in_offers(&mut self, place: &Place, bit: u32, offers: &[Offer], (needs, now): ([u32; 3], u64)) {
        self.switches[place.switch as usize].undecided |= 1 << bit;
        if let Some(seeking) = &mut self.seeking {
            seeking.keep(place.queue(bit), offers);
        }
        for offer in offers {
            self.seeks_in(place.lane(offer.output.into(), offer.vl.into()), bit, needs[offer.need as usize], now);
        }
    }

    /// A list of what the head of `queue` may take, which has looked before with `has_looked`, to be given back: empty if that is not known.
    #[inline]
    pub fn take_offers(&mut self, queue: u32, has_looked: bool) -> Vec<Offer> {
        let Some(seeking) = &mut self.seeking else { return Vec::new() };
        let mut offers = std::mem::take(&mut seeking.offers);
        offers.clear();
        if has_looked {
            offers.extend_from_slice(seeking.known[queue as usize].offers());
        }
        offers
    }

    #[inline]
    pub fn give_offers_back(&mut self, offers: Vec<Offer>) {
        if let Some(seeking) = &mut self.seeking {
            seeking.offers = offers;
        }
    }

    /// The direction by which packets come to `queue`; `None` from a host, or where switches are not alike.
    #[inline]
    pub fn direction(&self, queue: u32) -> Option<u8> {
        self.seeking.as_ref()?.cases.direction(self.number.port(queue))
    }

    /// Fills `offers` with what a head of a `case` may take at `switch` whose VL of class 0 is `base`. Returns whether that is known.
    #[inline]
    pub fn offer_by_case(&self, case: usize, switch: u32, base: u8, offers: &mut Vec<Offer>) -> bool {
        self.seeking.as_ref().is_some_and(|seeking| seeking.cases.offer(case, switch, base, offers))
    }

    /// Keeps what heads of a `case` may take, which is this at `switch` with `base` as VL of class 0.
    pub fn keep_by_case(&mut self, case: usize, switch: u32, base: u8, offers: &[Offer]) {
        if let Some(seeking) = &mut self.seeking {
            seeking.cases.keep(case, switch, base, offers);
        }
    }

    /// Ranks to be filled and given back.
    #[inline]
    pub fn take_ranks(&mut self) -> Ranks {
        self.seeking.as_mut().map(|seeking| std::mem::take(&mut seeking.ranks)).unwrap_or_default()
    }

    #[inline]
    pub fn give_ranks_back(&mut self, ranks: Ranks) {
        if let Some(seeking) = &mut self.seeking {
            seeking.ranks = ranks;
        }
    }

    /// The head of a switch's queue with the bit `bit` has chosen.
    #[inline]
    pub fn seeks_no_more(&mut self, place: &Place, bit: u32) {
        self.switches[place.switch as usize].undecided &= !(1 << bit);
    }

    /// Whether the head of a switch's queue with the bit `bit` has looked before.
    #[inline]
    pub fn is_undecided(&self, place: &Place, bit: u32) -> bool {
        self.switches[place.switch as usize].undecided >> bit & 1 == 1
    }

    /// The head with the bit `bit` waits for `need` unclaimed credits on `lane`, if they are not there.
    #[inline]
    fn seeks_in(&mut self, lane: usize, bit: u32, need: u32, now: u64) {
        let Some(seeking) = &mut self.seeking else { return };
        let state = &mut self.lanes[lane];
        if state.unclaimed(now, self.flit) >= i64::from(need) {
            return;
        }
        let seekers = &mut seeking.seekers[lane];
        seekers.heads |= 1 << bit;
        seekers.need = seekers.need.min(need);
        match state.unclaimed_from(need, self.flit) {
            Some(at) if at < seekers.wake => {
                seekers.wake = at;
                self.ring.at(at).seeks.push(lane as u32);
            }
            Some(_) => {}
            None => state.is_sought = true,
        }
    }

    /// `lane` may have room in the cycle `now` for heads that wait for it: they look again, or wait on.
    #[inline(never)]
    pub(super) fn look_for_seekers(&mut self, lane: u32, now: u64) {
        let Some(seeking) = &mut self.seeking else { return };
        let seekers = &mut seeking.seekers[lane as usize];
        let state: &mut Lane = &mut self.lanes[lane as usize];
        let switch = &mut self.switches[seekers.switch as usize];
        let heads = seekers.heads & switch.undecided;
        if heads == 0 || state.unclaimed(now, self.flit) >= i64::from(seekers.need) {
            *seekers = Seekers { heads: 0, wake: NEVER, need: u32::MAX, ..*seekers };
            if heads != 0 {
                switch.heads |= heads;
                let switch = seekers.switch;
                self.working.insert(switch);
            }
            return;
        }
        match state.unclaimed_from(seekers.need, self.flit) {
            Some(at) if at < seekers.wake => {
                seekers.wake = at;
                self.ring.at(at).seeks.push(lane);
            }
            Some(_) => {}
            None => state.is_sought = true,
        }
    }

    /// `lane`, which is looked at in the cycle `now` unless it was since, may have room.
    pub(super) fn seekers_wake(&mut self, lane: u32, now: u64) {
        let Some(seeking) = &mut self.seeking else { return };
        let seekers = &mut seeking.seekers[lane as usize];
        if seekers.wake == now {
            seekers.wake = NEVER;
            self.look_for_seekers(lane, now);
        }
    }

    /// The VL and class at the `output` of a host whose turn it is, of those whose first packets find the credits that they need, as `need` says:
    /// of `classes` classes the one with the most room, by what is `drawn` among equals. `None` without one: then it waits.
    #[inline(never)]
    pub fn host_turn_of_classes(
        &mut self,
        output: u32,
        now: u64,
        classes: u32,
        need: impl Fn(u32) -> u32,
        drawn: impl Fn(u32) -> u64,
    ) -> Option<(u32, u32)> {
        for vl in self.outputs[output as usize].asking_in_turn() {
            let mut found = RoomiestLanes::new(need(vl));
            for class in 0..classes {
                found.add(class as usize, self.lanes[self.lane(output, vl + class)].free(now, self.flit), true);
            }
            if let Some(class) = found.pick(|| drawn(vl)) {
                self.outputs[output as usize].turn = super::next_of(vl);
                return Some((vl, class as u32));
            }
        }
        for vl in bits(self.outputs[output as usize].asking.into()) {
            (0..classes).for_each(|class| self.await_credits(output, vl + class, need(vl)));
        }
        None
    }
}
