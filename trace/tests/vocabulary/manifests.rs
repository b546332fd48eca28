//! Manifests of agents: read again as written, and those of older agents, which lack newer fields, are still read.

use trace::manifest::{DumpingdManifest, InterfaceManifest, PacketCounts, SnifferManifest, earlier_runs};

#[test]
fn a_manifest_with_earlier_runs_is_read_again() {
    let first = SnifferManifest {
        version: 1,
        interfaces: vec![InterfaceManifest {
            name: "lo".into(),
            counts: PacketCounts { packets: 7, ..PacketCounts::default() },
            ..InterfaceManifest::default()
        }],
        problems: vec!["a \"quoted\" problem".into()],
        ..SnifferManifest::default()
    };
    let second = SnifferManifest { ready: true, earlier_runs: vec![first], ..SnifferManifest::default() };
    let text = serde_json::to_string(&second).unwrap();
    assert_eq!(serde_json::from_str::<SnifferManifest>(&text).unwrap(), second);
}

#[test]
fn manifests_without_newer_fields_are_read() {
    let sniffer = r#"{"version":1,"program":"0","host":"w1","netns":1,"ready":true,"ended":false,"started_ns":1,
        "ended_ns":0,"filter":"tcp","snap_length":384,"ring_bytes":1,"payload_bytes":2,"full_segment_bytes":3,
        "full_payload_bytes":4,"interfaces":[{"name":"lo","file":"f","addresses":[],"packets":1,"other":0,
        "unparsed":0,"kernel_drops":0,"interface_drops":0}],"problems":[]}"#;
    let found: SnifferManifest = serde_json::from_str(sniffer).unwrap();
    assert!(found.earlier_runs.is_empty());
    assert_eq!(found.interfaces[0].counts.unwritten, 0);
    let dumpingd = r#"{"version":1,"program":"0","host":"w1","netns":1,"ready":true,"ended":true,"started_ns":1,
        "ended_ns":2,"interval_ms":1000,"scans":3,"hears_dying":true,"cpu_us":4,"problems":[]}"#;
    assert_eq!(serde_json::from_str::<DumpingdManifest>(dumpingd).unwrap().scans, 3);
}

#[test]
fn a_run_knows_those_before_it_oldest_first_and_says_which_it_cannot_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sniffer.json");
    let mut problems = Vec::new();
    assert!(earlier_runs::<SnifferManifest>(&path, &mut problems).is_empty(), "the first run");
    for started_ns in 1..=3 {
        let before = earlier_runs::<SnifferManifest>(&path, &mut problems);
        assert_eq!(before.iter().map(|run| run.started_ns).collect::<Vec<_>>(), (1..started_ns).collect::<Vec<_>>());
        assert!(before.iter().all(|run| run.earlier_runs.is_empty()), "each stands once");
        let manifest = SnifferManifest { started_ns, earlier_runs: before, ..SnifferManifest::default() };
        std::fs::write(&path, serde_json::to_vec(&manifest).unwrap()).unwrap();
    }
    assert!(problems.is_empty());
    std::fs::write(&path, "{ \"version\": 1").unwrap();
    assert!(earlier_runs::<SnifferManifest>(&path, &mut problems).is_empty());
    assert!(problems[0].starts_with("the manifest of an earlier run could not be read: EOF"), "{problems:?}");
}
