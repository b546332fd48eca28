//! Manifests of agents: read again as written, and those of older agents, which lack newer fields, are still read.

use std::path::PathBuf;

use trace::manifest::{
    CountedInterval, DumpingdManifest, InterfaceManifest, MAX_EARLIER_RUNS, PacketCounts, SnifferManifest, earlier_runs,
};

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

#[test]
fn manifests_of_earlier_runs_do_not_grow_without_end_and_keep_every_count() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sniffer.json");
    let runs = 15 * MAX_EARLIER_RUNS as u64;
    let mut problems = Vec::new();
    let mut longest = 0;
    for run in 1..=runs {
        let before = earlier_runs::<SnifferManifest>(&path, &mut problems);
        assert!(before.len() <= MAX_EARLIER_RUNS);
        let stated: u64 = before.iter().map(|run| run.absorbed_runs + 1).sum();
        assert_eq!(stated, run - 1, "a run is not told of");
        let packets = |run: &SnifferManifest| run.interfaces.iter().map(|i| i.counts.packets).sum::<u64>();
        assert_eq!(before.iter().map(packets).sum::<u64>(), 2 * (run - 1), "packets are not told of");
        assert_eq!(before.first().map_or(1, |oldest| oldest.started_ns), 1);
        // One that is always there, and one that comes and goes under another name each time.
        let interface = |name: String| InterfaceManifest {
            name,
            counts: PacketCounts { packets: 1, ..PacketCounts::default() },
            intervals: vec![CountedInterval::default(); 50],
            ..InterfaceManifest::default()
        };
        let manifest = SnifferManifest {
            started_ns: run,
            interfaces: vec![interface("eth0".into()), interface(format!("veth{run}"))],
            problems: vec![format!("a problem of run {run}")],
            earlier_runs: before,
            ..SnifferManifest::default()
        };
        let text = serde_json::to_vec(&manifest).unwrap();
        longest = longest.max(text.len());
        assert!(text.len() < 250_000, "{} bytes after {run} runs", text.len());
        std::fs::write(&path, text).unwrap();
    }
    assert!(problems.is_empty() && longest > 0);
}

/// Reads a file as the manifest of earlier runs, which has to be refused, and at once.
fn refused(path: PathBuf) {
    let shown = path.display().to_string();
    let (tell, stated) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut problems = Vec::new();
        let runs: Vec<DumpingdManifest> = earlier_runs(&path, &mut problems);
        tell.send((runs.len(), problems)).unwrap();
    });
    let (runs, problems) = stated.recv_timeout(std::time::Duration::from_secs(30)).expect("it hangs");
    assert_eq!(runs, 0, "{shown}");
    assert_eq!(problems.len(), 1, "{shown}: {problems:?}");
}

#[test]
fn a_planted_fifo_link_or_endless_file_in_place_of_a_manifest_does_not_hang_the_start() {
    let folder = tempfile::tempdir().unwrap();
    nix::unistd::mkfifo(&folder.path().join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::fs::write(folder.path().join("secret"), "{}").unwrap();
    std::os::unix::fs::symlink(folder.path().join("secret"), folder.path().join("link")).unwrap();
    std::fs::File::create(folder.path().join("endless")).unwrap().set_len(1 << 40).unwrap();
    ["fifo", "link", "endless"].into_iter().for_each(|name| refused(folder.path().join(name)));
}

#[test]
#[ignore = "needs root: a file of another user"]
fn a_manifest_of_another_user_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("of another");
    std::fs::write(&path, "{}").unwrap();
    std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
    refused(path);
}
