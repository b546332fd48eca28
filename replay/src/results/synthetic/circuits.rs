//! What optical circuits there were.

use std::path::Path;

use netsim::network::CircuitFigures;
use netsim::statistics::{RunFigures, float};
use netsim::time::SimTime;
use netsim::traffic::TrafficRun;
use serde::{Deserialize, Serialize};
use trace_tables::write_row_iter;

use crate::results::StoreError;
use crate::results::detail::{CircuitDetail, ended};
use crate::results::summary::CircuitSummary;
use crate::results::tables::TrafficCircuitResult;

/// Optical circuits of a run, as far as the report shows them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CircuitsDrawn {
    /// The first ones, in the order of their grants.
    pub circuits: Vec<CircuitDetail>,
    /// How many are in the table.
    pub known: usize,
    /// The end of the run, seconds.
    pub end_s: f64,
    /// All of this run together.
    pub summary: CircuitSummary,
}

impl CircuitsDrawn {
    /// The first `most` circuits of a run; `None` if it has none.
    pub(super) fn of(run: &RunFigures, most: usize) -> Option<Self> {
        Some(Self {
            circuits: run.circuits.iter().take(most).map(CircuitDetail::from).collect(),
            known: run.circuits.len(),
            end_s: float(run.simulated_ps) / 1e12,
            summary: of_run(run)?,
        })
    }
}

/// The circuits of a run together; `None` if it has none.
fn of_run(run: &RunFigures) -> Option<CircuitSummary> {
    Some(CircuitSummary::new(run.circuit_totals.as_ref()?, SimTime(run.simulated_ps)))
}

/// The circuits of all runs together; `None` if none has any.
pub(super) fn together(runs: &[&RunFigures]) -> Option<CircuitSummary> {
    let circuits: Vec<CircuitSummary> = runs.iter().filter_map(|run| of_run(run)).collect();
    let without = runs.len() - circuits.len();
    CircuitSummary::of_runs(circuits, without)
}

/// Writes the circuits of `runs`, each with the number of its combination, where their fabrics have some.
pub(super) fn write<'a>(folder: &Path, runs: impl Iterator<Item = (u32, &'a TrafficRun)>) -> Result<(), StoreError> {
    let circuits = runs
        .flat_map(|(point, run)| run.figures.circuits.iter().map(move |circuit| row(point, run.figures.seed, circuit)));
    let mut rows = circuits.peekable();
    if rows.peek().is_none() { Ok(()) } else { Ok(write_row_iter(folder, rows)?) }
}

fn row(point: u32, seed: u64, circuit: &CircuitFigures) -> TrafficCircuitResult {
    TrafficCircuitResult {
        point,
        seed,
        from: circuit.from.clone(),
        input: circuit.input,
        to: circuit.to.clone(),
        output: circuit.output,
        wavelength: circuit.wavelength,
        asked_ps: circuit.asked.0,
        granted_ps: circuit.granted.0,
        up_ps: circuit.up.map(|at| at.0),
        last_used_ps: circuit.last_used.map(|at| at.0),
        released_ps: circuit.released.map(|at| at.0),
        end: ended(circuit.released.is_some(), circuit.evicted, circuit.scheduled).map(str::to_owned),
        packets: circuit.packets,
        bytes: circuit.bytes,
    }
}
