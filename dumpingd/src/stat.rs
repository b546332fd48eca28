//! `/proc/PID/stat`, as far as it is wanted: it is read of each process whenever owners are looked for, and taking all of
//! its 52 fields apart took more time than the kernel needs to write them.

use std::fs::File;
use std::io::{self, Read};

/// The line is shorter: a name of at most 64 bytes and 51 numbers.
const MAX_BYTES: usize = 2048;
/// `PF_EXITING` (linux/sched.h).
const EXITING: u32 = 0x4;
/// Fields behind the name, counted from the state (proc_pid_stat(5)).
const PARENT: usize = 1;
const FLAGS: usize = 6;
const START: usize = 19;

/// What is known of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Name of its program, cut at 15 bytes.
    pub command: String,
    /// `Z` = zombie.
    pub state: char,
    /// Its parent.
    pub parent: u32,
    /// Whether it is giving up what it has.
    pub is_exiting: bool,
    /// When it began, clock ticks since the host booted.
    pub start_ticks: u64,
}

impl Stat {
    /// Of a process.
    ///
    /// # Errors
    /// If there is none of that number, or /proc has another format.
    pub fn read(pid: u32) -> io::Result<Self> {
        let mut text = [0; MAX_BYTES];
        let length = File::open(format!("/proc/{pid}/stat"))?.read(&mut text)?;
        Self::parse(&text[..length]).ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat has another format")))
    }

    /// From the file's text; the name may hold blanks and brackets.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let begin = text.iter().position(|&byte| byte == b'(')? + 1;
        let end = text.iter().rposition(|&byte| byte == b')')?;
        let command = String::from_utf8_lossy(text.get(begin..end)?).into_owned();
        let mut fields = str::from_utf8(&text[end + 1..]).ok()?.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        // Each is counted from the one before.
        let parent = fields.nth(PARENT - 1)?.parse().ok()?;
        let flags: u32 = fields.nth(FLAGS - PARENT - 1)?.parse().ok()?;
        let start_ticks = fields.nth(START - FLAGS - 1)?.parse().ok()?;
        Some(Self { command, state, parent, is_exiting: flags & EXITING != 0, start_ticks })
    }

    /// Whether it is there and is not ending: no zombie, and none that is giving up what it has (it may take a while to
    /// become one).
    #[must_use]
    pub fn still_runs(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x') && !self.is_exiting
    }
}
