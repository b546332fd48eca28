//! Whether what a peer gave and what comes out here agree.

use super::figures::{MEASURES, Row};
use crate::results::synthetic::TrafficSummary;
use serde::Serialize;

/// How far a load may be off, below saturation and at it, and latencies and times of bursts below it.
const LOAD_BELOW: f64 = 0.01;
const LOAD_AT: f64 = 0.03;
const TIME: f64 = 0.03;
/// Or so many standard errors of the difference, below saturation.
const ERRORS: f64 = 3.0;
/// A peer that accepts less than this share of what is offered is saturated.
const CARRIED: f64 = 0.98;

/// Whether two figures agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Within the tolerance.
    Agrees,
    /// Beyond it, but within three standard errors.
    WithinErrors,
    /// A latency at saturation, which is that of queues that grow.
    NotJudged,
    /// Beyond both, by a mechanism that the table names.
    Explained,
    /// Beyond both.
    Differs,
}

/// A figure of the peer's, and ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// `accepted`, `latency`, `network_latency` or `burst`.
    pub measure: &'static str,
    /// The peer's.
    pub peer: f64,
    /// Ours, a mean over the seeds.
    pub ours: f64,
    /// Ours by the peer's, less 1.
    pub difference: f64,
    /// The standard error of the difference, by the peer's.
    pub standard_error: f64,
    /// Whether they agree.
    pub verdict: Verdict,
}

/// A row, and what came out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowOutcome {
    /// Its keys.
    pub row: String,
    /// Whether the network is saturated, here or there.
    pub saturated: bool,
    /// Each figure that the peer's table has.
    pub figures: Vec<Compared>,
    /// Why a difference stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<String>,
}

impl RowOutcome {
    /// Puts the runs of all seeds beside the row; `wanted` is the load that sources would offer if they did not stop, where they do. `None`
    /// if a run measured nothing.
    #[must_use]
    pub fn new(row: &Row, runs: &[TrafficSummary], wanted: Option<f64>) -> Option<Self> {
        let offered = mean(&runs.iter().map(|run| run.offered_load).collect::<Option<Vec<_>>>()?);
        let offered = offered.max(wanted.unwrap_or(0.0));
        let peer_carries = row.values[0].is_none_or(|(accepted, _)| accepted >= CARRIED * offered);
        let saturated_here = runs.iter().filter(|run| run.saturated).count() * 2 > runs.len();
        let saturated = saturated_here || !peer_carries;
        let mut figures = Vec::new();
        for (index, value) in row.values.iter().enumerate() {
            let Some((peer, peer_error)) = *value else { continue };
            let ours = |run: &TrafficSummary| match index {
                0 => run.accepted_load,
                1 => run.packet_latency_mean_cycles.map(|cycles| cycles - row.apart),
                2 => run.network_latency_mean_cycles.map(|cycles| cycles - row.apart),
                _ => run.burst_cycles.as_ref().and_then(|cycles| Some(cycles.mean? - row.apart)),
            };
            let ours = runs.iter().map(ours).collect::<Option<Vec<_>>>()?;
            let of_a_run = deviation(&ours);
            let peer_error = peer_error.unwrap_or_else(|| of_a_run / float(row.runs).sqrt());
            let error = (of_a_run.powi(2) / float(ours.len() as u64) + peer_error.powi(2)).sqrt();
            let difference = mean(&ours) / peer - 1.0;
            let standard_error = error / peer;
            let verdict = judge(index, saturated, difference, standard_error, row.mechanism.is_some());
            figures.push(Compared {
                measure: MEASURES[index],
                peer,
                ours: mean(&ours),
                difference,
                standard_error,
                verdict,
            });
        }
        Some(Self { row: row.label.clone(), saturated, figures, mechanism: row.mechanism.clone() })
    }

    /// The verdict of the row: the worst of its figures.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let rank = |verdict: &Verdict| match verdict {
            Verdict::NotJudged => 0,
            Verdict::Agrees => 1,
            Verdict::WithinErrors => 2,
            Verdict::Explained => 3,
            Verdict::Differs => 4,
        };
        self.figures.iter().map(|figure| figure.verdict).max_by_key(rank).unwrap_or(Verdict::NotJudged)
    }
}

fn judge(measure: usize, saturated: bool, difference: f64, error: f64, is_explained: bool) -> Verdict {
    let tolerance = match (measure, saturated) {
        (0, true) => LOAD_AT,
        (0, false) => LOAD_BELOW,
        (_, true) => return Verdict::NotJudged,
        (_, false) => TIME,
    };
    if difference.abs() <= tolerance {
        Verdict::Agrees
    } else if !saturated && difference.abs() <= ERRORS * error {
        Verdict::WithinErrors
    } else if is_explained {
        Verdict::Explained
    } else {
        Verdict::Differs
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of runs")]
const fn float(number: u64) -> f64 {
    number as f64
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / float(values.len() as u64)
}

/// The standard deviation of a sample.
fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / float((values.len() as u64).saturating_sub(1).max(1))).sqrt()
}
