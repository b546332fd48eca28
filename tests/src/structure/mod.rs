//! How the crates of this workspace hang together: circles between their files, and what each may depend on.

mod circles;
mod rules;
mod source;

pub use circles::{Circle, circles};
pub use rules::{Package, Rule, broken, packages, rules};
pub use source::Crate;
