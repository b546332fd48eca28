//! The golden captures meet what is promised of a capture: owners, known messages, the kernel's and the job's counters.

use hadoptic_tests::{golden, run, run_json};
use serde_json::Value;

fn check(name: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let built = run("merger", &["build", golden(name).to_str().unwrap(), "--out", trace.to_str().unwrap()]).unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    run_json("merger", &["check", trace.to_str().unwrap()]).unwrap()
}

fn share(report: &Value, key: &str) -> f64 {
    report[key].as_f64().unwrap_or_else(|| panic!("{key} is null: {}", report["reasons"]))
}

fn assert_meets_targets(report: &Value) {
    assert!(report["payload_bytes"].as_u64().unwrap() > 1_000_000);
    assert!(share(report, "owned_both_ends_share") >= 0.999, "{report:#}");
    assert!(share(report, "in_known_message_share") >= 0.99, "{report:#}");
    assert_eq!(report["causality_violations"], 0, "{report:#}");
    assert!(share(report, "captured_vs_kernel_error").abs() <= 0.001, "{report:#}");
    for key in ["shuffle_bytes_error", "hdfs_read_bytes_error", "hdfs_write_bytes_error"] {
        assert!(share(report, key).abs() <= 0.005, "{key}: {report:#}");
    }
}

#[test]
fn the_golden_terasort_is_owned_known_and_agrees_with_the_counters() {
    assert_meets_targets(&check("terasort"));
}

#[test]
fn the_golden_wordcount_is_owned_known_and_agrees_with_the_counters() {
    assert_meets_targets(&check("wordcount"));
}

#[test]
fn a_merge_of_longer_captures_takes_no_more_than_foreseen_and_not_much_less() {
    // Of the one all packets fit into memory, of the other few.
    for (capture, times, fits) in [("wordcount", 4, true), ("terasort", 3, false)] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (longer, trace) = (at("capture"), at("trace"));
        let enlarged =
            run("enlarge-capture", &[golden(capture).to_str().unwrap(), &longer, &times.to_string()]).unwrap();
        assert!(enlarged.status.success(), "{}", String::from_utf8_lossy(&enlarged.stderr));
        for memory in ["4GiB", "192MiB"] {
            let stated =
                run_json("merger", &["build", &longer, "--out", &trace, "--force", "--memory", memory]).unwrap();
            let of = |name: &str| stated[name].as_u64().unwrap();
            let (foreseen, taken) = (of("memory_estimate_bytes"), of("memory_peak_bytes"));
            assert!(taken <= foreseen && foreseen <= 3 * taken, "{capture}, {memory}: {taken} of {foreseen}");
            let (foreseen, taken) = (of("temporary_estimate_bytes"), of("temporary_peak_bytes"));
            assert!(taken <= foreseen, "{capture}, {memory}: {taken} of {foreseen} in files");
            assert!(
                fits || memory == "4GiB" || foreseen <= 4 * taken,
                "{capture}, {memory}: {taken} of {foreseen} in files"
            );
        }
    }
}
