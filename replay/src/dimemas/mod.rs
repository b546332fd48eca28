//! Dimemas as a client: a server of its external-network protocol on any fabric.
//!
//! Dimemas (BSC) replays the computation of a message-passing program and hands every message between nodes to a network
//! simulator over TCP; the two take turns. [`protocol`] reads and writes lines, [`Session`] is one client's simulation,
//! [`Server`] serves clients side by side, each on a network of its own, [`mapping`] says which host is whose.

pub mod mapping;
pub mod protocol;
mod server;
mod session;

pub use server::{BindError, Ended, Server, ServerConfig};
pub use session::{Answer, MAX_OPEN_MESSAGES, Session, SessionError, SessionFigures};
