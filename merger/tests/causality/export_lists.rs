//! Lists of flows and coflows, and Perfetto's file, read back by strict readers that know the formats and not the writers.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use merger::build::Silent;
use merger::built_trace::trace_of;
use merger::export::{coflow, flows, perfetto};
use trace::rows::{MessageKind, Trace};

fn golden(name: &str) -> Trace {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(name);
    trace_of(&[capture], &Silent).unwrap().trace
}

#[test]
fn flows_are_the_messages_between_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let trace = golden("terasort");
    let out = folder.path().join("flows.txt");
    let written = flows(&trace, &out).unwrap();
    let text = fs::read_to_string(&out).unwrap();
    // As htsim's reader has it, whose last flow ends with the file.
    assert!(text.ends_with(|last: char| last.is_ascii_digit()));
    let mut last = 0;
    let (mut lines, mut bytes) = (0, 0);
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [from, to, size, start] = fields[..] else { panic!("{line}") };
        let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
        assert!(from != to && from < trace.hosts.len() && to < trace.hosts.len(), "{line}");
        let start: u64 = start.parse().unwrap();
        assert!(start >= last, "in the order of time: {line}");
        last = start;
        lines += 1;
        bytes += size.parse::<u64>().unwrap();
    }
    assert_eq!((lines, bytes), (written.flows, written.bytes));
    assert!((40_000_000_000..trace.manifest.end_ns - trace.manifest.start_ns).contains(&last), "nanoseconds: {last}");
    let hosts = fs::read_to_string(folder.path().join("flows.txt.hosts")).unwrap();
    let hosts: Vec<&str> = hosts.lines().collect();
    assert_eq!(hosts.len(), trace.hosts.len());
    let worker = trace.hosts.iter().position(|host| !host.rack.is_empty()).unwrap();
    assert_eq!(hosts[worker], format!("{worker} {} {}", trace.hosts[worker].name, trace.hosts[worker].rack));
    let (mut all, mut between) = (0, 0);
    for message in &trace.messages {
        let connection = &trace.connections[message.connection.index()];
        all += 1;
        between += u64::from(connection.client_host != connection.server_host) * message.bytes;
    }
    assert_eq!(written.flows + written.within_hosts + written.empty, all, "each message is a flow or counted");
    assert_eq!(written.bytes, between);
}

#[test]
fn a_coflow_is_a_jobs_shuffle() {
    let folder = tempfile::tempdir().unwrap();
    let trace = golden("terasort");
    let out = folder.path().join("coflows.txt");
    let written = coflow(&trace, &out).unwrap();
    let text = fs::read_to_string(&out).unwrap();
    let mut lines = text.lines();
    let head: Vec<usize> = lines.next().unwrap().split(' ').map(|word| word.parse().unwrap()).collect();
    assert_eq!(head, [trace.hosts.len(), lines.clone().count()]);
    let mut micro_megabytes = 0;
    for line in lines {
        let mut words = line.split(' ');
        let mut number = || words.next().unwrap().parse::<usize>().unwrap();
        let (_, _, maps) = (number(), number(), number());
        assert!((0..maps).all(|_| number() < trace.hosts.len()));
        let reduces = number();
        for _ in 0..reduces {
            let (port, megabytes) = words.next().unwrap().split_once(':').unwrap();
            assert!(port.parse::<usize>().unwrap() < trace.hosts.len());
            let (whole, rest) = megabytes.split_once('.').unwrap();
            assert_eq!(rest.len(), 6);
            micro_megabytes += whole.parse::<u64>().unwrap() * 1_000_000 + rest.parse::<u64>().unwrap();
        }
        assert!(words.next().is_none(), "{line}");
    }
    let shuffled = trace.messages.iter().filter(|message| message.kind == MessageKind::ShuffleResponse);
    assert_eq!(micro_megabytes, shuffled.map(|message| message.bytes).sum::<u64>(), "to the byte");
    assert_eq!((written.bytes, written.unknown), (micro_megabytes, 0));
}

/// A field of a protobuf message: its number and its value.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Fields of a protobuf message in their order; refuses what is cut off or of an unknown wire type.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = bytes.split_first().expect("a varint is cut off");
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return value;
            }
        }
        panic!("a varint is too long");
    }
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (value, rest) = bytes.split_first_chunk::<8>().unwrap();
                bytes = rest;
                Field::Number(u64::from_le_bytes(*value))
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(value)
            }
            other => panic!("wire type {other}"),
        };
        all.push((key >> 3, field));
    }
    all
}

fn number(all: &[(u64, Field<'_>)], wanted: u64) -> Option<u64> {
    all.iter().find_map(|(field, value)| match value {
        Field::Number(value) if *field == wanted => Some(*value),
        _ => None,
    })
}

fn bytes<'a>(all: &[(u64, Field<'a>)], wanted: u64) -> Option<&'a [u8]> {
    all.iter().find_map(|(field, value)| match value {
        Field::Bytes(value) if *field == wanted => Some(*value),
        _ => None,
    })
}

/// The numbers are those of perfetto_trace.proto: TracePacket.timestamp 8, track_event 11, track_descriptor 60;
/// TrackEvent.type 9, track_uuid 11, categories 22, name 23, flow_ids 47, terminating_flow_ids 48;
/// TrackDescriptor.uuid 1, process 3, thread 4.
#[test]
fn perfettos_slices_and_flows_are_those_of_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let trace = golden("terasort");
    let out = folder.path().join("trace.pftrace");
    let written = perfetto(&trace, &out).unwrap();
    let file = fs::read(&out).unwrap();
    let mut tracks = HashSet::new();
    let mut processes = 0;
    let mut open: HashMap<u64, Vec<(String, u64)>> = HashMap::new();
    let mut spans: HashMap<String, (u64, u64)> = HashMap::new();
    let mut flows: HashMap<u64, (u64, u64)> = HashMap::new();
    for (field, packet) in fields(&file) {
        let (1, Field::Bytes(packet)) = (field, packet) else { panic!("field {field} is no packet") };
        let packet = fields(packet);
        assert_eq!(number(&packet, 10), Some(1), "trusted_packet_sequence_id");
        if let Some(track) = bytes(&packet, 60).map(fields) {
            assert!(tracks.insert(number(&track, 1).unwrap()), "a track has one descriptor");
            processes += u64::from(bytes(&track, 3).is_some());
            continue;
        }
        let at = number(&packet, 8).unwrap();
        let event = fields(bytes(&packet, 11).unwrap());
        let track = number(&event, 11).unwrap();
        assert!(tracks.contains(&track), "an event stands on a track that is described");
        let open = open.entry(track).or_default();
        match number(&event, 9).unwrap() {
            1 => {
                assert!(bytes(&event, 23).is_some_and(|name| !name.is_empty()));
                open.push((String::from_utf8(bytes(&event, 22).unwrap().to_vec()).unwrap(), at));
            }
            2 => {
                let (category, begin) = open.pop().expect("what ends has begun");
                let sum = spans.entry(category).or_default();
                *sum = (sum.0 + 1, sum.1 + at.checked_sub(begin).unwrap());
            }
            3 => {
                let sent = number(&event, 47);
                let flow = flows.entry(sent.or_else(|| number(&event, 48)).unwrap()).or_default();
                if sent.is_some() { flow.0 = at } else { flow.1 = at }
            }
            other => panic!("event type {other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty));
    assert_eq!(processes, written.processes);
    let of_kind = |kind: &str| {
        let spans = trace.spans.iter().filter(|span| span.kind == kind && trace.processes[span.process.index()].hadoop);
        spans.fold((0, 0), |sum, span| (sum.0 + 1, sum.1 + span.end_ns.saturating_sub(span.begin_ns)))
    };
    for (category, kind) in [
        ("RPC served", "rpc"),
        ("RPC called", "call"),
        ("Block operation served", "block"),
        ("Block read", "block-read"),
        ("Block written", "block-write"),
        ("Map output served", "shuffle"),
        ("Map output fetched", "fetch"),
    ] {
        assert_eq!(spans.get(category).copied().unwrap_or_default(), of_kind(kind), "{category}");
    }
    assert_eq!(flows.len() as u64, written.messages);
    assert_eq!(written.messages + written.messages_of_others, trace.messages.len() as u64);
    for (flow, (sent, received)) in flows {
        let message = &trace.messages[usize::try_from(flow).unwrap() - 1];
        assert_eq!((sent, received), (message.sent_ns, message.delivered_ns));
    }
}
