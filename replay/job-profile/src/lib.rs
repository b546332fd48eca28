//! The profile of a recorded MapReduce job: what each of its tasks did, by bytes, apart from the network of the recording.
//!
//! [`parameters`] are medians over the tasks, [`profile`] has them one by one. Both are of one job of a trace, that with the largest
//! shuffle or one that is named ([`Learn`]). Times are nanoseconds, sizes bytes; `None` = the trace does not tell. Given the processors for which tasks competed
//! ([`CoreSharing`]), times are those that a task would have taken with one of its own.

mod fetches;
mod instant_network;
mod output_computing;
mod output_events;
mod parameters;
mod recording;
mod reduce_memory;
mod spills;
mod tasks;

pub use causal::CoreSharing;
pub use parameters::{JobParameters, parameters};
pub use reduce_memory::parse_heap;
pub use tasks::{CallProfile, JobProfile, MapProfile, ReduceProfile, profile};

/// Which job is learned, and on which machines it ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Learn<'a> {
    /// Its id; `None` = the job with the largest shuffle.
    pub job: Option<&'a str>,
    /// The processors for which its tasks competed; `None` = what they cost each other stays in what is learned.
    pub sharing: Option<CoreSharing>,
    /// Heap of its reduces, bytes; `None` = Hadoop's default, 819 MiB. It decides what a reduce merges in its sort.
    pub reduce_heap: Option<u64>,
}
