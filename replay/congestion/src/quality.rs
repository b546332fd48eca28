//! How evenly a routing uses the links between switches.

use crate::metrics::float;
use crate::{CongestionError, Paths};
use netsim::topology::NodeId;
use serde::Serialize;

/// The loads of the links between switches when every host sends to every other one (`routequal`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quality {
    /// Links between switches, each direction for itself.
    pub links: usize,
    /// Paths over each, in the mean; 0 without such links.
    pub mean: f64,
    /// The standard deviation over these links.
    pub deviation: f64,
    /// Paths over the link that has most.
    pub most: u64,
}

/// Follows the paths of all pairs.
///
/// # Errors
/// When a pair has none.
pub fn quality(paths: Paths<'_>) -> Result<Quality, CongestionError> {
    let topology = paths.topology();
    let mut counts = vec![0u64; topology.links().len()];
    let mut path = Vec::new();
    for from in (0..topology.hosts()).map(NodeId) {
        for to in (0..topology.hosts()).map(NodeId) {
            path.clear();
            paths.walk(from, to, &mut path)?;
            for link in &path {
                counts[link.0 as usize] += 1;
            }
        }
    }
    let inner: Vec<u64> = (topology.links().iter().zip(&counts))
        .filter(|(link, _)| !topology.is_host(link.from) && !topology.is_host(link.to))
        .map(|(_, count)| *count)
        .collect();
    let links = float(inner.len().max(1) as u64);
    let mean = float(inner.iter().sum()) / links;
    let squares: f64 = inner.iter().map(|count| (float(*count) - mean).powi(2)).sum();
    Ok(Quality {
        links: inner.len(),
        mean,
        deviation: (squares / links).sqrt(),
        most: inner.iter().copied().max().unwrap_or(0),
    })
}
