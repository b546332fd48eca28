//! What the kernel counted of a connection, beside what was captured.

use trace::socket::TcpCounters;

use crate::joined::Stream;

/// bytes_sent - bytes_retrans of one end's socket within the capture.
///
/// A socket that died left its last counters. Of one that is still open, the last scan counts, and what was captured
/// after it is added; of one that was open before the capture, the first scan is subtracted, and what was captured
/// before it is added. `None` if there are no counters, or no last ones of a socket that closed.
#[must_use]
pub fn kernel_bytes(
    counters: &[(u64, bool, TcpCounters)],
    stream: &Stream,
    opened_in_capture: bool,
    ended_in_capture: bool,
) -> Option<u64> {
    let once = |counters: &TcpCounters| counters.bytes_sent.saturating_sub(counters.bytes_retrans);
    let sent_by = |t: u64| -> u64 {
        stream.segments.iter().filter(|segment| segment.sent_ns <= t).map(|segment| u64::from(segment.bytes)).sum()
    };
    let total = sent_by(u64::MAX);
    let last_of_all = counters.iter().find(|(_, died, _)| *died);
    // What a scan saw of a socket that has closed since is a moment in the middle of its life.
    let last = last_of_all.or(if ended_in_capture { None } else { counters.last() })?;
    let up_to_last = if last_of_all.is_some() { total } else { sent_by(last.0) };
    let until_last = once(&last.2) + (total - up_to_last);
    if opened_in_capture {
        return Some(until_last);
    }
    let first = counters.iter().find(|(_, died, _)| !*died)?;
    Some(until_last.saturating_sub(once(&first.2)) + sent_by(first.0))
}

/// The last counters of a socket that was opened and died within the capture: its times are those of its whole life.
#[must_use]
pub fn kernel_limits(counters: &[(u64, bool, TcpCounters)], opened_in_capture: bool) -> Option<TcpCounters> {
    let (_, _, last) = counters.iter().find(|(_, died, _)| *died && opened_in_capture)?;
    // Kernels before 4.10 do not count them.
    (last.busy_us > 0).then_some(*last)
}
