//! A topology for programs.

use super::Topology;
use serde::{Serialize, Serializer};

/// A cable: two links, of which the second leads back.
#[derive(Debug, Serialize)]
struct Cable {
    /// Nodes at its ends.
    from: u32,
    to: u32,
    /// Bits a second; null: unlimited.
    rate_bps: Option<u64>,
    delay_ps: u64,
    buffer: String,
    burst_bytes: u64,
    /// Whether the second carries nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    one_way: bool,
}

/// A topology as one JSON object: `hosts` (how many nodes are hosts), `nodes` (names) and `cables`.
#[derive(Debug)]
pub struct Export<'t>(pub &'t Topology);

impl Serialize for Export<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Object<'t> {
            hosts: u32,
            nodes: Vec<&'t str>,
            cables: Vec<Cable>,
        }
        let cable = |[link, back]: [super::Link; 2]| Cable {
            from: link.from.0,
            to: link.to.0,
            rate_bps: link.rate.bps(),
            delay_ps: link.delay_ps,
            buffer: link.buffer.to_string(),
            burst_bytes: link.burst_bytes,
            one_way: back.absent,
        };
        Object {
            hosts: self.0.hosts(),
            nodes: (0..self.0.nodes()).map(|node| self.0.name(super::NodeId(node))).collect(),
            cables: self.0.links().cables().map(cable).collect(),
        }
        .serialize(serializer)
    }
}
