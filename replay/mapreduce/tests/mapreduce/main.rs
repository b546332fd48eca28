//! Generated jobs against closed forms, one file a behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bytes;
mod core_sharing;
mod files;
mod grow;
mod map_only;
mod random_jobs;
mod samples;
mod speculation;
mod steps;
mod times;

use mapreduce::{JobFile, Model};
use netsim::engine::{self, End};
use netsim::fabric;
use netsim::time::SimTime;
use trace::rows::{EventRow, TaskKind, TaskRow, Trace};

/// What the jobs of a file do on an infinitely fast network.
fn run(text: &str) -> Trace {
    run_on("kind = \"ideal\"", text)
}

/// The same on a fabric.
fn run_on(fabric: &str, text: &str) -> Trace {
    let file = JobFile::parse(text).unwrap();
    let mut network = fabric::build(&fabric.parse().unwrap(), &mapreduce::places(&file.cluster)).unwrap();
    let mut model = Model::new(file);
    let end = engine::run(&mut network, &mut model, SimTime::LATEST);
    assert!(matches!(end, End::Done(_)), "{end:?}: {}", model.halted());
    model.into_trace()
}

fn tasks(trace: &Trace, kind: TaskKind) -> impl Iterator<Item = &TaskRow> {
    trace.tasks.iter().filter(move |task| task.kind == kind)
}

fn marks<'t>(trace: &'t Trace, name: &'t str) -> impl Iterator<Item = &'t EventRow> {
    trace.events.iter().filter(move |event| event.name == name)
}

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
