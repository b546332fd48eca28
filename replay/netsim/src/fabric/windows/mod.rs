//! Runs in windows of time, on several threads: what the fabrics have in common that can be run so.
//!
//! Whatever one part of a network sends another arrives no sooner than a window later. So within a window each part is by itself, and
//! parts exchange what they have for each other between two windows.

mod carrier;
mod letter;
mod levels;
mod meeting;
mod parts;
mod run;
mod seam;
mod threads;
mod wanted;

pub use carrier::Carrier;
pub(super) use letter::{Letter, Notes, put};
pub(super) use levels::levels;
pub(super) use meeting::Meeting;
pub(super) use parts::Parts;
pub(super) use run::{ObservedPart, Run};
pub use seam::{HostMessages, LastStops, PartObserver, WindowedRun};
pub(super) use threads::{Part, in_shares};
pub use threads::{WindowProgress, WindowsCost};
pub use wanted::{HOSTS_OF_A_THREAD, Unsuited, WindowsWanted};
