//! Links take one of the packets that ask for them: first the VL is arbitrated, then the input.

use super::arbiter::Given;
use super::{Credit, NO_MASKS};
use crate::fabric::ids::LaneId;
use crate::fabric::packet::Observer;
use crate::time::SimTime;
use crate::topology::LinkId;

impl<O: Observer> Credit<O> {
    /// The head of `queue` is ready: its link has to look, as soon as it is free.
    pub(super) fn ask(&mut self, queue: LaneId, now: SimTime) {
        let lane = self.lanes.ends[queue].buffer.chosen;
        let (link, vl) = (self.number.link(lane), self.number.vl(lane));
        let slot = self.links[self.number.link(queue)].slot;
        let bit = if self.classes == 1 { slot } else { slot * self.classes + self.number.vl(queue) % self.classes };
        let state = &mut self.links[link];
        state.asking |= 1 << vl;
        if state.masks == NO_MASKS {
            self.lanes.ends[lane].sender.mask |= 1 << bit;
        } else {
            self.masks[(state.masks + vl * u32::from(state.words) + bit / 64) as usize] |= 1 << (bit % 64);
        }
        let free_at = state.free_at;
        if free_at > now.0 {
            self.wake(link, free_at);
        } else {
            self.look(link);
        }
    }

    /// The queue whose bit is `bit` in the masks of VL `vl` of a link whose sender's inputs begin at `inputs`.
    pub(super) fn queue_of(&self, inputs: u32, vl: u32, bit: u32) -> LaneId {
        if self.classes == 1 {
            return self.number.lane(self.inputs[(inputs + bit) as usize], vl);
        }
        let input = self.inputs[(inputs + bit / self.classes) as usize];
        self.number.lane(input, vl / self.classes * self.classes + bit % self.classes)
    }

    /// The credits that the packet must find whose queue has bit `bit` of those that ask for `id` and `vl`.
    #[inline]
    fn need(&self, id: LinkId, vl: u32, bit: u32) -> u32 {
        let link = &self.links[id];
        if link.from_host {
            return self.host_need(link.inputs, vl);
        }
        self.lanes.ends[self.queue_of(link.inputs, vl, bit)].buffer.need
    }

    /// The bit of the first queue, in the order of arbitration, that asks for `id` and `vl` and finds its credits; or
    /// how many credits have to be there until one of them does.
    #[inline]
    fn first_asking(&mut self, id: LinkId, vl: u32, now: SimTime) -> Result<u32, u32> {
        let lane = self.number.lane(id, vl);
        let state = &self.lanes.ends[lane].sender;
        let mask = state.mask;
        if mask == 0 {
            return self.first_of_many(id, vl, now);
        }
        let mut least = u32::MAX;
        let later = mask & (u64::MAX << state.begin);
        for mut bits in [later, mask & !later] {
            while bits != 0 {
                let bit = bits.trailing_zeros();
                let need = self.need(id, vl, bit);
                // What is not there for one is not there for another that needs as much.
                if need < least {
                    if self.lanes.has(lane, need, now.0) {
                        return Ok(bit);
                    }
                    least = need;
                }
                bits &= bits - 1;
            }
        }
        Err(least)
    }

    /// The same where a mask has several words.
    fn first_of_many(&mut self, id: LinkId, vl: u32, now: SimTime) -> Result<u32, u32> {
        let lane = self.number.lane(id, vl);
        let (base, words) = (self.links[id].masks, u32::from(self.links[id].words));
        let begin = u32::from(self.lanes.ends[lane].sender.begin);
        let mut word = begin / 64;
        let mut least = u32::MAX;
        // Once around, and the first word again for what lies before the begin.
        for round in 0..=words {
            let mut bits = self.masks[(base + vl * words + word) as usize];
            if round == 0 {
                bits &= u64::MAX << (begin % 64);
            } else if round == words {
                bits &= !(u64::MAX << (begin % 64));
            }
            while bits != 0 {
                let bit = word * 64 + bits.trailing_zeros();
                let need = self.need(id, vl, bit);
                if need < least {
                    if self.lanes.has(lane, need, now.0) {
                        return Ok(bit);
                    }
                    least = need;
                }
                bits &= bits - 1;
            }
            word = if word + 1 == words { 0 } else { word + 1 };
        }
        Err(least)
    }

    /// Starts one of the packets that ask for `link`, if it is free and credits are there; else has it look again when
    /// that may be.
    pub(super) fn arbitrate(&mut self, link: LinkId, now: SimTime) {
        let state = &self.links[link];
        let (asking, free_at) = (state.asking, state.free_at);
        if asking == 0 {
            return;
        }
        if free_at > now.0 {
            self.wake(link, free_at);
            return;
        }
        if asking & (asking - 1) == 0 {
            // One VL only: there is nothing to choose, but the tables have to know.
            let vl = asking.trailing_zeros();
            match self.first_asking(link, vl, now) {
                Ok(bit) => self.take(link, asking, bit, now),
                Err(least) => self.wait_for(self.number.lane(link, vl), least),
            }
            return;
        }
        let mut may = 0u16;
        let mut found = [0u32; 16];
        let mut vls = asking;
        while vls != 0 {
            let vl = vls.trailing_zeros();
            vls &= vls - 1;
            match self.first_asking(link, vl, now) {
                Ok(bit) => {
                    may |= 1 << vl;
                    found[vl as usize] = bit;
                }
                Err(least) => found[vl as usize] = least,
            }
        }
        if may == 0 {
            let mut vls = asking;
            while vls != 0 {
                let vl = vls.trailing_zeros();
                vls &= vls - 1;
                self.wait_for(self.number.lane(link, vl), found[vl as usize]);
            }
            return;
        }
        let state = &mut self.links[link];
        let given = self.tables.give(&mut state.turns, may, free_at < now.0);
        self.begin(link, given, found[usize::from(given.vl)], now);
    }

    /// Starts the packet with bit `bit` on `link`, the only one of the VLs of `may`.
    #[inline]
    fn take(&mut self, link: LinkId, may: u16, bit: u32, now: SimTime) {
        let state = &mut self.links[link];
        let given = self.tables.give(&mut state.turns, may, state.free_at < now.0);
        self.begin(link, given, bit, now);
    }

    /// Starts the packet with bit `bit` of the VL that was given the turn.
    fn begin(&mut self, link: LinkId, given: Given, bit: u32, now: SimTime) {
        let vl = u32::from(given.vl);
        let started = if self.links[link].from_host {
            self.leave_host(link, vl, now)
        } else {
            self.leave_queue(link, vl, bit, now)
        };
        let Some((flits, credits)) = started else { return };
        let bytes = u32::try_from(u64::from(flits) * self.flit).unwrap_or(u32::MAX);
        self.tables.started(&mut self.links[link].turns, given, credits.into(), bytes);
    }
}
