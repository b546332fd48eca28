//! Kept runs of the lab on a fast and on a slow network: each predicts the other.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;

use hadoptic_tests::prediction::cells::predict_all;
use hadoptic_tests::prediction::plan::Plan;
use hadoptic_tests::prediction::table::{Origin, read_rows, write_rows};

/// Runs of one job on one network differ by about 7% (docs/predict.md), and each side is one run.
const MAX_ERROR: f64 = 0.2;

#[test]
fn each_run_predicts_the_other_network_within_what_two_runs_differ_by() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("prediction/kept");
    let folder = tempfile::tempdir().unwrap();
    copy(&kept, folder.path());
    let plan = Plan::read(&folder.path().join("plan.toml")).unwrap();
    let matrix = predict_all(&plan, folder.path(), &|_| ()).unwrap();

    assert_eq!(matrix.rows.len(), 4, "two jobs, each towards the other network: {:?}", matrix.rows);
    for row in &matrix.rows {
        assert!(row.error.abs() < MAX_ERROR, "{row:?}");
        assert!(row.error.abs() < row.null_error.abs() / 1.5, "the null model is as good: {row:?}");
    }
    let path = folder.path().join("matrix.csv");
    let origin = Origin { machine: "2 x a processor".into(), date: "2026-11-25".into(), commit: "abc".into() };
    write_rows(&path, &matrix.rows, &origin).unwrap();
    let read = read_rows(&path).unwrap();
    assert_eq!(read.len(), 4);
    for (read, row) in read.iter().zip(&matrix.rows) {
        assert_eq!((&read.from, &read.to, &read.job), (&row.from, &row.to, &row.job));
        assert!((read.error - row.error).abs() < 1e-4 && (read.predicted_s - row.predicted_s).abs() < 0.01);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}
