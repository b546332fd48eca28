//! Time Warp (Jefferson 1985): parts of a network run ahead of each other, and take back what turns out to have been too early. The optimistic
//! mode of parallel simulators, ROSS' `--synch=3`, beside windows, the conservative one.
//!
//! Each part runs its own events in their order and waits for nobody. What it sends others may be late there (a straggler): then what was run at that place since is
//! taken back, by the state that was saved before each event, and whatever had come of it is cancelled: by anti-messages in other parts. After some batches of
//! events all threads meet and compute GVT, the time before which nothing can be taken back any more. What is earlier is then committed: statistics
//! see it, and what was saved for it is given up (fossil collection). Only what is committed shows in a result, and events have a total order, so
//! that neither parts nor threads do.
//!
//! Inputs, which hang on nothing that happens, are never taken back; events from which nothing follows are not run before they are sure.

mod history;
mod key;
mod model;
mod options;
mod part;
mod rounds;

#[cfg(test)]
mod tests;

pub(super) use key::Key;
pub(super) use model::{Model, Output, Sent};
pub use options::{OptimisticCost, OptimisticOptions};
pub(super) use part::Part;
pub(super) use rounds::Rounds;
