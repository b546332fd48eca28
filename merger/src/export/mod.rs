//! Exports for the tools of others.

pub mod coflow;
pub mod dimemas;
mod file;
pub mod flows;
pub mod goal;
mod job_lanes;
mod lanes;
mod nodes;
pub mod otlp;
pub mod paraver;
pub mod perfetto;
pub mod vef;

pub use coflow::coflow;
pub use dimemas::dimemas;
pub use file::ExportError;
pub use flows::flows;
pub use goal::goal;
pub use otlp::otlp;
pub use paraver::paraver;
pub use perfetto::perfetto;
pub use vef::vef;
