//! The profile of a recorded MapReduce job: what each of its tasks did, by bytes, apart from the network of the recording.
//!
//! [`parameters`] are medians over the tasks, [`profile`] has them one by one. Both are of one job of a trace, that with the largest
//! shuffle. Times are nanoseconds, sizes bytes; `None` = the trace does not tell.

mod parameters;
mod recording;
mod tasks;

pub use parameters::{JobParameters, parameters};
pub use tasks::{CallProfile, JobProfile, MapProfile, ReduceProfile, profile};
