//! Folders in which others may write, and files that want to be more than they are.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use trace::files::{FREE_EXPANSION_BYTES, json_lines, lines, open, read_whole};
use trace::folder::{Folder, Kind, open_named, open_regular, read_named};
use trace::socket::SocketRecord;

fn make_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn only_regular_files_and_real_folders_are_opened() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "text").unwrap();
    let inside = tempfile::tempdir().unwrap();
    let at = |name: &str| inside.path().join(name);
    fs::write(at("file"), "text").unwrap();
    fs::create_dir(at("folder")).unwrap();
    symlink(outside.path().join("file"), at("link")).unwrap();
    symlink(outside.path(), at("folder-link")).unwrap();
    make_fifo(&at("fifo"));
    let folder = Folder::open(inside.path()).unwrap();
    assert_eq!(folder.names().unwrap().names, ["fifo", "file", "folder", "folder-link", "link"]);
    let kind = |name: &str| folder.kind(name).unwrap();
    assert_eq!((kind("file"), kind("folder")), (Some(Kind::File), Some(Kind::Folder)));
    assert_eq!((kind("link"), kind("fifo"), kind("gone")), (Some(Kind::Link), Some(Kind::Other), None));
    assert!(folder.file("file").is_ok() && folder.folder("folder").is_ok());
    for name in ["link", "fifo", "folder"] {
        let error = folder.file(name).unwrap_err().to_string();
        assert!(error.contains("only regular files are read"), "{name}: {error}");
        assert!(open_regular(&at(name)).is_err());
    }
    // Who names a file may name a link to it.
    assert!(open_named(&at("link")).is_ok() && open_named(&at("file")).is_ok());
    assert_eq!(read_named(&at("link"), 4).unwrap(), b"text");
    let error = read_named(&at("file"), 3).unwrap_err().to_string();
    assert!(error.contains("it has 4 bytes, and 3 at most are read"), "{error}");
    for name in ["fifo", "folder", "folder-link", "gone"] {
        assert!(open_named(&at(name)).is_err() && read_named(&at(name), 9).is_err(), "{name}");
    }
    // It says that it is empty, and has no end.
    assert!(read_named(Path::new("/dev/zero"), 9).unwrap_err().to_string().contains("only regular files are read"));
    for name in ["file", "link", "folder-link", "fifo", "gone"] {
        assert!(folder.folder(name).is_err(), "{name}");
    }
    for name in ["..", ".", "", "folder/../file", "/etc/hostname", "a\0b"] {
        assert!(folder.file(name).is_err() && folder.folder(name).is_err(), "{name:?}");
    }
}

#[test]
fn a_folder_that_is_exchanged_while_it_is_open_stays_the_one_that_was_opened() {
    let work = tempfile::tempdir().unwrap();
    let at = |name: &str| work.path().join(name);
    fs::create_dir(at("mine")).unwrap();
    fs::create_dir(at("other")).unwrap();
    fs::write(at("other/file"), "not for others").unwrap();
    let folder = Folder::open(work.path()).unwrap().folder("mine").unwrap();
    fs::rename(at("mine"), at("away")).unwrap();
    symlink(at("other"), at("mine")).unwrap();
    assert!(folder.file("file").is_err());
}

#[test]
fn a_long_line_is_passed_over_without_keeping_it() {
    let mut text = b"{\"k\":\"scan\",\"t\":1,\"netns\":2,\"sockets\":2,\"cpu_us\":9}\n".to_vec();
    let record = text.clone();
    text.extend(vec![b'x'; 1 << 20]);
    text.push(b'\n');
    text.extend(&record);
    let mut found: Vec<SocketRecord> = Vec::new();
    let losses = json_lines(&text[..], 1000, |record| found.push(record)).unwrap();
    assert_eq!((found.len(), losses.overlong_lines, losses.malformed_lines, losses.truncated_bytes), (2, 1, 0, 0));
    let (losses, rest) = lines(&text[..text.len() - 1], 1000, |_, _| {}).unwrap();
    assert_eq!((rest.len() as u64, losses.truncated_bytes), (record.len() as u64 - 1, record.len() as u64 - 1));
}

#[test]
fn what_grows_beyond_all_measure_ends_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeros.zst");
    let mut packer = zstd::Encoder::new(fs::File::create(&path).unwrap(), 1).unwrap();
    let piece = vec![b'\n'; 1 << 20];
    (0..600).for_each(|_| packer.write_all(&piece).unwrap());
    packer.finish().unwrap();
    let began = Instant::now();
    let mut count = 0u64;
    let (losses, _) = lines(open(&path).unwrap(), 1000, |_, _| count += 1).unwrap();
    assert!((FREE_EXPANSION_BYTES..FREE_EXPANSION_BYTES + (1 << 20)).contains(&count), "{count}");
    assert!(losses.broken_off.unwrap().contains("times its size"));
    assert!(began.elapsed() < Duration::from_secs(60));
    let error = read_whole(open_regular(&path).unwrap()).unwrap_err();
    assert!(error.to_string().contains("larger than 16 MiB"), "{error}");
}
