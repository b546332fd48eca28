//! Write pipelines: which hop of the way a connection is.

use std::collections::BTreeMap;

use trace::ids::{ConnectionId, ProcessId};
use trace::rows::{MessageKind, ProcessRow};

use crate::compact::{Connections, ReadMessages};

/// The longest pipeline that is followed.
const MAX_NODES: usize = 32;

/// For each write of a later hop (connection and number of the operation on it): the connection on which the block came.
pub(crate) type Upstream = BTreeMap<(ConnectionId, i64), ConnectionId>;

/// For each write (connection and number of the operation on it): which hop it is.
pub(crate) type Hops = BTreeMap<(ConnectionId, i64), u32>;

/// The name of messages of writes.
pub(crate) const WRITE: &str = "write";

/// A write operation.
#[derive(Clone, Copy)]
struct Write {
    connection: ConnectionId,
    call: i64,
    block: u64,
}

/// Finds the hop of all write operations: 1 where the writer is no DataNode, else one more than the hop by
/// which that DataNode receives the block. Where the writer is not known, a block that came to its host before is taken
/// to be passed on: pipelines are opened hop by hop.
pub(crate) fn number_hops(
    messages: &ReadMessages,
    connections: &Connections,
    processes: &[ProcessRow],
) -> (Hops, Upstream) {
    let is_data_node =
        |process: Option<ProcessId>| process.is_some_and(|process| processes[process.index()].role == "DataNode");
    let writes: Vec<Write> = messages
        .iter()
        .filter(|message| message.kind == MessageKind::BlockRequest && message.name == WRITE)
        .filter_map(|message| Some(Write { connection: message.connection, call: message.call, block: message.block? }))
        .collect();
    let mut arrivals: BTreeMap<u64, Vec<Write>> = BTreeMap::new();
    for write in &writes {
        arrivals.entry(write.block).or_default().push(*write);
    }
    let mut upstream = Upstream::new();
    let mut hops = Hops::new();
    for write in &writes {
        let row = &connections[write.connection];
        let known = row.client_process.is_some();
        if known && !is_data_node(row.client_process) {
            hops.insert((write.connection, write.call), 1);
            continue;
        }
        let arrival = arrivals[&write.block]
            .iter()
            .filter(|other| {
                let from = &connections[other.connection];
                let here = if known && from.server_process.is_some() {
                    from.server_process == row.client_process
                } else {
                    from.server_host == row.client_host
                };
                here && from.first_ns <= row.first_ns && other.connection != write.connection
            })
            .max_by_key(|other| (connections[other.connection].first_ns, other.connection));
        match arrival {
            Some(other) => {
                upstream.insert((write.connection, write.call), other.connection);
            }
            None if !known => {
                hops.insert((write.connection, write.call), 1);
            }
            None => {}
        }
    }
    let number: BTreeMap<ConnectionId, i64> = writes.iter().map(|write| (write.connection, write.call)).collect();
    for _ in 0..MAX_NODES {
        let before = hops.len();
        for (&later, from) in &upstream {
            let hop = number.get(from).and_then(|&call| hops.get(&(*from, call)).copied());
            if let Some(hop) = hop {
                hops.entry(later).or_insert(hop + 1);
            }
        }
        if hops.len() == before {
            break;
        }
    }
    (hops, upstream)
}
