//! A list of flows, one a line: `SOURCE DESTINATION BYTES START`, the form that flow-level simulators of networks read.

use std::io::Write as _;
use std::path::Path;

use trace::rows::{MessageRow, Trace};

use super::file::{ExportError, one_line, write};

/// How many flows were written, and what was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Flows {
    /// Messages between two hosts, a line each.
    pub flows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that stayed on their host: left out.
    pub within_hosts: u64,
    /// Messages of no bytes: left out.
    pub empty: u64,
}

/// Writes each message that went from a host to another: numbers of the hosts (from 0, named in comments at the top),
/// payload bytes, seconds from the trace's start to its first byte; in the order of time.
///
/// # Errors
/// If the file cannot be written.
pub fn flows(trace: &Trace, out: &Path) -> Result<Flows, ExportError> {
    let mut written = Flows::default();
    write(out, |file| {
        writeln!(file, "# source destination bytes start_s")?;
        for (number, host) in trace.hosts.iter().enumerate() {
            writeln!(file, "# host {number} {} rack {}", one_line(&host.name), one_line(&host.rack))?;
        }
        for message in &trace.messages {
            match between(trace, message) {
                _ if message.bytes == 0 => written.empty += 1,
                None => written.within_hosts += 1,
                Some((from, to)) => {
                    let start_ns = message.sent_ns.saturating_sub(trace.manifest.start_ns);
                    let (seconds, rest) = (start_ns / 1_000_000_000, start_ns % 1_000_000_000);
                    writeln!(file, "{from} {to} {} {seconds}.{rest:09}", message.bytes)?;
                    written.flows += 1;
                    written.bytes = written.bytes.saturating_add(message.bytes);
                }
            }
        }
        Ok(())
    })?;
    Ok(written)
}

/// The hosts from which and to which a message went; `None` where it is one.
fn between(trace: &Trace, message: &MessageRow) -> Option<(usize, usize)> {
    let connection = trace.connections.get(message.connection.index())?;
    let (client, server) = (connection.client_host.index(), connection.server_host.index());
    let ends = if message.from_client { (client, server) } else { (server, client) };
    (client != server).then_some(ends)
}
