//! VL arbitration: two tables with weights, and the limit of the high one.

use super::config::VlArbitration;

/// The two tables, which all links share.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    high: Vec<(u8, u8)>,
    low: Vec<(u8, u8)>,
    high_vls: u16,
    low_vls: u16,
    limit: u8,
    /// Whether the low table is that of one turn for each VL, as it is by default, and the high one is empty.
    plain: bool,
}

/// How far a link is in a table.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    entry: u8,
    left: u8,
}

/// How far a link is in both tables.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns {
    high: Turn,
    low: Turn,
    /// Bytes started from the high table, since whatever resets them.
    high_bytes: u32,
}

impl Turns {
    /// The link is free, and nothing starts.
    pub const fn rest(&mut self) {
        self.high_bytes = 0;
    }
}

/// Which VL was given a turn, and by which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GrantedVl {
    pub vl: u8,
    high: bool,
}

impl Tables {
    /// The tables of `config` for `vls` VLs.
    pub fn new(config: &VlArbitration, vls: u8) -> Self {
        let table = |entries: &[super::VlWeight]| entries.iter().map(|entry| (entry.0, entry.1)).collect::<Vec<_>>();
        let high = table(&config.high);
        let low = if config.low.is_empty() { (0..vls).map(|vl| (vl, 1)).collect() } else { table(&config.low) };
        let vls_of = |table: &[(u8, u8)]| table.iter().fold(0, |vls, (vl, _)| vls | 1u16 << vl);
        let plain = high.is_empty() && low.iter().zip(0..).all(|(entry, vl)| *entry == (vl, 1));
        Self { high_vls: vls_of(&high), low_vls: vls_of(&low), high, low, limit: config.limit, plain }
    }

    /// Which VLs are in a table.
    pub const fn vls(&self) -> u16 {
        self.high_vls | self.low_vls
    }

    /// Whether each VL has one turn after the other, as by default.
    pub const fn are_plain(&self) -> bool {
        self.plain
    }

    /// How a link begins: both tables at their first entry, with its whole weight.
    pub fn start(&self) -> Turns {
        let first = |table: &[(u8, u8)]| Turn { entry: 0, left: table.first().map_or(0, |(_, weight)| *weight) };
        Turns { high: first(&self.high), low: first(&self.low), high_bytes: 0 }
    }

    /// Gives the turn to one of the VLs of `may` (a bit each, one at least). `idle`: the link was free and nothing
    /// started before this instant.
    #[inline]
    pub fn give(&self, turns: &mut Turns, may: u16, idle: bool) -> GrantedVl {
        if self.plain {
            // A weight of 1 is used up by any packet: the next VL, or the same if it is alone. At the start it is VL 0.
            let from = if turns.low.left > 0 { turns.low.entry } else { turns.low.entry + 1 };
            let later = u32::from(may) & (u32::MAX << from);
            let vl = if later != 0 { later.trailing_zeros() } else { may.trailing_zeros() };
            let vl = u8::try_from(vl).unwrap_or(0);
            turns.low.entry = vl;
            turns.low.left = 1;
            return GrantedVl { vl, high: false };
        }
        if idle || may & self.high_vls == 0 {
            turns.high_bytes = 0;
        }
        let used_up = match self.limit {
            255 => false,
            0 => turns.high_bytes > 0,
            limit => turns.high_bytes >= u32::from(limit) * 4_096,
        };
        let high = may & self.high_vls != 0 && !(used_up && may & self.low_vls != 0);
        let vl = if high { next(&self.high, &mut turns.high, may) } else { next(&self.low, &mut turns.low, may) };
        GrantedVl { vl, high }
    }

    /// What was given the turn has started, with `bytes` in `credits` credits.
    #[inline]
    pub fn started(&self, turns: &mut Turns, given: GrantedVl, credits: u32, bytes: u32) {
        let turn = if given.high { &mut turns.high } else { &mut turns.low };
        turn.left = turn.left.saturating_sub(u8::try_from(credits).unwrap_or(u8::MAX));
        turns.high_bytes = if given.high { turns.high_bytes.saturating_add(bytes) } else { 0 };
    }
}

/// The VL of the first entry, from the current one on, whose VL is one of `may`.
#[inline]
fn next(table: &[(u8, u8)], turn: &mut Turn, may: u16) -> u8 {
    let current = usize::from(turn.entry);
    let (vl, _) = table[current];
    if turn.left > 0 && may & (1 << vl) != 0 {
        return vl;
    }
    let mut entry = current;
    loop {
        entry = if entry + 1 == table.len() { 0 } else { entry + 1 };
        let (vl, weight) = table[entry];
        if may & (1 << vl) != 0 {
            turn.entry = u8::try_from(entry).unwrap_or(0);
            turn.left = weight;
            return vl;
        }
        if entry == current {
            // Not reached: the caller has seen that one of the table's VLs may start.
            return vl;
        }
    }
}
