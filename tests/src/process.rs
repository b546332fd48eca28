//! What processes have taken so far.

use std::fs;
use std::thread;
use std::time::Duration;

/// What a process has computed so far, threads that have ended included; in the kernel's ticks of 10 ms.
#[must_use]
pub fn cpu_seconds(pid: u32) -> Option<f64> {
    two_times(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?, 11)
}

/// What the children of this process have computed that have ended; in the kernel's ticks of 10 ms.
#[must_use]
pub fn children_cpu_seconds() -> Option<f64> {
    two_times(&fs::read_to_string("/proc/self/stat").ok()?, 13)
}

/// What this thread has computed so far, as the kernel's scheduler counts it.
#[must_use]
pub fn thread_cpu_seconds() -> Option<f64> {
    // It counts when a thread leaves the processor, or some milliseconds later.
    thread::sleep(Duration::from_nanos(1));
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<u64>().ok()? as f64 / 1e9)
}

/// User and system time together, `skip` fields behind the name.
fn two_times(stat: &str, skip: usize) -> Option<f64> {
    // The name in brackets may have spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(skip);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) as f64 / 100.0)
}

/// The high water mark of a process, while it runs.
#[must_use]
pub fn memory_peak_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mark = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(mark.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}
