//! Traces for other tools.

mod paraver;
mod states;

pub use paraver::{ExportError, paraver};
