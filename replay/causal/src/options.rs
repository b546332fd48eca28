//! How a trace is replayed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What decides when an event happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Causality {
    /// Its causes in the simulated world.
    #[default]
    Trace,
    /// The recording: every message leaves at its recorded time, whatever the network does. A job takes as long as it
    /// was recorded on any network, which shows what causality is for.
    Recorded,
}

/// How much longer processes think than they did in the recording.
///
/// Scaled is what lies between an event and the latest of its causes, but for the pauses of timers, which are no work.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuFactors {
    /// For all that `by_kind` does not name. Default: 1.
    pub all: f64,
    /// By kind of task ("map", "reduce") or role of the process ("DataNode"); a task's kind goes before its role.
    pub by_kind: BTreeMap<String, f64>,
}

impl Default for CpuFactors {
    fn default() -> Self {
        Self { all: 1.0, by_kind: BTreeMap::new() }
    }
}

/// How a trace is replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// What decides when an event happens.
    pub causality: Causality,
    /// How much longer processes think.
    pub cpu: CpuFactors,
    /// Whether a connection that was opened during the job is opened in the simulated network too: before the first
    /// bytes of its client an empty segment goes there and one comes back, in place of the recorded handshake, which
    /// is taken out of the thinking before it. Without it, the recorded handshake stays a part of the thinking.
    pub handshakes: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { causality: Causality::Trace, cpu: CpuFactors::default(), handshakes: true }
    }
}

/// Picoseconds scaled by a factor; a factor of 1 leaves them as they are, to the bit.
#[must_use]
#[expect(clippy::float_cmp, reason = "1 is the factor that changes nothing; others near it are meant")]
pub fn scaled_ps(ps: u64, factor: f64) -> u64 {
    if factor == 1.0 {
        return ps;
    }
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a factor is an estimate: 52 bits are enough, and factors are checked to be positive"
    )]
    let scaled = (ps as f64 * factor).round() as u64;
    scaled
}
