//! Networks that can be run in windows of time, by kind.

use super::credit::windows::Windowed as WindowedCredit;
use super::ethernet::windows::Windowed as WindowedEthernet;
use super::packet::{HostLinksDiffer, LinkTime};
use super::store_and_forward::windows::Windowed as WindowedStoreAndForward;

/// A network in windows.
pub enum Windowed {
    /// Of the kind `store-and-forward`.
    StoreAndForward(Box<WindowedStoreAndForward>),
    /// Of the kind `credit`.
    Credit(Box<WindowedCredit>),
    /// Of the kind `ethernet`.
    Ethernet(Box<WindowedEthernet>),
}

impl Windowed {
    /// How many hosts it has.
    #[must_use]
    pub fn hosts(&self) -> u32 {
        match self {
            Self::StoreAndForward(network) => network.hosts(),
            Self::Credit(network) => network.hosts(),
            Self::Ethernet(network) => network.hosts(),
        }
    }

    /// How its hosts' links and its packets are made.
    ///
    /// # Errors
    /// If the links of its hosts differ.
    pub fn link_time(&self) -> Result<LinkTime, HostLinksDiffer> {
        match self {
            Self::StoreAndForward(network) => network.link_time(),
            Self::Credit(network) => network.link_time(),
            Self::Ethernet(network) => network.link_time(),
        }
    }
}

/// Whether a network is run in windows.
pub enum Windowing {
    /// It is.
    Windows(Windowed),
    /// It is not; and why, where threads could have been of use.
    Events(Option<String>),
}
