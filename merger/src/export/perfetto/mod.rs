//! Perfetto (ui.perfetto.dev): one file of TrackEvents.
//!
//! A process is a Hadoop process, a thread one of its lanes. A slice is a phase of a task or a span, its
//! category the kind of it. A message is an instant where it leaves and another where it arrives, joined by a flow whose id is
//! the message's row and 1. Times are nanoseconds since the epoch.

mod schema;

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;

use prost::Message as _;
use trace::rows::{MessageRow, Trace};

use self::schema::{
    DebugAnnotation, EventType, ProcessDescriptor, ThreadDescriptor, TracePacket, TrackDescriptor, TrackEvent,
};
use super::file::{ExportError, write};
use super::lanes::{Lanes, TaskLane, changes};

/// Writers of one file are told apart by this; there is one.
const SEQUENCE: u32 = 1;
/// Numbers of tracks and threads are 32 bits wide in Perfetto's tables.
const MAX_ROWS: usize = 1 << 30;

/// How much was written, and what was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Perfetto {
    /// Processes.
    pub processes: u64,
    /// Threads or lanes.
    pub threads: u64,
    /// Spans and phases of tasks.
    pub slices: u64,
    /// Messages, each with a flow.
    pub messages: u64,
    /// Messages of which an end belongs to no Hadoop process: left out.
    pub messages_of_others: u64,
}

/// Writes a trace for Perfetto.
///
/// # Errors
/// If the trace has no Hadoop process, or the file cannot be written.
pub fn perfetto(trace: &Trace, out: &Path) -> Result<Perfetto, ExportError> {
    let lanes = Lanes::new(trace, MAX_ROWS)?;
    let mut written =
        Perfetto { processes: lanes.tasks.len() as u64, threads: lanes.rows() as u64, ..Perfetto::default() };
    write(out, |file| {
        descriptors(trace, &lanes, file)?;
        slices(&lanes, file, &mut written)?;
        messages(trace, &lanes, file, &mut written)
    })?;
    Ok(written)
}

/// A packet, framed as an element of the file's only field.
fn put(file: &mut impl Write, packet: TracePacket) -> io::Result<()> {
    let packet = TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..packet };
    file.write_all(&schema::Trace { packet: vec![packet] }.encode_to_vec())
}

fn descriptors(trace: &Trace, lanes: &Lanes<'_>, file: &mut impl Write) -> io::Result<()> {
    let pids = pids(lanes);
    for (number, (task, pid)) in lanes.tasks.iter().zip(&pids).enumerate() {
        let name = task.name(trace);
        let process = ProcessDescriptor {
            pid: Some(*pid),
            process_name: Some(name),
            process_labels: vec![task.process.role.clone()],
        };
        let uuid = Some(process_track(number));
        put_track(file, TrackDescriptor { uuid, process: Some(process), ..TrackDescriptor::default() })?;
        for (place, lane) in task.lanes.iter().enumerate() {
            let thread = ThreadDescriptor {
                pid: Some(*pid),
                // A number of its own: Java's thread numbers are those of a JVM, Perfetto's those of a machine.
                tid: Some(1_000_000_000 + lane.cpu as i64),
                thread_name: Some(lane.name(place)),
            };
            let uuid = Some(thread_track(lanes, TaskLane { task: number, lane: place }));
            put_track(file, TrackDescriptor { uuid, thread: Some(thread), ..TrackDescriptor::default() })?;
        }
    }
    Ok(())
}

fn put_track(file: &mut impl Write, track: TrackDescriptor) -> io::Result<()> {
    put(file, TracePacket { track_descriptor: Some(track), ..TracePacket::default() })
}

/// The processes' ids, or where two hosts have one and the same, numbers from 1.
fn pids(lanes: &Lanes<'_>) -> Vec<i32> {
    let own: Vec<i32> = lanes.tasks.iter().map(|task| i32::try_from(task.process.pid).unwrap_or(0)).collect();
    let different: HashSet<i32> = own.iter().copied().filter(|pid| *pid > 0).collect();
    if different.len() == own.len() { own } else { (1..).take(own.len()).collect() }
}

const fn process_track(number: usize) -> u64 {
    (1 << 32) + number as u64
}

fn thread_track(lanes: &Lanes<'_>, place: TaskLane) -> u64 {
    (2 << 32) + lanes.tasks[place.task].lanes[place.lane].cpu as u64
}

fn slices(lanes: &Lanes<'_>, file: &mut impl Write, written: &mut Perfetto) -> io::Result<()> {
    for (task, row) in lanes.tasks.iter().enumerate() {
        for (lane, activities) in row.lanes.iter().enumerate() {
            let track = thread_track(lanes, TaskLane { task, lane });
            for change in changes(&activities.activities) {
                let mut event = event(track, if change.begins { EventType::SliceBegin } else { EventType::SliceEnd });
                if change.begins {
                    event.name = Some(change.activity.name.to_owned());
                    event.categories = vec![change.activity.kind.name().to_owned()];
                    written.slices += 1;
                }
                put_event(file, change.at, event)?;
            }
        }
    }
    Ok(())
}

fn messages(trace: &Trace, lanes: &Lanes<'_>, file: &mut impl Write, written: &mut Perfetto) -> io::Result<()> {
    for message in &trace.messages {
        let Some((from, to)) = lanes.of_message(trace, message) else {
            written.messages_of_others += 1;
            continue;
        };
        let flow = u64::from(message.message.0) + 1;
        let mut sent = of_message(thread_track(lanes, from), message, "sent");
        sent.flow_ids = vec![flow];
        put_event(file, message.sent_ns, sent)?;
        let mut received = of_message(thread_track(lanes, to), message, "received");
        received.terminating_flow_ids = vec![flow];
        put_event(file, message.delivered_ns.max(message.sent_ns), received)?;
        written.messages += 1;
    }
    Ok(())
}

fn of_message(track: u64, message: &MessageRow, category: &str) -> TrackEvent {
    let mut event = event(track, EventType::Instant);
    event.name = Some(message.kind.as_str().to_owned());
    event.categories = vec![category.to_owned()];
    event.debug_annotations = vec![
        DebugAnnotation { name: Some("bytes".into()), uint_value: Some(message.bytes), ..DebugAnnotation::default() },
        DebugAnnotation {
            name: Some("message".into()),
            uint_value: Some(u64::from(message.message.0)),
            ..DebugAnnotation::default()
        },
        DebugAnnotation {
            name: Some("name".into()),
            string_value: Some(message.name.clone()),
            ..DebugAnnotation::default()
        },
    ];
    event
}

fn event(track: u64, kind: EventType) -> TrackEvent {
    TrackEvent { track_uuid: Some(track), r#type: Some(kind as i32), ..TrackEvent::default() }
}

fn put_event(file: &mut impl Write, at: u64, event: TrackEvent) -> io::Result<()> {
    put(file, TracePacket { timestamp: Some(at), track_event: Some(event), ..TracePacket::default() })
}
