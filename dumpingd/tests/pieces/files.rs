//! Socket files of dumpingd: continued after a kill at any byte.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dumpingd::log::SocketLog;
use dumpingd::quota::{Limits, number_of};
use trace::files::read_json_lines;
use trace::socket::SocketRecord;

fn scan(t: u64) -> SocketRecord {
    SocketRecord::Scan { t, netns: 1, sockets: 2, cpu_us: 3 }
}

#[test]
fn a_run_goes_on_behind_the_last_whole_line_of_a_killed_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sockets.jsonl");
    let write = |times: std::ops::Range<u64>| {
        let mut log = SocketLog::open(folder.path(), Limits::default()).unwrap();
        for t in times {
            log.write(&scan(t)).unwrap();
        }
        log.flush().unwrap();
    };
    write(0..3);
    let whole = fs::read(&path).unwrap();
    for cut in 0..=whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let survivors = whole[..cut].iter().filter(|byte| **byte == b'\n').count() as u64;
        write(10..12);
        let (records, losses) = read_json_lines::<SocketRecord>(&path).unwrap();
        assert_eq!(records, (0..survivors).chain(10..12).map(scan).collect::<Vec<_>>(), "cut at {cut}");
        assert_eq!(losses, Default::default(), "cut at {cut}");
    }
}

/// Writes so many records, one a flush, and closes files as dumpingd does.
fn fill(log: &mut SocketLog, records: u64) {
    for t in 0..records {
        log.write(&scan(t)).unwrap();
        let _ = log.flush();
        if log.is_full() {
            log.close_file().unwrap();
        }
    }
}

fn held(folder: &Path) -> (u64, u64) {
    let (mut records, mut bytes) = (0, 0);
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let about = entry.metadata().unwrap();
        let name = entry.file_name().into_string().unwrap();
        if about.is_file()
            && about.uid() == nix::unistd::geteuid().as_raw()
            && about.nlink() == 1
            && about.len() < 1 << 40
        {
            assert!(name == "sockets.jsonl" || number_of(&name).is_some(), "{name}");
            records += fs::read_to_string(entry.path()).unwrap().lines().count() as u64;
            bytes += about.len();
        }
    }
    (records, bytes)
}

#[test]
fn files_are_closed_and_the_oldest_go_within_a_limit_and_every_record_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { disk_bytes: 100_000, keep_free_bytes: 0 };
    let (mut made, mut gone) = (0, 0);
    // The second run knows the files of the first one only from the disk.
    for _ in 0..2 {
        let mut log = SocketLog::open(folder.path(), limits).unwrap();
        fill(&mut log, 4_000);
        let counts = log.counts();
        (made, gone) = (made + counts.records, gone + counts.removed.records + counts.unwritten);
        let (records, bytes) = held(folder.path());
        assert!(bytes <= limits.disk_bytes && bytes > limits.disk_bytes / 2, "{bytes} bytes");
        assert_eq!(log.disk_bytes(), bytes);
        assert!(counts.removed.files > 3 && counts.unwritten == 0, "{counts:?}");
        assert_eq!(records + gone, made);
    }
    let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    assert!(names[0].to_str().unwrap() > "sockets.000010.jsonl", "{names:?}");
}

#[test]
fn files_of_others_are_neither_counted_nor_removed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("target");
    fs::write(&target, "precious").unwrap();
    fs::hard_link(&target, at("sockets.000001.jsonl")).unwrap();
    std::os::unix::fs::symlink(&target, at("sockets.000002.jsonl")).unwrap();
    nix::unistd::mkfifo(&at("sockets.000003.jsonl"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let planted = ["sockets.000001.jsonl", "sockets.000002.jsonl", "sockets.000003.jsonl"];
    let mut log = SocketLog::open(folder.path(), Limits { disk_bytes: 100_000, keep_free_bytes: 0 }).unwrap();
    fill(&mut log, 4_000);
    assert!(log.counts().removed.files > 0 && log.counts().unwritten == 0, "{:?}", log.counts());
    for name in planted {
        fs::symlink_metadata(at(name)).unwrap();
    }
    assert_eq!(fs::read_to_string(target).unwrap(), "precious");
}

#[test]
#[ignore = "needs root: a file of another user"]
fn a_file_of_another_user_is_neither_counted_nor_removed() {
    let folder = tempfile::tempdir().unwrap();
    let planted = folder.path().join("sockets.000001.jsonl");
    fs::File::create(&planted).unwrap().set_len(5 << 40).unwrap();
    std::os::unix::fs::chown(&planted, Some(65534), None).unwrap();
    let mut log = SocketLog::open(folder.path(), Limits { disk_bytes: 100_000, keep_free_bytes: 0 }).unwrap();
    fill(&mut log, 4_000);
    assert!(log.counts().removed.files > 0 && log.counts().unwritten == 0, "{:?}", log.counts());
    fs::symlink_metadata(planted).unwrap();
}

#[test]
fn nothing_is_removed_where_that_cannot_help() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = SocketLog::open(folder.path(), Limits { disk_bytes: 100_000, keep_free_bytes: 0 }).unwrap();
    fill(&mut log, 1_000);
    drop(log);
    let before = held(folder.path());
    // More is to stay free than the file system has.
    let mut log = SocketLog::open(folder.path(), Limits { disk_bytes: 0, keep_free_bytes: 1 << 60 }).unwrap();
    fill(&mut log, 100);
    assert_eq!((log.counts().unwritten, log.counts().removed.files), (100, 0));
    assert_eq!(held(folder.path()), before);
}
