//! A real cluster runs two sorts, a copy and a put with get; its truth agrees with what was asked, and nothing stays.

use std::fs;

use test_support::skipped;
use trace::manifest::ForeignManifest;
use trace::truth::{CountersByJob, Truth};

const PREFIX: &str = "trun";

#[test]
#[ignore = "needs root: hosts in namespaces"]
fn all_jobs_on_two_workers() {
    let _turn = crate::common::turn();
    let tcpdump = lab::tool::find("tcpdump").is_some();
    if !tcpdump {
        skipped("no tcpdump: the run is not recorded");
    }
    let recorder = if tcpdump { "--tcpdump" } else { "--no-agents" };
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("capture");
    let output = crate::common::run(&format!(
        "run --prefix {PREFIX} --workers 2 --job terasort --job skewed-sort --job distcp --job putget --size 16MB \
         --links 200mbit --uplink 100mbit --quiet --remote-maps 1 --json {recorder} --capture {}",
        capture.display()
    ));
    let said = crate::common::stderr(&output);
    let code = output.status.code();
    assert!(code == Some(0) || code == Some(1), "{said}");

    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let truth: Truth = serde_json::from_value(result["truth"].clone()).unwrap();
    let written: Truth = serde_json::from_slice(&fs::read(capture.join("truth.json")).unwrap()).unwrap();
    assert_eq!(truth, written);
    // Only a busy machine, on which links do not reach their rates, is excused.
    let wrong: Vec<_> = truth.problems.iter().filter(|p| !p.starts_with("the link")).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    jobs_are_as_asked(&truth);
    the_kernel_counted_traffic(&truth);
    counters_are_those_of_the_sort(&truth, &capture.join("job/counters.json"));
    if tcpdump {
        every_host_is_recorded(&truth, &capture);
    }
    let inodes = truth.hosts.iter().map(|host| host.netns).collect();
    assert_eq!(crate::common::traces(PREFIX, &inodes, None), crate::common::Traces::default());
}

/// The bytes of the shuffle and of the second replicas have to cross an interface of some host.
fn the_kernel_counted_traffic(truth: &Truth) {
    let sent: u64 = truth.hosts.iter().flat_map(|host| &host.interfaces).map(|i| i.sent_bytes).sum();
    assert!(sent > 64_000_000, "{sent} bytes were sent in all");
    for host in &truth.hosts {
        let names: Vec<&str> = host.interfaces.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["eth0", "lo"], "{}", host.name);
    }
}

fn jobs_are_as_asked(truth: &Truth) {
    let kinds: Vec<&str> = truth.jobs.iter().map(|job| job.kind.as_str()).collect();
    let sorts = ["teragen", "terasort", "teravalidate", "get", "put", "skewed-sort", "get"];
    assert_eq!(kinds, [&sorts[..], &["teragen", "distcp", "get", "get", "put", "get"]].concat());
    let sort = &truth.jobs[1];
    assert_eq!((sort.maps, sort.reduces, sort.remote_maps), (2, 2, Some(1)));
    assert!(sort.client_start_ns < sort.submitted_ns && sort.submitted_ns < sort.finished_ns);
    assert!(truth.started_ns < sort.client_start_ns && sort.client_end_ns < truth.ended_ns);
    let output = truth.blocks.iter().filter(|b| b.file.starts_with("/terasort-1-out/part-r-"));
    let (mut bytes, mut files) = (0, 0);
    for block in output {
        assert_eq!(block.hosts.len(), 2, "{block:?}");
        bytes += block.bytes;
        files += 1;
    }
    assert_eq!((bytes, files), (16_000_000, 2));
    let skewed = &truth.jobs[5];
    assert_eq!((skewed.maps, skewed.reduces), (2, 2));
    let parts = truth.blocks.iter().filter(|block| block.file.starts_with("/skewed-sort-2-out/part-r-"));
    let mut parts: Vec<u64> = parts.map(|block| block.bytes).collect();
    parts.sort_unstable();
    assert!(parts.len() == 2 && parts[1] > 3 * parts[0], "{parts:?}");
    assert_eq!((truth.jobs[8].kind.as_str(), truth.jobs[8].reduces), ("distcp", 0));
}

fn counters_are_those_of_the_sort(truth: &Truth, path: &std::path::Path) {
    let counters: CountersByJob = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let sort = &counters[&truth.jobs[1].id];
    assert_eq!(sort.named("MAP_INPUT_RECORDS"), Some(160_000));
    assert_eq!(sort.named("HDFS_BYTES_WRITTEN"), Some(16_000_000));
    assert!(sort.named("REDUCE_SHUFFLE_BYTES").unwrap() > 16_000_000);
}

fn every_host_is_recorded(truth: &Truth, capture: &std::path::Path) {
    for host in &truth.hosts {
        let folder = capture.join(&host.name);
        let manifest: ForeignManifest =
            serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap();
        assert_eq!(manifest.addresses, host.addresses);
        for packets in &manifest.packets {
            let bytes = fs::metadata(folder.join(&packets.file)).unwrap().len();
            assert!(bytes > 1000, "{}: {bytes} bytes", packets.file);
        }
        for role in &host.roles {
            assert!(manifest.processes.iter().any(|p| p.role == *role), "{role} on {}", host.name);
        }
    }
}
