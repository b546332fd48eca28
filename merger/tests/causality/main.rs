//! Which event waits for which, and what is exported of it: one file a behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod check;
mod export_dimemas;
mod export_goal;
mod export_lists;
mod export_otlp;
mod export_paraver;
mod export_vef;
mod held_back;
mod job;
mod mrv1;
mod pieces;
mod pipeline;
mod readers;
mod rpc;
mod scenario;
mod timers;
