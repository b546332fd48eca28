//! What comes of joining captures.

use crate::joined::Joined;

/// How the loss of segments begins that arrive before they left, by more than the clocks' uncertainty.
pub const VIOLATIONS: &str = "segments that arrive before they left after alignment";
/// How the loss of segments begins whose delivery was moved, within the clocks' uncertainty, to when they left.
pub const CLAMPED: &str = "segments whose delivery was moved to when they left";

/// Captures, joined.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    /// What they say.
    pub joined: Joined,
    /// What the reader of the trace should know.
    pub notes: Vec<String>,
    /// Packets read.
    pub packets: u64,
    /// How clocks were aligned; hosts by their rows.
    pub clocks: Vec<HostClock>,
}

/// How the clock of a host was aligned.
#[derive(Clone, Debug, PartialEq)]
pub struct HostClock {
    /// Host.
    pub host: String,
    /// Added to its clock at the trace's start, nanoseconds.
    pub offset_ns: i64,
    /// What it gained over the reference clock, parts per million.
    pub drift_ppm: f64,
    /// How far off it may be, nanoseconds.
    pub uncertainty_ns: u64,
}
