//! Deployed for it, the first daemon of each host starts the agents, once a host; what is killed comes back, and they end in
//! order after the last daemon. The hosts' digests give the trace that what they recorded gives. Nothing of them is left.

use std::fs;
use std::path::Path;

use crate::common::recording::{answer, built, tables};
use trace::manifest::{DumpingdManifest, SnifferManifest};
use trace::truth::Truth;

const PREFIX: &str = "tdaemons";

#[test]
#[ignore = "needs root: hosts in namespaces"]
fn one_pair_a_host_from_the_first_daemon_to_the_last() {
    let _turn = crate::common::turn();
    let folder = tempfile::tempdir().unwrap();
    let [capture, digests] = ["capture", "digests"].map(|name| folder.path().join(name));
    let output = crate::common::run(&format!(
        "run --prefix {PREFIX} --workers 1 --job putget --size 4MB --output-replication 1 --links unshaped --uplink unshaped \
         --json --capture {} --digests {} --deployed-by {} --agents-by-daemons --agent-jar {} --sniffer {} --dumpingd {}",
        capture.display(),
        digests.display(),
        built("hadoptic").display(),
        built("hadoptic-agent.jar").display(),
        built("sniffer").display(),
        built("dumpingd").display(),
    ));
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", crate::common::stderr(&output));
    let truth: Truth = serde_json::from_slice(&fs::read(capture.join("truth.json")).unwrap()).unwrap();
    assert_eq!(truth.problems, Vec::<String>::new());
    for host in ["m1", "w1"] {
        let read = |name: &str| fs::read(Path::new(&capture).join(host).join(name)).unwrap();
        let sniffer: SnifferManifest = serde_json::from_slice(&read("sniffer.json")).unwrap();
        let dumpingd: DumpingdManifest = serde_json::from_slice(&read("dumpingd.json")).unwrap();
        assert!(sniffer.ended && dumpingd.ended, "{host}");
        assert!(sniffer.interfaces.iter().any(|interface| interface.counts.packets > 0), "{host}");
        // Hadoop's ports only, as install was told: logins went over the same interface.
        assert!(
            sniffer.interfaces.iter().any(|interface| interface.counts.filtered + interface.counts.unfollowed > 0),
            "{host}"
        );
        assert!(dumpingd.tracepoint, "{host}");
    }
    // What the hosts made of it themselves gives the same trace.
    let trace_of = |capture: &Path| {
        let out = capture.with_extension("trace");
        answer("merger", &["build", capture.to_str().unwrap(), "--out", out.to_str().unwrap()]);
        tables(&out)
    };
    assert_eq!(trace_of(&digests), trace_of(&capture));
    let inodes = truth.hosts.iter().map(|host| host.netns).collect();
    assert_eq!(crate::common::traces(PREFIX, &inodes, None), crate::common::Traces::default());
}
