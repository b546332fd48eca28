//! The causal semantics of a recorded job: a message leaves when what caused it has happened, plus the time that its
//! process really thought. What events, dependencies, timers and news are is defined by the tables of a trace
//! (`trace::rows`, module `causal`); this crate gives them times, over anything that carries bytes.
//!
//! - Time 0 is the job's submission. What was recorded before counts as happened at its recorded time; what was recorded
//!   after the job's end is left out; events without causes happen when they were recorded.
//! - Timers go on beating at their typical pace when their recorded beats have run out and something of the job still
//!   travels by them, so that no news is lost on a slower network.
//! - A connection that was opened during the job is opened in the simulated network too ([`Options::handshakes`]).
//! - Tasks may compete for processors ([`Options::cores`]): what competing took in the recording is taken out first.
//! - An execution that cannot go on says which event waits for what ([`CausalError::Halt`]).

mod check;
mod cores;
mod doubt;
mod error;
mod execution;
mod graph;
mod halt;
mod heartbeats;
mod options;
mod outcome;
mod path;
mod recorded;
mod time;
mod trace_graph;
mod transport;

pub use cores::RecordedCores;
pub use doubt::{Doubt, doubts, thinking_of_coordinators};
pub use error::CausalError;
pub use execution::{Execution, Progress};
pub use graph::{JobGraph, JobPeriod};
pub use options::{Causality, CoreSharing, CpuFactors, Jitter, NetworkWork, Options, scaled_ps};
pub use outcome::{CarrierId, EventOutcome, Happened, Outcome, Piggyback, SyntheticHeartbeat};
pub use path::{CriticalPath, PathKind, Piece, critical_path, critical_path_to, critical_steps_to};
pub use recorded::{RecordedBeats, Recording, recorded};
pub use time::JobTime;
pub use trace_graph::TraceGraph;
pub use transport::{Chunk, Token, Transport};
