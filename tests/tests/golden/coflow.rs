//! The shuffle of a recorded job goes over ports: what `merger export --to coflow` writes, `replay coflow` reads.

use hadoptic_tests::{golden, run, run_json};

#[test]
fn an_exported_shuffle_is_read_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shuffle.txt");
    let trace = folder.path().join("trace");
    let built =
        run("merger", &["build", golden("terasort").to_str().unwrap(), "--out", trace.to_str().unwrap()]).unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let file = file.to_str().unwrap();
    let export = ["export", trace.to_str().unwrap(), "--to", "coflow", "--out", file];
    let written = run_json("merger", &export).unwrap();
    let read = run_json("replay", &["coflow", file]).unwrap();
    assert_eq!(read["coflows"], written["coflows"], "{read:#}");
    let bytes = |answer: &serde_json::Value| answer["bytes"].as_f64().unwrap();
    assert!((bytes(&read) - bytes(&written)).abs() < 1.0, "{read:#} {written:#}");
    // Nothing is faster than the busiest port, with a set-up for each other port over circuits.
    for scheduler in read["schedulers"].as_array().unwrap() {
        let bound = if scheduler["circuits"].is_null() { "over_packet_bound" } else { "over_circuit_bound" };
        assert!(scheduler[bound]["mean"].as_f64().unwrap() >= 1.0 - 1e-9, "{scheduler:#}");
    }
}
