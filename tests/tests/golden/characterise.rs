//! What `merger characterise` says of the golden captures: the sums of `merger check` to the byte, what a slow count of the
//! tables gives, and the jobs' own counters.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hadoptic_tests::{golden, run, run_json};
use serde_json::Value;
use trace::rows::{ConnectionRow, MessageKind, MessageRow, Trace};
use trace_tables::read_trace;

const CAPTURES: [&str; 3] = ["terasort", "wordcount", "encrypted"];

struct Characterised {
    /// Holds `trace` and `out`.
    folder: tempfile::TempDir,
    found: Value,
    check: Value,
    trace: Trace,
}

impl Characterised {
    fn of(capture: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let trace = path.to_str().unwrap();
        let built = run("merger", &["build", golden(capture).to_str().unwrap(), "--out", trace]).unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let out = folder.path().join("out");
        let found = run_json("merger", &["characterise", trace, "--out", out.to_str().unwrap()]).unwrap();
        let check = run_json("merger", &["check", trace]).unwrap();
        Self { found, check, trace: read_trace(&path).unwrap(), folder }
    }

    fn rows(&self, table: &str) -> &[Value] {
        self.found[table].as_array().unwrap()
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }
}

fn number(row: &Value, column: &str) -> u64 {
    row[column].as_u64().unwrap_or_else(|| panic!("{column}: {row}"))
}

fn sum(rows: &[Value], columns: &[&str]) -> u64 {
    rows.iter().flat_map(|row| columns.iter().map(|column| number(row, column))).sum()
}

/// Sums by the words of a column.
fn by(rows: &[Value], column: &str, sum: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for row in rows {
        *sums.entry(row[column].as_str().unwrap().to_owned()).or_default() += number(row, sum);
    }
    sums
}

fn as_map(value: &Value) -> BTreeMap<String, u64> {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
fn sums_are_those_of_the_check_to_the_byte() {
    for capture in CAPTURES {
        let one = Characterised::of(capture);
        let (totals, detail) = (&one.found["totals"], &one.check["detail"]);
        assert_eq!(totals["payload_bytes"], one.check["payload_bytes"], "{capture}");
        assert_eq!(totals["other_bytes"], detail["other_bytes"], "{capture}");
        assert_eq!(totals["connections"], detail["counted_connections"], "{capture}");
        assert_eq!(by(one.rows("kinds"), "kind", "bytes"), as_map(&detail["bytes_by_kind"]), "{capture}");
        assert_eq!(by(one.rows("kinds"), "kind", "messages"), as_map(&detail["messages_by_kind"]), "{capture}");
        assert_eq!(by(one.rows("protocols"), "protocol", "bytes"), as_map(&detail["bytes_by_protocol"]), "{capture}");

        let payload = number(totals, "payload_bytes");
        assert_eq!(sum(one.rows("roles"), &["bytes"]), payload, "{capture}");
        assert_eq!(sum(one.rows("locality"), &["bytes"]), payload, "{capture}");
        let planes = ["control_bytes", "data_bytes", "unknown_bytes"];
        let in_messages = sum(std::slice::from_ref(totals), &planes);
        assert_eq!(in_messages, as_map(&detail["bytes_by_kind"]).values().sum::<u64>(), "{capture}");
        for table in ["roles", "phases", "series"] {
            assert_eq!(sum(one.rows(table), &planes), in_messages, "{table} of {capture}");
        }
        for plane in planes {
            assert_eq!(sum(one.rows("phases"), &[plane]), number(totals, plane), "{plane} of {capture}");
        }
        assert_eq!(sum(one.rows("phases"), &["messages"]), number(totals, "messages"), "{capture}");
    }
}

/// Messages and connections of a trace that count, the slow way.
fn counted(trace: &Trace) -> impl Iterator<Item = (&MessageRow, &ConnectionRow)> {
    let process = |id: Option<trace::ids::ProcessId>| id.map(|id| &trace.processes[id.index()]);
    trace.messages.iter().filter_map(move |message| {
        let row = &trace.connections[message.connection.index()];
        let ends = [process(row.client_process), process(row.server_process)];
        let is_other = ends.iter().all(|end| end.is_some_and(|process| !process.hadoop));
        (!is_other).then_some((message, row))
    })
}

#[test]
fn roles_and_calls_are_what_a_slow_count_gives() {
    let one = Characterised::of("terasort");
    let trace = &one.trace;
    let role = |id: Option<trace::ids::ProcessId>| id.map_or("unknown", |id| trace.processes[id.index()].role.as_str());
    for row in one.rows("roles") {
        let of_row = counted(trace).filter(|(message, connection)| {
            let (client, server) = (role(connection.client_process), role(connection.server_process));
            let (from, to) = if message.from_client { (client, server) } else { (server, client) };
            row["from_role"] == from && row["to_role"] == to
        });
        let messages: Vec<&MessageRow> = of_row.map(|(message, _)| message).collect();
        assert_eq!(messages.len() as u64, number(row, "messages"), "{row}");
        let is_data =
            |message: &&MessageRow| matches!(message.kind, MessageKind::BlockData | MessageKind::ShuffleResponse);
        let data: u64 = messages.iter().copied().filter(|message| is_data(message)).map(|message| message.bytes).sum();
        assert_eq!(data, number(row, "data_bytes"), "{row}");
        // A rate over one interval is at least that over all of them.
        assert!(row["peak_bps"].as_f64().unwrap() >= 0.99 * row["mean_bps"].as_f64().unwrap(), "{row}");
    }
    let heartbeat = one.rows("calls").iter().find(|row| row["name"] == "nodeHeartbeat").unwrap();
    let requests: Vec<&MessageRow> = counted(trace)
        .map(|(message, _)| message)
        .filter(|message| message.kind == MessageKind::RpcRequest && message.name == "nodeHeartbeat")
        .collect();
    assert_eq!(number(heartbeat, "requests"), requests.len() as u64);
    let mut sizes: Vec<u64> = requests.iter().map(|message| message.bytes).collect();
    sizes.sort_unstable();
    assert_eq!(number(heartbeat, "request_p50_bytes"), sizes[sizes.len().div_ceil(2) - 1]);
    // NodeManagers beat each second (yarn.resourcemanager.nodemanagers.heartbeat-interval-ms).
    let gap_s = number(heartbeat, "gap_p50_ns") as f64 / 1e9;
    assert!((gap_s - 1.0).abs() < 0.05, "{gap_s}");
}

#[test]
fn a_shuffle_is_what_the_jobs_counter_says() {
    for capture in ["terasort", "wordcount"] {
        let one = Characterised::of(capture);
        let job = one.trace.jobs.iter().max_by_key(|job| job.shuffle_bytes).unwrap();
        let shuffle = one.rows("shuffles").iter().find(|row| row["job"] == job.id.as_str()).unwrap();
        assert_eq!(number(shuffle, "maps"), u64::from(job.maps), "{shuffle}");
        assert_eq!(number(shuffle, "reduces"), u64::from(job.reduces), "{shuffle}");
        let counter = job.shuffle_bytes.unwrap() as f64;
        let error = number(shuffle, "app_bytes") as f64 / counter - 1.0;
        assert!(error.abs() < 0.005, "{capture}: {error}");
        assert!(shuffle["reduce_skew"].as_f64().unwrap() >= 1.0, "{shuffle}");
    }
}

fn csv(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn files_hold_what_json_says() {
    let one = Characterised::of("wordcount");
    let out = one.out();
    let written: Value = serde_json::from_slice(&fs::read(out.join("characteristics.json")).unwrap()).unwrap();
    assert_eq!(written, one.found);
    for table in ["roles", "kinds", "phases", "series", "protocols", "locality", "fans", "sizes", "shuffles"] {
        let lines = csv(&out.join(format!("{table}.csv")));
        let rows = one.rows(table);
        assert_eq!(lines.len(), rows.len() + 1, "{table}");
        for (line, row) in lines[1..].iter().zip(rows) {
            for (column, cell) in lines[0].iter().zip(line) {
                let expected = match &row[column] {
                    Value::String(text) => text.clone(),
                    Value::Null => String::new(),
                    other if other.is_f64() => {
                        assert!(
                            (other.as_f64().unwrap() - cell.parse::<f64>().unwrap()).abs() < 1e-9,
                            "{column}: {row}"
                        );
                        continue;
                    }
                    other => other.to_string(),
                };
                assert_eq!(*cell, expected, "{table}: {column}");
            }
        }
        assert!(fs::metadata(out.join(format!("{table}.parquet"))).unwrap().len() > 0);
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(!page.contains("http://") && !page.contains("https://"), "it opens without a network");
    assert!(page.contains("DataNode") && page.contains("Elephants and mice"));
}

#[test]
fn names_of_a_capture_neither_steer_a_terminal_nor_leave_their_cell() {
    let folder = tempfile::tempdir().unwrap();
    let mut one = Characterised::of("wordcount");
    let name = "\u{1b}[2Jcall,\"<b>";
    let message = one.trace.messages.iter_mut().find(|message| message.kind == MessageKind::RpcRequest).unwrap();
    message.name = name.to_owned();
    // Large, so that it is among the rows that are shown.
    message.bytes += 1 << 32;
    let path = folder.path().join("trace");
    trace_tables::write_trace(&path, &one.trace).unwrap();
    let out = folder.path().join("out");
    let shown = run("merger", &["characterise", path.to_str().unwrap(), "--out", out.to_str().unwrap()]).unwrap();
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("[2Jcall") && !text.contains('\u{1b}'), "{text}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("[2Jcall,&quot;&lt;b&gt;") && !page.contains('\u{1b}'));
    let calls = fs::read_to_string(out.join("calls.csv")).unwrap();
    assert!(calls.contains("\"\u{1b}[2Jcall,\"\"<b>\""), "{calls}");
}

#[test]
fn absurd_numbers_of_a_damaged_trace_end_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut one = Characterised::of("wordcount");
    for row in one.trace.connections.iter_mut().step_by(3) {
        (row.client_bytes, row.server_bytes, row.last_ns) = (u64::MAX, u64::MAX, 0);
        (row.client_missing_bytes, row.server_missing_bytes) = (u64::MAX, u64::MAX);
        (row.client_retransmitted_bytes, row.server_retransmitted_bytes) = (u64::MAX, u64::MAX);
        (row.client_kernel_bytes, row.server_kernel_bytes) = (Some(u64::MAX), Some(0));
    }
    for (number, message) in one.trace.messages.iter_mut().enumerate().step_by(7) {
        (message.bytes, message.app_bytes, message.sent_end_ns) = (u64::MAX, u64::MAX, u64::MAX);
        (message.delivered_ns, message.sent_ns) = (0, if number % 2 == 0 { 0 } else { message.sent_ns });
    }
    let shuffled = one.trace.messages.iter_mut().filter(|message| message.kind == MessageKind::ShuffleResponse);
    shuffled.for_each(|message| (message.bytes, message.app_bytes) = (u64::MAX, u64::MAX));
    let path = folder.path().join("trace");
    let ends = |arguments: &[&str], code: i32| {
        let ended = run("merger", &[&[arguments[0], path.to_str().unwrap()], &arguments[1..]].concat()).unwrap();
        assert_eq!(ended.status.code(), Some(code), "{arguments:?}: {}", String::from_utf8_lossy(&ended.stderr));
        String::from_utf8(ended.stdout).unwrap()
    };
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    trace_tables::write_trace(&path, &one.trace).unwrap();
    // Sums end at the largest number; that something is wrong is said.
    let checked: Value = serde_json::from_str(&ends(&["check", "--json"], 1)).unwrap();
    assert_eq!((number(&checked, "payload_bytes"), number(&checked["detail"], "missing_bytes")), (u64::MAX, u64::MAX));
    assert_eq!(number(&checked["detail"]["volumes"], "shuffle_bytes"), u64::MAX);
    let written = ends(&["export", "--to", "coflow", "--out", out, "--json"], 0);
    assert_eq!(number(&serde_json::from_str(&written).unwrap(), "bytes"), u64::MAX);
    ends(&["export", "--to", "flows", "--out", out], 0);
    for job in &mut one.trace.jobs {
        (job.submit_ns, job.finish_ns) = (job.finish_ns, job.submit_ns);
    }
    trace_tables::write_trace(&path, &one.trace).unwrap();
    ends(&["check"], 1);
    fs::remove_file(out).unwrap();
    ends(&["characterise", "--out", out], 0);
    assert!(Path::new(out).join("report.html").is_file());
}

#[test]
fn what_is_no_trace_is_told() {
    let printed = run("merger", &["characterise", golden("wordcount").to_str().unwrap()]).unwrap();
    let stderr = String::from_utf8(printed.stderr).unwrap();
    assert_eq!(printed.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("is a capture") && stderr.contains("merger build"), "{stderr}");
    let one = Characterised::of("wordcount");
    let (capture, out) = (golden("wordcount"), one.folder.path().join("none"));
    let (capture, out) = (capture.to_str().unwrap(), out.to_str().unwrap());
    for (program, arguments) in [
        ("merger", ["export", capture, "--to", "goal", "--out", out].as_slice()),
        ("replay", &["run", "ideal", "--trace", capture, "--out", out]),
    ] {
        let printed = run(program, arguments).unwrap();
        let stderr = String::from_utf8(printed.stderr).unwrap();
        assert_eq!(printed.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("is a capture") && stderr.contains("merger build"), "{program}: {stderr}");
        assert!(!Path::new(out).exists(), "{program}");
    }
    let trace = one.folder.path().join("trace");
    let printed =
        run("merger", &["build", trace.to_str().unwrap(), "--out", one.folder.path().join("other").to_str().unwrap()])
            .unwrap();
    let stderr = String::from_utf8(printed.stderr).unwrap();
    assert_eq!(printed.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("it is a trace: merger check"), "{stderr}");
}

#[test]
fn ids_of_a_damaged_trace_that_lead_nowhere_end_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut one = Characterised::of("wordcount");
    let nowhere = trace::ids::ProcessId(u32::MAX);
    for row in one.trace.connections.iter_mut().step_by(3) {
        (row.client_process, row.server_process) = (Some(nowhere), Some(nowhere));
    }
    for row in one.trace.connections.iter_mut().skip(1).step_by(5) {
        row.connection = trace::ids::ConnectionId(u32::MAX);
    }
    for message in one.trace.messages.iter_mut().step_by(4) {
        message.connection = trace::ids::ConnectionId(u32::MAX);
    }
    let path = folder.path().join("trace");
    trace_tables::write_trace(&path, &one.trace).unwrap();
    let (trace, out) = (path.to_str().unwrap(), folder.path().join("out"));
    for arguments in [&["check", trace][..], &["characterise", trace, "--out", out.to_str().unwrap()]] {
        let ended = run("merger", arguments).unwrap();
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert!(matches!(ended.status.code(), Some(0 | 1)) && !stderr.contains("panicked"), "{arguments:?}: {stderr}");
    }
    // A job's name is a user's, and stays in its comment.
    let mut named = read_trace(&one.folder.path().join("trace")).unwrap();
    named.jobs.iter_mut().for_each(|job| job.name = "a\n[cluster]\nnodes = 0".to_owned());
    trace_tables::write_trace(&path, &named).unwrap();
    assert!(run("merger", &["characterise", trace, "--out", out.to_str().unwrap()]).unwrap().status.success());
    let job = fs::read_to_string(out.join("job.toml")).unwrap();
    assert!(
        job.starts_with("# The like of job_") && job.lines().next().unwrap().ends_with("(a [cluster] nodes = 0)."),
        "{job}"
    );
}

#[test]
fn a_job_of_which_nothing_is_learned_is_told() {
    let one = Characterised::of("terasort");
    let (trace, out) = (one.folder.path().join("trace"), one.folder.path().join("generated"));
    let (trace, path) = (trace.to_str().unwrap(), out.to_str().unwrap());
    let named = |job: &str| run("merger", &["characterise", trace, "--out", path, "--job", job]).unwrap();
    let learned = named(&job_named(&one, "TeraSort"));
    assert_eq!(learned.status.code(), Some(0), "{learned:?}");
    assert!(out.join("job.toml").exists());
    let generator = job_named(&one, "TeraGen");
    let printed = named(&generator);
    let stderr = String::from_utf8(printed.stderr).unwrap();
    assert_eq!(printed.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(&generator) && stderr.contains("job.toml: not written"), "{stderr}");
    assert!(out.join("report.html").exists() && !out.join("job.toml").exists());
}

fn job_named(of: &Characterised, name: &str) -> String {
    of.trace.jobs.iter().find(|job| job.name == name).unwrap().id.clone()
}
