//! A hostile user on every host of a lab: an ordinary account whose program plants what it can, wherever it can, while agents
//! are deployed, jobs run and the operator looks after them.
//!
//! [`user`] is that program, [`tricks`] what it does; [`witness`] is what it would have others run. [`attack`] starts it on the
//! hosts, [`guard`] looks after root's files, [`watch`] after the agents' memory and disk; [`siege`] is all of it, with an
//! operator who goes about his work meanwhile.

pub mod attack;
pub mod guard;
pub mod processes;
pub mod records;
pub mod siege;
pub mod tricks;
pub mod user;
pub mod watch;
pub mod witness;

/// The hostile user's number, and his group's. No distribution gives it to anybody.
pub const UID: u32 = 64_990;
/// His name on the hosts.
pub const NAME: &str = "mallory";
/// His home on a host.
pub const HOME: &str = "/var/lib/mallory";
