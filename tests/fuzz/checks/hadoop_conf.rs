//! Any text is read as one of Hadoop's configuration files, with its ports and what it refers to, or refused; never a
//! panic.

use sniffer::hadoop_ports::{properties_of, read_folder};

/// What must hold for any input.
pub fn check(text: &str) {
    let stated = properties_of(text).is_ok();
    let folder = tempfile::tempdir().expect("a folder can be made");
    std::fs::write(folder.path().join("core-site.xml"), text).expect("a file can be written");
    let found = read_folder(folder.path()).expect("the folder can be read");
    assert!(stated || !found.problems.is_empty(), "what is refused is said");
}
