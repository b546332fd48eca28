//! The keys of a separable allocator.

use serde::{Deserialize, Serialize};

/// Which side of an allocation chooses first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Inputs choose what they ask for, then outputs among those that ask.
    #[default]
    InputFirst,
    /// Outputs choose among those that ask, then inputs among what they were given: with round robin, iSLIP.
    OutputFirst,
}

/// How one of several requests is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arbiter {
    /// The first behind the one that was granted last.
    #[default]
    RoundRobin,
    /// A drawn one.
    Random,
    /// That of the packet that left its host first.
    Age,
}

/// An allocator of two stages: `{ order = "input-first", iterations = 1, arbiter = "round-robin" }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SeparableAllocator {
    /// Which side chooses first. Default: `input-first`.
    pub order: Order,
    /// How often, each time among what is left, 1 to 64. Default: 1.
    pub iterations: u8,
    /// How each side chooses. Default: `round-robin`.
    pub arbiter: Arbiter,
}

impl Default for SeparableAllocator {
    fn default() -> Self {
        Self { order: Order::default(), iterations: 1, arbiter: Arbiter::default() }
    }
}
