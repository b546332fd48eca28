//! Text for counting words: drawn from a seed, with the frequencies of a natural language, so that it is the same on
//! every machine and its counts are known before Hadoop counts.

use std::collections::BTreeMap;
use std::io::{self, Write};

/// Words that the text is made of.
pub const VOCABULARY: usize = 20_000;
/// Words a line.
const LINE_WORDS: usize = 10;

/// Numbers from a seed (SplitMix64: Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Begins at a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next one.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next one as a share, 0 <= x < 1.
    pub fn share(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Counts by word.
pub type Counts = BTreeMap<String, u64>;

/// A source of text.
#[derive(Clone, Debug)]
pub struct Text {
    numbers: Numbers,
    words: Vec<String>,
    counts: Vec<u64>,
}

impl Text {
    /// Text of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let words = (0..VOCABULARY).map(word).collect();
        Self { numbers: Numbers::new(seed), words, counts: vec![0; VOCABULARY] }
    }

    /// Writes lines until at least `bytes` are written; returns how many were.
    ///
    /// # Errors
    /// If the output fails.
    pub fn write(&mut self, out: &mut impl Write, bytes: u64) -> io::Result<u64> {
        let mut written = 0;
        let mut line = String::new();
        while written < bytes {
            line.clear();
            for position in 0..LINE_WORDS {
                let rank = zipf(&mut self.numbers, VOCABULARY);
                self.counts[rank] += 1;
                line.push_str(&self.words[rank]);
                line.push(if position + 1 == LINE_WORDS { '\n' } else { ' ' });
            }
            out.write_all(line.as_bytes())?;
            written += line.len() as u64;
        }
        Ok(written)
    }

    /// How often each word was written so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let pairs = self.words.iter().zip(&self.counts).filter(|(_, count)| **count > 0);
        pairs.map(|(word, count)| (word.clone(), *count)).collect()
    }
}

/// A rank below `count` with a probability of about 1 / (rank + 1) (Zipf), by inverting the integral of 1 / x.
pub fn zipf(numbers: &mut Numbers, count: usize) -> usize {
    let rank = libm::pow((count + 1) as f64, numbers.share());
    (rank as usize - 1).min(count - 1)
}

/// The word of a rank: syllables, frequent words short.
#[must_use]
pub fn word(rank: usize) -> String {
    const CONSONANTS: &[u8] = b"bdfghklmnprstvz";
    const VOWELS: &[u8] = b"aeiou";
    let syllables = CONSONANTS.len() * VOWELS.len();
    let mut word = String::new();
    let mut left = rank + 1;
    while left > 0 {
        let syllable = (left - 1) % syllables;
        word.push(char::from(CONSONANTS[syllable / VOWELS.len()]));
        word.push(char::from(VOWELS[syllable % VOWELS.len()]));
        left = (left - 1) / syllables;
    }
    word
}

/// Reads the output of WordCount: lines of a word, a tab and a count.
///
/// # Errors
/// If a line is another.
pub fn read_counts(text: &str, into: &mut Counts) -> Result<(), String> {
    for line in text.lines() {
        let (word, count) = line.split_once('\t').ok_or_else(|| format!("{line:?} is no word and count"))?;
        let count = count.parse::<u64>().map_err(|_| format!("{line:?} has no count"))?;
        *into.entry(word.to_owned()).or_default() += count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_same_seed_writes_the_same_text_and_another_one_another() {
        let write = |seed| {
            let mut out = Vec::new();
            Text::new(seed).write(&mut out, 10_000).unwrap();
            out
        };
        assert_eq!(write(1), write(1));
        assert_ne!(write(1), write(2));
    }

    #[test]
    fn the_counts_are_those_of_the_text() {
        let mut text = Text::new(7);
        let mut out = Vec::new();
        let written = text.write(&mut out, 50_000).unwrap();
        assert_eq!(written, out.len() as u64);
        let mut counted = Counts::new();
        for word in String::from_utf8(out).unwrap().split_whitespace() {
            *counted.entry(word.to_owned()).or_default() += 1;
        }
        assert_eq!(text.counts(), counted);
    }

    #[test]
    fn no_two_ranks_share_a_word() {
        let words: BTreeSet<String> = (0..VOCABULARY).map(word).collect();
        assert_eq!(words.len(), VOCABULARY);
    }

    #[test]
    fn outputs_of_several_reduces_add_up() {
        let mut counts = Counts::new();
        read_counts("a\t2\nb\t1\n", &mut counts).unwrap();
        read_counts("a\t1\n", &mut counts).unwrap();
        assert_eq!(counts["a"], 3);
        assert!(read_counts("no tab\n", &mut counts).is_err());
    }
}
