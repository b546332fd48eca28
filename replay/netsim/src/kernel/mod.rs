//! The event kernel: integer picoseconds, a total order of events, and randomness that hangs on place and time.
//!
//! Every event has a [`Key`]: its time, its phase within the instant, the place (logical process) that scheduled it and
//! that place's own count of scheduled events. No two keys are equal, and none depends on the order of insertion, on a
//! hash or on the number of threads. Among places that meet at one instant the order is drawn anew for each instant
//! (see [`random`]), so that ties do not always favour the lowest port.

mod bits;
mod cycle_queue;
mod divisor;
pub mod queue;
pub mod random;
mod wheel;

pub(crate) use bits::take_lowest;
pub(crate) use cycle_queue::CycleQueue;
pub(crate) use divisor::Divisor;
pub use queue::{EventQueue, Key, Phase, Place, tie};
pub(crate) use wheel::{Timed, TimingWheel};
