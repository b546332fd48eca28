//! Synthetic traffic: who sends how much to whom, and when.
//!
//! What the keys of `[traffic]` mean is in `docs/traffic.md`. Every draw is [`crate::kernel::random::draw`] with the seed,
//! what is drawn, the host and how many it drew before, so that a host more or a thread more shifts nothing.

mod arrivals;
mod background;
mod burst_sources;
mod bursts;
mod config;
mod drawing;
mod drive;
mod log_keys;
mod logged;
mod losing;
mod moments;
mod options;
mod pattern;
mod ping_pong;
mod ping_pong_keys;
mod ping_pong_sources;
mod plan;
mod ranks;
mod run;
mod sources;
mod span;
mod step_keys;
mod steps;
mod table;
mod torus;
mod windows;

pub use arrivals::Gaps;
pub(crate) use background::is_background;
pub use burst_sources::BurstSources;
pub use bursts::{Burst, BurstPlan};
pub use config::{Arrivals, Flows, Length, Neighbour, Pattern, React, ShareOf, TrafficConfig, TrafficError, Wrap};
pub(crate) use drawing::LevelShares;
pub use drawing::{Drawing, Source};
pub use drive::{Progress, Raw, drive};
pub use logged::HopLogKeys;
pub use losing::{BlockedHead, FullQueue};
pub use options::{EngineKind, RunOptions};
pub use pattern::Destinations;
pub use ping_pong::{Noise, NoiseDistribution, Partner, PingPongPlan};
pub use ping_pong_sources::PingPongSources;
pub use plan::Plan;
pub use ranks::{RankAnswer, RankOrder, run_on_ranks};
pub use run::{TrafficRun, TrafficRunError, run, run_on};
pub use sources::{Admission, DrawnSources, Injection, Sending, Sources};
pub use span::Span;
pub use steps::{Convergence, StepPlan};
pub use table::{TableError, TimedMessage, read_table};
pub use torus::{Distances, Local, Torus};

use crate::kernel::random::unit;

/// What is drawn: in the upper bits of the place, away from the places of the fabrics.
#[derive(Clone, Copy)]
enum Drawn {
    Gap = 1,
    Destination = 2,
    Share = 3,
    Level = 4,
    Phase = 5,
    First = 6,
    Length = 7,
    React = 8,
    Reactions = 9,
    Noise = 10,
    NoiseAngle = 11,
    Background = 12,
}

/// The number that `host` draws of `what` for its message `count`.
fn draw(seed: u64, what: Drawn, host: u32, count: u64) -> u64 {
    crate::kernel::random::draw(seed, ((what as u64) << 56) | u64::from(host), count)
}
