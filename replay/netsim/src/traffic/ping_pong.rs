//! Hosts that ask and answer: how.

use serde::{Deserialize, Serialize};

use crate::units::DurationPs;

/// Whom a host asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Partner {
    /// The other one of its pair; the first of both asks.
    #[default]
    Nearest,
    /// The same one of the next pair; the first of both asks.
    SecondNearest,
    /// Any other host, drawn anew each time; all ask.
    Random,
}

/// How what hosts take longer is distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseDistribution {
    /// Exponential.
    #[default]
    Exponential,
    /// Normal, what is below 0 taken for 0.
    Normal,
    /// Uniform around the mean.
    Uniform,
}

/// What hosts take longer before they hand a message over: `{ distribution = "normal", mean = "2us", deviation = "100ns" }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// How it is distributed.
    #[serde(default)]
    pub distribution: NoiseDistribution,
    /// Its mean.
    pub mean: DurationPs,
    /// Its standard deviation; of `exponential` it is the mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation: Option<DurationPs>,
}

/// What the keys of a ping-pong come to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PingPongPlan {
    /// Whether of each two hosts the one with the lower number asks; else all do.
    pub first_asks: bool,
    /// Questions of a host that are out at a time.
    pub window: u32,
    /// Payload of an answer.
    pub reply_bytes: u64,
    /// From a question's arrival until its answer is handed over, in picoseconds.
    pub turnaround_ps: u64,
    /// What it and a host that asks take longer.
    pub noise: Option<Noise>,
}
