//! A job for Dimemas, read by a strict reader and executed by a plain model of Dimemas, which know the format and not the writer.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::path::Path;

use merger::build::Silent;
use merger::built_trace::trace_of;
use merger::export::{self, dimemas};
use trace::rows::{EventRow, Trace};

fn golden(name: &str) -> Trace {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(name);
    trace_of(&[capture], &Silent).unwrap().trace
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Record {
    Burst { ns: u64 },
    Send { to: usize, bytes: u64, tag: u64 },
    Receive { from: usize, bytes: u64, tag: u64 },
}

fn number<T: std::str::FromStr>(word: &str) -> T {
    word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
}

/// Reads a file as Dimemas does: records where the last lines say that those of a task begin.
fn read(text: &str) -> Vec<Vec<Record>> {
    let header = text.lines().next().unwrap();
    let rest = header.strip_prefix("#DIMEMAS:\"").unwrap();
    let (_, rest) = rest.split_once("\":1,").unwrap();
    let (offset, rest) = rest.split_once(':').unwrap();
    let (tasks, rest) = rest.split_once('(').unwrap();
    let (tasks, offset) = (number::<usize>(tasks), number::<usize>(offset));
    assert_eq!(rest.trim_end(), format!("{}),1", vec!["1"; tasks].join(",")));
    let offsets: Vec<usize> = text[offset..]
        .lines()
        .enumerate()
        .map(|(task, line)| number(line.strip_prefix(&format!("s:{task}:")).unwrap_or_else(|| panic!("{line}"))))
        .collect();
    assert_eq!(offsets.len(), tasks);
    let all: Vec<String> = (0..tasks).map(|task| task.to_string()).collect();
    assert_eq!(text[header.len() + 1..offsets[0]], format!("d:1:1:{tasks}:{}\n", all.join(":")));
    let ends = offsets.iter().copied().skip(1).chain([offset]);
    let records = offsets.iter().zip(ends).enumerate().map(|(task, (begin, end))| {
        assert!(text[*begin..end].ends_with('\n'));
        text[*begin..end].lines().map(|line| record(task, line)).collect::<Vec<_>>()
    });
    let records: Vec<Vec<Record>> = records.collect();
    for of in &records {
        assert!(matches!(of[0], Record::Burst { .. }), "Dimemas leaves out a task that does not begin with a burst");
    }
    records
}

fn record(task: usize, line: &str) -> Record {
    let words: Vec<&str> = line.split(':').collect();
    assert_eq!((words[1], words[2]), (task.to_string().as_str(), "0"), "{line}");
    match words[..] {
        ["1", _, _, burst] => {
            let (seconds, rest) = burst.split_once('.').unwrap();
            assert_eq!(rest.len(), 9, "{line}");
            Record::Burst { ns: number::<u64>(seconds) * 1_000_000_000 + number::<u64>(rest) }
        }
        // Eager and immediate, in the communicator of all.
        ["2", _, _, to, "-1", bytes, tag, "1", "2"] => {
            assert!(number::<i32>(bytes) >= 0, "{line}");
            Record::Send { to: number(to), bytes: number(bytes), tag: number(tag) }
        }
        // It blocks.
        ["3", _, _, from, "-1", bytes, tag, "1", "0"] => {
            Record::Receive { from: number(from), bytes: number(bytes), tag: number(tag) }
        }
        _ => panic!("{line}"),
    }
}

/// When each task ends and when each message leaves and is taken, by tag; a message that leaves at a time arrives at `arrives`.
struct Executed {
    ends_ns: Vec<u64>,
    left_ns: HashMap<u64, u64>,
}

/// Each task does one record after the other; a receive waits for its message.
fn execute(tasks: &[Vec<Record>], arrives: impl Fn(u64, u64) -> u64) -> Executed {
    let mut now_ns = vec![0; tasks.len()];
    let mut next = vec![0; tasks.len()];
    let mut under_way: BTreeMap<(usize, usize, u64), (u64, u64)> = BTreeMap::new();
    let mut left_ns = HashMap::new();
    let mut ready: VecDeque<usize> = (0..tasks.len()).collect();
    while let Some(task) = ready.pop_front() {
        while let Some(record) = tasks[task].get(next[task]) {
            match *record {
                Record::Burst { ns } => now_ns[task] += ns,
                Record::Send { to, bytes, tag } => {
                    assert_ne!(to, task, "nobody sends to himself");
                    assert!(left_ns.insert(tag, now_ns[task]).is_none(), "tag {tag} twice");
                    under_way.insert((task, to, tag), (bytes, arrives(tag, now_ns[task])));
                    ready.push_back(to);
                }
                Record::Receive { from, bytes, tag } => {
                    let Some((sent, at_ns)) = under_way.remove(&(from, task, tag)) else { break };
                    assert_eq!(sent, bytes, "tag {tag}");
                    now_ns[task] = now_ns[task].max(at_ns);
                }
            }
            next[task] += 1;
        }
    }
    let stuck: Vec<usize> = (0..tasks.len()).filter(|task| next[*task] < tasks[*task].len()).collect();
    assert!(stuck.is_empty(), "tasks that wait for ever: {stuck:?}");
    assert!(under_way.is_empty(), "messages that nobody receives: {under_way:?}");
    Executed { ends_ns: now_ns, left_ns }
}

fn event_of(trace: &Trace, tag: u64) -> Option<&EventRow> {
    trace.events.get(usize::try_from(tag).ok()?)
}

/// The begin and end of the job with the largest shuffle.
fn job_ns(trace: &Trace) -> (u64, u64) {
    let job = trace.jobs.iter().max_by_key(|job| job.shuffle_bytes).unwrap();
    let nearest = |name: &str, at_ns: u64| {
        let of_name = trace.events.iter().filter(|event| event.name == name);
        of_name.min_by_key(|event| event.recorded_ns.abs_diff(at_ns)).unwrap().recorded_ns
    };
    (nearest("job.submit", job.submit_ns), nearest("job.finish", job.finish_ns))
}

#[test]
fn on_the_recorded_network_the_job_takes_its_time() {
    for capture in ["encrypted", "wordcount", "terasort"] {
        let trace = golden(capture);
        let folder = tempfile::tempdir().unwrap();
        let written = dimemas(&trace, None, &folder.path().join("job")).unwrap();
        let tasks = read(&fs::read_to_string(folder.path().join("job.dim")).unwrap());
        assert_eq!(tasks.len() as u64, written.tasks);
        let (submit_ns, finish_ns) = job_ns(&trace);
        let job_ns = finish_ns - submit_ns;
        // A message arrives when it did: whatever held it back is of the network.
        let recorded = |tag: u64, at_ns: u64| {
            event_of(&trace, tag).map_or(at_ns, |event| at_ns.max(event.recorded_delivered_ns - submit_ns))
        };
        let executed = execute(&tasks, recorded);
        let latest_ns = |executed: &Executed| {
            let late = executed.left_ns.iter().filter_map(|(tag, left_ns)| {
                let event = event_of(&trace, *tag)?;
                Some((submit_ns + left_ns).saturating_sub(event.recorded_ns))
            });
            late.max().unwrap()
        };
        let share = |executed: &Executed| *executed.ends_ns.iter().max().unwrap() as f64 / job_ns as f64;
        println!("{capture}: {} of the recorded time", share(&executed));
        assert!((0.99..=1.01).contains(&share(&executed)), "{capture}: {}", share(&executed));
        // As long under way as it was since it was sent: only what a full buffer held back at its sender is missing.
        let way = |tag: u64, at_ns: u64| {
            at_ns + event_of(&trace, tag).map_or(0, |event| event.recorded_delivered_ns - event.recorded_ns)
        };
        let with_ways = execute(&tasks, way);
        println!("{capture}: {} with the recorded ways", share(&with_ways));
        // A lane does one thing after the other, where the process could do the next before.
        println!("{capture}: at most {} ns later", latest_ns(&with_ways));
        assert!(latest_ns(&with_ways) < job_ns / 100, "{capture}");
        assert!((if capture == "terasort" { 0.6 } else { 0.998 }..=1.001).contains(&share(&with_ways)), "{capture}");
        // Slower ways make it longer.
        let slower = execute(&tasks, |tag, at_ns| way(tag, at_ns) + 100_000_000);
        assert!(share(&slower) > share(&with_ways), "{capture}");
    }
}

#[test]
fn its_messages_are_those_that_the_end_of_the_job_waits_for() {
    let trace = golden("terasort");
    let folder = tempfile::tempdir().unwrap();
    let written = dimemas(&trace, None, &folder.path().join("job")).unwrap();
    let tasks = read(&fs::read_to_string(folder.path().join("job.dim")).unwrap());
    let (mut messages, mut bytes, mut bursts) = (0, 0, 0);
    for record in tasks.iter().flatten() {
        match *record {
            Record::Send { bytes: sent, tag, .. } => {
                let event = event_of(&trace, tag);
                assert_eq!(sent, event.map_or(0, |event| event.bytes));
                messages += u64::from(event.is_some());
                bytes += sent;
            }
            Record::Burst { ns } => bursts += u64::from(ns > 0),
            Record::Receive { .. } => {}
        }
    }
    assert_eq!((messages, bytes, bursts), (written.messages, written.bytes, written.bursts));
    // What GOAL says of it, but for what a process sends to itself.
    let goal = export::goal(&trace, None, &folder.path().join("job.goal")).unwrap();
    assert_eq!(goal.left_out, written.left_out);
    assert!(goal.messages <= messages && goal.bytes <= bytes, "{goal:?} {written:?}");
}

#[test]
fn each_task_is_on_a_node_that_stands_for_its_host_in_its_rack() {
    let trace = golden("terasort");
    let folder = tempfile::tempdir().unwrap();
    let written = dimemas(&trace, None, &folder.path().join("job")).unwrap();
    let file = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let per_rack = written.nodes / written.racks;
    let mut racks: BTreeMap<u64, String> = BTreeMap::new();
    let mut nodes = Vec::new();
    for line in file("job.hosts").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let node = number::<u64>(words[0]);
        assert!(node < written.nodes && !nodes.contains(&node), "{line}");
        nodes.push(node);
        assert_eq!(*racks.entry(node / per_rack).or_insert_with(|| words[2].to_owned()), words[2], "{line}");
        let rack = &trace.hosts.iter().find(|host| host.name == words[1]).unwrap().rack;
        assert_eq!(if rack.is_empty() { "unknown" } else { rack }, words[2]);
    }
    assert_eq!((nodes.len(), racks.len() as u64), (trace.hosts.len(), written.racks));
    let tasks = file("job.tasks");
    for (task, line) in tasks.lines().enumerate() {
        let (of, node) = line.split_once(' ').unwrap();
        assert_eq!(number::<usize>(of), task);
        assert!(nodes.contains(&number(node)), "{line}");
    }
    assert_eq!(tasks.lines().count() as u64, written.tasks);
    let tasks = written.tasks;
    assert!(file("job.cfg").contains(&format!("{{\"\", 0, \"\", {tasks}, 1192.1, 0, 1}};;")));
    assert!(file("job.cfg").contains("{\"job.dim\", \"1 TASKS_PER_NODE\"};;"));
}
