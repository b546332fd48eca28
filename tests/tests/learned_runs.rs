//! Kept runs of the lab, of which `tests/jobs/matrix.csv` tells what their jobs say of other settings beside the real runs there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::Path;

use hadoptic_tests::job_matrix::cells::predict;
use hadoptic_tests::job_matrix::learn::{Target, job_file};
use hadoptic_tests::job_matrix::plan::{By, Plan, Setting};
use hadoptic_tests::job_matrix::table::{Row, read_rows};
use hadoptic_tests::lab_runs::{Job, Run};

/// The bar of document 001, chapter 4.3, for all jobs but TeraSort.
const WITHIN: f64 = 0.10;

/// Predicts the job's times in a setting from the kept run of another one, and finds them in the table.
fn check(by: By, job: Job, from: &str, to: &str) {
    let jobs = Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs");
    let plan = Plan::read(&jobs.join("plan.toml")).unwrap();
    let run = |name: &str| Run::read(jobs.join("kept").join(name).join("run-1")).unwrap().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let target = (plan.setting(to).unwrap(), &run(to).truth);
    let times = predict(by, (&run(from), job), target, plan.seeds, scratch.path()).unwrap();
    let rows = read_rows(&jobs.join("matrix.csv")).unwrap();
    let row = |quantity: &str| {
        let is_it = |row: &&Row| {
            (row.job.as_str(), row.by.as_str(), row.from.as_str(), row.to.as_str(), row.quantity.as_str(), row.capture)
                == (job.name(), by.name(), from, to, quantity, 1)
        };
        rows.iter().find(is_it).unwrap()
    };
    for (quantity, seconds) in &times {
        let row = row(quantity);
        assert!((seconds - row.predicted_s).abs() < 0.0051, "{quantity} {seconds}: the table has another, {row:?}");
    }
}

/// How many settings' jobs are predicted within the bar by the median over all captures of another one, and of how many.
fn within(by: By, from: &str) -> (usize, usize) {
    let jobs = Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs");
    let mut cells: BTreeMap<(String, String), (Vec<f64>, f64)> = BTreeMap::new();
    // Others were run once.
    let is_one = |row: &Row| {
        (row.by.as_str(), row.from.as_str(), row.quantity.as_str()) == (by.name(), from, "job") && row.measured_runs > 1
    };
    for row in read_rows(&jobs.join("matrix.csv")).unwrap().into_iter().filter(is_one) {
        let cell = cells.entry((row.job, row.to)).or_insert_with(|| (Vec::new(), row.measured_median_s));
        cell.0.push(row.predicted_s);
    }
    let is_within = |(predicted, measured): &&(Vec<f64>, f64)| {
        let mut predicted = predicted.clone();
        predicted.sort_by(f64::total_cmp);
        let middle = f64::midpoint(predicted[(predicted.len() - 1) / 2], predicted[predicted.len() / 2]);
        (middle / measured - 1.0).abs() <= WITHIN
    };
    (cells.values().filter(is_within).count(), cells.len())
}

/// Real word counts of one setting differ by a quarter: one of 24 is missed, that of 64 MB, by 15%.
#[test]
fn what_all_captures_say_of_a_job_is_within_the_bar() {
    assert_eq!(within(By::Like, "base"), (23, 24));
    assert_eq!(within(By::Grow, "small"), (8, 8));
}

#[test]
fn the_like_of_a_job_takes_as_long_as_the_table_says() {
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
fn a_grown_job_takes_as_long_as_the_table_says() {
    for to in ["small", "base", "8-workers", "small-twice"] {
        check(By::Grow, Job::Terasort, "small", to);
    }
    for to in ["small", "base", "8-workers", "small-twice"] {
        check(By::Grow, Job::Wordcount, "small", to);
    }
}
