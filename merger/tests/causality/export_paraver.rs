//! Paraver's files, read back by a strict reader that knows the format and not the writer.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

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
    /// Threads of each task.
    threads: Vec<u64>,
    states: Vec<(Row, u64, u64, u64)>,
    events: Vec<(Row, u64, u64, i64)>,
    communications: Vec<(Row, u64, Row, u64, i64, i64)>,
}

/// Labels of event values by type.
type Labels = HashMap<u64, HashMap<i64, String>>;

/// Task and thread, from 1.
type Row = (u64, u64);

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
    let (threads, node_of_task): (Vec<u64>, Vec<usize>) = tasks
        .split(',')
        .map(|task| {
            let (threads, node) = task.split_once(':').unwrap();
            let node = number(node) as usize;
            assert!((1..=cpus.len()).contains(&node), "node {node}");
            (number(threads), node)
        })
        .unzip();
    assert_eq!(number(count) as usize, node_of_task.len(), "number of tasks");
    let mut node_of_cpu = HashMap::new();
    for (node, count) in cpus.iter().enumerate() {
        for _ in 0..*count {
            node_of_cpu.insert(node_of_cpu.len() as u64 + 1, node + 1);
        }
    }
    let mut prv = Prv {
        end: number(end),
        node_of_cpu,
        node_of_task,
        threads,
        states: vec![],
        events: vec![],
        communications: vec![],
    };
    let mut thread_of_cpu = HashMap::new();
    let mut last = 0;
    let mut free_from = HashMap::new();
    for line in lines {
        let fields: Vec<&str> = line.split(':').collect();
        let mut object = |at: usize| {
            let [cpu, appl, task, thread] = [0, 1, 2, 3].map(|place| number(fields[at + place]));
            assert_eq!(appl, 1, "{line}");
            let node = *prv.node_of_task.get(task as usize - 1).unwrap_or_else(|| panic!("no task {task}: {line}"));
            assert!((1..=prv.threads[task as usize - 1]).contains(&thread), "no thread {thread} in the task: {line}");
            assert!(prv.node_of_cpu.get(&cpu) == Some(&node), "cpu {cpu} is not on node {node}: {line}");
            let row = (task, thread);
            assert_eq!(*thread_of_cpu.entry(cpu).or_insert(row), row, "two threads on one CPU: {line}");
            row
        };
        let time = match fields[0] {
            "1" => {
                assert_eq!(fields.len(), 8, "{line}");
                let (row, begin, end, state) = (object(1), number(fields[5]), number(fields[6]), number(fields[7]));
                assert!(begin < end && end <= prv.end, "{line}");
                assert!([0, 1, 2, 3].contains(&state), "{line}");
                let free = free_from.insert(row, end).unwrap_or(0);
                assert_eq!(begin, free, "states of one thread overlap or leave a gap: {line}");
                prv.states.push((row, begin, end, state));
                begin
            }
            "2" => {
                assert!(fields.len() >= 8 && fields.len().is_multiple_of(2), "{line}");
                let (row, time) = (object(1), number(fields[5]));
                for pair in fields[6..].chunks(2) {
                    let kind: u32 = pair[0].parse().unwrap();
                    prv.events.push((row, time, u64::from(kind), pair[1].parse().unwrap()));
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
    let rows: u64 = prv.threads.iter().sum();
    assert_eq!(free_from.len() as u64, rows, "each thread has states");
    assert!(free_from.values().all(|end| *end == prv.end), "to the trace's end");
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
fn read_pcf(text: &str) -> Labels {
    for section in ["DEFAULT_OPTIONS", "DEFAULT_SEMANTIC", "STATES", "STATES_COLOR", "EVENT_TYPE", "VALUES"] {
        assert!(text.lines().any(|line| line == section), "section {section}");
    }
    let mut types = HashMap::new();
    for part in text.split("EVENT_TYPE\n").skip(1) {
        let (head, values) = part.split_once("VALUES\n").unwrap_or((part, ""));
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
        connections: inferred.joined.connections.rows().collect(),
        limits: Vec::new(),
        messages: inferred.joined.messages.iter().map(Into::into).collect(),
        spans: inferred.joined.spans.iter().map(Into::into).collect(),
        steps: inferred.joined.steps,
        events: inferred.causal.events,
        dependencies: inferred.causal.dependencies,
        timers: inferred.causal.timers,
        tasks: vec![reduce],
        jobs: Vec::new(),
    }
}

/// All three files of an export, read back.
fn exported(trace: &Trace) -> (Prv, HashMap<String, Vec<String>>, Labels) {
    let folder = tempfile::tempdir().unwrap();
    paraver(trace, &folder.path().join("run")).unwrap();
    let text = |extension: &str| fs::read_to_string(folder.path().join(format!("run.{extension}"))).unwrap();
    (read_prv(&text("prv")), read_row(&text("row")), read_pcf(&text("pcf")))
}

/// Event types of what threads do, by kind of span; `PHASE` is that of tasks.
const SPANS: [(&str, u64); 7] = [
    ("rpc", 60_000_002),
    ("call", 60_000_003),
    ("block", 60_000_004),
    ("block-read", 60_000_006),
    ("block-write", 60_000_007),
    ("shuffle", 60_000_008),
    ("fetch", 60_000_009),
];
const PHASE: u64 = 60_000_001;

#[test]
fn what_is_written_is_valid_and_complete() {
    let trace = trace_of_two_hosts();
    let (prv, rows, labels) = exported(&trace);
    assert_eq!(prv.end, 949 * MS);
    assert_eq!(prv.node_of_task, [1, 2], "Hadoop's processes, on their hosts; the host without any is a node too");
    let lanes = prv.threads.iter().sum::<u64>() as usize;
    assert_eq!(prv.node_of_cpu.len(), lanes + 1);
    assert_eq!(prv.communications.len(), 20, "messages between Hadoop's processes, both ways, and no others");
    let (from, sent, to, received, size, tag) = prv.communications[0];
    assert_eq!((from.0, sent, to.0, received, size), (1, 9 * MS, 2, 9 * MS + crate::scenario::WAY, 200));
    assert_eq!(labels[&60_000_012][&tag], "rpc-request", "a communication's tag is its kind");
    assert_eq!(rows["NODE"], ["w1", "w2", "idle"]);
    for (level, count) in [("CPU", lanes + 1), ("THREAD", lanes), ("TASK", 2), ("APPL", 1)] {
        assert_eq!(rows[level].len(), count, "level {level}");
    }
    for (_, _, kind, value) in &prv.events {
        assert!(
            labels[kind].is_empty() || labels[kind].contains_key(value),
            "value {value} of event type {kind} has a label"
        );
    }
    let phases: Vec<(u64, &str)> = prv
        .events
        .iter()
        .filter(|(row, _, kind, value)| *row == (1, 1) && *kind == PHASE && *value != 0)
        .map(|(_, time, kind, value)| (*time, labels[kind][value].as_str()))
        .collect();
    assert_eq!(phases, [(9 * MS, "shuffle"), (99 * MS, "sort"), (119 * MS, "reduce")]);
    let in_state = |state: u64| -> u64 {
        prv.states.iter().filter(|known| known.0 == (1, 1) && known.3 == state).map(|known| known.2 - known.1).sum()
    };
    let later = trace.spans.iter().filter(|span| span.kind == "call" && span.begin_ns > 100 * MS);
    let called: u64 = later.map(|span| span.end_ns - span.begin_ns).sum();
    assert!(called > 0);
    assert_eq!(in_state(3), 90 * MS + called, "the main thread waits while others shuffle, and for answers");
    assert_eq!(in_state(1), 200 * MS - called, "else it works");
    assert_eq!(in_state(2), 50 * MS, "its process ended before the trace");
}

/// What a row's own events say of it: how long which kind of activity lasted, and its state meanwhile.
#[derive(Default, Debug, PartialEq)]
struct Sums {
    /// Number and time by event type.
    activities: HashMap<u64, (u64, u64)>,
    /// Time by state.
    states: HashMap<u64, u64>,
}

/// Follows the events of each row, and adds up by task.
fn sums_of_events(prv: &Prv, labels: &Labels) -> HashMap<u64, Sums> {
    let mut sums: HashMap<u64, Sums> = HashMap::new();
    let mut open: HashMap<Row, Vec<(u64, u64, u64)>> = HashMap::new();
    let mut since: HashMap<Row, u64> = HashMap::new();
    for &(row, time, kind, value) in &prv.events {
        if kind != PHASE && SPANS.iter().all(|(_, of)| *of != kind) {
            continue;
        }
        let (sums, open) = (sums.entry(row.0).or_default(), open.entry(row).or_default());
        if let Some((_, state, _)) = open.last() {
            *sums.states.entry(*state).or_default() += time - since[&row];
        }
        since.insert(row, time);
        if value == 0 {
            let (of, _, begin) = open.pop().expect("what ends has begun");
            assert_eq!(of, kind, "the inner ends before the outer");
            let sum = sums.activities.entry(kind).or_default();
            *sum = (sum.0 + 1, sum.1 + time - begin);
        } else {
            assert!(open.iter().all(|(of, ..)| *of != kind), "a second activity of one type would close the first");
            let waits = [60_000_003, 60_000_006, 60_000_009].contains(&kind)
                || kind == PHASE && labels[&kind][&value] == "shuffle";
            open.push((kind, if waits { 3 } else { 1 }, time));
        }
    }
    assert!(open.values().all(Vec::is_empty), "what begins ends");
    sums
}

#[test]
fn sums_of_a_real_job_are_those_of_its_trace() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
    for capture in ["terasort", "wordcount", "encrypted"].map(|name| golden.join(name)) {
        let trace =
            merger::built_trace::trace_of(std::slice::from_ref(&capture), &merger::build::Silent).unwrap().trace;
        let (prv, rows, labels) = exported(&trace);
        let sums = sums_of_events(&prv, &labels);
        let start = trace.manifest.start_ns;
        let lasted = |begin: u64, end: u64| end.max(begin).saturating_sub(start) - begin.saturating_sub(start);
        let mut expected: HashMap<u64, HashMap<u64, (u64, u64)>> = HashMap::new();
        let task_of: HashMap<_, u64> = (1..).zip(&rows["TASK"]).map(|(task, name)| (name.clone(), task)).collect();
        let mut expect = |process: trace::ids::ProcessId, kind: u64, begin: u64, end: u64| {
            let row = &trace.processes[process.index()];
            let what = row.attempt.as_ref().unwrap_or(&row.role);
            let name = format!("{} {what} {}", trace.hosts[row.host.index()].name, row.pid);
            let sum = expected.entry(task_of[&name]).or_default().entry(kind).or_default();
            *sum = (sum.0 + 1, sum.1 + lasted(begin, end));
        };
        for span in trace.spans.iter().filter(|span| trace.processes[span.process.index()].hadoop) {
            let kind = SPANS.iter().find(|(kind, _)| *kind == span.kind).unwrap().1;
            expect(span.process, kind, span.begin_ns, span.end_ns);
        }
        for task in &trace.tasks {
            let process = task.process.unwrap();
            let ends = [Some(task.start_ns), task.shuffle_end_ns, task.sort_end_ns, Some(task.finish_ns)];
            let ends: Vec<u64> = ends.into_iter().flatten().collect();
            ends.windows(2).for_each(|pair| expect(process, PHASE, pair[0], pair[1]));
        }
        for (task, expected) in &expected {
            assert_eq!(&sums[task].activities, expected, "{}: {}", capture.display(), rows["TASK"][*task as usize - 1]);
        }
        for (task, sums) in &sums {
            for state in [1, 3] {
                let shown: u64 = prv
                    .states
                    .iter()
                    .filter(|known| known.0.0 == *task && known.3 == state)
                    .map(|known| known.2 - known.1)
                    .sum();
                assert_eq!(shown, sums.states.get(&state).copied().unwrap_or(0), "{task}, state {state}");
            }
        }
        let bytes: u64 = trace.messages.iter().map(|message| message.bytes).sum();
        let shown: i64 = prv.communications.iter().map(|known| known.4).sum();
        assert!(shown as u64 <= bytes && shown as u64 > bytes / 2, "{shown} of {bytes}");
        let fetching: u64 = sums.values().filter_map(|sums| sums.activities.get(&60_000_009)).map(|sum| sum.1).sum();
        let waiting: u64 = sums.values().filter_map(|sums| sums.states.get(&3)).sum();
        assert!(waiting >= fetching, "who fetches is shown to wait: {waiting} of {fetching}");
    }
}

#[test]
fn each_view_names_an_event_type_with_a_label() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    paraver(&trace_of_two_hosts(), &out).unwrap();
    let labels = read_pcf(&fs::read_to_string(folder.path().join("run.pcf")).unwrap());
    let views = fs::read_dir(folder.path().join("run.views")).unwrap();
    let mut count = 0;
    for view in views {
        let path = view.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        // Lines cover all else: they have a view of their own.
        let draws_lines = text.contains("\nwindow_comm_lines_enabled true\n");
        assert_eq!(draws_lines, path.ends_with("messages.cfg"), "{}", path.display());
        assert!(text.starts_with("#ParaverCFG\nConfigFile.Version: 3.4\nConfigFile.NumWindows: 1\n"), "{text}");
        for line in text.lines().filter_map(|line| line.strip_prefix("window_filter_module evt_type 1 ")) {
            assert!(labels.contains_key(&number(line)), "{line}");
        }
        count += 1;
    }
    assert_eq!(count, 8);
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
