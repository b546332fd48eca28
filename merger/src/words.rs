//! Text that many rows share: each word lies in memory once.

use std::sync::Arc;

use crate::maps::HashMap;

/// Words by their numbers, which come in the order of first use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    words: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

impl Words {
    /// The number of a text, which gets one where it is new.
    pub fn number_of(&mut self, text: &str) -> u32 {
        if let Some(number) = self.known(text) {
            return number;
        }
        let (word, number) = (Arc::from(text), u32::try_from(self.words.len()).unwrap_or(u32::MAX));
        self.words.push(Arc::clone(&word));
        self.numbers.insert(word, number);
        number
    }

    /// The number of a text that has one.
    pub fn known(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    /// The text of a number; "" = it has none.
    pub fn text(&self, number: u32) -> &str {
        self.words.get(number as usize).map_or("", |word| word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_one_number() {
        let mut words = Words::default();
        let (first, again, other) =
            (words.number_of("allocate"), words.number_of("allocate"), words.number_of("complete"));
        assert!(first == again && first != other && words.words.len() == 2);
        assert_eq!([first, other].map(|number| words.text(number)), ["allocate", "complete"]);
        assert_eq!((words.known("complete"), words.known("create"), words.text(7)), (Some(other), None, ""));
    }
}
