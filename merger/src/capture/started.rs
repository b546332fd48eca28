//! Threads that were started, which are most of what JVMs say, packed.

use std::io;

use crate::spilled::ByteLog;
use crate::varint::{MAX_BYTES, get, put, unzigzag, zigzag};

/// A thread that another one of its JVM started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartedThread {
    /// When, nanoseconds since the epoch.
    pub at_ns: u64,
    /// The thread that started it.
    pub by: u64,
    /// The new thread.
    pub child: u64,
}

/// Memory that those of one JVM take at most, bytes.
const MAX_HELD: usize = 4 << 10;

/// Threads of one JVM that were started, in the order in which that was told: each told against the one before.
#[derive(Clone, Debug)]
pub struct StartedThreads {
    bytes: ByteLog,
    last: Context,
}

impl Default for StartedThreads {
    fn default() -> Self {
        Self { bytes: ByteLog::within(MAX_HELD), last: Context::default() }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Context {
    at_ns: u64,
    by: u64,
    child: u64,
}

impl StartedThreads {
    /// Appends one.
    pub fn push(&mut self, thread: StartedThread) {
        let StartedThread { at_ns, by, child } = thread;
        let Context { at_ns: last_ns, by: last_by, child: last_child } = self.last;
        for (number, last) in [(at_ns, last_ns), (by, last_by), (child, last_child)] {
            let mut bytes = [0; MAX_BYTES];
            let length = put(&mut bytes, zigzag(number.wrapping_sub(last) as i64));
            self.bytes.tail().extend_from_slice(&bytes[..length]);
        }
        self.bytes.end_record();
        self.last = Context { at_ns, by, child };
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = StartedThread> {
        let mut last = Context::default();
        self.bytes.parts().flat_map(move |(_, part)| {
            let mut rest = &part[..];
            let mut next = || {
                for number in [&mut last.at_ns, &mut last.by, &mut last.child] {
                    *number = number.wrapping_add(unzigzag(get(&mut rest)?) as u64);
                }
                Some(StartedThread { at_ns: last.at_ns, by: last.by, child: last.child })
            };
            std::iter::from_fn(&mut next).collect::<Vec<StartedThread>>()
        })
    }

    /// Whether all could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.bytes.check()
    }

    /// The same threads, with their times moved.
    #[must_use]
    pub fn changed(&self, moved: impl Fn(u64) -> u64) -> Self {
        let mut changed = Self::default();
        self.iter().for_each(|thread| changed.push(StartedThread { at_ns: moved(thread.at_ns), ..thread }));
        changed.settle();
        changed
    }

    /// Gives back what only helps to append.
    pub fn settle(&mut self) {
        self.bytes.settle();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn threads_are_as_they_were(told in prop::collection::vec(any::<(u64, u64, u64)>(), 0..400), more in any::<u64>()) {
            let told = told.into_iter().map(|(at_ns, by, child)| StartedThread { at_ns, by, child });
            let told: Vec<StartedThread> = told.collect();
            let mut threads = StartedThreads::default();
            told.iter().for_each(|thread| threads.push(*thread));
            prop_assert_eq!(threads.iter().collect::<Vec<_>>(), &told[..]);
            let moved = |t: u64| t.wrapping_add(more);
            let later = told.iter().map(|thread| StartedThread { at_ns: moved(thread.at_ns), ..*thread });
            prop_assert!(threads.changed(moved).iter().eq(later));
        }
    }
}
