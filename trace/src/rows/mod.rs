//! The tables of a trace, a row type each. `trace-tables` reads and writes them as Parquet.
//!
//! | table | row | what |
//! |---|---|---|
//! | `hosts` | [`HostRow`] | hosts, racks, clocks |
//! | `processes` | [`ProcessRow`] | pid and start time, role |
//! | `connections` | [`ConnectionRow`] | TCP connections, both sides as one, owners |
//! | `limits` | [`LimitRow`] | what held their senders up: receivers, buffers, the network |
//! | `messages` | [`MessageRow`] | what applications meant as one unit |
//! | `spans` | [`SpanRow`] | when processes worked on a message |
//! | `steps` | [`StepRow`] | what was made and taken of messages, by bytes |
//! | `events` | [`EventRow`] | nodes of the causal graph |
//! | `dependencies` | [`DependencyRow`] | its edges |
//! | `timers` | [`TimerRow`] | loops that send on their own account |
//! | `tasks`, `jobs` | [`TaskRow`], [`JobRow`] | attempts and their phases, jobs and their counters |
//!
//! An id is the number of the row in its table. Times are nanoseconds since the epoch on the reference host's clock,
//! after alignment. Sizes are bytes.

mod causal;
mod column;
mod network;
mod progress;
mod trace;
mod work;

pub use causal::{Carrier, DependencyRow, EventKind, EventRow, Evidence, On, TimerRow};
pub use column::{Cell, Column, ColumnDescription, Row, RowError, TextCells, plain_text};
pub use network::{ConnectionRow, HostRow, LimitRow, MessageKind, MessageRow, OwnerEvidence, ProcessRow, SpanRow};
pub use progress::{StepKind, StepRow};
pub use trace::Trace;
pub use work::{JobRow, TaskKind, TaskRow};
