//! Which events of a trace read from HDFS or write to it, and which end a wait for it.

use std::collections::{BTreeMap, BTreeSet};

use trace::ids::{ConnectionId, EventId, MessageId, ProcessId};
use trace::rows::{MessageKind, MessageRow, Trace};

/// The first and the last piece that each process wrote to HDFS.
pub(super) fn outputs_written(trace: &Trace) -> BTreeMap<ProcessId, (EventId, EventId)> {
    let mut written: BTreeMap<ProcessId, (EventId, EventId)> = BTreeMap::new();
    for event in &trace.events {
        let message = event.message.and_then(|message| trace.messages.get(message.index()));
        let is_output =
            message.is_some_and(|row| row.kind == MessageKind::BlockData && row.name == "write" && row.hop == Some(1));
        if let Some(process) = event.process.filter(|_| is_output) {
            written.entry(process).or_insert((event.event, event.event)).1 = event.event;
        }
    }
    written
}

/// The first piece of the data of each read from HDFS.
pub(super) fn inputs_read(trace: &Trace) -> BTreeMap<MessageId, EventId> {
    let mut read: BTreeMap<MessageId, EventId> = BTreeMap::new();
    for event in &trace.events {
        let message = event.message.and_then(|message| trace.messages.get(message.index()));
        if let Some(row) = message.filter(|row| row.kind == MessageKind::BlockData && row.name == "read") {
            read.entry(row.message).or_insert(event.event);
        }
    }
    read
}

/// Requests to complete a file that follow another one on their connection: the NameNode had not heard of the last block yet, and
/// HDFS's client has slept (`DFSOutputStream.completeFile`; `dfs.client.block.write.locateFollowingBlock.initial.delay.ms`, 400).
pub(super) fn completion_retries(trace: &Trace) -> BTreeSet<EventId> {
    let mut last: BTreeMap<ConnectionId, &MessageRow> = BTreeMap::new();
    let mut retries = BTreeSet::new();
    for event in &trace.events {
        let message = event.message.and_then(|message| trace.messages.get(message.index()));
        if let Some(request) = message.filter(|row| row.kind == MessageKind::RpcRequest) {
            let before = last.insert(request.connection, request);
            let completes = before.is_some_and(|before| before.message != request.message && before.name == "complete");
            if completes && request.name == "complete" {
                retries.insert(event.event);
            }
        }
    }
    retries
}
