//! Wrong clocks do not change a trace: hosts whose clocks were off and drifted merge to the same times.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use hadoptic_tests::{WrongClock, copy_host_with_clock, golden, run};
use trace::rows::Trace;
use trace_tables::read_trace;

const TOLERANCE_NS: i64 = 10_000;

fn merge(capture: &Path, out: &Path) -> Trace {
    let built = run("merger", &["build", capture.to_str().unwrap(), "--out", out.to_str().unwrap()]).unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    read_trace(out).unwrap()
}

#[test]
fn distorted_clocks_merge_to_the_same_trace_within_10_microseconds() {
    let folder = tempfile::tempdir().unwrap();
    let source = golden("wordcount");
    let truth = merge(&source, &folder.path().join("true"));
    let anchor_ns = truth.manifest.start_ns;

    // The reference host keeps its clock, so that both traces speak of the same time.
    let wrong = folder.path().join("capture");
    let clocks =
        [(3_000_000, 25_000), (-150_000_000, -10_000), (7_200_000_000_000, 40_000), (-41, -3_000), (900_000_000, 0)];
    for (number, host) in truth.hosts.iter().filter(|host| host.captured).enumerate() {
        let (offset_ns, drift_ppb) =
            if host.name == truth.manifest.reference_host { (0, 0) } else { clocks[number % clocks.len()] };
        let clock = WrongClock { anchor_ns, offset_ns, drift_ppb };
        copy_host_with_clock(&source.join(&host.name), &wrong.join(&host.name), clock).unwrap();
    }
    copy_folder(&source.join("job"), &wrong.join("job"));
    let found = merge(&wrong, &folder.path().join("found"));

    assert_eq!(found.manifest.reference_host, truth.manifest.reference_host);
    assert_eq!(found.messages.len(), truth.messages.len());
    let key = |trace: &Trace, index: usize| {
        let message = &trace.messages[index];
        let connection = &trace.connections[message.connection.index()];
        (
            connection.client.clone(),
            connection.server.clone(),
            message.from_client,
            message.offset,
            message.call,
            message.bytes,
        )
    };
    let times: HashMap<_, _> = (0..truth.messages.len()).map(|index| (key(&truth, index), index)).collect();
    for (index, message) in found.messages.iter().enumerate() {
        let same = &truth.messages[*times.get(&key(&found, index)).expect("the same messages are found")];
        for (found_ns, true_ns) in [
            (message.sent_ns, same.sent_ns),
            (message.sent_end_ns, same.sent_end_ns),
            (message.delivered_ns, same.delivered_ns),
        ] {
            let error_ns = found_ns.cast_signed() - true_ns.cast_signed();
            assert!(error_ns.abs() <= TOLERANCE_NS, "message {} is off by {error_ns} ns: {message:?}", message.message);
        }
        assert!(message.delivered_ns >= message.sent_ns, "{message:?}");
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}
