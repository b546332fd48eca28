//! The packet agent: records the TCP segments of a host's interfaces.
//!
//! Data flow, one thread an interface ([`session`], which is handed its [`recording`]): the kernel's ring ([`capture`], libpcap; the kernel's [`filter`] for what is
//! followed) → a frame is cut into its headers ([`frame`], etherparse) → is it Hadoop's ([`ports`]), or may it be ([`pending`])
//! → how much of its payload is worth keeping ([`keep`]), without its secrets ([`redact`]) → a record ([`recorder`]) in the interface's file ([`sink`], and
//! [`pcapng`] if that is wanted), [`rolling`] on within what the disk allows ([`disk_quota`]). [`follow`] learns which ports are Hadoop's, from its configuration
//! ([`hadoop_ports`]) and from what dumpingd and the JVMs tell. [`agent`] opens all of it, gives up the rights that it
//! needed for that ([`privileges`]), tells in a manifest when it is ready, hears of interfaces that come
//! ([`arrivals`]), and stops all in order.

pub mod agent;
pub mod arrivals;
pub mod capture;
pub mod clock;
pub mod counters;
pub mod disk_quota;
pub mod filter;
pub mod follow;
pub mod frame;
pub mod hadoop_ports;
pub mod hostile;
pub mod interfaces;
pub mod keep;
pub mod pcapng;
pub mod pending;
pub mod ports;
pub mod privileges;
pub mod recorder;
pub mod recording;
pub mod redact;
pub mod rolling;
pub mod session;
pub mod show;
pub mod sink;

/// The capture filter of default: all TCP, also in up to two VLAN tags.
pub const DEFAULT_FILTER: &str = "tcp or (vlan and (tcp or (vlan and tcp)))";

/// Bytes of headers before the TCP payload at most, that the default snap length leaves room for: Ethernet 14, two VLAN
/// tags 8, IPv6 40, TCP with options 60, rounded up.
pub const HEADER_ROOM_BYTES: u32 = 128;
