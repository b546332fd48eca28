//! A list of flows, one a line: `SOURCE DESTINATION BYTES START_NS`, hosts from 0, the form that htsim and its kin read.

use std::io::Write as _;
use std::path::Path;

use trace::rows::{MessageRow, Trace};

use super::file::{ExportError, one_line, write};
use crate::sums::add;

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

/// Writes each message that went from a host to another: numbers of the hosts, payload bytes, nanoseconds from the trace's start
/// to its first byte; in the order of time, without a line break at the end. `OUT.hosts` has a line for each host: its number, name and rack.
///
/// # Errors
/// If a file cannot be written.
pub fn flows(trace: &Trace, out: &Path) -> Result<Flows, ExportError> {
    let mut written = Flows::default();
    let mut hosts = out.as_os_str().to_owned();
    hosts.push(".hosts");
    write(Path::new(&hosts), |file| {
        for (number, host) in trace.hosts.iter().enumerate() {
            writeln!(file, "{number} {} {}", one_line(&host.name), one_line(&host.rack))?;
        }
        Ok(())
    })?;
    write(out, |file| {
        for message in &trace.messages {
            match between(trace, message) {
                _ if message.bytes == 0 => written.empty += 1,
                None => written.within_hosts += 1,
                Some((from, to)) => {
                    let start_ns = message.sent_ns.saturating_sub(trace.manifest.start_ns);
                    // Between lines only: htsim takes what follows the last line break for a flow.
                    let begin = if written.flows > 0 { "\n" } else { "" };
                    write!(file, "{begin}{from} {to} {} {start_ns}", message.bytes)?;
                    written.flows += 1;
                    add(&mut written.bytes, message.bytes);
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
