//! What a run takes on this machine.

use std::fs;

/// How long this thread has computed, in seconds, as the kernel's scheduler counts it; 0 where it does not say.
pub fn thread_cpu_s() -> f64 {
    // It counts when a thread leaves the processor, or some milliseconds later.
    std::thread::sleep(std::time::Duration::from_nanos(1));
    let counted = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = counted.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    ns.map_or(0.0, |ns| ns as f64 / 1e9)
}

/// The most memory that this program has had so far, in bytes, as Linux counts it.
pub fn memory_peak_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1_024)
}
