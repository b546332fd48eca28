//! From joined captures to causes: which event waited for which others, and how long it thought then.
//!
//! [`build`] goes over the messages once to cut them into events (`pieces`), finds the loops that beat on their own
//! account (`timers`), follows threads from what they received to what they sent (`threads`), adds what is known of
//! MapReduce on YARN (`yarn`), and falls back on the order of a connection and of a process where nothing better is
//! known (`rules`). What comes out is checked by [`check::verify`].

mod beat_chains;
mod beats;
pub mod check;
mod clients;
mod consumed;
mod draft;
mod ends;
mod error;
mod event;
mod exchanges;
mod findings;
mod held_back;
mod hidden;
mod index;
mod measured;
mod moments;
mod mrv1;
mod pieces;
mod places;
mod rows;
mod rules;
mod slots;
mod tasks;
mod threads;
mod timers;
mod turns;
mod yarn;

use std::borrow::Borrow;
use std::io;
use std::sync::Arc;

use trace::rows::{DependencyRow, EventRow, JobRow, TaskRow, TimerRow};

use self::check::{Check, Report};
use self::clients::LastPolls;
use self::draft::Graph;
use self::ends::ProcessEnds;
pub use self::error::CausalityError;
pub use self::findings::Findings;
use self::hidden::Production;
use self::index::Index;
use self::measured::{Measured, Writers};
use self::pieces::Pieces;
pub use self::rows::{RowBatch, RowCounts};
use self::rules::CauseInference;
use self::tasks::Work;
use self::threads::Threads;
use self::timers::Timers;
use crate::joined::Joined;
use crate::maps::HashMap;
use crate::packed_streams::PackedStreams;

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
    /// How well that went.
    pub findings: Findings,
}

/// The causal part of a trace, of which rows of events and dependencies are still to be made.
#[derive(Debug)]
pub struct CausalGraph {
    graph: Graph,
    /// Loops that send on their own account.
    pub timers: Vec<TimerRow>,
    /// Task attempts.
    pub tasks: Vec<TaskRow>,
    /// Jobs.
    pub jobs: Vec<JobRow>,
    /// How well that went, but for what rows and the check of the graph tell.
    pub findings: Findings,
}

impl CausalGraph {
    /// Makes the rows of all events and dependencies. `take` is given one batch after the other, and says whether it wants more.
    ///
    /// # Errors
    /// If there are too many events, or a temporary file fails.
    pub fn make_rows(&self, take: impl FnMut(RowBatch) -> bool) -> Result<RowCounts, CausalityError> {
        rows::make(&self.graph, take)
    }

    /// All rows, and the check of the graph.
    fn whole(self) -> Result<Causal, CausalityError> {
        let (mut events, mut dependencies) = (Vec::new(), Vec::new());
        let counts = self.make_rows(|batch| {
            let batch = Arc::new(batch);
            events.extend(Arc::clone(&batch).events());
            dependencies.extend(batch.dependencies());
            true
        })?;
        let findings =
            Findings { report: check::verify(&events, &dependencies)?, cyclic: counts.cyclic, ..self.findings };
        let Self { timers, tasks, jobs, .. } = self;
        Ok(Causal { events, dependencies, timers, tasks, jobs, findings })
    }
}

/// Checks the graph whose rows come in these batches, by replaying it on the recorded network.
///
/// # Errors
/// If a temporary file fails.
pub fn check_batches(batches: impl Iterator<Item = Arc<RowBatch>>) -> io::Result<Report> {
    let mut check = Check::of(None);
    for batch in batches {
        let mut edges = Arc::clone(&batch).dependencies().peekable();
        for event in batch.events() {
            let id = event.event;
            check.add(event, std::iter::from_fn(|| edges.next_if(|edge| edge.event == id)));
        }
    }
    check.report()
}

/// Finds the causes of everything that the captures hold.
///
/// # Errors
/// If there are too many events, or a temporary file fails.
pub fn build(joined: &Joined) -> Result<Causal, CausalityError> {
    find(joined, &joined.streams, || {})?.whole()
}

/// As [`build`], but for the rows of events and dependencies, and the check of the graph. `streams` are those of
/// [`Joined::streams`], which are given up when they are not needed any more; then `given_up` is called. From there on one thread does
/// most by itself.
///
/// # Errors
/// As [`build`].
pub fn find(
    joined: &Joined,
    streams: impl Borrow<PackedStreams> + Sync,
    given_up: impl FnOnce(),
) -> Result<CausalGraph, CausalityError> {
    let histories = &joined.histories;
    let work = Work::new(joined, histories);
    let mut graph = Graph::default();
    // What this thread makes here is given up before rows are made, and can be taken for these.
    let ((index, measured), pieces) = rayon::join(
        || (Index::new(joined), Measured::new(joined)),
        || Pieces::cut(joined, streams.borrow(), &mut graph),
    );
    streams.borrow().check()?;
    drop(streams);
    given_up();
    let (index, pieces) = (index?, pieces?);
    let timers = Timers::find(joined, &index, &pieces, &mut graph)?;
    LastPolls::watch(joined, &mut graph);
    let (consumed, taken) = hidden::consume(joined, &index, &pieces, &measured, &mut graph);
    let threads = Threads::new(joined, &index, &pieces, &timers, &graph, &consumed)?;
    let mut inference = CauseInference {
        joined,
        index: &index,
        pieces: &pieces,
        timers: &timers,
        threads,
        production: Production::default(),
        measured: &measured,
        writers: Writers::new(taken),
        received: HashMap::default(),
        ends: ProcessEnds::new(joined),
        graph: &mut graph,
    };
    // A cluster has the one or the other.
    let by_trackers = !work.of.is_empty() && work.of.iter().all(|job| mrv1::is_of(&inference, job));
    let mut marks = if by_trackers {
        mrv1::infer(&mut inference, &work, histories)
    } else {
        yarn::infer(&mut inference, &work, histories)
    };
    inference.infer();
    if by_trackers {
        mrv1::finish_jobs(&mut inference, &work, &mut marks);
    } else {
        yarn::finish_jobs(&mut inference, &work, &mut marks);
    }
    inference.threads.check()?;
    index.check().and(consumed.check()).and(pieces.check())?;
    joined.check_read()?;
    drop(inference);
    let masterless = work.of.iter().filter(|job| job.master.is_none());
    let findings = Findings {
        without_master: masterless.map(|job| job.history.id.clone()).collect(),
        pieces_by_limit: pieces.by_limit,
        report: Report::default(),
        disbelieved: graph.disbelieved,
        cyclic: 0,
        without_beat: graph.without_beat,
    };
    Ok(CausalGraph { graph, timers: timers.into_rows(), tasks: work.tasks, jobs: work.jobs, findings })
}
