//! Activities of a thread that a single row can show.

use super::activity::{Activity, State};

/// So many rows a thread at most, so that a record that lies cannot make the search slow: what fits none of them
/// gets a row of its own.
const MAX_STRIPS: usize = 16;

/// Activities in order of which any two are apart or one within the other, and then of different kinds.
#[derive(Debug, Default)]
pub struct Strip<'a> {
    /// In the order of their begins, the outer before the inner.
    pub activities: Vec<Activity<'a>>,
    /// Those that last still: indexes of `activities`.
    open: Vec<usize>,
}

impl<'a> Strip<'a> {
    /// A strip of one activity.
    pub fn of(activity: Activity<'a>) -> Self {
        Self { activities: vec![activity], open: vec![0] }
    }

    /// First begin and last end.
    pub fn extent(&self) -> (u64, u64) {
        let begin = self.activities.first().map_or(0, |activity| activity.begin);
        let end = self.activities.iter().map(|activity| activity.end).max().unwrap_or(begin);
        (begin, end)
    }

    fn takes(&mut self, activity: &Activity<'_>) -> bool {
        while self.open.last().is_some_and(|&at| self.activities[at].end <= activity.begin) {
            self.open.pop();
        }
        let within = self.open.last().is_none_or(|&at| activity.end <= self.activities[at].end);
        within && self.open.iter().all(|&at| self.activities[at].kind != activity.kind)
    }

    fn push(&mut self, activity: Activity<'a>) {
        self.open.push(self.activities.len());
        self.activities.push(activity);
    }
}

/// Cuts what a thread did into as few strips as taking the first that fits needs.
pub fn strips(mut activities: Vec<Activity<'_>>) -> Vec<Strip<'_>> {
    activities.sort_by_key(|activity| (activity.begin, u64::MAX - activity.end, activity.span));
    let mut strips: Vec<Strip<'_>> = Vec::new();
    let mut alone = Vec::new();
    for activity in activities {
        match strips.iter_mut().position(|strip| strip.takes(&activity)) {
            Some(at) => strips[at].push(activity),
            None if strips.len() < MAX_STRIPS => strips.push(Strip::of(activity)),
            None => alone.push(Strip::of(activity)),
        }
    }
    strips.append(&mut alone);
    strips
}

/// A time in which a state holds, or an activity's begin or end.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// Nanoseconds since the epoch.
    pub at: u64,
    /// The activity.
    pub activity: Activity<'a>,
    /// Whether it begins or ends.
    pub begins: bool,
    /// State from now on; `None`: no activity lasts.
    pub state: Option<State>,
}

/// Begins and ends of a strip in their order: at one time ends come first, but for activities without length, whose
/// end follows their begin.
pub fn changes<'a>(activities: &[Activity<'a>]) -> Vec<Change<'a>> {
    let mut changes = Vec::with_capacity(activities.len() * 2);
    let mut open: Vec<Activity<'a>> = Vec::new();
    for &activity in activities {
        close(&mut open, activity.begin, &mut changes);
        changes.push(Change { at: activity.begin, activity, begins: true, state: Some(activity.state) });
        open.push(activity);
    }
    close(&mut open, u64::MAX, &mut changes);
    changes
}

fn close<'a>(open: &mut Vec<Activity<'a>>, until: u64, changes: &mut Vec<Change<'a>>) {
    while let Some(activity) = open.pop_if(|last| last.end <= until) {
        let state = open.last().map(|outer| outer.state);
        changes.push(Change { at: activity.end, activity, begins: false, state });
    }
}

#[cfg(test)]
mod tests {
    use super::super::activity::ActivityKind;
    use super::*;

    fn activity(begin: u64, end: u64, kind: ActivityKind) -> Activity<'static> {
        let state = if kind == ActivityKind::RpcCalled { State::Waiting } else { State::Running };
        Activity { begin, end, kind, name: "x", state, span: None }
    }

    #[test]
    fn what_is_within_another_shares_its_row_and_what_overlaps_does_not() {
        let rpc = activity(0, 100, ActivityKind::RpcServed);
        let call = activity(10, 30, ActivityKind::RpcCalled);
        let over = activity(90, 120, ActivityKind::RpcCalled);
        let same = activity(40, 50, ActivityKind::RpcServed);
        let cut = strips(vec![over, call, same, rpc]);
        let begins: Vec<Vec<u64>> =
            cut.iter().map(|strip| strip.activities.iter().map(|activity| activity.begin).collect()).collect();
        assert_eq!(begins, [vec![0, 10], vec![40, 90]]);
    }

    #[test]
    fn the_inner_state_holds_while_it_lasts() {
        let activities = [activity(0, 100, ActivityKind::RpcServed), activity(10, 30, ActivityKind::RpcCalled)];
        let plain: Vec<_> =
            changes(&activities).iter().map(|change| (change.at, change.begins, change.state)).collect();
        let (running, waiting) = (Some(State::Running), Some(State::Waiting));
        assert_eq!(plain, [(0, true, running), (10, true, waiting), (30, false, running), (100, false, None)]);
    }

    #[test]
    fn an_activity_without_length_ends_after_its_begin() {
        let activities = [
            activity(0, 5, ActivityKind::RpcServed),
            activity(5, 5, ActivityKind::RpcServed),
            activity(5, 9, ActivityKind::Phase),
        ];
        let plain: Vec<_> = changes(&activities).iter().map(|change| (change.at, change.begins)).collect();
        assert_eq!(plain, [(0, true), (5, false), (5, true), (5, false), (5, true), (9, false)]);
    }

    #[test]
    fn a_thread_that_claims_everything_at_once_gets_a_row_each_in_linear_time() {
        let all: Vec<_> = (0..100_000).map(|at| activity(at, 1_000_000 + at, ActivityKind::RpcServed)).collect();
        assert_eq!(strips(all).len(), 100_000);
    }
}
