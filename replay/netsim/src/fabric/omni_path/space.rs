//! Buffers that virtual lanes share, as whoever fills them knows them: what each lane holds.

use super::config::FlitBuffers;
use crate::fabric::credit::{BufferPolicy, SharedBuffers};

/// Buffers of one size, numbered from 0 on, each with so many lanes.
pub(super) struct Spaces {
    policy: SharedBuffers,
    vls: usize,
    /// By buffer, then lane, in credits.
    used: Vec<u32>,
}

impl Spaces {
    /// So many empty `buffers` of `vls` lanes; `keys` are in flits, of which a credit has `unit`.
    pub fn new(buffers: usize, vls: u8, keys: FlitBuffers, unit: u32) -> Self {
        let [size, exclusive, max] = [keys.size, keys.exclusive, keys.max].map(|flits| flits / unit);
        let pool = size.saturating_sub(exclusive * u32::from(vls));
        let vls = usize::from(vls);
        Self { policy: SharedBuffers { exclusive, pool, max }, vls, used: vec![0; buffers * vls] }
    }

    fn lanes(&self, buffer: usize) -> &[u32] {
        &self.used[buffer * self.vls..(buffer + 1) * self.vls]
    }

    /// Whether lane `vl` of `buffer` has room for `credits` more.
    pub fn has_room(&self, buffer: usize, vl: u8, credits: u32) -> bool {
        let lanes = self.lanes(buffer);
        let used = lanes[usize::from(vl)];
        // Most lanes are within what is theirs alone.
        used + credits <= self.policy.exclusive || credits <= self.policy.free(used, lanes.iter().copied())
    }

    /// Puts `credits` into lane `vl` of `buffer`.
    pub fn take(&mut self, buffer: usize, vl: u8, credits: u32) {
        self.used[buffer * self.vls + usize::from(vl)] += credits;
    }

    /// Takes `credits` out of lane `vl` of `buffer`.
    pub fn free(&mut self, buffer: usize, vl: u8, credits: u32) {
        self.used[buffer * self.vls + usize::from(vl)] -= credits;
    }

    /// What all lanes of `buffer` hold, in credits.
    pub fn held(&self, buffer: usize) -> u32 {
        self.lanes(buffer).iter().sum()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_lanes_hold_fits_and_each_gets_what_is_its_own(
            vls in 1..=15u8,
            (exclusive, pool, max, unit) in (1..20u32, 0..60u32, 0..80u32, 1..5u32),
            steps in prop::collection::vec((any::<prop::sample::Index>(), 1..20u32), 1..300),
        ) {
            let size = exclusive * u32::from(vls) + pool;
            let max = exclusive + max;
            let keys = FlitBuffers { size: size * unit, exclusive: exclusive * unit, max: max * unit };
            let mut spaces = Spaces::new(2, vls, keys, unit);
            let mut inside: Vec<(u8, u32)> = Vec::new();
            for (number, (index, credits)) in steps.into_iter().enumerate() {
                let vl = u8::try_from(index.index(vls.into())).unwrap();
                if number % 3 < 2 && spaces.has_room(1, vl, credits) {
                    spaces.take(1, vl, credits);
                    inside.push((vl, credits));
                } else if !inside.is_empty() {
                    let (vl, credits) = inside.swap_remove(index.index(inside.len()));
                    spaces.free(1, vl, credits);
                }
                prop_assert!(spaces.held(1) <= size);
                prop_assert_eq!(spaces.held(0), 0);
                for vl in 0..vls {
                    let used = spaces.lanes(1)[usize::from(vl)];
                    prop_assert!(used <= max);
                    prop_assert!(used >= exclusive || spaces.has_room(1, vl, exclusive - used));
                }
            }
        }
    }
}
