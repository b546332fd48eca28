//! What is measured of synthetic traffic. Which packets count, and how, is in `docs/traffic.md`.

mod confidence;
mod figures;
mod histogram;
mod levels;
mod link_use;
mod losses;
mod meter;
mod saturation;
mod series;
mod virtual_lanes;

pub use confidence::{Interval, interval};
pub use figures::{Cost, Distribution, ParallelCost, QueueUse, RunFigures};
pub use histogram::Histogram;
pub use levels::LevelCount;
pub use link_use::{LinkUse, LinkUses};
pub use losses::Losses;
pub use meter::{Batch, Meter, PairCount};
pub use saturation::{Saturation, judge};
pub use series::{MAX_ROWS, Series, SeriesRow, SeriesSpan, Times};
pub use virtual_lanes::VlUse;

/// A count as a number to compute with.
#[expect(clippy::cast_precision_loss, reason = "statistics")]
pub const fn float(count: u64) -> f64 {
    count as f64
}

/// A sum as a number to compute with.
#[expect(clippy::cast_precision_loss, reason = "statistics")]
const fn wide(sum: u128) -> f64 {
    sum as f64
}
