//! What connections say of their owners where no scan and no JVM does: HDFS clients and callers name the task attempt
//! for which they work.

use std::collections::BTreeMap;

use trace::ids::{HostId, ProcessId};
use trace::rows::{MessageKind, OwnerEvidence, ProcessRow};

use crate::compact::{Connections, ReadMessages};
use crate::pipelines::{Hops, Upstream, WRITE};

/// Roles of processes that run task attempts.
fn runs_tasks(role: &str) -> bool {
    matches!(role, "YarnChild" | "Child") || role == crate::processes::UNKNOWN_ROLE
}

/// Gives processes of tasks the attempt that their own connections name.
pub(crate) fn attempts_of_processes(messages: &ReadMessages, connections: &Connections, processes: &mut [ProcessRow]) {
    for message in messages.iter() {
        let Some(process) = connections[message.connection].client_process else { continue };
        let row = &mut processes[process.index()];
        if row.attempt.is_none() && runs_tasks(&row.role) {
            row.attempt = message.attempt.map(str::to_owned);
        }
    }
}

/// Gives connections without a client the process that can only be it: the DataNode that passes a block on, or the
/// process of the attempt that is named. Evidence: inferred.
pub(crate) fn clients(
    messages: &ReadMessages,
    (hops, upstream): (&Hops, &Upstream),
    connections: &mut Connections,
    processes: &[ProcessRow],
) {
    let mut by_attempt: BTreeMap<(HostId, &str), Option<ProcessId>> = BTreeMap::new();
    let mut by_reduce: BTreeMap<(HostId, u32), Option<ProcessId>> = BTreeMap::new();
    for row in processes.iter().filter(|row| runs_tasks(&row.role)) {
        let Some(attempt) = row.attempt.as_deref() else { continue };
        // Of two processes with one name none can be told.
        by_attempt.entry((row.host, attempt)).and_modify(|known| *known = None).or_insert(Some(row.process));
        if let Some(reduce) = reduce_of(attempt) {
            by_reduce.entry((row.host, reduce)).and_modify(|known| *known = None).or_insert(Some(row.process));
        }
    }
    for message in messages.iter() {
        let row = &connections[message.connection];
        if row.client_process.is_some() {
            continue;
        }
        let write = (message.connection, message.call);
        let hop = if message.name == WRITE { hops.get(&write).copied() } else { message.hop };
        let client = match (message.kind, hop) {
            (MessageKind::BlockRequest, Some(2..)) => {
                upstream.get(&write).and_then(|from| connections[*from].server_process)
            }
            (MessageKind::ShuffleRequest, _) => {
                message.reduce.and_then(|reduce| by_reduce.get(&(row.client_host, reduce)).copied().flatten())
            }
            _ => message.attempt.and_then(|attempt| by_attempt.get(&(row.client_host, attempt)).copied().flatten()),
        };
        if client.is_some() {
            connections.change_ends(message.connection, |ends| {
                (ends.client_process, ends.client_evidence) = (client, OwnerEvidence::Inferred);
            });
        }
    }
}

/// `attempt_1700000000000_0001_r_000003_0` fetches for reduce 3.
fn reduce_of(attempt: &str) -> Option<u32> {
    let mut parts = attempt.split('_').skip(3);
    (parts.next()? == "r").then(|| parts.next()?.parse().ok()).flatten()
}
