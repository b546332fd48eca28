//! VL arbitration: which virtual lane of a link is next.

use super::fault::Fault;
use netsim::fabric::credit::{VlArbitration, VlWeight};

/// A table of (VL, weight) with its current entry and what is left of that entry's weight.
struct Table {
    entries: Vec<VlWeight>,
    current: usize,
    left: u64,
    one_more: u64,
}

/// What a table gives: an entry, and what is left of its weight before the start.
#[derive(Clone, Copy)]
struct GrantedVl {
    entry: usize,
    left: u64,
}

impl Table {
    fn new(entries: Vec<VlWeight>, fault: Option<Fault>) -> Self {
        let one_more = u64::from(fault == Some(Fault::WeightOneMore));
        let mut table = Self { entries, current: 0, left: 0, one_more };
        if !table.entries.is_empty() {
            table.left = table.whole(0);
        }
        table
    }

    /// The whole weight of an entry.
    fn whole(&self, entry: usize) -> u64 {
        u64::from(self.entries[entry].1) + self.one_more
    }

    /// The entry whose turn it is among those whose VL may start something.
    fn look(&self, may_start: &[bool]) -> Option<GrantedVl> {
        let may = |entry: usize| may_start[usize::from(self.entries[entry].0)];
        if self.entries.is_empty() {
            return None;
        }
        if self.left > 0 && may(self.current) {
            return Some(GrantedVl { entry: self.current, left: self.left });
        }
        for behind in 1..=self.entries.len() {
            let entry = (self.current + behind) % self.entries.len();
            if may(entry) {
                return Some(GrantedVl { entry, left: self.whole(entry) });
            }
        }
        None
    }

    /// A packet of `credits` starts from what the table gave.
    fn start(&mut self, given: GrantedVl, credits: u64) {
        self.current = given.entry;
        self.left = given.left.saturating_sub(credits);
    }
}

/// The arbiter of one link.
pub struct VlArbiter {
    high: Table,
    low: Table,
    limit: u8,
    /// Bytes that started from the high table since the last start from the low one, or since it had nothing to start.
    from_high: u64,
    fault: Option<Fault>,
}

/// A VL that is next, and by which table.
#[derive(Clone, Copy)]
pub struct Turn {
    pub vl: u8,
    high: bool,
    given: GrantedVl,
}

impl VlArbiter {
    pub fn new(config: &VlArbitration, vls: u8, fault: Option<Fault>) -> Self {
        let low = if config.low.is_empty() { (0..vls).map(|vl| VlWeight(vl, 1)).collect() } else { config.low.clone() };
        Self {
            high: Table::new(config.high.clone(), fault),
            low: Table::new(low, fault),
            limit: config.limit,
            from_high: 0,
            fault,
        }
    }

    /// Whose turn it is on a link that is free, among the VLs that may start something.
    pub fn turn(&mut self, may_start: &[bool]) -> Option<Turn> {
        let high = self.high.look(may_start);
        let low = self.low.look(may_start);
        if high.is_none() {
            self.from_high = 0;
        }
        let turn = |table: &Table, given: GrantedVl, high| Turn { vl: table.entries[given.entry].0, high, given };
        match (high, low) {
            (Some(high), None) => Some(turn(&self.high, high, true)),
            (Some(high), Some(_)) if !self.used_up() => Some(turn(&self.high, high, true)),
            (_, Some(low)) => Some(turn(&self.low, low, false)),
            (None, None) => None,
        }
    }

    fn used_up(&self) -> bool {
        let late = u64::from(self.fault == Some(Fault::LimitOneByteLate));
        match self.limit {
            255 => false,
            0 => self.from_high > 0,
            limit => self.from_high >= u64::from(limit) * 4_096 + late,
        }
    }

    /// The link is free, and nothing starts.
    pub fn idle(&mut self) {
        self.from_high = 0;
    }

    /// A packet of `credits` and `bytes` (in whole flits) starts in its VL's turn.
    pub fn start(&mut self, turn: &Turn, credits: u64, bytes: u64) {
        if turn.high {
            self.high.start(turn.given, credits);
            self.from_high += bytes;
        } else {
            self.low.start(turn.given, credits);
            if self.fault != Some(Fault::LimitNeverReset) {
                self.from_high = 0;
            }
        }
    }
}
