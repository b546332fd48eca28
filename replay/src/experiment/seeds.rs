//! `run.seeds`.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// More runs of one experiment than anybody wants.
const MAX_SEEDS: u32 = 10_000;

/// The seeds of several runs: a list, or how many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Seeds {
    /// So many, from `run.seed` on.
    Count(u32),
    /// The seeds themselves.
    List(Vec<u64>),
}

impl Seeds {
    /// The seeds, where the first of a count is `first`.
    #[must_use]
    pub fn seeds(&self, first: u64) -> Vec<u64> {
        match self {
            Self::Count(count) => (0..u64::from(*count)).map(|number| first.saturating_add(number)).collect(),
            Self::List(seeds) => seeds.clone(),
        }
    }
}

impl<'de> Deserialize<'de> for Seeds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountOrList;
        impl<'de> Visitor<'de> for CountOrList {
            type Value = Seeds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("how many seeds, like 5, or a list of them, like [1, 2, 3]")
            }

            fn visit_i64<E: Error>(self, count: i64) -> Result<Seeds, E> {
                match u32::try_from(count) {
                    Ok(count @ 1..=MAX_SEEDS) => Ok(Seeds::Count(count)),
                    _ => Err(E::custom(format!("run.seeds = {count}: 1 to {MAX_SEEDS}, or a list of seeds"))),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Seeds, A::Error> {
                let mut seeds = Vec::new();
                while let Some(seed) = list.next_element::<u64>()? {
                    if seeds.contains(&seed) {
                        return Err(A::Error::custom(format!(
                            "run.seeds: {seed} is there twice; a seed twice tells nothing new"
                        )));
                    }
                    seeds.push(seed);
                }
                if seeds.is_empty() || seeds.len() > MAX_SEEDS as usize {
                    return Err(A::Error::custom(format!(
                        "run.seeds: {} seeds; 1 to {MAX_SEEDS} are allowed",
                        seeds.len()
                    )));
                }
                Ok(Seeds::List(seeds))
            }
        }
        deserializer.deserialize_any(CountOrList)
    }
}
