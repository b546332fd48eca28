//! Text that many rows share: each word lies in memory once.

use std::hash::BuildHasher as _;

use foldhash::quality::RandomState;
use hashbrown::HashTable;

/// Memory that words take at most, bytes: half a million ids of map attempts. Who writes a JVM's file can name what he likes.
const MAX_BYTES: usize = 32 << 20;
/// What a word takes beside its text: its end, its number, and what hashing leaves free.
const BYTES_PER_WORD: usize = 16;

/// Words by their numbers, which come in the order of first use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    /// All of them, one behind the other.
    texts: String,
    /// Where each ends in `texts`.
    ends: Vec<u32>,
    numbers: HashTable<u32>,
    hashes: RandomState,
    left_out: u64,
}

impl Words {
    /// Stands for a word that was left out.
    const LEFT_OUT: u32 = u32::MAX;

    /// The number of a text, which gets one where it is new. Where there is no room for it, it is left out, and counted.
    pub fn number_of(&mut self, text: &str) -> u32 {
        if let Some(number) = self.known(text) {
            return number;
        }
        let bytes = self.texts.len() + text.len() + BYTES_PER_WORD * (self.ends.len() + 1);
        if bytes > MAX_BYTES {
            self.left_out += 1;
            return Self::LEFT_OUT;
        }
        let number = self.ends.len() as u32;
        self.texts.push_str(text);
        self.ends.push(self.texts.len() as u32);
        let Self { texts, ends, numbers, hashes, .. } = self;
        numbers.insert_unique(hashes.hash_one(text), number, |&other| hashes.hash_one(text_of(texts, ends, other)));
        number
    }

    /// As [`Words::number_of`]; none of a text that is left out.
    pub fn number_if_kept(&mut self, text: &str) -> Option<u32> {
        Some(self.number_of(text)).filter(|number| *number != Self::LEFT_OUT)
    }

    /// The number of a text that has one.
    pub fn known(&self, text: &str) -> Option<u32> {
        self.numbers.find(self.hashes.hash_one(text), |&number| self.text(number) == text).copied()
    }

    /// The text of a number; "" = it has none.
    pub fn text(&self, number: u32) -> &str {
        text_of(&self.texts, &self.ends, number)
    }

    /// How often a text was left out.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

fn text_of<'w>(texts: &'w str, ends: &[u32], number: u32) -> &'w str {
    let Some(&end) = ends.get(number as usize) else { return "" };
    let begin = number.checked_sub(1).map_or(0, |before| ends[before as usize]);
    &texts[begin as usize..end as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_one_number() {
        let mut words = Words::default();
        let (first, again, other) =
            (words.number_of("allocate"), words.number_of("allocate"), words.number_of("complete"));
        assert!(first == again && first != other && words.ends.len() == 2);
        assert_eq!([first, other].map(|number| words.text(number)), ["allocate", "complete"]);
        assert_eq!((words.known("complete"), words.known("create"), words.text(7)), (Some(other), None, ""));
        let empty = words.number_of("");
        assert_eq!((words.known(""), words.text(empty), words.text(first)), (Some(empty), "", "allocate"));
        assert_eq!(words.left_out(), 0);
    }

    #[test]
    fn words_beyond_what_memory_may_take_are_left_out_and_counted() {
        let mut words = Words::default();
        let kept = words.number_of("kept");
        let long = "w".repeat(1 << 20);
        let numbers: Vec<u32> = (0..40).map(|number| words.number_of(&format!("{long}{number}"))).collect();
        assert_eq!(words.left_out(), numbers.iter().filter(|number| **number == Words::LEFT_OUT).count() as u64);
        assert_eq!(words.left_out(), 40 - 31);
        assert!(numbers.iter().take(31).all(|number| words.text(*number).len() > 1 << 20));
        assert_eq!((words.text(Words::LEFT_OUT), words.known("new")), ("", None));
        assert_eq!(words.number_of("kept"), kept);
        assert_eq!((words.number_if_kept("kept"), words.number_if_kept(&long)), (Some(kept), None));
        // A short one still has room.
        assert!(words.number_of("new") < Words::LEFT_OUT && words.texts.len() < MAX_BYTES);
    }
}
