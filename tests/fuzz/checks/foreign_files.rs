//! Captures of tcpdump (pcap, pcapng), lists of `ss` and `lsof`, job histories and configurations that hold anything at
//! all are read or refused; never a panic.

use crate::world::assert_bytes_are_conserved;
use merger::build::{Silent, merge};

const MANIFEST: &str = r#"{"host":"w1","addresses":["10.0.0.1"],
"packets":[{"file":"eth0.pcap","interface":"eth0"}],
"sockets":[{"file":"ss.txt","format":"ss"},{"file":"lsof.txt","format":"lsof"}],
"processes":[{"pid":50,"role":"DataNode"}]}"#;

/// What must hold for any input.
pub fn check(bytes: &[u8]) {
    let Some((&choice, content)) = bytes.split_first() else { return };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (host, job) = (folder.path().join("w1"), folder.path().join("job"));
    let put = |path: &std::path::Path, content: &[u8]| std::fs::write(path, content).expect("a file can be written");
    for each in [&host, &job] {
        std::fs::create_dir(each).expect("a folder can be made");
    }
    put(&host.join("manifest.json"), MANIFEST.as_bytes());
    for (number, name) in ["eth0.pcap", "ss.txt", "lsof.txt"].into_iter().enumerate() {
        put(&host.join(name), if usize::from(choice % 8) == number { content } else { b"" });
    }
    match choice % 8 {
        3 => put(&job.join("job_1700000000000_0001-1-x-y-2-1-1-SUCCEEDED-default-1.jhist"), content),
        4 => put(&job.join("job_1700000000000_0001_conf.xml"), content),
        5 => put(&job.join("job_1700000000000_0001_1700000000000_x"), content),
        6 => put(&job.join("counters.json"), content),
        7 => put(&host.join("manifest.json"), content),
        _ => {}
    }
    if let Ok(merged) = merge(&[folder.path().to_owned()], &Silent) {
        assert_bytes_are_conserved(&merged);
    }
    // Without packets a merge ends early: histories are read on their own as well.
    let _ = merger::history::read(&[folder.path().to_owned()]);
}
