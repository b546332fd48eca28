//! What a process that runs has taken so far.

use std::fs;

/// What a process has computed so far, threads that have ended included; in the kernel's ticks of 10 ms.
#[must_use]
pub fn cpu_seconds(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may have spaces; user and system time are the 12th and 13th behind it.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
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
