//! The socket-owner agent: who has which TCP socket of a network namespace open, and what the kernel counted on it.
//!
//! Data flow, one thread: the kernel lists its sockets ([`diag`], sock_diag over netlink; or [`proc_net`], or [`lsof`]),
//! broadcasts those that die ([`destroy_events`]) and tells of those that open ([`tracepoint`], [`ring`], [`threads`]); /proc tells
//! who has which open ([`processes`], [`stat`], [`owners`]); what changed since the last time ([`changes`]) goes into
//! `sockets.jsonl` ([`log`], within a [`quota`]), and what is Hadoop's now into `ports.json` ([`ports_file`]). All that once for each
//! [`network_namespace`].
//! [`agent`] runs it at intervals ([`cadence`]).

pub mod agent;
pub mod cadence;
pub mod changes;
pub mod destroy_events;
pub mod diag;
pub mod log;
pub mod lsof;
pub mod main_class;
pub mod network_namespace;
pub mod numbers;
pub mod owners;
pub mod ports_file;
pub mod proc_net;
pub mod processes;
pub mod quota;
pub mod ring;
pub mod stat;
pub mod tcp_info;
pub mod threads;
pub mod tracepoint;
