//! What a replay leaves behind.
//!
//! | file | what |
//! |---|---|
//! | `summary.json` | [`Summary`]: job time, phases, errors of transfers, critical path |
//! | `effective.toml` | the experiment with every key; running it again gives the same result |
//! | `messages.parquet` | when each message left and arrived, simulated and recorded |
//! | `tasks.parquet` | the same for the phases of each attempt |
//! | `links.parquet`, `traffic.parquet` | figures of each link, and its bytes over time |
//! | `circuits.parquet` | optical circuits, where the fabric has some: ports, times, what crossed them |
//! | `critical_path.parquet` | the pieces of the critical path |
//! | `detail.json` | what the report is drawn from |
//! | `report.html` | the report |
//! | `prediction.json`, `predicted_tasks.parquet`, `shown_replays.json` | of `replay predict` |
//! | `parts/` | combinations of a sweep that tasks replayed (`--part`), until they are gathered |
//! | `plots/` | figures of nodes and links, throughput and transfer times, as pictures (SVG) |

mod against;
pub mod coflow;
pub mod congestion;
pub mod descriptions;
mod detail;
mod doubts;
mod folder;
mod heartbeats;
mod ideal;
mod jobs;
mod parts;
mod phases;
mod prediction;
pub mod program;
mod quantities;
mod seconds;
mod set_up;
mod simulated_trace;
mod store;
mod summary;
mod sweep;
pub mod synthetic;
pub mod tables;
mod transfers;
mod wasted;

pub use detail::{CircuitDetail, Detail, LinkDetail, PieceDetail, TransferPoint};
pub use folder::{check_folder, remove_results};
pub use heartbeats::HeartbeatWaits;
pub(crate) use ideal::IdealTimes;
pub use jobs::{JobPoint, JobSweep, read_jobs, write_jobs};
pub use parts::{PartOutcome, PartResult, Parts};
pub(crate) use phases::backwards;
pub use phases::{TaskTimes, Times};
pub use prediction::{read_prediction, write_prediction};
pub(crate) use quantities::quantities;
pub use simulated_trace::simulated_trace;
pub use store::{StoreError, read_comparison, read_detail, write_comparison, write_run};
pub(crate) use store::{make_folder, write_text};
pub use summary::{
    Baseline, CircuitSummary, Comparison, PathShare, Phase, PhaseWait, Summary, TransferClass, TransferError,
    TransferQuantile, WastedWork,
};
pub use sweep::{AxisValues, SweepPoint, SweepSummary, grouping, label};
pub use transfers::{KindTransfers, MessageTimes};

use seconds::seconds;

use crate::experiment::Experiment;
use causal::{CriticalPath, JobGraph, Outcome, critical_path};
use netsim::network::NetworkFigures;
use netsim::time::SimTime;

/// All that came out of a replay.
#[derive(Clone, Debug)]
pub struct RunResults {
    /// What the report shows.
    pub detail: Detail,
    /// Times of each message.
    pub messages: Vec<MessageTimes>,
}

impl RunResults {
    /// Works out the results of a replay that took `wall_s` seconds.
    #[must_use]
    pub fn new(
        experiment: &Experiment,
        graph: &JobGraph,
        outcome: &Outcome,
        figures: &NetworkFigures,
        wall_s: f64,
    ) -> Self {
        let path: CriticalPath = critical_path(graph, outcome);
        let messages = transfers::of_messages(graph, outcome);
        let tasks = phases::of_tasks(graph, outcome);
        let wasted = wasted::of(graph, &tasks, &messages);
        let mut summary = Summary {
            name: experiment.name.clone(),
            fabric: experiment.fabric.kind().to_owned(),
            trace: experiment.workload.source().map(|path| path.display().to_string()).unwrap_or_default(),
            job: graph.job.id.clone(),
            job_name: graph.job.name.clone(),
            causality: experiment.workload.causality,
            cpu_factor: experiment.workload.cpu_factor,
            seed: experiment.run.seed,
            baseline: Baseline::Recorded,
            recorded_network: experiment.workload.recorded_network
                && experiment.workload.cpu_factors.is_empty()
                && experiment.workload.timers
                && experiment.workload.production,
            job_time_s: seconds(outcome.job_time_ps),
            recorded_job_time_s: graph.job_time(graph.finish_ns).as_secs_f64(),
            phases: phases::means(graph, outcome, &tasks),
            messages: messages.iter().filter(|message| message.simulated.is_some()).count() as u64,
            messages_unfinished: messages.iter().filter(|message| message.simulated.is_none()).count() as u64,
            bytes: outcome.bytes,
            drops: figures.drops,
            retransmissions: figures.retransmissions,
            wall_s,
            events: figures.events + outcome.causal_events,
            causal_events: outcome.causal_events,
            synthetic_beats: outcome.synthetic.len() as u64 / 2,
            heartbeats: heartbeats::of(graph, outcome),
            network_share: summary::network_share(&path, outcome.job_time_ps),
            transfer_error: transfers::errors(&messages),
            critical_path: summary::path_shares(&path, outcome.job_time_ps),
            counters: figures.counters.iter().cloned().collect(),
            circuits: figures
                .circuit_totals
                .as_ref()
                .map(|totals| CircuitSummary::new(totals, SimTime(outcome.job_time_ps))),
            doubts: doubts::of(&path, outcome.job_time_ps, &experiment.workload),
            notes: wasted.iter().map(WastedWork::sentence).collect(),
            wasted,
        };
        if summary.shows_error() {
            summary.notes.extend(heartbeats::note(&summary.heartbeats));
        }
        let detail = Detail::new(summary, experiment, graph, tasks, &messages, &path, figures);
        Self { detail, messages }
    }
}
