//! Joins the captures of all hosts into a causal trace.
//!
//! [`build::merge`] reads captures and puts together what they say ([`joined::Joined`]); [`causality::build`] tells the causes of
//! that; [`built_trace::trace_of`] does both, and gives a whole trace. `examples/largest_connections.rs` is a program that uses
//! it.
//!
//! ```
//! use merger::build::{Silent, merge};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/wordcount");
//! let merged = merge(&[capture.into()], &Silent)?;
//! let shuffled: u64 = merged
//!     .joined
//!     .messages
//!     .iter()
//!     .filter(|message| message.kind == trace::rows::MessageKind::ShuffleResponse)
//!     .map(|message| message.app_bytes)
//!     .sum();
//! assert!(shuffled > 0);
//!
//! let causal = merger::causality::build(&merged.joined)?;
//! assert_eq!(causal.findings.report.backward, 0);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod assembly;
pub mod build;
pub mod built_trace;
pub mod capture;
pub mod causality;
mod chains;
pub mod characterise;
pub mod check;
pub mod clock;
pub mod compact;
pub mod digest;
pub mod error;
pub mod export;
mod file_copy;
pub mod framing;
pub mod history;
mod inference;
pub mod join;
pub mod joined;
pub mod jvm_events;
pub mod kernel;
mod left_out;
pub mod loss;
mod maps;
pub mod memory;
pub mod merged;
mod nearly_sorted;
pub mod network;
pub mod owners;
pub mod packed_streams;
mod pipelines;
pub mod processes;
pub mod progress;
mod read_connection;
mod records;
mod roles;
pub mod segments;
pub mod spans;
mod spilled;
mod stable_sort;
pub mod steps;
pub mod strip;
pub mod summary;
mod sums;
mod survey;
pub mod tables_page;
pub mod temporary;
pub mod time_text;
mod turns;
mod varint;
pub mod volume;
pub mod window;
mod words;
