//! Whether several traces hold runs of one job.

use causal::{CausalError, JobGraph, Options};
use thiserror::Error;
use trace::rows::{JobRow, Trace};

/// Runs of one job read as many bytes, but for so large a share.
const SAME_INPUT: f64 = 0.05;

/// Why traces do not go together.
#[derive(Debug, Error)]
pub enum JobsDiffer {
    /// A trace has no such job, or no causal graph.
    #[error("{trace}: {source}")]
    NoJob {
        /// The trace.
        trace: String,
        /// Why its graph cannot be built.
        source: CausalError,
    },
    /// A trace has several jobs of a name.
    #[error(
        "{trace}: has several jobs called \"{name}\": {ids}; give --job an id that all traces have, or traces with one each"
    )]
    Several {
        /// The trace.
        trace: String,
        /// The name.
        name: String,
        /// Their ids.
        ids: String,
    },
    /// They are different jobs.
    #[error(
        "{first} and {other} do not hold the same job: {what} ({first_job}, {other_job}); a prediction is for runs of one job, which \
         --job NAME chooses in each trace",
        first = first.trace, other = other.trace, first_job = first.job, other_job = other.job
    )]
    Different {
        /// A trace.
        first: Box<JobOfTrace>,
        /// Another one.
        other: Box<JobOfTrace>,
        /// What differs.
        what: &'static str,
    },
}

/// A trace, and what of its job differs from that of another one.
#[derive(Debug)]
pub struct JobOfTrace {
    trace: String,
    /// Id, and what it has: "job_1: 4 maps and 4 reduces".
    job: String,
}

/// The job of a trace: that with this id or name, or the one with the largest shuffle.
///
/// # Errors
/// If there is none, or several have the name.
pub fn job_of<'t>(place: &str, trace: &'t Trace, wanted: Option<&str>) -> Result<&'t JobRow, JobsDiffer> {
    let named: Vec<&JobRow> = trace.jobs.iter().filter(|job| wanted == Some(&job.name)).collect();
    let id = match named[..] {
        [] => wanted,
        [one] => Some(one.id.as_str()),
        [..] => {
            let ids = named.iter().map(|job| job.id.as_str()).collect::<Vec<_>>().join(", ");
            let name = wanted.unwrap_or_default().to_owned();
            return Err(JobsDiffer::Several { trace: place.to_owned(), name, ids });
        }
    };
    let graph = JobGraph::new(trace, id, Options::default());
    graph.map(|graph| graph.job).map_err(|source| JobsDiffer::NoJob { trace: place.to_owned(), source })
}

/// Refuses jobs that are not the same: names, numbers of maps and reduces, and what they read.
///
/// # Errors
/// With what differs.
pub fn check(jobs: &[(&str, &JobRow)]) -> Result<(), JobsDiffer> {
    let Some((first, others)) = jobs.split_first() else { return Ok(()) };
    for other in others {
        let (one, two) = (first.1, other.1);
        let differs = |what, first_value: String, other_value: String| {
            let side = |trace: &str, job: &JobRow, value: String| {
                Box::new(JobOfTrace { trace: trace.to_owned(), job: format!("{}: {value}", job.id) })
            };
            let (first, other) = (side(first.0, one, first_value), side(other.0, two, other_value));
            JobsDiffer::Different { first, other, what }
        };
        if one.name != two.name {
            return Err(differs("their names differ", format!("\"{}\"", one.name), format!("\"{}\"", two.name)));
        }
        if one.succeeded != two.succeeded {
            let outcome = |job: &JobRow| if job.succeeded { "succeeded" } else { "failed" }.to_owned();
            return Err(differs("one did not succeed", outcome(one), outcome(two)));
        }
        if (one.maps, one.reduces) != (two.maps, two.reduces) {
            let tasks = |job: &JobRow| format!("{} maps and {} reduces", job.maps, job.reduces);
            return Err(differs("they have different tasks", tasks(one), tasks(two)));
        }
        if let (Some(a), Some(b)) = (one.hdfs_bytes_read, two.hdfs_bytes_read)
            && a.abs_diff(b) as f64 > SAME_INPUT * a.max(b) as f64
        {
            return Err(differs("they read different input", format!("{a} bytes"), format!("{b} bytes")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use trace::ids::JobId;

    fn job(name: &str, maps: u32, read: u64) -> JobRow {
        JobRow {
            job: JobId(0),
            id: format!("job_{name}_{maps}"),
            name: name.to_owned(),
            submit_ns: 0,
            launch_ns: 0,
            finish_ns: 1,
            maps,
            reduces: 4,
            shuffle_bytes: None,
            hdfs_bytes_read: Some(read),
            hdfs_bytes_written: None,
            split_hosts: None,
            input_hosts: None,
            succeeded: true,
        }
    }

    #[test]
    fn runs_of_one_job_go_together_and_others_are_refused_with_what_differs() {
        let (one, again) = (job("TeraSort", 4, 1_000), job("TeraSort", 4, 1_010));
        check(&[("a", &one), ("b", &again)]).unwrap();
        let more = job("TeraSort", 8, 1_000);
        let refused = check(&[("a", &one), ("b", &more)]).unwrap_err().to_string();
        assert!(refused.contains("4 maps and 4 reduces") && refused.contains("8 maps"), "{refused}");
        let other = job("word count", 4, 1_000);
        let refused = check(&[("a", &one), ("b", &other)]).unwrap_err().to_string();
        assert!(refused.contains("\"TeraSort\"") && refused.contains("\"word count\""), "{refused}");
        let larger = job("TeraSort", 4, 2_000);
        assert!(check(&[("a", &one), ("b", &larger)]).unwrap_err().to_string().contains("2000 bytes"));
        let failed = JobRow { succeeded: false, ..job("TeraSort", 4, 1_000) };
        assert!(check(&[("a", &one), ("b", &failed)]).unwrap_err().to_string().contains("failed"));
    }
}
