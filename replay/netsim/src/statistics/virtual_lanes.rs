//! What each virtual lane carried, all links together.

use serde::{Deserialize, Serialize};

use super::float;
use crate::traffic::Raw;

/// A virtual lane (or channel) in the measurement, of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VlUse {
    /// Flits that crossed links on it.
    pub flits: u64,
    /// The share of the measurement in which a link sent on it, as a mean over those that have a rate.
    pub utilisation_mean: Option<f64>,
    /// The same of the link that sent most on it.
    pub utilisation_max: Option<f64>,
    /// Packets that lay in its queues at the ends of all links to switches, as a mean; `None` where that was not counted.
    pub queued_mean: Option<f64>,
}

/// What each virtual lane carried in the `measured_ps` picoseconds of the measurement, in flits of `flit` bytes; nothing where there is but one.
pub(super) fn virtual_lanes(raw: &Raw, measured_ps: u64, flit: u32) -> Vec<VlUse> {
    let lanes = raw.lanes as usize;
    if lanes < 2 || raw.lane_bytes.is_empty() {
        return Vec::new();
    }
    (0..lanes).map(|lane| of_lane(raw, (lane, lanes), measured_ps, flit)).collect()
}

/// What the lane number `lane` of `lanes` carried.
fn of_lane(raw: &Raw, (lane, lanes): (usize, usize), measured_ps: u64, flit: u32) -> VlUse {
    let bytes = || raw.lane_bytes.iter().copied().skip(lane).step_by(lanes);
    let rates = raw.figures.links.iter().map(|link| link.rate_bps);
    let with_rate = bytes().zip(rates).filter(|(_, rate)| *rate > 0 && measured_ps > 0);
    let shares: Vec<f64> =
        with_rate.map(|(bytes, rate)| float(bytes) * 8e12 / float(rate) / float(measured_ps)).collect();
    let queues = raw.occupancy.iter().skip(lane).step_by(lanes);
    VlUse {
        flits: bytes().sum::<u64>() / u64::from(flit.max(1)),
        utilisation_mean: (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / float(shares.len() as u64)),
        utilisation_max: shares.iter().copied().reduce(f64::max),
        queued_mean: (!raw.occupancy.is_empty()).then(|| queues.map(|times| mean_of(times)).sum()),
    }
}

/// How many there were as a mean, where there were 0, 1, ... for so long.
fn mean_of(times: &[u64]) -> f64 {
    let all: f64 = times.iter().map(|time| float(*time)).sum();
    let weighted: f64 = (0u64..).zip(times).map(|(packets, time)| float(packets) * float(*time)).sum();
    if all > 0.0 { weighted / all } else { 0.0 }
}
