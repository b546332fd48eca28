//! Text that many rows share: each word lies in memory once.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use crate::maps::HashSet;

/// A word that others may share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word(Arc<String>);

impl Word {
    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Word {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Word {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Word {
    fn from(text: &str) -> Self {
        Self(Arc::new(text.to_owned()))
    }
}

impl From<String> for Word {
    fn from(text: String) -> Self {
        Self(Arc::new(text))
    }
}

impl PartialEq<str> for Word {
    fn eq(&self, other: &str) -> bool {
        self.0.as_str() == other
    }
}

impl PartialEq<&str> for Word {
    fn eq(&self, other: &&str) -> bool {
        self.0.as_str() == *other
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The words that there are so far.
#[derive(Debug, Default)]
pub(crate) struct Words {
    known: Mutex<HashSet<Word>>,
}

impl Words {
    /// The word of a text, which is made where it is new.
    pub fn of(&self, text: &str) -> Word {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(word) = known.get(text) {
            return word.clone();
        }
        let word = Word::from(text);
        known.insert(word.clone());
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_lies_in_memory_once() {
        let words = Words::default();
        let (first, again, other) = (words.of("allocate"), words.of("allocate"), words.of("complete"));
        assert!(Arc::ptr_eq(&first.0, &again.0) && first == "allocate" && other == *"complete" && other != first);
    }
}
