//! What becomes of messages and packets that find no room at their hosts.

use serde::{Deserialize, Serialize};

/// What a host does with a message that finds its queue full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FullQueue {
    /// It hands nothing over, and draws no message for that time.
    #[default]
    Wait,
    /// It loses the message.
    Drop,
}

/// What a host does with the first packet of its queue that finds no room when it could leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlockedHead {
    /// It waits.
    #[default]
    Wait,
    /// It is taken out of the queue, and lost.
    Extract,
}
