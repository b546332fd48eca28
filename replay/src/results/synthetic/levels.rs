//! Figures of each service level over all seeds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use netsim::statistics::{Distribution, Histogram, LevelCount, RunFigures, float};

/// A service level in the measurement; loads are means over the seeds, packets lost a sum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelFigure {
    /// Its number.
    pub level: u8,
    /// Flits handed over per node and flit time.
    pub offered_load: Option<f64>,
    /// Flits arrived per node and flit time.
    pub accepted_load: Option<f64>,
    /// Packets that count and were lost.
    pub lost: u64,
    /// Distributions of "packet" and "network" latency in nanoseconds, over all seeds.
    pub latency_ns: BTreeMap<String, Distribution>,
    /// The same in cycles.
    pub latency_cycles: BTreeMap<String, Distribution>,
}

/// The levels of all runs, where there are several, with a flit's time of `cycle` picoseconds.
pub(super) fn together(figures: &[&RunFigures], cycle: f64) -> Vec<LevelFigure> {
    let Some(first) = figures.first() else { return Vec::new() };
    (0..first.levels.len()).map(|place| of_level(figures, place, cycle)).collect()
}

fn of_level(figures: &[&RunFigures], place: usize, cycle: f64) -> LevelFigure {
    let counts: Vec<&LevelCount> = figures.iter().filter_map(|run| run.levels.get(place)).collect();
    let pooled = |of: fn(&LevelCount) -> &Histogram| {
        let mut pool = Histogram::default();
        counts.iter().for_each(|count| pool.add(of(count)));
        pool
    };
    let (packet, network) = (pooled(|count| &count.packet), pooled(|count| &count.network));
    let named = |unit: f64| {
        let of = |name: &str, histogram: &Histogram| (name.to_owned(), Distribution::new(histogram, unit));
        BTreeMap::from([of("packet", &packet), of("network", &network)])
    };
    LevelFigure {
        level: counts.first().map_or(0, |count| count.level),
        offered_load: load(figures, place, |run| run.offered_load, |count| count.offered_bytes),
        accepted_load: load(figures, place, |run| run.accepted_load, |count| count.accepted_bytes),
        lost: counts.iter().map(|count| count.lost).sum(),
        latency_ns: named(1e3),
        latency_cycles: named(cycle),
    }
}

/// The part that a level has of the load of each run, as a mean.
fn load(
    figures: &[&RunFigures],
    place: usize,
    of_run: fn(&RunFigures) -> Option<f64>,
    bytes: fn(&LevelCount) -> u64,
) -> Option<f64> {
    let part = |run: &&RunFigures| {
        let all: u64 = run.levels.iter().map(bytes).sum();
        let own = run.levels.get(place).map_or(0, bytes);
        Some(of_run(run)? * if all > 0 { float(own) / float(all) } else { 0.0 })
    };
    let parts: Vec<f64> = figures.iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| parts.iter().sum::<f64>() / float(parts.len() as u64))
}
