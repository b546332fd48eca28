//! The vocabulary that the parts of Hadoptic share.
//!
//! *Captures* are what agents leave behind, a directory for each host: [`packet`] records of the sniffer, [`socket`]
//! records of dumpingd, [`jvm`] records of the Java agent, and a [`manifest`] each. *Traces* are what the merger makes
//! of them: [`rows`] of hosts, processes, connections, messages, events, dependencies and tasks. Job histories are
//! Hadoop's own: [`jhist`] reads those of Hadoop 2 and later, [`history1`] those of 1.x.
//!
//! ```
//! use trace::packet::{Direction, Packet, PacketFileHeader, PacketReader, PacketWriter, Sack, flag};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let header = PacketFileHeader {
//!     host: "w1".to_owned(),
//!     interface: "eth0".to_owned(),
//!     loopback: false,
//!     snap_length: 256,
//!     started_ns: 1_000,
//! };
//! let packet = Packet {
//!     time_ns: 2_000,
//!     direction: Direction::Out,
//!     source: "10.1.0.11:40000".parse()?,
//!     destination: "10.1.0.1:8020".parse()?,
//!     raw_length: 58,
//!     payload_length: 4,
//!     sequence: 1,
//!     acknowledgement: 1,
//!     flags: flag::ACK,
//!     window: 501,
//!     sack: Sack::default(),
//!     payload: b"hrpc".to_vec(),
//! };
//! let mut file = PacketWriter::create(Vec::new(), &header)?;
//! file.write(&packet)?;
//!
//! let mut recorded = PacketReader::new(file.get_mut().as_slice())?;
//! assert_eq!(recorded.header(), &header);
//! assert_eq!(recorded.next_packet()?, Some(packet));
//! # Ok(())
//! # }
//! ```
//!
//! Nothing here depends on another part of the project, and nothing here is heavy: the agents use it.

#[cfg(feature = "agent")]
pub mod agent;
#[cfg(feature = "agent")]
pub mod agent_error;
#[cfg(feature = "agent")]
pub mod budget;
#[cfg(feature = "agent")]
pub mod capabilities;
pub mod capture_note;
#[cfg(feature = "agent")]
pub mod disk_quota;
pub mod files;
pub mod folder;
pub mod history1;
pub mod ids;
pub mod jhist;
pub mod jvm;
pub mod manifest;
pub mod memory;
pub mod packet;
pub mod ports;
#[cfg(feature = "agent")]
pub mod privileges;
pub mod quantity;
pub mod role;
pub mod rows;
#[cfg(feature = "agent")]
pub mod sandbox;
#[cfg(feature = "agent")]
pub mod signals;
pub mod socket;
pub mod stderr;
pub mod truth;
#[cfg(feature = "agent")]
pub mod waker;
