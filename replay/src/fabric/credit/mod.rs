//! `credit`: InfiniBand. Virtual cut-through, virtual lanes, credits; defined in `docs/fabric.md`.

mod config;

pub use config::{CreditConfig, Start, VlArbitration, VlWeight};
