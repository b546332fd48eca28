//! A run ends where it would take more steps than it may, and says how far its jobs have come.

use mapreduce::{JobError, JobFile, Model};
use netsim::engine;
use netsim::fabric;
use netsim::time::SimTime;
use trace::rows::Trace;

/// Most of what happens on a hundred nodes with a small job are heartbeats.
const JOB: &str =
    "[cluster]\nnodes = 100\npiece = \"16MiB\"\n[[job]]\nprofile = \"terasort\"\ninput = \"512MiB\"\nreduces = 2\n";

fn run(fabric: &str, max_steps: usize) -> Result<Trace, JobError> {
    let file = JobFile::parse(&format!("max_steps = {max_steps}\n{JOB}")).unwrap();
    let mut network = fabric::build(&fabric.parse().unwrap(), &mapreduce::places(&file.cluster)).unwrap();
    let mut model = Model::new(file);
    engine::run(&mut network, &mut model, SimTime::LATEST);
    if model.is_complete() { Ok(model.into_trace()) } else { Err(model.halted()) }
}

const IDEAL: &str = "kind = \"ideal\"";

#[test]
fn a_long_run_ends_where_the_key_allows_it() {
    let steps = super::run(JOB).events.len();
    let whole = run(IDEAL, steps * 11 / 10).unwrap();
    assert_eq!(whole.events, super::run(JOB).events);
    let Err(JobError::TooLong { most, progress, goes_on, .. }) = run(IDEAL, steps * 9 / 10) else {
        panic!("it fits into nine tenths of its steps");
    };
    assert_eq!((most as usize, goes_on), (steps * 9 / 10, true));
    assert!(
        progress.starts_with("4 of 6 tasks are done") || progress.starts_with("5 of 6 tasks are done"),
        "{progress}"
    );
}

#[test]
fn a_run_that_does_not_come_on_is_ended_and_says_so() {
    // Each call takes two minutes, or there is no time for a task.
    for (fabric, most) in [("kind = \"ideal\"\nlatency = \"60s\"", 3_000), (IDEAL, 1_000)] {
        let error = run(fabric, most).unwrap_err();
        let message = error.to_string();
        assert!(matches!(error, JobError::TooLong { goes_on: false, .. }), "{error:?}");
        for words in [&format!("max_steps = {most}: "), "none of 6 tasks is done", "in the job file", "too slow"] {
            assert!(message.contains(words), "{words} in {message}");
        }
    }
}

#[test]
fn what_a_job_takes_by_itself_must_fit() {
    let error = |steps: &str| JobFile::parse(&format!("max_steps = {steps}\n{JOB}")).unwrap_err().to_string();
    assert!(
        error("100").starts_with("max_steps = 100: ") && error("100").contains("cluster.piece"),
        "{}",
        error("100")
    );
    for wrong in ["0", "2000000000"] {
        assert!(
            error(wrong).starts_with(&format!("max_steps = {wrong}: between 1 and 1000000000")),
            "{}",
            error(wrong)
        );
    }
    // The file says it again, where it differs from the default.
    let file = JobFile::parse(&format!("max_steps = 50000\n{JOB}")).unwrap();
    assert_eq!(JobFile::parse(&file.to_toml().unwrap()).unwrap().max_steps, 50_000);
    assert!(!JobFile::parse(JOB).unwrap().to_toml().unwrap().contains("max_steps"));
}
