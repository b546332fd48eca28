//! The job history of Hadoop 1.x: records of a kind and named values, one after the other.
//!
//! `Job JOBID="job_1_0001" JOB_STATUS="PREP" .` - in values a backslash stands before `"`, `=`, `.` and itself. Values
//! may go over several lines; a record ends with ` .` at the end of a line.

use std::collections::BTreeMap;

use crate::truth::CounterGroups;

/// A record: its kind ("Job", "Task", "MapAttempt", "ReduceAttempt", "Meta") and its values by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Its kind.
    pub kind: String,
    /// Its values, without escapes.
    pub values: BTreeMap<String, String>,
    /// Line on which it begins, from 1.
    pub line: usize,
}

impl Record {
    /// A value; "" = there is none of that name.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    /// A value that is a number; 0 = none.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or(0)
    }

    /// A value that holds counters.
    #[must_use]
    pub fn counters(&self, name: &str) -> CounterGroups {
        counters(self.text(name))
    }

    /// The last part of a value that is a path: "w1" of "/r1/w1".
    #[must_use]
    pub fn last_part(&self, name: &str) -> &str {
        self.text(name).rsplit('/').next().unwrap_or("")
    }
}

/// Whether a file's beginning is that of such a history.
#[must_use]
pub fn is_one(text: &str) -> bool {
    text.starts_with("Meta VERSION=\"1\"")
}

/// Reads all whole records of a text, and how many bytes at its end belong to none: it was cut off there.
#[must_use]
pub fn read(text: &str) -> (Vec<Record>, usize) {
    let mut records = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some((record, used)) = record(rest) {
        records.push(Record { line, ..record });
        line += rest[..used].matches('\n').count();
        rest = &rest[used..];
    }
    (records, rest.trim_end().len())
}

/// The record at the beginning of a text, and the bytes that it takes with the end of its last line.
fn record(text: &str) -> Option<(Record, usize)> {
    let (kind, mut rest) = text.split_once(' ')?;
    if kind.is_empty() || !kind.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return None;
    }
    let mut record = Record { kind: kind.to_owned(), ..Record::default() };
    loop {
        if let Some(next) = rest.strip_prefix(".\n") {
            return Some((record, text.len() - next.len()));
        }
        let (name, value) = rest.split_once("=\"")?;
        let (value, next) = quoted(value)?;
        record.values.insert(name.to_owned(), value);
        rest = next.strip_prefix(' ')?;
    }
}

/// A value up to its quotation mark, without escapes, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(characters.next()?.1),
            other => value.push(other),
        }
    }
    None
}

/// Reads `{(group)(shown)[(name)(shown)(value)]..}..`; in names a backslash stands before brackets.
fn counters(text: &str) -> CounterGroups {
    let mut groups = CounterGroups::new();
    let (mut group, mut parts, mut part) = (String::new(), Vec::new(), String::new());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => part.extend(characters.next()),
            '{' | '(' => part.clear(),
            ')' => parts.push(std::mem::take(&mut part)),
            '[' => {
                // The group's name and how it is shown come before its first counter.
                if let Some(name) = parts.first() {
                    group.clone_from(name);
                }
                parts.clear();
            }
            ']' => {
                if let [name, _, value] = parts.as_slice()
                    && let Ok(value) = value.parse()
                {
                    groups.entry(group.clone()).or_default().insert(name.clone(), value);
                }
                parts.clear();
            }
            '}' => parts.clear(),
            other => part.push(other),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    const TEXT: &str = "Meta VERSION=\"1\" .\n\
        Task TASKID=\"task_1_0001_m_000000\" ERROR=\"line 1\nline \\\"2\\\" \\.\" .\n\
        Job JOBID=\"job_1_0001\" JOBCONF=\"hdfs://m1/a\\.xml\" FINISH_TIME=\"1795275510595\" HOSTNAME=\"/r1/w1\" \
        COUNTERS=\"{(a\\.b$C)(Shown)[(N_1)(shown \\\\(x\\\\))(7)][(N_2)(n)(-1)]}{(d)(d)[(N_3)(n)(3)]}\" .\n";

    #[test]
    fn records_are_read_with_their_lines() {
        let (records, left) = read(TEXT);
        assert_eq!(left, 0);
        let kinds: Vec<(&str, usize)> = records.iter().map(|record| (record.kind.as_str(), record.line)).collect();
        assert_eq!(kinds, [("Meta", 1), ("Task", 2), ("Job", 4)]);
        assert_eq!(records[1].text("ERROR"), "line 1\nline \"2\" .");
        assert_eq!(records[2].text("JOBCONF"), "hdfs://m1/a.xml");
        assert_eq!(records[2].number("FINISH_TIME"), 1_795_275_510_595);
        assert_eq!(records[2].last_part("HOSTNAME"), "w1");
        assert_eq!(records[2].text("NONE"), "");
    }

    #[test]
    fn counters_are_read_by_group_and_name() {
        let (records, _) = read(TEXT);
        let counters = records[2].counters("COUNTERS");
        assert_eq!(counters["a.b$C"], BTreeMap::from([("N_1".to_owned(), 7), ("N_2".to_owned(), -1)]));
        assert_eq!(counters["d"]["N_3"], 3);
        assert!(records[0].counters("COUNTERS").is_empty());
    }

    #[test]
    fn what_is_cut_off_anywhere_is_left_out_and_told() {
        let (whole, _) = read(TEXT);
        for length in 0..TEXT.len() {
            let (records, left) = read(&TEXT[..length]);
            assert_eq!(records[..], whole[..records.len()]);
            let ends_with_a_record = TEXT[..length].is_empty() || TEXT[..length].ends_with(" .\n");
            assert_eq!(left == 0, ends_with_a_record, "{:?}", &TEXT[..length]);
        }
    }
}
