//! Experiments: what is replayed over which fabric, as a TOML file.
//!
//! ```toml
//! name = "ethernet-10g"            # default: the file's name
//!
//! [workload]
//! trace = "../traces/terasort"     # a folder that `merger build` wrote; relative to this file; or `--trace`
//! job = "job_1700000000000_0002"   # default: the job with the largest shuffle
//! cpu_factor = 1.0                 # thinking takes so many times as long as recorded
//! recorded_network = false         # the fabric models the network of the recording: what differs is the model's error
//! causality = "trace"              # or "recorded": every message leaves at its recorded time
//! handshakes = true                # connections opened during the job are opened in the fabric too
//! timers = true                    # news waits for the beats of timers; without it news is there at once
//! production = true                # work that the recorded network hid takes time; without it none
//! jitter = 0.0                     # each thinking up to this share longer or shorter, as run.seed draws it
//!
//! placement = "shuffle:4"          # on which of the fabric's hosts those of the trace are; default: on the first ones
//!
//! [workload.racks]                 # where hosts stand, in place of what the trace says
//! m1 = "/r1"
//!
//! [workload.cpu_factors]           # by kind of task or by role, in place of cpu_factor
//! map = 0.5
//! DataNode = 2.0
//!
//! [traffic]                        # synthetic traffic, in place of [workload]: docs/traffic.md
//! load = [0.1, 0.3, 0.5]           # a list makes a sweep
//!
//! [fabric]
//! kind = "ethernet"                # the other keys belong to the kind
//!
//! [cpu]                            # tasks compete for processors; without it computing takes as long as recorded
//! cores = 2                        # of each host
//! shared = false                   # all hosts share them, as in a lab on one machine
//! network_work = "9.3ns/B"         # what a byte from host to host takes of a processor; default: nothing
//! recorded_network_work = "25ns/B" # the same on the recorded network; default: network_work
//!
//! [run]
//! seed = 1                         # for whatever is drawn; a list makes a sweep, as it does for most keys
//! seeds = 5                        # synthetic traffic only: so many runs, for confidence intervals
//!
//! [dispatcher]                     # for `replay dimemas`; the LIGHTNESS deliverable's names
//! taskMapping = true               # default: where there is a file; false: task n is on node n
//! taskFilename = "tasks.txt"       # relative to this file; "task node" in each line
//! ```
//!
//! An unknown key, a quantity without its unit and a value that makes no sense are errors that name file, line, value
//! and what is allowed. `--set path=value` changes a value by its path.

pub(crate) mod culprit;
mod error;
mod expected;
pub(crate) mod locate;
mod overrides;
mod read;
mod seeds;
pub(crate) mod shipped;
mod sweep;
mod tables;

pub use error::ExperimentError;
pub use overrides::Override;
pub use seeds::Seeds;
pub use shipped::{EXPERIMENTS, JOBS, Shipped};
pub use sweep::{Axis, Point, Sweep};
pub use tables::{Cpu, Dispatcher, Experiment, Run, Workload};
