//! The disk quota that agents share: limits are kept, the oldest files go first, and none goes in vain.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use trace::disk_quota::{ClosedFile, DiskLimits, DiskQuota, NoRoom, Removed, file_number, own_files};

/// Files of 1,000 bytes with 10 records each, closed in the order of their names.
fn files(folder: &Path, names: &[&str]) -> Vec<ClosedFile> {
    let closed = |name: &&str| {
        let path = folder.join(name);
        fs::write(&path, [0; 1_000]).unwrap();
        ClosedFile { path, bytes: 1_000, records: Some(10) }
    };
    names.iter().map(closed).collect()
}

fn left(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = own_files(folder).unwrap().into_iter().map(|file| file.name).collect();
    names.sort();
    names
}

#[test]
fn the_oldest_files_go_until_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let limits = DiskLimits { disk_bytes: 3_500, drop_oldest: true, ..DiskLimits::default() };
    let mut quota = DiskQuota::new(folder.path(), limits, files(folder.path(), &["a", "b", "c"]));
    assert_eq!(quota.reserve(500), Ok(Removed::default()));
    assert_eq!(quota.reserve(1_001), Ok(Removed { files: 2, records: 20 }));
    assert_eq!((quota.used(), left(folder.path())), (2_501, vec!["c".to_owned()]));
    assert_eq!(quota.removed(), Removed { files: 2, records: 20 });
}

#[test]
fn none_goes_where_that_does_not_help_or_is_not_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let mut limits = DiskLimits { disk_bytes: 2_000, drop_oldest: true, ..DiskLimits::default() };
    let mut quota = DiskQuota::new(folder.path(), limits, files(folder.path(), &["a", "b"]));
    assert_eq!(quota.reserve(2_001), Err(NoRoom::Limit { limit: 2_000 }));
    limits.drop_oldest = false;
    let mut stops = DiskQuota::new(folder.path(), limits, files(folder.path(), &["a", "b"]));
    assert_eq!(stops.reserve(1), Err(NoRoom::Limit { limit: 2_000 }));
    limits = DiskLimits { keep_free_bytes: u64::MAX / 4, drop_oldest: true, ..DiskLimits::default() };
    let mut keeps = DiskQuota::new(folder.path(), limits, files(folder.path(), &["a", "b"]));
    assert!(matches!(keeps.reserve(1), Err(NoRoom::Free { .. })));
    assert_eq!(left(folder.path()), ["a", "b"]);
}

#[test]
fn the_rest_of_each_files_last_block_counts() {
    let folder = tempfile::tempdir().unwrap();
    let limits = DiskLimits { disk_bytes: 5_000, rest_of_block: 1_000, drop_oldest: true, ..DiskLimits::default() };
    // Two files and the one that is written: 2,000 bytes and three rests.
    let mut quota = DiskQuota::new(folder.path(), limits, files(folder.path(), &["a", "b"]));
    assert_eq!(quota.reserve(0), Ok(Removed::default()));
    assert_eq!(quota.reserve(2_000), Ok(Removed { files: 1, records: 10 }));
}

#[test]
fn a_file_that_cannot_be_removed_stays_and_counts_on() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody removes a folder as a file, not even root.
    fs::create_dir(folder.path().join("a")).unwrap();
    let stuck = ClosedFile { path: folder.path().join("a"), bytes: 1_000, records: None };
    let limits = DiskLimits { disk_bytes: 1_000, drop_oldest: true, ..DiskLimits::default() };
    let mut quota = DiskQuota::new(folder.path(), limits, [stuck]);
    for _ in 0..2 {
        assert_eq!(quota.reserve(1), Err(NoRoom::Limit { limit: 1_000 }));
        assert_eq!(quota.used(), 1_000);
    }
    fs::remove_dir(folder.path().join("a")).unwrap();
    // What somebody else has removed has made room as well.
    assert_eq!(quota.reserve(1), Ok(Removed { files: 1, records: 0 }));
    assert_eq!(quota.used(), 1);
}

#[test]
fn only_regular_files_with_one_name_are_an_agents_own() {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path(), &["a", "two"]);
    fs::hard_link(folder.path().join("two"), folder.path().join("names")).unwrap();
    symlink(folder.path().join("a"), folder.path().join("link")).unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    assert_eq!(left(folder.path()), ["a"]);
    assert_eq!((file_number("000017"), file_number("17"), file_number("00001x")), (Some(17), None, None));
}
