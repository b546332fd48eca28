//! From which set-up time of circuits on a job is done sooner over them than over the packet switch, as a sweep of both shows.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use netsim::units::DurationPs;
use pages::format;

use super::jobs::{JobPoint, JobSweep};

const DECISION: &str = "fabric.decision";
const SET_UP: &str = "fabric.ocs_first_message_delay";
const PACKETS: &str = "ops";

/// What a job takes by one way of deciding, by the set-up time of its circuits.
type BySetUp<'s> = BTreeMap<Reverse<DurationPs>, &'s JobPoint>;

impl JobSweep {
    /// A sentence for each decision but `ops`, and each combination of the other keys: from which set-up time on it pays. None where the
    /// sweep does not set circuits against the packet switch, or lacks combinations.
    #[must_use]
    pub fn circuits_pay(&self) -> Vec<String> {
        let axis = |path: &str| self.axes.iter().position(|axis| axis.path == path);
        let (Some(decision), Some(set_up)) = (axis(DECISION), axis(SET_UP)) else { return Vec::new() };
        // By the values of the other keys, then by decision.
        let mut groups: BTreeMap<Vec<(usize, usize)>, BTreeMap<&str, BySetUp>> = BTreeMap::new();
        for point in &self.points {
            let [Some(chosen), Some(text)] = [decision, set_up].map(|at| {
                let value = point.values.get(at).copied()?;
                self.axes[at].values.get(value)
            }) else {
                continue;
            };
            let Ok(time) = text.parse::<DurationPs>() else { continue };
            let others = point.values.iter().copied().enumerate().filter(|(at, _)| *at != decision && *at != set_up);
            let group = groups.entry(others.collect()).or_default();
            group.entry(chosen).or_default().insert(Reverse(time), point);
        }
        let mut lines = Vec::new();
        for (others, by_decision) in &groups {
            let Some(packets) = by_decision.get(PACKETS).and_then(|points| points.values().next()) else { continue };
            let values = others.iter().map(|(at, value)| (&self.axes[*at], value));
            let label = super::sweep::label(values);
            let subject = if label.is_empty() { "Circuits".to_owned() } else { format!("With {label}: circuits") };
            let circuits = by_decision.iter().filter(|(chosen, _)| **chosen != PACKETS);
            lines.extend(
                circuits.map(|(chosen, points)| sentence(&format!("{subject} (decision = {chosen})"), points, packets)),
            );
        }
        lines
    }
}

/// From which set-up time on `points` are all better than `packets`.
fn sentence(subject: &str, points: &BySetUp, packets: &JobPoint) -> String {
    let over_packets = packets.summary.job_time_s;
    let sooner = |point: &JobPoint| point.summary.job_time_s < over_packets;
    let worse = points.values().filter(|point| !sooner(point)).count();
    // From the shortest one up, as long as it pays.
    let paying: Vec<_> = points.iter().rev().take_while(|(_, point)| sooner(point)).collect();
    let against = format!("{} over the packet switch", format::seconds(over_packets));
    match (paying.last(), points.values().next_back()) {
        (Some((Reverse(from), point)), _) if paying.len() + worse == points.len() => format!(
            "{subject} pay for this job from a set-up of {from} down: there it takes {}, and {against}.",
            format::seconds(point.summary.job_time_s),
        ),
        (Some((Reverse(from), _)), _) => format!(
            "{subject} pay for this job from a set-up of {from} down, and at some longer ones too; it takes {against}."
        ),
        (None, Some(shortest)) => format!(
            "{subject} pay for this job at {}: with the shortest set-up it takes {}, and {against}.",
            if worse == points.len() { "no set-up time that was tried" } else { "some longer set-up times only" },
            format::seconds(shortest.summary.job_time_s),
        ),
        (None, None) => format!("{subject} were not tried; it takes {against}."),
    }
}
