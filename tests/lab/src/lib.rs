//! A real Apache Hadoop cluster on one machine, to record and to compare with.
//!
//! Every host is a network namespace with its own host name; veth pairs join it to its rack's bridge, and one more
//! joins the two racks. [`plan`] decides who is where, [`network`] makes it, [`measure`] looks what it really does,
//! [`cluster`] starts the daemons of a [`distribution`], [`jobs`] has them work while a [`recorder`] listens, and
//! [`session`] leads from nothing to nothing: [`lease`] removes whatever was made, also after a kill. [`hostile`] is who would
//! spoil it.

pub mod agents;
pub mod cli;
pub mod cluster;
pub mod conf_file;
pub mod cost;
pub mod daemon;
pub mod deployed;
pub mod distribution;
pub mod encryption;
pub mod environment;
pub mod error;
pub mod files;
pub mod hadoop1;
pub mod hadoop2;
pub mod hadoop3;
pub mod history;
pub mod host;
pub mod hostile;
pub mod jobs;
pub mod keyed;
pub mod launcher;
pub mod layout;
pub mod lease;
pub mod measure;
pub mod netns;
pub mod network;
pub mod overhead;
pub mod pack;
pub mod placement;
pub mod plan;
pub mod process;
pub mod progress;
pub mod recorder;
pub mod session;
pub mod settings;
pub mod setup;
pub mod ssh;
pub mod stop;
pub mod summary;
pub mod text;
pub mod tool;
pub mod traffic;
pub mod units;
