//! How the crates of this workspace hang together: circles between their files, and what each may depend on. Tests that end
//! before they have tested, and files that are opened without bounds.

mod circles;
mod early_returns;
mod opens;
mod rules;
mod source;

pub use circles::{Circle, circles};
pub use early_returns::{early_returns, early_returns_in};
pub use opens::unbounded_opens;
pub use rules::{Package, Rule, broken, packages, rules};
pub use source::Crate;
