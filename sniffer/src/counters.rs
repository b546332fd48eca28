//! What became of the packets of an interface; shared between its thread and whoever reports.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the start of the run.
#[derive(Debug, Default)]
pub struct Counters {
    /// Packets recorded.
    pub packets: AtomicU64,
    /// No TCP over IP.
    pub other: AtomicU64,
    /// Headers unreadable.
    pub unparsed: AtomicU64,
    /// Lost because the ring was full.
    pub kernel_drops: AtomicU64,
    /// Lost in the interface or its driver.
    pub interface_drops: AtomicU64,
    /// Recorded, but the file could not be written.
    pub unwritten: AtomicU64,
    /// What went wrong, in words.
    pub problems: Mutex<Vec<String>>,
}

impl Counters {
    /// Notes a problem, once.
    pub fn note(&self, problem: String) {
        if let Ok(mut problems) = self.problems.lock()
            && !problems.contains(&problem)
        {
            problems.push(problem);
        }
    }
}

/// Reads a counter.
#[must_use]
pub fn value(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// Adds to a counter.
pub fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}
