//! Figures of other simulators beside ours: an experiment with the peer's router, and a table of what the peer gave.
//!
//! The table is CSV; `#` begins a comment. A column whose name has a point is a key of the experiment, set for the row; a cell that is empty leaves it
//! as it is. The others:
//!
//! | column | what |
//! |---|---|
//! | `accepted`, `latency`, `network_latency` | the peer's accepted load and mean latencies, in flits a node and cycle, and in cycles |
//! | `burst` | how long a burst of `traffic.bursts` takes the peer, the mean in cycles; one of these four at least |
//! | `accepted_error`, `latency_error`, `network_latency_error`, `burst_error` | their standard errors; else those of one run here, divided by the root of `runs` |
//! | `runs` | runs of the peer behind a row; 1 if not given |
//! | `apart` | cycles of a packet that the peer does not count, such as a link that it has not; taken off our latencies and bursts |
//! | `mechanism` | why a difference that stays is none of a mistake's |

mod error;
mod figures;
mod verdict;

pub use error::PeersError;
pub use figures::{Figures, MAX_BYTES, Row};
pub use verdict::{Compared, RowOutcome, Verdict};

use crate::experiment::{Experiment, Override};

/// Fewer seeds say too little.
pub const MIN_SEEDS: u64 = 5;

/// A peer that is built in: the names of its experiment and of its table, and what stands in that.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// As `replay peers` and `replay run` call it.
    pub name: &'static str,
    /// The table's file in `replay/experiments`.
    pub file: &'static str,
    /// The table.
    pub figures: &'static str,
}

macro_rules! peers {
    ($($name:literal)*) => {
        &[$(Peer {
            name: concat!("peers/", $name),
            file: concat!("peers/", $name, ".csv"),
            figures: include_str!(concat!("../../experiments/peers/", $name, ".csv")),
        }),*]
    };
}

/// All of them.
pub const PEERS: &[Peer] = peers!["caminos-basic" "caminos-input-output" "booksim2" "insee" "insee-bursts" "omni-path"];

/// The experiment of a row: that of `path` with the row's keys.
///
/// # Errors
/// If it cannot be read, a key is wrong, or it has no synthetic traffic.
pub fn experiment(path: &std::path::Path, row: &Row, overrides: &[Override]) -> Result<Experiment, PeersError> {
    let mut all = row.overrides.clone();
    all.extend(overrides.iter().cloned());
    let wrong = |error| PeersError::Experiment { at: row.at.clone(), error };
    let experiment = Experiment::read(path, &all).map_err(wrong)?;
    if experiment.traffic.is_none() {
        let reason = "a peer's figures are of synthetic traffic ([traffic])".to_owned();
        return Err(PeersError::Form { file: path.display().to_string(), reason });
    }
    Ok(experiment)
}
