//! The shuffle of each job as a coflow, in the form of the coflow-benchmark (`FB2010-1Hr-150-0.txt`).
//!
//! The first line has the number of ports and of coflows. Then a line each: id, arrival in ms, number of mappers and their
//! ports, number of reducers and `PORT:MB` of each. A reducer's bytes come from all mappers in equal parts: that form knows no
//! more. Ports are hosts, counted from 0; a megabyte is 10^6 bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;

use trace::ids::JobId;
use trace::rows::{MessageKind, TaskRow, Trace};

use super::file::{ExportError, write};
use crate::sums::add;

/// How much was written, and what was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Coflows {
    /// Jobs with a shuffle.
    pub coflows: u64,
    /// Bytes of map outputs that are in it.
    pub bytes: u64,
    /// Map outputs of no known job or attempt: left out.
    pub unknown: u64,
}

/// One shuffle.
#[derive(Default)]
struct Shuffle {
    first_ns: Option<u64>,
    mappers: BTreeSet<usize>,
    /// Bytes by host.
    reducers: BTreeMap<usize, u64>,
}

/// Writes the shuffle of each job. Where a host has several maps or reduces, they are one mapper or reducer.
///
/// # Errors
/// If the file cannot be written.
pub fn coflow(trace: &Trace, out: &Path) -> Result<Coflows, ExportError> {
    let mut written = Coflows::default();
    let tasks: BTreeMap<&str, &TaskRow> = trace.tasks.iter().map(|task| (task.attempt.as_str(), task)).collect();
    let mut shuffles: BTreeMap<JobId, Shuffle> = BTreeMap::new();
    for message in trace.messages.iter().filter(|message| message.kind == MessageKind::ShuffleResponse) {
        let map = message.map.as_deref().and_then(|map| tasks.get(map));
        let (Some(map), Some(connection)) = (map, trace.connections.get(message.connection.index())) else {
            written.unknown += 1;
            continue;
        };
        let shuffle = shuffles.entry(map.job).or_default();
        shuffle.first_ns = Some(shuffle.first_ns.map_or(message.sent_ns, |first| first.min(message.sent_ns)));
        shuffle.mappers.insert(connection.server_host.index());
        add(shuffle.reducers.entry(connection.client_host.index()).or_default(), message.bytes);
        add(&mut written.bytes, message.bytes);
    }
    written.coflows = shuffles.len() as u64;
    write(out, |file| {
        writeln!(file, "{} {}", trace.hosts.len(), shuffles.len())?;
        for (number, shuffle) in (1..).zip(shuffles.values()) {
            let arrival_ms = shuffle.first_ns.unwrap_or(0).saturating_sub(trace.manifest.start_ns) / 1_000_000;
            let mappers: Vec<String> = shuffle.mappers.iter().map(ToString::to_string).collect();
            let reducers: Vec<String> = shuffle
                .reducers
                .iter()
                .map(|(port, bytes)| format!("{port}:{}.{:06}", bytes / 1_000_000, bytes % 1_000_000))
                .collect();
            let (maps, reduces) = (mappers.len(), reducers.len());
            writeln!(file, "{number} {arrival_ms} {maps} {} {reduces} {}", mappers.join(" "), reducers.join(" "))?;
        }
        Ok(())
    })?;
    Ok(written)
}
