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

/// The processors for which tasks compete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreSharing {
    /// How many there are.
    pub cores: u32,
    /// Whether all hosts share them, as in a lab on one machine; otherwise each host has so many.
    pub shared: bool,
    /// What the network takes of them.
    pub network: NetworkWork,
}

impl CoreSharing {
    /// Processors of which the network takes nothing.
    #[must_use]
    pub const fn new(cores: u32, shared: bool) -> Self {
        Self { cores, shared, network: NetworkWork { recorded_fs: 0, replayed_fs: 0 } }
    }
}

/// What bytes that go from host to host take of the processors beside what tasks compute: protocols, interrupts, and, in a lab, what
/// emulates the network. Femtoseconds of a processor a byte, half of it at either end. Default: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkWork {
    /// On the recorded network.
    pub recorded_fs: u64,
    /// On that of the replay.
    pub replayed_fs: u64,
}

/// Chance: each thinking is longer or shorter by a share that is drawn from a seed.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Jitter {
    /// The most by which a thinking changes, as a share of it. Default: 0, none.
    pub share: f64,
    /// Decides what is drawn.
    pub seed: u64,
}

impl Jitter {
    /// The factor of an event's thinking: evenly spread from `1 - share` to `1 + share`.
    #[must_use]
    pub fn factor(&self, event: u32) -> f64 {
        // SplitMix64 (Steele, Lea, Flood 2014): a hash of seed and event, so that no order of drawing shows.
        let mut state = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(event) << 32 | u64::from(event));
        state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^= state >> 31;
        #[expect(clippy::cast_precision_loss, reason = "53 bits of chance")]
        let unit = (state >> 11) as f64 / (1u64 << 53) as f64;
        1.0 + self.share * (2.0 * unit - 1.0)
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
    /// Whether news waits for the beats of timers. Without it news is there at once.
    pub timers: bool,
    /// Whether work that the recorded network hid takes time: production, consumption and storing of bytes that waited anyway.
    /// Without it that work takes none: the network alone paces them.
    pub production: bool,
    /// Processors for which tasks compete; `None`: thinking takes as long as recorded, whatever else runs.
    pub cores: Option<CoreSharing>,
    /// What chance does to thinking.
    pub jitter: Jitter,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            causality: Causality::Trace,
            cpu: CpuFactors::default(),
            handshakes: true,
            timers: true,
            production: true,
            cores: None,
            jitter: Jitter::default(),
        }
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
