//! What is handed to the thread of an interface.

use std::sync::Arc;

use trace::signals::Signals;
use trace::waker::Waker;

use crate::counters::Counters;
use crate::follow::Shared;
use crate::interfaces::{Interface, OwnAddresses};
use crate::pcapng::PcapngSink;
use crate::sink::PacketSink;

/// What the thread of an interface needs to know.
pub struct Recording {
    /// Which interface.
    pub interface: Interface,
    /// Addresses of the host, of all interfaces.
    pub own: OwnAddresses,
    /// Where records go.
    pub sink: PacketSink,
    /// The same as pcapng, if that is wanted.
    pub pcapng: Option<PcapngSink>,
    /// Who tells whose a connection is, for pcapng's comments.
    pub names: Option<Arc<Shared>>,
    /// What is counted.
    pub counters: Arc<Counters>,
    /// What is followed; `None` = everything is recorded.
    pub following: Option<Arc<Shared>>,
    /// Tell whether the run is to end; their bell is rung when this recording has ended.
    pub signals: Signals,
    /// Rung when the run is to end, or when something else is followed.
    pub waker: Waker,
}
