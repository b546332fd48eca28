//! How the VLs of a link share the buffer at its end.

use super::config::{CreditConfig, SharedBuffersConfig};

/// A rule by which the VLs of a link have credits.
///
/// At any time it lets a VL have `min` credits, whatever the others hold, and never more than `max`. What is free for a VL
/// must not become less while credits come back.
pub trait BufferPolicy {
    /// Credits that a VL may always hold.
    fn min(&self) -> u32;

    /// Credits that a VL may hold at most.
    fn max(&self) -> u32;

    /// Whether what is free for a VL depends on what the other VLs of its link hold.
    fn shared(&self) -> bool;

    /// Credits that are free for a VL that holds `used`, where `all` the VLs of the link, itself included, hold so many
    /// each. Asked for only where they are [`shared`](Self::shared): else it is what is left of `max`.
    fn free(&self, used: u32, all: impl Iterator<Item = u32>) -> u32;
}

/// So many credits for each VL, for itself alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticBuffers {
    /// Credits of a VL.
    pub credits: u32,
}

impl BufferPolicy for StaticBuffers {
    fn min(&self) -> u32 {
        self.credits
    }

    fn max(&self) -> u32 {
        self.credits
    }

    fn shared(&self) -> bool {
        false
    }

    fn free(&self, used: u32, _all: impl Iterator<Item = u32>) -> u32 {
        self.credits.saturating_sub(used)
    }
}

/// One space for all VLs of a link, in which each has an exclusive part; what is left is anybody's, up to a maximum a VL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedBuffers {
    /// Credits of a VL that no other can take.
    pub exclusive: u32,
    /// Credits that are no VL's alone.
    pub pool: u32,
    /// Credits of a VL at most.
    pub max: u32,
}

impl BufferPolicy for SharedBuffers {
    fn min(&self) -> u32 {
        self.exclusive
    }

    fn max(&self) -> u32 {
        self.max
    }

    fn shared(&self) -> bool {
        true
    }

    fn free(&self, used: u32, all: impl Iterator<Item = u32>) -> u32 {
        let from_pool: u32 = all.map(|used| used.saturating_sub(self.exclusive)).sum();
        let own = self.exclusive.saturating_sub(used) + self.pool.saturating_sub(from_pool);
        own.min(self.max.saturating_sub(used))
    }
}

/// The rule that a configuration names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfiguredBuffers {
    /// That of the key `credits`.
    Static(StaticBuffers),
    /// That of the key `shared_buffers`.
    Shared(SharedBuffers),
}

impl ConfiguredBuffers {
    /// That of `config`, which was checked.
    pub(super) fn new(config: &CreditConfig) -> Self {
        match config.shared_buffers {
            None => Self::Static(StaticBuffers { credits: config.credits }),
            Some(SharedBuffersConfig { size, exclusive, max }) => {
                let pool = size.saturating_sub(u32::from(config.vls) * exclusive);
                Self::Shared(SharedBuffers { exclusive, pool, max: max.min(exclusive + pool) })
            }
        }
    }
}

impl BufferPolicy for ConfiguredBuffers {
    fn min(&self) -> u32 {
        match self {
            Self::Static(buffers) => buffers.min(),
            Self::Shared(buffers) => buffers.min(),
        }
    }

    fn max(&self) -> u32 {
        match self {
            Self::Static(buffers) => buffers.max(),
            Self::Shared(buffers) => buffers.max(),
        }
    }

    #[inline]
    fn shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    fn free(&self, used: u32, all: impl Iterator<Item = u32>) -> u32 {
        match self {
            Self::Static(buffers) => buffers.free(used, all),
            Self::Shared(buffers) => buffers.free(used, all),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the VLs take of what is free for them and give back: the sum fits, no VL holds more than its maximum, and each
        /// has its exclusive part.
        #[test]
        fn what_is_held_fits_and_nobody_starves(
            vls in 1usize..=15,
            (exclusive, pool, max) in (1u32..50, 0u32..200, 1u32..300),
            steps in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), 1u32..100), 1..300),
        ) {
            let policy = SharedBuffers { exclusive, pool, max: max.max(exclusive) };
            let size = exclusive * u32::try_from(vls).unwrap() + pool;
            let mut used = vec![0u32; vls];
            for (vl, take, credits) in steps {
                let vl = vl.index(vls);
                let before: Vec<u32> = used.iter().map(|own| policy.free(*own, used.iter().copied())).collect();
                if take {
                    used[vl] += credits.min(before[vl]);
                } else {
                    used[vl] -= credits.min(used[vl]);
                    let after = used.iter().map(|own| policy.free(*own, used.iter().copied()));
                    prop_assert!(before.iter().zip(after).all(|(before, after)| after >= *before));
                }
                prop_assert!(used.iter().sum::<u32>() <= size);
                for own in &used {
                    prop_assert!(*own <= policy.max);
                    prop_assert!(own + policy.free(*own, used.iter().copied()) >= exclusive);
                }
            }
        }
    }
}
