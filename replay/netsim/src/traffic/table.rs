//! Messages from a file: CSV with a header, the columns `at`, `from`, `to`, `bytes` and, if wanted, `level` in any order.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::fabric::packet::ServiceLevel;
use crate::files;
use crate::time::SimTime;
use crate::units::{Bytes, DurationPs};

/// How long traffic may last at most, in picoseconds: a simulated day.
pub(super) const MAX_PS: u64 = 86_400_000_000_000_000;

/// The largest file, bytes: millions of messages.
const MAX_FILE: u64 = 1 << 28;

/// A message of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimedMessage {
    /// When it is handed over.
    pub at: SimTime,
    /// Source host.
    pub source: u32,
    /// Destination host.
    pub destination: u32,
    /// Payload in bytes.
    pub bytes: u64,
    /// Service level.
    pub level: ServiceLevel,
}

/// A table of messages that cannot be used.
#[derive(Debug, Error)]
pub enum TableError {
    /// It cannot be read.
    #[error("traffic.table: {path}: {source}", path = path.display())]
    Read {
        /// The table's file, as it was named.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// A line, or a cell of it, is wrong.
    #[error("traffic.table: {path}:{line}: {reason}", path = path.display())]
    Line {
        /// The table's file, as it was named.
        path: PathBuf,
        /// Line, from 1 on.
        line: usize,
        /// What is wrong, and what is allowed.
        reason: String,
    },
    /// No message at all.
    #[error("traffic.table: {path} holds no message", path = path.display())]
    Empty {
        /// The table's file, as it was named.
        path: PathBuf,
    },
}

const COLUMNS: [&str; 5] = ["at", "from", "to", "bytes", "level"];

/// Reads the messages of a file for `hosts` hosts, in the order of time; those of one instant in that of the file.
///
/// # Errors
/// If it cannot be read, or something in it is wrong.
pub fn read_table(path: &Path, hosts: u32) -> Result<Vec<TimedMessage>, TableError> {
    let text = files::read_text(path, MAX_FILE).map_err(|source| TableError::Read { path: path.into(), source })?;
    let wrong = |line: usize, reason: String| TableError::Line { path: path.into(), line: line + 1, reason };
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let Some((_, header)) = lines.next() else { return Err(TableError::Empty { path: path.into() }) };
    let columns = columns_of(header).map_err(|reason| wrong(0, reason))?;
    let mut messages = Vec::new();
    for (number, line) in lines {
        messages.push(message_of(line, &columns, hosts).map_err(|reason| wrong(number, reason))?);
    }
    if messages.is_empty() {
        return Err(TableError::Empty { path: path.into() });
    }
    messages.sort_by_key(|message| message.at);
    Ok(messages)
}

/// Which column each cell of a line is.
fn columns_of(header: &str) -> Result<Vec<usize>, String> {
    let mut columns = Vec::new();
    for name in header.split(',').map(str::trim) {
        let column = COLUMNS.iter().position(|known| *known == name);
        let column =
            column.ok_or_else(|| format!("unknown column \"{name}\"; the columns are {}", COLUMNS.join(", ")))?;
        if columns.contains(&column) {
            return Err(format!("column \"{name}\" is there twice"));
        }
        columns.push(column);
    }
    if let Some(missing) = (0..4).find(|column| !columns.contains(column)) {
        return Err(format!("column \"{}\" is missing; only \"level\" may be left out", COLUMNS[missing]));
    }
    Ok(columns)
}

fn message_of(line: &str, columns: &[usize], hosts: u32) -> Result<TimedMessage, String> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    if cells.len() != columns.len() {
        return Err(format!("{} cells, but the header has {}", cells.len(), columns.len()));
    }
    let cell = |column: usize| columns.iter().position(|here| *here == column).map_or("", |index| cells[index]);
    let host = |column: usize| {
        let (name, text) = (COLUMNS[column], cell(column));
        let host = text.parse::<u32>().ok().filter(|host| *host < hosts);
        host.ok_or_else(|| format!("{name} = \"{text}\": hosts are numbered from 0 to {}", hosts.saturating_sub(1)))
    };
    let at: DurationPs = cell(0).parse().map_err(|error| format!("at: {error}"))?;
    if at.ps() > MAX_PS {
        return Err(format!("at = \"{at}\": at most a simulated day"));
    }
    let (source, destination) = (host(1)?, host(2)?);
    if source == destination {
        return Err(format!("from = to = {source}: a message goes to another host"));
    }
    let bytes: Bytes = cell(3).parse().map_err(|error| format!("bytes: {error}"))?;
    if bytes.get() > 1 << 40 {
        return Err(format!("bytes = \"{bytes}\": at most 1 TiB"));
    }
    let level = match cell(4) {
        "" => 0,
        text => {
            let level = text.parse::<u8>().ok().filter(|level| *level <= 15);
            level.ok_or_else(|| format!("level = \"{text}\": service levels are 0 to 15"))?
        }
    };
    Ok(TimedMessage { at: SimTime(at.ps()), source, destination, bytes: bytes.get(), level: ServiceLevel(level) })
}
