//! Kept runs of the lab, of which `tests/jobs/matrix.csv` tells what their jobs say of other settings beside the real runs there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use hadoptic_tests::job_matrix::cells::predict;
use hadoptic_tests::job_matrix::learn::{Target, job_file};
use hadoptic_tests::job_matrix::plan::{By, Plan, Setting};
use hadoptic_tests::job_matrix::table::read_rows;
use hadoptic_tests::lab_runs::{Job, Run};

/// The bar of document 001, chapter 4.3, for all jobs but TeraSort.
const WITHIN: f64 = 0.10;

/// Predicts the job's time in a setting from the kept run of another one, and finds it in the table.
fn check(by: By, job: Job, from: &str, to: &str) {
    let jobs = Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs");
    let plan = Plan::read(&jobs.join("plan.toml")).unwrap();
    let run = |name: &str| Run::read(jobs.join("kept").join(name).join("run-1")).unwrap().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let target = (plan.setting(to).unwrap(), &run(to).truth);
    let times = predict(by, (&run(from), job), target, plan.seeds, scratch.path()).unwrap();
    let rows = read_rows(&jobs.join("matrix.csv")).unwrap();
    let row = |quantity: &str| {
        let is_it = |row: &&hadoptic_tests::job_matrix::table::Row| {
            (row.job.as_str(), row.by.as_str(), row.from.as_str(), row.to.as_str(), row.quantity.as_str(), row.capture)
                == (job.name(), by.name(), from, to, quantity, 1)
        };
        rows.iter().find(is_it).unwrap()
    };
    for (quantity, seconds) in &times {
        let row = row(quantity);
        assert!((seconds - row.predicted_s).abs() < 0.0051, "{quantity} {seconds}: the table has another, {row:?}");
    }
    let error = times["job"] / row("job").measured_median_s - 1.0;
    assert!(error.abs() <= WITHIN, "{by:?} {from} {to}: {error}");
}

#[test]
fn the_like_of_a_job_takes_as_long_in_other_settings() {
    for to in ["base", "small", "unshaped", "256mb", "8-workers", "16-reduces"] {
        check(By::Like, Job::Terasort, "base", to);
    }
    for to in ["base", "unshaped", "256mb", "8-workers", "16-reduces"] {
        check(By::Like, Job::Wordcount, "base", to);
    }
}

/// Two of the four reduces slept 400 ms before they asked the NameNode once more whether their file was complete.
#[test]
fn what_a_client_of_hdfs_slept_is_no_work_of_its_reduce() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs/kept/base/run-1/trace-wordcount");
    let scratch = tempfile::tempdir().unwrap();
    let setting = Setting::default();
    let target = Target { setting: &setting, input_bytes: 128_000_000, maps: 4, cores: 2 };
    let file = job_file(By::Like, &trace, &target, scratch.path()).unwrap();
    let commit = file["cluster"]["output_commit"].as_str().unwrap();
    let commit_ms: u64 = commit.strip_suffix("ms").unwrap().parse().unwrap();
    assert!((20..150).contains(&commit_ms), "{commit}");
}

#[test]
fn a_grown_job_takes_as_long_as_one_of_its_size() {
    for to in ["small", "base", "8-workers", "small-twice"] {
        check(By::Grow, Job::Terasort, "small", to);
    }
    for to in ["small", "base", "8-workers", "small-twice"] {
        check(By::Grow, Job::Wordcount, "small", to);
    }
}
