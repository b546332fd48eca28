//! Lines for a sort with skewed keys: few keys, a few of them on most lines, so that one reduce gets half of all. Drawn
//! from a seed, and checked after the sort.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use crate::text::{Counts, Numbers, VOCABULARY, word, zipf};

/// Keys. Hadoop's `HashPartitioner` gives them to four reduces as 50, 8, 29 and 13% of the lines.
const KEYS: usize = 128;
/// Words behind the key of a line.
const VALUE_WORDS: usize = 15;

/// A source of lines.
#[derive(Clone, Debug)]
pub struct KeyedText {
    numbers: Numbers,
    words: Vec<String>,
    sorted: Sorted,
}

/// What a sort has to keep: lines by key, and bytes of all lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sorted {
    lines: Counts,
    bytes: u64,
}

impl KeyedText {
    /// Lines of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let words = (0..VOCABULARY).map(word).collect();
        Self { numbers: Numbers::new(seed), words, sorted: Sorted::default() }
    }

    /// Writes lines of a key, a tab and words until at least `bytes` are written.
    ///
    /// # Errors
    /// If the output fails.
    pub fn write(&mut self, out: &mut impl Write, bytes: u64) -> io::Result<()> {
        let mut written = 0;
        let mut line = String::new();
        while written < bytes {
            line.clear();
            let key = &self.words[zipf(&mut self.numbers, KEYS)];
            line.push_str(key);
            for position in 0..VALUE_WORDS {
                line.push(if position == 0 { '\t' } else { ' ' });
                line.push_str(&self.words[zipf(&mut self.numbers, VOCABULARY)]);
            }
            line.push('\n');
            out.write_all(line.as_bytes())?;
            *self.sorted.lines.entry(key.clone()).or_default() += 1;
            written += line.len() as u64;
        }
        self.sorted.bytes += written;
        Ok(())
    }

    /// What was written so far.
    #[must_use]
    pub const fn written(&self) -> &Sorted {
        &self.sorted
    }
}

impl Sorted {
    /// Reads the output of a sort, a file a reduce.
    ///
    /// # Errors
    /// If a file cannot be read. In the inner result: a file and line that are out of order, or without a key.
    pub fn read(folder: &Path, beginning: &str) -> io::Result<Result<Self, String>> {
        let mut sorted = Self::default();
        let mut parts = 0;
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with(beginning) {
                continue;
            }
            if let Err(problem) = sorted.add(BufReader::new(File::open(entry.path())?), &name)? {
                return Ok(Err(problem));
            }
            parts += 1;
        }
        Ok(if parts == 0 { Err(format!("no file begins with {beginning}")) } else { Ok(sorted) })
    }

    fn add(&mut self, mut lines: impl BufRead, name: &str) -> io::Result<Result<(), String>> {
        let (mut line, mut before, mut number) = (String::new(), String::new(), 0_u64);
        loop {
            line.clear();
            let read = lines.read_line(&mut line)?;
            if read == 0 {
                return Ok(Ok(()));
            }
            number += 1;
            let Some((key, _)) = line.split_once('\t') else {
                return Ok(Err(format!("{name}, line {number}: no key and tab")));
            };
            if key < before.as_str() {
                return Ok(Err(format!("{name}, line {number}: {key:?} comes after {before:?}")));
            }
            *self.lines.entry(key.to_owned()).or_default() += 1;
            self.bytes += read as u64;
            before.clear();
            before.push_str(key);
        }
    }

    /// What is missing or too much in this output.
    ///
    /// # Errors
    /// If anything is.
    pub fn check(&self, expected: &Self) -> Result<(), String> {
        let count = |sorted: &Self, key: &str| sorted.lines.get(key).copied().unwrap_or(0);
        let mut keys = expected.lines.keys().chain(self.lines.keys());
        if let Some(key) = keys.find(|key| count(self, key) != count(expected, key)) {
            return Err(format!("{} lines with key {key:?} in place of {}", count(self, key), count(expected, key)));
        }
        if self.bytes != expected.bytes {
            return Err(format!("{} bytes in place of {}", self.bytes, expected.bytes));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn text(seed: u64) -> (Vec<u8>, Sorted) {
        let (mut text, mut out) = (KeyedText::new(seed), Vec::new());
        text.write(&mut out, 100_000).unwrap();
        (out, text.written().clone())
    }

    /// `org.apache.hadoop.io.Text` hashes its bytes as 31 h + b from 1, and `HashPartitioner` takes 31 bits of it.
    fn reduce_of(key: &str, reduces: u32) -> u32 {
        let hash = key.bytes().fold(1_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte)));
        (hash & 0x7fff_ffff) % reduces
    }

    #[test]
    fn one_of_four_reduces_gets_half_of_the_lines() {
        let (_, written) = text(1);
        let all: u64 = written.lines.values().sum();
        let of = |reduce| {
            let lines = written.lines.iter().filter(|(key, _)| reduce_of(key, 4) == reduce);
            lines.map(|(_, count)| count).sum::<u64>() as f64 / all as f64
        };
        let shares: Vec<f64> = (0..4).map(of).collect();
        for (share, expected) in shares.iter().zip([0.50, 0.08, 0.29, 0.13]) {
            assert!((share - expected).abs() < 0.05, "{shares:?}");
        }
    }

    #[test]
    fn lines_in_order_of_their_keys_pass_and_others_are_named() {
        let (out, written) = text(2);
        let mut lines: Vec<&str> = std::str::from_utf8(&out).unwrap().lines().collect();
        let read = |lines: &[&str]| {
            let mut sorted = Sorted::default();
            let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            sorted.add(text.as_bytes(), "part-r-00000").unwrap().map(|()| sorted)
        };
        assert!(read(&lines).unwrap_err().contains("comes after"));
        lines.sort_by_key(|line| line.split_once('\t').unwrap().0);
        assert_eq!(read(&lines).unwrap().check(&written), Ok(()));
        let lost = lines.split_off(10);
        assert!(read(&lost).unwrap().check(&written).unwrap_err().contains("lines with key"));
        assert!(read(&["no tab"]).unwrap_err().contains("line 1"));
        let mut longer = written.clone();
        longer.bytes += 1;
        assert!(longer.check(&written).unwrap_err().contains("bytes"));
    }
}
