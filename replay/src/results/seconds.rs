//! Times for people.

/// Picoseconds as seconds.
#[expect(clippy::cast_precision_loss, reason = "for people and summaries; 2^53 ps are 2.5 hours to the ps")]
pub(super) fn seconds(ps: u64) -> f64 {
    ps as f64 / 1e12
}
