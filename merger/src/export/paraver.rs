//! Paraver: `.prv` (records), `.pcf` (labels and colours), `.row` (names of the rows).
//!
//! A node is a host, a task a Hadoop process (with one thread and one CPU of its own on its node, so that rows of CPUs
//! do not overlap), a communication a message between two of them. States tell when a process worked on a message or a
//! task was in one of its phases (running), and when it waited for an answer. Events tell phases of tasks, methods
//! served and called, and jobs. Times are nanoseconds since the trace's start.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use chrono::DateTime;
use trace::ids::ProcessId;
use trace::rows::{MessageKind, ProcessRow, TaskKind, Trace};

use super::states::{Interval, State, flatten};

/// Most threads that a standard build of Paraver takes.
const MAX_THREADS: usize = 65_535;

/// Event types. Below 2^31, so that they can have labels; the range of 60 million is Extrae's for users' own events.
mod event {
    pub const PHASE: u32 = 60_000_001;
    pub const SERVED: u32 = 60_000_002;
    pub const CALLED: u32 = 60_000_003;
    pub const BLOCK: u32 = 60_000_004;
    pub const JOB: u32 = 60_000_005;
}

/// Why a trace could not be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A file cannot be written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// File.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// Paraver could not open it.
    #[error("the trace has {found} Hadoop processes, Paraver opens at most {MAX_THREADS}")]
    TooManyProcesses {
        /// Processes.
        found: usize,
    },
    /// There is nothing to show.
    #[error("the trace has no Hadoop process; was the capture made without owners (dumpingd, ss, Java agent)?")]
    NoProcesses,
}

/// Writes `OUT.prv`, `OUT.pcf` and `OUT.row`.
///
/// # Errors
/// If the trace has no Hadoop process or too many of them, or a file cannot be written.
pub fn paraver(trace: &Trace, out: &Path) -> Result<(), ExportError> {
    let places = Places::new(trace)?;
    let mut labels = Labels::default();
    let records = records(trace, &places, &mut labels);
    write(&with_extension(out, "prv"), |file| {
        writeln!(file, "{}", header(trace, &places, &records))?;
        records.iter().try_for_each(|record| writeln!(file, "{}", record.line))
    })?;
    write(&with_extension(out, "pcf"), |file| file.write_all(configuration(&labels).as_bytes()))?;
    write(&with_extension(out, "row"), |file| file.write_all(rows(trace, &places).as_bytes()))
}

/// "run" becomes "run.prv", and "run.prv" stays so; "run.1" becomes "run.1.prv".
fn with_extension(out: &Path, extension: &str) -> PathBuf {
    let known = out.extension().is_some_and(|own| own == "prv" || own == "pcf" || own == "row");
    if known {
        return out.with_extension(extension);
    }
    let mut name = out.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

fn write(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<(), ExportError> {
    let failed = |source| ExportError::Io { path: path.into(), source };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut file = BufWriter::new(File::create(path).map_err(failed)?);
    fill(&mut file).and_then(|()| file.flush()).map_err(failed)
}

/// Where each process stands: its number as a task and its CPU, from 1, grouped by node.
struct Places<'a> {
    start_ns: u64,
    processes: Vec<&'a ProcessRow>,
    cpus: Vec<usize>,
    of: BTreeMap<ProcessId, (usize, usize)>,
}

impl<'a> Places<'a> {
    fn new(trace: &'a Trace) -> Result<Self, ExportError> {
        let mut processes: Vec<&ProcessRow> = trace.processes.iter().filter(|process| process.hadoop).collect();
        if processes.is_empty() {
            return Err(ExportError::NoProcesses);
        }
        if processes.len() > MAX_THREADS {
            return Err(ExportError::TooManyProcesses { found: processes.len() });
        }
        processes.sort_by_key(|process| (process.host, process.first_seen_ns, process.process));
        let cpus: Vec<usize> = trace
            .hosts
            .iter()
            .map(|host| processes.iter().filter(|process| process.host == host.host).count().max(1))
            .collect();
        let mut of = BTreeMap::new();
        let mut task = 0;
        let mut cpu = 0;
        for (host, count) in trace.hosts.iter().zip(&cpus) {
            let here = processes.iter().filter(|process| process.host == host.host);
            for (place, process) in here.enumerate() {
                task += 1;
                of.insert(process.process, (task, cpu + place + 1));
            }
            cpu += count;
        }
        Ok(Self { start_ns: trace.manifest.start_ns, processes, cpus, of })
    }

    fn time(&self, ns: u64) -> u64 {
        ns.saturating_sub(self.start_ns)
    }

    /// `cpu:appl:task:thread` of a process.
    fn object(&self, process: ProcessId) -> Option<String> {
        let (task, cpu) = self.of.get(&process)?;
        Some(format!("{cpu}:1:{task}:1"))
    }
}

/// One line, with what it is ordered by: time, then states before events before communications.
struct Record {
    time: u64,
    end: u64,
    kind: u8,
    line: String,
}

/// Names of event values, by event type.
#[derive(Default)]
struct Labels {
    values: BTreeMap<u32, BTreeMap<String, u32>>,
}

impl Labels {
    /// The number of a name, from 1: 0 means the end.
    fn value(&mut self, kind: u32, name: &str) -> u32 {
        let values = self.values.entry(kind).or_default();
        let next = u32::try_from(values.len()).unwrap_or(u32::MAX - 1) + 1;
        *values.entry(name.to_owned()).or_insert(next)
    }
}

fn records(trace: &Trace, places: &Places<'_>, labels: &mut Labels) -> Vec<Record> {
    let mut records = Vec::new();
    states(trace, places, &mut records);
    events(trace, places, labels, &mut records);
    communications(trace, places, &mut records);
    records.sort_by(|a, b| (a.time, a.kind, &a.line).cmp(&(b.time, b.kind, &b.line)));
    records
}

fn states(trace: &Trace, places: &Places<'_>, records: &mut Vec<Record>) {
    let mut intervals: BTreeMap<ProcessId, Vec<Interval>> = BTreeMap::new();
    for process in &places.processes {
        let lived = Interval::new(process.first_seen_ns, process.last_seen_ns, State::Idle);
        intervals.entry(process.process).or_default().push(lived);
    }
    let mut add = |process: ProcessId, interval: Interval| {
        if let Some(known) = intervals.get_mut(&process) {
            known.push(interval);
        }
    };
    for span in &trace.spans {
        let state = match span.kind.as_str() {
            "call" | "fetch" | "block-read" => State::Waiting,
            _ => State::Running,
        };
        add(span.process, Interval::new(span.begin_ns, span.end_ns, state));
    }
    for task in &trace.tasks {
        if let Some(process) = task.process {
            add(process, Interval::new(task.start_ns, task.finish_ns, State::Running));
        }
    }
    for (process, intervals) in intervals {
        let Some(object) = places.object(process) else { continue };
        for interval in flatten(intervals) {
            let (begin, end) = (places.time(interval.begin), places.time(interval.end));
            if end > begin {
                let line = format!("1:{object}:{begin}:{end}:{}", interval.state.number());
                records.push(Record { time: begin, end, kind: 1, line });
            }
        }
    }
}

fn events(trace: &Trace, places: &Places<'_>, labels: &mut Labels, records: &mut Vec<Record>) {
    let mut add = |process: ProcessId, at: u64, kind: u32, value: u32| {
        if let Some(object) = places.object(process) {
            let time = places.time(at);
            records.push(Record { time, end: time, kind: 2, line: format!("2:{object}:{time}:{kind}:{value}") });
        }
    };
    for span in &trace.spans {
        let kind = match span.kind.as_str() {
            "rpc" => event::SERVED,
            "call" => event::CALLED,
            _ => event::BLOCK,
        };
        let name = if kind == event::BLOCK { &span.kind } else { &span.name };
        add(span.process, span.begin_ns, kind, labels.value(kind, name));
        add(span.process, span.end_ns, kind, 0);
    }
    for task in &trace.tasks {
        let Some(process) = task.process else { continue };
        let mut phase = |at: u64, name: &str| add(process, at, event::PHASE, labels.value(event::PHASE, name));
        match (task.kind, task.shuffle_end_ns) {
            (TaskKind::Reduce, Some(shuffle_end)) => {
                phase(task.start_ns, "shuffle");
                phase(shuffle_end, "sort");
                phase(task.sort_end_ns.unwrap_or(shuffle_end), "reduce");
            }
            (kind, _) => phase(task.start_ns, kind.as_str()),
        }
        add(process, task.finish_ns, event::PHASE, 0);
    }
    for mark in trace.events.iter().filter(|event| event.name == "job.submit" || event.name == "job.finish") {
        let Some(process) = mark.process else { continue };
        let value = if mark.name == "job.submit" { labels.value(event::JOB, "job") } else { 0 };
        add(process, mark.recorded_ns, event::JOB, value);
    }
}

fn communications(trace: &Trace, places: &Places<'_>, records: &mut Vec<Record>) {
    for message in &trace.messages {
        let Some(connection) = trace.connections.get(message.connection.index()) else { continue };
        let ends = (connection.client_process, connection.server_process);
        let (Some(client), Some(server)) = ends else { continue };
        let (from, to) = if message.from_client { (client, server) } else { (server, client) };
        let (Some(from), Some(to)) = (places.object(from), places.object(to)) else { continue };
        let sent = places.time(message.sent_ns);
        let received = places.time(message.delivered_ns).max(sent);
        let (size, tag) = (message.bytes, tag(message.kind));
        let line = format!("3:{from}:{sent}:{sent}:{to}:{received}:{received}:{size}:{tag}");
        records.push(Record { time: sent, end: received, kind: 3, line });
    }
}

/// A message's kind as its place in the list of kinds, from 0.
fn tag(kind: MessageKind) -> usize {
    MessageKind::ALL.iter().position(|other| *other == kind).unwrap_or(0)
}

fn header(trace: &Trace, places: &Places<'_>, records: &[Record]) -> String {
    let end = records.iter().map(|record| record.end).max().unwrap_or(0);
    let end = end.max(places.time(trace.manifest.end_ns));
    let started = i64::try_from(places.start_ns).unwrap_or(0);
    let date = DateTime::from_timestamp_nanos(started).format("%d/%m/%y at %H:%M");
    let cpus: Vec<String> = places.cpus.iter().map(ToString::to_string).collect();
    let tasks: Vec<String> = places
        .processes
        .iter()
        .map(|process| format!("1:{}", trace.hosts.iter().position(|host| host.host == process.host).unwrap_or(0) + 1))
        .collect();
    format!("#Paraver ({date}):{end}_ns:{}({}):1:{}({})", cpus.len(), cpus.join(","), tasks.len(), tasks.join(","))
}

fn configuration(labels: &Labels) -> String {
    let mut text = String::from(
        "DEFAULT_OPTIONS\n\nLEVEL               THREAD\nUNITS               NANOSEC\nLOOK_BACK           100\n\
         SPEED               1\nFLAG_ICONS          ENABLED\nNUM_OF_STATE_COLORS 1000\nYMAX_SCALE          37\n\n\n\
         DEFAULT_SEMANTIC\n\nTHREAD_FUNC         State As Is\n\n\nSTATES\n",
    );
    for state in State::ALL {
        let _ = writeln!(text, "{}    {}", state.number(), state.name());
    }
    text.push_str("\n\nSTATES_COLOR\n");
    for state in State::ALL {
        let [red, green, blue] = state.colour();
        let _ = writeln!(text, "{}    {{{red},{green},{blue}}}", state.number());
    }
    let names = [
        (event::PHASE, "Phase of a task"),
        (event::SERVED, "RPC served"),
        (event::CALLED, "RPC called"),
        (event::BLOCK, "Block or map output"),
        (event::JOB, "Job"),
    ];
    for (kind, name) in names {
        let _ = write!(text, "\n\nEVENT_TYPE\n0    {kind}    {name}\nVALUES\n0      End\n");
        let mut values: Vec<_> = labels.values.get(&kind).into_iter().flatten().collect();
        values.sort_by_key(|(_, value)| **value);
        for (name, value) in values {
            let _ = writeln!(text, "{value}      {}", one_line(name));
        }
    }
    text
}

fn rows(trace: &Trace, places: &Places<'_>) -> String {
    let names: Vec<String> = places
        .processes
        .iter()
        .map(|process| {
            let host = trace.hosts.get(process.host.index()).map_or("?", |host| host.name.as_str());
            let what = process.attempt.as_deref().unwrap_or(&process.role);
            format!("{host} {what} {}", process.pid)
        })
        .collect();
    let mut cpus = Vec::new();
    let mut next = names.iter();
    for (host, count) in trace.hosts.iter().zip(&places.cpus) {
        let here = places.processes.iter().filter(|process| process.host == host.host).count();
        cpus.extend(next.by_ref().take(here).cloned());
        cpus.extend((here..*count).map(|_| host.name.clone()));
    }
    let hosts: Vec<String> = trace.hosts.iter().map(|host| host.name.clone()).collect();
    let levels =
        [("CPU", &cpus), ("NODE", &hosts), ("THREAD", &names), ("TASK", &names), ("APPL", &vec!["Hadoop".to_owned()])];
    let mut text = String::new();
    for (level, labels) in levels {
        let _ = writeln!(text, "LEVEL {level} SIZE {}", labels.len());
        for label in labels {
            let _ = writeln!(text, "{}", one_line(label));
        }
        text.push('\n');
    }
    text
}

/// A name as a label. Names come from captures: a line break in one would begin a section or a label of its own.
fn one_line(name: &str) -> String {
    let plain = name.replace(|letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}'), " ");
    let plain = plain.trim();
    if plain.is_empty() { "unknown".to_owned() } else { plain.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_line_breaks_stay_one_label() {
        let mut labels = Labels::default();
        labels.value(event::SERVED, "a\r\nEVENT_TYPE\n0 1 forged");
        labels.value(event::SERVED, "\n");
        let text = configuration(&labels);
        assert_eq!(text.lines().filter(|line| *line == "EVENT_TYPE").count(), 5);
        assert!(text.lines().any(|line| line == "1      a  EVENT_TYPE 0 1 forged"), "{text}");
        assert!(text.lines().any(|line| line == "2      unknown"), "{text}");
    }
}
