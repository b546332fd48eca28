//! The packet agent: records the TCP segments of a host's interfaces.
//!
//! Data flow, one thread an interface: the kernel's ring ([`capture`], libpcap) → a frame is cut into its headers
//! ([`frame`], etherparse) → how much of its payload is worth keeping ([`keep`]) → a record in the interface's file
//! ([`sink`]). [`agent`] opens all of it, tells in a manifest when it is ready, and stops it in order.

pub mod agent;
pub mod capture;
pub mod counters;
pub mod frame;
pub mod interfaces;
pub mod keep;
pub mod show;
pub mod sink;

/// The capture filter of default: all TCP, also in up to two VLAN tags.
pub const DEFAULT_FILTER: &str = "tcp or (vlan and (tcp or (vlan and tcp)))";

/// Bytes of headers before the TCP payload at most, that the default snap length leaves room for: Ethernet 14, two VLAN
/// tags 8, IPv6 40, TCP with options 60, rounded up.
pub const HEADER_ROOM_BYTES: u32 = 128;
