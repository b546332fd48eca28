//! Credits: what a link's sender knows to be free at the link's end, and when it will know of more.
//!
//! No event brings a credit back. When a packet starts to leave a buffer, all instants at which its credits become free
//! and are told are certain; they are kept as one [`Return`] and counted when somebody looks. Only for a sender that
//! waits the instant is computed at which enough will be there.

use super::wire::Wire;
use crate::fabric::messages::NONE;
use crate::fabric::slab::Slab;

/// A credit, in bytes.
pub(super) const CREDIT: u64 = 64;

/// A packet that leaves a buffer, and so gives its credits back.
#[derive(Clone, Copy)]
pub(super) struct Return {
    /// When it started, and when its last flit has left.
    pub start: u64,
    pub end: u64,
    /// The remainder with which the link started.
    pub rest: u64,
    /// The link whose time it takes.
    pub link: u32,
    pub flits: u16,
    pub credits: u16,
    next: u32,
}

/// The credits of one link and VL, as its sender sees them.
#[derive(Clone, Copy)]
pub(super) struct Account {
    /// Free, as far as was counted.
    pub free: u32,
    /// Adaptive routing: what packets need that have chosen this link and VL and have not started.
    pub chosen: u32,
    /// Above 0: the sender waits for so many, and nothing under way brings them.
    pub wanted: u32,
    /// The packets that give credits back, in their order.
    first: u32,
    last: u32,
    /// How many credits of the first of these are counted.
    counted: u32,
    /// The earliest instant at which the next update may leave.
    next_update: u64,
}

/// All accounts of a network.
pub(super) struct Credits {
    pub accounts: Vec<Account>,
    pub wires: Vec<Wire>,
    returns: Slab<Return>,
    vls: u32,
    flit: u64,
    /// Least time between two updates.
    pause: u64,
}

impl Credits {
    /// Buffers of `credits` credits at the ends of `wires`, for each of `vls` VLs.
    pub fn new(wires: Vec<Wire>, vls: u32, credits: u32, flit: u64, pause: u64) -> Self {
        let account =
            Account { free: credits, chosen: 0, wanted: 0, first: NONE, last: NONE, counted: 0, next_update: 0 };
        Self { accounts: vec![account; wires.len() * vls as usize], wires, returns: Slab::default(), vls, flit, pause }
    }

    /// Whether `need` credits are free on `lane` at `now`.
    #[inline]
    pub fn has(&mut self, lane: u32, need: u32, now: u64) -> bool {
        if self.accounts[lane as usize].free >= need {
            return true;
        }
        self.count(lane, now);
        self.accounts[lane as usize].free >= need
    }

    /// Credits free on `lane` at `now`, less those that others have in mind.
    pub fn unclaimed(&mut self, lane: u32, now: u64) -> i64 {
        self.count(lane, now);
        let account = &self.accounts[lane as usize];
        i64::from(account.free) - i64::from(account.chosen)
    }

    /// A packet starts to leave the buffer of `lane`.
    pub fn give_back(&mut self, lane: u32, mut leaving: Return) {
        leaving.next = NONE;
        let id = self.returns.insert(leaving);
        let account = &mut self.accounts[lane as usize];
        if account.first == NONE {
            account.first = id;
            account.counted = 0;
        } else {
            self.returns.get_mut(account.last).next = id;
        }
        account.last = id;
    }

    /// A packet that gives `credits` back.
    pub const fn leaving(link: u32, start: u64, end: u64, rest: u64, flits: u16, credits: u16) -> Return {
        Return { start, end, rest, link, flits, credits, next: NONE }
    }

    /// Counts what has been told by `now`.
    fn count(&mut self, lane: u32, now: u64) {
        if self.accounts[lane as usize].first == NONE {
            return;
        }
        let Some(sent) = now.checked_sub(self.wires[(lane / self.vls) as usize].back) else { return };
        let mut account = self.accounts[lane as usize];
        if self.pause == 0 {
            self.carry(&mut account, sent);
        } else {
            while let Some(update) = self.next_update(&account) {
                if update > sent {
                    break;
                }
                self.carry(&mut account, update);
                account.next_update = update + self.pause;
            }
        }
        // What was counted in full is no longer needed.
        let mut first = self.accounts[lane as usize].first;
        while first != account.first {
            first = self.returns.remove(first).next;
        }
        self.accounts[lane as usize] = account;
    }

    /// Adds to `account` what is free by `at`.
    fn carry(&self, account: &mut Account, at: u64) {
        while account.first != NONE {
            let leaving = self.returns.get(account.first);
            if leaving.end > at {
                if leaving.start < at {
                    let flits = self.wires[leaving.link as usize].flits_by(at - leaving.start, leaving.rest);
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
    fn free_at(&self, leaving: &Return, credits: u32) -> u64 {
        let flits = (u64::from(credits) * CREDIT).div_ceil(self.flit);
        match u32::try_from(flits) {
            Ok(flits) if flits < u32::from(leaving.flits) => {
                leaving.start + self.wires[leaving.link as usize].time(flits, leaving.rest)
            }
            _ => leaving.end,
        }
    }

    /// When the next update leaves for `account`.
    fn next_update(&self, account: &Account) -> Option<u64> {
        if account.first == NONE {
            return None;
        }
        let leaving = self.returns.get(account.first);
        Some(self.free_at(leaving, account.counted + 1).max(account.next_update))
    }

    /// When `need` credits will be free on `lane`, as far as what has started decides it.
    pub fn when(&self, lane: u32, need: u32) -> Option<u64> {
        let mut account = self.accounts[lane as usize];
        let back = self.wires[(lane / self.vls) as usize].back;
        if self.pause > 0 {
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
        while account.first != NONE {
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
