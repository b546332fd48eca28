//! A model of MapReduce jobs on YARN and HDFS: jobs that nobody recorded, from parameters.
//!
//! A [`JobFile`] says which machines there are, Hadoop's properties, and the jobs. A [`Model`] of it is a workload of `netsim`:
//! daemons beat, containers are given to tasks when they are free in the simulated world, maps read and spill, reduces fetch and
//! write, over whichever network carries their bytes. What happened becomes a causal [trace](Model::into_trace), as the merger
//! would write it of a recorded job.
//!
//! ```
//! use mapreduce::{JobFile, Model};
//! use netsim::engine::{self, End};
//! use netsim::fabric;
//! use netsim::time::SimTime;
//!
//! let file = JobFile::parse("[cluster]\nnodes = 4\n[[job]]\nprofile = \"terasort\"\ninput = \"512MiB\"\nreduces = 2\n")?;
//! let hosts = mapreduce::places(&file.cluster);
//! let mut network = fabric::build(&"kind = \"ideal\"\nrate = \"1Gbps\"".parse()?, &hosts)?;
//! let mut model = Model::new(file);
//! assert!(matches!(engine::run(&mut network, &mut model, SimTime::LATEST), End::Done(_)));
//! let trace = model.into_trace();
//! assert_eq!(trace.jobs[0].shuffle_bytes, Some(512 << 20));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cluster;
mod config;
mod error;
mod expected;
mod grow;
mod hadoop;
mod job;
mod kernel;
mod limits;
mod merge;
mod model;
mod presets;
mod profile;
mod rows;
mod samples;
mod sizes;
mod world;

pub use cluster::Cluster;
pub use config::JobFile;
pub use error::JobError;
pub use grow::{Amount, Growth, Speed};
pub use hadoop::{Hadoop, PROPERTIES, Property};
pub use job::Job;
pub use merge::merge_passes;
pub use model::Model;
pub use rows::places;
pub use samples::{CallSample, MapSample, ReduceSample};
