//! What the parts of a LIGHTNESS network know. What they do in an instant is beside it, in the module of the same name.

pub mod aod;
pub mod ocs;
pub mod ops;
pub mod predictor;
pub mod rack;
pub mod server;
pub mod tor;
