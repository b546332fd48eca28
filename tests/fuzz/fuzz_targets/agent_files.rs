//! Files of agents that others may have written: lines of JVMs and of dumpingd, manifests, the ports to follow.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sniffer::follow::Follower;
use sniffer::ports::PortSet;
use trace::jvm::JvmRecord;
use trace::manifest::{DumpingdManifest, ForeignManifest, SnifferManifest};
use trace::socket::SocketRecord;

fuzz_target!(|data: &[u8]| {
    for line in data.split(|byte| *byte == b'\n') {
        let _ = serde_json::from_slice::<JvmRecord>(line);
        let _ = serde_json::from_slice::<SocketRecord>(line);
    }
    let _ = serde_json::from_slice::<SnifferManifest>(data);
    let _ = serde_json::from_slice::<DumpingdManifest>(data);
    let _ = serde_json::from_slice::<ForeignManifest>(data);
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    std::fs::write(folder.path().join("jvm-1-2.jsonl"), data).unwrap();
    std::fs::write(folder.path().join("ports.json"), data).unwrap();
    let mut follower = Follower::new(folder.path(), PortSet::default(), 32_768);
    follower.look();
    let followed = follower.shared().followed();
    assert!(followed.connections.len() + followed.listeners.len() <= data.len());
});
