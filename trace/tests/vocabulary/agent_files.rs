//! Files of agents: private, locked, whole after a failed write, not reached over planted links.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use trace::agent::{AppendFile, host_name, network_namespace, private_folder, write_atomically};

#[test]
fn only_the_user_can_read_what_an_agent_writes() {
    let folder = tempfile::tempdir().unwrap();
    let appended = folder.path().join("records");
    AppendFile::open(&appended).unwrap().append(b"x").unwrap();
    let manifest = folder.path().join("manifest.json");
    write_atomically(&manifest, b"{}").unwrap();
    for path in [appended, manifest] {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "a temporary file was left behind");
}

#[test]
fn a_file_is_not_reached_over_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    fs::write(&target, "precious").unwrap();
    let soft = folder.path().join("soft");
    symlink(&target, &soft).unwrap();
    AppendFile::open(&soft).unwrap_err();
    let hard = folder.path().join("hard");
    fs::hard_link(&target, &hard).unwrap();
    let error = AppendFile::open(&hard).unwrap_err().to_string();
    assert!(error.contains("2 names"), "{error}");
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
}

#[test]
fn two_agents_do_not_write_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records");
    let held = AppendFile::open(&path).unwrap();
    let error = AppendFile::open(&path).unwrap_err().to_string();
    assert!(error.contains("another process"), "{error}");
    drop(held);
    AppendFile::open(&path).unwrap();
}

#[test]
fn appending_goes_on_behind_what_is_there_or_where_it_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records");
    AppendFile::open(&path).unwrap().append(b"one two").unwrap();
    let mut again = AppendFile::open(&path).unwrap();
    assert_eq!(again.length(), 7);
    let mut text = String::new();
    again.reader().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "one two");
    again.truncate(4).unwrap();
    again.append(b"three").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one three");
}

#[test]
fn a_manifest_is_replaced_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("manifest.json");
    write_atomically(&path, b"a longer first version").unwrap();
    write_atomically(&path, b"second").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "second");
    write_atomically(&folder.path().join("missing/manifest.json"), b"x").unwrap_err();
}

#[test]
fn the_host_and_its_namespace_are_known() {
    assert!(!host_name().unwrap().is_empty());
    assert!(network_namespace().unwrap() > 0);
}

#[test]
#[ignore = "needs root: mounts a file system that is full soon"]
fn on_a_full_disk_what_is_shorter_replaces_a_manifest_and_what_is_longer_leaves_it_whole() {
    let folder = tempfile::tempdir().unwrap();
    let sh = |command: String| Command::new("sh").args(["-ec", &command]).status().unwrap().success();
    assert!(sh(format!("mount -t tmpfs -o size=256k none {}", folder.path().display())));
    let manifest = folder.path().join("manifest.json");
    let before = vec![b'a'; 5_000];
    write_atomically(&manifest, &before).unwrap();
    let mut filler = fs::File::create(folder.path().join("filler")).unwrap();
    while filler.write_all(&[0; 512]).is_ok() {}
    let longer = write_atomically(&manifest, &vec![b'b'; 50_000]).unwrap_err().kind();
    let after_longer = fs::read(&manifest).unwrap();
    let shorter = write_atomically(&manifest, b"{}");
    let after_shorter = fs::read(&manifest).unwrap();
    drop(filler);
    assert!(sh(format!("umount -l {}", folder.path().display())));
    assert_eq!(longer, std::io::ErrorKind::StorageFull);
    assert!(after_longer == before, "the old content was spoilt");
    shorter.unwrap();
    assert_eq!(after_shorter, b"{}");
}

#[test]
fn a_folder_that_others_could_change_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let me = nix::unistd::geteuid().as_raw();
    let own = folder.path().join("own");
    assert_eq!(private_folder(&own, me).unwrap(), own.canonicalize().unwrap());
    assert_eq!(fs::metadata(&own).unwrap().mode() & 0o777, 0o750);

    let link = folder.path().join("link");
    symlink(&own, &link).unwrap();
    assert!(private_folder(&link, me).unwrap_err().to_string().contains("link"));

    for mode in [0o1777, 0o770, 0o757] {
        fs::set_permissions(&own, fs::Permissions::from_mode(mode)).unwrap();
        let error = private_folder(&own, me).unwrap_err().to_string();
        assert!(error.contains("others may write"), "{error}");
    }
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
    private_folder(&own, me).unwrap();
}

#[test]
#[ignore = "needs root: a folder of another user"]
fn a_folder_of_another_user_than_the_one_who_goes_on_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let own = private_folder(&folder.path().join("own"), 0).unwrap();
    std::os::unix::fs::chown(&own, Some(65534), None).unwrap();
    assert!(private_folder(&own, 0).unwrap_err().to_string().contains("belongs to user 65534"));
    private_folder(&own, 65534).unwrap();
}
