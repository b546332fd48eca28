//! OpenTelemetry (OTLP): jobs, their tasks with the phases of reduces, and processing spans, as spans of distributed traces.
//!
//! A job is a trace. A resource is a process, its service a role. A message whose sender and receiver each have a span for it is a link from the
//! one to the other. Ids come from the trace alone.

mod ids;
mod schema;
mod tree;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;

use prost::Message as _;
use trace::ids::{MessageId, ProcessId};
use trace::rows::{JobRow, MessageRow, ProcessRow, SpanRow, TaskKind, TaskRow, Trace};

use self::ids::{Ids, Node, is_simulated};
use self::schema::{
    ExportTraceServiceRequest, InstrumentationScope, KeyValue, Link, Resource, ResourceSpans, ScopeSpans, Span,
    SpanKind, Status,
};
use self::tree::{Tree, end, kind};
use super::file::{ExportError, write};
use crate::sums::add;

/// Spans in one `ResourceSpans`, so that what is in memory stays small.
const BATCH: usize = 4_096;

/// How much was written, and what was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Otlp {
    /// Jobs: traces, without that of what belongs to no job.
    pub jobs: u64,
    /// Attempts of tasks.
    pub tasks: u64,
    /// Phases of reduces.
    pub phases: u64,
    /// Processing spans: calls, block operations, fetches, and what served them.
    pub spans: u64,
    /// Of these, those that belong to a job.
    pub spans_of_jobs: u64,
    /// Messages between two spans.
    pub links: u64,
    /// Their bytes.
    pub link_bytes: u64,
    /// Messages for which not both ends have a span: left out.
    pub messages_without_spans: u64,
    /// Processing spans of processes that are not Hadoop's: left out.
    pub spans_of_others: u64,
}

/// Writes an `ExportTraceServiceRequest`: in OTLP's JSON if `out` ends in `.json`, in protobuf otherwise.
///
/// # Errors
/// If the trace has no Hadoop process, or the file cannot be written.
pub fn otlp(trace: &Trace, out: &Path) -> Result<Otlp, ExportError> {
    if !trace.processes.iter().any(|process| process.hadoop) {
        return Err(ExportError::NoProcesses);
    }
    let mut export = Export::new(trace);
    let is_json = out.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(OsStr::new("json")));
    write(out, |file| {
        let mut sink = Sink { file, is_json, written: 0 };
        export.write(&mut sink)?;
        sink.finish()
    })?;
    Ok(export.written)
}

struct Export<'t> {
    trace: &'t Trace,
    ids: Ids,
    tree: Tree<'t>,
    /// By the span that gets them: messages, and the spans that sent them.
    links: HashMap<u32, Vec<(&'t MessageRow, u32)>>,
    written: Otlp,
}

impl<'t> Export<'t> {
    fn new(trace: &'t Trace) -> Self {
        let mut export = Self {
            trace,
            ids: Ids::new(trace),
            tree: Tree::new(trace),
            links: HashMap::new(),
            written: Otlp::default(),
        };
        export.find_links();
        export
    }

    fn process(&self, process: ProcessId) -> Option<&'t ProcessRow> {
        self.trace.processes.get(process.index()).filter(|row| row.hadoop)
    }

    fn find_links(&mut self) {
        let mut spans: HashMap<(MessageId, ProcessId), u32> = HashMap::new();
        for (row, span) in (0..).zip(&self.trace.spans) {
            if self.process(span.process).is_none() {
                self.written.spans_of_others += 1;
                continue;
            }
            for message in [span.request, span.response].into_iter().flatten() {
                spans.entry((message, span.process)).or_insert(row);
            }
        }
        for message in &self.trace.messages {
            let ends = self.trace.connections.get(message.connection.index()).and_then(|connection| {
                let (client, server) = (connection.client_process?, connection.server_process?);
                let (from, to) = if message.from_client { (client, server) } else { (server, client) };
                Some((*spans.get(&(message.message, from))?, *spans.get(&(message.message, to))?))
            });
            match ends {
                Some((from, to)) if from != to => {
                    self.links.entry(to).or_default().push((message, from));
                    self.written.links += 1;
                    add(&mut self.written.link_bytes, message.bytes);
                }
                _ => self.written.messages_without_spans += 1,
            }
        }
    }

    fn write(&mut self, sink: &mut Sink<'_, impl Write>) -> io::Result<()> {
        let jobs: Vec<Span> = self.trace.jobs.iter().map(|job| self.of_job(job)).collect();
        self.written.jobs = jobs.len() as u64;
        sink.put(&self.resource("job", None), jobs)?;
        let mut of_process: HashMap<Option<ProcessId>, Vec<Span>> = HashMap::new();
        for task in &self.trace.tasks {
            let process = task.process.filter(|process| self.process(*process).is_some());
            let mut spans = self.of_task(task);
            self.written.tasks += 1;
            self.written.phases += spans.len() as u64 - 1;
            of_process.entry(process).or_default().append(&mut spans);
        }
        sink.put(&self.resource("task", None), of_process.remove(&None).unwrap_or_default())?;
        let mut rows: HashMap<ProcessId, Vec<u32>> = HashMap::new();
        for (row, span) in (0..).zip(&self.trace.spans) {
            rows.entry(span.process).or_default().push(row);
        }
        for process in self.trace.processes.iter().filter(|process| process.hadoop) {
            let resource = self.resource(&process.role, Some(process));
            sink.put(&resource, of_process.remove(&Some(process.process)).unwrap_or_default())?;
            for some in rows.remove(&process.process).unwrap_or_default().chunks(BATCH) {
                let spans = some.iter().map(|row| self.of_span(*row)).collect();
                sink.put(&resource, spans)?;
            }
        }
        Ok(())
    }

    fn resource(&self, service: &str, process: Option<&ProcessRow>) -> Resource {
        let times = if is_simulated(self.trace) { "simulated" } else { "recorded" };
        let mut attributes = vec![KeyValue::text("service.name", service), KeyValue::text("hadoptic.times", times)];
        if let Some(process) = process {
            let host = self.trace.hosts.get(process.host.index()).map_or("", |host| host.name.as_str());
            let instance = format!("{host}/{}/{}", process.pid, process.start_ticks);
            attributes.extend([
                KeyValue::text("service.instance.id", &instance),
                KeyValue::text("host.name", host),
                KeyValue::number("process.pid", process.pid.into()),
            ]);
        }
        Resource { attributes }
    }

    fn of_job(&self, job: &JobRow) -> Span {
        let attributes = vec![
            KeyValue::text("hadoptic.level", "job"),
            KeyValue::text("hadoop.job.id", &job.id),
            KeyValue::text("hadoop.job.name", &job.name),
            KeyValue::number("hadoop.job.maps", job.maps.into()),
            KeyValue::number("hadoop.job.reduces", job.reduces.into()),
        ];
        Span {
            trace_id: self.ids.trace(Some(job.job)),
            span_id: self.ids.span(Node::Job(job.job)),
            name: "job".to_owned(),
            kind: SpanKind::Internal as i32,
            start_time_unix_nano: job.submit_ns,
            end_time_unix_nano: job.finish_ns.max(job.submit_ns),
            attributes,
            status: Some(status(job.succeeded)),
            ..Span::default()
        }
    }

    /// A task attempt, and the phases of a reduce.
    fn of_task(&self, task: &TaskRow) -> Vec<Span> {
        let job = self.tree.job_of_task(task.task);
        let span = |node: Node, parent: Option<Node>, name: &str, begin: u64, end: u64, level: &str| Span {
            trace_id: self.ids.trace(job),
            span_id: self.ids.span(node),
            parent_span_id: parent.map_or_else(Vec::new, |parent| self.ids.span(parent)),
            name: name.to_owned(),
            kind: SpanKind::Internal as i32,
            start_time_unix_nano: begin,
            end_time_unix_nano: end.max(begin),
            attributes: vec![
                KeyValue::text("hadoptic.level", level),
                KeyValue::text("hadoop.task.attempt", &task.attempt),
            ],
            ..Span::default()
        };
        let whole = Node::Task(task.task);
        let mut all = vec![span(whole, job.map(Node::Job), task.kind.as_str(), task.start_ns, task.finish_ns, "task")];
        all[0].status = Some(status(task.succeeded));
        if let (TaskKind::Reduce, Some(shuffle_end)) = (task.kind, task.shuffle_end_ns) {
            let sort_end = task.sort_end_ns.unwrap_or(shuffle_end);
            let phases = [
                ("shuffle", task.start_ns, shuffle_end),
                ("sort", shuffle_end, sort_end),
                ("reduce", sort_end, task.finish_ns),
            ];
            for (number, (name, begin, end)) in (0..).zip(phases) {
                all.push(span(Node::Phase(task.task, number), Some(whole), name, begin, end, "phase"));
            }
        }
        all
    }

    fn of_span(&mut self, row: u32) -> Span {
        let span = &self.trace.spans[row as usize];
        let (parent, job) = self.tree.of_span(row);
        self.written.spans += 1;
        self.written.spans_of_jobs += u64::from(job.is_some());
        let messages = self.links.remove(&row).unwrap_or_default();
        Span {
            trace_id: self.ids.trace(job),
            span_id: self.ids.span(Node::Span(row)),
            parent_span_id: parent.map_or_else(Vec::new, |parent| self.ids.span(parent)),
            name: if span.name.is_empty() { &span.kind } else { &span.name }.clone(),
            kind: kind(span) as i32,
            start_time_unix_nano: span.begin_ns,
            end_time_unix_nano: end(span),
            attributes: self.attributes(span),
            links: messages.into_iter().map(|(message, from)| self.link(message, from)).collect(),
            ..Span::default()
        }
    }

    fn attributes(&self, span: &SpanRow) -> Vec<KeyValue> {
        let mut attributes = vec![
            KeyValue::text("hadoptic.level", "rpc"),
            KeyValue::text("hadoptic.kind", &span.kind),
            KeyValue::number("thread.id", span.thread),
        ];
        if kind(span) == SpanKind::Server {
            // From its arrival on until a thread took it.
            attributes.push(KeyValue::number("hadoptic.queued_ns", span.begin_ns.saturating_sub(span.received_ns)));
        }
        if let Some(connection) = span.connection.and_then(|connection| self.trace.connections.get(connection.index()))
        {
            attributes.push(KeyValue::text("network.protocol.name", &connection.protocol));
            if let Ok(server) = connection.server.parse::<SocketAddr>() {
                attributes.push(KeyValue::text("server.address", &server.ip().to_string()));
                attributes.push(KeyValue::number("server.port", server.port().into()));
            }
        }
        attributes
    }

    fn link(&self, message: &MessageRow, from: u32) -> Link {
        let (_, job) = self.tree.of_span(from);
        Link {
            trace_id: self.ids.trace(job),
            span_id: self.ids.span(Node::Span(from)),
            attributes: vec![
                KeyValue::number("hadoptic.message", message.message.0.into()),
                KeyValue::text("hadoptic.message.kind", message.kind.as_str()),
                KeyValue::number("hadoptic.message.bytes", message.bytes),
                KeyValue::number("hadoptic.message.sent_ns", message.sent_ns),
                KeyValue::number("hadoptic.message.delivered_ns", message.delivered_ns),
            ],
        }
    }
}

fn status(succeeded: bool) -> Status {
    let (code, message) = if succeeded { (1, "") } else { (2, "did not succeed") };
    Status { message: message.to_owned(), code }
}

/// The file, to which one `ResourceSpans` after the other is written.
struct Sink<'f, W> {
    file: &'f mut W,
    is_json: bool,
    written: u64,
}

impl<W: Write> Sink<'_, W> {
    fn put(&mut self, resource: &Resource, spans: Vec<Span>) -> io::Result<()> {
        if spans.is_empty() {
            return Ok(());
        }
        let scope = InstrumentationScope { name: "hadoptic".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let some = ResourceSpans {
            resource: Some(resource.clone()),
            scope_spans: vec![ScopeSpans { scope: Some(scope), spans }],
        };
        self.written += 1;
        if self.is_json {
            self.file.write_all(if self.written == 1 { b"{\"resourceSpans\":[" } else { b"," })?;
            return serde_json::to_writer(&mut *self.file, &some).map_err(io::Error::from);
        }
        // Requests after one another are one request with the fields of all.
        self.file.write_all(&ExportTraceServiceRequest { resource_spans: vec![some] }.encode_to_vec())
    }

    fn finish(self) -> io::Result<()> {
        match (self.is_json, self.written) {
            (true, 0) => self.file.write_all(b"{}\n"),
            (true, _) => self.file.write_all(b"]}\n"),
            (false, _) => Ok(()),
        }
    }
}
