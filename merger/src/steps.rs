//! Production and consumption: what JVMs say of the bytes of messages, step by step.

use trace::ids::{ConnectionId, MessageId};
use trace::jvm::JvmRecord;
use trace::rows::{StepKind, StepRow};

use crate::joined::JvmEvent;
use crate::spans::Finder;

/// Orders steps by message, kind and begin.
pub(crate) fn order(steps: &mut [StepRow]) {
    steps.sort_by(|a, b| {
        (a.message, a.kind as u8, a.begin_ns, a.first_byte).cmp(&(b.message, b.kind as u8, b.begin_ns, b.first_byte))
    });
}

/// What a record says of the bytes of a message; its connection where it is known. What fits no message is left out.
pub(crate) fn of(event: &JvmEvent, connection: Option<ConnectionId>, finder: &Finder<'_>) -> Option<StepRow> {
    let whole = |message: MessageId, kind: StepKind, bytes: u64, (begin_ns, end_ns): (u64, u64)| StepRow {
        message,
        process: event.process,
        thread: 0,
        kind,
        first_byte: 0,
        bytes,
        begin_ns,
        end_ns: end_ns.max(begin_ns),
        work_ns: 0,
        read_wait_ns: 0,
        write_wait_ns: 0,
        disk_ns: 0,
        sync_ns: 0,
        checksum_ns: 0,
        cpu_ns: None,
        ready_ns: None,
    };
    match &event.record {
        JvmRecord::Step {
            t0,
            t1,
            th,
            op,
            block,
            offset,
            bytes,
            work_ns,
            read_wait,
            write_wait,
            disk_ns,
            sync_ns,
            checksum_ns,
            cpu_ns,
            ready_ns,
            ..
        } => {
            let kind = kind_of(op)?;
            let from_client = matches!(kind, StepKind::Produce | StepKind::Receive);
            let message = finder.data(connection?, *block, from_client, (*t0, *t1))?.message;
            let known = |ns: u64| (*cpu_ns > 0).then_some(ns);
            Some(StepRow {
                thread: *th,
                first_byte: *offset,
                work_ns: *work_ns,
                read_wait_ns: *read_wait,
                write_wait_ns: *write_wait,
                disk_ns: *disk_ns,
                sync_ns: *sync_ns,
                checksum_ns: *checksum_ns,
                cpu_ns: known(*cpu_ns),
                ready_ns: known(*ready_ns),
                ..whole(message, kind, *bytes, (*t0, *t1))
            })
        }
        JvmRecord::ShuffleServed { t0, t1, map, reduce, bytes, read_ns, .. } if *read_ns > 0 => {
            let message = finder.map(connection, map, *reduce, *t1)?.message;
            Some(StepRow { work_ns: *read_ns, ..whole(message, StepKind::Serve, *bytes, (*t0, *t1)) })
        }
        JvmRecord::Fetch { t0, t1, th, map, reduce, bytes, read_wait, .. } => {
            let message = finder.map(None, map, *reduce, *t1)?.message;
            let work_ns = t1.saturating_sub(*t0).saturating_sub(*read_wait);
            let fetch = whole(message, StepKind::Fetch, *bytes, (*t0, *t1));
            Some(StepRow { thread: *th, work_ns, read_wait_ns: *read_wait, ..fetch })
        }
        _ => None,
    }
}

fn kind_of(op: &str) -> Option<StepKind> {
    Some(match op {
        "write" => StepKind::Produce,
        "read" => StepKind::Consume,
        "receive" => StepKind::Receive,
        "send" => StepKind::Send,
        _ => return None,
    })
}
