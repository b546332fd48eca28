//! Paraver's files, read back by a strict reader that knows the format and not the writer.

use std::collections::HashMap;
use std::fs;

use crate::scenario::{MS, Scenario};
use merger::export::paraver;
use trace::ids::{HostId, JobId, TaskId};
use trace::manifest::TraceManifest;
use trace::rows::{MessageKind, TaskKind, TaskRow, Trace};

/// What a `.prv` file says of itself.
struct Prv {
    end: u64,
    /// Node of each CPU, from 1.
    node_of_cpu: HashMap<u64, usize>,
    /// Node of each task, from 1.
    node_of_task: Vec<usize>,
    states: Vec<(u64, u64, u64, u64)>,
    events: Vec<(u64, u64, u64, i64)>,
    communications: Vec<(u64, u64, u64, u64, i64, i64)>,
}

fn number(text: &str) -> u64 {
    assert!(!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()), "no plain number: {text:?}");
    text.parse().unwrap()
}

fn bracketed(text: &str) -> (&str, &str) {
    let (before, rest) = text.split_once('(').unwrap();
    (before, rest.strip_suffix(')').unwrap())
}

/// Reads a `.prv` file and refuses anything that Paraver's format does not allow.
fn read_prv(text: &str) -> Prv {
    let mut lines = text.lines();
    let header = lines.next().unwrap();
    let rest = header.strip_prefix("#Paraver (").expect("the header begins so");
    let (date, rest) = rest.split_once("):").unwrap();
    assert_eq!(date.len(), "21/11/26 at 00:55".len(), "date {date:?}");
    let (end, rest) = rest.split_once("_ns:").expect("nanoseconds");
    let (nodes, rest) = rest.split_once(":1:").expect("one application");
    let (count, cpus) = bracketed(nodes);
    let cpus: Vec<u64> = cpus.split(',').map(number).collect();
    assert_eq!(number(count) as usize, cpus.len(), "number of nodes");
    let (count, tasks) = bracketed(rest);
    let node_of_task: Vec<usize> = tasks
        .split(',')
        .map(|task| {
            let (threads, node) = task.split_once(':').unwrap();
            assert_eq!(threads, "1");
            let node = number(node) as usize;
            assert!((1..=cpus.len()).contains(&node), "node {node}");
            node
        })
        .collect();
    assert_eq!(number(count) as usize, node_of_task.len(), "number of tasks");
    let mut node_of_cpu = HashMap::new();
    for (node, count) in cpus.iter().enumerate() {
        for _ in 0..*count {
            node_of_cpu.insert(node_of_cpu.len() as u64 + 1, node + 1);
        }
    }
    let mut prv =
        Prv { end: number(end), node_of_cpu, node_of_task, states: vec![], events: vec![], communications: vec![] };
    let mut last = 0;
    let mut free_from = HashMap::new();
    for line in lines {
        let fields: Vec<&str> = line.split(':').collect();
        let object = |at: usize| {
            let [cpu, appl, task, thread] = [0, 1, 2, 3].map(|place| number(fields[at + place]));
            assert_eq!((appl, thread), (1, 1), "{line}");
            let node = *prv.node_of_task.get(task as usize - 1).unwrap_or_else(|| panic!("no task {task}: {line}"));
            assert!(cpu == 0 || prv.node_of_cpu.get(&cpu) == Some(&node), "cpu {cpu} is not on node {node}: {line}");
            task
        };
        let time = match fields[0] {
            "1" => {
                assert_eq!(fields.len(), 8, "{line}");
                let (task, begin, end, state) = (object(1), number(fields[5]), number(fields[6]), number(fields[7]));
                assert!(begin < end && end <= prv.end, "{line}");
                assert!([0, 1, 3].contains(&state), "{line}");
                let free = free_from.insert(task, end).unwrap_or(0);
                assert!(begin >= free, "states of one thread overlap: {line}");
                prv.states.push((task, begin, end, state));
                begin
            }
            "2" => {
                assert!(fields.len() >= 8 && fields.len().is_multiple_of(2), "{line}");
                let (task, time) = (object(1), number(fields[5]));
                for pair in fields[6..].chunks(2) {
                    let kind: u32 = pair[0].parse().unwrap();
                    prv.events.push((task, time, u64::from(kind), pair[1].parse().unwrap()));
                }
                assert!(time <= prv.end);
                time
            }
            "3" => {
                assert_eq!(fields.len(), 15, "{line}");
                let (from, logical_send, physical_send) = (object(1), number(fields[5]), number(fields[6]));
                let (to, logical_recv, physical_recv) = (object(7), number(fields[11]), number(fields[12]));
                let (size, tag): (i64, i64) = (fields[13].parse().unwrap(), fields[14].parse().unwrap());
                assert!(logical_send <= physical_send && physical_send <= physical_recv, "{line}");
                assert!(logical_recv <= physical_recv && physical_recv <= prv.end, "{line}");
                prv.communications.push((from, logical_send, to, physical_recv, size, tag));
                logical_send
            }
            other => panic!("record type {other}: {line}"),
        };
        assert!(time >= last, "out of order: {line}");
        last = time;
    }
    prv
}

/// Reads a `.row` file: labels by level.
fn read_row(text: &str) -> HashMap<String, Vec<String>> {
    let mut levels = HashMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!((words[0], words[2], words.len()), ("LEVEL", "SIZE", 4), "{line}");
        let labels: Vec<String> = lines.by_ref().take(number(words[3]) as usize).map(str::to_owned).collect();
        assert_eq!(labels.len(), number(words[3]) as usize);
        assert!(labels.iter().all(|label| !label.is_empty()));
        assert_eq!(lines.next(), Some(""), "an empty line ends a level");
        levels.insert(words[1].to_owned(), labels);
    }
    levels
}

/// Reads a `.pcf` file: labels of event values by type.
fn read_pcf(text: &str) -> HashMap<u64, HashMap<i64, String>> {
    for section in ["DEFAULT_OPTIONS", "DEFAULT_SEMANTIC", "STATES", "STATES_COLOR", "EVENT_TYPE", "VALUES"] {
        assert!(text.lines().any(|line| line == section), "section {section}");
    }
    let mut types = HashMap::new();
    for part in text.split("EVENT_TYPE\n").skip(1) {
        let (head, values) = part.split_once("VALUES\n").unwrap();
        let kind = number(head.split_whitespace().nth(1).unwrap());
        assert!(kind <= i32::MAX as u64, "labels are for types that fit an i32");
        let values = values.lines().filter(|line| !line.is_empty()).map(|line| {
            let (value, label) = line.split_once(' ').unwrap();
            (value.parse().unwrap(), label.trim().to_owned())
        });
        types.insert(kind, values.collect());
    }
    types
}

fn trace_of_two_hosts() -> Trace {
    let mut s = Scenario::default();
    let (a, b, _) = (s.host("w1"), s.host("w2"), s.host("idle"));
    let task = s.process(a, "YarnChild", (MS, 900 * MS));
    let master = s.process(b, "MRAppMaster", (MS, 950 * MS));
    let foreign = s.process(b, "sshd", (MS, 950 * MS));
    s.joined.processes[foreign.index()].hadoop = false;
    let line = s.connect(task, master, "rpc");
    for call in 0..10 {
        s.rpc(
            line,
            if call % 2 == 0 { "getTask" } else { "statusUpdate" },
            call,
            (10 + call as u64 * 20) * MS,
            MS,
            Some(1),
        );
    }
    let other = s.connect(foreign, master, "");
    s.message(other, true, MessageKind::Unknown, "", 0, 77, 40 * MS);
    let inferred = s.build();
    let reduce = TaskRow {
        task: TaskId(0),
        job: JobId(0),
        attempt: "attempt_1_0001_r_000000_0".into(),
        kind: TaskKind::Reduce,
        host: Some(HostId(0)),
        process: Some(task),
        start_ns: 10 * MS,
        shuffle_end_ns: Some(100 * MS),
        sort_end_ns: Some(120 * MS),
        finish_ns: 300 * MS,
        succeeded: true,
    };
    Trace {
        manifest: TraceManifest { version: 1, start_ns: MS, end_ns: 950 * MS, ..TraceManifest::default() },
        hosts: inferred.joined.hosts,
        processes: inferred.joined.processes,
        connections: inferred.joined.connections,
        messages: inferred.joined.messages,
        spans: inferred.joined.spans,
        events: inferred.causal.events,
        dependencies: inferred.causal.dependencies,
        timers: inferred.causal.timers,
        tasks: vec![reduce],
        jobs: Vec::new(),
    }
}

#[test]
fn what_is_written_is_valid_and_complete() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace_of_two_hosts();
    paraver(&trace, &folder.path().join("run")).unwrap();
    let text = |extension: &str| fs::read_to_string(folder.path().join(format!("run.{extension}"))).unwrap();
    let prv = read_prv(&text("prv"));
    let rows = read_row(&text("row"));
    let labels = read_pcf(&text("pcf"));

    assert_eq!(prv.end, 949 * MS);
    assert_eq!(prv.node_of_task, [1, 2], "Hadoop's processes, on their hosts; the host without any is a node too");
    assert_eq!(prv.node_of_cpu.len(), 3);
    assert_eq!(prv.communications.len(), 20, "messages between Hadoop's processes, both ways, and no others");
    let (from, sent, to, received, size, _) = prv.communications[0];
    assert_eq!((from, sent, to, received, size), (1, 9 * MS, 2, 9 * MS + crate::scenario::WAY, 200));
    assert_eq!(rows["NODE"], ["w1", "w2", "idle"]);
    for (level, count) in [("CPU", 3), ("THREAD", 2), ("TASK", 2), ("APPL", 1)] {
        assert_eq!(rows[level].len(), count, "level {level}");
    }
    for (_, _, kind, value) in &prv.events {
        assert!(labels[kind].contains_key(value), "value {value} of event type {kind} has a label");
    }
    let phases: Vec<(u64, &str)> = prv
        .events
        .iter()
        .filter(|(task, _, kind, _)| *task == 1 && labels[kind].values().any(|label| label == "shuffle"))
        .map(|(_, time, kind, value)| (*time, labels[kind][value].as_str()))
        .collect();
    assert_eq!(phases, [(9 * MS, "shuffle"), (99 * MS, "sort"), (119 * MS, "reduce"), (299 * MS, "End")]);
    let running: u64 =
        prv.states.iter().filter(|state| state.0 == 1 && state.3 == 1).map(|state| state.2 - state.1).sum();
    assert_eq!(running, 290 * MS, "the task ran from its start to its finish");
}

#[test]
fn a_trace_without_hadoop_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut trace = trace_of_two_hosts();
    trace.processes.iter_mut().for_each(|process| process.hadoop = false);
    let error = paraver(&trace, &folder.path().join("run")).unwrap_err().to_string();
    assert!(error.contains("no Hadoop process"), "{error}");
}

#[test]
fn the_file_name_may_end_in_prv() {
    let folder = tempfile::tempdir().unwrap();
    paraver(&trace_of_two_hosts(), &folder.path().join("deep/run.1.prv")).unwrap();
    for extension in ["prv", "pcf", "row"] {
        assert!(folder.path().join(format!("deep/run.1.{extension}")).is_file(), "{extension}");
    }
}
