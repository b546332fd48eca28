//! Which packets' ways are logged, as `[traffic]` says it.

use super::span::Span;
use serde::{Deserialize, Serialize};

/// Packets whose ways are logged: `{ packets = 100, hosts = [3], from = "5000 cycles", flits = true }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HopLogKeys {
    /// The first so many, 1 to 65536. Default: 100 (ours).
    pub packets: u32,
    /// Of those that leave these hosts. Default: any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<u32>,
    /// Of those with these numbers among the packets of their host, from 0. Default: any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<u64>,
    /// Of those that leave then or later. Default: from the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Span>,
    /// Whether each flit is logged. Default: false.
    pub flits: bool,
}

impl Default for HopLogKeys {
    fn default() -> Self {
        Self { packets: 100, hosts: Vec::new(), numbers: Vec::new(), from: None, flits: false }
    }
}
