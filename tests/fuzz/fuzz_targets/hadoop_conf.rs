//! Hadoop's configuration files.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    std::fs::write(folder.path().join("x-site.xml"), data).unwrap();
    let _ = sniffer::hadoop_ports::read_folder(folder.path());
});
