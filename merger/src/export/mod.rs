//! Exports for the tools of others.

pub mod coflow;
mod file;
pub mod flows;
pub mod goal;
mod lanes;
pub mod paraver;
pub mod perfetto;

pub use coflow::coflow;
pub use file::ExportError;
pub use flows::flows;
pub use goal::goal;
pub use paraver::paraver;
pub use perfetto::perfetto;
