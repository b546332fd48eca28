//! Where files lie: JVM records in users' folders, socket records in several files, and JVMs in containers.

use std::fs;
use std::path::{Path, PathBuf};

use crate::world::{Talk, World, at, connections, write_lines};
use merger::build::{Silent, merge};
use merger::capture::{HostCapture, read};
use merger::loss::Loss;
use merger::merged::Merged;
use trace::jvm::JvmRecord;
use trace::rows::OwnerEvidence;
use trace::socket::{Owner, SocketRecord};

fn talk(world: &mut World) -> Talk {
    let mut talk = world.connect((1, 40_000), (0, 8020), [100, 200], at(0));
    world.own(&talk, at(0), (50, "DataNode"), (60, "NameNode"));
    world.say(&mut talk, true, at(1), &[7; 100]);
    talk
}

fn merged(folder: &Path) -> Merged {
    merge(&[folder.to_owned()], &Silent).unwrap()
}

fn w1(folder: &Path) -> HostCapture {
    let hosts = read(&[folder.to_owned()], 1 << 20, &Silent).unwrap();
    hosts.into_iter().find(|host| host.name == "w1").unwrap()
}

fn put(folder: &Path, from: &str, to: &str) {
    let to = folder.join(to);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::rename(folder.join(from), to).unwrap();
}

#[test]
fn jvm_records_are_read_in_the_hosts_folder_and_in_those_of_users() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(&["m1", "w1"]);
    talk(&mut world);
    world.write(folder.path());
    let before = merged(folder.path());
    for place in ["w1/jvm/jvm-50-500.jsonl", "w1/jvm/1001/jvm-50-500.jsonl", "w1/jvm/1001.3/jvm-50-500.jsonl"] {
        let old = ["w1/jvm-50-500.jsonl", "w1/jvm/jvm-50-500.jsonl", "w1/jvm/1001/jvm-50-500.jsonl"];
        let old = old.into_iter().find(|old| folder.path().join(old).exists()).unwrap();
        put(folder.path(), old, place);
        let after = merged(folder.path());
        assert_eq!(connections(&after), connections(&before), "{place}");
        assert_eq!(after.joined.losses, before.joined.losses, "{place}");
    }
    assert_eq!(connections(&before)[0].client_evidence, OwnerEvidence::Jvm);
    assert_eq!(w1(folder.path()).jvms[0].user, Some(1001));
}

#[test]
fn a_capture_is_read_as_it_lies_on_one_host() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(&["m1", "w1"]);
    talk(&mut world);
    world.write(folder.path());
    fs::remove_dir_all(folder.path().join("m1")).unwrap();
    put(folder.path(), "w1/jvm-50-500.jsonl", "jvm/1001/jvm-50-500.jsonl");
    let merged = merged(folder.path());
    assert_eq!(connections(&merged)[0].client_evidence, OwnerEvidence::Jvm);
    assert_eq!(merged.joined.losses, []);
}

fn process(pid: u32, netns: u64, uid: u32, ns_pid: Option<u32>) -> SocketRecord {
    let owner = Owner { pid, start_ticks: 500 };
    let (main, role) = ("org.apache.hadoop.DataNode".into(), "DataNode".into());
    SocketRecord::Process { t: at(0), owner, netns, main, role, uid, ns_pid }
}

#[test]
fn socket_files_are_read_in_the_order_of_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(&["m1", "w1"]);
    talk(&mut world);
    world.write(folder.path());
    let names = ["sockets.000009.jsonl", "sockets.000010.jsonl", "sockets.1000000.jsonl", "sockets.jsonl"];
    for (number, name) in names.iter().enumerate() {
        write_lines(&folder.path().join("w1").join(name), &[process(number as u32, 0, 0, None)]);
    }
    let stated: Vec<u32> = w1(folder.path())
        .sockets
        .iter()
        .filter_map(|record| match record {
            SocketRecord::Process { owner, .. } => Some(owner.pid),
            _ => None,
        })
        .collect();
    assert_eq!(stated, [0, 1, 2, 3]);
}

/// Gives the JVM of w1 a network namespace in its header, and its ids in the process namespaces.
fn in_namespace(path: PathBuf, netns: u64, pids: &[u32]) {
    let (mut records, _) = trace::files::read_json_lines::<JvmRecord>(&path).unwrap();
    if let Some(JvmRecord::Header { netns: stated, ns_pid, .. }) = records.first_mut() {
        (*stated, *ns_pid) = (netns, pids.to_vec());
    }
    write_lines(&path, &records);
}

#[test]
fn a_jvm_in_a_container_is_the_process_that_the_machine_knows_by_another_pid() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(&["m1", "w1"]);
    talk(&mut world);
    // Its own /proc shows it as 50; it may be in yet another namespace, in which it is 3.
    for (pids, inner) in [(&[][..], 50), (&[50, 3][..], 3)] {
        world.hosts[1].sockets = vec![process(7777, 42, 0, Some(inner)), process(8888, 43, 0, Some(inner))];
        world.write(folder.path());
        in_namespace(folder.path().join("w1/jvm-50-500.jsonl"), 42, pids);
        let merged = merged(folder.path());
        let client = connections(&merged)[0].client_process.unwrap();
        let row = &merged.joined.processes[client.index()];
        assert_eq!((row.pid, row.start_ticks), (7777, 500));
        assert_eq!(
            merged.joined.processes.iter().filter(|process| process.pid == 50).count(),
            0,
            "one JVM, one process"
        );
    }
}

#[test]
fn a_file_in_the_folder_of_another_user_than_the_process_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(&["m1", "w1"]);
    talk(&mut world);
    world.hosts[1].sockets = vec![process(50, 0, 1001, None)];
    world.write(folder.path());
    put(folder.path(), "w1/jvm-50-500.jsonl", "w1/jvm/1001/jvm-50-500.jsonl");
    assert_eq!(merged(folder.path()).joined.losses, []);
    // Another user's file about the same process, with a name that is read first.
    fs::create_dir(folder.path().join("w1/jvm/0")).unwrap();
    let forged = folder.path().join("w1/jvm/0/jvm-50-500.jsonl");
    fs::copy(folder.path().join("w1/jvm/1001/jvm-50-500.jsonl"), &forged).unwrap();
    let host = w1(folder.path());
    assert_eq!(host.jvms.iter().map(|jvm| jvm.file.as_str()).collect::<Vec<_>>(), ["w1/jvm/1001/jvm-50-500.jsonl"]);
    let lost: Vec<String> = host.losses.iter().map(Loss::what).collect();
    assert_eq!(lost, ["w1/jvm/0/jvm-50-500.jsonl: left out, as process 50 is user 1001's"]);
}
