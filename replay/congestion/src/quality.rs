//! How evenly a routing uses the links between switches.

use crate::metrics::float;
use crate::{CongestionError, Paths};
use netsim::topology::NodeId;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, Ordering};

/// The loads of the links between switches when every host sends to every other one (`routequal`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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

/// Follows the paths of all pairs, on `threads` threads.
///
/// # Errors
/// When a pair has none.
pub fn quality(paths: &Paths<'_>, threads: usize) -> Result<Quality, CongestionError> {
    let topology = paths.topology();
    let next = AtomicU32::new(0);
    let work = || of_sources(paths, &next);
    let shares = crate::run::on_threads(threads.min(topology.hosts() as usize), work);
    let mut counts = vec![0u64; topology.links().len()];
    let mut failed: Option<(u32, CongestionError)> = None;
    for share in shares {
        match share {
            Ok(share) => counts.iter_mut().zip(share).for_each(|(sum, count)| *sum += count),
            Err(error) if failed.as_ref().is_none_or(|(from, _)| error.0 < *from) => failed = Some(error),
            Err(_) => {}
        }
    }
    if let Some((_, error)) = failed {
        return Err(error);
    }
    let counts = paths.by_link(counts);
    let inner: Vec<u64> = (topology.links().iter().zip(&counts))
        .filter(|(link, _)| !topology.is_host(link.from) && !topology.is_host(link.to))
        .map(|(_, count)| *count)
        .collect();
    let links = float(inner.len().max(1) as u64);
    let mean = float(inner.iter().sum()) / links;
    let squares = inner.iter().map(|count| (float(*count) - mean).powi(2)).fold(0.0, |sum, square| sum + square);
    Ok(Quality {
        links: inner.len(),
        mean,
        deviation: (squares / links).sqrt(),
        most: inner.iter().copied().max().unwrap_or(0),
    })
}

/// Takes one source after the other until there is none left; an error comes with its source.
fn of_sources(paths: &Paths<'_>, next: &AtomicU32) -> Result<Vec<u64>, (u32, CongestionError)> {
    let hosts = paths.topology().hosts();
    let mut counts = vec![0u64; paths.topology().links().len()];
    let (mut links, mut ends) = (Vec::new(), Vec::new());
    loop {
        let from = next.fetch_add(1, Ordering::Relaxed);
        if from >= hosts {
            return Ok(counts);
        }
        let pairs = (0..hosts as usize).map(|to| (NodeId(from), NodeId(u32::try_from(to).unwrap_or(u32::MAX))));
        paths.write(pairs, &mut links, &mut ends).map_err(|error| (from, error))?;
        for link in &links {
            counts[*link as usize] += 1;
        }
    }
}
