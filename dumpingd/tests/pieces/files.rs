//! Socket files of dumpingd: continued after a kill at any byte.

use std::fs;

use dumpingd::log::SocketLog;
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
        let mut log = SocketLog::open(&path).unwrap();
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
