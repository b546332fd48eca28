//! How the crates of this workspace hang together: circles between their files, and what each may depend on.

mod circles;
mod source;

pub use circles::{Circle, circles};
pub use source::Crate;
