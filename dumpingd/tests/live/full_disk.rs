//! A disk that is full now and then: what could not be written is counted as soon as there is room, and recording goes on.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::support::{Agent, Pair, SmallDisk, exchange, wait_until};
use trace::files::read_json_lines;
use trace::socket::SocketRecord;

const DUMPINGD: &str = env!("CARGO_BIN_EXE_dumpingd");

/// Takes all that is left of a file system.
fn fill(path: &Path) -> fs::File {
    let mut file = fs::File::create(path).unwrap();
    while file.write_all(&[0; 4096]).is_ok() || file.write_all(&[0; 64]).is_ok() {}
    file
}

#[test]
#[ignore = "needs root: network namespaces, and sockets of all processes"]
fn recording_goes_on_whenever_there_is_room_and_what_is_missing_is_told() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let _mounted = SmallDisk::mount(folder.path(), "4m");
    let agent = Agent::start(
        DUMPINGD,
        &pair.left,
        "dumpingd.json",
        folder.path(),
        &["--interval", "5ms", "--disk-limit", "0", "--keep-free", "0"],
    );
    let filler = folder.path().join("filler");
    let mut stated = 0;
    for round in 0u64..8 {
        let file = fill(&filler);
        for _ in 0..5 {
            exchange(&pair, 1, 100, 100);
        }
        thread::sleep(Duration::from_millis(round.wrapping_mul(2_654_435_761) % 300));
        // A process that another test starts meanwhile may hold it open for a moment, and what it takes with it.
        file.set_len(0).unwrap();
        fs::remove_file(&filler).unwrap();
        let ends = exchange(&pair, 1, 100, 100);
        wait_until("the connection after it, and what is missing", || {
            let records = read_json_lines::<SocketRecord>(&folder.path().join("sockets.jsonl")).unwrap().0;
            let is_there = |record: &SocketRecord| {
                matches!(record, SocketRecord::Died { local, remote, .. }
                    if (*local, *remote) == (ends.client, ends.server))
            };
            let losses = records.iter().filter(|record| {
                matches!(record, SocketRecord::Lost { what, count, .. }
                    if what.contains("could not be written") && *count > 0)
            });
            stated = losses.count();
            records.iter().any(is_there)
        });
    }
    // Moments may hit times in which there is nothing to write; not all of them.
    assert!(stated > 0, "nothing was told to be missing");
    let (code, manifest) = agent.stop();
    assert_eq!(code, 1, "{manifest}");
    assert!(manifest["problems"].to_string().contains("could not be written"), "{manifest}");
    let (_, losses) = read_json_lines::<SocketRecord>(&folder.path().join("sockets.jsonl")).unwrap();
    assert_eq!(losses, Default::default(), "a piece of a line was left in the file");
}
