//! Whether the trace can tell what was asked of it: a replay moves only what it knows the causes of.

use std::collections::BTreeMap;

use trace::role;

use super::seconds::seconds;
use causal::{Causality, CriticalPath, PathKind};

/// Share of the job's time that may pass without a known cause.
const MAX_OUTSIDE: f64 = 0.5;
/// Share that one process may think that computes nothing of the job's own.
const MAX_THOUGHT: f64 = 0.5;
/// Shorter waits than this are the daemons' own work, however large their share of a short job.
const MIN_DOUBTED_S: f64 = 5.0;

/// What most of the job's time waits for without the trace saying why; such parts stay as recorded on any network.
/// Nothing where it was asked for that all stays as recorded.
pub(super) fn of(path: &CriticalPath, job_time_ps: u64, causality: Causality) -> Vec<String> {
    if causality == Causality::Recorded {
        return Vec::new();
    }
    let job_s = seconds(job_time_ps);
    let mut doubts = Vec::new();
    let outside_s = seconds(path.total_of_ps(PathKind::Outside));
    if outside_s > MIN_DOUBTED_S && outside_s > MAX_OUTSIDE * job_s {
        doubts.push(format!(
            "{outside_s:.1} of {job_s:.1} s of the critical path have no cause in the trace (\"outside\") and stay as \
             recorded on any network: it cannot tell how long the job takes on another one. Causes are missing where the \
             Java agent was not in all JVMs, where owners of connections are not known, and in encrypted calls"
        ));
    }
    let mut thought: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for piece in path.pieces.iter().filter(|piece| piece.kind == PathKind::Think) {
        // Behind a role stands the kind of task that it is about: "MRAppMaster (reduce)".
        let role = piece.what.split(" (").next().unwrap_or_default();
        if role::only_coordinates(role) {
            *thought.entry((role, &piece.place)).or_default() += piece.length_ps();
        }
    }
    for ((role, host), ps) in thought {
        let thought_s = seconds(ps);
        if thought_s > MIN_DOUBTED_S && thought_s > MAX_THOUGHT * job_s {
            doubts.push(format!(
                "{thought_s:.1} of {job_s:.1} s of the critical path are the thinking of {role} on {host}, which computes \
                 nothing of the job's: what it waited for is not in the trace, and the time stays as recorded on any \
                 network; record with the Java agent in all JVMs"
            ));
        }
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;
    use causal::Piece;

    const SECOND_PS: u64 = 1_000_000_000_000;

    fn path(pieces: &[(PathKind, &str, u64)]) -> (CriticalPath, u64) {
        let mut at = 0;
        let pieces = pieces.iter().map(|(kind, what, length_s)| {
            let from_ps = at;
            at += length_s * SECOND_PS;
            Piece { kind: *kind, what: (*what).to_owned(), place: "w1".to_owned(), from_ps, to_ps: at, steps: 1 }
        });
        (CriticalPath { pieces: pieces.collect() }, at)
    }

    fn doubts(pieces: &[(PathKind, &str, u64)]) -> Vec<String> {
        let (path, job_time_ps) = path(pieces);
        of(&path, job_time_ps, Causality::default())
    }

    #[test]
    fn a_path_that_is_mostly_outside_is_doubted() {
        let found = doubts(&[(PathKind::Outside, "a send", 44), (PathKind::Network, "block-data", 1)]);
        assert!(found.len() == 1 && found[0].starts_with("44.0 of 45.0 s"), "{found:?}");
        assert_eq!(doubts(&[(PathKind::Outside, "a send", 20), (PathKind::Network, "block-data", 25)]), [""; 0]);
    }

    #[test]
    fn a_master_that_thinks_for_most_of_the_time_is_doubted_and_a_task_is_not() {
        let rest = (PathKind::Network, "block-data", 24);
        let found = doubts(&[(PathKind::Think, "MRAppMaster", 9), rest, (PathKind::Think, "MRAppMaster (reduce)", 17)]);
        assert!(found.len() == 1 && found[0].contains("26.0 of 50.0 s"), "{found:?}");
        assert!(found[0].contains("MRAppMaster on w1"), "{found:?}");
        assert_eq!(doubts(&[(PathKind::Think, "YarnChild (reduce)", 30), rest]), [""; 0]);
        let short = [(PathKind::Think, "MRAppMaster", 4), (PathKind::Network, "block-data", 2)];
        assert_eq!(doubts(&short), [""; 0], "a master takes a few seconds to start");
    }
}
