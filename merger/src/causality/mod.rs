//! From joined captures to causes: which event waited for which others, and how long it thought then.
//!
//! [`build`] goes over the messages once to cut them into events (`pieces`), finds the loops that beat on their own
//! account (`timers`), follows threads from what they received to what they sent (`threads`), adds what is known of
//! MapReduce on YARN (`yarn`), and falls back on the order of a connection and of a process where nothing better is
//! known (`rules`). What comes out is checked by [`check::verify`].

pub mod check;
mod draft;
mod error;
mod hidden;
mod index;
mod mrv1;
mod pieces;
mod rules;
mod tasks;
mod threads;
mod timers;
mod yarn;

use std::path::PathBuf;

use trace::rows::{DependencyRow, EventRow, JobRow, TaskRow, TimerRow};

use self::draft::Graph;
pub use self::error::CausalityError;
use self::hidden::Production;
use self::index::Index;
use self::pieces::Pieces;
use self::rules::CauseInference;
use self::tasks::Work;
use self::threads::Threads;
use self::timers::Timers;
use crate::joined::Joined;

/// The causal part of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Causal {
    /// Nodes of the graph.
    pub events: Vec<EventRow>,
    /// Its edges, ordered by the event that waits.
    pub dependencies: Vec<DependencyRow>,
    /// Loops that send on their own account.
    pub timers: Vec<TimerRow>,
    /// Task attempts.
    pub tasks: Vec<TaskRow>,
    /// Jobs.
    pub jobs: Vec<JobRow>,
    /// What the reader of the trace should know, in words.
    pub notes: Vec<String>,
}

/// Finds the causes of everything that the captures hold.
///
/// `captures` are the captures' folders: their `job/` folders hold the job history.
///
/// # Errors
/// If the job history cannot be read, or there are too many events.
pub fn build(joined: &Joined, captures: &[PathBuf]) -> Result<Causal, CausalityError> {
    let histories = crate::history::read(captures)?;
    let work = Work::new(joined, &histories);
    let index = Index::new(joined);
    let mut graph = Graph::default();
    let pieces = Pieces::cut(joined, &mut graph);
    let timers = Timers::find(joined, &index, &pieces, &mut graph);
    let consumed = hidden::consume(joined, &index, &pieces, &mut graph);
    let threads = Threads::new(joined, &index, &pieces, &timers, &graph, &consumed);
    let mut inference = CauseInference {
        joined,
        index: &index,
        pieces: &pieces,
        timers: &timers,
        threads,
        production: Production::default(),
        graph: &mut graph,
    };
    // A cluster has the one or the other.
    let by_trackers = !work.of.is_empty() && work.of.iter().all(|job| mrv1::is_of(&inference, job));
    let mut marks = if by_trackers {
        mrv1::infer(&mut inference, &work, &histories)
    } else {
        yarn::infer(&mut inference, &work, &histories)
    };
    inference.infer();
    if by_trackers {
        mrv1::finish_jobs(&mut inference, &work, &mut marks);
    } else {
        yarn::finish_jobs(&mut inference, &work, &mut marks);
    }
    let (disbelieved, without_beat) = (graph.disbelieved, graph.without_beat);
    let rows = graph.into_rows()?;
    let mut notes: Vec<String> =
        histories.losses.iter().map(|loss| format!("{}: {} {}", loss.what, loss.count, loss.unit)).collect();
    notes.extend(work.of.iter().filter(|job| job.master.is_none()).map(|job| {
        format!(
            "causality: the application master of {} is not known (no owners of its connections): its tasks keep their \
             recorded times, whatever the network",
            job.history.id
        )
    }));
    let [network, receiver, sender] = pieces.paces;
    notes.push(format!(
        "causality: long messages are cut into {} more pieces, of which {network} left as the network let them, {receiver} \
         as their receiver made room and {sender} as their sender had them",
        network + receiver + sender
    ));
    notes.extend(describe(&check::verify(&rows.events, &rows.dependencies), disbelieved, without_beat, rows.cyclic));
    Ok(Causal {
        events: rows.events,
        dependencies: rows.dependencies,
        timers: timers.into_rows(),
        tasks: work.tasks,
        jobs: work.jobs,
        notes,
    })
}

/// What the check of the finished graph found, in words.
fn describe(report: &check::Report, disbelieved: u64, without_beat: u64, cyclic: u64) -> Vec<String> {
    let share = if report.bytes == 0 { 0.0 } else { report.root_bytes as f64 / report.bytes as f64 };
    let worst = report.worst.as_ref().map_or(0, |(error, _)| *error);
    vec![
        format!(
            "causality: {} of the sends wait for nothing and keep their recorded time ({:.2}% of the bytes)",
            report.roots,
            share * 100.0
        ),
        format!(
            "causality: on the recorded network the graph is off by {:.3} ms at worst, {} events by more than 1 ms",
            worst as f64 / 1e6,
            report.off
        ),
        format!(
            "causality: {disbelieved} supposed causes came after their effect and were left out, {cyclic} of one instant; \
             {without_beat} pieces of news found no beat in time",
        ),
    ]
}
