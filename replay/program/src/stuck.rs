//! Why a program does not come to its end.

use netsim::time::SimTime;
use thiserror::Error;

use crate::builder::{OperationId, RankId};

/// A program that does not come to its end. Operations are numbered from 0: in the order of a file, those of
/// ranks that do one after the other rank by rank.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StuckError {
    /// A receive waits for a message that nobody sends any more.
    #[error(
        "rank {} waits for ever for a message {} with tag {tag} (operation {} of the program): nothing else can happen any more",
        rank.0, from.map_or_else(|| "from anybody".to_owned(), |from| format!("from rank {}", from.0)), operation.0
    )]
    NoMessage {
        /// Who waits.
        rank: RankId,
        /// For whose message; `None`: anybody's.
        from: Option<RankId>,
        /// With which tag.
        tag: u64,
        /// The receive.
        operation: OperationId,
    },
    /// Operations wait for each other.
    #[error("operations {} of the program, of rank {}, wait for each other in a circle",
        circle.iter().map(|operation| operation.0.to_string()).collect::<Vec<_>>().join(", "), rank.0)]
    Circle {
        /// Of which rank.
        rank: RankId,
        /// Each waits for the next, and the last for the first.
        circle: Vec<OperationId>,
    },
    /// A message that no receive takes.
    #[error("the message that rank {} sends to rank {} with tag {tag} (operation {} of the program) is never received", from.0, to.0, operation.0)]
    NotReceived {
        /// Who sent it.
        from: RankId,
        /// To whom.
        to: RankId,
        /// With which tag.
        tag: u64,
        /// The send.
        operation: OperationId,
    },
    /// A message that is larger than what its receive takes.
    #[error(
        "rank {} receives at most {takes} bytes where rank {} sends {sent} (operations {} and {} of the program)",
        to.0, from.0, receive.0, send.0
    )]
    Truncated {
        /// Who sent it.
        from: RankId,
        /// To whom.
        to: RankId,
        /// Bytes of the message.
        sent: u64,
        /// Bytes that the receive takes.
        takes: u64,
        /// The send.
        send: OperationId,
        /// The receive.
        receive: OperationId,
    },
    /// It would take longer than can be simulated.
    #[error("it is not at its end after {after_s} s of simulated time, the most that can be simulated: is the fabric too slow for it?",
        after_s = .0.as_secs_f64())]
    Endless(SimTime),
    /// The network lost a message and does not send it again.
    #[error(
        "the network goes on with nothing, and {0} messages have not arrived: does the fabric lose packets and send none again?"
    )]
    Lost(u64),
}
