//! Pages of the kernel's ring buffer, and how the events of a connection are joined.

use dumpingd::ring::{Change, Event, Format, parse_page};
use dumpingd::tracepoint::Joiner;
use proptest::prelude::*;

/// As Linux 6.18 writes it.
const FORMAT: &str = "name: inet_sock_set_state
ID: 2287
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:const void * skaddr;\toffset:8;\tsize:8;\tsigned:0;
\tfield:int oldstate;\toffset:16;\tsize:4;\tsigned:1;
\tfield:int newstate;\toffset:20;\tsize:4;\tsigned:1;
\tfield:__u16 sport;\toffset:24;\tsize:2;\tsigned:0;
\tfield:__u16 dport;\toffset:26;\tsize:2;\tsigned:0;
\tfield:__u16 family;\toffset:28;\tsize:2;\tsigned:0;
\tfield:__u16 protocol;\toffset:30;\tsize:2;\tsigned:0;
\tfield:__u8 saddr[4];\toffset:32;\tsize:4;\tsigned:0;
\tfield:__u8 daddr[4];\toffset:36;\tsize:4;\tsigned:0;
\tfield:__u8 saddr_v6[16];\toffset:40;\tsize:16;\tsigned:0;
\tfield:__u8 daddr_v6[16];\toffset:56;\tsize:16;\tsigned:0;

print fmt: \"family=%s\"
";

fn format() -> Format {
    Format::parse(FORMAT).unwrap()
}

fn data(thread: u32, socket: u64, old: i32, new: i32, ports: [u16; 2], v6: bool) -> Vec<u8> {
    let mut bytes = 2287u16.to_ne_bytes().to_vec();
    bytes.extend([0, 0]);
    bytes.extend(thread.to_ne_bytes());
    bytes.extend(socket.to_ne_bytes());
    bytes.extend(old.to_ne_bytes());
    bytes.extend(new.to_ne_bytes());
    bytes.extend(ports[0].to_ne_bytes());
    bytes.extend(ports[1].to_ne_bytes());
    bytes.extend(if v6 { 10u16 } else { 2 }.to_ne_bytes());
    bytes.extend(6u16.to_ne_bytes());
    bytes.extend([10, 1, 0, 1, 10, 1, 0, 2]);
    for last in [1u8, 2] {
        bytes.extend("fd00::".parse::<std::net::Ipv6Addr>().unwrap().octets());
        *bytes.last_mut().unwrap() = last;
    }
    bytes
}

/// A record: its time since the one before, and its data in words.
fn record(delta: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = ((data.len() as u32 / 4) | delta << 5).to_ne_bytes().to_vec();
    bytes.extend_from_slice(data);
    bytes
}

fn page(time: u64, flags: u64, records: &[Vec<u8>]) -> Vec<u8> {
    let body = records.concat();
    let mut bytes = time.to_ne_bytes().to_vec();
    bytes.extend((body.len() as u64 | flags).to_ne_bytes());
    bytes.extend(body);
    bytes
}

#[test]
fn events_are_read_with_their_times() {
    let connecting = data(77, 0xffff_8880_0000_1000, 7, 2, [0, 9000], false);
    let connected = data(77, 0xffff_8880_0000_1000, 2, 1, [40_000, 9000], true);
    let mut extended = (30u32 | 5 << 5).to_ne_bytes().to_vec();
    extended.extend(2u32.to_ne_bytes());
    let mut another = data(1, 1, 1, 1, [1, 1], false);
    another[0] ^= 1;
    let mut taken_back = (29u32 | 3 << 5).to_ne_bytes().to_vec();
    taken_back.extend(8u32.to_ne_bytes());
    taken_back.extend([0xff; 4]);
    let long = {
        let mut bytes = (9u32 << 5).to_ne_bytes().to_vec();
        bytes.extend((connected.len() as u32 + 4).to_ne_bytes());
        bytes.extend_from_slice(&connected);
        bytes
    };
    let found = parse_page(
        &format(),
        &page(1000, 0, &[record(10, &connecting), extended, taken_back, record(1, &another), long]),
    );
    assert_eq!((found.events.len(), found.missed), (2, 0));
    let [first, second] = [found.events[0], found.events[1]];
    assert_eq!((first.time_ns, first.thread, first.change), (1010, 77, Change::Connecting));
    assert_eq!((first.local, first.remote), ("10.1.0.1:0".parse().unwrap(), "10.1.0.2:9000".parse().unwrap()));
    assert_eq!(second.time_ns, 1010 + 5 + (2 << 27) + 3 + 1 + 9);
    assert_eq!((second.local, second.change), ("[fd00::1]:40000".parse().unwrap(), Change::Connected));
    assert_eq!(first.socket, second.socket);
}

#[test]
fn lost_events_are_counted() {
    let one = record(1, &data(1, 1, 7, 10, [80, 0], false));
    assert_eq!(parse_page(&format(), &page(1, 1 << 31, std::slice::from_ref(&one))).missed, 1);
    let mut stated = page(1, 1 << 31 | 1 << 30, &[one]);
    stated.extend(42u64.to_ne_bytes());
    let found = parse_page(&format(), &stated);
    assert_eq!((found.missed, found.events.len()), (42, 1));
    assert_eq!(found.events[0].change, Change::Listening);
}

#[test]
fn a_format_without_a_field_is_refused() {
    assert_eq!(Format::parse(&FORMAT.replace("skaddr", "sk")), None);
    assert_eq!(Format::parse(""), None);
}

fn event(time_ns: u64, thread: u32, socket: u64, change: Change, port: u16) -> Event {
    let (local, remote) = (format!("10.1.0.1:{port}").parse().unwrap(), "10.1.0.2:9000".parse().unwrap());
    Event { time_ns, thread, socket, change, local, remote }
}

#[test]
fn a_connection_is_that_of_the_thread_that_began_it() {
    let mut joiner = Joiner::default();
    let events = [
        event(1, 7, 100, Change::Connecting, 0),
        event(2, 8, 101, Change::Connecting, 0),
        // In an interrupt, while thread 9 happened to run.
        event(3, 9, 101, Change::Connected, 40_001),
        event(4, 7, 100, Change::Failed, 0),
        event(5, 7, 100, Change::Connected, 40_002),
        event(6, 3, 102, Change::Listening, 50_010),
        // Nobody listened there.
        event(7, 5, 103, Change::Connecting, 0),
        event(8, 9, 103, Change::Failed, 40_003),
    ];
    let opened = joiner.join(&events, 1000);
    assert_eq!(opened.len(), 3);
    assert!(opened[0].connected && !opened[2].connected);
    assert_eq!((opened[2].thread, opened[2].local.port()), (5, 40_003));
    assert_eq!((opened[0].t, opened[0].thread, opened[0].local.port()), (1003, 8, 40_001));
    assert_eq!((opened[1].thread, opened[1].remote), (3, None));
}

#[test]
fn an_event_of_another_cpu_that_comes_too_late_is_waited_for() {
    let mut joiner = Joiner::default();
    assert!(joiner.join(&[event(3, 9, 101, Change::Connected, 40_001)], 0).is_empty());
    assert!(joiner.join(&[], 0).is_empty());
    let opened = joiner.join(&[event(2, 8, 101, Change::Connecting, 0)], 0);
    assert_eq!(opened.iter().map(|opened| opened.thread).collect::<Vec<_>>(), [8]);
    joiner.join(&[event(3, 9, 102, Change::Connected, 40_001)], 0);
    for _ in 0..5 {
        joiner.join(&[], 0);
    }
    assert!(
        joiner.join(&[event(9, 8, 102, Change::Connecting, 0)], 0).is_empty(),
        "the address is another socket's now"
    );
}

proptest! {
    #[test]
    fn no_page_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), time: u64, flags: u8) {
        let _ = parse_page(&format(), &bytes);
        let mut with_header = page(time, u64::from(flags) << 27, &[]);
        with_header[8] = bytes.len() as u8;
        with_header.extend(bytes);
        let _ = parse_page(&format(), &with_header);
    }

    #[test]
    fn no_format_makes_it_panic(text in "(ID: [0-9]{0,6}\n|field:[a-z _]{0,20};|\toffset:[0-9]{0,20};|size:9;\n|.){0,20}") {
        let _ = Format::parse(&text);
    }
}
