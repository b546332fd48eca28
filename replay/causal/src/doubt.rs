//! Whether a critical path can tell what a replay asks of it: a replay moves only what it knows the causes of.

use std::collections::BTreeMap;

use trace::role;

use super::path::{CriticalPath, PathKind};

/// Share of a job's time that may pass without a known cause, and that one process may think that computes nothing of the
/// job's own.
const MAX_SHARE: f64 = 0.5;
/// Shorter waits than this are the daemons' own work, however large their share of a short job: 5 seconds.
const MIN_DOUBTED_PS: u64 = 5 * 1_000_000_000_000;

/// What much of a job's time waits for without the trace saying why. It stays as recorded on any network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt<'p> {
    /// What no cause of is in the trace.
    Outside {
        /// How long, picoseconds.
        ps: u64,
    },
    /// The thinking of a master or daemon, which computes nothing of the job's.
    Thinking {
        /// Its role.
        role: &'p str,
        /// Its host.
        host: &'p str,
        /// How long, picoseconds.
        ps: u64,
    },
}

/// How long each master and daemon thinks on a path, picoseconds by role and host.
#[must_use]
pub fn thinking_of_coordinators(path: &CriticalPath) -> BTreeMap<(&str, &str), u64> {
    let mut thought: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for piece in path.pieces.iter().filter(|piece| piece.kind == PathKind::Think) {
        if role::only_coordinates(piece.role()) {
            *thought.entry((piece.role(), &piece.place)).or_default() += piece.length_ps();
        }
    }
    thought
}

/// What of the critical path of a job of this time is doubtful.
#[must_use]
pub fn doubts(path: &CriticalPath, job_time_ps: u64) -> Vec<Doubt<'_>> {
    let outside = [Doubt::Outside { ps: path.total_of_ps(PathKind::Outside) }].into_iter();
    let thinking = thinking_of_coordinators(path).into_iter();
    let found = outside.chain(thinking.map(|((role, host), ps)| Doubt::Thinking { role, host, ps }));
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let too_much = |ps: u64| ps > MIN_DOUBTED_PS && ps as f64 > MAX_SHARE * job_time_ps as f64;
    found.filter(|(Doubt::Outside { ps } | Doubt::Thinking { ps, .. })| too_much(*ps)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Piece;
    use trace::ids::EventId;

    const SECOND_PS: u64 = 1_000_000_000_000;

    fn path(pieces: &[(PathKind, &str, u64)]) -> (CriticalPath, u64) {
        let mut at = 0;
        let pieces = pieces.iter().map(|(kind, what, length_s)| {
            let from_ps = at;
            at += length_s * SECOND_PS;
            Piece {
                kind: *kind,
                what: (*what).to_owned(),
                place: "w1".to_owned(),
                from_ps,
                to_ps: at,
                steps: 1,
                event: EventId(0),
            }
        });
        (CriticalPath { pieces: pieces.collect() }, at)
    }

    #[test]
    fn a_path_that_is_mostly_outside_is_doubted() {
        let (doubtful, time_ps) = path(&[(PathKind::Outside, "a send", 44), (PathKind::Network, "block-data", 1)]);
        assert_eq!(doubts(&doubtful, time_ps), [Doubt::Outside { ps: 44 * SECOND_PS }]);
        let (sure, time_ps) = path(&[(PathKind::Outside, "a send", 20), (PathKind::Network, "block-data", 25)]);
        assert_eq!(doubts(&sure, time_ps), []);
    }

    #[test]
    fn a_master_that_thinks_for_most_of_the_time_is_doubted_and_a_task_is_not() {
        let rest = (PathKind::Network, "block-data", 24);
        let master = [(PathKind::Think, "MRAppMaster", 9), rest, (PathKind::Think, "MRAppMaster (reduce)", 17)];
        let (doubtful, time_ps) = path(&master);
        let expected = Doubt::Thinking { role: "MRAppMaster", host: "w1", ps: 26 * SECOND_PS };
        assert_eq!(doubts(&doubtful, time_ps), [expected]);
        let (task, time_ps) = path(&[(PathKind::Think, "YarnChild (reduce)", 30), rest]);
        assert_eq!(doubts(&task, time_ps), []);
        let (short, time_ps) = path(&[(PathKind::Think, "MRAppMaster", 4), (PathKind::Network, "block-data", 2)]);
        assert_eq!(doubts(&short, time_ps), [], "a master takes a few seconds to start");
    }
}
