//! What a run in windows asks of whoever wants it: messages host by host, and an observer a part.

use crate::fabric::packet::{Message, Observer};
use crate::network::{HostIndex, Token};
use crate::time::SimTime;

/// The messages of hosts, each host's in the order of time.
pub trait HostMessages: Send {
    /// When `host` hands over its next message, if it does.
    fn next_time(&self, host: HostIndex) -> Option<SimTime>;

    /// That message; `None` if there is none at that time after all. Either way, the one behind it comes next.
    fn take(&mut self, host: HostIndex) -> Option<Message>;
}

/// What sees the packets of one part. A packet is lost or delivered where it is, perhaps in another part than its source's.
pub trait PartObserver: Observer + Send + Sized {
    /// One that has seen nothing yet, for a part more.
    fn for_part(&self) -> Self;

    /// A host of this part hands `message` over at `at`.
    fn handed_over(&mut self, at: SimTime, message: &Message);

    /// A message of `packets` packets, more than one, is under way to a host of this part.
    fn opened(&mut self, token: Token, packets: u64);

    /// Adds what another part's has seen.
    fn merge(&mut self, other: Self);
}
