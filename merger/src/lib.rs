//! Joins the captures of all hosts into a causal trace.

mod assembly;
pub mod build;
pub mod built_trace;
pub mod capture;
pub mod causality;
pub mod check;
pub mod clock;
pub mod error;
pub mod export;
pub mod framing;
pub mod history;
mod inference;
pub mod join;
pub mod joined;
pub mod kernel;
pub mod memory;
pub mod merged;
pub mod owners;
mod pipelines;
pub mod processes;
mod records;
pub mod spans;
pub mod strip;
pub mod summary;
pub mod volume;
