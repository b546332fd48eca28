//! What tasks compute that write to HDFS: reduces between their sort and their end, and maps of jobs without reduces from their first
//! input on.

use causal::{JobTime, Outcome, PathKind, Piece, critical_steps_to};
use trace::ids::EventId;
use trace::rows::{TaskKind, TaskRow};

use crate::recording::Recording;

/// What such a task, and whom it waits for, computes where the network takes no time: what the recorded network hid is not hidden
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutputComputing {
    pub(super) before_output_ns: u64,
    pub(super) output_ns: u64,
    pub(super) after_output_ns: u64,
}

impl Recording<'_> {
    /// What a task computes from its sort, or its first input, to its end; `None` if the trace does not tell when these were.
    pub(super) fn computing_of(&self, task: &TaskRow) -> Option<OutputComputing> {
        let end = *self.ends.get(&task.task)?;
        let (outcome, begin) = self.output_begin(task)?;
        let until = |event: EventId| -> u64 {
            let steps = critical_steps_to(self.graph, outcome, event, begin.ps());
            steps.iter().map(|piece| self.computing_ps(piece)).fold(0, u64::saturating_add) / 1_000
        };
        let output = task.process.and_then(|process| self.outputs_written.get(&process));
        let (first_ns, last_ns, end_ns) = match output {
            Some((first, last)) => (until(*first), until(*last), until(end)),
            None => (0, until(end), until(end)),
        };
        Some(OutputComputing {
            before_output_ns: first_ns,
            output_ns: last_ns.saturating_sub(first_ns),
            after_output_ns: end_ns.saturating_sub(last_ns),
        })
    }

    /// Over which network paths are looked at, and from when on. Where the job cannot be replayed, it is the recorded one, without what
    /// that hid.
    fn output_begin(&self, task: &TaskRow) -> Option<(&Outcome, JobTime)> {
        let begin = match task.kind {
            TaskKind::Map => self.first_input(task),
            TaskKind::Reduce | TaskKind::Other => self.sort_ends.get(&task.task).copied(),
        };
        let instant = self.instant.as_ref().zip(begin);
        if let Some((outcome, at)) =
            instant.and_then(|(outcome, begin)| Some((outcome, outcome.event(begin).happened()?)))
        {
            return Some((outcome, at));
        }
        let recorded = match task.kind {
            TaskKind::Map => self.recorded.event(begin?).happened()?,
            TaskKind::Reduce | TaskKind::Other => self.graph.job_time(task.sort_end_ns?),
        };
        Some((&self.recorded, recorded))
    }

    /// What a map without reduces computes from its first input to its last output; `None` if it wrote none.
    pub(super) fn map_to_output_ns(&self, task: &TaskRow) -> Option<u64> {
        task.process.and_then(|process| self.outputs_written.get(&process))?;
        let computing = self.computing_of(task)?;
        Some(computing.before_output_ns.saturating_add(computing.output_ns))
    }

    /// What a piece of a path takes whoever computes, with a processor of its own. Daemons and masters compete with nobody.
    fn computing_ps(&self, piece: &Piece) -> u64 {
        let works = matches!(piece.kind, PathKind::Think | PathKind::HiddenWork);
        if !works || self.completion_retries.contains(&piece.event) {
            return 0;
        }
        let took_ps = self.graph.recorded_delay_ps(piece.event);
        let part =
            u128::from(piece.length_ps()) * u128::from(self.event_alone_ps(piece.event)) / u128::from(took_ps.max(1));
        if took_ps == 0 { piece.length_ps() } else { u64::try_from(part).unwrap_or(u64::MAX) }
    }
}
