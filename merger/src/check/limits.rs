//! What held senders up: the kernel's word beside that of the packets.

use std::collections::HashSet;

use serde::Serialize;
use trace::ids::ConnectionId;
use trace::rows::Trace;

use crate::sums::add;

/// Sums over directions of connections. Times are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LimitsDetail {
    /// Directions of which the packets of the sender's host tell, and their sums.
    pub captured: Limited,
    /// Those of them of which the sender's kernel tells as well, and their sums by packets.
    pub compared: Limited,
    /// The same directions' sums by the kernel.
    pub kernel: Limited,
    /// Time in which the send buffer was full, which packets do not show.
    pub kernel_buffer_limited_ns: u64,
    /// (packets - kernel) / kernel of the time with bytes under way.
    pub busy_error: Option<f64>,
}

/// How long senders waited for others.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Limited {
    /// Directions of connections.
    pub directions: u64,
    /// Bytes were not acknowledged.
    pub busy_ns: u64,
    /// The receiver's window was full.
    pub window_limited_ns: u64,
}

impl Limited {
    fn add(&mut self, busy_ns: u64, window_limited_ns: Option<u64>) {
        self.directions += 1;
        add(&mut self.busy_ns, busy_ns);
        add(&mut self.window_limited_ns, window_limited_ns.unwrap_or(0));
    }
}

pub(super) fn compare(trace: &Trace, counted: &HashSet<ConnectionId>) -> LimitsDetail {
    let mut detail = LimitsDetail::default();
    for row in trace.limits.iter().filter(|row| counted.contains(&row.connection)) {
        let Some(busy_ns) = row.busy_ns else { continue };
        detail.captured.add(busy_ns, row.window_limited_ns);
        if let Some(kernel_ns) = row.kernel_busy_ns {
            detail.compared.add(busy_ns, row.window_limited_ns);
            detail.kernel.add(kernel_ns, row.kernel_window_limited_ns);
            add(&mut detail.kernel_buffer_limited_ns, row.kernel_buffer_limited_ns.unwrap_or(0));
        }
    }
    let (packets, kernel) = (detail.compared.busy_ns as f64, detail.kernel.busy_ns as f64);
    detail.busy_error = (kernel > 0.0).then(|| (packets - kernel) / kernel);
    detail
}

/// In words; `None` where nothing is known.
pub(super) fn text(detail: &LimitsDetail) -> Option<String> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let captured = &detail.captured;
    if captured.directions == 0 {
        return None;
    }
    let mut text = format!(
        "senders, {} directions by their packets: bytes under way {:.2} s, of which the receiver's window was full {:.2} s",
        captured.directions,
        seconds(captured.busy_ns),
        seconds(captured.window_limited_ns)
    );
    if let Some(busy_error) = detail.busy_error {
        text += &format!(
            "\nof {} of them the kernel tells as well: bytes under way {:.2} s (packets {:.2} s, {:+.1}%), the receiver's window \
             full {:.2} s (packets {:.2} s), the send buffer full {:.2} s",
            detail.kernel.directions,
            seconds(detail.kernel.busy_ns),
            seconds(detail.compared.busy_ns),
            100.0 * busy_error,
            seconds(detail.kernel.window_limited_ns),
            seconds(detail.compared.window_limited_ns),
            seconds(detail.kernel_buffer_limited_ns)
        );
    }
    Some(text)
}
