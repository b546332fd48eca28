//! Hash maps whose hashes are quick: those of the standard library take a good part of a merge.

use foldhash::quality::RandomState;

pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
pub(crate) type HashSet<K> = std::collections::HashSet<K, RandomState>;
