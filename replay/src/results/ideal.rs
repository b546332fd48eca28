//! What a job takes on an infinitely fast network: with it results of jobs that nobody recorded are compared.

use causal::{JobGraph, Outcome};

use super::phases;
use super::seconds::seconds;
use super::summary::Phase;

/// What a job takes on an infinitely fast network.
#[derive(Clone, Debug)]
pub(crate) struct IdealTimes {
    pub(super) job_time_s: f64,
    pub(super) phases: Vec<Phase>,
}

impl IdealTimes {
    /// Those of an outcome on such a network.
    pub(crate) fn new(graph: &JobGraph, outcome: &Outcome) -> Self {
        let tasks = phases::of_tasks(graph, outcome);
        Self { job_time_s: seconds(outcome.job_time_ps), phases: phases::means(graph, outcome, &tasks) }
    }
}
