//! Socket records: what is written is read again, a file cut at any byte gives all whole lines, garbage is counted.

use std::fs;
use std::net::SocketAddr;

use proptest::collection::vec;
use proptest::prelude::*;
use trace::files::read_json_lines;
use trace::socket::{Owner, SocketRecord, TcpCounters};

fn any_owner() -> impl Strategy<Value = Option<Owner>> {
    prop::option::of((any::<u32>(), any::<u64>()).prop_map(|(pid, start_ticks)| Owner { pid, start_ticks }))
}

fn any_counters() -> impl Strategy<Value = Option<TcpCounters>> {
    prop::option::of(any::<([u64; 7], [u32; 4])>().prop_map(|(long, short)| TcpCounters {
        bytes_sent: long[0],
        bytes_retrans: long[1],
        bytes_acked: long[2],
        bytes_received: long[3],
        rtt_us: short[0],
        min_rtt_us: short[1],
        total_retrans: short[2],
        snd_mss: short[3],
        busy_us: long[4],
        rwnd_limited_us: long[5],
        sndbuf_limited_us: long[6],
    }))
}

fn any_record() -> impl Strategy<Value = SocketRecord> {
    let t = any::<u64>;
    let address = any::<SocketAddr>;
    prop_oneof![
        (t(), "\\PC*", t(), t(), t()).prop_map(|(t, host, interval_ms, ticks_per_second, boot_ns)| {
            SocketRecord::Header { t, version: 1, host, interval_ms, ticks_per_second, boot_ns }
        }),
        (t(), t(), t(), t()).prop_map(|(t, netns, sockets, cpu_us)| SocketRecord::Scan { t, netns, sockets, cpu_us }),
        (t(), any::<u32>(), t(), "\\PC*", "\\PC*").prop_map(|(t, pid, start_ticks, main, role)| {
            SocketRecord::Process { t, owner: Owner { pid, start_ticks }, netns: 1, main, role, uid: pid, ns_pid: None }
        }),
        (t(), t(), address(), t(), any_owner()).prop_map(|(t, netns, local, inode, owner)| SocketRecord::Listen {
            t,
            netns,
            local,
            inode,
            owner
        }),
        (t(), t(), address(), address(), any_owner(), any_counters()).prop_map(
            |(t, netns, local, remote, owner, tcp)| SocketRecord::Socket {
                t,
                netns,
                local,
                remote,
                state: "ESTABLISHED".into(),
                inode: t,
                owner,
                tcp
            }
        ),
        (t(), t(), address(), address(), any_counters())
            .prop_map(|(t, netns, local, remote, tcp)| SocketRecord::Died { t, netns, local, remote, tcp }),
        (t(), "\\PC*", t()).prop_map(|(t, what, count)| SocketRecord::Lost { t, what, count }),
    ]
}

/// Scope and flow of an IPv6 address are not recorded.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip(), address.port())
}

fn without_scopes(record: SocketRecord) -> SocketRecord {
    match record {
        SocketRecord::Listen { t, netns, local, inode, owner } => {
            SocketRecord::Listen { t, netns, local: plain(local), inode, owner }
        }
        SocketRecord::Socket { t, netns, local, remote, state, inode, owner, tcp } => {
            SocketRecord::Socket { t, netns, local: plain(local), remote: plain(remote), state, inode, owner, tcp }
        }
        SocketRecord::Died { t, netns, local, remote, tcp } => {
            SocketRecord::Died { t, netns, local: plain(local), remote: plain(remote), tcp }
        }
        other => other,
    }
}

fn lines(records: &[SocketRecord]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        serde_json::to_writer(&mut bytes, record).unwrap();
        bytes.push(b'\n');
    }
    bytes
}

#[test]
fn lines_that_are_read_without_detour_are_the_same_records() {
    let socket = r#""k":"socket","t":1,"netns":2,"local":"10.0.0.1:80","remote":"[::1]:90","state":"LISTEN","inode":3"#;
    let died = r#""k":"died","t":1,"netns":2,"local":"10.0.0.1:80","remote":"10.0.0.2:90""#;
    let scan = r#""k":"scan","t":1,"netns":2,"sockets":3,"cpu_us":4"#;
    let rests = [
        "",
        r#","pid":4,"start_ticks":5"#,
        r#","pid":4"#,
        r#","pid":null,"start_ticks":5"#,
        r#","pid":"4","start_ticks":5"#,
        r#","pid":-4,"start_ticks":5"#,
        r#","tcp":null"#,
        r#","later":[1],"tcp":{"rtt_us":7,"later":1}"#,
        r#","start_ticks":5,"tcp":{"busy_us":8},"pid":4"#,
        r#","tcp":{"rtt_us":-7}"#,
        r#","t":1"#,
        ",",
    ];
    for (begin, rest) in [socket, died, scan].into_iter().flat_map(|begin| rests.map(|rest| (begin, rest))) {
        let line = format!("{{{begin}{rest}}}");
        let (plain, known) = (SocketRecord::of_line(line.as_bytes()), serde_json::from_str::<SocketRecord>(&line));
        assert_eq!(plain.map_err(|error| error.to_string()), known.map_err(|error| error.to_string()), "{line}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(records in vec(any_record().prop_map(without_scopes), 0..20)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sockets.jsonl");
        fs::write(&path, lines(&records)).unwrap();
        let (found, losses) = read_json_lines::<SocketRecord>(&path).unwrap();
        prop_assert_eq!(found, records);
        prop_assert_eq!(losses, Default::default());
    }

    #[test]
    fn garbage_is_counted_and_never_panics(bytes in vec(any::<u8>(), 0..600)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sockets.jsonl");
        fs::write(&path, &bytes).unwrap();
        if let Ok((found, losses)) = read_json_lines::<SocketRecord>(&path) {
            let whole = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            prop_assert_eq!(found.len() as u64 + losses.malformed_lines, whole);
        }
    }
}

#[test]
fn a_file_cut_at_any_byte_gives_all_whole_lines() {
    let owner = Some(Owner { pid: 1, start_ticks: 2 });
    let local: SocketAddr = "10.1.0.1:9866".parse().unwrap();
    let records = vec![
        SocketRecord::Listen { t: 1, netns: 2, local, inode: 3, owner },
        SocketRecord::Socket {
            t: 4,
            netns: 2,
            local,
            remote: "[fd00::2]:5".parse().unwrap(),
            state: "ESTABLISHED".into(),
            inode: 6,
            owner: None,
            tcp: Some(TcpCounters { bytes_sent: 7, ..TcpCounters::default() }),
        },
        SocketRecord::Scan { t: 8, netns: 2, sockets: 2, cpu_us: 9 },
    ];
    let bytes = lines(&records);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sockets.jsonl");
    for cut in 0..=bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let (found, losses) = read_json_lines::<SocketRecord>(&path).unwrap();
        let whole = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(found, records[..whole], "cut at {cut}");
        let begun = bytes[..cut].iter().rposition(|byte| *byte == b'\n').map_or(cut, |at| cut - at - 1);
        assert_eq!(losses.truncated_bytes, begun as u64, "cut at {cut}");
        assert_eq!(losses.malformed_lines, 0, "cut at {cut}");
    }
}

#[test]
fn an_owner_stands_flat_in_the_line_and_may_be_absent() {
    let local: SocketAddr = "10.1.0.1:1".parse().unwrap();
    let owned = SocketRecord::Listen { t: 1, netns: 2, local, inode: 3, owner: Some(Owner { pid: 4, start_ticks: 5 }) };
    assert_eq!(
        serde_json::to_string(&owned).unwrap(),
        r#"{"k":"listen","t":1,"netns":2,"local":"10.1.0.1:1","inode":3,"pid":4,"start_ticks":5}"#
    );
    let unknown = r#"{"k":"listen","t":1,"netns":2,"local":"10.1.0.1:1","inode":3}"#;
    let found: SocketRecord = serde_json::from_str(unknown).unwrap();
    assert_eq!(found, SocketRecord::Listen { t: 1, netns: 2, local, inode: 3, owner: None });
}
