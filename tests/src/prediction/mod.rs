//! The matrix of predictions: captures on each network against real runs on every other one.

pub mod cells;
pub mod noise;
pub mod plan;
pub mod record;
pub mod summary;
pub mod table;
