//! A job as a VEF trace, read by a strict reader and executed by a plain one, which know the format and not the writer.

use std::fs;
use std::path::Path;

use merger::build::Silent;
use merger::built_trace::trace_of;
use merger::export::{goal, vef};
use trace::rows::{EventRow, Trace};

fn golden(name: &str) -> Trace {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(name);
    trace_of(&[capture], &Silent).unwrap().trace
}

struct Message {
    to: usize,
    bytes: u64,
    ns: u64,
    received: Option<usize>,
}

fn number<T: std::str::FromStr>(word: &str) -> T {
    word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
}

/// Ranks and messages: each after those that it waits for, by the rank that received them.
fn read(text: &str) -> (usize, Vec<Message>) {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(' ').collect();
    let ["VEF", ranks, count, "1", "0", "0", "TRUE"] = header[..] else { panic!("{header:?}") };
    let (ranks, count): (usize, usize) = (number(ranks), number(count));
    let world: Vec<String> = (0..ranks).map(|rank| rank.to_string()).collect();
    assert_eq!(lines.next().unwrap(), format!("C0 {}", world.join(" ")));
    let mut messages: Vec<Message> = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let [id, from, to, bytes, kind, ns, cause] = words[..] else { panic!("{line}") };
        assert_eq!(number::<usize>(id), messages.len());
        let (from, to): (usize, usize) = (number(from), number(to));
        assert!(from < ranks && to < ranks && from != to, "{line}");
        let received = match (kind, cause) {
            ("0", "-1") => None,
            ("2", cause) => Some(number::<usize>(cause)),
            _ => panic!("{line}"),
        };
        assert!(received.is_none_or(|cause| messages[cause].to == from), "received by another rank: {line}");
        messages.push(Message { to, bytes: number(bytes), ns: number(ns), received });
    }
    assert_eq!(messages.len(), count);
    (ranks, messages)
}

/// When each message leaves and arrives.
fn execute(messages: &[Message], way_ns: impl Fn(usize) -> u64) -> Vec<(u64, u64)> {
    let mut times: Vec<(u64, u64)> = Vec::new();
    for (id, message) in messages.iter().enumerate() {
        let leaves_ns = message.received.map_or(0, |cause| times[cause].1) + message.ns;
        times.push((leaves_ns, leaves_ns + way_ns(id)));
    }
    times
}

/// Whose an end of a connection is: its process, or all that is not known on its host.
fn ends(trace: &Trace, event: &EventRow) -> [(bool, u32); 2] {
    let row = &trace.connections[event.connection.unwrap().index()];
    let client = row.client_process.map_or((false, row.client_host.0), |process| (true, process.0));
    let server = row.server_process.map_or((false, row.server_host.0), |process| (true, process.0));
    let process = event.process.map(|process| (true, process.0));
    if event.from_client { [process.unwrap_or(client), server] } else { [process.unwrap_or(server), client] }
}

/// The events of which the job's end has to hear, as the schedule in GOAL names them, that go from a process to another one.
fn events_between_processes<'t>(trace: &'t Trace, folder: &Path) -> Vec<&'t EventRow> {
    let out = folder.join("job.goal");
    goal(trace, None, &out).unwrap();
    let text = fs::read_to_string(out).unwrap();
    let sends = text.lines().filter(|line| line.contains(": send "));
    let tags = sends.map(|line| number::<usize>(line.rsplit_once("tag ").unwrap().1));
    let mut events: Vec<&EventRow> = tags.filter_map(|tag| trace.events.get(tag)).collect();
    events.retain(|event| ends(trace, event)[0] != ends(trace, event)[1]);
    events.sort_by_key(|event| event.event);
    events
}

#[test]
fn executed_with_the_recorded_ways_a_trace_takes_as_long_as_the_job_did() {
    for (capture, least) in [("encrypted", 1.0), ("wordcount", 0.998), ("terasort", 0.7)] {
        let trace = golden(capture);
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("job.vef");
        let written = vef(&trace, None, &out).unwrap();
        let (ranks, messages) = read(&fs::read_to_string(&out).unwrap());
        assert_eq!(ranks as u64, written.ranks);
        assert_eq!(messages.len() as u64, written.messages + written.signals);
        assert_eq!(messages.iter().map(|message| message.bytes).sum::<u64>(), written.bytes);
        // Each event that sends to another process is a message of its size, in their order; all else is of 0 bytes.
        let mut events = events_between_processes(&trace, folder.path()).into_iter();
        let event_of: Vec<Option<&EventRow>> =
            messages.iter().map(|message| (message.bytes > 0).then(|| events.next().unwrap())).collect();
        assert!(events.next().is_none(), "{capture}: each event is a message");
        for (message, event) in messages.iter().zip(&event_of) {
            assert!(event.is_none_or(|event| event.bytes == message.bytes), "{capture}");
        }
        let job = trace.jobs.iter().max_by_key(|job| job.shuffle_bytes).unwrap();
        let mark = |name: &str, at_ns: u64| {
            let marks = trace.events.iter().filter(|event| event.name == name);
            marks.min_by_key(|event| event.recorded_ns.abs_diff(at_ns)).unwrap().recorded_ns
        };
        let (submit_ns, finish_ns) = (mark("job.submit", job.submit_ns), mark("job.finish", job.finish_ns));
        let way_ns = |id: usize| event_of[id].map_or(0, |event| event.recorded_delivered_ns - event.recorded_ns);
        let times = execute(&messages, way_ns);
        let late = times
            .iter()
            .zip(&event_of)
            .filter(|((leaves_ns, _), event)| event.is_some_and(|event| submit_ns + leaves_ns > event.recorded_ns));
        assert_eq!(late.count(), 0, "{capture}: no event is later than it was");
        // The last message is the job's end.
        let share = |times: &[(u64, u64)]| times.last().unwrap().0 as f64 / (finish_ns - submit_ns) as f64;
        println!("{capture}: {} of the recorded time, {} causes left out", share(&times), written.causes_left_out);
        assert!((least..=1.0).contains(&share(&times)), "{capture}: {}", share(&times));
        let slower = execute(&messages, |id| way_ns(id) + 100_000_000);
        assert!(share(&slower) > share(&times), "{capture}");
    }
}

#[test]
fn each_rank_is_on_the_node_of_its_host() {
    let trace = golden("terasort");
    let folder = tempfile::tempdir().unwrap();
    let written = vef(&trace, Some(&trace.jobs[0].id), &folder.path().join("job.vef")).unwrap();
    let file = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let nodes: Vec<String> =
        file("job.vef.hosts").lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(nodes.len(), trace.hosts.len());
    let ranks = file("job.vef.ranks");
    for (rank, line) in ranks.lines().enumerate() {
        let (of, node) = line.split_once(' ').unwrap();
        assert_eq!(number::<usize>(of), rank);
        assert!(nodes.iter().any(|known| known == node) && number::<u64>(node) < written.nodes, "{line}");
    }
    assert_eq!(ranks.lines().count() as u64, written.ranks);
    let error = vef(&trace, Some("job_1_0001"), &folder.path().join("job.vef")).unwrap_err().to_string();
    assert!(error.contains("job_1_0001") && error.contains(&trace.jobs[0].id), "{error}");
}
