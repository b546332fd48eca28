//! Brings Hadoptic's agents to the hosts of a cluster over OpenSSH, looks after them, fetches what they recorded and
//! takes them away without a trace.
//!
//! What is to be changed on a host is worked out here ([`edits`], [`env_block`], [`site_xml`], [`versions`]) from what
//! the host told ([`facts`], [`answer`]); small scripts (`scripts/`) do on the host only what has to be done there. Each
//! command is a module ([`check`], [`install`], [`agents`], [`status`], [`collect`], [`remove`]) that works on a
//! [`fleet`] and returns a [`report`].

pub mod agents;
pub mod answer;
mod banner;
pub mod change;
pub mod check;
pub mod clock;
pub mod cluster;
pub mod collect;
pub mod digest;
pub mod edits;
pub mod elf;
pub mod env_block;
pub mod facts;
pub mod fleet;
pub mod hosts;
pub mod install;
pub mod installed;
pub mod places;
pub mod quote;
pub mod remove;
pub mod report;
pub mod scripts;
pub mod site_xml;
pub mod ssh;
pub mod status;
pub mod units;
pub mod versions;
