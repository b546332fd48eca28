//! The event queue, as criterion measured it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::figure::Figure;
use crate::run::number;

/// The event queue and what else could hold events, by criterion's names.
const QUEUES: [&str; 3] = ["binary heap", "4-ary heap", "B-tree"];
const PENDING: [u64; 3] = [1_000, 100_000, 10_000_000];

/// What criterion measured: nanoseconds for one taken out and one put in.
pub fn queues(criterion: &Path) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for pending in PENDING {
        let ours = hold_ns(criterion, "wheel", pending)?.context(
            "no figures of the event queue: run `cargo bench --profile release -p replay --bench queue` first",
        )?;
        for peer in QUEUES {
            // The slowest are not measured at the largest size.
            if let Some(ns) = hold_ns(criterion, peer, pending)? {
                figures.push(Figure {
                    name: format!("event queue, {pending} pending"),
                    ours,
                    peer: Some((peer, ns)),
                    unit: "ns per pop and push",
                    more_is_better: false,
                });
            }
        }
    }
    Ok(figures)
}

fn hold_ns(criterion: &Path, queue: &str, pending: u64) -> Result<Option<f64>> {
    const HOLDS: f64 = 100_000.0;
    let path = criterion.join(format!("queue/{queue}/{pending}/new/estimates.json"));
    let Ok(bytes) = fs::read(&path) else { return Ok(None) };
    let estimates: Value = serde_json::from_slice(&bytes).with_context(|| format!("{} is no JSON", path.display()))?;
    Ok(Some(number(&estimates["median"], "point_estimate")? / HOLDS))
}
