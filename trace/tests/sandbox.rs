//! What a confined agent can still do and what not: each test is run again as a process of its own, which confines itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Uid, geteuid, setuid};
use test_support::skipped;
use trace::sandbox::{Needs, Walls, confine, read_only_view};

const FOLDER: &str = "HADOPTIC_TEST_FOLDER";

/// Runs `work` with a folder in a process of its own, which runs this test again.
fn inside(work: impl FnOnce(PathBuf)) {
    if let Some(folder) = env::var_os(FOLDER) {
        return work(PathBuf::from(folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let test = thread::current();
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", test.name().unwrap(), "--include-ignored", "--nocapture"])
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

fn denied(path: &Path) -> bool {
    fs::write(path, "x")
        .is_err_and(|error| matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem))
}

fn stands(walls: &Walls, name: &str) -> bool {
    let stands = walls.standing.iter().any(|wall| wall == name);
    if !stands {
        skipped(format_args!("no {name}: {:?}", walls.notes));
    }
    stands
}

#[test]
fn a_confined_agent_writes_into_its_folder_and_does_nothing_that_it_does_not_need() {
    inside(|folder| {
        let elsewhere = tempfile::tempdir().unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let needs = Needs { reads: vec!["/proc".into()], writes: vec![folder.clone()], ..Needs::default() };
        let walls = confine(&needs);

        // What agents do goes on.
        fs::write(folder.join("a"), "1").unwrap();
        fs::rename(folder.join("a"), folder.join("b")).unwrap();
        fs::remove_file(folder.join("b")).unwrap();
        assert!(fs::read_to_string("/proc/self/stat").unwrap().contains("sandbox"));
        assert_eq!(thread::spawn(|| 42).join().unwrap(), 42);

        if stands(&walls, "seccomp") {
            let started = Command::new("/bin/true").spawn().map(|_| ()).unwrap_err();
            assert_eq!(started.raw_os_error(), Some(Errno::EPERM as i32), "a program was started");
            assert_eq!(unshare(CloneFlags::CLONE_NEWUSER), Err(Errno::EPERM));
            assert_eq!(setuid(Uid::from_raw(geteuid().as_raw())), Err(Errno::EPERM));
            assert_eq!(nix::mount::umount("/nowhere"), Err(Errno::EPERM));
        }
        if stands(&walls, "landlock") {
            assert!(denied(&elsewhere.path().join("a")), "it wrote elsewhere");
            assert!(fs::read("/etc/passwd").is_err(), "it read elsewhere");
            let error = TcpStream::connect(server.local_addr().unwrap()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "it connected");
        }
    });
}

#[test]
fn whoever_looks_into_other_processes_still_can() {
    inside(|folder| {
        let walls = confine(&Needs { writes: vec![folder], looks_into_processes: true, ..Needs::default() });
        let parent = PathBuf::from(format!("/proc/{}", parent_id()));
        assert!(fs::read_dir(parent.join("fd")).unwrap().count() > 0);
        assert!(fs::metadata(parent.join("ns/net")).unwrap().ino() > 0);
        assert!(walls.standing.iter().all(|wall| wall != "landlock"));
        assert!(walls.notes.iter().any(|note| note.contains("landlock")), "{walls:?}");
    });
}

#[test]
#[ignore = "needs root: a mount namespace"]
fn all_but_the_folder_is_read_only_for_the_agent_and_for_nobody_else() {
    inside(|folder| {
        let elsewhere = tempfile::tempdir().unwrap();
        // A relative path in the folder means the same before and after.
        env::set_current_dir(&folder).unwrap();
        assert_eq!(read_only_view(std::slice::from_ref(&folder)).unwrap(), None);
        for read_only in
            [elsewhere.path().join("a"), PathBuf::from("/dev/shm/hadoptic-test"), "/etc/hadoptic-test".into()]
        {
            assert!(
                !read_only.parent().unwrap().exists() || denied(&read_only),
                "{} can be written",
                read_only.display()
            );
        }
        fs::write("a", "1").unwrap();
        fs::rename(folder.join("a"), "b").unwrap();
        // Of another mount namespace: that of the process that started this one.
        let outside = PathBuf::from(format!("/proc/{}/root", parent_id()));
        let seen = |path: &Path| outside.join(path.strip_prefix("/").unwrap());
        assert!(seen(&folder).join("b").exists());
        fs::write(seen(elsewhere.path()).join("a"), "x").unwrap();
        fs::remove_dir_all(seen(elsewhere.path())).unwrap();
    });
}
